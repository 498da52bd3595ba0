//! The toy cases of `parity/metrics.json`: inputs small enough to check by hand, with the numbers that the published
//! evaluators give for them.

use cuemark_core::{
    ChunkRange, ClipLen, GradedMoment, Highlights, Iou, Moment, Nms, Prediction, Predictions, Progress, Query, QueryId,
    QueryPredictions, Relevance, Span, Task, TaskPredictions, Truth, Video, VideoId,
};
use cuemark_metrics::{
    Evaluation, Judge, Overrides, Plan, Preset, WhichHit, average_rank, chunk_miou, discounted_recall_at, evaluate,
    parse_list,
};
use serde_json::Value;

fn case(name: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/parity/metrics.json");
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["cases"][name].clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().unwrap().iter()
}

fn span(value: &Value) -> Span {
    Span::new(number(&value[0]), number(&value[1])).unwrap()
}

fn query(id: &Value) -> Query {
    Query { id: QueryId::new(id.to_string()), text: String::new() }
}

fn percent(evaluation: &Evaluation, name: &str) -> Option<f64> {
    let column = evaluation.columns.iter().find(|column| column.name.to_string() == name)?;
    column.mean().map(|mean| 100.0 * mean)
}

/// The published evaluators print two decimals.
fn assert_printed(evaluation: &Evaluation, name: &str, expected: f64) {
    let found = percent(evaluation, name).unwrap_or_else(|| panic!("{name} was not computed"));
    assert!((found - expected).abs() <= 0.005 + 1e-9, "{name}: {found} instead of {expected}");
}

fn tvr_submission(case: &Value) -> Predictions {
    let submission = &case["submission"];
    let name_of = |index: &Value| {
        let found = object(&submission["video2idx"]).find(|(_, known)| *known == index);
        VideoId::from(found.unwrap().0.as_str())
    };
    let tasks = [("VCMR", Task::Vcmr), ("SVMR", Task::Svmr), ("VR", Task::Vr)];
    let present = tasks.into_iter().filter(|(name, _)| submission.get(name).is_some());
    let lists = present.map(|(name, task)| {
        let queries = list(&submission[name]).iter().map(|entry| QueryPredictions {
            query: query(&entry["desc_id"]).id,
            ranked: list(&entry["predictions"])
                .iter()
                .map(|p| Prediction {
                    video: Some(name_of(&p[0])),
                    span: Span::new(number(&p[1]), number(&p[2])).unwrap(),
                    score: p[3].as_f64(),
                })
                .collect(),
            saliency: None,
            extra: Default::default(),
        });
        TaskPredictions { task, queries: queries.collect() }
    });
    Predictions { tasks: lists.collect(), ..Predictions::default() }
}

fn tvr_truth(case: &Value) -> Vec<Truth> {
    let truths = list(&case["gt"]).iter().map(|entry| {
        let video = Video { id: VideoId::from(entry["vid_name"].as_str().unwrap()), duration: None };
        let spans = match &entry["ts"][0] {
            Value::Array(_) => list(&entry["ts"]).iter().map(span).collect(),
            _ => vec![span(&entry["ts"])],
        };
        let kind = entry.get("type").map(|kind| kind.as_str().unwrap().to_owned());
        Truth { kind, ..Truth::single(query(&entry["desc_id"]), video, spans) }
    });
    truths.collect()
}

#[test]
fn tvr_tasks_and_types_come_out_as_published() {
    let case = case("tvr");
    let plan = Plan::preset(Preset::Tvr, None, Overrides::default());
    let evaluation = evaluate(&plan, &tvr_truth(&case), &tvr_submission(&case), &Progress::new()).unwrap();
    let mut checked = 0;
    for (task, figures) in object(&case["expected"]) {
        let (task, by_type) = (task.trim_end_matches("_by_type"), task.ends_with("_by_type"));
        for (key, expected) in object(figures).filter(|(key, _)| *key != "desc_type_ratio") {
            let mut parts = key.split('-');
            let group = if by_type { format!("/type={}", parts.next().unwrap()) } else { String::new() };
            let rest: Vec<&str> = parts.collect();
            let name = match rest[..] {
                [m, r] => format!("{task}:R@{},IoU={m}{group}", &r[1..]),
                [r] => format!("{task}:R@{}{group}", &r[1..]),
                _ => panic!("{key}"),
            };
            assert_printed(&evaluation, &name, number(expected));
            checked += 1;
        }
    }
    assert_eq!(checked, 8 + 8 + 4 + 3 * (8 + 8 + 4));
}

#[test]
fn four_annotators_have_to_agree_in_twos_under_the_tvr_rule() {
    let case = case("tvr_didemo_rule");
    let metrics = parse_list("VCMR:R@1,IoU=0.5,VCMR:R@5,IoU=0.5,VCMR:R@1,IoU=0.7,VCMR:R@5,IoU=0.7").unwrap();
    let plan = Plan::preset(Preset::Tvr, Some(metrics), Overrides::default());
    let evaluation = evaluate(&plan, &tvr_truth(&case), &tvr_submission(&case), &Progress::new()).unwrap();
    for (m, r) in [("0.5", 1), ("0.5", 5), ("0.7", 1), ("0.7", 5)] {
        let expected = number(&case["expected"]["VCMR"][format!("{m}-r{r}")]);
        assert_printed(&evaluation, &format!("VCMR:R@{r},IoU={m}"), expected);
    }
}

fn scored(window: &Value) -> Prediction {
    Prediction { video: None, span: span(window), score: window.get(2).and_then(Value::as_f64) }
}

#[test]
fn tvr_suppression_keeps_the_same_windows() {
    let case = case("tvr_nms");
    let ranked: Vec<Prediction> = list(&case["pred"]).iter().map(scored).collect();
    for (threshold, expected) in object(&case["thresholds"]) {
        let nms = Nms { iou: Iou::Hull, limit: 100, ..Nms::new(threshold.parse().unwrap()) };
        let kept: Vec<Prediction> = nms.keep(&ranked).into_iter().map(|at| ranked[at].clone()).collect();
        let expected: Vec<Prediction> = list(expected).iter().map(scored).collect();
        assert_eq!(kept, expected, "threshold {threshold}");
    }
}

#[test]
fn qvhighlights_moments_and_highlights_come_out_as_published() {
    let case = case("qvhighlights");
    let truths: Vec<Truth> = list(&case["gt"])
        .iter()
        .map(|entry| {
            let video = Video::new(entry["vid"].as_str().unwrap(), number(&entry["duration"]));
            let rating = |scores: &Value| list(scores).iter().map(|score| score.as_u64().unwrap() as u8).collect();
            let highlights = Highlights {
                clip_len: ClipLen::new(2.0).unwrap(),
                clips: list(&entry["relevant_clip_ids"]).iter().map(|id| id.as_u64().unwrap() as usize).collect(),
                ratings: list(&entry["saliency_scores"]).iter().map(rating).collect(),
            };
            let windows = list(&entry["relevant_windows"]).iter().map(span);
            let truth = Truth::single(query(&entry["qid"]), video, windows);
            Truth { highlights: Some(Box::new(highlights)), ..truth }
        })
        .collect();
    let lists = list(&case["submission"]).iter().map(|entry| QueryPredictions {
        query: query(&entry["qid"]).id,
        ranked: list(&entry["pred_relevant_windows"]).iter().map(scored).collect(),
        saliency: Some(list(&entry["pred_saliency_scores"]).iter().map(number).collect()),
        extra: Default::default(),
    });
    let plan = Plan::preset(Preset::QvHighlights, None, Overrides::default());
    let evaluation = evaluate(&plan, &truths, &Predictions::any(lists.collect()), &Progress::new()).unwrap();
    for (range, figures) in object(&case["expected_mr"]) {
        let group = if range == "full" { String::new() } else { format!("/{range}") };
        if figures.is_null() {
            assert_eq!(percent(&evaluation, &format!("mAP{group}")), None);
            continue;
        }
        for (m, expected) in object(&figures["MR-mAP"]) {
            let name = if m == "average" { format!("mAP{group}") } else { format!("mAP@{m}{group}") };
            assert_printed(&evaluation, &name, number(expected));
        }
        for (m, expected) in object(&figures["MR-R1"]) {
            assert_printed(&evaluation, &format!("R@1,IoU={m}{group}"), number(expected));
        }
    }
    for (level, figures) in object(&case["expected_hl"]) {
        for (name, expected) in object(figures) {
            assert_printed(&evaluation, &format!("{name}/{level}"), number(expected));
        }
    }
}

#[test]
fn graded_lists_come_out_as_the_code_and_as_the_text_say() {
    let case = case("ndcg_iou");
    let truths: Vec<Truth> = object(&case["gt"])
        .map(|(id, moments)| {
            let graded = list(moments).iter().map(|moment| GradedMoment {
                moment: Moment {
                    video: moment["video_name"].as_str().unwrap().into(),
                    span: span(&moment["timestamp"]),
                },
                relevance: Relevance::new(number(&moment["relevance"])),
            });
            let query = Query { id: id.as_str().into(), text: String::new() };
            Truth { moments: graded.collect(), ..Truth::bare(query) }
        })
        .collect();
    let lists = object(&case["pred"]).map(|(id, ranked)| QueryPredictions {
        query: id.as_str().into(),
        ranked: list(ranked)
            .iter()
            .map(|p| Prediction {
                video: Some(p["video_name"].as_str().unwrap().into()),
                span: span(&p["timestamp"]),
                score: None,
            })
            .collect(),
        saliency: None,
        extra: Default::default(),
    });
    let predictions = Predictions::any(lists.collect());
    let variants = [
        (Preset::TvrRanking, &case["expected_mean"]),
        (Preset::TvrRankingPaper, &case["paper_text_variant"]["expected_mean"]),
    ];
    for (preset, expected_mean) in variants {
        for (key, expected) in object(expected_mean) {
            let name = key.replace("IoU>=", "IoU=").replace("IoU>", "IoU=");
            let plan = Plan::preset(preset, Some(parse_list(&name).unwrap()), Overrides::default());
            let evaluation = evaluate(&plan, &truths, &predictions, &Progress::new()).unwrap();
            let found = evaluation.columns[0].mean().unwrap();
            assert!((found - number(expected)).abs() < 1e-9, "{preset} {key}: {found} instead of {expected}");
            if preset == Preset::TvrRanking {
                for (position, truth) in truths.iter().enumerate() {
                    let expected = number(&case["expected_per_query"][truth.query.id.as_str()][key]);
                    let found = evaluation.columns[0].score(position).unwrap();
                    assert!((found - expected).abs() < 1e-9, "{key} of query {}", truth.query.id);
                }
            }
        }
    }
}

#[test]
fn molef_overlap_suppression_and_recall_come_out_as_published() {
    let case = case("molef");
    let right = span(&case["gt"]);
    let windows: Vec<Span> = list(&case["windows"]).iter().map(span).collect();
    for (window, expected) in windows.iter().zip(list(&case["iou"])) {
        assert!((Iou::HullEps.of(*window, right) - number(expected)).abs() < 1e-15);
    }
    for (what, expected) in object(&case["degenerate_iou"]) {
        let digits: Vec<f64> = what.split(['(', ')', ',', ' ']).filter_map(|piece| piece.parse().ok()).collect();
        let found = Iou::HullEps.of(Span::new(digits[0], digits[1]).unwrap(), Span::new(digits[2], digits[3]).unwrap());
        assert!((found - number(expected)).abs() < 1e-20, "{what}: {found}");
    }
    let scores = list(&case["scores"]);
    let ranked: Vec<Prediction> = windows
        .iter()
        .zip(scores)
        .map(|(span, score)| Prediction { video: None, span: *span, score: score.as_f64() })
        .collect();
    for (m, picks) in object(&case["picks"]) {
        let expected: Vec<usize> = list(picks).iter().map(|pick| pick.as_u64().unwrap() as usize).collect();
        assert_eq!(Nms::new(m.parse::<f64>().unwrap() - 0.05).keep(&ranked), expected, "m = {m}");
    }
    let truth = Truth::single(query(&Value::from(0)), Video { id: "v".into(), duration: None }, [right]);
    let predictions = Predictions::any(vec![QueryPredictions {
        query: truth.query.id.clone(),
        ranked,
        saliency: None,
        extra: Default::default(),
    }]);
    let table = list(&case["recall_rows_top1_top5_cols_0.1_0.3_0.5_0.7"]);
    for (n, row) in [1, 5].into_iter().zip(table) {
        for (m, expected) in [0.1, 0.3, 0.5, 0.7].into_iter().zip(list(row)) {
            let metrics = parse_list(&format!("R@{n},IoU={m}")).unwrap();
            let plan = Plan::preset(Preset::Molef, Some(metrics), Overrides::default());
            let evaluation = evaluate(&plan, std::slice::from_ref(&truth), &predictions, &Progress::new()).unwrap();
            assert_eq!(evaluation.columns[0].mean(), expected.as_f64(), "R@{n},IoU={m}");
        }
    }
}

#[test]
fn discounted_recall_comes_out_as_defined() {
    let case = case("discounted_recall");
    let samples = list(&case["samples"]);
    for (m, expected) in object(&case["expected"]) {
        let m: f64 = m.parse().unwrap();
        let scores = samples.iter().map(|sample| {
            let (ranked, truth) = ([span(&sample["pred"])], [span(&sample["gt"])]);
            // The stored numbers were made with `>`; the case says that no overlap but 0.5 ties with a threshold.
            let judge = Judge { threshold: cuemark_metrics::Threshold::Strict, ..Judge::default() };
            discounted_recall_at(1, m, &ranked, &truth, number(&sample["duration"]), WhichHit::Best, judge)
        });
        let mean = scores.sum::<f64>() / samples.len() as f64;
        assert!((mean - number(expected)).abs() < 1e-12, "m = {m}: {mean} instead of {expected}");
    }
}

#[test]
fn didemo_ranks_and_overlaps_come_out_as_published() {
    let case = case("didemo_official");
    let chunks = |value: &Value| -> Vec<ChunkRange> {
        let range =
            |pair: &Value| ChunkRange::new(pair[0].as_u64().unwrap() as u32, pair[1].as_u64().unwrap() as u32).unwrap();
        list(value).iter().map(range).collect()
    };
    let mut totals = [0.0; 3];
    let rows: Vec<_> = list(&case["segments"]).iter().zip(list(&case["times"])).collect();
    for ((segments, times), expected) in rows.iter().zip(list(&case["expected"]["average_rank"])) {
        let (ranked, times) = (chunks(segments), chunks(times));
        let rank = average_rank(&ranked, &times).unwrap();
        assert!((rank - number(expected)).abs() < 1e-12);
        totals[0] += f64::from(u8::from(rank <= 1.0));
        totals[1] += f64::from(u8::from(rank <= 5.0));
        totals[2] += chunk_miou(&ranked, &times).unwrap();
    }
    for (total, name) in totals.into_iter().zip(["rank1", "rank5", "miou"]) {
        assert!((total / rows.len() as f64 - number(&case["expected"][name])).abs() < 1e-12, "{name}");
    }
}
