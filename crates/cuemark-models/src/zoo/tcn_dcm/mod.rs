//! TCN-DCM: parts what a span shows from where it lies, and lets every span look at all locations before it is scored.
//! Yang et al., "Deconfounded Video Moment Retrieval with Causal Intervention", SIGIR 2021.
//!
//! Follows the published code, with one change: the covariances inside the distance correlation are clamped at 0 before
//! their root, where the published code can take the root of a tiny negative number.

mod check;
mod config;
mod distance_correlation;
#[cfg(test)]
mod tests;

use candle_core::{D, Device, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{l2_normalise, sigmoid, softmax};
use cuemark_tensor::map::{LayerPlan, map_conv_relu, span_max};
use std::f64::consts::TAU;
use std::sync::Arc;

use crate::layers::{
    ClipProjection, Linear, MomentMap, Recurrent, Ways, last_step, linear, linear_no_bias, pointwise, uniform,
};
use crate::{
    Batch, Family, FullSize, Given, Grid, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision,
    Task,
};

pub use config::TcnDcmConfig;
use distance_correlation::distance_correlation;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "tcn-dcm",
    title: "TCN-DCM",
    paper: "Yang et al., Deconfounded Video Moment Retrieval with Causal Intervention, SIGIR 2021",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "parts content from location and attends over all locations before spans are scored",
    full_sizes: &[
        FullSize {
            dataset: "charades-sta",
            settings: "map = { pre_clips = 256, clips = 16, counts = [15] }",
            visual: 1024,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "activitynet-captions",
            settings: "map = { pre_clips = 256, clips = 32, counts = [15, 8] }\nnms = 0.5",
            visual: 500,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "didemo",
            settings: "map = { pre_clips = 6, clips = 6, counts = [5] }\nsigma = 0.5\n\
                       targets = { min_iou = 0.7, max_iou = 1.0 }",
            visual: 4096,
            words: 300,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(TcnDcm::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<TcnDcmConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct TcnDcm {
    config: TcnDcmConfig,
    map: MomentMap,
    /// What the location part of each valid cell is pushed to, `[cells, hidden]`.
    position: Tensor,
    clips: ClipProjection,
    query: Recurrent,
    content: Linear,
    location: Linear,
    intervention: Intervention,
    query_to_map: Linear,
    residual: Linear,
    convolutions: Vec<(Tensor, Tensor)>,
    plan: Arc<LayerPlan>,
    score: Tensor,
}

/// Attention of every span over the locations of all valid spans.
#[derive(Debug)]
struct Intervention {
    from_query: Linear,
    from_content: Linear,
    ask: Linear,
    key: Linear,
    value: Linear,
    heads: usize,
    eta: f64,
    dropout: f64,
}

/// Everything on the way to the scores, one row per valid cell.
struct Forward {
    moments: Tensor,
    query: Tensor,
    content: Tensor,
    location: Tensor,
    logits: Tensor,
}

/// The parts of the loss, before weighting.
struct Parts {
    bce: Tensor,
    bce_negative: Option<Tensor>,
    reconstruction: Tensor,
    dcor: Option<Tensor>,
    frobenius: Tensor,
}

impl TcnDcm {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that do not fit each other.
    pub fn new(config: &TcnDcmConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        if config.heads == 0 || !hidden.is_multiple_of(config.heads) {
            let problem = format!("`heads`: {} do not divide `hidden` of {hidden}", config.heads);
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let map = MomentMap::new(config.map.clips, &config.map.counts)?;
        let code = position_code(config.map.clips, hidden, vb.device())?;
        let net = vb.pp("TCN");
        let attention = net.pp("BD_Adjust_Att");
        let convolution = |number: usize| {
            let (vb, fan) = (net.pp(format!("conv2d_{number}")), uniform(hidden * config.kernel * config.kernel));
            let weight = vb.get_with_hints((hidden, hidden, config.kernel, config.kernel), "weight", fan)?;
            Ok((weight, vb.get_with_hints(hidden, "bias", fan)?))
        };
        Ok(Self {
            position: code.index_select(&map.squares(vb.device())?, 0)?,
            clips: ClipProjection::new(given.visual, hidden, config.map.clips, vb.pp("featpool.conv"))?,
            query: Recurrent::lstm(given.words, hidden, config.lstm_layers, Ways::Forward, vb.pp("query.lstm"))?,
            content: pointwise(hidden, hidden, 2, net.pp("conv"))?,
            location: pointwise(hidden, hidden, 2, net.pp("conv_pos"))?,
            intervention: Intervention {
                from_query: linear(hidden, hidden, net.pp("Q"))?,
                from_content: pointwise(hidden, hidden, 2, net.pp("M"))?,
                ask: linear_no_bias(hidden, hidden, attention.pp("fc_qry"))?,
                key: linear_no_bias(hidden, hidden, attention.pp("fc_key"))?,
                value: linear(hidden, hidden, attention.pp("fc_value"))?,
                heads: config.heads,
                eta: config.eta,
                dropout: config.dropout,
            },
            query_to_map: linear(hidden, hidden, net.pp("fc"))?,
            residual: pointwise(hidden, hidden, 2, net.pp("conv_res"))?,
            convolutions: (1..=config.layers).map(convolution).collect::<Result<_>>()?,
            plan: Arc::new(LayerPlan::same(map.layout(), config.kernel).map_err(candle_core::Error::from)?),
            score: net.get_with_hints((1, hidden), "pred_weight", uniform(hidden))?,
            map,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, pre_clips, d_visual]`; words `[batch, words, d_word]` with `lengths` real ones
    /// - logits of the result `[batch, cells]`, one per valid cell
    fn forward(&self, visual: &Tensor, words: &Tensor, lengths: &[usize], pass: &Pass) -> Result<Forward> {
        let moments = span_max(&self.clips.forward(visual)?, self.map.layout())?;
        let query = last_step(&self.query.forward(words)?, lengths)?;
        let content = self.content.forward(&moments)?;
        let location = self.location.forward(&moments)?.tanh()?;
        let combined = (&content + self.intervention.forward(&query, &content, &location, pass)?)?;
        let asked = self.query_to_map.forward(&query)?.unsqueeze(1)?;
        let fused = l2_normalise(&combined.broadcast_mul(&asked)?)?;
        let convolve = |x: Tensor, (weight, bias): &(Tensor, Tensor)| {
            map_conv_relu(&x, weight, Some(bias), &self.plan, 1) // cells of this plan weigh 1
        };
        let compared = self.convolutions.iter().try_fold(fused.clone(), convolve)?;
        let compared = (compared + self.residual.forward(&fused)?.relu()?)?;
        let logits = compared.broadcast_mul(&self.score)?.sum(D::Minus1)?;
        Ok(Forward { moments, query, content, location, logits })
    }

    /// The parts of the loss from raw `ious [batch, cells]` and a pass over videos in which nothing answers.
    fn parts(&self, forward: &Forward, ious: &Tensor, other: Option<&Forward>) -> Result<Parts> {
        let nothing = |other: &Forward| self.config.targets.loss(&other.logits, &other.logits.zeros_like()?);
        Ok(Parts {
            bce: self.config.targets.loss(&forward.logits, ious)?,
            bce_negative: other.map(nothing).transpose()?,
            reconstruction: self.reconstruction(&forward.location)?,
            dcor: (self.config.lambda != 0.0).then(|| forward.correlation()).transpose()?,
            frobenius: (norm(&forward.content)? + norm(&forward.location)?)?,
        })
    }

    /// Mean over cells of the distance between location part and position code.
    fn reconstruction(&self, location: &Tensor) -> Result<Tensor> {
        // PyTorch's pairwise distance adds 1e-6 to every difference.
        let difference = (location.broadcast_sub(&self.position)? + 1e-6)?;
        Ok(difference.sqr()?.sum(D::Minus1)?.maximum(1e-24)?.sqrt()?.mean_all()?)
    }

    fn total(&self, parts: &Parts) -> Result<Tensor> {
        let TcnDcmConfig { gamma, sigma, lambda, frobenius, .. } = self.config;
        let mut total = (&parts.bce + ((&parts.reconstruction * sigma)? + (&parts.frobenius * frobenius)?)?)?;
        for (part, weight) in [(&parts.bce_negative, gamma), (&parts.dcor, lambda)] {
            if let Some(part) = part {
                total = (total + (part * weight)?)?;
            }
        }
        Ok(total)
    }
}

impl Forward {
    /// Distance correlation of content and location over the valid cells of the whole batch.
    fn correlation(&self) -> Result<Tensor> {
        distance_correlation(&self.content.flatten_to(1)?, &self.location.flatten_to(1)?)
    }
}

impl Intervention {
    /// # Shapes
    /// - query `[batch, hidden]`; content and location `[batch, cells, hidden]`
    /// - returns `[batch, cells, hidden]`
    fn forward(&self, query: &Tensor, content: &Tensor, location: &Tensor, pass: &Pass) -> Result<Tensor> {
        let asked = self.from_content.forward(&content.relu()?)?;
        let asked = asked.broadcast_add(&self.from_query.forward(&query.relu()?)?.unsqueeze(1)?)?;
        let value = self.value.forward(location)?.relu()?;
        let (batch, cells, hidden) = value.dims3()?;
        let heads = |x: &Tensor| x.reshape((batch, cells, self.heads, ()))?.transpose(1, 2)?.contiguous();
        let (ask, key) = (heads(&self.ask.forward(&asked)?)?, heads(&self.key.forward(location)?)?);
        let scale = ((hidden / self.heads) as f64).sqrt().recip();
        let weights = softmax(&(ask.times(&key.t()?.contiguous()?)? * scale)?, D::Minus1)?;
        let attended = pass.dropout(&weights, self.dropout)?.times(&heads(&value)?)?;
        let attended = attended.transpose(1, 2)?.reshape((batch, cells, hidden))?;
        Ok((attended + (value * self.eta)?)?.relu()?)
    }
}

/// The length of a tensor as one vector.
fn norm(x: &Tensor) -> Result<Tensor> {
    Ok(x.sqr()?.sum(D::Minus1)?.sum_all()?.maximum(1e-24)?.sqrt()?)
}

/// Sines and cosines of start and end of every square, `[clips * clips, width]`: the first half of the channels for the
/// start, the second for the end, indices counted from 1 and spread over a full turn.
///
/// # Errors
/// Those of the tensor operations.
pub(super) fn position_code(clips: usize, width: usize, device: &Device) -> Result<Tensor> {
    let half = width / 2;
    let value = |place: usize| {
        let (square, channel) = (place / width, place % width);
        let (index, channel) =
            if channel < half { (square / clips, channel) } else { (square % clips, channel - half) };
        let turn = (index + 1) as f64 / (clips as f64 + 1e-6) * TAU;
        let angle = turn / 10_000f64.powf((channel / 2 * 2) as f64 / half as f64);
        (if channel.is_multiple_of(2) { angle.sin() } else { angle.cos() }) as f32
    };
    let values: Vec<f32> = (0..clips * clips * width).map(value).collect();
    Ok(Tensor::from_vec(values, (clips * clips, width), device)?)
}

impl Model for TcnDcm {
    fn input(&self) -> Input {
        Input { other_videos: self.config.gamma != 0.0, ..Input::pairs(self.config.map.pre_clips) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let ious = self.map.ious(&batch.targets(CARD.name)?.spans, batch.videos.visual.device())?;
        let of_video = |visual: &Tensor| self.forward(visual, &batch.queries.words, &batch.queries.lengths, pass);
        let forward = of_video(&batch.videos.visual)?;
        let other = if self.config.gamma == 0.0 {
            None
        } else {
            let missing =
                ModelError::Missing { model: CARD.name, what: "another video for each of its training queries" };
            Some(of_video(&batch.other_videos.as_ref().ok_or(missing)?.visual)?)
        };
        let parts = self.parts(&forward, &ious, other.as_ref())?;
        let total = self.total(&parts)?;
        let named = [
            ("bce", Some(parts.bce)),
            ("bce_negative", parts.bce_negative),
            ("reconstruction", Some(parts.reconstruction)),
            ("dcor", parts.dcor),
            ("frobenius", Some(parts.frobenius)),
        ];
        Ok(Loss { total, parts: named.into_iter().filter_map(|(name, part)| Some((name, part?))).collect() })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let queries = &batch.queries;
        let forward = self.forward(&batch.videos.visual, &queries.words, &queries.lengths, &Pass::answering())?;
        Ok(self.map.rank(&sigmoid(&forward.logits)?)?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }

    fn grid(&self) -> Option<Grid> {
        Some(Grid { clips: self.config.map.clips })
    }
}
