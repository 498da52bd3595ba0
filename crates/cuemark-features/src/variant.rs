//! Features altered so that a model's dependence on the video can be measured.
//!
//! A model that scores as well when the clips are shuffled or blank did not need to look. The other half, variants of the
//! query, is in `cuemark-text`.

use cuemark_core::{Rng, VideoId};
use serde::{Deserialize, Serialize};

use crate::Features;

/// What a model is shown of a video: its features, or what an ablation makes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum FeatureVariant {
    /// The features as they are. Default.
    #[default]
    #[cfg_attr(feature = "clap", value(skip))]
    Seen,
    /// Its clips in random order: what is seen stays, when it happens is lost.
    Shuffled,
    /// Nothing but how long it is: every number is 0.
    Zeroed,
}

impl FeatureVariant {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Shuffled => "shuffled",
            Self::Zeroed => "zeroed",
        }
    }

    /// The altered features of `video`. Each video has its own stream of randomness, so the result does not depend on the
    /// order in which videos are read; all streams of a video with equally many clips are shuffled alike.
    ///
    /// ```
    /// use cuemark_features::{Features, FeatureVariant};
    /// let features = Features::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    /// assert_eq!(FeatureVariant::Zeroed.of(&features, &"v".into(), 0).data(), [0.0; 4]);
    /// ```
    pub fn of(self, features: &Features, video: &VideoId, seed: u64) -> Features {
        let data = match self {
            Self::Seen => return features.clone(),
            Self::Zeroed => vec![0.0; features.data().len()],
            Self::Shuffled => {
                let mut order: Vec<usize> = (0..features.rows()).collect();
                Rng::stream(seed, video.as_str()).shuffle(&mut order);
                order.into_iter().filter_map(|clip| features.row(clip)).flatten().copied().collect()
            }
        };
        // The size is the same by construction, so the fallback is never taken.
        Features::new(features.rows(), features.width(), data).unwrap_or_else(|| features.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(rows: usize) -> Features {
        Features::new(rows, 2, (0..2 * rows).map(|n| n as f32).collect()).unwrap()
    }

    #[test]
    fn names_are_those_that_files_have() {
        for variant in [FeatureVariant::Seen, FeatureVariant::Shuffled, FeatureVariant::Zeroed] {
            assert_eq!(serde_json::to_value(variant).unwrap(), variant.name());
        }
        assert_eq!(FeatureVariant::default().of(&ramp(3), &"a".into(), 0), ramp(3), "what is seen is not touched");
    }

    #[test]
    fn shuffling_keeps_every_row_whole_and_moves_them() {
        let (before, video) = (ramp(50), VideoId::from("a"));
        let after = FeatureVariant::Shuffled.of(&before, &video, 3);
        assert_ne!(before, after);
        let rows = |features: &Features| {
            let mut rows: Vec<Vec<f32>> = (0..50).map(|clip| features.row(clip).unwrap().to_vec()).collect();
            rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
            rows
        };
        assert_eq!(rows(&before), rows(&after));
    }

    #[test]
    fn a_seed_and_a_video_decide_the_order() {
        let shuffled = |video: &str, seed| FeatureVariant::Shuffled.of(&ramp(50), &video.into(), seed);
        assert_eq!(shuffled("a", 1), shuffled("a", 1));
        assert_ne!(shuffled("a", 1), shuffled("a", 2));
        assert_ne!(shuffled("a", 1), shuffled("b", 1));
    }
}
