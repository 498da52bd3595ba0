//! Videos and manifests of a toy index, for the tests of the log and for the fault harness.

use std::collections::BTreeMap;

use cuemark_core::{Rng, Span, VideoId};
use cuemark_search::{Calibration, Embedding, Manifest, Moment, VideoEntry, VideoState};

/// Numbers per embedding.
pub(crate) const WIDTH: usize = 8;

/// So many moments, the same ones for the same seed and other ones for another.
pub(crate) fn moments(seed: u64, count: u64) -> Vec<Moment> {
    let mut rng = Rng::stream(seed, "moments");
    (0..count)
        .map(|n| Moment {
            span: Span::new((seed + n) as f64, (seed + n + 1) as f64).unwrap(),
            embedding: Embedding::unit((0..WIDTH).map(|_| rng.normal() as f32).collect()).unwrap(),
        })
        .collect()
}

/// A video without a file.
pub(crate) fn entry(id: &str) -> VideoEntry {
    VideoEntry {
        id: VideoId::new(id),
        path: None,
        duration: 99.0,
        bytes: 0,
        modified: 0,
        tags: vec![],
        state: VideoState::Present,
        partial: None,
    }
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
