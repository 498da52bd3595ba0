//! What is known about a method before one is built.

use cuemark_tensor::{Params, VarBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::check::{Fixture, Trace};
use crate::weights::Shapes;
use crate::{Given, Model, ModelError, Result};

/// One published method.
#[derive(Debug)]
pub struct ModelCard {
    /// Its name on the command line and in run files.
    pub name: &'static str,
    /// Its name in print.
    pub title: &'static str,
    /// The paper, venue and year.
    pub paper: &'static str,
    /// How it goes about it.
    pub family: Family,
    /// What it can be asked.
    pub tasks: &'static [Task],
    /// What it learns from.
    pub supervision: Supervision,
    /// One line on the idea.
    pub idea: &'static str,
    /// The configurations its paper reports, first the one that tables quote.
    pub full_sizes: &'static [FullSize],
    /// How [`ModelCard::build`] goes about it.
    pub build: fn(ModelSettings<'_>, &Given, VarBuilder) -> Result<Box<dyn Model>>,
    /// How [`ModelCard::settings`] goes about it.
    pub settings: fn(ModelSettings<'_>) -> Result<toml::Table>,
    /// Runs a fixture's inputs through the network that its sizes describe.
    pub check: fn(&Fixture, &VarBuilder) -> Result<Trace>,
}

/// A configuration that a paper reports.
#[derive(Debug, Clone, Copy)]
pub struct FullSize {
    /// The dataset.
    pub dataset: &'static str,
    /// The `[model]` table, as TOML.
    pub settings: &'static str,
    /// Width of a clip's features.
    pub visual: usize,
    /// Width of a word vector.
    pub words: usize,
    /// Parameters that the card of the method states, in millions; `None` where it states none.
    pub millions: Option<f64>,
}

/// How a method goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Scores every span on a start × end map.
    Map2d,
    /// Scores anchors of fixed lengths at every clip.
    Anchor,
    /// Regresses the boundaries.
    Regression,
    /// Scores clips as starts and ends.
    Span,
    /// Predicts a small set of spans at once.
    Set,
    /// Learns from pairs of video and sentence without spans.
    Weak,
    /// Scores windows cut beforehand.
    TwoStage,
    /// Moves a window step by step.
    Reinforcement,
    /// Retrieves from many videos.
    Corpus,
}

/// What a method can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Where in this video?
    SingleVideo,
    /// Which video, and where in it?
    Corpus,
    /// Which moments, by how relevant they are?
    Ranked,
    /// How good is each clip?
    Highlights,
}

/// What a method learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Supervision {
    /// The spans.
    Full,
    /// Which sentence belongs to which video, and nothing more.
    Weak,
    /// Nothing is learnt.
    None,
}

impl ModelCard {
    /// Builds it from the `[model]` table of a run file, without its `name`.
    ///
    /// # Errors
    /// For settings that the method does not understand, and for weights that do not fit it.
    pub fn build(&self, table: &toml::Table, given: &Given, vb: VarBuilder) -> Result<Box<dyn Model>> {
        (self.build)(ModelSettings { model: self.name, table }, given, vb)
    }

    /// The settings of such a table with their defaults filled in.
    ///
    /// # Errors
    /// For settings that the method does not understand.
    pub fn settings(&self, table: &toml::Table) -> Result<toml::Table> {
        (self.settings)(ModelSettings { model: self.name, table })
    }

    /// The number of trainable parameters of one of its published configurations.
    ///
    /// # Errors
    /// When the settings do not build, which a test rules out.
    pub fn parameters(&self, size: &FullSize) -> Result<usize> {
        Ok(self.counted(size)?.params.count())
    }

    /// Names and shapes of everything that one of its published configurations holds, buffers included.
    ///
    /// # Errors
    /// As [`ModelCard::parameters`].
    pub fn shapes(&self, size: &FullSize) -> Result<Shapes> {
        Ok(self.counted(size)?.params.shapes())
    }

    /// Whether moments of one of its published configurations can be put into an index: whether the network is a
    /// [`BiEncoder`](crate::BiEncoder).
    ///
    /// # Errors
    /// As [`ModelCard::parameters`].
    pub fn is_bi_encoder(&self, size: &FullSize) -> Result<bool> {
        Ok(self.counted(size)?.model.bi_encoder().is_some())
    }

    /// The network without its numbers.
    fn counted(&self, size: &FullSize) -> Result<Skeleton> {
        let settings = size.settings.parse::<toml::Table>().map_err(|error| self.fault(error.message().to_owned()))?;
        let params = Params::counted();
        let given = Given::widths(size.visual, size.words, BERT_VOCABULARY);
        let model = self.build(&settings, &given, params.builder())?;
        Ok(Skeleton { params, model })
    }

    pub(crate) fn fault(&self, problem: String) -> ModelError {
        ModelError::Settings { model: self.name, problem }
    }
}

/// A network whose parameters have names and shapes only.
struct Skeleton {
    params: Params,
    model: Box<dyn Model>,
}

/// Words in the vocabulary of the uncased BERT family.
pub(crate) const BERT_VOCABULARY: usize = 30_522;

/// The `[model]` table of a run file, without its `name`, and the method that has to understand it.
#[derive(Debug, Clone, Copy)]
pub struct ModelSettings<'a> {
    model: &'static str,
    table: &'a toml::Table,
}

impl ModelSettings<'_> {
    /// The method's own settings.
    ///
    /// # Errors
    /// For an unknown key, a missing one or a value of the wrong kind, naming it.
    pub fn read<T: DeserializeOwned>(self) -> Result<T> {
        let value = toml::Value::Table(self.table.clone());
        value.try_into().map_err(|error: toml::de::Error| self.fault(error.message().trim().replace('\n', " ")))
    }

    /// The same as a table, defaults filled in.
    ///
    /// # Errors
    /// As [`ModelSettings::read`].
    pub fn filled<T: DeserializeOwned + Serialize>(self) -> Result<toml::Table> {
        toml::Table::try_from(self.read::<T>()?).map_err(|error| self.fault(error.to_string()))
    }

    fn fault(self, problem: String) -> ModelError {
        ModelError::Settings { model: self.model, problem }
    }
}
