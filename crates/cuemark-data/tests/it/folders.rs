//! Where files for tests lie.

use camino::Utf8PathBuf;
use cuemark_core::{Progress, RowFault, Split};
use cuemark_data::{Dataset, ReadOptions, find, load};
use cuemark_formats::Source;

/// A dataset of our own making.
pub(crate) fn fixture(name: &str) -> Utf8PathBuf {
    cuemark_testkit::fixture("datasets").join(name)
}

/// Loads a dataset of our own making as it stands.
pub(crate) fn fixture_dataset(name: &str) -> Dataset {
    load(find(name).unwrap(), &fixture(name), &ReadOptions::default(), &Progress::new()).unwrap()
}

/// A file with these contents, which goes when the folder does.
pub(crate) fn temporary(name: &str, contents: &[u8]) -> (tempfile::TempDir, Source) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join(name)).unwrap();
    std::fs::write(&path, contents).unwrap();
    (folder, Source::new(path))
}

/// The faults of a split's rows.
pub(crate) fn faults(split: &Split) -> Vec<(RowFault, usize)> {
    split.rows.iter().collect()
}
