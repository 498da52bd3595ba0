//! The protocols on the splits of `fixtures/protocols/splits`, against what SciPy and plain Python find in them.
#![allow(clippy::unwrap_used)] // Helpers of tests fail as tests do.

use std::collections::{BTreeMap, BTreeSet};

use cuemark_core::{NormSpan, Progress, Split, Truth};
use cuemark_protocols::baselines::{self, Training, score_first};
use cuemark_protocols::kde::{BinnedKde, Kde};
use cuemark_protocols::splits::{self, CdOptions, Centre, CentreOptions, Found, OodCut, Ties};
use cuemark_testkit::fixture;
use serde::Deserialize;

const THRESHOLDS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

/// What `make.py` found.
#[derive(Deserialize)]
struct Expected {
    pairs: usize,
    density: Vec<f64>,
    mode: [f64; 2],
    predict_all: BTreeMap<String, Vec<f64>>,
    bias_mode: BTreeMap<String, Vec<f64>>,
    ood_ties_to_ood: BTreeSet<String>,
    ood_ties_to_iid: BTreeSet<String>,
    centre_by_video: f64,
    centre_by_pair: f64,
}

fn load() -> (Vec<Split>, Expected) {
    let folder = fixture("protocols/splits");
    let expected = std::fs::read(folder.join("expected.json")).unwrap();
    (splits::read_folder(&folder, &Progress::new()).unwrap(), serde_json::from_slice(&expected).unwrap())
}

fn merged(splits: &[Split]) -> Vec<Truth> {
    splits.iter().flat_map(|split| split.queries.clone()).collect()
}

fn spans(truths: &[Truth]) -> Vec<NormSpan> {
    truths.iter().map(|truth| NormSpan::of(truth.moments[0].moment.span, truth.duration().unwrap()).unwrap()).collect()
}

#[test]
fn densities_are_scipys() {
    let (splits, expected) = load();
    let points = spans(&merged(&splits));
    assert_eq!(points.len(), expected.pairs);
    for (ours, theirs) in
        Kde::fit(&points).unwrap().density(&points, &Progress::new()).unwrap().iter().zip(&expected.density)
    {
        assert!((ours - theirs).abs() <= 1e-10 * theirs, "{ours} {theirs}");
    }
    let binned = BinnedKde::fit(&points, 512).unwrap();
    for (ours, theirs) in binned.density(&points).iter().zip(&expected.density) {
        assert!((ours - theirs).abs() <= binned.error_bound(), "{ours} {theirs}");
    }
}

#[test]
fn baselines_score_what_an_independent_count_says() {
    let (splits, expected) = load();
    let train = splits.iter().find(|split| split.name == "train").unwrap();
    let clipped: Vec<NormSpan> = spans(&train.queries).into_iter().map(NormSpan::clipped).collect();
    let mode = Kde::fit(&clipped).unwrap().mode();
    assert_eq!([mode.start(), mode.end()], expected.mode);
    let training = Training { truths: &train.queries, first_verb: &|_| None };
    for (name, rows) in
        [("predict-all", &expected.predict_all), ("bias-mode", &expected.bias_mode), ("bias-verb", &expected.bias_mode)]
    {
        let baseline = baselines::find(name).unwrap().fit(&training).unwrap();
        for split in &splits {
            let predictions = baseline.predict(&split.queries, 1, 0).unwrap();
            let scores = score_first(&predictions, &split.queries, &THRESHOLDS).unwrap();
            for (score, theirs) in scores.iter().zip(&rows[&split.name]) {
                assert!((score.discounted - theirs).abs() < 1e-12, "{name} on {} at {}", split.name, score.threshold);
            }
        }
    }
}

#[test]
fn the_least_dense_pairs_take_their_videos_along() {
    let (splits, expected) = load();
    for (ties, theirs) in [(Ties::Ood, &expected.ood_ties_to_ood), (Ties::Iid, &expected.ood_ties_to_iid)] {
        let options = CdOptions { ood_cut: OodCut::Preliminary, ties, ..CdOptions::default() };
        let made = splits::cd(&merged(&splits), &options, &Progress::new()).unwrap();
        let ours: BTreeSet<String> = made.splits[3].queries.iter().map(|truth| truth.query.id.to_string()).collect();
        assert_eq!(&ours, theirs, "{ties:?}");
        assert!(splits::shared_videos(&made.splits).iter().all(|pair| pair.videos == 0));
    }
}

#[test]
fn centres_are_cut_where_an_independent_count_cuts_them() {
    let (splits, expected) = load();
    for (centre, theirs) in [(Centre::Video, expected.centre_by_video), (Centre::Pair, expected.centre_by_pair)] {
        let made = splits::centre(&merged(&splits), &CentreOptions { centre, seed: 0 }).unwrap();
        let Found::Centre(found) = made.found else { panic!("centre finds what centre finds") };
        assert!((found.threshold - theirs).abs() < 1e-12, "{centre:?}");
    }
}
