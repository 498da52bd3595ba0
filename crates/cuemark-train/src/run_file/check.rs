//! What no single key can say of itself: values out of range, and keys that contradict each other.

use camino::Utf8Path;
use cuemark_core::ClipLen;
use cuemark_features::RowTime;

use super::parse::fault;
use super::{DataConfig, Optimiser, RunFile};
use crate::{Averaging, Result, TrainError};

impl RunFile {
    pub(super) fn check(&self, path: &str) -> Result<()> {
        self.data.check(path)?;
        if self.data.features.is_none() && !self.data.is_world() {
            return Err(fault(path, "`data.features` is missing: where are the clip features?"));
        }
        let positive = |key: &str, value: f64| {
            (value > 0.0 && value.is_finite())
                .then_some(())
                .ok_or_else(|| fault(path, &format!("`{key}` is {value}, expected more than 0")))
        };
        positive("eval.every", self.eval.every)?;
        positive("data.word_width", self.data.word_width as f64)?;
        positive("eval.batch", self.eval.batch as f64)?;
        positive("eval.queries", self.eval.queries.unwrap_or(1) as f64)?;
        positive("train.minutes", self.train.minutes.unwrap_or(1.0))?;
        for stage in &self.train.stages {
            positive("train.epochs", stage.epochs as f64)?;
            positive("train.batch", stage.batch as f64)?;
            positive("train.rate", stage.rate)?;
            let clips = [
                ("train.clip_norm", stage.clip_norm),
                ("train.clip_tensor_norm", stage.clip_tensor_norm),
                ("train.clip_value", stage.clip_value),
            ];
            let said: Vec<(&str, f64)> = clips.iter().filter_map(|(key, limit)| Some((*key, (*limit)?))).collect();
            for (key, limit) in &said {
                positive(key, *limit)?;
            }
            if let [(one, _), (other, _), ..] = said[..] {
                return Err(fault(path, &format!("`{one}` and `{other}` cannot both hold")));
            }
            if let Some(Averaging { decay, .. }) = stage.average.filter(|average| !(0.0..1.0).contains(&average.decay))
            {
                return Err(fault(path, &format!("`train.average.decay` is {decay}, expected 0 to 1")));
            }
            if !(0.0..1.0).contains(&stage.momentum) {
                return Err(fault(path, &format!("`train.momentum` is {}, expected 0 to 1", stage.momentum)));
            }
            if stage.momentum > 0.0 && stage.optimiser != Optimiser::Sgd {
                return Err(fault(path, "`train.momentum` is for `optimiser = \"sgd\"`; others have `betas`"));
            }
        }
        self.eval.metrics().map(|_| ())
    }
}

impl DataConfig {
    pub(super) fn check(&self, path: &str) -> Result<()> {
        let stem = Utf8Path::new(&self.val).file_stem().unwrap_or(&self.val);
        if stem.split(['-', '_', '.']).any(|part| part.eq_ignore_ascii_case("test")) {
            return Err(TrainError::ChosenOnTest { path: path.to_owned(), split: self.val.clone() });
        }
        if self.dataset.is_some() && self.root.is_none() {
            return Err(fault(path, "`data.root` is missing: where is the dataset?"));
        }
        self.row_time().map_err(|problem| fault(path, &format!("`data.clip_length`: {problem}")))?;
        let Some(text) = &self.text else { return Ok(()) };
        let others = [
            ("data.query_features", self.query_features.is_some()),
            ("data.queries", self.queries.is_some()),
            ("data.words", self.words.is_some()),
        ];
        if let Some((other, _)) = others.iter().find(|(_, said)| *said) {
            return Err(fault(
                path,
                &format!("`data.text` and `{other}` both say where the vectors of words come from"),
            ));
        }
        text.check().map_err(|problem| fault(path, &problem))
    }

    /// When a row of features lies, for layouts that do not say.
    ///
    /// # Errors
    /// With what is wrong, when the keys contradict each other or a clip has no length.
    pub(crate) fn row_time(&self) -> Result<Option<RowTime>, String> {
        match (self.clip_length, self.rows_span_duration) {
            (Some(seconds), false) => match ClipLen::new(seconds) {
                Some(clip) => Ok(Some(RowTime::Clip(clip))),
                None => Err(format!("is {seconds}, expected seconds above 0")),
            },
            (None, true) => Ok(Some(RowTime::SpanDuration)),
            (None, false) => Ok(None),
            (Some(_), true) => Err("contradicts `data.rows_span_duration`: state one of them".to_owned()),
        }
    }
}
