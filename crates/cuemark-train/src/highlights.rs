//! What models of moments and highlights learn from, in clips of the features.

use cuemark_core::{Highlights, NormSpan, Span};
use cuemark_models::{ClipLabels, ClipStretch, JointTargets, RatedClip};

use crate::examples::Example;
use crate::footage::Clips;

/// Every window of the examples, and how good their clips are; each comes with the clips that the model sees of its video.
pub(crate) fn joint_targets(examples: &[(&Example, &Clips)]) -> JointTargets {
    let mut joint = JointTargets { windows: Vec::new(), clips: Vec::new() };
    for (example, clips) in examples {
        let own: Vec<Span> = example.span.into_iter().collect();
        let windows = if example.windows.is_empty() { &own } else { &example.windows };
        let norm = |span: &Span| {
            let at = |seconds: f64| (seconds - clips.start) / clips.covered;
            NormSpan::new(at(span.start()), at(span.end())).map(NormSpan::clipped)
        };
        joint.windows.push(windows.iter().filter_map(norm).collect());
        joint.clips.push(labels(windows, example.rated.as_ref(), clips));
    }
    joint
}

/// The ratings where there are any of these clips, else the first window.
fn labels(windows: &[Span], rated: Option<&Highlights>, clips: &Clips) -> ClipLabels {
    let count = clips.visual.rows();
    let seconds = clips.covered / count.max(1) as f64;
    let rated = rated.map(|rated| of_clips(rated, clips.start, seconds, count)).unwrap_or_default();
    if !rated.is_empty() {
        return ClipLabels::Rated(rated);
    }
    let (start, end) = windows.first().map_or((0.0, 0.0), |window| (window.start(), window.end()));
    // In seconds, not in fractions: a border between clips must stay one.
    let place = |seconds_at: f64| {
        let place = (seconds_at - clips.start) / seconds;
        if (place - place.round()).abs() < 1e-9 { place.round() } else { place }
    };
    ClipLabels::Window(ClipStretch::of(place(start), place(end), count))
}

/// Ratings of people's clips brought to the clips of the features: each takes those of the clip that its middle lies in. Ratings
/// past the last clip go nowhere.
fn of_clips(rated: &Highlights, start: f64, seconds: f64, count: usize) -> Vec<RatedClip> {
    let length = rated.clip_len.seconds();
    let grades = |clip: usize| {
        let place = ((start + (clip as f64 + 0.5) * seconds) / length) as usize;
        let row = rated.clips.iter().position(|known| *known == place)?;
        rated.ratings.get(row)
    };
    let rated = |clip: usize| {
        let grades = grades(clip).filter(|grades| !grades.is_empty())?;
        Some(RatedClip { clip, total: grades.iter().map(|grade| f32::from(*grade)).sum(), raters: grades.len() })
    };
    (0..count).filter_map(rated).collect()
}

#[cfg(test)]
mod tests {
    use cuemark_core::ClipLen;
    use cuemark_features::Features;

    use super::*;

    fn clips(rows: usize, seconds: f64) -> Clips {
        let visual = Features::new(rows, 1, vec![0.0; rows]).unwrap();
        Clips { visual, subtitle: None, audio: None, start: 0.0, covered: rows as f64 * seconds }
    }

    fn rated() -> Highlights {
        Highlights {
            clip_len: ClipLen::new(2.0).unwrap(),
            clips: vec![1, 2, 9],
            ratings: vec![vec![4, 1, 0], vec![2, 2, 2], vec![4, 4, 4]],
        }
    }

    fn found(labels: ClipLabels) -> Vec<(usize, f32)> {
        let ClipLabels::Rated(rated) = labels else { panic!("{labels:?}") };
        rated.iter().map(|rated| (rated.clip, rated.total)).collect()
    }

    #[test]
    fn ratings_meet_the_clips_of_the_features_whatever_their_length() {
        assert_eq!(found(labels(&[], Some(&rated()), &clips(5, 2.0))), [(1, 5.0), (2, 6.0)]);
        assert_eq!(found(labels(&[], Some(&rated()), &clips(6, 1.0))), [(2, 5.0), (3, 5.0), (4, 6.0), (5, 6.0)]);
    }

    #[test]
    fn without_ratings_the_first_window_says_which_clips_are_right() {
        let windows = [Span::new(26.0, 36.0).unwrap(), Span::new(0.0, 4.0).unwrap()];
        let stretch = ClipStretch { first: 13, last: 17, touched: 17 };
        assert_eq!(labels(&windows, None, &clips(75, 2.0)), ClipLabels::Window(stretch));
        // Rated clips that all lie past the features count as none.
        let far = Highlights { clips: vec![90], ratings: vec![vec![4, 4, 4]], ..rated() };
        assert_eq!(labels(&windows, Some(&far), &clips(75, 2.0)), ClipLabels::Window(stretch));
    }
}
