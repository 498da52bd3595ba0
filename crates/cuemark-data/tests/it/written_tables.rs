//! Parquet tables, read back with the library's own row reader.

use camino::Utf8PathBuf;
use cuemark_core::{Advise as _, Dialect};
use cuemark_data::parquet::write_parquet;
use cuemark_formats::Overwrite;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::folders::fixture_dataset;

/// Every row of the table made of one split, as text.
fn rows(dataset: &str, split: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("out.parquet")).unwrap();
    write_parquet(&fixture_dataset(dataset).split(split).unwrap(), &path, Overwrite::Never).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
}

#[test]
fn a_table_has_a_row_per_query_and_moment() {
    insta::assert_snapshot!(rows("mvmr", "charades-test").join("\n"));
}

#[test]
fn queries_without_moments_and_grades_have_their_place() {
    insta::assert_snapshot!([rows("qvhighlights", "test-release"), rows("tvr-ranking", "val")].concat().join("\n"));
}

#[test]
fn nothing_is_overwritten_without_being_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("out.parquet")).unwrap();
    let dataset = fixture_dataset("tvr");
    write_parquet(&dataset.splits[0], &path, Overwrite::Never).unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(
        write_parquet(&dataset.splits[1], &path, Overwrite::Never)
            .unwrap_err()
            .advice_in(Dialect::Terminal)
            .unwrap()
            .contains("--force")
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    write_parquet(&dataset.splits[1], &path, Overwrite::Force).unwrap();
    assert_ne!(std::fs::read(&path).unwrap(), before);
}
