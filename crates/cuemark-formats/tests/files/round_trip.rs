//! Whatever a layout can hold comes back from it unchanged.

use crate::support::{folder, round_trip};
use cuemark_core::{
    ClipLen, Extra, GradedMoment, Highlights, Moment, Prediction, Predictions, Query, QueryId, QueryPredictions,
    Relevance, RowPolicy, Span, Task, TaskPredictions, Truth, Video, VideoId,
};
use cuemark_formats::{Overwrite, PredictionFormat, Source, WholeFile, read_truth, write_truth};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names as hostile as a text file can hold.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9_]{1,8}",
        "[0-9]{1,6}",
        "[\\PC\"\\\\\t,{}\\[\\] ]{1,6}".prop_filter("not blank", |s| !s.trim().is_empty())
    ]
}

/// Any finite double, and many plain ones.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-1000i32..1000).prop_map(|n| f64::from(n) / 8.0),
        any::<f64>().prop_filter("finite", |value| value.is_finite()),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    (number(), number()).prop_map(|(a, b)| Span::new(a.abs().min(b.abs()), a.abs().max(b.abs())).unwrap())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        number().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[a-z]{1,3}", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Unknown fields, with names that no layout uses.
fn fields() -> impl Strategy<Value = Map<String, Value>> {
    btree_map("x_[a-z\"é ]{0,3}", json_value(), 0..3).prop_map(|map| map.into_iter().collect())
}

/// A query's list: `video` says where, each row may have unknown fields.
fn list(
    query: impl Strategy<Value = String>,
    video: impl Strategy<Value = Option<String>>,
    rows: impl Into<proptest::collection::SizeRange>,
) -> impl Strategy<Value = QueryPredictions> {
    let row = (video, span(), option::of(number()));
    (query, vec(row, rows), option::of(vec(number(), 0..5)), fields()).prop_map(|(query, rows, saliency, fields)| {
        let prediction = |(video, span, score): (Option<String>, Span, Option<f64>)| Prediction {
            video: video.map(VideoId::new),
            span,
            score,
        };
        let ranked = rows.into_iter().map(prediction).collect();
        QueryPredictions { query: QueryId::new(query), ranked, saliency, extra: Extra::new(fields) }
    })
}

/// Lists of different queries.
fn lists(list: impl Strategy<Value = QueryPredictions>) -> impl Strategy<Value = Vec<QueryPredictions>> {
    vec(list, 0..6).prop_map(|mut lists| {
        let mut seen = std::collections::HashSet::new();
        lists.retain(|list| seen.insert(list.query.clone()));
        lists
    })
}

fn somewhere() -> impl Strategy<Value = Option<String>> {
    option::of(name())
}

/// Moves every prediction of a list into one video, for layouts that have room for one.
fn in_one_video(mut lists: Vec<QueryPredictions>) -> Vec<QueryPredictions> {
    for list in &mut lists {
        let first = list.ranked.first().and_then(|prediction| prediction.video.clone());
        list.ranked.iter_mut().for_each(|prediction| prediction.video.clone_from(&first));
    }
    lists
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn our_lines_come_back(
        mut lists in vec(lists(list(name(), somewhere(), 0..5)), 1..4),
        row_fields in fields(),
    ) {
        // The first row of the first list carries unknown fields of its own.
        if let Some(list) = lists[0].iter_mut().find(|list| !list.ranked.is_empty()).filter(|_| !row_fields.is_empty()) {
            let mut rows = vec![Value::Null; list.ranked.len()];
            rows[0] = Value::Object(row_fields);
            list.extra.insert("predictions", Value::Array(rows));
        }
        let tasks = [Task::Any, Task::Vcmr, Task::Vr].into_iter().zip(lists).filter(|(_, queries)| !queries.is_empty());
        let tasks: Vec<_> = tasks.map(|(task, queries)| TaskPredictions { task, queries }).collect();
        let predictions = if tasks.is_empty() { Predictions::any(Vec::new()) } else { Predictions { tasks, ..Predictions::default() } };
        prop_assert_eq!(round_trip(&predictions, PredictionFormat::Cuemark).unwrap(), predictions);
    }

    #[test]
    fn qvhighlights_lines_come_back(lists in lists(list(name(), somewhere(), 0..5))) {
        let predictions = Predictions::any(in_one_video(lists));
        prop_assert_eq!(round_trip(&predictions, PredictionFormat::QvHighlights).unwrap(), predictions);
    }

    #[test]
    fn tvr_submissions_come_back(
        first in lists(list(name(), name().prop_map(Some), 0..5)),
        second in lists(list("[0-9]{1,5}", name().prop_map(Some), 0..5)),
        fields in fields(),
        known in btree_map("[a-z]{1,3}", 0u32..9, 0..1),
    ) {
        let without_saliency = |mut lists: Vec<QueryPredictions>| {
            lists.iter_mut().for_each(|list| list.saliency = None);
            lists
        };
        let tasks = vec![
            TaskPredictions { task: Task::Vr, queries: without_saliency(first) },
            TaskPredictions { task: Task::Vcmr, queries: without_saliency(second) },
        ];
        let mut extra = Extra::new(fields);
        extra.insert("video2idx", json!(known));
        let predictions = Predictions { tasks, extra, ..Predictions::default() };
        let read = round_trip(&predictions, PredictionFormat::Tvr).unwrap();
        prop_assert_eq!(&read.tasks, &predictions.tasks);
        for (field, value) in predictions.extra.iter().filter(|(field, _)| *field != "video2idx") {
            prop_assert_eq!(read.extra.get(field), Some(value));
        }
        for (name, number) in &known {
            prop_assert_eq!(read.extra.get("video2idx").and_then(|numbers| numbers.get(name)), Some(&json!(number)));
        }
    }

    #[test]
    fn tvr_ranking_lists_come_back(lists in lists(list(name(), "[abcd]".prop_map(Some), 0..5))) {
        let mut predictions = Predictions::any(lists);
        predictions.tasks[0].queries.iter_mut().for_each(|list| list.saliency = None);
        predictions.extra.insert("video2idx", json!({"a": 7, "b": 4_000_000_000u32, "c": 0, "d": 12}));
        let read = round_trip(&predictions, PredictionFormat::TvrRanking).unwrap();
        prop_assert_eq!(read.tasks, predictions.tasks);
    }

    #[test]
    fn activitynet_results_come_back(lists in lists(list(name(), name().prop_map(Some), 1..5)), fields in fields()) {
        let mut predictions = Predictions { extra: Extra::new(fields), ..Predictions::any(in_one_video(lists)) };
        predictions.extra.insert("version", json!("1"));
        predictions.extra.insert("external_data", json!(null));
        for list in &mut predictions.tasks[0].queries {
            (list.saliency, list.extra) = (None, Extra::default());
        }
        let mut read = round_trip(&predictions, PredictionFormat::ActivityNet).unwrap();
        // Files are grouped by video, so queries may change places.
        for file in [&mut read, &mut predictions] {
            file.tasks[0].queries.sort_by(|a, b| a.query.cmp(&b.query));
        }
        prop_assert_eq!(&read.tasks, &predictions.tasks);
        prop_assert!(predictions.extra.iter().all(|(field, value)| read.extra.get(field) == Some(value)));
    }

    #[test]
    fn trec_runs_come_back(lists in lists(list("[a-z0-9:é\"]{1,5}", option::of("[a-z0-9:é\"-]{1,5}"), 1..5))) {
        let mut predictions = Predictions::any(lists);
        for list in &mut predictions.tasks[0].queries {
            (list.saliency, list.extra) = (None, Extra::default());
            // What has no score gets its negative rank, so that the order is kept.
            for (place, prediction) in list.ranked.iter_mut().enumerate() {
                prediction.score.get_or_insert(-1.0 - place as f64);
            }
        }
        prop_assert_eq!(round_trip(&predictions, PredictionFormat::Trec).unwrap(), predictions);
    }

    #[test]
    fn csv_rows_come_back(lists in lists(list(name(), somewhere(), 0..5)), column in "x[a-z\",é]{0,4}", cells in btree_set("[a-z\",é\n]{1,4}", 0..3)) {
        let mut predictions = Predictions::any(lists);
        for list in &mut predictions.tasks[0].queries {
            (list.saliency, list.extra) = (None, Extra::default());
            let mut rows: Vec<_> = cells.iter().map(|cell| json!({ column.as_str(): cell })).collect();
            rows.resize(list.ranked.len(), Value::Null);
            if rows.iter().any(Value::is_object) {
                list.extra.insert("predictions", Value::Array(rows));
            }
        }
        prop_assert_eq!(round_trip(&predictions, PredictionFormat::Csv).unwrap(), predictions);
    }

    #[test]
    fn truth_comes_back(truths in vec(truth(), 0..6)) {
        let mut truths = truths;
        let mut seen = std::collections::HashSet::new();
        truths.retain(|truth| seen.insert(truth.query.id.clone()));
        let (_guard, folder) = folder();
        let path = folder.join("truth.jsonl.zst");
        let mut out = WholeFile::create(&path, Overwrite::Never).unwrap();
        write_truth(&truths, &mut out).unwrap();
        out.finish().unwrap();
        prop_assert_eq!(read_truth(&Source::new(path), RowPolicy::Keep).unwrap().queries, truths);
    }
}

fn truth() -> impl Strategy<Value = Truth> {
    let video = option::of((name(), option::of(number().prop_map(f64::abs))));
    let moment = (name(), span(), option::of(0.0..=100.0f64), any::<bool>());
    let highlights = option::of((0.1..10.0f64, vec((0usize..100, vec(0u8..=4, 3)), 0..4)));
    let query = (name(), ".{0,12}", option::of("[a-z]{1,2}"), option::of(vec(name(), 0..3)));
    (query, video, vec(moment, 0..4), highlights, fields()).prop_map(|(query, video, moments, highlights, fields)| {
        let (id, text, kind, pool) = query;
        let video = video.map(|(name, duration)| Video { id: VideoId::new(name), duration });
        let graded = |(name, span, relevance, own): (String, Span, Option<f64>, bool)| {
            let own = video.as_ref().filter(|_| own).map(|video| video.id.clone());
            let moment = Moment { video: own.unwrap_or_else(|| VideoId::new(name)), span };
            GradedMoment { moment, relevance: relevance.and_then(Relevance::new) }
        };
        let moments = moments.into_iter().map(graded).collect();
        let highlights = highlights.map(|(clip_len, rated)| {
            let (clips, ratings) = rated.into_iter().unzip();
            Box::new(Highlights { clip_len: ClipLen::new(clip_len).unwrap(), clips, ratings })
        });
        let pool = pool.map(|names| names.into_iter().map(VideoId::new).collect());
        Truth {
            query: Query { id: QueryId::new(id), text },
            video,
            moments,
            pool,
            kind,
            highlights,
            extra: Extra::new(fields),
        }
    })
}
