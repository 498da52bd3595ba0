//! The published and golden prediction files, where a checkout has them: every number is the one that a general JSON decoder
//! reads.

use crate::support::{fixture, options, shared};
use cuemark_core::{Predictions, QueryPredictions};
use cuemark_formats::{PredictionFormat, PredictionOptions, Source, VideoIndex, read_predictions};
use serde_json::Value;

fn read(source: &Source, options: &PredictionOptions) -> (PredictionFormat, Predictions) {
    read_predictions(source, options).unwrap()
}

fn lines(source: &Source) -> Vec<Value> {
    let mut lines = Vec::new();
    source
        .for_each_line(|_, line| {
            lines.push(serde_json::from_str(line).unwrap());
            Ok(())
        })
        .unwrap();
    lines
}

/// Whether `list` says what `rows` do: the last numbers of each are start, end and score.
fn same(list: &QueryPredictions, id: &Value, rows: &Value) {
    assert_eq!(list.query.as_str(), id.to_string());
    let rows = rows.as_array().unwrap();
    assert_eq!(list.ranked.len(), rows.len());
    for (prediction, row) in list.ranked.iter().zip(rows) {
        let numbers: Vec<f64> = row.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect();
        let read = [prediction.span.start(), prediction.span.end(), prediction.score.unwrap()];
        assert_eq!(read.as_slice(), &numbers[numbers.len() - 3..]);
    }
}

#[test]
fn single_video_golden_predictions_are_ours() {
    for (folder, queries, count) in
        [("activitynet-val2", 201, 990), ("charades-sta-test", 200, 991), ("tacos-2dtan-test", 200, 988)]
    {
        let name = format!("golden/{folder}/predictions.jsonl.gz");
        let Some(source) = shared(&name) else { return };
        let (format, predictions) = read(&source, &PredictionOptions::default());
        assert_eq!(format, PredictionFormat::Cuemark);
        let lists = &predictions.tasks[0].queries;
        assert_eq!((lists.len(), lists.iter().map(|list| list.ranked.len()).sum()), (queries, count), "{folder}");
        for (list, line) in lists.iter().zip(lines(&source)) {
            same(list, &line["qid"], &line["predictions"]);
            assert!(list.ranked.iter().all(|prediction| prediction.video.as_ref().unwrap().as_str() == line["vid"]));
            assert_eq!(list.extra.get("index"), Some(&line["index"]));
        }
    }
}

#[test]
fn qvhighlights_predictions_are_read_to_the_last_digit() {
    for (name, queries) in
        [("data/qvhighlights/sample_val_preds.jsonl.gz", 1_550), ("golden/qvhighlights-val/predictions.jsonl.gz", 0)]
    {
        let Some(source) = shared(name) else { return };
        let (format, predictions) = read(&source, &PredictionOptions::default());
        assert_eq!(format, PredictionFormat::QvHighlights);
        let (lists, lines) = (&predictions.tasks[0].queries, lines(&source));
        assert_eq!(lists.len(), lines.len());
        assert!(queries == 0 || lists.len() == queries);
        for (list, line) in lists.iter().zip(&lines) {
            same(list, &line["qid"], &line["pred_relevant_windows"]);
            let saliency: Vec<f64> =
                line["pred_saliency_scores"].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect();
            assert_eq!(list.saliency.as_deref(), Some(saliency.as_slice()));
        }
    }
}

#[test]
fn tvr_golden_predictions_are_read_in_all_three_tasks() {
    let name = "golden/tvr-val/predictions.json.gz";
    let Some(source) = shared(name) else { return };
    let (format, predictions) = read(&source, &PredictionOptions::default());
    assert_eq!(format, PredictionFormat::Tvr);
    let file: Value = serde_json::from_str(&source.text().unwrap()).unwrap();
    assert_eq!(predictions.tasks.len(), 3);
    for list in &predictions.tasks {
        let entries = file[list.task.to_string()].as_array().unwrap();
        assert_eq!((list.queries.len(), entries.len()), (200, 200));
        for (query, entry) in list.queries.iter().zip(entries) {
            same(query, &entry["desc_id"], &entry["predictions"]);
            for (prediction, row) in query.ranked.iter().zip(entry["predictions"].as_array().unwrap()) {
                assert_eq!(file["video2idx"][prediction.video.as_ref().unwrap().as_str()], row[0]);
            }
        }
    }
}

#[test]
fn tvr_ranking_predictions_are_read_with_either_list_of_videos() {
    let Some(numbers) = shared("data/tvr-ranking/video_name_duration_id.json") else { return };
    let Some(tvr) = shared("data/tvr/tvr_video2dur_idx.json") else { return };
    let Some(published) = shared("data/tvr-ranking/ReLoCLNet_top40_best_val_predictions.json") else { return };
    let Some(golden) = shared("golden/ranked-synthetic/predictions.json.gz") else { return };
    let videos = VideoIndex::read(&numbers).unwrap();
    assert_eq!((videos.iter().count(), VideoIndex::read(&tvr).unwrap().iter().count()), (19_614, 21_793));
    let names: Value = serde_json::from_str(&numbers.text().unwrap()).unwrap();
    let options = PredictionOptions { videos: Some(videos), ..Default::default() };
    for (source, queries) in [(published, 500), (golden, 0)] {
        let (format, predictions) = read(&source, &options);
        assert_eq!(format, PredictionFormat::TvrRanking);
        let file: Value = serde_json::from_str(&source.text().unwrap()).unwrap();
        let (lists, entries) = (&predictions.tasks[0].queries, file.as_array().unwrap());
        assert_eq!(lists.len(), entries.len());
        assert!(queries == 0 || lists.len() == queries);
        for (query, entry) in lists.iter().zip(entries) {
            same(query, &entry["query_id"], &entry["predictions"]);
            for (prediction, row) in query.ranked.iter().zip(entry["predictions"].as_array().unwrap()) {
                assert_eq!(names[prediction.video.as_ref().unwrap().as_str()][1], row[0]);
            }
        }
    }
}

#[test]
fn the_same_holds_of_our_own_small_files() {
    let (_, predictions) = read(&fixture("qvhighlights.jsonl"), &PredictionOptions::default());
    for (list, line) in predictions.tasks[0].queries.iter().zip(lines(&fixture("qvhighlights.jsonl"))) {
        same(list, &line["qid"], &line["pred_relevant_windows"]);
    }
    let (_, predictions) = read(&fixture("tvr-ranking.json"), &options(None));
    let file: Value = serde_json::from_str(&fixture("tvr-ranking.json").text().unwrap()).unwrap();
    for (list, entry) in predictions.tasks[0].queries.iter().zip(file.as_array().unwrap()) {
        same(list, &entry["query_id"], &entry["predictions"]);
    }
}
