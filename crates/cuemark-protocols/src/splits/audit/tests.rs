//! The audit on splits whose answers are known, and on the published Charades-CD.

use cuemark_core::Progress;
use cuemark_formats::Overwrite;

use super::*;
use crate::splits::{CdOptions, cd, new_split};
use crate::testing::{charades_cd, habits};

fn discounted(report: &AuditReport, baseline: &str, split: &str) -> f64 {
    let row = report.baselines.iter().find(|row| row.baseline == baseline && row.split == split).unwrap();
    row.scores[0].discounted
}

#[test]
fn an_audit_of_charades_cd_shows_what_the_papers_show() {
    let Some(files) = charades_cd() else { return };
    let splits: Vec<Split> =
        ["train", "val", "test-iid", "test-ood"].iter().map(|name| new_split(name, files[name].clone())).collect();
    let report = audit(&splits, 0, &Progress::new()).unwrap();
    assert!(report.shared_videos.iter().all(|pair| pair.videos == 0));
    assert!((discounted(&report, "bias-mode", "test-iid") - 0.207).abs() < 0.002);
    assert!((discounted(&report, "bias-mode", "test-ood") - 0.068).abs() < 0.002);
    let gap = |name: &str| report.gaps.iter().find(|gap| gap.baseline == name).unwrap();
    assert!(gap("bias-mode").low > 0.1 && gap("bias-draw").gap < 0.5 * gap("bias-mode").gap, "{:?}", report.gaps);
    let from_train = |right: &str| report.distances.iter().find(|d| d.left == "train" && d.right == right).unwrap();
    let (iid, ood) = (from_train("test-iid"), from_train("test-ood"));
    assert!(iid.p_value > 0.01 && ood.p_value <= 0.001 && ood.energy > 4.0 * iid.energy, "{iid:?} {ood:?}");
    let density = |n: usize| report.places[n].training_density.unwrap().median;
    assert!(density(3) < 0.5 * density(2), "test-ood lies where training is sparse");
}

#[test]
fn an_audit_of_a_made_split_finds_the_habit() {
    let made = cd(&habits(300), &CdOptions { ood_share: 0.1, ..CdOptions::default() }, &Progress::new()).unwrap();
    let report = audit(&made.splits, 0, &Progress::new()).unwrap();
    assert!(discounted(&report, "bias-mode", "test-iid") > 0.3);
    assert!(discounted(&report, "bias-mode", "test-ood") < 0.01);
    let gap = report.gaps.iter().find(|gap| gap.baseline == "bias-mode").unwrap();
    assert!(gap.low > 0.2 && gap.low < gap.gap && gap.gap < gap.high, "{gap:?}");
    let verbs: Vec<&str> = report.verbs.top.iter().map(|row| row.verb.as_str()).collect();
    assert_eq!(verbs, ["close", "open"], "as frequent as each other, so by the alphabet");
    assert_eq!(report.verbs.coverage, [1.0; 4]);
    let ood = report.distances.iter().find(|d| d.left == "train" && d.right == "test-ood").unwrap();
    assert!(ood.p_value <= 0.001 && ood.left_moments == 240 && ood.right_moments == 30, "{ood:?}");
}

#[test]
fn one_distribution_cut_in_two_shows_no_gap() {
    let truths: Vec<_> =
        habits(400).into_iter().filter(|truth| !truth.video.as_ref().unwrap().id.as_str().ends_with('9')).collect();
    let part =
        |n: usize| truths.iter().enumerate().filter(|(i, _)| i / 2 % 3 == n).map(|(_, truth)| truth.clone()).collect();
    let splits = [new_split("train", part(0)), new_split("test-iid", part(1)), new_split("test-ood", part(2))];
    let report = audit(&splits, 0, &Progress::new()).unwrap();
    for gap in &report.gaps {
        assert!(gap.low <= 0.0 && gap.high >= 0.0, "{gap:?}");
    }
    assert!(report.distances.iter().all(|distance| distance.p_value > 0.01), "{:?}", report.distances);
}

#[test]
fn without_a_training_split_the_rest_is_still_audited() {
    let report = audit(&[new_split("test", habits(20))], 0, &Progress::new()).unwrap();
    assert!(report.baselines.is_empty() && report.gaps.is_empty() && report.distances.is_empty());
    assert!(report.places[0].training_density.is_none());
    assert_eq!(report.splits[0].pairs, 40);
}

#[test]
fn pictures_are_svg_and_never_overwrite() {
    let folder = tempfile::tempdir().unwrap();
    let folder = camino::Utf8Path::from_path(folder.path()).unwrap();
    let splits = [new_split("train", habits(30)), new_split("test", Vec::new())];
    let files = draw(&splits, folder, Overwrite::Never).unwrap();
    let names: Vec<&str> = files.iter().map(|file| file.file_name().unwrap()).collect();
    let expected = [
        "moments.svg",
        "lengths.svg",
        "length-given-start.svg",
        "verbs.svg",
        "verb-moments-train.svg",
        "verb-moments-test.svg",
    ];
    assert_eq!(names, expected);
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{file}");
    }
    let verbs = std::fs::read_to_string(folder.join("verbs.svg")).unwrap();
    assert!(verbs.contains("open") && verbs.contains("2 verbs cover 100.0 % of queries"));
    assert!(draw(&splits, folder, Overwrite::Never).is_err());
}
