//! Files that lie, are cut short, or want all the memory there is.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, Rng};
use cuemark_features::{FeatureError, Features, Layout, OpenOptions, open, survey};
use cuemark_testkit::fixture;

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    (guard, path)
}

/// The file of one array, its header as given.
fn npy(header: &str, numbers: &[f32]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

fn header(shape: &str) -> String {
    format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}")
}

fn small() -> OpenOptions {
    OpenOptions { largest: 1 << 20, ..OpenOptions::default() }
}

/// What reading video `v` says, when the folder holds `files`.
fn read(files: &[(&str, &[u8])], options: &OpenOptions) -> Result<Features, FeatureError> {
    let (_guard, folder) = folder();
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    open(&folder, options)?.get(&"v".into(), "visual")
}

fn refused(files: &[(&str, &[u8])], reason: &str) {
    let message = read(files, &small()).unwrap_err().to_string();
    assert!(message.contains(reason), "{message:?} should say {reason:?}");
}

#[test]
fn arrays_that_lie_are_refused_with_a_reason() {
    let good = npy(&header("(2, 2)"), &[1.0, 2.0, 3.0, 4.0]);
    assert!(read(&[("v.npy", &good)], &small()).is_ok(), "the pattern that the cases below break");
    refused(&[("v.npy", &good[..good.len() - 1])], "shape [2, 2] needs 16 bytes, the file has fewer");
    refused(&[("v.npy", &good[..20])], "its header is cut short");
    refused(&[("v.npy", b"")], "is no `.npy` file");
    for (shape, reason) in [
        ("(9999999999, 2)", "the array: needs 74.5 GiB of memory"),
        ("(18446744073709551615, 4)", "is too large"),
        ("(18446744073709551616, 4)", "number at byte"),
        ("(2, 0)", "is not rows × width"),
        ("(1, 1)", ""),
        ("()", "is not rows × width"),
        ("(2, 2, 2)", "is not rows × width"),
        ("(-1, 2)", "unexpected `-`"),
        ("'x'", "no `shape`"),
    ] {
        let bytes = npy(&header(shape), &[1.0, 2.0, 3.0, 4.0]);
        match read(&[("v.npy", &bytes)], &small()) {
            Ok(_) => assert_eq!(reason, "", "{shape}"),
            Err(error) => assert!(error.to_string().contains(reason) && !reason.is_empty(), "{shape}: {error}"),
        }
    }
    let whole = npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2)}", &[0.0; 4]);
    refused(&[("v.npy", &whole)], "holds `<i8`, not f2, f4 or f8 numbers");
    let object = npy("{'descr': '|O', 'fortran_order': False, 'shape': (1, 2)}", &[0.0; 4]);
    refused(&[("v.npy", &object)], "holds `|O`");
}

#[test]
fn files_larger_than_the_limit_are_refused_before_they_fill_the_memory() {
    let rows = 1 << 18;
    let big = npy(&header(&format!("({rows}, 2)")), &vec![0.0; 2 * rows]);
    let error = read(&[("v.npy", &big)], &small()).unwrap_err();
    assert!(error.to_string().ends_with("the array is larger than 1 MiB"), "{error}");
    // The same array as an archive is a few hundred bytes long.
    let mut bomb = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let deflated = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    bomb.start_file("features.npy", deflated).unwrap();
    bomb.write_all(&big).unwrap();
    let bomb = bomb.finish().unwrap().into_inner();
    assert!(bomb.len() < 10_000, "{}", bomb.len());
    let error = read(&[("v.npz", &bomb)], &small()).unwrap_err();
    assert!(error.to_string().ends_with("`features` is larger than 1 MiB"), "{error}");
    assert_eq!(
        read(&[("v.npz", &bomb)], &OpenOptions::default()).unwrap().rows(),
        rows,
        "the limit refused it, no fault"
    );
    let lines = "0,".repeat(300_000) + "0\n";
    let error = read(&[("v.csv", lines.as_bytes())], &small()).unwrap_err();
    assert!(error.to_string().contains("is larger than 1 MiB"), "{error}");
}

#[test]
fn lines_that_are_no_numbers_are_named() {
    refused(&[("v.csv", b"1,2\n3,x\n")], "v.csv:2: `column 2`: `x` is not a number");
    refused(&[("v.csv", b"1,2\n3\n")], "v.csv:2: `row`: 1 numbers, the lines before have 2");
    refused(&[("v.csv", b"\n\n")], "holds no rows");
    refused(&[("v.csv", b"a,b\n1,2\n")], "v.csv:1: `column 1`: `a` is not a number");
    refused(&[("v.csv", b"1,inf\n")], "row 0 holds a number that is not finite");
}

#[test]
fn big_files_whose_parts_disagree_are_refused() {
    let numbers: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let with = |shape: &str, ids: &str, frames: &str| {
        let (shape, ids, frames) = (shape.to_owned(), ids.to_owned(), frames.to_owned());
        let files = [
            ("feature.bin", numbers.clone()),
            ("shape.txt", shape.into_bytes()),
            ("id.txt", ids.into_bytes()),
            ("video2frames.txt", frames.into_bytes()),
        ];
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
        read(&files, &small()).map_err(|error| error.to_string())
    };
    assert!(with("2 2", "a\nb", "{'v': ['b', 'a']}").is_ok_and(|found| found.data() == [3.0, 4.0, 1.0, 2.0]));
    assert!(with("2 2", "a b", "{'v': ['b', 'a']}").is_ok(), "names on one line");
    for (shape, ids, frames, reason) in [
        ("3 2", "a\nb\nc", "{'v': ['a']}", "is 16 bytes long, `shape.txt` says 3 rows of 2"),
        ("18446744073709551615 2", "a", "{}", "is not the number of rows and their width"),
        ("2 0", "a\nb", "{}", "is not the number of rows and their width"),
        ("2", "a\nb", "{}", "is not the number of rows and their width"),
        ("2 2", "a", "{'v': ['a']}", "1 lines, `shape.txt` says 2 rows"),
        ("2 2", "a\nb", "{'v': ['c']}", "`c` of video `v` is not in `id.txt`"),
        ("2 2", "a\nb", "{'v': ['a'], 'v': ['b']}", "video `v` stands there twice"),
        ("2 2", "a\nb", "__import__('os')", "unexpected `_`"),
        ("2 2", "a\nb", "['v']", "is not a dictionary"),
    ] {
        let message = with(shape, ids, frames).unwrap_err();
        assert!(message.contains(reason), "{message:?} should say {reason:?}");
    }
}

#[test]
fn pytorch_files_that_are_none_are_refused() {
    let archive = |entries: &[(&str, &[u8])]| {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in entries {
            archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap().into_inner()
    };
    refused(&[("v.pt", b"\x80\x02}q\x00.")], "no PyTorch file");
    refused(&[("v.pt", &archive(&[("v/other", b"")]))], "holds no `data.pkl`");
    refused(
        &[("v.pt", &archive(&[("v/data.pkl", b"cos\nsystem\nX\x02\x00\x00\x00ls\x85R.")]))],
        "neither a tensor nor",
    );
    refused(&[("v.pt", &archive(&[("v/data.pkl", b"}.")]))], "holds no tensor that has a name");
    // A tensor of two rows whose numbers are not there: 8 bytes instead of 32.
    let tensor = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x08tQK\x00K\x02K\x04\x86K\x04K\x01\x86\x89}tR.";
    refused(
        &[("v.pt", &archive(&[("v/data.pkl", tensor), ("v/data/0", &[0; 8])]))],
        "needs 32 bytes, the file has fewer",
    );
    refused(&[("v.pt", &archive(&[("v/data.pkl", tensor)]))], "v/data/0");
    assert!(read(&[("v.pt", &archive(&[("v/data.pkl", tensor), ("v/data/0", &[0; 32])]))], &small()).is_ok());
}

#[test]
fn windows_with_a_gap_are_refused() {
    let window = npy(&header("(2,)"), &[1.0, 2.0]);
    let files = [("v.avi_1_65.npy", window.as_slice()), ("v.avi_13_77.npy", &window), ("v.avi_37_101.npy", &window)];
    refused(&files, "the windows of `v.avi` are not evenly spread");
    let wide = npy(&header("(3,)"), &[1.0, 2.0, 3.0]);
    let (_guard, folder) = folder();
    std::fs::write(folder.join("v.avi_1_65.npy"), &window).unwrap();
    std::fs::write(folder.join("v.avi_13_77.npy"), &wide).unwrap();
    let error = open(&folder, &small()).unwrap().get(&"v.avi".into(), "visual").unwrap_err();
    assert!(error.to_string().contains("1 rows of 3, not one row of 2"), "{error}");
}

#[test]
fn folders_that_say_nothing_or_too_much_are_refused() {
    let good = npy(&header("(1, 2)"), &[1.0, 2.0]);
    refused(&[("readme.txt", b"hello")], "holds no features in a layout that we know");
    refused(&[("v.npy", &good), ("v.csv", b"1,2\n")], "holds files of several layouts: `.csv`, `.npy`");
    let chosen = OpenOptions { layout: Some(Layout::Csv), ..small() };
    assert!(read(&[("v.npy", &good), ("v.csv", b"1,2\n")], &chosen).is_ok());
    assert!(open(Utf8Path::new("/nonexistent"), &small()).is_err());
    let prefix = OpenOptions { prefix: Some("x_".to_owned()), ..small() };
    assert!(read(&[("v.npy", &good)], &prefix).unwrap_err().to_string().contains("does not begin with `x_`"));
}

#[test]
fn a_survey_counts_and_names_what_is_wrong() {
    let (_guard, folder) = folder();
    let array = |name: &str, shape: &str, numbers: &[f32]| {
        std::fs::write(folder.join(name), npy(&header(shape), numbers)).unwrap();
    };
    array("a.npy", "(3, 2)", &[1.0, 2.0, 0.0, 0.0, f32::NAN, 1.0]);
    array("b.npy", "(2, 2)", &[1.0, f32::INFINITY, 0.0, 0.0]);
    array("c.npy", "(1, 3)", &[1.0, 2.0, 3.0]);
    std::fs::write(folder.join("d.npy"), b"nothing").unwrap();
    let source = open(&folder, &small()).unwrap();
    let found = survey(source.as_ref(), &Progress::new()).unwrap().remove(0);
    assert_eq!((found.videos, found.rows, found.fewest_rows, found.most_rows), (3, 6, 1, 3));
    assert_eq!((found.zero_rows, found.bad_rows), (2, 2));
    let bad: Vec<_> = found.bad.iter().map(|bad| (bad.video.as_str(), bad.rows, bad.first)).collect();
    assert_eq!(bad, [("a", 1, 2), ("b", 1, 0)]);
    let widths: Vec<_> = found.widths.iter().map(|width| (width.width, width.videos, width.example.as_str())).collect();
    assert_eq!(widths, [(2, 2, "a"), (3, 1, "c")]);
    assert_eq!(found.unreadable[0].video.as_str(), "d");
    assert!(!found.is_sound());
    let error = source.get(&"a".into(), "visual").unwrap_err().to_string();
    assert!(error.ends_with("`visual/a`: row 2 holds a number that is not finite"), "{error}");
}

/// Every file of a fixture folder changed in many ways; readers may refuse, not panic.
#[test]
fn no_mutation_of_a_file_makes_a_reader_panic() {
    let mut rng = Rng::new(11);
    for name in ["npy", "npz", "csv", "bigfile", "pt-files"] {
        let (_guard, folder) = folder();
        let files: Vec<(String, Vec<u8>)> = fixture("features")
            .join(name)
            .read_dir_utf8()
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().to_owned(), std::fs::read(entry.path()).unwrap()))
            .collect();
        for _ in 0..120 {
            for (file, bytes) in &files {
                std::fs::write(folder.join(file), mutated(&mut rng, bytes)).unwrap();
            }
            let Ok(source) = open(&folder, &small()) else { continue };
            for video in source.videos("visual") {
                let _ = source.get(video, "visual");
            }
        }
    }
}

fn mutated(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..rng.below(4) {
        let at = rng.below(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = rng.below(256) as u8;
        }
    }
    bytes.truncate(if rng.chance(0.2) { rng.below(bytes.len().max(1)) } else { bytes.len() });
    bytes
}
