//! Where test files lie, and short ways to read and write them.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Predictions;
use cuemark_formats::{
    Overwrite, PredictionFormat, PredictionOptions, Result, Source, VideoIndex, WholeFile, read_predictions,
    write_predictions,
};

pub(crate) fn fixture_path(name: &str) -> Utf8PathBuf {
    cuemark_testkit::fixture("predictions").join(name)
}

pub(crate) fn fixture(name: &str) -> Source {
    Source::new(fixture_path(name))
}

/// A file among the shared ones; `None`, and a line that says so, when they are not there.
pub(crate) fn shared(name: &str) -> Option<Source> {
    cuemark_testkit::shared(name).map(Source::new)
}

/// A folder that goes away with its guard.
pub(crate) fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

/// Reads `bytes` as a file of the given layout, or of the one they look like.
pub(crate) fn read_bytes(bytes: &[u8], format: Option<PredictionFormat>) -> Result<(PredictionFormat, Predictions)> {
    let (_guard, folder) = folder();
    let path = folder.join("preds");
    std::fs::write(&path, bytes).unwrap();
    read_predictions(&Source::new(path), &options(format))
}

/// Options with the video numbers of the fixtures.
pub(crate) fn options(format: Option<PredictionFormat>) -> PredictionOptions {
    let videos = Some(VideoIndex::read(&fixture("tvr-ranking-videos.json")).unwrap());
    PredictionOptions { format, videos, ..PredictionOptions::default() }
}

/// What is read after `predictions` have been written.
pub(crate) fn round_trip(predictions: &Predictions, format: PredictionFormat) -> Result<Predictions> {
    let (_guard, folder) = folder();
    let path = folder.join("preds");
    let mut out = WholeFile::create(&path, Overwrite::Never)?;
    write_predictions(predictions, format, &mut out)?;
    out.finish()?;
    let options = PredictionOptions {
        format: Some(format),
        videos: index_in(&folder, predictions),
        ..PredictionOptions::default()
    };
    Ok(read_predictions(&Source::new(path), &options)?.1)
}

/// The video numbers that `predictions` remember.
fn index_in(folder: &Utf8Path, predictions: &Predictions) -> Option<VideoIndex> {
    let path = folder.join("videos.json");
    std::fs::write(&path, predictions.extra.get("video2idx")?.to_string()).unwrap();
    Some(VideoIndex::read(&Source::new(path)).unwrap())
}

/// Every prediction fixture with its layout.
pub(crate) const PREDICTIONS: [(&str, PredictionFormat); 9] = [
    ("cuemark.jsonl", PredictionFormat::Cuemark),
    ("cuemark-tasks.jsonl", PredictionFormat::Cuemark),
    ("qvhighlights.jsonl", PredictionFormat::QvHighlights),
    ("tvr.json", PredictionFormat::Tvr),
    ("tvr-ranking.json", PredictionFormat::TvrRanking),
    ("activitynet.json", PredictionFormat::ActivityNet),
    ("run.trec", PredictionFormat::Trec),
    ("predictions.csv", PredictionFormat::Csv),
    ("answers.jsonl", PredictionFormat::Answers),
];
