//! How truth is read: the keyword arguments that stand for `--truth-format`, `--durations` and `--bad-rows`.

use std::sync::Arc;

use cuemark_data::{Durations, ReadOptions, TruthFormat};
use cuemark_formats::Source;
use pyo3::prelude::*;

use super::arrays::shown;
use super::{Floats, json, path, type_name, with_view};
use crate::failure::{Failure, Result};

/// The keyword arguments as they come.
#[derive(Default)]
pub(crate) struct TruthFlags<'a, 'py> {
    /// `truth_format`
    pub(crate) format: Option<&'a str>,
    /// `durations`
    pub(crate) durations: Option<&'a Bound<'py, PyAny>>,
    /// `bad_rows`
    pub(crate) bad_rows: Option<&'a str>,
}

/// The same, understood.
#[derive(Debug, Clone, Default)]
pub(crate) struct TruthReading {
    pub(super) format: Option<TruthFormat>,
    pub(super) options: ReadOptions,
    /// Durations by row, for truth that is an array.
    pub(super) by_row: Option<Vec<f64>>,
}

impl TruthReading {
    /// What readers of whole datasets are told.
    pub(crate) fn options(&self) -> &ReadOptions {
        &self.options
    }
}

impl TruthFlags<'_, '_> {
    /// Understands them.
    ///
    /// # Errors
    /// When one says what cannot be; a durations file is read here.
    pub(crate) fn understand(&self) -> Result<TruthReading> {
        let format = self.format.map(str::parse::<TruthFormat>).transpose()?;
        let bad_rows = super::choice("bad_rows", self.bad_rows.unwrap_or("keep"))?;
        let mut reading = TruthReading { format, options: ReadOptions { bad_rows, durations: None }, by_row: None };
        let Some(durations) = self.durations else { return Ok(reading) };
        if let Some(path) = path(durations, "durations")? {
            reading.options.durations = Some(Arc::new(Durations::read(&Source::new(path))?));
        } else if super::keys(durations)?.is_some() {
            let source = json::document(durations, "durations")?;
            let known = Durations::read(&source).map_err(|error| Failure::from(error).of_argument("durations"))?;
            reading.options.durations = Some(Arc::new(known));
        } else {
            reading.by_row = Some(by_row(durations)?);
        }
        Ok(reading)
    }
}

fn by_row(durations: &Bound<'_, PyAny>) -> Result<Vec<f64>> {
    let hint = "a path, a dict of video to seconds, or for truth that is an array one number for each row";
    let floats = Floats::convert(durations, "durations").map_err(|_| {
        let problem = format!("a `{}` holds no durations", type_name(durations));
        Failure::wrong_type("durations", problem).with_hint(hint)
    })?;
    if floats.shape().len() != 1 {
        let problem = format!("the shape is {} where one number a query is wanted", shown(floats.shape()));
        return Err(Failure::argument("durations", problem).with_hint(hint));
    }
    let seconds: Vec<f64> = with_view!(&floats, view => view.iter().map(|seconds| f64::from(*seconds)).collect());
    match seconds.iter().position(|seconds| !(*seconds > 0.0 && *seconds < 1e9)) {
        Some(row) => {
            let problem = format!("{} is no duration in seconds", seconds[row]);
            Err(Failure::argument(format!("durations[{row}]"), problem))
        }
        None => Ok(seconds),
    }
}
