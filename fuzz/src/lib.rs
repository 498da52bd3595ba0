//! What a fuzz target does with a handful of bytes: puts them into a file and has every reader of one kind read it.
//!
//! The same functions serve `cargo xtask verify fuzz --minutes N` (a plain loop of mutations on any compiler), `--seconds N`
//! (cargo-fuzz, guided by coverage, a nightly compiler) and `tests/corpus.rs` (a bounded run among the tests). A reader may refuse
//! the bytes; it may not panic, hang, or hold more than its limits allow.

pub mod mutate;

mod http;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::RowPolicy;
use cuemark_data::subtitles::{SubtitleFormat, read_subtitles};
use cuemark_data::{
    Durations, ReadOptions, TruthFormat, read_ranked_pairs, read_ratings, read_reannotations, read_truth,
};
use cuemark_encoders::text::check_tokenizer;
use cuemark_features::{OpenOptions, Pca, open, tensor_file};
use cuemark_formats::{Budget, Limits, PredictionFormat, PredictionOptions, Source, VideoIndex, read_predictions};

pub use http::http;

/// Limits far below the defaults, so that running into them is part of the game.
const LIMITS: Limits = Limits { document: 1 << 20, line: 1 << 14 };

/// A memory budget far below the default, for the same reason.
const BUDGET: Budget = Budget::new(8 << 20);

/// One kind of file: reads what lies at the path in every way there is.
pub type Reader = fn(&Utf8Path);

/// Every kind by the name of its fuzz target: one line per file in `targets/`.
pub const READERS: &[(&str, Reader)] = &[
    ("checkpoints", checkpoints),
    ("containers", containers),
    ("features", features),
    ("hdf5", hdf5),
    ("http", http),
    ("manifest", manifest),
    ("pickles", pickles),
    ("predictions", predictions),
    ("side_files", side_files),
    ("subtitles", subtitles),
    ("tokenizer", tokenizer),
    ("truth", truth),
];

/// Puts `bytes` into a file and has `reader` read it.
///
/// A file that cannot be written says nothing about the reader, so such a run is left out.
pub fn feed(reader: Reader, bytes: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let Ok(folder) = Utf8PathBuf::from_path_buf(folder.path().to_owned()) else { return };
    feed_in(&folder, reader, bytes);
}

/// As [`feed`], in a folder of the caller's, which may be used again: what lay there is overwritten.
pub fn feed_in(folder: &Utf8Path, reader: Reader, bytes: &[u8]) {
    let path = folder.join("input");
    if std::fs::write(&path, bytes).is_ok() {
        reader(&path);
    }
}

/// Checkpoints of training runs. None that is changed may be taken for whole; old ones without a checksum may open.
pub fn checkpoints(path: &Utf8Path) {
    let _ = cuemark_train::check_checkpoint(path);
}

/// HDF5 files, where this was built with the library that reads them.
pub fn hdf5(path: &Utf8Path) {
    let folder = path.with_extension("h5-files");
    let file = folder.join("v.h5");
    let there = folder.is_dir() || std::fs::create_dir(&folder).is_ok();
    if !there || std::fs::copy(path, &file).is_err() {
        return;
    }
    read_all(&folder);
    read_all(&file);
}

/// What a search index says about itself.
pub fn manifest(path: &Utf8Path) {
    let folder = path.with_extension("index");
    let there = folder.is_dir() || std::fs::create_dir(&folder).is_ok();
    if there && std::fs::copy(path, folder.join("index.json")).is_ok() {
        let _ = cuemark_search::Manifest::read(&folder);
    }
}

/// Weight files, pickles above all, within a memory budget; each also as the `data.pkl` of a PyTorch archive.
pub fn pickles(path: &Utf8Path) {
    let Ok(bytes) = std::fs::read(path) else { return };
    for bytes in [archived(&bytes), bytes] {
        if let Ok(tensors) = tensor_file::parse_within(&bytes, BUDGET) {
            let kept: usize = tensors.iter().map(|(name, tensor)| name.len() + tensor.values.len() * 4).sum();
            assert!(kept as u64 <= BUDGET.bytes(), "{kept} bytes passed the budget");
        }
    }
}

/// A zip archive whose one entry, stored as it is, is called as PyTorch calls its pickle.
fn archived(pickle: &[u8]) -> Vec<u8> {
    const NAME: &[u8] = b"a/data.pkl";
    let sum = crc32fast::hash(pickle).to_le_bytes();
    let length = (pickle.len() as u32).to_le_bytes();
    let about = [&[0u8; 8][..], &sum, &length, &length, &[NAME.len() as u8, 0, 0, 0]].concat();
    let local = [b"PK\x03\x04\x14\0", about.as_slice(), NAME, pickle].concat();
    let central = [b"PK\x01\x02\x14\0\x14\0", about.as_slice(), &[0; 14], NAME].concat();
    let (start, size) = ((local.len() as u32).to_le_bytes(), (central.len() as u32).to_le_bytes());
    let end = [&b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..], &size, &start, &[0; 2]].concat();
    [local, central, end].concat()
}

/// Tokenizers of text encoders.
pub fn tokenizer(path: &Utf8Path) {
    if let Ok(text) = std::fs::read_to_string(path) {
        let _ = check_tokenizer(&text);
    }
}

/// Opens features of any layout and reads everything that is there.
fn read_all(path: &Utf8Path) {
    let options = OpenOptions { largest: LIMITS.document, budget: BUDGET, ..OpenOptions::default() };
    let Ok(source) = open(path, &options) else { return };
    for stream in source.streams() {
        for video in source.videos(stream) {
            if let Ok(features) = source.get(video, stream) {
                assert!(features.data().iter().all(|number| number.is_finite()), "{path} let NaN through");
            }
        }
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
    for name in ["shard-00000.safetensors", "v.npy", "v.npz", "v.pt", "v.csv", "video2frames.txt"] {
        let folder = path.with_extension(name);
        let there = folder.is_dir() || std::fs::create_dir(&folder).is_ok();
        if !there || std::fs::copy(path, folder.join(name)).is_err() {
            continue;
        }
        if name == "video2frames.txt" {
            let others: [(&str, &[u8]); 3] = [("feature.bin", &[0; 8]), ("shape.txt", b"1 2"), ("id.txt", b"a")];
            others.iter().for_each(|(name, bytes)| drop(std::fs::write(folder.join(name), bytes)));
        }
        read_all(&folder);
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
    Source::new(path).with_limits(LIMITS).with_budget(BUDGET)
}
