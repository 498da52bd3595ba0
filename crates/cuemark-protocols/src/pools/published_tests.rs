//! What words alone make of the published pools.

use cuemark_core::{Span, Truth, Video};
use cuemark_data::{ReadOptions, TruthFormat, read_truth};
use cuemark_formats::Source;
use cuemark_text::similarity::Tfidf;

use super::calibration::{Agreement, PoolCalibration, by_known_pools};
use super::quality::{Quality, quality};
use super::{PoolReport, PoolSettings, make};

/// The published queries, each with its own moment only.
fn without_pools(known: &[Truth]) -> Vec<Truth> {
    let own = |truth: &Truth| {
        let spans: Vec<Span> = truth.moments.iter().take(1).map(|graded| graded.moment.span).collect();
        let video = truth.video.clone().unwrap_or_else(|| Video::new("", 0.0));
        Truth::single(truth.query.clone(), video, spans)
    };
    known.iter().map(own).collect()
}

/// Calibrates on published pools, builds our own, and compares; only queries all of whose positives are known count.
fn check(path: camino::Utf8PathBuf, videos: usize, cap: usize) -> (Agreement, PoolReport, Quality) {
    let format: TruthFormat = "mvmr".parse().unwrap();
    let known = read_truth(&Source::new(path), Some(format), &ReadOptions::default()).unwrap().queries;
    let queries = without_pools(&known);
    let texts: Vec<&str> = queries.iter().map(|truth| truth.query.text.as_str()).collect();
    let words = Tfidf::new(&texts, &texts);
    let (thresholds, calibration) = by_known_pools(&queries, &known, &words, cap, 0.01).unwrap();
    let PoolCalibration::KnownPools(agreement) = calibration else { panic!("{calibration:?}") };
    let settings = PoolSettings { videos, positives: cap.min(videos), thresholds, calibration, seed: 1 };
    let pools = make(&queries, &words, None, settings).unwrap();
    assert!(pools.truths.iter().all(|truth| truth.pool.as_ref().is_some_and(|pool| pool.len() == videos)));
    let complete: Vec<Truth> = known.into_iter().filter(|truth| truth.moments.len() < cap).collect();
    let found = quality(&pools.truths, &complete);
    #[allow(clippy::print_stderr)] // A person who runs this wants the figures.
    {
        eprintln!("{thresholds:?}\n{agreement:?}\n{:?}\n{found:?}", pools.report);
    }
    (agreement, pools.report, found)
}

#[test]
fn a_small_file_of_pools_calibrates_words() {
    let (agreement, report, found) = check(cuemark_testkit::fixture("protocols/pools/mvmr.json"), 3, 5);
    assert_eq!((agreement.precision, agreement.recall, agreement.positives_lost), (1.0, 1.0, 0.0));
    // The window is opened in two videos and nothing else happens twice.
    assert_eq!((report.kept, report.positives), (6, vec![4, 2, 0]));
    assert_eq!((found.precision, found.recall, found.false_negatives), (1.0, 1.0, 0.0));
}

#[test]
fn words_alone_find_some_of_the_published_positives() {
    let Some(path) = cuemark_testkit::shared("data/mvmr/charades_test_mvmr.json.gz") else { return };
    let (agreement, report, found) = check(path, 50, 5);
    // 1,540 of the 3,720 published pools hold five positives and may have left others out.
    assert_eq!(agreement.complete_queries, 3720 - 1540);
    // 440 + 2·238 + 3·205 + 4·1,540 positives beside the own videos.
    assert_eq!(agreement.known_positives, 7691);
    // Floors: words do not see that `turns on` and `flicks the switch` are one thing, and the published pools also
    // went through a filter on what the videos show; but about as many videos should pass (published mean: 3.07).
    assert!(agreement.precision > 0.1 && agreement.recall > 0.25, "{agreement:?}");
    assert!((report.mean_positives - 3.07).abs() < 0.5, "{report:?}");
    assert!(report.kept as f64 > 0.9 * report.queries as f64, "{report:?}");
    assert!(found.false_negatives < 0.01, "{found:?}");
}
