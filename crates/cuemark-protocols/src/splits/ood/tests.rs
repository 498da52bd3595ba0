//! The `cd` protocol against the published Charades-CD, and against its own rules.

use std::collections::HashSet;

use super::*;
use crate::splits::{MadeSplits, shared_videos};
use crate::testing::{charades_cd, habits, truth};
use cuemark_core::{Progress, QueryId};

fn cd(truths: &[Truth], options: &CdOptions) -> Result<MadeSplits> {
    super::cd(truths, options, &Progress::new())
}

fn ids(made: &MadeSplits, split: usize) -> HashSet<&QueryId> {
    made.splits[split].queries.iter().map(|truth| &truth.query.id).collect()
}

fn found(made: &MadeSplits) -> &CdFound {
    let SplitFindings::Cd(found) = &made.found else { panic!("cd finds what cd finds") };
    found
}

#[test]
fn the_published_test_ood_of_charades_cd_comes_back() {
    let Some(cd_files) = charades_cd() else { return };
    let merged: Vec<Truth> =
        ["train", "val", "test-iid", "test-ood"].iter().flat_map(|name| cd_files[name].clone()).collect();
    let options = CdOptions { ood_cut: OodCut::Preliminary, ..CdOptions::default() };
    let made = cd(&merged, &options).unwrap();
    let published: HashSet<&QueryId> = cd_files["test-ood"].iter().map(|truth| &truth.query.id).collect();
    let ours = ids(&made, 3);
    let common = ours.intersection(&published).count() as f64;
    let (recall, precision) = (common / published.len() as f64, common / ours.len() as f64);
    assert!(recall >= 0.86 && precision >= 0.86, "recall {recall}, precision {precision}");
    // The same rule written with SciPy gives 3,369 pairs.
    assert_eq!((found(&made).marked, ours.len()), (3226, 3369));
    assert!(shared_videos(&made.splits).iter().all(|pair| pair.videos == 0));
    let videos: Vec<usize> = made.splits.iter().map(|split| split.videos.len()).collect();
    assert_eq!((videos[1], videos[2]), (333, 333), "as published");
}

#[test]
fn the_final_share_of_charades_cd_is_the_one_asked_for() {
    let Some(cd_files) = charades_cd() else { return };
    let merged: Vec<Truth> =
        ["train", "val", "test-iid", "test-ood"].iter().flat_map(|name| cd_files[name].clone()).collect();
    for (share, ties) in [(0.2, Ties::Ood), (0.1, Ties::Iid)] {
        let made = cd(&merged, &CdOptions { ood_share: share, ties, ..CdOptions::default() }).unwrap();
        // A video carries a handful of pairs, so the share can be met almost exactly.
        assert!((found(&made).ood_share - share).abs() < 5e-4, "{:?}", found(&made));
    }
}

#[test]
fn the_moments_in_unusual_places_are_test_ood() {
    // Every tenth video of `habits` breaks the habit.
    let made = cd(&habits(100), &CdOptions { ood_share: 0.1, ..CdOptions::default() }).unwrap();
    let videos: Vec<&str> = made.splits[3].videos.iter().map(|video| video.id.as_str()).collect();
    assert_eq!(videos, ["v9", "v19", "v29", "v39", "v49", "v59", "v69", "v79", "v89", "v99"]);
    let sizes: Vec<usize> = made.splits.iter().map(|split| split.videos.len()).collect();
    assert_eq!(sizes, [80, 5, 5, 10]);
    assert!(shared_videos(&made.splits).iter().all(|pair| pair.videos == 0));
}

#[test]
fn queries_stay_whole_and_in_order_whatever_the_seed() {
    let truths = habits(60);
    let made = |seed| cd(&truths, &CdOptions { seed, ..CdOptions::default() }).unwrap();
    let (one, same, other) = (made(1), made(1), made(2));
    assert_eq!(ids(&one, 1), ids(&same, 1));
    assert_ne!(ids(&one, 1), ids(&other, 1));
    assert_eq!(ids(&one, 3), ids(&other, 3), "the seed has no say in what is unusual");
    let all: HashSet<&QueryId> = (0..4).flat_map(|split| ids(&one, split)).collect();
    assert_eq!(all.len(), truths.len());
}

/// Forty videos with two usual moments each, and one with one usual and one unusual moment.
fn with_a_tie() -> Vec<Truth> {
    let mut truths: Vec<Truth> = (0..80)
        .map(|n| {
            let wobble = 0.02 * f64::from(n % 9);
            truth(&n.to_string(), "someone waits", &format!("v{}", n / 2), 10.0, 1.0 + wobble, 3.0 + wobble)
        })
        .collect();
    truths.push(truth("usual", "someone waits", "tied", 10.0, 1.05, 3.05));
    truths.push(truth("unusual", "someone waits", "tied", 10.0, 7.0, 9.9));
    truths
}

#[test]
fn a_tied_video_goes_where_it_is_sent() {
    let options =
        |ties| CdOptions { ood_share: 1.0 / 82.0, ood_cut: OodCut::Preliminary, ties, ..CdOptions::default() };
    let made = cd(&with_a_tie(), &options(Ties::Ood)).unwrap();
    assert_eq!((found(&made).marked, found(&made).unmarked_but_taken), (1, 1));
    assert_eq!(made.splits[3].queries.len(), 2);
    let refused = cd(&with_a_tie(), &options(Ties::Iid)).unwrap_err();
    assert_eq!(refused.to_string(), "test-ood needs 1 videos, 0 are left");
}

#[test]
fn a_video_with_a_long_moment_is_never_test_ood() {
    let mut truths = habits(100);
    truths.push(truth("long", "someone naps", "v9", 10.0, 0.5, 9.5));
    let made = cd(&truths, &CdOptions { ood_share: 0.1, max_ood_length: Some(0.5), ..CdOptions::default() }).unwrap();
    assert_eq!(found(&made).long_videos, 1);
    assert!(made.splits[3].videos.iter().all(|video| video.id.as_str() != "v9"));
    assert!(made.splits[..3].iter().any(|split| split.queries.iter().any(|truth| truth.query.id.as_str() == "long")));
}

#[test]
fn shares_outside_0_to_1_and_sets_too_small_are_refused() {
    for share in [0.0, 1.0, -0.1, f64::NAN] {
        let refused = cd(&habits(60), &CdOptions { ood_share: share, ..CdOptions::default() });
        assert!(matches!(refused, Err(ProtocolError::Option { .. })), "{share}");
    }
    assert!(matches!(cd(&habits(3), &CdOptions::default()), Err(ProtocolError::TooFew { .. })));
    assert!(matches!(cd(&[], &CdOptions::default()), Err(ProtocolError::NoMoments { .. })));
}
