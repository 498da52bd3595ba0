//! HL-AP and HL-AP@n: clips ranked by predicted saliency, as highlight detection on TVSum and YouTube Highlights is scored.

use cuemark_core::Highlights;

/// Whether a video without any highlight counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoHighlight {
    /// It counts 0, as in UniVTG's evaluator.
    Counts,
    /// It is left out of the mean, as in lighthouse's.
    LeftOut,
}

/// HL-AP@n of one video: mean over the raters of the average precision of the `n` clips of highest predicted saliency (TVSum: 5).
///
/// For each rater a clip is a highlight when its grade is **above the median of this rater's own grades** (the lower one of an even
/// number). Recall is relative to the highlights among the `n` clips, and each step adds the trapezoid between two precisions, the first
/// of which is 1: `ap += (recall - before) * (precision + precision before) / 2`. No highlight among them gives 0. Of equal saliency
/// the earlier clip ranks first; a clip without a prediction ranks behind all others. `None` when nobody rated anything.
pub fn top_clips_ap(n: usize, saliency: &[f64], truth: &Highlights) -> Option<f64> {
    let order = ranked(saliency, truth);
    let raters = truth.ratings.iter().map(Vec::len).max().filter(|raters| *raters > 0)?;
    let per_rater = (0..raters).map(|rater| {
        let grade = |row: usize| truth.ratings.get(row).and_then(|grades| grades.get(rater)).copied().unwrap_or(0);
        let mut grades: Vec<u8> = (0..truth.ratings.len()).map(grade).collect();
        grades.sort_unstable();
        let median = grades.get((grades.len().max(1) - 1) / 2).copied().unwrap_or(0);
        trapezoids(order.iter().take(n).map(|row| grade(*row) > median))
    });
    Some(per_rater.sum::<f64>() / raters as f64)
}

/// HL-AP of one video: average precision of all its clips ranked by predicted saliency (YouTube Highlights).
///
/// A clip is a highlight when somebody graded it above 0; precision is summed as in [`top_clips_ap`]. `None` when nobody rated anything,
/// and for a video without a highlight when those are left out.
pub fn clips_ap(none: NoHighlight, saliency: &[f64], truth: &Highlights) -> Option<f64> {
    let is_highlight =
        |row: &usize| truth.ratings.get(*row).is_some_and(|grades| grades.iter().any(|grade| *grade > 0));
    if truth.ratings.iter().all(Vec::is_empty) {
        return None;
    }
    let order = ranked(saliency, truth);
    if none == NoHighlight::LeftOut && !order.iter().any(is_highlight) {
        return None;
    }
    Some(trapezoids(order.iter().map(is_highlight)))
}

/// The rated clips (positions in `truth`) by predicted saliency, best first.
fn ranked(saliency: &[f64], truth: &Highlights) -> Vec<usize> {
    let score = |row: &usize| truth.clips.get(*row).and_then(|clip| saliency.get(*clip)).copied();
    let mut order: Vec<usize> = (0..truth.clips.len()).collect();
    order.sort_by(|a, b| score(b).unwrap_or(f64::NEG_INFINITY).total_cmp(&score(a).unwrap_or(f64::NEG_INFINITY)));
    order
}

/// The area under precision over recall, from recall 0 and precision 1 on; recall is relative to the hits in the list.
fn trapezoids(hits: impl Iterator<Item = bool> + Clone) -> f64 {
    let all = hits.clone().filter(|hit| *hit).count();
    if all == 0 {
        return 0.0;
    }
    let (mut found, mut area, mut before) = (0usize, 0.0, (0.0, 1.0));
    for (seen, hit) in hits.enumerate() {
        found += usize::from(hit);
        let (recall, precision) = (found as f64 / all as f64, found as f64 / (seen + 1) as f64);
        area += (recall - before.0) * (precision + before.1) / 2.0;
        before = (recall, precision);
    }
    area
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::ClipLen;

    fn truth(ratings: &[&[u8]]) -> Highlights {
        Highlights {
            clip_len: ClipLen::new(2.0).unwrap(),
            clips: (0..ratings.len()).collect(),
            ratings: ratings.iter().map(|grades| grades.to_vec()).collect(),
        }
    }

    /// By hand: hits 1, 0, 1, 0, 0 in predicted order. Recall 1/2 at precision 1: (1 + 1) / 2 · 1/2 = 0.5. The third clip: recall rises by
    /// 1/2 between precision 1/2 and 2/3: 7/24. Together 19/24.
    #[test]
    fn the_area_is_that_of_a_sum_by_hand() {
        assert!((trapezoids([true, false, true, false, false].into_iter()) - 19.0 / 24.0).abs() < 1e-15);
        assert_eq!(trapezoids([false; 3].into_iter()), 0.0);
        assert_eq!(trapezoids([true; 3].into_iter()), 1.0);
    }

    /// Six clips, two raters, five are looked at. Rater 0 gave 4 0 3 1 2 0: the lower median of 0 0 1 2 3 4 is 1, highlights are clips 0, 2
    /// and 4. Rater 1 gave 0 1 0 4 2 3: the lower median is 1, highlights are clips 3, 4 and 5. Predicted order 0 1 2 3 4 5.
    /// Rater 0 among the first five: hits 1 0 1 0 1: 1/3 + 1/3 · (1/2 + 2/3) / 2 + 1/3 · (1/2 + 3/5) / 2 = 1/3 + 7/36 + 11/60.
    /// Rater 1: hits 0 0 0 1 1, recall relative to two: 1/2 · (0 + 1/4) / 2 + 1/2 · (1/4 + 2/5) / 2 = 1/16 + 13/80.
    #[test]
    fn every_rater_has_a_median_of_his_own_and_recall_counts_what_is_among_the_first() {
        let truth = truth(&[&[4, 0], &[0, 1], &[3, 0], &[1, 4], &[2, 2], &[0, 3]]);
        let saliency = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4];
        let wanted = (1.0 / 3.0 + 7.0 / 36.0 + 11.0 / 60.0 + 1.0 / 16.0 + 13.0 / 80.0) / 2.0;
        assert!((top_clips_ap(5, &saliency, &truth).unwrap() - wanted).abs() < 1e-12);
        assert_eq!(top_clips_ap(5, &saliency, &self::truth(&[])), None);
    }

    #[test]
    fn all_clips_count_and_a_video_without_a_highlight_as_one_says() {
        let some = truth(&[&[1], &[0], &[1], &[0], &[0]]);
        let saliency = [0.9, 0.8, 0.7, 0.6, 0.5];
        assert!((clips_ap(NoHighlight::Counts, &saliency, &some).unwrap() - 19.0 / 24.0).abs() < 1e-15);
        let none = truth(&[&[0], &[0]]);
        assert_eq!(clips_ap(NoHighlight::Counts, &saliency, &none), Some(0.0));
        assert_eq!(clips_ap(NoHighlight::LeftOut, &saliency, &none), None);
    }

    #[test]
    fn equal_scores_keep_the_order_of_clips_and_missing_ones_come_last() {
        let truth = truth(&[&[1], &[0], &[1]]);
        assert_eq!(
            clips_ap(NoHighlight::Counts, &[0.5, -2.0], &truth),
            clips_ap(NoHighlight::Counts, &[2.0, 1.0, 0.0], &truth)
        );
        assert_eq!(ranked(&[0.5, 0.5, 0.7], &truth), [2, 0, 1]);
    }
}
