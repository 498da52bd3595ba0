//! Makes folders of evaluated runs for `cargo xtask bench report`.
//!
//! usage: many_runs FOLDER RUNS QUERIES
//!
//! Thirty methods that miss by more or less, as many seeds as it takes, on one split of drawn moments. Intervals take few
//! resamples here: how long those take is the business of `cargo xtask bench eval`, and a report only reads them.

use camino::Utf8PathBuf;
use cuemark_bench::report::{About, Answerer, Measure, store_truth};
use cuemark_core::{Extra, Prediction, Predictions, Progress, Query, QueryPredictions, Rng, Span, Truth, Video};
use cuemark_formats::Overwrite;
use cuemark_metrics::Bootstrap;

/// Methods; the other runs are their seeds.
const METHODS: usize = 30;
/// Answers per query.
const ANSWERS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, runs, queries] = arguments.as_slice() else {
        return Err("usage: many_runs FOLDER RUNS QUERIES".into());
    };
    let (folder, runs, queries) = (Utf8PathBuf::from(folder), runs.parse::<usize>()?, queries.parse::<usize>()?);
    let truths = truths(queries)?;
    store_truth(&folder.join("truths"), &truths)?;
    let bootstrap = Bootstrap { resamples: 20, ..Bootstrap::default() };
    for run in 0..runs {
        let (method, seed) = (run % METHODS, (run / METHODS) as u64);
        let about = About {
            model: format!("method-{method:02}"),
            kind: if method >= METHODS - 4 { Answerer::Baseline } else { Answerer::Model },
            dataset: "drawn".into(),
            protocol: "standard".into(),
            split: "test".into(),
            seed: Some(seed),
            ..About::default()
        };
        let predictions = answers(&truths, 2.0 + method as f64, seed)?;
        let measure = Measure { bootstrap, ..Measure::default() };
        let evaluated = measure.run(about, &truths, &predictions, &Progress::new())?;
        evaluated.store(&folder.join(format!("run-{run:03}")), &truths, Overwrite::Force)?;
    }
    Ok(())
}

fn truths(queries: usize) -> Result<Vec<Truth>, cuemark_core::SpanError> {
    let mut rng = Rng::new(1);
    let verbs = ["opens", "closes", "takes", "puts", "walks", "sits", "holds", "throws"];
    let truth = |k: usize| {
        let duration = 20.0 + 160.0 * rng.uniform();
        let start = 0.7 * duration * rng.uniform();
        let span = Span::new(start, start + (duration - start) * (0.1 + 0.6 * rng.uniform()))?;
        let text = format!("a person {} the thing that was number {} before", verbs[k % verbs.len()], k % 97);
        let query = Query { id: k.to_string().as_str().into(), text };
        Ok(Truth::single(query, Video::new(format!("video-{}", k / 4).as_str(), duration), [span]))
    };
    (0..queries).map(truth).collect()
}

/// Answers that miss by about `noise` seconds.
fn answers(truths: &[Truth], noise: f64, seed: u64) -> Result<Predictions, cuemark_core::SpanError> {
    let mut rng = Rng::stream(seed, &format!("noise {noise}"));
    let mut lists = Vec::with_capacity(truths.len());
    for truth in truths {
        let Some(right) = truth.right().next().map(|moment| moment.span) else { continue };
        let mut ranked = Vec::with_capacity(ANSWERS);
        for rank in 0..ANSWERS {
            let start = (right.start() + noise * rng.normal()).max(0.0);
            let end = start.max(right.end() + noise * rng.normal());
            ranked.push(Prediction {
                video: None,
                span: Span::new(start, end)?,
                score: Some(rng.uniform() / (rank + 1) as f64),
            });
        }
        lists.push(QueryPredictions { query: truth.query.id.clone(), ranked, saliency: None, extra: Extra::default() });
    }
    Ok(Predictions::any(lists))
}
