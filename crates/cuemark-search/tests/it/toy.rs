//! Videos and manifests of a toy index, for the tests of the log and for the fault harness.

use std::collections::BTreeMap;

use cuemark_core::{Line, Rng, Span, Track, Word};
use cuemark_search::{Calibration, Embedding, IndexedMoment, Manifest, VideoEntry};

/// Numbers per embedding.
pub(crate) const WIDTH: usize = 8;

/// So many moments, the same ones for the same seed and other ones for another.
pub(crate) fn moments(seed: u64, count: u64) -> Vec<IndexedMoment> {
    let mut rng = Rng::stream(seed, "moments");
    (0..count)
        .map(|n| IndexedMoment {
            span: Span::new((seed + n) as f64, (seed + n + 1) as f64).unwrap(),
            embedding: Embedding::unit((0..WIDTH).map(|_| rng.normal() as f32).collect()).unwrap(),
        })
        .collect()
}

/// So many lines, the same ones for the same seed: most are said, the last third is written.
#[allow(dead_code)] // not every test has words
pub(crate) fn lines(seed: u64, count: u64) -> Vec<(Track, Line)> {
    let line = |n: u64| {
        let start = (seed + 2 * n) as f64;
        let (span, text) = (Span::new(start, start + 1.5).unwrap(), format!("line {n} of version{seed}"));
        let track = if 3 * n < 2 * count { Track::Said } else { Track::Written };
        let words = if n.is_multiple_of(2) { vec![Word { span, text: "line".to_owned() }] } else { Vec::new() };
        (track, Line { span, text, words, confidence: 0.5 })
    };
    (0..count).map(line).collect()
}

/// A video without a file.
pub(crate) fn entry(id: &str) -> VideoEntry {
    VideoEntry::without_file(id, 99.0)
}

/// What an index of such videos is about.
pub(crate) fn manifest() -> Manifest {
    Manifest {
        layout: 2,
        cuemark: "test".to_owned(),
        encoder: "none".to_owned(),
        width: WIDTH,
        calibration: Calibration::default(),
        log: None,
        kept: BTreeMap::new(),
    }
}
