//! What models of moments and highlights learn from: every window of a query, and how good its clips are.

use cuemark_core::{NormSpan, Rng};
use cuemark_tensor::{Device, Pass, Tensor};

use crate::{Batch, Result, Targets};

/// Windows and clips to learn from, one entry per query.
#[derive(Debug, Clone, PartialEq)]
pub struct JointTargets {
    /// Every window that answers the query, as fractions of what the clips cover.
    pub windows: Vec<Vec<NormSpan>>,
    /// How good the clips are.
    pub clips: Vec<ClipLabels>,
}

/// What is known about the clips of one query.
#[derive(Debug, Clone, PartialEq)]
pub enum ClipLabels {
    /// People rated the relevant ones. Clips past the end of the video are left out of labels.
    Rated(Vec<RatedClip>),
    /// Nobody did: the clips of the first window are right and all others wrong.
    Window(ClipStretch),
}

/// A relevant clip with its ratings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatedClip {
    /// The clip, from 0.
    pub clip: usize,
    /// Sum of the grades that people gave it.
    pub total: f32,
    /// How many people did.
    pub raters: usize,
}

/// The clips of one window, all counts from 0 and inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClipStretch {
    /// The first clip that counts as right.
    pub first: usize,
    /// The last one: the last that the window holds wholly.
    pub last: usize,
    /// The last one that the window touches.
    pub touched: usize,
}

impl ClipStretch {
    /// The clips of a window that begins and ends so many clips after the start of a video of `clips` clips.
    ///
    /// ```
    /// use cuemark_models::ClipStretch;
    /// let stretch = ClipStretch::of(13.0, 18.0, 75);
    /// assert_eq!((stretch.first, stretch.last), (13, 17));
    /// // A window inside one clip: the rule of the published code lands on the clip before.
    /// assert_eq!(ClipStretch::of(1.6, 1.95, 20).first, 0);
    /// ```
    pub fn of(start: f64, end: f64, clips: usize) -> Self {
        let floor = |value: f64| value.max(0.0).floor() as usize;
        let last = floor(end).min(clips).saturating_sub(1);
        let touched = (end.max(0.0).ceil() as usize).min(clips).saturating_sub(1);
        Self { first: floor(start).min(last), last, touched: touched.max(last) }
    }

    /// As [`ClipStretch::of`], from fractions of what the clips cover.
    pub fn of_fractions(span: NormSpan, clips: usize) -> Self {
        // A border between clips must stay one: fractions lose the last digits of it.
        let place = |fraction: f64| {
            let place = fraction * clips as f64;
            if (place - place.round()).abs() < 1e-6 { place.round() } else { place }
        };
        Self::of(place(span.start()), place(span.end()), clips)
    }
}

impl ClipLabels {
    /// How good every clip of a video of `clips` clips is: the sum of its grades, or 1 inside the window; 0 elsewhere.
    pub fn totals(&self, clips: usize) -> Vec<f32> {
        self.every(clips, |rated| rated.total)
    }

    /// The mean of its grades, or 1 inside the window; 0 elsewhere.
    pub fn means(&self, clips: usize) -> Vec<f32> {
        self.every(clips, |rated| rated.total / rated.raters.max(1) as f32)
    }

    fn every(&self, clips: usize, grade: impl Fn(&RatedClip) -> f32) -> Vec<f32> {
        let mut grades = vec![0.0; clips];
        match self {
            Self::Rated(rated) => {
                for rated in rated.iter().filter(|rated| rated.clip < clips) {
                    grades[rated.clip] = grade(rated);
                }
            }
            Self::Window(stretch) => {
                (stretch.first..=stretch.last).filter(|clip| *clip < clips).for_each(|clip| grades[clip] = 1.0);
            }
        }
        grades
    }

    /// 1 for every relevant clip, whatever its grade; without ratings for all that the window touches.
    pub fn relevant(&self, clips: usize) -> Vec<f32> {
        match self {
            Self::Rated(_) => self.every(clips, |_| 1.0),
            Self::Window(stretch) => {
                let relevant = |clip: usize| (stretch.first..=stretch.touched).contains(&clip);
                (0..clips).map(|clip| f32::from(u8::from(relevant(clip)))).collect()
            }
        }
    }

    /// Two pairs of a good and a bad clip; `choose` picks one of several.
    ///
    /// With ratings: the best and the worst relevant clip (the last and the first of equals), and any relevant against any
    /// irrelevant one, or the first pair again when all are relevant. Without: two different clips of the window against
    /// two different ones outside; with fewer than two outside the good ones stand against themselves, which teaches nothing.
    pub fn pairs(&self, clips: usize, choose: &mut dyn FnMut(&[usize]) -> usize) -> [[u32; 2]; 2] {
        let limit = clips.saturating_sub(1);
        let pair = |a: usize, b: usize| [a.min(limit) as u32, b.min(limit) as u32];
        match self {
            Self::Rated(rated) => {
                let mut ordered: Vec<&RatedClip> = rated.iter().collect();
                ordered.sort_by(|a, b| a.total.total_cmp(&b.total));
                let (Some(worst), Some(best)) = (ordered.first(), ordered.last()) else { return [[0; 2]; 2] };
                let outside: Vec<usize> =
                    (0..clips).filter(|clip| rated.iter().all(|rated| rated.clip != *clip)).collect();
                if outside.is_empty() {
                    return [pair(best.clip, best.clip), pair(worst.clip, worst.clip)];
                }
                let inside: Vec<usize> = rated.iter().map(|rated| rated.clip).collect();
                let easy = choose(&inside);
                [pair(best.clip, easy), pair(worst.clip, choose(&outside))]
            }
            Self::Window(stretch) => {
                let inside: Vec<usize> = (stretch.first..=stretch.last).collect();
                let good = two(inside, choose);
                let outside = (0..clips).filter(|clip| !(stretch.first..=stretch.last).contains(clip));
                let outside: Vec<usize> = outside.collect();
                let bad = if outside.len() < 2 { good } else { two(outside, choose) };
                [pair(good[0], good[1]), pair(bad[0], bad[1])]
            }
        }
    }
}

/// Two different ones, or the only one twice.
fn two(mut clips: Vec<usize>, choose: &mut dyn FnMut(&[usize]) -> usize) -> [usize; 2] {
    let first = choose(&clips);
    if clips.len() < 2 {
        return [first; 2];
    }
    clips.retain(|clip| *clip != first);
    [first, choose(&clips)]
}

/// Two pairs of a good and a bad clip for every sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClipPairs {
    /// The good ones.
    pub positive: Vec<[u32; 2]>,
    /// The bad ones.
    pub negative: Vec<[u32; 2]>,
}

/// Everything that a set-predicting network is trained on, draws made.
#[derive(Debug, Clone)]
pub struct JointTruth {
    /// Centre and width of every window, by sample.
    pub windows: Vec<Vec<[f32; 2]>>,
    /// Good and bad clips.
    pub pairs: ClipPairs,
    /// The sum of the grades of every clip, padding included, by sample.
    pub totals: Vec<Vec<f32>>,
    /// 1 for every relevant clip, padding included, by sample.
    pub relevant: Vec<Vec<f32>>,
}

/// The most windows of a query that are learnt at a time; which ones is drawn.
const WINDOWS: usize = 5;

impl Targets {
    /// What there is to learn, window by window; from the spans alone where nobody said more.
    pub fn joint(&self, clips: &[usize]) -> JointTargets {
        self.joint.clone().unwrap_or_else(|| JointTargets {
            windows: self.spans.iter().map(|span| vec![*span]).collect(),
            clips: (self.spans.iter().zip(clips))
                .map(|(span, clips)| ClipLabels::Window(ClipStretch::of_fractions(*span, *clips)))
                .collect(),
        })
    }
}

impl JointTruth {
    /// 1 for every clip with a grade above 0, `[samples, clips]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn graded_clips(&self, device: &Device) -> Result<Tensor> {
        let graded = |total: &f32| f32::from(u8::from(*total > 0.0));
        let rows: Vec<Vec<f32>> = self.totals.iter().map(|row| row.iter().map(graded).collect()).collect();
        Ok(Tensor::new(rows, device)?)
    }

    /// 1 for every relevant clip, `[samples, clips]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn relevant_clips(&self, device: &Device) -> Result<Tensor> {
        Ok(Tensor::new(self.relevant.clone(), device)?)
    }

    /// Of a batch, with everything drawn from the pass's own stream.
    ///
    /// # Errors
    /// When the batch has no targets.
    pub fn draw(model: &'static str, batch: &Batch, pass: &Pass) -> Result<Self> {
        let joint = batch.targets(model)?.joint(&batch.videos.lengths);
        let steps = batch.videos.visual.dim(1)?;
        let mut rng = pass.draw(|rng| Rng::new(rng.bits())).unwrap_or_else(|| Rng::new(0));
        let mut truth =
            Self { windows: Vec::new(), pairs: ClipPairs::default(), totals: Vec::new(), relevant: Vec::new() };
        for ((windows, labels), clips) in joint.windows.iter().zip(&joint.clips).zip(&batch.videos.lengths) {
            let mut windows: Vec<[f32; 2]> =
                windows.iter().map(|window| [window.centre() as f32, window.len() as f32]).collect();
            if windows.len() > WINDOWS {
                rng.shuffle(&mut windows);
                windows.truncate(WINDOWS);
            }
            truth.windows.push(windows);
            let [positive, negative] = labels.pairs(*clips, &mut |clips| clips[rng.below(clips.len().max(1))]);
            truth.pairs.positive.push(positive);
            truth.pairs.negative.push(negative);
            let padded = |mut grades: Vec<f32>| {
                grades.resize(steps, 0.0);
                grades
            };
            truth.totals.push(padded(labels.totals(*clips)));
            truth.relevant.push(padded(labels.relevant(*clips)));
        }
        Ok(truth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(clip: usize, total: f32) -> RatedClip {
        RatedClip { clip, total, raters: 3 }
    }

    #[test]
    fn clips_of_a_window_are_those_it_holds_wholly() {
        let stretch = |start, end, clips| ClipStretch::of(start, end, clips);
        assert_eq!(stretch(13.0, 18.0, 75), ClipStretch { first: 13, last: 17, touched: 17 });
        assert_eq!(stretch(1.6, 1.95, 20), ClipStretch { first: 0, last: 0, touched: 1 });
        assert_eq!(stretch(70.0, 90.0, 75), ClipStretch { first: 70, last: 74, touched: 74 });
        let thirds = NormSpan::new(1.0 / 3.0, 2.0 / 3.0).unwrap_or_else(|| unreachable!());
        assert_eq!(ClipStretch::of_fractions(thirds, 75), stretch(25.0, 50.0, 75));
    }

    #[test]
    fn rated_clips_pair_the_best_with_the_worst_and_any_with_any_outside() {
        let labels = ClipLabels::Rated(vec![rated(2, 5.0), rated(3, 9.0), rated(4, 9.0), rated(9, 1.0)]);
        let mut asked = Vec::new();
        let pairs = labels.pairs(6, &mut |clips| {
            asked.push(clips.to_vec());
            clips[0]
        });
        // Clip 9 lies past the end and is lowered to the last clip; of the two best the last one counts.
        assert_eq!(pairs, [[4, 2], [5, 0]]);
        assert_eq!(asked, [vec![2, 3, 4, 9], vec![0, 1, 5]]);
        assert_eq!(labels.totals(6), [0.0, 0.0, 5.0, 9.0, 9.0, 0.0]);
        assert_eq!(labels.means(4), [0.0, 0.0, 5.0 / 3.0, 3.0]);
        let every = ClipLabels::Rated(vec![rated(0, 5.0), rated(1, 9.0)]);
        assert_eq!(every.pairs(2, &mut |clips| clips[0]), [[1, 1], [0, 0]]);
    }

    #[test]
    fn a_window_pairs_two_clips_inside_with_two_outside_and_itself_where_there_are_none() {
        let window = |first, last| ClipLabels::Window(ClipStretch { first, last, touched: last });
        assert_eq!(window(1, 3).pairs(6, &mut |clips| clips[0]), [[1, 2], [0, 4]]);
        assert_eq!(window(2, 2).pairs(6, &mut |clips| clips[0]), [[2, 2], [0, 1]]);
        assert_eq!(window(0, 4).pairs(6, &mut |clips| clips[0]), [[0, 1], [0, 1]]);
        let touched = ClipLabels::Window(ClipStretch { first: 0, last: 0, touched: 1 });
        assert_eq!((touched.totals(3), touched.relevant(3)), (vec![1.0, 0.0, 0.0], vec![1.0, 1.0, 0.0]));
    }
}
