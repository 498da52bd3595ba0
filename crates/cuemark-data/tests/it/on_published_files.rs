//! Every reader on the published files, where a checkout has them beside it. The numbers are those of the files' own
//! description and of the papers; where neither has one, an independent count in another language gave it.

use std::collections::{HashMap, HashSet};

use cuemark_core::RowFault::{Empty, EndsAfterVideo, Repeated, Reversed, StartsAfterVideo};
use cuemark_core::{NormSpan, Progress, RowFault, Split, VideoId};
use cuemark_data::check::{CheckVerdict, check};
use cuemark_data::{
    Dataset, ReadOptions, complete_pools, find, load, read_ratings, read_reannotations, read_truth, stats,
};
use cuemark_formats::Source;
use cuemark_testkit::shared;

use crate::folders::faults;

fn published(name: &str, folder: &str) -> Option<Dataset> {
    let root = shared(folder)?;
    Some(load(find(name).unwrap(), &root, &ReadOptions::default(), &Progress::new()).unwrap())
}

/// Dataset, its folder, the splits that are not there.
const FOLDERS: &[(&str, &str, &[&str])] = &[
    ("charades-sta", "data/charades-sta", &[]),
    ("charades-cd", "data/charades-cd", &[]),
    ("activitynet-captions", "data/activitynet-captions", &[]),
    ("tacos", "data/tacos/full", &[]),
    ("tacos-2dtan", "data/tacos/2dtan", &[]),
    ("tacos-raw", "data/tacos/raw-txt", &[]),
    ("didemo", "data/didemo", &["train"]),
    ("youcook2", "data/youcook2", &[]),
    ("msr-vtt", "data/msr-vtt", &[]),
    ("tvr", "data/tvr", &["train"]),
    ("tvr-ranking", "data/tvr-ranking", &["train-top1", "train-top20", "train-top40", "val", "test"]),
    ("qvhighlights", "data/qvhighlights", &[]),
    ("mvmr", "data/mvmr", &["activitynet-test"]),
    ("human-reannotations", "data/human-reannotations", &[]),
];

#[test]
fn every_published_count_and_average_is_met() {
    for (name, folder, absent) in FOLDERS {
        let Some(dataset) = published(name, folder) else { return };
        assert_eq!(dataset.absent.iter().map(|file| file.split).collect::<Vec<_>>(), *absent, "{name}");
        let report = check(&dataset);
        assert!(report.is_ok(), "{name}: {report:#?}");
        for figure in report.splits.iter().chain(&report.overall).flat_map(|split| &split.figures) {
            assert_eq!(figure.verdict, CheckVerdict::Ok, "{name}: {figure:?}");
        }
        assert!(report.sides.iter().all(|side| side.verdict == CheckVerdict::Ok), "{name}: {:#?}", report.sides);
    }
}

#[test]
fn the_faults_of_the_published_rows_are_all_counted() {
    type SplitFaults = (&'static str, &'static [(RowFault, usize)]);
    let counted: &[(&str, &str, &[SplitFaults])] = &[
        // 2,367 rows end after the video: 1,802 + 562 and the 3 that also start after it.
        (
            "charades-sta",
            "data/charades-sta",
            &[
                ("train", &[(Reversed, 4), (StartsAfterVideo, 3), (EndsAfterVideo, 1802)]),
                ("test", &[(EndsAfterVideo, 562)]),
            ],
        ),
        // 2,286: 1,652 + 135 + 151 + 345 + 3.
        (
            "charades-cd",
            "data/charades-cd",
            &[
                ("train", &[(EndsAfterVideo, 1652)]),
                ("val", &[(EndsAfterVideo, 135)]),
                ("test-iid", &[(EndsAfterVideo, 151)]),
                ("test-ood", &[(StartsAfterVideo, 3), (EndsAfterVideo, 345)]),
            ],
        ),
        // 506: 261 + 134 + 111.
        (
            "activitynet-captions",
            "data/activitynet-captions",
            &[
                ("train", &[(Reversed, 2), (Empty, 2), (EndsAfterVideo, 261)]),
                ("val_1", &[(EndsAfterVideo, 134)]),
                ("val_2", &[(EndsAfterVideo, 111)]),
            ],
        ),
        // 53 late and 2,659 repeated in all.
        (
            "tacos",
            "data/tacos/full",
            &[
                ("train", &[(EndsAfterVideo, 48), (Repeated, 1448)]),
                ("val", &[(Repeated, 575)]),
                ("test", &[(EndsAfterVideo, 5), (Repeated, 636)]),
            ],
        ),
        // 48 late and 2,284 repeated in all.
        (
            "tacos-2dtan",
            "data/tacos/2dtan",
            &[
                ("train", &[(EndsAfterVideo, 43), (Repeated, 1201)]),
                ("val", &[(Repeated, 516)]),
                ("test", &[(EndsAfterVideo, 5), (Repeated, 567)]),
            ],
        ),
        ("youcook2", "data/youcook2", &[("train", &[]), ("val", &[])]),
        (
            "msr-vtt",
            "data/msr-vtt",
            &[
                ("train", &[(Repeated, 9822)]),
                ("val", &[(Repeated, 746)]),
                ("test", &[(Repeated, 122)]),
                ("molef-val", &[(EndsAfterVideo, 20), (Repeated, 462)]),
                ("jsfusion-test", &[]),
            ],
        ),
        ("tvr", "data/tvr", &[("val", &[(Repeated, 16)]), ("test-public", &[])]),
        ("qvhighlights", "data/qvhighlights", &[("train", &[]), ("val", &[]), ("test", &[]), ("test-release", &[])]),
        ("didemo", "data/didemo", &[("val", &[]), ("test", &[])]),
        // 5 of the queries' own moments and 11 of the others.
        ("mvmr", "data/mvmr", &[("charades-test", &[]), ("tacos-test", &[(EndsAfterVideo, 16), (Repeated, 567)])]),
    ];
    for (name, folder, rows) in counted {
        let Some(dataset) = published(name, folder) else { return };
        let found: Vec<_> = dataset.splits.iter().map(|split| (split.name.as_str(), faults(split))).collect();
        let wanted: Vec<_> = rows.iter().map(|(split, faults)| (*split, faults.to_vec())).collect();
        assert_eq!(found, wanted, "{name}");
    }
}

/// By how much rows end after their videos, in seconds, at most.
fn latest_end(splits: &[&Split]) -> f64 {
    let overhang = |split: &&Split| {
        let late = split.queries.iter().filter_map(|truth| {
            let duration = truth.duration()?;
            truth.moments.iter().map(|graded| graded.moment.span.end() - duration).reduce(f64::max)
        });
        late.reduce(f64::max).unwrap_or(0.0)
    };
    splits.iter().map(overhang).fold(0.0, f64::max)
}

#[test]
fn charades_cd_holds_the_moments_of_charades_sta_and_no_video_twice() {
    let Some(sta) = published("charades-sta", "data/charades-sta") else { return };
    let Some(cd) = published("charades-cd", "data/charades-cd") else { return };
    let moments = |dataset: &Dataset| {
        let mut rows: Vec<(String, u64, u64)> = dataset
            .splits
            .iter()
            .flat_map(|split| &split.queries)
            .flat_map(|truth| &truth.moments)
            .map(|graded| {
                let span = graded.moment.span;
                (graded.moment.video.to_string(), span.start().to_bits(), span.end().to_bits())
            })
            .collect();
        rows.sort();
        rows
    };
    // The reversed rows are swapped there by the authors and here by the policy.
    assert_eq!(moments(&sta), moments(&cd));
    let videos: Vec<&VideoId> = cd.splits.iter().flat_map(|split| &split.videos).map(|video| &video.id).collect();
    assert_eq!(videos.iter().collect::<HashSet<_>>().len(), videos.len());
    let [train, val, iid, ood] = &cd.splits[..] else { panic!("not four splits") };
    assert!((latest_end(&[train, val, iid]) - 1.44).abs() < 0.005);
    assert!((latest_end(&[ood]) - 25.69).abs() < 0.005);
}

#[test]
fn activitynet_val_2_annotates_videos_of_val_1_again() {
    let Some(dataset) = published("activitynet-captions", "data/activitynet-captions") else { return };
    let [train, first, second] = &dataset.splits[..] else { panic!("not three splits") };
    let durations: HashMap<_, _> = first.videos.iter().map(|video| (&video.id, video.duration)).collect();
    assert!(second.videos.iter().all(|video| durations.get(&video.id) == Some(&video.duration)));
    assert_eq!(first.videos.len() - second.videos.len(), 32);
    assert!((latest_end(&[train, first, second]) - 0.01).abs() < 1e-6);
    let not_ascii = |split: &Split| split.queries.iter().filter(|truth| !truth.query.text.is_ascii()).count();
    assert_eq!(dataset.splits.iter().map(not_ascii).sum::<usize>(), 56);
    let leading = first.queries.iter().filter(|truth| truth.query.text.starts_with(' ')).count();
    assert_eq!(leading, 11_638);
    let merged = dataset.split("val_1+val_2").unwrap();
    assert_eq!((merged.videos.len(), merged.pairs()), (4917, 34_536));
    assert_eq!(merged.queries[17_505].query.id.as_str(), "val_2:0");
    let ids: HashSet<_> = merged.queries.iter().map(|truth| &truth.query.id).collect();
    assert_eq!(ids.len(), merged.queries.len());
}

#[test]
fn activitynet_moments_are_as_long_as_the_papers_say() {
    let Some(dataset) = published("activitynet-captions", "data/activitynet-captions") else { return };
    let all = dataset.all();
    let shares: Vec<f64> = all
        .queries
        .iter()
        .map(|truth| NormSpan::of(truth.moments[0].moment.span, truth.duration().unwrap()).unwrap().len())
        .collect();
    assert_eq!(shares.len(), 71_957);
    for (longer, percent) in [(0.3, 42.2), (0.5, 21.2), (0.7, 11.3)] {
        let found = 100.0 * shares.iter().filter(|share| **share > longer).count() as f64 / shares.len() as f64;
        assert!((found - percent).abs() < 0.05, "{longer}: {found}");
    }
}

#[test]
fn the_text_of_tacos_holds_the_pairs_of_the_full_release() {
    let Some(full) = published("tacos", "data/tacos/full") else { return };
    let Some(raw) = published("tacos-raw", "data/tacos/raw-txt") else { return };
    let rows = |dataset: &Dataset, split: &str| {
        let split = dataset.split(split).unwrap();
        let mut rows: Vec<_> = split
            .queries
            .iter()
            .map(|truth| {
                let graded = &truth.moments[0].moment;
                (
                    graded.video.to_string(),
                    graded.span.start().to_bits(),
                    graded.span.end().to_bits(),
                    truth.query.text.clone(),
                )
            })
            .collect();
        rows.sort();
        rows
    };
    for split in ["train", "val", "test"] {
        assert_eq!(rows(&full, split), rows(&raw, split), "{split}");
    }
}

#[test]
fn didemo_rows_have_four_annotators_but_for_27() {
    let Some(dataset) = published("didemo", "data/didemo") else {
        return;
    };
    let mut annotators: HashMap<usize, usize> = HashMap::new();
    for truth in dataset.splits.iter().flat_map(|split| &split.queries) {
        *annotators.entry(truth.moments.len()).or_default() += 1;
    }
    assert_eq!(annotators, HashMap::from([(4, 8174), (7, 26), (5, 1)]));
}

#[test]
fn the_published_pools_are_complete_as_often_as_the_paper_says() {
    let Some(dataset) = published("mvmr", "data/mvmr") else { return };
    let [charades, tacos] = &dataset.splits[..] else { panic!("not two splits") };
    assert_eq!(complete_pools(charades).count(), 3716);
    let mean = charades.pairs() as f64 / charades.queries.len() as f64;
    assert!((mean - 3.07).abs() < 0.005, "{mean}");
    let complete: Vec<_> = complete_pools(tacos).collect();
    let mean = complete.iter().map(|truth| truth.moments.len()).sum::<usize>() as f64 / complete.len() as f64;
    assert_eq!(complete.len(), 2055);
    assert!((mean - 2.24).abs() < 0.005, "{mean}");
    for truth in charades.queries.iter().chain(&tacos.queries) {
        let pool = truth.pool.as_ref().unwrap();
        assert_eq!(pool.first(), truth.video.as_ref().map(|video| &video.id));
        assert!(truth.moments.iter().all(|graded| pool.contains(&graded.moment.video)));
    }
}

#[test]
fn ratings_come_in_twos_and_fours() {
    let Some(folder) = shared("data/tvr-ranking") else { return };
    let ratings = read_ratings(&Source::new(folder.join("raw_annotation.csv"))).unwrap();
    let mut per_pair: HashMap<u64, usize> = HashMap::new();
    for rating in &ratings {
        *per_pair.entry(rating.pair_id).or_default() += 1;
    }
    let with = |n: usize| per_pair.values().filter(|count| **count == n).count();
    assert_eq!((ratings.len(), with(2), with(4)), (227_808, 79_062, 17_421));
}

#[test]
fn five_people_located_every_query_again() {
    let Some(folder) = shared("data/human-reannotations") else { return };
    let Some(sta) = published("charades-sta", "data/charades-sta") else {
        return;
    };
    let test: HashSet<&VideoId> = sta.splits[1].videos.iter().map(|video| &video.id).collect();
    let mut queries = 0;
    for file in ["charades_test_00.csv", "charades_test_01.csv", "charades_test_02.csv"] {
        for query in read_reannotations(&Source::new(folder.join(file))).unwrap() {
            assert_eq!(query.spans.len(), 5);
            assert!(test.contains(&query.video), "{}", query.video);
            queries += 1;
        }
    }
    assert_eq!(queries, 1000);
}

#[test]
fn stats_agree_with_the_tables_of_the_papers() {
    // Distinct moments, videos and hours of video as two papers print them; YouCook2's hours follow from its mean video.
    for (name, folder, moments, videos, hours) in [
        ("activitynet-captions", "data/activitynet-captions", 71_722, 14_926, 487.60),
        ("tacos", "data/tacos/full", 3290, 127, 10.11),
        ("tacos-2dtan", "data/tacos/2dtan", 7069, 127, 10.11),
        ("youcook2", "data/youcook2", 13_828, 1790, 156.84),
    ] {
        let Some(dataset) = published(name, folder) else { return };
        let all = stats::stats(&dataset, &|_| Vec::new()).overall;
        assert_eq!((all.moments, all.videos), (moments, videos), "{name}");
        assert!((all.video_hours - hours).abs() < 0.01, "{name}: {}", all.video_hours);
    }
    let Some(dataset) = published("charades-sta", "data/charades-sta") else { return };
    let all = stats::stats(&dataset, &|_| Vec::new()).overall;
    assert_eq!((all.videos, all.queries), (6672, 16_128));
    assert!((all.video_hours - 56.69).abs() < 0.01);
    let Some(dataset) = published("qvhighlights", "data/qvhighlights") else { return };
    let all = stats::stats(&dataset, &|_| Vec::new()).overall;
    assert_eq!((all.videos, all.queries, all.pairs), (10_148, 10_310, 18_367));
    assert!((all.relevant_moments_per_query - 1.78).abs() < 0.005);
}

#[test]
fn the_truth_of_the_golden_cases_is_recognised() {
    let Some(folder) = shared("golden") else { return };
    for (file, format) in [
        ("activitynet-val2/ground_truth.json", "activitynet-captions"),
        ("charades-sta-test/ground_truth.txt", "charades-sta"),
        ("qvhighlights-val/ground_truth.jsonl", "qvhighlights"),
        ("ranked-synthetic/ground_truth.json.gz", "tvr-ranking"),
        ("tacos-2dtan-test/ground_truth.json", "tacos-2dtan"),
        ("tvr-val/ground_truth.jsonl.gz", "tvr"),
    ] {
        let source = Source::new(folder.join(file));
        assert_eq!(cuemark_data::TruthFormat::of(&source).unwrap().name(), format);
        assert!(!read_truth(&source, None, &ReadOptions::default()).unwrap().queries.is_empty());
    }
}
