//! `cuemark.baseline`: what can be had without looking at the video.

use cuemark_core::Progress;
use cuemark_protocols::baselines::{Needs, Training, find};
use pyo3::prelude::*;

use crate::arguments::{TruthArgument, TruthFlags};
use crate::evaluation::read_all;
use crate::failure::{Failure, Result};
use crate::predictions::Predictions;
use crate::watch::{Audience, watched};

/// The answers of a baseline that never looks at a video.
///
/// `name` is `predict-all`, `bias-draw`, `bias-density`, `bias-mode` or `bias-verb`; all but the first learn from `train`
/// where moments lie. `truth` and `train` are what `evaluate` takes, with durations.
#[pyfunction]
#[pyo3(signature = (
    name, truth: "TruthLike", *, train: "TruthLike | None" = None, answers = 5, seed = 0,
    durations: "DurationsLike | None" = None, bad_rows: "BadRows" = "keep", progress: "ProgressLike" = None
) -> "Predictions")]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn baseline<'py>(
    py: Python<'py>,
    name: &str,
    truth: &Bound<'py, PyAny>,
    train: Option<&Bound<'py, PyAny>>,
    answers: usize,
    seed: u64,
    durations: Option<&Bound<'py, PyAny>>,
    bad_rows: &str,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Predictions> {
    let card = find(name)?;
    if card.needs == Needs::TrainingMoments && train.is_none() {
        return Err(Failure::argument("train", format!("`{name}` learns where moments lie: pass the training split")));
    }
    let audience = Audience::of(py, progress)?;
    let reading = TruthFlags { format: None, durations, bad_rows: Some(bad_rows) }.understand()?;
    let read = |object: &Bound<'py, PyAny>, argument: &'static str| {
        let truth = TruthArgument::of(object, argument, &reading)?;
        Ok::<_, Failure>(read_all(py, &audience, truth, Vec::new())?.0)
    };
    let train = train.map(|train| read(train, "train")).transpose()?;
    let truth = read(truth, "truth")?;
    let predictions = watched(py, &audience, "answering", &Progress::new(), || {
        let truths = train.as_ref().map_or(&[][..], |train| &train.queries);
        let baseline = card.fit(&Training::of(truths))?;
        Ok(baseline.predict(&truth.queries, answers, seed)?)
    })?;
    Ok(Predictions::new(predictions))
}
