//! What a fuzz target does with a handful of bytes: puts them into a file and has every reader of one kind read it.
//!
//! The same functions serve `cargo xtask verify fuzz --minutes N` (a plain loop of mutations on any compiler), `--seconds N`
//! (cargo-fuzz, guided by coverage, a nightly compiler) and `tests/corpus.rs` (a bounded run among the tests). A reader may refuse
//! the bytes; it may not panic, hang, or hold more than its limits allow.

pub mod coverage;
pub mod mutate;
pub mod structure;

mod http;
mod index;
mod memory;
mod text;
mod turn;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::RowPolicy;
use cuemark_data::subtitles::{SubtitleFormat, read_subtitles};
use cuemark_data::{
    Durations, ReadOptions, TruthFormat, read_ranked_pairs, read_ratings, read_reannotations, read_truth,
};
use cuemark_encoders::text::check_tokenizer;
use cuemark_features::{OpenOptions, Pca, open, tensor_file};
use cuemark_formats::{
    AnswerParser, Budget, Limits, PredictionFormat, PredictionOptions, Source, VideoIndex, read_predictions,
};

pub use http::http;
pub use index::{example, graph, log};
pub use text::text;
pub use turn::Turn;

/// Limits far below the defaults, so that running into them is part of the game.
const LIMITS: Limits = Limits { document: 1 << 20, line: 1 << 14 };

/// Lower still for what is decompressed, which is all that takes time there.
const PACKED: Limits = Limits { document: 1 << 15, line: 1 << 12 };

/// A memory budget far below the default, for the same reason.
const BUDGET: Budget = Budget::new(8 << 20);

/// One kind of file: reads what lies at the path in the ways whose turn it is.
pub type Reader = fn(&Utf8Path, Turn);

/// Every kind by the name of its fuzz target: one line per file in `targets/`.
pub const READERS: &[(&str, Reader)] = &[
    ("answers", answers),
    ("checkpoints", checkpoints),
    ("containers", containers),
    ("features", features),
    ("graph", graph),
    ("hdf5", hdf5),
    ("http", http),
    ("log", log),
    ("manifest", manifest),
    ("pickles", pickles),
    ("predictions", predictions),
    ("side_files", side_files),
    ("subtitles", subtitles),
    ("text", text),
    ("tokenizer", tokenizer),
    ("truth", truth),
];

/// Puts `bytes` into a file and has `reader` read it in every way.
///
/// A file that cannot be written says nothing about the reader, so such a run is left out.
pub fn feed(reader: Reader, bytes: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let Ok(folder) = Utf8PathBuf::from_path_buf(folder.path().to_owned()) else { return };
    feed_in(&folder, reader, Turn::Every, bytes);
}

/// As [`feed`], in a folder of the caller's, which may be used again: what lay there is overwritten.
pub fn feed_in(folder: &Utf8Path, reader: Reader, turn: Turn, bytes: &[u8]) {
    let path = folder.join("input");
    if std::fs::write(&path, bytes).is_ok() {
        reader(&path, turn);
    }
}

/// Free-text answers: the file is one text. A span's plain numbers, in some unit, are its bounds; nothing is made up.
pub fn answers(path: &Utf8Path, turn: Turn) {
    let Ok(bytes) = std::fs::read(path) else { return };
    let text = String::from_utf8_lossy(&bytes);
    let (duration, rate) = (97.0, 25.0);
    for name in turn.of(["auto", "percent", "frames", "fractions", "first-two"]) {
        let Ok(parser) = name.parse::<AnswerParser>() else { continue };
        let parsed = parser.with_frame_rate(Some(rate)).parse(&text, Some(duration));
        assert_eq!(parsed.spans.is_empty(), parsed.failure.is_some(), "neither spans nor a reason");
        for span in &parsed.spans {
            assert!(0.0 <= span.start && span.start <= span.end && span.end.is_finite(), "{span:?}");
            assert!(text.get(span.bytes.clone()).is_some(), "{span:?} lies outside the text");
            for number in &span.numbers {
                let literal = text.get(number.clone());
                let literal = literal.unwrap_or_else(|| panic!("{span:?} names a number outside the text"));
                assert!(span.bytes.start <= number.start && number.end <= span.bytes.end, "{span:?}");
                let (true, Ok(value)) = (literal.bytes().all(|byte| byte.is_ascii_digit()), literal.parse::<f64>())
                else {
                    continue;
                };
                let scales = [1.0, 60.0, 3600.0, 0.001, duration / 100.0, duration, 1.0 / rate];
                let near =
                    |bound: f64| scales.iter().any(|scale| (bound - value * scale).abs() <= 1e-9 * span.end.max(1.0));
                let lasting = near(span.end - span.start) || near(duration - span.start);
                assert!(near(span.start) || near(span.end) || lasting, "{value} is no bound of {span:?} in {text:?}");
            }
        }
    }
}

/// Checkpoints of training runs. None that is changed may be taken for whole; old ones without a checksum may open.
pub fn checkpoints(path: &Utf8Path, _: Turn) {
    let _ = cuemark_train::check_checkpoint(path);
}

/// HDF5 files.
pub fn hdf5(path: &Utf8Path, turn: Turn) {
    let folder = path.with_extension("h5-files");
    let file = folder.join("v.h5");
    let there = folder.is_dir() || std::fs::create_dir(&folder).is_ok();
    if !there || std::fs::copy(path, &file).is_err() {
        return;
    }
    turn.of([folder, file]).iter().for_each(|path| read_all(path));
}

/// What a search index says about itself.
pub fn manifest(path: &Utf8Path, _: Turn) {
    let folder = path.with_extension("index");
    let there = folder.is_dir() || std::fs::create_dir(&folder).is_ok();
    if there && std::fs::copy(path, folder.join("index.json")).is_ok() {
        let _ = cuemark_search::Manifest::read(&folder);
    }
}

/// Weight files, pickles above all, within a memory budget; each also as the `data.pkl` of a PyTorch archive.
pub fn pickles(path: &Utf8Path, turn: Turn) {
    let Ok(bytes) = std::fs::read(path) else { return };
    for bytes in turn.of([archived(&bytes), bytes]) {
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
pub fn tokenizer(path: &Utf8Path, _: Turn) {
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
pub fn truth(path: &Utf8Path, turn: Turn) {
    let source = source(path);
    let stated = TruthFormat::ALL.iter().map(|format| (Some(*format), RowPolicy::default()));
    let policies = [RowPolicy::Keep, RowPolicy::Clamp, RowPolicy::Skip, RowPolicy::Error];
    for (format, bad_rows) in turn.of(stated.chain(policies.map(|policy| (None, policy)))) {
        let _ = read_truth(&source, format, &ReadOptions { bad_rows, ..ReadOptions::default() });
    }
}

/// Feature files in every layout that is not read by a C library, and projections.
pub fn features(path: &Utf8Path, turn: Turn) {
    for name in turn.of(["", "shard-00000.safetensors", "v.npy", "v.npz", "v.pt", "v.csv", "video2frames.txt"]) {
        if name.is_empty() {
            let _ = Pca::load(path);
            continue;
        }
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
pub fn predictions(path: &Utf8Path, turn: Turn) {
    let source = source(path);
    for format in turn.of(PredictionFormat::ALL.iter().copied().map(Some).chain([None])) {
        let _ = read_predictions(&source, &PredictionOptions { format, ..PredictionOptions::default() });
    }
}

/// Subtitles in every layout, and in the one they look like.
pub fn subtitles(path: &Utf8Path, turn: Turn) {
    let source = source(path);
    let formats = [SubtitleFormat::TvrJsonl, SubtitleFormat::Srt, SubtitleFormat::WebVtt];
    for format in turn.of(formats.map(Some).into_iter().chain([None])) {
        let _ = read_subtitles(&source, format, RowPolicy::Keep);
    }
}

/// What lies beside truth: durations, video numbers, ratings, human re-annotations.
pub fn side_files(path: &Utf8Path, turn: Turn) {
    let source = source(path);
    let ways: [fn(&Source); 5] = [
        |source| drop(Durations::read(source)),
        |source| drop(VideoIndex::read(source)),
        |source| drop(read_ratings(source)),
        |source| drop(read_ranked_pairs(source)),
        |source| drop(read_reannotations(source)),
    ];
    turn.of(ways).iter().for_each(|way| way(&source));
}

/// Compressed files: whatever comes out of them stays within the limits.
pub fn containers(path: &Utf8Path, turn: Turn) {
    for ending in turn.of(["gz", "zst"]) {
        let compressed = path.with_extension(ending);
        if std::fs::copy(path, &compressed).is_err() {
            continue;
        }
        let source = Source::new(&compressed).with_limits(PACKED).with_budget(BUDGET);
        if let Ok(text) = source.text() {
            assert!(text.len() as u64 <= PACKED.document, "{} bytes passed the limit", text.len());
        }
        let mut lines = 0;
        let _ = source.for_each_line(|number, line| {
            assert!(line.len() as u64 <= PACKED.line, "line {number} passed the limit");
            lines += 1;
            // A bomb that is all short lines has no end worth waiting for.
            if lines < 1_000 { Ok(()) } else { Err(source.fault("enough")) }
        });
    }
}

fn source(path: &Utf8Path) -> Source {
    Source::new(path).with_limits(LIMITS).with_budget(BUDGET)
}
