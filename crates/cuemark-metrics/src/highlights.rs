//! HL-mAP and HL-Hit1: which clips are worth watching, as QVHighlights scores it.

use cuemark_core::Highlights;
use std::fmt;

/// The rating from which a clip is a highlight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HighlightLevel {
    /// Rated 2 or more.
    Fair,
    /// Rated 3 or more.
    Good,
    /// Rated 4.
    VeryGood,
}

impl HighlightLevel {
    /// Every level, the most lenient first.
    pub const ALL: [Self; 3] = [Self::Fair, Self::Good, Self::VeryGood];

    fn lowest_rating(self) -> u8 {
        self as u8 + 2
    }
}

impl fmt::Display for HighlightLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// HL-mAP of one query: mean over the raters of the average precision of the clips ranked by predicted saliency.
///
/// `duration` is the video's, in seconds. Predictions are cut, or filled with 0, to the number of whole clips. Per
/// rater: no highlight gives 0, nothing but highlights 1, otherwise the mean over *distinct* recall levels of the
/// interpolated precision, so highlights with equal saliency are one level. `None` when nobody rated anything.
pub fn highlight_ap(level: HighlightLevel, saliency: &[f64], truth: &Highlights, duration: f64) -> Option<f64> {
    let clips = whole_clips(truth, duration);
    let mut scores: Vec<f64> = saliency.iter().copied().take(clips).collect();
    scores.resize(clips, 0.0);
    let raters = truth.ratings.iter().map(Vec::len).max().filter(|n| *n > 0)?;
    let per_rater = (0..raters).map(|rater| {
        let mut labels = vec![false; clips];
        for (clip, ratings) in truth.clips.iter().zip(&truth.ratings) {
            if let (Some(label), Some(rating)) = (labels.get_mut(*clip), ratings.get(rater)) {
                *label = *rating >= level.lowest_rating();
            }
        }
        ranked_precision(&scores, &labels)
    });
    Some(per_rater.sum::<f64>() / raters as f64)
}

/// HL-Hit1 of one query: whether any rater calls the clip of highest predicted saliency (the first of equals) a highlight.
///
/// A clip past the video's end is a miss, and so is no prediction.
pub fn highlight_hit(level: HighlightLevel, saliency: &[f64], truth: &Highlights, duration: f64) -> bool {
    let best = saliency.iter().enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best });
    let Some((top, _)) = best else { return false };
    let rated = truth.clips.iter().zip(&truth.ratings).find(|(clip, _)| **clip == top);
    top < whole_clips(truth, duration)
        && rated.is_some_and(|(_, ratings)| ratings.iter().any(|rating| *rating >= level.lowest_rating()))
}

fn whole_clips(truth: &Highlights, duration: f64) -> usize {
    (duration / truth.clip_len.seconds()) as usize
}

/// Mean, over the distinct recall levels above 0, of the best precision at that recall or a higher one.
fn ranked_precision(scores: &[f64], labels: &[bool]) -> f64 {
    let positives = labels.iter().filter(|label| **label).count();
    if positives == 0 {
        return 0.0;
    }
    if positives == labels.len() {
        return 1.0;
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    // One point per group of equal scores: precision where recall rises, NaN where it does not.
    let (mut found, mut precisions) = (0usize, Vec::new());
    let mut seen = 0;
    for group in order.chunk_by(|a, b| scores[*a] == scores[*b]) {
        seen += group.len();
        let new = group.iter().filter(|clip| labels[**clip]).count();
        found += new;
        precisions.push((found as f64 / seen as f64, new > 0));
    }
    let (mut best, mut sum, mut levels) = (0.0f64, 0.0, 0usize);
    for (precision, recall_rises) in precisions.into_iter().rev() {
        best = best.max(precision);
        if recall_rises {
            sum += best;
            levels += 1;
        }
    }
    sum / levels as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::ClipLen;

    fn truth() -> Highlights {
        let clip_len = ClipLen::new(2.0).unwrap();
        Highlights { clip_len, clips: vec![0, 1], ratings: vec![vec![4, 2, 0], vec![1, 3, 4]] }
    }

    #[test]
    fn each_rater_is_scored_alone() {
        // Four clips, ranked 0, 1, 2, 3. Very good: rater 0 wants clip 0 (AP 1), rater 1 nothing (0), rater 2 clip 1 (1/2).
        let saliency = [0.9, 0.8, 0.2, 0.1];
        let value = highlight_ap(HighlightLevel::VeryGood, &saliency, &truth(), 8.0).unwrap();
        assert!((value - (1.0 + 0.0 + 0.5) / 3.0).abs() < 1e-15);
    }

    #[test]
    fn equal_saliency_is_one_recall_level() {
        // Fair, rater 1 wants clips 0 and 1, tied with clip 2: one level at precision 2/3.
        assert!((ranked_precision(&[0.5, 0.5, 0.5, 0.1], &[true, true, false, false]) - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn the_best_clip_is_a_hit_when_any_rater_says_so() {
        assert!(highlight_hit(HighlightLevel::VeryGood, &[0.1, 0.9], &truth(), 8.0));
        assert!(!highlight_hit(HighlightLevel::Fair, &[0.1, 0.2, 0.9], &truth(), 8.0));
        assert!(!highlight_hit(HighlightLevel::Fair, &[0.1, 0.2, 0.3, 0.4, 0.9], &truth(), 8.0), "past the end");
    }
}
