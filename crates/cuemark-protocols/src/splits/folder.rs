//! A folder of splits with its manifest: written whole or not at all, and read back.

use std::io::Read;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, RowPolicy, Split};
use cuemark_formats::{Overwrite, ReadError, Source, WholeFile, read_truth, write_truth};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{MadeSplits, Options, SharedVideos, SplitCounts, SplitFindings, counts, shared_videos};
use crate::Result;
use crate::manifest::Manifest;

/// The splits that a folder can hold, in the order that reports list them.
pub const SPLIT_NAMES: [&str; 8] =
    ["train", "val", "test", "test-iid", "test-ood", "test-seen", "test-novel-composition", "test-novel-word"];

/// The manifest of a folder of splits.
pub type SplitManifest = Manifest<SplitSettings, SplitOutcome>;

/// What the splits were made from, and how.
#[derive(Debug, Clone, Serialize)]
pub struct SplitSettings {
    /// The dataset's name.
    pub dataset: String,
    /// The protocol's options.
    #[serde(flatten)]
    pub options: Options,
    /// The files that were read.
    pub inputs: Vec<Input>,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct SplitOutcome {
    /// What the protocol found on the way.
    #[serde(flatten)]
    pub found: SplitFindings,
    /// What each split holds.
    pub splits: Vec<SplitCounts>,
    /// Videos that two splits share.
    pub shared_videos: Vec<SharedVideos>,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Input {
    /// Its name, as it was given.
    pub path: Utf8PathBuf,
    /// Its size on disk.
    pub bytes: u64,
    /// SHA-256 of its bytes as they lie on disk, in lower-case hexadecimal.
    pub sha256: String,
}

/// Sizes and checksums of `paths`, each relative to `root` in what it says.
///
/// # Errors
/// When a file cannot be read.
pub fn hash_inputs(root: &Utf8Path, paths: &[Utf8PathBuf]) -> Result<Vec<Input>> {
    let hash = |path: &Utf8PathBuf| {
        let full = root.join(path);
        let io = |source| ReadError::Io { path: full.clone(), source };
        let mut file = std::fs::File::open(&full).map_err(io)?;
        let (mut hasher, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
        loop {
            let read = file.read(&mut buffer).map_err(io)?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            bytes += read as u64;
        }
        let sha256 = cuemark_core::digest::hex(&hasher.finalize());
        Ok(Input { path: path.clone(), bytes, sha256 })
    };
    paths.iter().map(hash).collect()
}

/// Writes `made` as the folder `out`: one `NAME.jsonl` per split and `manifest.json`. The folder appears whole or not at all.
///
/// # Errors
/// When something stands there and may not be replaced, or the folder cannot be written.
pub fn write_folder(
    made: &MadeSplits,
    dataset: &str,
    inputs: Vec<Input>,
    out: &Utf8Path,
    overwrite: Overwrite,
) -> Result<SplitManifest> {
    overwrite.check(out)?;
    let settings = SplitSettings { dataset: dataset.to_owned(), options: made.options.clone(), inputs };
    let outcome = SplitOutcome {
        found: made.found.clone(),
        splits: counts(&made.splits),
        shared_videos: shared_videos(&made.splits),
    };
    let manifest = Manifest::new(made.protocol, made.version, settings, outcome).with_seed(made.seed);

    let parent = out.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let refused = |source| ReadError::Write { path: out.to_owned(), source };
    std::fs::create_dir_all(parent).map_err(refused)?;
    // A folder with a name of its own beside the place it will take: moving it there is one step.
    let draft = tempfile::Builder::new().prefix(".splits-").tempdir_in(parent).map_err(refused)?;
    let inside = Utf8Path::from_path(draft.path()).map_or_else(|| parent.to_owned(), |path| path.join("new"));
    for split in &made.splits {
        let mut file = WholeFile::create(inside.join(format!("{}.jsonl", split.name)), Overwrite::Never)?;
        write_truth(&split.queries, &mut file)?;
        file.finish()?;
    }
    let mut file = WholeFile::create(inside.join("manifest.json"), Overwrite::Never)?;
    file.put_json(&manifest)?;
    file.put(b"\n")?;
    file.finish()?;
    overwrite.check(out)?;
    replace(&inside, out, &draft.path().join("old")).map_err(refused)?;
    Ok(manifest)
}

/// Moves `new` to `place`; what stood there goes to `old`, and comes back when the move is refused.
fn replace(new: &Utf8Path, place: &Utf8Path, old: &std::path::Path) -> std::io::Result<()> {
    let stood = place.exists();
    if stood {
        std::fs::rename(place, old)?;
    }
    std::fs::rename(new, place).inspect_err(|_| {
        if stood {
            // Nothing more can be done when this fails too; the error that is reported is the first one.
            let _ = std::fs::rename(old, place);
        }
    })
}

/// Reads the splits of a folder that [`write_folder`] made, or of any folder with files of those names. `progress` counts
/// the files' bytes.
///
/// # Errors
/// When a file is no truth file of ours, none is there, or the reading was stopped.
pub fn read_folder(folder: &Utf8Path, progress: &Progress) -> Result<Vec<Split>> {
    let sources = SPLIT_NAMES.iter().filter_map(|name| Source::find(folder, &format!("{name}.jsonl")));
    let sources: Vec<Source> = sources.map(|source| source.watched(progress)).collect();
    progress.announce(sources.iter().filter_map(Source::size).sum::<u64>() as usize);
    let splits = sources.iter().map(|source| read_truth(source, RowPolicy::Keep));
    let splits = splits.collect::<Result<Vec<Split>, ReadError>>()?;
    if splits.is_empty() {
        let names: Vec<String> = SPLIT_NAMES.iter().map(|name| format!("{name}.jsonl")).collect();
        let error = ReadError::file(folder, "holds no splits");
        return Err(error.with_hint(format!("looked for {}", names.join(", "))).into());
    }
    Ok(splits)
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Advise as _, Dialect};

    use super::*;
    use crate::splits::{CdOptions, cd};
    use crate::testing::habits;

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("made")).unwrap();
        (folder, path)
    }

    #[test]
    fn a_folder_reads_back_as_it_was_written() {
        let (guard, out) = folder();
        let made = cd(&habits(60), &CdOptions::default(), &Progress::new()).unwrap();
        write_folder(&made, "habits", Vec::new(), &out, Overwrite::Never).unwrap();
        let read = read_folder(&out, &Progress::new()).unwrap();
        assert_eq!(counts(&read), counts(&made.splits));
        assert_eq!(read[0].queries, made.splits[0].queries);
        let manifest: serde_json::Value =
            serde_json::from_slice(&std::fs::read(out.join("manifest.json")).unwrap()).unwrap();
        assert_eq!(manifest["protocol"], "cd");
        assert_eq!(manifest["settings"]["ood-share"], 0.2);
        assert_eq!(manifest["outcome"]["splits"][3]["name"], "test-ood");
        assert_eq!(std::fs::read_dir(guard.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn an_existing_folder_is_replaced_only_by_force() {
        let (guard, out) = folder();
        let made = cd(&habits(60), &CdOptions::default(), &Progress::new()).unwrap();
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("notes.txt"), "mine").unwrap();
        let refused = write_folder(&made, "habits", Vec::new(), &out, Overwrite::Never).unwrap_err();
        assert!(refused.advice_in(Dialect::Terminal).unwrap().contains("--force"));
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1);
        write_folder(&made, "habits", Vec::new(), &out, Overwrite::Force).unwrap();
        assert!(!out.join("notes.txt").exists() && out.join("train.jsonl").exists());
        assert_eq!(std::fs::read_dir(guard.path()).unwrap().count(), 1);
    }

    #[test]
    fn checksums_are_those_of_the_bytes() {
        let (guard, _) = folder();
        let root = Utf8Path::from_path(guard.path()).unwrap();
        std::fs::write(root.join("abc.txt"), "abc").unwrap();
        let inputs = hash_inputs(root, &["abc.txt".into()]).unwrap();
        // The first example of FIPS 180-2.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((inputs[0].bytes, inputs[0].sha256.as_str()), (3, expected));
        assert!(hash_inputs(root, &["absent.txt".into()]).is_err());
    }

    #[test]
    fn a_folder_without_splits_is_refused() {
        let (guard, _) = folder();
        let error = read_folder(Utf8Path::from_path(guard.path()).unwrap(), &Progress::new()).unwrap_err();
        assert!(error.advice_in(Dialect::Terminal).unwrap().contains("test-ood.jsonl"));
    }
}
