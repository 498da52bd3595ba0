//! What the small prediction files say, stated by hand.

use crate::support::{PREDICTIONS, fixture, fixture_path, options, round_trip};
use cuemark_core::{Advise as _, Dialect};
use cuemark_core::{Answers as _, Predictions, Query, QueryPredictions, RowFault, Span, Task, Truth, Video, VideoId};
use cuemark_formats::{
    FileAnswers, PredictionFormat, Source, VideoIndex, match_sentences, read_answers, read_predictions,
};
use serde_json::json;

fn read(name: &str) -> Predictions {
    read_predictions(&fixture(name), &options(None)).unwrap().1
}

/// A list as `(video, start, end, score)`, for comparing with what is written in the file.
fn rows(list: &QueryPredictions) -> Vec<(Option<&str>, f64, f64, Option<f64>)> {
    let each = list.ranked.iter();
    each.map(|p| (p.video.as_ref().map(VideoId::as_str), p.span.start(), p.span.end(), p.score)).collect()
}

fn list<'p>(predictions: &'p Predictions, task: Task, qid: &str) -> &'p QueryPredictions {
    predictions.for_task(task).unwrap().iter().find(|list| list.query.as_str() == qid).unwrap()
}

#[test]
fn every_layout_is_recognised_by_its_content() {
    let (_guard, folder) = crate::support::folder();
    for (name, format) in PREDICTIONS {
        assert_eq!(read_predictions(&fixture(name), &options(None)).unwrap().0, format, "{name}");
        let misnamed = folder.join("misleading.csv");
        std::fs::copy(fixture_path(name), &misnamed).unwrap();
        let source = cuemark_formats::Source::new(misnamed);
        assert_eq!(read_predictions(&source, &options(None)).unwrap().0, format, "{name} under another name");
    }
}

#[test]
fn our_own_lines_are_read_in_every_form() {
    let predictions = read("cuemark.jsonl");
    let all = &predictions.tasks[0].queries;
    let ids: Vec<_> = all.iter().map(|list| list.query.as_str()).collect();
    assert_eq!(ids, ["q1", "2", "-3", "empty", "no video"]);
    assert_eq!(rows(&all[0]), [(Some("kitchen_01"), 2.0, 9.25, Some(0.91)), (Some("kitchen_02"), 0.5, 3.5, Some(0.4))]);
    assert_eq!(rows(&all[1])[0], (Some("garden"), 4.3, 5.12, Some(0.9884)));
    assert_eq!(all[1].extra.get("index"), Some(&json!(0)));
    let mixed = [
        (Some("garden"), 1.0, 2.0, None),
        (Some("garden"), 0.0, 30.0, Some(0.001)),
        (Some("café \"42\""), 7.125, 8.0, None),
    ];
    assert_eq!(rows(&all[2]), mixed);
    assert_eq!(all[2].extra.get("note"), Some(&json!({"seen by": ["us", null]})));
    assert!(all[3].ranked.is_empty());
    assert_eq!(all[3].extra.get("video"), Some(&json!("kitchen_01")));
    assert_eq!(all[4].saliency.as_deref(), Some([0.25, -1.5, 0.0].as_slice()));
    assert_eq!(all[4].extra.get("predictions"), Some(&json!([{"proposal": 17}, null])));
}

#[test]
fn predicted_spans_that_cannot_be_are_kept_at_their_rank_and_counted() {
    let predictions = read("cuemark.jsonl");
    let odd = rows(&predictions.tasks[0].queries[4]);
    assert_eq!(odd, [(None, 9.0, 9.0, Some(-0.5)), (None, 0.0, 4.0, Some(-0.75))]);
    assert_eq!(predictions.rows.met(RowFault::Reversed), 1);
    assert_eq!(predictions.rows.met(RowFault::StartsBeforeVideo), 1);
    assert_eq!((predictions.rows.changed, predictions.rows.dropped), (2, 0));
}

#[test]
fn one_file_of_ours_can_answer_several_tasks() {
    let predictions = read("cuemark-tasks.jsonl");
    let tasks: Vec<_> = predictions.tasks.iter().map(|list| (list.task, list.queries.len())).collect();
    assert_eq!(tasks, [(Task::Vcmr, 2), (Task::Svmr, 1)]);
    assert_eq!(rows(list(&predictions, Task::Svmr, "11")), [(Some("b"), 1.5, 3.0, Some(2.5))]);
}

#[test]
fn qvhighlights_keeps_the_order_of_the_file() {
    let predictions = read("qvhighlights.jsonl");
    let first = &predictions.tasks[0].queries[0];
    assert_eq!(rows(first)[0], (Some("p0olDog_60.0_210.0"), 0.0, 70.0, Some(0.5986)));
    assert_eq!(rows(first)[1], (Some("p0olDog_60.0_210.0"), 78.0, 146.0, Some(0.9138)));
    assert_eq!(first.saliency.as_deref(), Some([-0.2452392578125, 0.0751953125, 1.0, -0.0225].as_slice()));
    assert_eq!(first.extra.get("query"), Some(&json!("A dog learns to swim.")));
    assert_eq!(predictions.tasks[0].queries[2].extra.get("vid"), Some(&json!("parr0t_150.0_300.0")));
}

#[test]
fn tvr_numbers_become_names_in_all_three_tasks() {
    let predictions = read("tvr.json");
    let (a, b, other) = (Some("show_s01e01_seg02_clip_00"), Some("show_s01e01_seg02_clip_01"), Some("other show"));
    let vcmr = [(a, 48.0, 58.5, Some(20.0)), (other, 54.0, 60.0, Some(19.9)), (b, 6.0, 6.0, Some(21.5))];
    assert_eq!(rows(list(&predictions, Task::Vcmr, "101")), vcmr);
    assert_eq!(rows(list(&predictions, Task::Svmr, "102")), [(other, 0.0, 3.0, Some(9.0)), (b, 3.0, 7.5, Some(8.5))]);
    assert_eq!(rows(list(&predictions, Task::Vr, "102")), [(other, 0.0, 0.0, None)]);
    assert_eq!(predictions.extra.get("made_by"), Some(&json!("a fixture")));
    assert_eq!(list(&predictions, Task::Vr, "101").extra.get("desc"), Some(&json!("Ann opens the \"blue\" door.")));
}

#[test]
fn the_video_numbers_may_stand_after_the_lists() {
    let text = r#"{"VR":[{"desc_id":1,"predictions":[[5,0,0,1.5]]}],"video2idx":{"a":5}}"#;
    let (_, predictions) = crate::support::read_bytes(text.as_bytes(), None).unwrap();
    assert_eq!(rows(list(&predictions, Task::Vr, "1")), [(Some("a"), 0.0, 0.0, Some(1.5))]);
}

#[test]
fn tvr_ranking_needs_the_numbers_of_its_corpus() {
    for index in ["tvr-ranking-videos.json", "tvr-videos.json"] {
        let videos = Some(VideoIndex::read(&fixture(index)).unwrap());
        let options = cuemark_formats::PredictionOptions { videos, ..Default::default() };
        let (_, predictions) = read_predictions(&fixture("tvr-ranking.json"), &options).unwrap();
        let first = (Some("show_s01e01_seg01_clip_01"), 69.0, 88.5, Some(65250.87890625));
        assert_eq!(rows(list(&predictions, Task::Any, "54251"))[0], first, "{index}");
    }
    let refused = read_predictions(&fixture("tvr-ranking.json"), &Default::default()).unwrap_err();
    assert!(refused.advice_in(Dialect::Terminal).unwrap().contains("--video-index FILE"));
}

#[test]
fn activitynet_entries_belong_to_the_query_they_name() {
    let predictions = read("activitynet.json");
    let ids: Vec<_> = predictions.tasks[0].queries.iter().map(|list| list.query.as_str()).collect();
    assert_eq!(ids, ["v_weld:0", "v_weld:1", "41", "42"]);
    let hose = [(Some("v_weld"), 15.28, 27.46, Some(0.8)), (Some("v_weld"), 2.5, 11.0, Some(0.9))];
    assert_eq!(rows(list(&predictions, Task::Any, "v_weld:0")), hose);
    assert_eq!(rows(list(&predictions, Task::Any, "v_weld:1")), [(Some("v_weld"), 0.0, 15.28, None)]);
    assert_eq!(rows(list(&predictions, Task::Any, "42")), [(Some("v_run"), 80.11, 80.11, Some(0.125))]);
    assert_eq!(predictions.extra.get("version"), Some(&json!("VERSION 1.3")));
}

#[test]
fn activitynet_sentences_find_the_query_that_asks_them() {
    let ask = |id: &str, video: &str, text: &str| {
        let query = Query { id: id.into(), text: text.to_owned() };
        Truth::single(query, Video::new(video, 60.0), [Span::new(0.0, 1.0).unwrap()])
    };
    let truths = [
        ask("0", "v_other", "A man picks up a hose."),
        ask("1", "v_weld", "A man picks up a hose. "),
        ask("5", "v_weld", "A man picks up a hose."),
    ];
    let mut predictions = read("activitynet.json");
    assert_eq!(match_sentences(&mut predictions, &truths), 1, "one sentence is nobody's");
    let ids: Vec<_> = predictions.tasks[0].queries.iter().map(|list| list.query.as_str()).collect();
    assert_eq!(ids, ["1", "v_weld:1", "41", "42", "5"]);
    assert_eq!(rows(list(&predictions, Task::Any, "5")), rows(list(&predictions, Task::Any, "1")));
}

#[test]
fn a_trec_run_is_put_in_the_order_of_its_ranks() {
    let predictions = read("run.trec");
    let first = [(Some("kitchen_02"), 0.5, 3.5, Some(0.91)), (Some("kitchen_01"), 2.0, 9.25, Some(0.4))];
    assert_eq!(rows(list(&predictions, Task::Any, "q1")), first);
    let second = [(Some("a:b:c"), 0.1, 3.0, Some(7.0)), (None, 4.0, 8.5, Some(-1.0))];
    assert_eq!(rows(list(&predictions, Task::Any, "q2")), second);
}

#[test]
fn csv_rows_of_one_query_need_not_stand_together() {
    let predictions = read("predictions.csv");
    let ids: Vec<_> = predictions.tasks[0].queries.iter().map(|list| list.query.as_str()).collect();
    assert_eq!(ids, ["q1", "2", "nothing"]);
    let q1 = [(Some("kitchen_01"), 2.0, 9.25, Some(0.91)), (Some("kitchen_02"), 0.5, 3.5, Some(0.4))];
    assert_eq!(rows(list(&predictions, Task::Any, "q1")), q1);
    assert_eq!(rows(list(&predictions, Task::Any, "2"))[0], (Some("garden, north"), 4.3, 5.12, None));
    assert!(list(&predictions, Task::Any, "nothing").ranked.is_empty());
    assert_eq!(list(&predictions, Task::Any, "q1").extra.get("predictions"), Some(&json!([{"proposal": "p7"}, null])));
}

#[test]
fn what_was_read_is_written_back_in_its_own_layout() {
    for (name, format) in PREDICTIONS {
        let predictions = Predictions { rows: Default::default(), ..read(name) };
        assert_eq!(round_trip(&predictions, format).unwrap(), predictions, "{name}");
    }
}

#[test]
fn every_layout_goes_through_ours_and_back() {
    for (name, format) in PREDICTIONS {
        let mut predictions = Predictions { rows: Default::default(), ..read(name) };
        let mut ours = round_trip(&predictions, PredictionFormat::Cuemark).unwrap();
        // Fields of the file as a whole have no place in JSON Lines; the rest does.
        ours.extra = predictions.extra.clone();
        ours = round_trip(&ours, format).unwrap();
        if format == PredictionFormat::QvHighlights {
            // A line without windows names its video under our name for it.
            for list in predictions.tasks.iter_mut().flat_map(|task| &mut task.queries) {
                assert_eq!(list.ranked, list_like(&ours, list).ranked, "{name}");
            }
            continue;
        }
        assert_eq!(ours, predictions, "{name}");
    }
}

fn list_like<'p>(predictions: &'p Predictions, wanted: &QueryPredictions) -> &'p QueryPredictions {
    list(predictions, Task::Any, wanted.query.as_str())
}

#[test]
fn several_tasks_do_not_fit_a_layout_for_one() {
    let predictions = read("tvr.json");
    for format in PredictionFormat::ALL {
        let fits = matches!(format, PredictionFormat::Cuemark | PredictionFormat::Tvr);
        assert_eq!(round_trip(&predictions, format).is_ok(), fits, "{format}");
    }
}

#[test]
fn a_score_that_is_not_finite_is_not_written() {
    let mut predictions = read("tvr-ranking.json");
    for score in [f64::NAN, f64::INFINITY] {
        predictions.tasks[0].queries[1].ranked[0].score = Some(score);
        // Charades' lines name a query by its sentence, which these lists do not carry.
        for format in PredictionFormat::ALL.into_iter().filter(|format| format.name() != "charades") {
            let lists = &mut predictions.tasks[0].queries;
            lists.truncate(2);
            lists[0].ranked.truncate(1); // one video a query, so that nothing but the score is wrong
            let error = round_trip(&predictions, format).unwrap_err().to_string();
            assert!(error.contains("is not a finite"), "{format}: {error}");
        }
    }
}

/// What an evaluation reads of a file that is kept in columns is what its lists say.
#[test]
fn columns_answer_as_lists_do() {
    let behind = br#"{"VR": [{"desc_id": 3, "predictions": []}], "x": [1, {"]": 2}],
        "VCMR": [{"desc_id": 1, "desc": "a}", "predictions": [[7, 1.5, 3], [9, 0.1, 2.7, 0.3]]}, {"predictions": [[8,4,2,1]], "desc_id": "q"}],
        "video2idx": {"a": 7, "b": 9, "a": 8}}"#;
    let sources = [
        (Source::in_memory("x", behind.to_vec()), PredictionFormat::Tvr),
        (fixture("tvr.json"), PredictionFormat::Tvr),
        (fixture("tvr-ranking.json"), PredictionFormat::TvrRanking),
    ];
    for (source, format) in sources {
        let options = options(Some(format));
        let (_, predictions) = read_predictions(&source, &options).unwrap();
        let (_, answers) = read_answers(&source, &options).unwrap();
        assert!(matches!(answers, FileAnswers::Numbered(_)));
        assert_eq!(
            (answers.tasks(), answers.rows()),
            (cuemark_core::Answers::tasks(&predictions), &predictions.rows),
            "{}",
            source.path()
        );
        for task in answers.tasks() {
            let (lists, columns) = (predictions.named(task).unwrap(), answers.named(task).unwrap());
            assert_eq!((lists.count(), lists.unread_fields()), (columns.count(), columns.unread_fields()));
            for place in 0..lists.count() {
                assert_eq!(lists.query(place), columns.query(place));
                assert_eq!(format!("{:?}", lists.ranked(place)), format!("{:?}", columns.ranked(place)));
                for answer in columns.ranked(place) {
                    // One reference per name, whatever its number.
                    let own = columns.videos().unwrap().get(answer.video.unwrap()).unwrap();
                    assert!(std::ptr::eq(own, answer.video.unwrap()));
                }
            }
        }
    }
}
