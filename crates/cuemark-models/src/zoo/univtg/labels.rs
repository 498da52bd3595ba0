//! What every clip should say.

use cuemark_core::{NormSpan, Rng};
use cuemark_tensor::Pass;

use crate::{Batch, ClipLabels, RatedClip, Result};

/// The labels of one video.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Labels {
    /// The time of every clip, as a fraction. Half a clip in **seconds** is added to an index, as published: with clips of two
    /// seconds this is the end of a clip, with clips of one second its middle.
    pub(super) times: Vec<f32>,
    /// Whether it lies in a window.
    pub(super) inside: Vec<bool>,
    /// Start and end of its window; zeros where there is none.
    pub(super) bounds: Vec<[f32; 2]>,
}

/// The labels of a video of `clips` clips of `seconds` each.
pub(super) fn labels(windows: &[NormSpan], clips: usize, seconds: f64) -> Labels {
    let time = |clip: usize| (clip as f64 + seconds / 2.0) / clips as f64;
    let bounds = |window: &NormSpan| [window.start() as f32, window.end() as f32];
    // Compared as they are divided: a border between clips must be met exactly.
    let of = |clip: usize| windows.iter().rfind(|window| time(clip) >= window.start() && time(clip) <= window.end());
    let times = (0..clips).map(|clip| time(clip) as f32).collect();
    let found: Vec<Option<&NormSpan>> = (0..clips).map(of).collect();
    if found.iter().any(Option::is_some) {
        let inside = found.iter().map(Option::is_some).collect();
        return Labels { times, inside, bounds: found.iter().map(|window| window.map_or([0.0; 2], bounds)).collect() };
    }
    // A window between two times: every clip points at it, and the clip that it begins in counts as inside.
    let first = windows.first();
    let near = first.map(|window| ((window.start() * clips as f64 + 1e-9) as usize).min(clips.saturating_sub(1)));
    Labels {
        times,
        inside: (0..clips).map(|clip| near == Some(clip)).collect(),
        bounds: vec![first.map_or([0.0; 2], bounds); clips],
    }
}

/// Everything that a batch is trained on, draws made; padded clips are outside and worth nothing.
#[derive(Debug, Clone)]
pub(super) struct Truth {
    pub(super) labels: Vec<Labels>,
    /// How good every clip is.
    pub(super) worth: Vec<Vec<f32>>,
    /// One good clip of every sample.
    pub(super) good: Vec<usize>,
}

impl Truth {
    pub(super) fn draw(model: &'static str, batch: &Batch, pass: &Pass) -> Result<Self> {
        let joint = batch.targets(model)?.joint(&batch.videos.lengths);
        let mut rng = pass.draw(|rng| Rng::new(rng.bits())).unwrap_or_else(|| Rng::new(0));
        let mut truth = Self { labels: Vec::new(), worth: Vec::new(), good: Vec::new() };
        for (sample, clips) in batch.videos.lengths.iter().copied().enumerate() {
            let seconds = batch.videos.durations[sample] / clips.max(1) as f64;
            let labels = labels(&joint.windows[sample], clips, seconds);
            let inside = || (0..clips).filter(|clip| labels.inside[*clip]).collect::<Vec<_>>();
            let (worth, mut good) = match &joint.clips[sample] {
                known @ ClipLabels::Rated(rated) => {
                    let relevant: Vec<usize> = rated.iter().map(|rated| rated.clip).filter(|c| *c < clips).collect();
                    let all = relevant.len() >= clips;
                    (known.means(clips), if all { best(rated).into_iter().collect() } else { relevant })
                }
                ClipLabels::Window(_) => {
                    (labels.inside.iter().map(|inside| f32::from(u8::from(*inside))).collect(), inside())
                }
            };
            if good.is_empty() {
                good = inside();
            }
            truth.good.push(good.get(rng.below(good.len().max(1))).copied().unwrap_or(0).min(clips.saturating_sub(1)));
            truth.worth.push(worth);
            truth.labels.push(labels);
        }
        Ok(truth)
    }
}

/// The clip with the largest total; of equal ones the last, as a stable sort of the totals leaves it at the end (the card's rule for
/// ties, which the published code leaves to an unstable sort).
fn best(rated: &[RatedClip]) -> Option<usize> {
    rated.iter().max_by(|a, b| a.total.total_cmp(&b.total)).map(|rated| rated.clip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_clips_rated_alike_the_last_is_the_best() {
        let rated = |totals: [f32; 4]| {
            let clip = |(clip, total)| RatedClip { clip, total, raters: 3 };
            totals.into_iter().enumerate().map(clip).collect::<Vec<_>>()
        };
        assert_eq!(best(&rated([7.0, 3.0, 7.0, 2.0])), Some(2));
        assert_eq!(best(&rated([4.0; 4])), Some(3));
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn with_clips_of_two_seconds_the_clip_before_a_window_counts_too() {
        let window = NormSpan::new(26.0 / 150.0, 36.0 / 150.0).unwrap();
        let labels = labels(&[window], 75, 2.0);
        let inside: Vec<usize> = (0..75).filter(|clip| labels.inside[*clip]).collect();
        assert_eq!(inside, [12, 13, 14, 15, 16, 17]);
        assert_eq!(labels.bounds[12], [(26.0 / 150.0) as f32, (36.0 / 150.0) as f32]);
        assert_eq!(labels.bounds[11], [0.0, 0.0]);
    }

    #[test]
    fn a_window_that_no_clip_meets_has_the_clip_it_begins_in() {
        let window = NormSpan::new(0.56, 0.58).unwrap();
        let labels = labels(&[window], 10, 1.0);
        assert_eq!((0..10).filter(|clip| labels.inside[*clip]).collect::<Vec<_>>(), [5]);
        assert!(labels.bounds.iter().all(|bounds| *bounds == [0.56, 0.58]));
    }
}
