//! The protocols on the published files, read by the ordinary readers, against what was published about them.

use cuemark_core::Progress;
use cuemark_data::{Dataset, ReadOptions};
use cuemark_protocols::splits::{
    self, CdOptions, CentreOptions, MadeSplits, SplitFindings, StandardOptions, StandardTest, counts, shared_videos,
};
use cuemark_testkit::shared;

fn load(name: &str, folder: &str) -> Option<Dataset> {
    let root = shared(&format!("data/{folder}"))?;
    Some(
        cuemark_data::load(cuemark_data::find(name).unwrap(), &root, &ReadOptions::default(), &Progress::new())
            .unwrap(),
    )
}

fn sizes(made: &MadeSplits) -> Vec<(String, usize, usize)> {
    counts(&made.splits).into_iter().map(|split| (split.name, split.videos, split.pairs)).collect()
}

fn overlap(made: &MadeSplits) -> usize {
    shared_videos(&made.splits).iter().map(|pair| pair.videos).sum()
}

#[test]
fn centre_thresholds_by_video_are_the_published_ones() {
    // ActivityNet's was published as 0.55 and does not come back: 0.586.
    for (name, threshold) in [("charades-sta", 0.83), ("youcook2", 0.61), ("activitynet-captions", 0.586)] {
        let Some(dataset) = load(name, name) else { return };
        let made = splits::centre(&dataset.all().queries, &CentreOptions::default()).unwrap();
        let SplitFindings::Centre(found) = &made.found else { panic!("centre finds what centre finds") };
        let digits = if threshold == 0.586 { 1000.0 } else { 100.0 };
        assert_eq!((found.threshold * digits).round() / digits, threshold, "{name}: {}", found.threshold);
        assert_eq!(overlap(&made), 0, "{name}");
    }
}

#[test]
fn standard_splits_add_a_validation_split_where_none_was_published() {
    let Some(charades) = load("charades-sta", "charades-sta") else { return };
    let made = splits::standard("charades-sta", &charades.splits, &StandardOptions::default()).unwrap();
    let [train, val, test] = sizes(&made).try_into().unwrap();
    assert_eq!((train.1 + val.1, train.2 + val.2), (5338, 12_408));
    assert_eq!(val.1, 533, "a tenth of the videos");
    assert_eq!(test, ("test".to_owned(), 1334, 3720));
    assert_eq!(overlap(&made), 0);

    let Some(youcook2) = load("youcook2", "youcook2") else { return };
    let made = splits::standard("youcook2", &youcook2.splits, &StandardOptions::default()).unwrap();
    assert_eq!((sizes(&made)[1].1, sizes(&made)[2].2, overlap(&made)), (133, 3492, 0));
}

#[test]
fn activitynet_is_tested_on_val_2_or_on_both() {
    let name = "activitynet-captions";
    let Some(dataset) = load(name, name) else { return };
    let usual = splits::standard(name, &dataset.splits, &StandardOptions::default()).unwrap();
    let pairs: Vec<usize> = sizes(&usual).into_iter().map(|(_, _, pairs)| pairs).collect();
    assert_eq!(pairs, [37_421, 17_505, 17_031]);
    // The two validation files annotate the same videos; the manifest says so.
    assert_eq!(overlap(&usual), 4885);
    let options = StandardOptions { test: StandardTest::Merged, seed: 0 };
    let merged = splits::standard(name, &dataset.splits, &options).unwrap();
    assert_eq!((sizes(&merged)[2].2, overlap(&merged)), (17_505 + 17_031, 0));
    let ids: std::collections::HashSet<&str> = merged.splits[2].queries.iter().map(|t| t.query.id.as_str()).collect();
    assert_eq!(ids.len(), 17_505 + 17_031, "ids stay unique");
}

#[test]
fn long_moments_of_activitynet_stay_out_of_test_ood() {
    let name = "activitynet-captions";
    let Some(dataset) = load(name, name) else { return };
    let options = CdOptions { max_ood_length: Some(0.5), ..CdOptions::default() };
    let made = splits::cd(&dataset.all().queries, &options, &Progress::new()).unwrap();
    let SplitFindings::Cd(found) = &made.found else { panic!("cd finds what cd finds") };
    assert!((found.ood_share - 0.2).abs() < 1e-3, "{found:?}");
    assert_eq!((sizes(&made)[1].1, sizes(&made)[2].1), (746, 746), "as published");
    let longest =
        made.splits[3].queries.iter().map(|truth| truth.moments[0].moment.span.len() / truth.duration().unwrap());
    // Dividing first and subtracting first differ in the last bit at exactly one half.
    assert!(longest.fold(0.0, f64::max) <= 0.5 + 1e-12);
    assert_eq!(overlap(&made), 0);
}

#[test]
fn a_dataset_without_its_training_file_is_refused_by_name() {
    let Some(tvr) = load("tvr", "tvr") else { return };
    let error = splits::standard("tvr", &tvr.splits, &StandardOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "there is no split called `train`");
}
