//! Small files that ask for much memory: the bombs of the fault list, through the real program, its memory measured.
#![cfg(test)] // so that clippy.toml knows the helpers for tests too

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use flate2::Compression;
use flate2::write::GzEncoder;
use wait4::Wait4 as _;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const MB: u64 = 1 << 20;

/// What became of one run of the program.
struct Ran {
    /// `None` when a signal ended it.
    code: Option<i32>,
    /// Largest resident memory, in bytes.
    peak: u64,
    /// Standard output and standard error.
    told: String,
    said: String,
}

fn cuemark(memory: Option<&str>, arguments: &[&str]) -> Ran {
    let program = std::env::var("CUEMARK_BOMBED").unwrap_or_else(|_| env!("CARGO_BIN_EXE_cuemark").to_owned());
    let (told, errors) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdout(told.reopen().unwrap())
        .stderr(errors.reopen().unwrap())
        .env_remove("CUEMARK_MEMORY");
    if let Some(memory) = memory {
        command.env("CUEMARK_MEMORY", memory);
    }
    let ended = command.spawn().unwrap().wait4().unwrap();
    let text =
        |file: &tempfile::NamedTempFile| String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned();
    Ran { code: ended.status.code(), peak: ended.rusage.maxrss, told: text(&told), said: text(&errors) }
}

/// How a bomb has to end under `CUEMARK_MEMORY=512M`.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// With the error that names the budget.
    Budget,
    /// With that error, or read.
    BudgetOrRead,
}

/// Runs `arguments` under 512 MB, where it must stay below 1 GB, and by default, where it must stay below 3 GB.
fn holds(name: &str, file: &Utf8Path, end: End, arguments: &[&str]) {
    let size = if file.is_dir() { folder_size(file) } else { file.metadata().unwrap().len() };
    for (memory, limit) in [(Some("512M"), 1024 * MB), (None, 3 * 1024 * MB)] {
        let ran = cuemark(memory, arguments);
        println!(
            "{name}: {size} bytes, {} budget: peak {} MB, exit {:?}: {}",
            memory.unwrap_or("default"),
            ran.peak / MB,
            ran.code,
            ran.said.lines().chain(ran.told.lines()).find(|line| line.contains("budget is")).unwrap_or("no word of it")
        );
        if std::env::var_os("CUEMARK_BOMBED").is_some() {
            continue;
        }
        assert!(matches!(ran.code, Some(0 | 1)), "{name}: {:?} {}", ran.code, ran.said);
        assert!(ran.peak < limit, "{name}: {} MB", ran.peak / MB);
        if memory.is_some() && (end == End::Budget || ran.code != Some(0)) {
            // `features info` lists what is wrong with each file in its report, where there is no advice.
            let (words, report) = if ran.said.is_empty() { (&ran.told, true) } else { (&ran.said, false) };
            assert!(words.contains("the budget is 512 MiB"), "{name}: {words}");
            assert!(words.contains(file.file_stem().unwrap()), "{name} does not name the file: {words}");
            assert!(report || words.contains("CUEMARK_MEMORY"), "{name} has no advice: {words}");
        }
    }
}

fn folder_size(folder: &Utf8Path) -> u64 {
    folder.read_dir_utf8().unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// A folder that goes away with its guard.
fn scratch() -> (tempfile::TempDir, Utf8PathBuf) {
    let keep = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(keep.path().to_owned()).unwrap();
    (keep, path)
}

/// Writes `piece` again and again.
fn repeat(out: &mut impl Write, piece: &[u8], times: usize) {
    let many = piece.repeat((1 << 16) / piece.len() + 1);
    let in_many = many.len() / piece.len();
    (0..times / in_many).for_each(|_| out.write_all(&many).unwrap());
    out.write_all(&piece.repeat(times % in_many)).unwrap();
}

fn gz(path: &Utf8Path) -> GzEncoder<BufWriter<File>> {
    GzEncoder::new(BufWriter::new(File::create(path).unwrap()), Compression::new(6))
}

/// An archive of one deflated entry, in a folder of its own.
fn zipped(folder: &Utf8Path, file: &str, entry: &str, write: impl FnOnce(&mut ZipWriter<BufWriter<File>>)) {
    std::fs::create_dir_all(folder).unwrap();
    let mut archive = ZipWriter::new(BufWriter::new(File::create(folder.join(file)).unwrap()));
    archive.start_file(entry, SimpleFileOptions::default()).unwrap();
    write(&mut archive);
    archive.finish().unwrap().flush().unwrap();
}

/// `X`, a length and as many letters.
fn pickled_text(length: u32) -> Vec<u8> {
    [&b"X"[..], &length.to_le_bytes(), &vec![b'k'; length as usize]].concat()
}

fn extract(folder: &Utf8Path, name: &str, weights: &Utf8Path) {
    let (film, out) = (folder.join("film.mp4"), folder.join("store"));
    std::fs::write(&film, b"no film").unwrap();
    let arguments = [
        "features",
        "extract",
        film.as_str(),
        "--encoder",
        "i3d",
        "--out",
        out.as_str(),
        "--weights",
        weights.as_str(),
    ];
    holds(name, weights, End::Budget, &arguments);
}

#[test]
fn one_text_named_four_thousand_times() {
    let (_keep, folder) = scratch();
    let store = folder.join("p2");
    zipped(&store, "p2.pt", "p/data.pkl", |out| {
        out.write_all(&[b"\x80\x02", pickled_text(1 << 20).as_slice(), b"q\0"].concat()).unwrap();
        repeat(out, b"h\0h\0\x93", 4_000);
        out.write_all(b".").unwrap();
    });
    holds("1. text in the memo", &store, End::Budget, &["features", "info", store.as_str()]);
}

#[test]
fn a_quarter_of_a_gigabyte_of_nothing_deflated() {
    let (_keep, folder) = scratch();
    let store = folder.join("p1");
    zipped(&store, "p1.pt", "p/data.pkl", |out| {
        out.write_all(b"\x80\x02").unwrap();
        repeat(out, b"N", 256 << 20);
        out.write_all(b".").unwrap();
    });
    holds("2. deflated N", &store, End::Budget, &["features", "info", store.as_str()]);
}

#[test]
fn six_thousand_branches_below_one_long_key() {
    let (_keep, folder) = scratch();
    let tree = folder.join("tree.pkl");
    let mut pickle = [b"\x80\x02}", pickled_text(1 << 20).as_slice(), b"}("].concat();
    for branch in 0..6_000u16 {
        pickle.extend([b"M".as_slice(), &branch.to_le_bytes(), b"N"].concat());
    }
    pickle.extend(b"us.");
    std::fs::write(&tree, pickle).unwrap();
    extract(&folder, "3. tree", &tree);
}

#[test]
fn sixty_megabytes_of_nothing() {
    let (_keep, folder) = scratch();
    let path = folder.join("nothing.pkl");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    file.write_all(b"\x80\x02").unwrap();
    repeat(&mut file, b"N", 60_000_000);
    file.write_all(b".").unwrap();
    drop(file);
    extract(&folder, "4. pickled N", &path);
}

#[test]
fn a_truth_file_whose_unknown_field_is_a_long_list() {
    let (_keep, folder) = scratch();
    let path = folder.join("truth.jsonl.gz");
    let mut out = gz(&path);
    for line in 0..8 {
        write!(
            out,
            "{{\"qid\":\"{line}\",\"query\":\"a\",\"video\":\"v\",\"duration\":9,\"spans\":[[0,1]],\"extra\":[0"
        )
        .unwrap();
        repeat(&mut out, b",0", 30_000_000);
        out.write_all(b"]}\n").unwrap();
    }
    out.finish().unwrap();
    let predictions = folder.join("empty.jsonl");
    std::fs::write(&predictions, "{\"qid\":\"0\",\"predictions\":[[0,1]]}\n").unwrap();
    let arguments = ["eval", "--truth", path.as_str(), "--pred", predictions.as_str()];
    holds("5. truth with extra", &path, End::Budget, &arguments);
}

#[test]
fn one_document_of_many_short_values() {
    let (_keep, folder) = scratch();
    let predictions = folder.join("empty.jsonl");
    std::fs::write(&predictions, "{\"qid\":\"0\",\"predictions\":[[0,1]]}\n").unwrap();
    type Content = fn(&mut GzEncoder<BufWriter<File>>);
    let contents: [(&str, Content); 2] = [
        ("6. pairs of one video", |out| {
            out.write_all(b"{\"v\":{\"duration\":9,\"timestamps\":[[0,1]").unwrap();
            repeat(out, b",[0,1]", 45_000_000);
            out.write_all(b"],\"sentences\":[\"\"").unwrap();
            repeat(out, b",\"\"", 45_000_000);
            out.write_all(b"]}}").unwrap();
        }),
        ("6. videos without anything", |out| {
            out.write_all(b"{\"v\":0").unwrap();
            repeat(out, b",\"\":0", 90_000_000);
            out.write_all(b"}").unwrap();
        }),
    ];
    for (name, write) in contents {
        let path = folder.join("document.json.gz");
        let mut out = gz(&path);
        write(&mut out);
        out.finish().unwrap();
        let truth = ["--truth", path.as_str(), "--truth-format", "activitynet-captions"];
        let arguments = [&["eval"][..], &truth, &["--pred", predictions.as_str()]].concat();
        holds(name, &path, End::Budget, &arguments);
    }
}

#[test]
fn twenty_long_lines_of_predictions() {
    let (_keep, folder) = scratch();
    let truth = folder.join("truth.jsonl");
    std::fs::write(&truth, "{\"qid\":\"0\",\"query\":\"a\",\"video\":\"v\",\"duration\":9,\"spans\":[[0,1]]}\n")
        .unwrap();
    let path = folder.join("pred.jsonl.gz");
    let mut out = gz(&path);
    for line in 0..20 {
        write!(out, "{{\"qid\":\"{line}\",\"video\":\"v\",\"predictions\":[[0,1]").unwrap();
        repeat(&mut out, b",[0,1]", 10_000_000);
        out.write_all(b"]}\n").unwrap();
    }
    out.finish().unwrap();
    let arguments = ["eval", "--truth", truth.as_str(), "--pred", path.as_str()];
    holds("7. long lines of predictions", &path, End::Budget, &arguments);
}

#[test]
fn a_gigabyte_of_half_precision_deflated_in_either_order() {
    for (name, fortran) in [("8. f2", "False"), ("8. f2, Fortran order", "True")] {
        let (_keep, folder) = scratch();
        let store = folder.join("half");
        zipped(&store, "half.npz", "features.npy", |out| {
            let header = format!("{{'descr': '<f2', 'fortran_order': {fortran}, 'shape': (524288, 1024), }}\n");
            out.write_all(b"\x93NUMPY\x01\0").unwrap();
            out.write_all(&u16::try_from(header.len()).unwrap().to_le_bytes()).unwrap();
            out.write_all(header.as_bytes()).unwrap();
            repeat(out, &[0; 1 << 16], 1 << 14);
        });
        holds(name, &store, End::Budget, &["features", "info", store.as_str()]);
    }
}

#[test]
fn six_million_lines_of_a_run() {
    let (_keep, folder) = scratch();
    let truth = folder.join("truth.jsonl");
    std::fs::write(&truth, "{\"qid\":\"q0\",\"query\":\"a\",\"video\":\"v\",\"duration\":9,\"spans\":[[0,1]]}\n")
        .unwrap();
    let path = folder.join("run.trec.gz");
    let mut out = gz(&path);
    for line in 0..6_000_000u32 {
        writeln!(out, "q{} Q0 v:0-{} {} 0.5 t", line / 1000, line % 97, line % 1000).unwrap();
    }
    out.finish().unwrap();
    let arguments = ["eval", "--truth", truth.as_str(), "--pred", path.as_str()];
    holds("9. TREC", &path, End::BudgetOrRead, &arguments);
}

#[test]
fn an_honest_million_of_queries_is_read_by_default() {
    let (_keep, folder) = scratch();
    let (truth, predictions) = (folder.join("truth.jsonl.gz"), folder.join("pred.jsonl.gz"));
    let (mut asked, mut answered) = (gz(&truth), gz(&predictions));
    for query in 0..1_000_000u32 {
        let (video, start) = (query / 4, query % 50);
        writeln!(
            asked,
            "{{\"qid\":\"{query}\",\"query\":\"a person number {query} opens the door and walks away\",\
             \"video\":\"video-{video}\",\"duration\":90.5,\"spans\":[[{start},{}.5]]}}",
            start + 7
        )
        .unwrap();
        let one = |rank: u32| {
            format!(
                "{{\"video\":\"video-{video}\",\"span\":[{}.25,{}.5],\"score\":0.{}}}",
                start + rank,
                start + 9,
                9 - rank
            )
        };
        writeln!(
            answered,
            "{{\"qid\":\"{query}\",\"predictions\":[{}]}}",
            (0..5).map(one).collect::<Vec<_>>().join(",")
        )
        .unwrap();
    }
    asked.finish().unwrap();
    answered.finish().unwrap();
    let ran = cuemark(None, &["eval", "--truth", truth.as_str(), "--pred", predictions.as_str()]);
    println!("honest: peak {} MB, exit {:?} {}", ran.peak / MB, ran.code, ran.said);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
}

#[test]
fn a_budget_that_is_none_is_refused_before_anything_is_read() {
    let ran = cuemark(Some("lots"), &["weights", "list"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.said.contains("`CUEMARK_MEMORY`: `lots` is no number of bytes"), "{}", ran.said);
}
