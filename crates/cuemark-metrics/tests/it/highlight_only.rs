//! TVSum and YouTube Highlights as their evaluators score them, by domain, on numbers that were worked out by hand.

use cuemark_core::{ClipLen, Extra, Highlights, Predictions, Progress, Query, QueryPredictions, Truth, Video};
use cuemark_metrics::{Evaluation, Overrides, Plan, Preset, evaluate};

/// A video of one domain, every clip of which was graded, and what a method says of its clips.
struct Rated {
    domain: &'static str,
    grades: Vec<Vec<u8>>,
    saliency: Vec<f64>,
}

fn evaluated(preset: Preset, videos: &[Rated]) -> Evaluation {
    let truth = |(n, rated): (usize, &Rated)| Truth {
        video: Some(Video::new(format!("v{n}").as_str(), 2.0 * rated.grades.len() as f64)),
        kind: Some(rated.domain.to_owned()),
        highlights: Some(Box::new(Highlights {
            clip_len: ClipLen::new(2.0).unwrap(),
            clips: (0..rated.grades.len()).collect(),
            ratings: rated.grades.clone(),
        })),
        ..Truth::bare(Query { id: n.to_string().as_str().into(), text: rated.domain.to_owned() })
    };
    let list = |(n, rated): (usize, &Rated)| QueryPredictions {
        query: n.to_string().as_str().into(),
        ranked: Vec::new(),
        saliency: Some(rated.saliency.clone()),
        extra: Extra::default(),
    };
    let truths: Vec<Truth> = videos.iter().enumerate().map(truth).collect();
    let predictions = Predictions::any(videos.iter().enumerate().map(list).collect());
    evaluate(&Plan::preset(preset, None, Overrides::default()), &truths, &predictions, &Progress::new()).unwrap()
}

fn value(evaluation: &Evaluation, name: &str) -> f64 {
    evaluation.columns.iter().find(|column| column.name.to_string() == name).unwrap().mean().unwrap()
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 1e-12
}

fn one(labels: &[u8]) -> Vec<Vec<u8>> {
    labels.iter().map(|label| vec![*label]).collect()
}

/// Ranked 0, 1, 2 …
fn in_order(clips: usize) -> Vec<f64> {
    (0..clips).map(|clip| -(clip as f64)).collect()
}

/// BK: one rater, grades 4 0 3 0 1 2, median 1: the first five are hits 1 0 1 0 0 (clip 5 is a hit too, but sixth): 19/24.
/// VT: everything the same grade, nothing above the median: 0. The mean over domains is the mean over videos here.
#[test]
fn tvsum_looks_at_five_clips_and_each_raters_median() {
    let found = evaluated(
        Preset::Tvsum,
        &[
            Rated { domain: "BK", grades: one(&[4, 0, 3, 0, 1, 2]), saliency: in_order(6) },
            Rated { domain: "VT", grades: one(&[2; 7]), saliency: in_order(7) },
        ],
    );
    assert!(near(value(&found, "HL-AP@5/type=BK"), 19.0 / 24.0));
    assert!(near(value(&found, "HL-AP@5/type=VT"), 0.0));
    assert!(near(value(&found, "HL-AP@5"), 19.0 / 48.0));
}

/// dog: hits 1 0 1 0 0 (19/24) and a perfect video (1); surfing: hits 0 1: 1 · (0 + 1/2) / 2 = 1/4, and a video without a highlight, which
/// lighthouse leaves out and UniVTG counts as 0. Over domains: (43/48 + 1/4) / 2 without it, (43/48 + 1/8) / 2 with it.
#[test]
fn youtube_highlights_looks_at_all_clips_and_says_the_mean_over_domains() {
    let found = evaluated(
        Preset::YoutubeHighlights,
        &[
            Rated { domain: "dog", grades: one(&[1, 0, 1, 0, 0]), saliency: in_order(5) },
            Rated { domain: "dog", grades: one(&[1, 1, 0]), saliency: in_order(3) },
            Rated { domain: "surfing", grades: one(&[0, 1]), saliency: in_order(2) },
            Rated { domain: "surfing", grades: one(&[0, 0]), saliency: in_order(2) },
        ],
    );
    assert!(near(value(&found, "HL-AP/some/type=dog"), 43.0 / 48.0));
    assert!(near(value(&found, "HL-AP/some/type=surfing"), 1.0 / 4.0));
    assert!(near(value(&found, "HL-AP/type=surfing"), 1.0 / 8.0));
    let said = ["HL-AP/some: mean over 2 domains 57.29", "HL-AP: mean over 2 domains 51.04"];
    assert!(said.iter().all(|line| found.notes.iter().any(|note| note == line)), "{:?}", found.notes);
}
