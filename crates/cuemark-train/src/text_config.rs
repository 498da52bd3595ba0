//! What a run file may say about a published text encoder.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// A published text encoder and what is done with it: `[data.text]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextConfig {
    /// Its weights: a name that `cuemark weights list` knows, or a folder with `config.json`, tokenizer and weights.
    pub encoder: String,
    /// Where the tokenizer lies, when not with the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// Whether it learns. Default: frozen
    #[serde(default)]
    pub training: TextTraining,
    /// The factor on the learning rate of a fine-tuned encoder. Left out: the model's own, 0.1 where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The most tokens of a sentence, markers among them. Left out: as many as the encoder has positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<usize>,
    /// Whether the markers of a sentence's start and end are read like its words. Default: kept
    #[serde(default)]
    pub markers: Markers,
    /// The folder that keeps the vectors of a frozen encoder. Left out: `token-features` in the user's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Utf8PathBuf>,
}

/// Whether a published encoder learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextTraining {
    /// It stays as it is; what it makes of each sentence is computed once and kept. Default.
    #[default]
    Frozen,
    /// It learns with the model.
    FineTuned,
}

/// What becomes of the markers that a tokenizer puts at the start and the end of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Markers {
    /// The model reads their vectors too. Default.
    #[default]
    Kept,
    /// The encoder reads them, the model does not.
    Dropped,
}

/// The factor on the learning rate of an encoder that a model without one of its own is given.
const RATE: f64 = 0.1;

impl TextConfig {
    /// The factor on the learning rate of the encoder's parameters, where the model's own is `of_model`.
    pub(crate) fn factor(&self, of_model: f64) -> f64 {
        // A model that keeps its encoder as it is in this epoch has the last word.
        if of_model == 0.0 { 0.0 } else { self.rate.unwrap_or(of_model) }
    }

    /// As [`TextConfig::factor`], for an encoder in front of the model.
    pub(crate) fn factor_in_front(&self) -> f64 {
        self.rate.unwrap_or(RATE)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(rate) = self.rate.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
            return Err(format!("`data.text.rate` is {rate}, expected more than 0"));
        }
        if self.rate.is_some() && self.training == TextTraining::Frozen {
            return Err(
                "`data.text.rate` is for `training = \"fine-tuned\"`; a frozen encoder does not learn".to_owned()
            );
        }
        if let Some(longest) = self.longest.filter(|longest| *longest < 3) {
            return Err(format!("`data.text.longest` is {longest}: two markers leave no room for a word"));
        }
        if self.markers == Markers::Dropped && self.training == TextTraining::FineTuned {
            return Err(
                "`data.text.markers` is for a frozen encoder: a model that trains one reads what it reads".to_owned()
            );
        }
        Ok(())
    }
}
