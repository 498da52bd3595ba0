//! The protocols on the splits of `fixtures/protocols/splits`, against what SciPy and plain Python find in them.

use std::collections::BTreeSet;

use cuemark_core::{NormSpan, Progress, Split, Truth};
use cuemark_protocols::kde::{BinnedKde, Kde};
use cuemark_protocols::splits::{self, CdOptions, Centre, CentreOptions, OodCut, SplitFindings, Ties};
use cuemark_testkit::fixture;
use serde::Deserialize;

/// What `make.py` found.
#[derive(Deserialize)]
struct Expected {
    pairs: usize,
    density: Vec<f64>,
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
        let SplitFindings::Centre(found) = made.found else { panic!("centre finds what centre finds") };
        assert!((found.threshold - theirs).abs() < 1e-12, "{centre:?}");
    }
}
