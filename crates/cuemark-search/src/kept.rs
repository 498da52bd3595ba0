//! What an index keeps of its encoder: files below `encoder/`, each with its checksum (SHA-256) in the manifest.
//!
//! They are written before the manifest, by whoever makes the index, and never changed. With them an index made with a trained
//! run is searched from any working folder, and after the run and its data are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use cuemark_core::digest::hex;
use sha2::{Digest as _, Sha256};

use crate::engine::disk::{Disk, DiskFile, read_small, write_synced};
use crate::engine::limits;
use crate::{Fault, Result, SearchError};

/// The folder's name in that of an index.
pub(crate) const FOLDER: &str = "encoder";

/// Bytes that are summed up at a time.
const PIECE: usize = 1 << 20;

/// A file that an encoder is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    /// Its path below the encoder's folder, with `/` between the parts.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Checksums by name: what a manifest says about the files.
pub(crate) type Sums = BTreeMap<String, String>;

/// Where a file lies; `None` for a name that leads elsewhere.
fn place(index: &Utf8Path, name: &str) -> Option<Utf8PathBuf> {
    let is_plain = |part: Utf8Component<'_>| matches!(part, Utf8Component::Normal(_));
    let name = Utf8Path::new(name);
    (name.components().count() > 0 && name.components().all(is_plain)).then(|| index.join(FOLDER).join(name))
}

/// Puts the files into the folder of an index, whole and safe on disk; their checksums.
pub(crate) fn write(disk: &dyn Disk, index: &Utf8Path, files: &[KeptFile]) -> Result<Sums> {
    let (mut sums, mut folders) = (Sums::new(), BTreeSet::new());
    for KeptFile { name, bytes } in files {
        let path = place(index, name).ok_or_else(|| SearchError::io("write", Utf8Path::new(name))(no_place()))?;
        let fault = |source| SearchError::Io { what: "write", path: path.clone(), source };
        let folder = path.parent().ok_or_else(|| fault(no_place()))?;
        disk.make_folder(folder).map_err(fault)?;
        write_synced(disk, &path, bytes).map_err(fault)?;
        folders.extend(folder.ancestors().take_while(|above| above.starts_with(index)).map(Utf8Path::to_owned));
        sums.insert(name.clone(), hex(&Sha256::digest(bytes)));
    }
    // Nobody looks for a file before the manifest names it: one wait for each folder, not one for each file.
    for folder in folders {
        disk.sync_folder(&folder).map_err(SearchError::io("write", &folder))?;
    }
    Ok(sums)
}

/// Takes the files of an index away that is being replaced, as far as that works.
pub(crate) fn remove(disk: &dyn Disk, index: &Utf8Path, sums: &Sums) {
    for path in sums.keys().filter_map(|name| place(index, name)) {
        let _ = disk.remove(&path);
    }
}

/// The files as they were written.
///
/// # Errors
/// When one of them cannot be read or is not what it was.
pub(crate) fn read(disk: &dyn Disk, index: &Utf8Path, sums: &Sums) -> Result<Vec<KeptFile>> {
    check(disk, index, sums)?;
    let file = |name: &String| {
        let path = place(index, name).unwrap_or_default();
        let bytes = read_small(disk, &path, limits::KEPT_BYTES).map_err(SearchError::io("read", &path))?;
        Ok(KeptFile { name: name.clone(), bytes })
    };
    sums.keys().map(file).collect()
}

/// Whether the files are what they were when they were written.
///
/// # Errors
/// Naming the first that is not, or that cannot be read.
pub(crate) fn check(disk: &dyn Disk, index: &Utf8Path, sums: &Sums) -> Result<()> {
    for (name, sum) in sums {
        let damaged =
            |path: Utf8PathBuf, problem: &str| SearchError::Damaged { path, offset: 0, problem: problem.to_owned() };
        let Some(path) = place(index, name) else {
            return Err(damaged(index.join(FOLDER).join(name), "the manifest names a file outside of the index"));
        };
        let found = disk.open(&path).and_then(|file| sum_of(&*file));
        if found.map_err(SearchError::io("read", &path))? != *sum {
            return Err(damaged(path, "its checksum is another than when the index was made"));
        }
    }
    Ok(())
}

/// What is wrong with the files, for a look at everything.
pub(crate) fn faults(disk: &dyn Disk, index: &Utf8Path, sums: &Sums) -> Vec<Fault> {
    let of = |(name, sum): (&String, &String)| {
        let only = Sums::from([(name.clone(), sum.clone())]);
        let problem = check(disk, index, &only).err()?;
        Some(Fault {
            place: index.join(FOLDER).join(name).into_string(),
            problem: cuemark_core::whole_message(&problem),
        })
    };
    sums.iter().filter_map(of).collect()
}

fn sum_of(file: &dyn DiskFile) -> io::Result<String> {
    let (mut hash, mut at, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
    loop {
        match file.read_at(at, &mut piece) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(count) => {
                hash.update(piece.get(..count).unwrap_or_default());
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn no_place() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "no name of a file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::disk::RealDisk;

    fn index() -> (tempfile::TempDir, Utf8PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        (guard, path)
    }

    fn file(name: &str, bytes: &[u8]) -> KeptFile {
        KeptFile { name: name.to_owned(), bytes: bytes.to_vec() }
    }

    #[test]
    fn files_are_read_as_they_were_written_and_a_changed_one_is_named() {
        let (_guard, index) = index();
        let files = [file("deep/weights", &[7; 3 << 20]), file("words", b"a ball")];
        let sums = write(&RealDisk, &index, &files).unwrap();
        assert_eq!(read(&RealDisk, &index, &sums).unwrap(), files);
        assert!(faults(&RealDisk, &index, &sums).is_empty());
        std::fs::write(index.join("encoder/words"), "a bell").unwrap();
        let said = check(&RealDisk, &index, &sums).unwrap_err().to_string();
        assert!(said.contains("encoder/words") && said.contains("checksum"), "{said}");
        std::fs::remove_file(index.join("encoder/deep/weights")).unwrap();
        assert_eq!(faults(&RealDisk, &index, &sums).len(), 2);
    }

    #[test]
    fn a_name_that_leads_out_of_the_index_is_neither_written_nor_read() {
        let (_guard, index) = index();
        for name in ["../outside", "/etc/passwd", "", "a/../../b"] {
            assert!(write(&RealDisk, &index, &[file(name, b"x")]).is_err(), "{name}");
            let sums = Sums::from([(name.to_owned(), hex(&[0; 32]))]);
            assert!(matches!(check(&RealDisk, &index, &sums), Err(SearchError::Damaged { .. })), "{name}");
        }
    }
}
