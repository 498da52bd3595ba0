//! What must hold for any input, checked on random ones through the whole pipeline.

use cuemark_core::{Prediction, Predictions, Progress, Query, QueryPredictions, Span, Truth, Video};
use cuemark_metrics::{Evaluation, Order, Overrides, Plan, Preset, evaluate, parse_list};
use proptest::collection::vec;
use proptest::prelude::*;

const DURATION: f64 = 60.0;

#[derive(Debug, Clone)]
struct Answered {
    truth: Vec<(f64, f64)>,
    ranked: Vec<(f64, f64, f64)>,
}

fn answered() -> impl Strategy<Value = Answered> {
    let bounds = || (0.0..50.0f64, 0.5..10.0f64);
    (vec(bounds(), 1..4), vec((bounds(), 0.0..1.0f64), 0..12)).prop_map(|(truth, ranked)| Answered {
        truth: truth.into_iter().map(|(start, len)| (start, start + len)).collect(),
        ranked: ranked.into_iter().map(|((start, len), score)| (start, start + len, score)).collect(),
    })
}

fn span(start: f64, end: f64) -> Span {
    Span::new(start, end).unwrap()
}

fn files(queries: &[Answered]) -> (Vec<Truth>, Predictions) {
    let truths = queries.iter().enumerate().map(|(id, q)| {
        let query = Query { id: id.to_string().as_str().into(), text: "a sentence".to_owned() };
        Truth::single(query, Video::new("v", DURATION), q.truth.iter().map(|(s, e)| span(*s, *e)))
    });
    let lists = queries.iter().enumerate().map(|(id, q)| QueryPredictions {
        query: id.to_string().as_str().into(),
        ranked: q
            .ranked
            .iter()
            .map(|(s, e, score)| Prediction { video: None, span: span(*s, *e), score: Some(*score) })
            .collect(),
        saliency: None,
        extra: Default::default(),
    });
    (truths.collect(), Predictions::any(lists.collect()))
}

fn run(plan: &Plan, truths: &[Truth], predictions: &Predictions) -> Evaluation {
    evaluate(plan, truths, predictions, &Progress::new()).unwrap()
}

const METRICS: &str = "R@1,IoU=0.5,R@5,IoU=0.5,R@10,IoU=0.5,dR@1,IoU=0.5,dR@5,IoU=0.5,mIoU,mAP,NDCG@10,IoU=0.5";

proptest! {
    #[test]
    fn every_metric_is_a_fraction_and_recall_grows_with_n(queries in vec(answered(), 1..30)) {
        let (truths, predictions) = files(&queries);
        let result = run(&Plan::plain(parse_list(METRICS).unwrap(), Overrides::default()), &truths, &predictions);
        let mean: Vec<f64> = result.columns.iter().map(|column| column.mean().unwrap()).collect();
        prop_assert!(mean.iter().all(|value| (0.0..=1.0 + 1e-12).contains(value)), "{:?}", mean);
        prop_assert!(mean[0] <= mean[1] && mean[1] <= mean[2]);
        prop_assert!(mean[3] <= mean[0] && mean[4] <= mean[1]);
    }

    #[test]
    fn the_order_of_queries_in_either_file_does_not_matter(queries in vec(answered(), 1..20)) {
        let (truths, predictions) = files(&queries);
        let (mut turned, mut shuffled) = (truths.clone(), predictions.clone());
        turned.reverse();
        shuffled.tasks[0].queries.rotate_left(queries.len() / 2);
        let plan = Plan::plain(parse_list(METRICS).unwrap(), Overrides::default());
        let (a, b) = (run(&plan, &truths, &predictions), run(&plan, &turned, &shuffled));
        for (a, b) in a.columns.iter().zip(&b.columns) {
            prop_assert!((a.mean().unwrap() - b.mean().unwrap()).abs() < 1e-12);
        }
    }

    #[test]
    fn a_constant_scorer_cannot_win_by_how_its_list_happens_to_be_ordered(queries in vec(answered(), 1..20)) {
        // Put the best answer first in the file, then last: with equal scores and ties by place nothing may change.
        let constant = |best_first: bool| {
            let mut queries = queries.clone();
            for q in &mut queries {
                let (s, e) = q.truth[0];
                let overlap = |p: &(f64, f64, f64)| span(p.0, p.1).iou(span(s, e));
                q.ranked.sort_by(|a, b| overlap(b).total_cmp(&overlap(a)));
                if !best_first {
                    q.ranked.reverse();
                }
                q.ranked.iter_mut().for_each(|p| p.2 = 0.5);
            }
            queries
        };
        let by_score = Overrides { order: Some(Order::Score), ..Overrides::default() };
        let plan = Plan::plain(parse_list(METRICS).unwrap(), by_score);
        let of = |queries: &[Answered]| {
            let (truths, predictions) = files(queries);
            run(&plan, &truths, &predictions).columns.iter().map(|c| c.mean().unwrap()).collect::<Vec<f64>>()
        };
        for (a, b) in of(&constant(true)).into_iter().zip(of(&constant(false))) {
            prop_assert!((a - b).abs() < 1e-12);
        }
    }

    #[test]
    fn an_unanswered_query_is_a_miss_and_is_counted(queries in vec(answered(), 2..20)) {
        let (truths, mut predictions) = files(&queries);
        predictions.tasks[0].queries.pop();
        let already = queries[..queries.len() - 1].iter().filter(|q| q.ranked.is_empty()).count();
        let result = run(&Plan::plain(parse_list("R@1,IoU=0.5").unwrap(), Overrides::default()), &truths, &predictions);
        prop_assert_eq!(result.missing, already + 1);
        prop_assert_eq!(result.columns[0].counted(), queries.len());
        prop_assert_eq!(result.columns[0].score(queries.len() - 1), Some(0.0));
    }
}

#[test]
fn a_preset_refuses_what_its_evaluator_refuses() {
    let queries = vec![Answered { truth: vec![(0.0, 5.0)], ranked: vec![(0.0, 5.0, 1.0)] }; 3];
    let (truths, mut predictions) = files(&queries);
    predictions.tasks[0].queries.pop();
    let plan = Plan::preset(Preset::QvHighlights, None, Overrides::default());
    let error = evaluate(&plan, &truths, &predictions, &Progress::new()).unwrap_err();
    assert!(error.to_string().starts_with("1 of 3 queries have no predictions, the first is `2`"), "{error}");
}

#[test]
fn ids_that_stand_for_two_queries_are_refused() {
    let queries = vec![Answered { truth: vec![(0.0, 5.0)], ranked: vec![(0.0, 5.0, 1.0)] }; 2];
    let (mut truths, predictions) = files(&queries);
    truths[1].query.id = truths[0].query.id.clone();
    let plan = Plan::plain(parse_list("mIoU").unwrap(), Overrides::default());
    assert!(evaluate(&plan, &truths, &predictions, &Progress::new()).unwrap_err().to_string().contains("twice"));
}
