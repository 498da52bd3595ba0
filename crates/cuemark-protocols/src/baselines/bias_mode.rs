//! Bias-based, without chance: the densest place of the training moments, for every query, and the same ranking of clips.
//!
//! Where training clips are rated, clips are scored by how often a rater called a clip at that place of its video very good. No other
//! ranking that is the same for all queries does better on the training split, precision by precision.

use cuemark_core::{ClipLen, NormSpan, Predictions, Truth};

use super::{Answering, Baseline, BaselineCard, Needs, answer_each, in_order, training_density};
use crate::Result;

/// How it is listed.
pub(super) static CARD: BaselineCard = BaselineCard {
    name: "bias-mode",
    summary: "the densest place of the training moments",
    needs: Needs::TrainingMoments,
    answers: Answering::Fixed,
    fit: |training| {
        let mode = training_density(training.truths)?.mode();
        Ok(Box::new(BiasMode { mode, clips: ClipCurve::of(training.truths) }))
    },
};

struct BiasMode {
    mode: NormSpan,
    clips: Option<ClipCurve>,
}

impl Baseline for BiasMode {
    fn predict(&self, queries: &[Truth], _answers: usize, _seed: u64) -> Result<Predictions> {
        let mut predictions = answer_each(queries, |_| in_order([self.mode]))?;
        if let Some(clips) = &self.clips {
            let lists = predictions.tasks.iter_mut().flat_map(|task| &mut task.queries);
            for (list, truth) in lists.zip(queries) {
                list.saliency = truth.duration().map(|duration| clips.scores(duration));
            }
        }
        Ok(predictions)
    }
}

/// Places along a video.
const PLACES: usize = 20;
/// The grade from which published figures call a clip a highlight.
const VERY_GOOD: u8 = 4;

/// How often a clip at each place of its video is a highlight.
struct ClipCurve {
    clip_len: ClipLen,
    share: [f64; PLACES],
}

impl ClipCurve {
    /// Of the training clips; `None` when none is rated.
    fn of(truths: &[Truth]) -> Option<Self> {
        let (mut liked, mut all) = ([0.0; PLACES], [0.0; PLACES]);
        let mut clip_len = None;
        for truth in truths {
            let (Some(rated), Some(duration)) = (&truth.highlights, truth.duration()) else { continue };
            clip_len.get_or_insert(rated.clip_len);
            let count = clips_in(duration, rated.clip_len);
            let raters = rated.ratings.iter().map(Vec::len).max().unwrap_or(0);
            (0..count).for_each(|clip| all[place(clip, count)] += raters as f64);
            for (clip, grades) in rated.clips.iter().zip(&rated.ratings).filter(|(clip, _)| **clip < count) {
                liked[place(*clip, count)] += grades.iter().filter(|grade| **grade >= VERY_GOOD).count() as f64;
            }
        }
        let share = std::array::from_fn(|place| liked[place] / f64::max(all[place], 1.0));
        Some(Self { clip_len: clip_len?, share })
    }

    /// The score of every whole clip of a video, between those of the two nearest places.
    fn scores(&self, duration: f64) -> Vec<f64> {
        let count = clips_in(duration, self.clip_len);
        let score = |clip: usize| {
            let at = ((clip as f64 + 0.5) / count as f64 * PLACES as f64 - 0.5).clamp(0.0, (PLACES - 1) as f64);
            let (left, right) = (at.floor() as usize, at.ceil() as usize);
            self.share[left] + (self.share[right] - self.share[left]) * at.fract()
        };
        (0..count).map(score).collect()
    }
}

fn clips_in(duration: f64, clip_len: ClipLen) -> usize {
    (duration / clip_len.seconds()) as usize
}

fn place(clip: usize, count: usize) -> usize {
    (((clip as f64 + 0.5) / count as f64 * PLACES as f64) as usize).min(PLACES - 1)
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Highlights, Query, Span, Video};

    use super::*;

    /// Forty clips of two seconds; the given ones are rated by three people.
    fn truth(ratings: &[(usize, [u8; 3])]) -> Truth {
        let query = Query { id: "q".into(), text: "a dog runs".to_owned() };
        let span = Span::new(20.0, 40.0).unwrap();
        let highlights = Highlights {
            clip_len: ClipLen::new(2.0).unwrap(),
            clips: ratings.iter().map(|(clip, _)| *clip).collect(),
            ratings: ratings.iter().map(|(_, grades)| grades.to_vec()).collect(),
        };
        let truth = Truth::single(query, Video::new("v", 80.0), [span]);
        Truth { highlights: (!ratings.is_empty()).then(|| Box::new(highlights)), ..truth }
    }

    #[test]
    fn clips_are_ranked_by_how_often_their_place_was_very_good() {
        // Two clips a place: place 5 is called very good twice by six grades, place 12 once.
        let train = [truth(&[(10, [4, 3, 4]), (24, [0, 4, 1]), (39, [3, 3, 3])])];
        let curve = ClipCurve::of(&train).unwrap();
        assert_eq!((curve.share[5], curve.share[12], curve.share[19]), (2.0 / 6.0, 1.0 / 6.0, 0.0));
        let scores = curve.scores(41.0);
        assert_eq!(scores.len(), 20);
        let best = (0..20).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
        assert_eq!((best, scores[12]), (5, 1.0 / 6.0));
    }

    #[test]
    fn without_ratings_no_clip_is_scored() {
        let train = [truth(&[])];
        let fitted = CARD.fit(&super::super::Training::of(&train)).unwrap();
        assert_eq!(fitted.predict(&train, 1, 0).unwrap().tasks[0].queries[0].saliency, None);
        let rated = [truth(&[(10, [4, 3, 4])])];
        let fitted = CARD.fit(&super::super::Training::of(&rated)).unwrap();
        assert_eq!(fitted.predict(&rated, 1, 0).unwrap().tasks[0].queries[0].saliency.as_ref().unwrap().len(), 40);
    }
}
