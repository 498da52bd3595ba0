//! What a fuzz target does with a handful of bytes: puts them into a file and has every reader of one kind read it.
//!
//! The same functions serve `cargo xtask verify fuzz` (many hours, a nightly compiler) and `tests/corpus.rs` (a bounded
//! run on any compiler). A reader may refuse the bytes; it may not panic, hang, or hold more than its limits allow.

mod http;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::RowPolicy;
use cuemark_data::subtitles::{SubtitleFormat, read_subtitles};
use cuemark_data::{
    Durations, ReadOptions, TruthFormat, read_ranked_pairs, read_ratings, read_reannotations, read_truth,
};
use cuemark_features::{OpenOptions, Pca, open};
use cuemark_formats::{Limits, PredictionFormat, PredictionOptions, Source, VideoIndex, read_predictions};

pub use http::http;

/// Limits far below the defaults, so that running into them is part of the game.
const LIMITS: Limits = Limits { document: 1 << 20, line: 1 << 14 };

/// One kind of file: reads what lies at the path in every way there is.
pub type Reader = fn(&Utf8Path);

/// Every kind by the name of its fuzz target: one line per file in `targets/`.
pub const READERS: &[(&str, Reader)] = &[
    ("containers", containers),
    ("features", features),
    ("http", http),
    ("predictions", predictions),
    ("side_files", side_files),
    ("subtitles", subtitles),
    ("truth", truth),
];

/// Puts `bytes` into a file and has `reader` read it.
///
/// A file that cannot be written says nothing about the reader, so such a run is left out.
pub fn feed(reader: Reader, bytes: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let Ok(path) = Utf8PathBuf::from_path_buf(folder.path().join("input")) else { return };
    if std::fs::write(&path, bytes).is_ok() {
        reader(&path);
    }
}

/// Truth files in every layout, and in the one they look like under every policy for bad rows.
pub fn truth(path: &Utf8Path) {
    let source = source(path);
    for format in TruthFormat::ALL {
        let _ = read_truth(&source, Some(*format), &ReadOptions::default());
    }
    for bad_rows in [RowPolicy::Keep, RowPolicy::Clamp, RowPolicy::Skip, RowPolicy::Error] {
        let _ = read_truth(&source, None, &ReadOptions { bad_rows, ..ReadOptions::default() });
    }
}

/// Feature files in every layout that is not read by a C library, and projections.
pub fn features(path: &Utf8Path) {
    let _ = Pca::load(path);
    let options = OpenOptions { largest: LIMITS.document, ..OpenOptions::default() };
    for name in ["shard-00000.safetensors", "v.npy", "v.npz", "v.pt", "v.csv", "video2frames.txt"] {
        let folder = path.with_extension(name);
        if std::fs::create_dir(&folder).is_err() || std::fs::copy(path, folder.join(name)).is_err() {
            continue;
        }
        if name == "video2frames.txt" {
            let others: [(&str, &[u8]); 3] = [("feature.bin", &[0; 8]), ("shape.txt", b"1 2"), ("id.txt", b"a")];
            others.iter().for_each(|(name, bytes)| drop(std::fs::write(folder.join(name), bytes)));
        }
        let Ok(source) = open(&folder, &options) else { continue };
        for stream in source.streams() {
            for video in source.videos(stream) {
                if let Ok(features) = source.get(video, stream) {
                    assert!(features.data().iter().all(|number| number.is_finite()), "{name} let NaN through");
                }
            }
        }
    }
}

/// Prediction files in every layout, and in the one they look like.
pub fn predictions(path: &Utf8Path) {
    let source = source(path);
    for format in PredictionFormat::ALL.iter().copied().map(Some).chain([None]) {
        let _ = read_predictions(&source, &PredictionOptions { format, ..PredictionOptions::default() });
    }
}

/// Subtitles in every layout, and in the one they look like.
pub fn subtitles(path: &Utf8Path) {
    let source = source(path);
    let formats = [SubtitleFormat::TvrJsonl, SubtitleFormat::Srt, SubtitleFormat::WebVtt];
    for format in formats.map(Some).into_iter().chain([None]) {
        let _ = read_subtitles(&source, format, RowPolicy::Keep);
    }
}

/// What lies beside truth: durations, video numbers, ratings, human re-annotations.
pub fn side_files(path: &Utf8Path) {
    let source = source(path);
    let _ = Durations::read(&source);
    let _ = VideoIndex::read(&source);
    let _ = read_ratings(&source);
    let _ = read_ranked_pairs(&source);
    let _ = read_reannotations(&source);
}

/// Compressed files: whatever comes out of them stays within the limits.
pub fn containers(path: &Utf8Path) {
    for ending in ["gz", "zst"] {
        let compressed = path.with_extension(ending);
        if std::fs::copy(path, &compressed).is_err() {
            continue;
        }
        let source = source(&compressed);
        if let Ok(text) = source.text() {
            assert!(text.len() as u64 <= LIMITS.document, "{} bytes passed the limit", text.len());
        }
        let mut lines = 0;
        let _ = source.for_each_line(|number, line| {
            assert!(line.len() as u64 <= LIMITS.line, "line {number} passed the limit");
            lines += 1;
            // A bomb that is all short lines has no end worth waiting for.
            if lines < 10_000 { Ok(()) } else { Err(source.fault("enough")) }
        });
    }
}

fn source(path: &Utf8Path) -> Source {
    Source::new(path).with_limits(LIMITS)
}
