//! Small truths and answers for the tests of this module.

use cuemark_core::{Extra, Prediction, Predictions, Query, QueryPredictions, Span, Truth, Video};

/// `n` queries about videos of 40 s, two to a video; the moment of query k lies at 10 + k mod 5 to 20 + k mod 5 s.
pub(crate) fn truths(n: usize) -> Vec<Truth> {
    let truth = |k: usize| {
        let query = Query { id: k.to_string().as_str().into(), text: format!("person number {k} opens the door") };
        let shift = (k % 5) as f64;
        let span = Span::new(10.0 + shift, 20.0 + shift).unwrap();
        Truth::single(query, Video::new(format!("v{}", k / 2).as_str(), 40.0), [span])
    };
    (0..n).map(truth).collect()
}

/// One list for each truth: the spans that `spans` gives, with scores 1, 1/2, 1/3 …
pub(crate) fn answers(truths: &[Truth], spans: impl Fn(usize) -> Vec<(f64, f64)>) -> Predictions {
    let list = |(k, truth): (usize, &Truth)| {
        let ranked = spans(k).into_iter().enumerate().map(|(rank, (start, end))| Prediction {
            video: truth.video.as_ref().map(|video| video.id.clone()),
            span: Span::new(start, end).unwrap(),
            score: Some(1.0 / (rank + 1) as f64),
        });
        let query = truth.query.id.clone();
        QueryPredictions { query, ranked: ranked.collect(), saliency: None, extra: Extra::default() }
    };
    Predictions::any(truths.iter().enumerate().map(list).collect())
}
