//! How fast prediction files are read, at the sizes of real ones.
#![allow(clippy::unwrap_used)]

use camino::Utf8PathBuf;
use cuemark_formats::{PredictionOptions, Source, read_predictions};
use divan::counter::BytesCount;

mod synthetic;

fn main() {
    divan::main();
}

fn read(bencher: divan::Bencher<'_, '_>, text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("predictions")).unwrap();
    std::fs::write(&path, text).unwrap();
    let source = Source::new(path);
    let bencher = bencher.counter(BytesCount::of_str(text));
    bencher.bench(|| read_predictions(&source, &PredictionOptions::default()).unwrap());
}

#[divan::bench(sample_count = 10)]
fn tvr_10_895_queries(bencher: divan::Bencher<'_, '_>) {
    read(bencher, &synthetic::tvr(10_895));
}

#[divan::bench(sample_count = 20)]
fn qvhighlights_1_550_queries(bencher: divan::Bencher<'_, '_>) {
    read(bencher, &synthetic::qvhighlights(1_550));
}

#[divan::bench(args = [10_000, 100_000], sample_count = 10)]
fn cuemark(bencher: divan::Bencher<'_, '_>, queries: usize) {
    read(bencher, &synthetic::cuemark(queries).collect::<String>());
}
