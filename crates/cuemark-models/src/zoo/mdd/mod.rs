//! MDD: 2D-TAN whose query is gated by its verbs and nouns and whose map is adjusted by attention over confounders.
//! Lan et al., "A Closer Look at Debiased Temporal Sentence Grounding in Videos: Dataset, Metric, and Approach",
//! TOMM 2022 (extends Yuan et al., "A Closer Look at Temporal Sentence Grounding in Videos", HUMA 2021).
//!
//! No code is published. Where the paper is silent: every branch has projections of its own; the reconstruction is the
//! mean over valid cells of the distance to TCN-DCM's position code; a sentence without a verb keeps its plain query;
//! unobserved dictionaries start from a normal of deviation 0.3, since the product of branches shrinks anything smaller.

mod branch;
mod check;
mod config;
mod gate;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{l2_normalise, sigmoid};
use cuemark_tensor::map::span_max;
use cuemark_text::{Parse, Phrase};

use super::tcn_dcm::position_code;
use crate::layers::{Linear, MapStack, MomentMap, Recurrent, Ways, last_step, linear, pointwise};
use crate::{
    Batch, Family, FullSize, Given, Grid, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision,
    Task,
};

use branch::{Branch, branch_names};
pub use config::{Branches, Confounder, Entries, MddConfig};
use gate::Gate;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "mdd",
    title: "MDD",
    paper: "Lan et al., A Closer Look at Debiased Temporal Sentence Grounding in Videos: Dataset, Metric, and Approach, \
            TOMM 2022",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "gates the query by its verbs and nouns and adds attention over several confounders to the map",
    full_sizes: &[
        FullSize {
            dataset: "charades-cd",
            settings: "map = { pre_clips = 256, clips = 16, counts = [15] }",
            visual: 1024,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "activitynet-cd",
            settings: "map = { pre_clips = 256, clips = 16, counts = [15] }",
            visual: 500,
            words: 300,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Mdd::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<MddConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Mdd {
    config: MddConfig,
    map: MomentMap,
    project: Linear,
    query: Recurrent,
    gate: Option<Gate>,
    place: Option<Linear>,
    /// The position code of every square, `[clips * clips, hidden]`.
    position: Tensor,
    branches: Vec<Branch>,
    query_to_map: Linear,
    moment_to_map: Linear,
    stack: MapStack,
    score: Linear,
}

/// Everything on the way to the scores, one row per valid cell.
struct Forward {
    moments: Tensor,
    query: Tensor,
    gated: Tensor,
    logits: Tensor,
}

impl Mdd {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, for sizes that do not fit each other, and when actions are among the
    /// confounders and the data gave no verbs.
    pub fn new(config: &MddConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        if config.heads == 0 || !hidden.is_multiple_of(config.heads) {
            let problem = format!("`heads`: {} do not divide `hidden` of {hidden}", config.heads);
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let map = MomentMap::new(config.map.clips, &config.map.counts)?;
        let position = position_code(config.map.clips, hidden, vb.device())?;
        let named = branch_names(&config.confounders).into_iter().zip(&config.confounders);
        let branches = named.map(|(name, kind)| Branch::new(name, *kind, config, given, &position, &vb));
        Ok(Self {
            project: linear(given.visual, hidden, vb.pp("proj"))?,
            query: Recurrent::lstm(given.words, hidden, config.lstm_layers, Ways::Forward, vb.pp("lstm"))?,
            gate: config.semantic_roles.then(|| Gate::new(hidden, &vb)).transpose()?,
            place: (config.reconstruction != 0.0).then(|| linear(hidden, hidden, vb.pp("fc_pos"))).transpose()?,
            branches: branches.collect::<Result<_>>()?,
            query_to_map: linear(hidden, hidden, vb.pp("fuse_q"))?,
            moment_to_map: pointwise(hidden, hidden, 2, vb.pp("fuse_v"))?,
            stack: MapStack::new(&map, hidden, config.kernel, config.layers, config.support, vb.pp("convs"))?,
            score: pointwise(hidden, 1, 2, vb.pp("pred"))?,
            position,
            map,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, pre_clips, d_visual]`; words `[batch, words, d_word]` with `lengths` real ones; phrases one list
    ///   per query, none when the gate is off
    /// - logits of the result `[batch, cells]`, one per valid cell
    fn forward(&self, visual: &Tensor, words: &Tensor, lengths: &[usize], phrases: &[&[Phrase]]) -> Result<Forward> {
        let moments = span_max(&self.clips(visual)?, self.map.layout())?;
        let states = self.query.forward(words)?;
        let query = last_step(&states, lengths)?;
        let gated = match &self.gate {
            Some(gate) => gate.forward(&states, &query, lengths, phrases)?,
            None => query.clone(),
        };
        let adjusted = match self.confounder(&gated, &moments)? {
            Some(confounder) => (&moments + confounder)?,
            None => moments.clone(),
        };
        let asked = self.query_to_map.forward(&gated)?.unsqueeze(1)?;
        let fused = l2_normalise(&self.moment_to_map.forward(&adjusted)?.broadcast_mul(&asked)?)?;
        let logits = self.score.forward(&self.stack.forward(&fused)?)?.squeeze(D::Minus1)?;
        Ok(Forward { moments, query, gated, logits })
    }

    /// Projection, ReLU and the mean of neighbours (A2), `[batch, pre_clips, d_visual]` to `[batch, clips, hidden]`.
    fn clips(&self, visual: &Tensor) -> candle_core::Result<Tensor> {
        let (batch, pre_clips, _) = visual.dims3()?;
        let clips = self.config.map.clips;
        if !pre_clips.is_multiple_of(clips) {
            candle_core::bail!("{pre_clips} pre-clips cannot be averaged to {clips} clips");
        }
        let x = self.project.forward(visual)?.relu()?;
        x.reshape((batch, clips, pre_clips / clips, ()))?.mean(2)
    }

    /// The product of all branches at each of `moments [batch, cells, hidden]`; `None` without branches.
    fn confounder(&self, gated: &Tensor, moments: &Tensor) -> Result<Option<Tensor>> {
        let mut product: Option<Tensor> = None;
        for branch in &self.branches {
            let seen = branch.forward(gated, moments)?;
            let seen = match self.config.branches {
                Branches::Plain => seen,
                Branches::Normalised => (l2_normalise(&seen)? * (self.config.hidden as f64).sqrt())?,
            };
            product = Some(match product {
                Some(product) => (product * seen)?,
                None => seen,
            });
        }
        Ok(product)
    }

    /// Mean over valid cells of the distance between what the map says about a cell's place and its position code.
    fn reconstruction(&self, moments: &Tensor) -> Result<Option<Tensor>> {
        let Some(place) = &self.place else { return Ok(None) };
        let code = self.position.index_select(&self.map.squares(moments.device())?, 0)?;
        let difference = place.forward(moments)?.tanh()?.broadcast_sub(&code)?;
        Ok(Some(difference.sqr()?.sum(D::Minus1)?.maximum(1e-24)?.sqrt()?.mean_all()?))
    }

    fn total(&self, bce: &Tensor, reconstruction: Option<&Tensor>) -> Result<Tensor> {
        match reconstruction {
            Some(part) => Ok((bce + (part * self.config.reconstruction)?)?),
            None => Ok(bce.clone()),
        }
    }

    fn of_batch(&self, batch: &Batch) -> Result<Forward> {
        let queries = &batch.queries;
        let parses: &[Parse] = if self.gate.is_some() { queries.parses(CARD.name)? } else { &[] };
        let phrases: Vec<&[Phrase]> = parses.iter().map(|parse| parse.phrases.as_slice()).collect();
        self.forward(&batch.videos.visual, &queries.words, &queries.lengths, &phrases)
    }
}

impl Model for Mdd {
    fn input(&self) -> Input {
        Input { parses: self.gate.is_some(), ..Input::pairs(self.config.map.pre_clips) }
    }

    fn loss(&self, batch: &Batch, _: &Pass) -> Result<Loss> {
        let ious = self.map.ious(&batch.targets(CARD.name)?.spans, batch.videos.visual.device())?;
        let forward = self.of_batch(batch)?;
        let bce = self.config.targets.loss(&forward.logits, &ious)?;
        let reconstruction = self.reconstruction(&forward.moments)?;
        let total = self.total(&bce, reconstruction.as_ref())?;
        let parts = [("bce", Some(bce)), ("reconstruction", reconstruction)];
        Ok(Loss { total, parts: parts.into_iter().filter_map(|(name, part)| Some((name, part?))).collect() })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.map.rank(&sigmoid(&self.of_batch(batch)?.logits)?)?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }

    fn grid(&self) -> Option<Grid> {
        Some(Grid { clips: self.config.map.clips })
    }
}
