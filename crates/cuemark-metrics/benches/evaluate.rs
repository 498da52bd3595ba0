//! Sized like real work: ActivityNet's val_1 has 17 505 queries.

#![allow(missing_docs, clippy::unwrap_used)]

use cuemark_core::{Prediction, Predictions, Progress, Query, QueryPredictions, Rng, Span, Truth, Video};
use cuemark_metrics::{Bootstrap, Overrides, Plan, evaluate, intervals, parse_list, recall_at};
use divan::Bencher;
use divan::counter::ItemsCount;

const QUERIES: usize = 17_505;

fn main() {
    divan::main();
}

fn span(rng: &mut Rng) -> Span {
    let start = rng.between(0.0, 100.0);
    Span::new(start, start + rng.between(0.0, 50.0)).unwrap()
}

fn files(queries: usize, ranked: usize) -> (Vec<Truth>, Predictions) {
    let mut rng = Rng::new(0);
    let id = |n: usize| n.to_string();
    let truths = (0..queries).map(|n| {
        let query = Query { id: id(n).as_str().into(), text: String::new() };
        Truth::single(query, Video::new("v", 150.0), [span(&mut rng)])
    });
    let truths = truths.collect();
    let lists = (0..queries).map(|n| QueryPredictions {
        query: id(n).as_str().into(),
        ranked: (0..ranked).map(|_| Prediction { video: None, span: span(&mut rng), score: None }).collect(),
        saliency: None,
        extra: Default::default(),
    });
    (truths, Predictions::any(lists.collect()))
}

fn plan() -> Plan {
    Plan::plain(parse_list("R@1,IoU=0.3,R@1,IoU=0.5,R@1,IoU=0.7,R@5,IoU=0.5,mIoU").unwrap(), Overrides::default())
}

#[divan::bench(args = [10, 100, 1_000])]
fn recall(bencher: Bencher, proposals: usize) {
    let mut rng = Rng::new(0);
    let ranked: Vec<Span> = (0..proposals).map(|_| span(&mut rng)).collect();
    let miss = [Span::new(1e6, 1e6 + 3.0).unwrap()]; // reads every proposal
    bencher.counter(ItemsCount::new(proposals)).bench(|| recall_at(proposals, 0.7, &ranked, &miss));
}

#[divan::bench(args = [10, 100], sample_count = 10)]
fn whole_split(bencher: Bencher, ranked: usize) {
    let (truths, predictions) = files(QUERIES, ranked);
    let plan = plan();
    bencher
        .counter(ItemsCount::new(QUERIES * ranked))
        .bench(|| evaluate(&plan, &truths, &predictions, &Progress::new()).unwrap());
}

#[divan::bench(sample_count = 5)]
fn ten_thousand_resamples(bencher: Bencher) {
    let (truths, predictions) = files(QUERIES, 5);
    let evaluation = evaluate(&plan(), &truths, &predictions, &Progress::new()).unwrap();
    bencher.bench(|| intervals(&evaluation.columns, Bootstrap::default(), &Progress::new()));
}
