use super::*;
use cuemark_core::{Query, Span, Video};
use cuemark_text::similarity::{Matrix, Tfidf};

const THRESHOLDS: Thresholds = Thresholds { positive: 0.9, negative: 0.5 };

fn query(id: &str, video: &str, text: &str, start: f64) -> Truth {
    let query = Query { id: id.into(), text: text.to_owned() };
    Truth::single(query, Video::new(video, 30.0), [Span::new(start, start + 5.0).unwrap()])
}

/// Eight videos; the first three show a light being switched on, the others something else.
fn queries() -> Vec<Truth> {
    let lines = [
        ("0", "a", "person turns on the light"),
        ("1", "a", "person sits on a chair"),
        ("2", "b", "person turns on the light"),
        ("3", "c", "the person turns on the light"),
        ("4", "d", "somebody eats soup"),
        ("5", "e", "two dogs bark outside"),
        ("6", "f", "children play football"),
        ("7", "g", "rain falls"),
        ("8", "h", "birds fly away"),
    ];
    lines.iter().enumerate().map(|(n, (id, video, text))| query(id, video, text, n as f64)).collect()
}

fn settings(videos: usize, positives: usize, seed: u64) -> PoolSettings {
    PoolSettings { videos, positives, thresholds: THRESHOLDS, calibration: PoolCalibration::Given, seed }
}

fn pools(settings: PoolSettings) -> Pools {
    let queries = queries();
    let texts: Vec<&str> = queries.iter().map(|truth| truth.query.text.as_str()).collect();
    make(&queries, &Tfidf::new(&texts, &texts), None, settings).unwrap()
}

#[test]
fn videos_that_say_the_same_become_positives_with_their_own_moments() {
    let pools = pools(settings(6, 5, 1));
    let light = &pools.truths[0];
    let found: Vec<(String, f64)> =
        light.moments.iter().map(|graded| (graded.moment.video.to_string(), graded.moment.span.start())).collect();
    assert_eq!(found[0], ("a".to_owned(), 0.0));
    let mut others = found[1..].to_vec();
    others.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(others, [("b".to_owned(), 2.0), ("c".to_owned(), 3.0)]);
    let pool = light.pool.as_ref().unwrap();
    assert_eq!(pool.len(), 6);
    for video in ["a", "b", "c"] {
        assert!(pool.iter().any(|id| id.as_str() == video));
    }
}

#[test]
fn no_video_stands_in_a_pool_twice_and_positives_are_limited() {
    for seed in 0..20 {
        let pools = pools(settings(5, 2, seed));
        for truth in &pools.truths {
            let mut pool = truth.pool.clone().unwrap();
            assert_eq!(pool.len(), 5);
            pool.sort();
            pool.dedup();
            assert_eq!(pool.len(), 5);
            assert!(truth.moments.len() <= 2);
            assert!(truth.moments.iter().all(|graded| pool.contains(&graded.moment.video)));
        }
    }
}

#[test]
fn one_seed_gives_one_set_of_pools_and_another_seed_another() {
    let drawn = |seed| -> Vec<_> { pools(settings(5, 2, seed)).truths.into_iter().map(|truth| truth.pool).collect() };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn the_own_video_is_not_always_first() {
    let pools = pools(settings(5, 1, 3));
    let places: Vec<_> = pools
        .truths
        .iter()
        .map(|truth| truth.pool.as_ref().unwrap().iter().position(|id| Some(id) == truth.video.as_ref().map(|v| &v.id)))
        .collect();
    assert!(places.iter().all(Option::is_some));
    assert!(places.iter().any(|place| *place != Some(0)));
}

#[test]
fn queries_with_too_few_negatives_are_dropped_and_counted() {
    // Eight videos: a light query has five negatives, so a pool of eight with at most one positive cannot be filled.
    let pools = pools(settings(8, 1, 1));
    assert_eq!(pools.report.queries, 9);
    assert_eq!(pools.report.kept + pools.report.dropped, 9);
    assert!(pools.truths.iter().all(|truth| !truth.query.text.contains("light")));
    assert!(pools.report.dropped >= 3);
}

#[test]
fn the_video_filter_takes_positives_below_the_gold_mean_away() {
    let queries = queries();
    let texts: Vec<&str> = queries.iter().map(|truth| truth.query.text.as_str()).collect();
    let between = Tfidf::new(&texts, &texts);
    // Own videos look 0.8 like their queries, video `b` looks like query 0 too, `c` does not.
    let mut values = vec![0.1f32; 9 * 8];
    for (query, video) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 7)] {
        values[query * 8 + video] = 0.8;
    }
    values[1] = 0.9;
    let looks = Matrix::new("looks", 8, values).unwrap();
    let pools = make(&queries, &between, Some(&looks), settings(4, 3, 1)).unwrap();
    let filter = pools.report.video_filter.as_ref().unwrap();
    assert!((filter.gold_mean - 0.8).abs() < 1e-6);
    assert!((filter.negative_mean - 0.1).abs() < 1e-6);
    let videos: Vec<&str> = pools.truths[0].moments.iter().map(|graded| graded.moment.video.as_str()).collect();
    assert_eq!(videos, ["a", "b"]);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut queries = queries();
    let small = Matrix::new("small", 2, vec![0.0; 4]).unwrap();
    let say = |result: Result<Pools>| result.map(|_| ()).unwrap_err().to_string();
    assert_eq!(say(make(&queries, &small, None, settings(5, 2, 1))), "`small` compares 2 × 2 where 9 × 9 are given");
    assert!(say(make(&queries, &small, None, settings(2, 5, 1))).starts_with("`videos`: 2 is fewer"));
    assert!(say(make(&queries, &small, None, settings(2, 0, 1))).starts_with("`positives`: 0"));
    assert_eq!(say(make(&queries, &small, None, settings(9, 2, 1))), "`videos`: 9 is more than the 8 there are");
    assert!(say(make(&[], &small, None, settings(5, 2, 1))).contains("there are no moments"));
    queries[3].moments.clear();
    assert_eq!(say(make(&queries, &small, None, settings(5, 2, 1))), "query `3`: there are no moments");
    queries[2].video = None;
    assert_eq!(say(make(&queries, &small, None, settings(5, 2, 1))), "query `2` names no single video");
}

#[test]
fn pools_are_written_with_their_manifest_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let out = camino::Utf8PathBuf::from_path_buf(folder.path().join("pools.jsonl")).unwrap();
    let pools = pools(settings(6, 5, 1));
    pools.write(&out, Overwrite::Never).unwrap();
    let source = cuemark_formats::Source::new(out.clone());
    let read = cuemark_formats::read_truth(&source, cuemark_core::RowPolicy::Error).unwrap();
    assert_eq!(read.queries, pools.truths);
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("pools.manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["seed"], 1);
    assert_eq!(manifest["outcome"]["provider"], "tfidf");
    assert_eq!(manifest["settings"]["thresholds"]["positive"], 0.9);
    assert!(pools.write(&out, Overwrite::Never).is_err());
}
