//! One answer per stretch: windows around a good one joined to it while the whole is still as good.
//!
//! An encoder that recognises things scores every window of a film by itself, and the best of a hundred overlapping windows is the
//! one where chance helped most: a film that is one scene from its first second to its last answers with two seconds of it. What a
//! person wants is the longest window around the best one that says the same.

use cuemark_core::Span;

use crate::engine::Hit;

/// When a longer window is as good as a shorter one inside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AsGood {
    /// What the question scores on anything: what lies below says nothing.
    pub(crate) floor: f64,
    /// The share of the better window's height above the floor that the longer one must keep, in 0..1.
    pub(crate) keeps: f64,
}

/// Ends that lie this near to each other, in **seconds**, are the same: spans went through a file.
const SAME: f64 = 1e-3;

/// The stretches of one video, best first, at most `most`; no two of them overlap.
///
/// `ranked` are the windows of one video, best first. The best one is grown to the longest window that covers it and is
/// [`AsGood`] by what it scores `as_it_is`; its score stays that of the best. Then comes the best window that touches none so far, and so on.
pub(crate) fn stretches(ranked: &[Hit], as_it_is: impl Fn(&Hit) -> f32, rule: AsGood, most: usize) -> Vec<Hit> {
    let mut found: Vec<Hit> = Vec::new();
    for seed in ranked {
        if found.len() >= most {
            break;
        }
        let is_free = |span: Span| found.iter().all(|taken| taken.span.iou(span) <= 0.0);
        if !is_free(seed.span) {
            continue;
        }
        let height = f64::from(as_it_is(seed)) - rule.floor;
        let least = rule.floor + rule.keeps * height;
        let covers = |span: Span| span.start() <= seed.span.start() + SAME && span.end() >= seed.span.end() - SAME;
        let joined = ranked
            .iter()
            .filter(|hit| height > 0.0 && f64::from(as_it_is(hit)) >= least && covers(hit.span) && is_free(hit.span))
            .max_by(|a, b| a.span.len().total_cmp(&b.span.len()).then(a.score.total_cmp(&b.score)))
            .unwrap_or(seed);
        found.push(Hit { score: seed.score, ..joined.clone() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rank;

    /// Every window of clips of one second whose scores are known; a window scores the mean of its clips.
    fn windows(clips: &[f32]) -> Vec<Hit> {
        let mut all = Vec::new();
        for start in 0..clips.len() {
            for end in start + 1..=clips.len() {
                let mean = clips[start..end].iter().sum::<f32>() / (end - start) as f32;
                let span = Span::new(start as f64, end as f64).unwrap();
                all.push(Hit { place: Some(all.len()), ..Hit::new("film".into(), span, mean) });
            }
        }
        rank(&mut all, usize::MAX);
        all
    }

    fn found(clips: &[f32], keeps: f64, most: usize) -> Vec<(f64, f64)> {
        let all = windows(clips);
        let stretches = stretches(&all, |hit| hit.score, AsGood { floor: 0.1, keeps }, most);
        stretches.iter().map(|hit| (hit.span.start(), hit.span.end())).collect()
    }

    #[test]
    fn a_film_that_is_one_scene_is_one_answer() {
        assert_eq!(found(&[0.5, 0.6, 0.4, 0.55, 0.5], 0.75, 10), [(0.0, 5.0)]);
    }

    #[test]
    fn a_moment_that_stands_out_stays_a_moment() {
        let found = found(&[0.1, 0.12, 0.6, 0.55, 0.1, 0.08, 0.1], 0.75, 1);
        assert_eq!(found, [(2.0, 4.0)]);
    }

    #[test]
    fn two_scenes_are_two_answers_that_do_not_overlap_and_keep_the_scores_of_their_best() {
        let clips = [0.6, 0.5, 0.55, 0.1, 0.1, 0.1, 0.4, 0.45];
        assert_eq!(found(&clips, 0.75, 2), [(0.0, 3.0), (6.0, 8.0)]);
        let all = windows(&clips);
        let best = stretches(&all, |hit| hit.score, AsGood { floor: 0.1, keeps: 0.75 }, 1);
        assert_eq!(best[0].score, 0.6);
        assert_eq!(all.iter().find(|hit| hit.place == best[0].place).unwrap().span, best[0].span, "its own place");
    }

    #[test]
    fn windows_are_ranked_by_their_score_and_grow_by_what_they_score_as_they_are() {
        let all = windows(&[0.9, 0.5]);
        let rule = AsGood { floor: 0.1, keeps: 0.9 };
        let spans = |found: Vec<Hit>| found.iter().map(|hit| (hit.span.start(), hit.span.end())).collect::<Vec<_>>();
        assert_eq!(spans(stretches(&all, |hit| hit.score, rule, 1)), [(0.0, 1.0)]);
        assert_eq!(spans(stretches(&all, |hit| 0.9 + hit.score / 10.0, rule, 1)), [(0.0, 2.0)]);
    }

    #[test]
    fn what_says_nothing_is_not_joined_and_nothing_has_no_stretches() {
        let found = found(&[0.05, 0.06, 0.05], 0.75, 1);
        assert_eq!(found, [(1.0, 2.0)], "below the floor nothing is as good");
        assert!(stretches(&[], |hit| hit.score, AsGood { floor: 0.0, keeps: 0.5 }, 3).is_empty());
        assert!(stretches(&windows(&[0.5]), |hit| hit.score, AsGood { floor: 0.0, keeps: 0.5 }, 0).is_empty());
    }
}
