//! VSLNet: reads the video like a text passage and finds the moment as an answer span, guided by a highlight gate.
//! Zhang et al., "Span-based Localizing Network for Natural Language Video Localization", ACL 2020.
//!
//! Follows the authors' PyTorch port where it and the paper differ (one linear layer after the attention, a bias on the
//! attention's projections). In the port, values near the end of a video depend on how far its batch is padded; `padding =
//! "leaks"` keeps that, the default masks it. Characters are those of a fixed alphabet, not those seen five times.

mod blocks;
mod characters;
mod check;
mod config;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{bce_with_logits, log_softmax, mask_out, sigmoid, softmax};

use crate::layers::{Linear, nearest_clips, rank_boundaries, xavier};
use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

use blocks::{ContextQuery, FeatureEncoder, Predictor, convolution, times};
use characters::{ALPHABET, Characters, spell};
pub use config::{Padding, PredictorKind, VslNetConfig};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "vslnet",
    title: "VSLNet",
    paper: "Zhang et al., Span-based Localizing Network for Natural Language Video Localization, ACL 2020",
    family: Family::Span,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "scores clips as starts and ends of an answer span, through a query-guided highlight gate",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "character_width = 100",
            visual: 1024,
            words: 300,
            millions: None,
        },
        FullSize { dataset: "charades-sta", settings: "", visual: 1024, words: 300, millions: Some(0.78) },
        FullSize { dataset: "tacos", settings: "", visual: 1024, words: 300, millions: Some(0.78) },
    ],
    build: |settings, given, vb| Ok(Box::new(VslNet::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<VslNetConfig>(),
    check: check::check,
};

/// Added to a variance before its root.
const EPS: f64 = 1e-6;

/// The logit of a clip that is not there.
const NOWHERE: f64 = -1e30;

/// The network.
#[derive(Debug)]
pub struct VslNet {
    config: VslNetConfig,
    characters: Option<Characters>,
    query_in: Linear,
    video_in: Linear,
    encoder: FeatureEncoder,
    context: ContextQuery,
    pool: Tensor,
    pooled: Linear,
    highlight: Linear,
    predictor: Predictor,
}

/// Everything on the way to the boundaries.
struct Forward {
    query_in: Tensor,
    video: Tensor,
    query: Tensor,
    attended: Tensor,
    fused: Tensor,
    highlight: Tensor,
    gated: Tensor,
    starts: Tensor,
    ends: Tensor,
}

/// What is asked: vectors, characters and which of them are real.
struct Asked<'a> {
    words: &'a Tensor,
    characters: Option<&'a Tensor>,
    mask: &'a Tensor,
}

impl VslNet {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &VslNetConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        Self::with_alphabet(config, given, ALPHABET.len() + 2, &vb)
    }

    fn with_alphabet(config: &VslNetConfig, given: &Given, alphabet: usize, vb: &VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        let embedding = vb.pp("embedding_net");
        let characters = match config.character_width {
            0 => None,
            _ => Some(Characters::new(config, alphabet, &embedding.pp("char_emb"))?),
        };
        let words = given.words + characters.as_ref().map_or(0, |_| config.character_filters.iter().sum());
        Ok(Self {
            characters,
            query_in: convolution(words, hidden, &embedding.pp("linear"))?,
            video_in: convolution(given.visual, hidden, &vb.pp("video_affine.linear"))?,
            encoder: FeatureEncoder::new(config, &vb.pp("feature_encoder"))?,
            context: ContextQuery::new(hidden, config.dropout, &vb.pp("cq_attention"))?,
            pool: vb.pp("cq_concat.weighted_pool").get_with_hints((hidden, 1), "weight", xavier(hidden, 1))?,
            pooled: convolution(2 * hidden, hidden, &vb.pp("cq_concat.conv1d"))?,
            highlight: convolution(hidden, 1, &vb.pp("highlight_layer.conv1d"))?,
            predictor: Predictor::new(config, &vb.pp("predictor"))?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, clips, d_visual]` with `mask [batch, clips]`; words `[batch, words, d_word]`, characters
    ///   `[batch, words, characters]` and mask `[batch, words]` of the query
    /// - starts and ends of the result `[batch, clips]`, logits
    fn forward(&self, visual: &Tensor, mask: &Tensor, asked: &Asked, pass: &Pass) -> Result<Forward> {
        let drop = |x: &Tensor| pass.dropout(x, self.config.dropout);
        let mut words = drop(asked.words)?;
        if let (Some(net), Some(characters)) = (&self.characters, asked.characters) {
            words = Tensor::cat(&[words, net.forward(characters, self.config.dropout, pass)?], D::Minus1)?;
        }
        let query_in = self.query_in.forward(&words)?;
        let video = self.encoder.forward(&self.video_in.forward(&drop(visual)?)?, mask, pass)?;
        let query = self.encoder.forward(&query_in, asked.mask, pass)?;
        let attended = self.context.forward(&video, mask, &query, asked.mask, pass)?;
        let importance = mask_out(&times(&query, &self.pool)?, &asked.mask.unsqueeze(2)?, NOWHERE)?;
        let pooled = query.broadcast_mul(&softmax(&importance, 1)?)?.sum_keepdim(1)?;
        let fused = Tensor::cat(&[attended.clone(), pooled.broadcast_as(attended.shape())?], D::Minus1)?;
        let fused = self.pooled.forward(&fused)?;
        let highlight = self.highlight.forward(&fused)?.squeeze(2)?;
        let gate = (sigmoid(&highlight)? * mask)?;
        let gated = fused.broadcast_mul(&gate.unsqueeze(2)?)?;
        let [starts, ends] = self.predictor.forward(&gated, mask, pass)?;
        Ok(Forward { query_in, video, query, attended, fused, highlight, gated, starts, ends })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let queries = &batch.queries;
        let most = queries.words.dim(1)?.min(self.config.positions);
        let characters = match &self.characters {
            Some(_) => Some(spell(queries, most)?),
            None => None,
        };
        let (words, mask) = (queries.words.narrow(1, 0, most)?, queries.mask.narrow(1, 0, most)?);
        let asked = Asked { words: &words, characters: characters.as_ref(), mask: &mask };
        self.forward(&batch.videos.visual, &batch.videos.mask, &asked, pass)
    }

    /// The parts of the loss: span, highlight.
    fn losses(&self, forward: &Forward, mask: &Tensor, truth: &Truth) -> Result<[Tensor; 2]> {
        let span = (cross_entropy(&forward.starts, &truth.starts)? + cross_entropy(&forward.ends, &truth.ends)?)?;
        let weight = truth.highlight.affine(self.config.highlight_positive - 1.0, 1.0)?;
        let errors = (bce_with_logits(&forward.highlight, &truth.highlight)? * weight)?;
        let highlight = ((errors * mask)?.sum_all()? / (mask.sum_all()? + 1e-12)?)?;
        Ok([span, highlight])
    }

    fn total(&self, [span, highlight]: &[Tensor; 2]) -> Result<Tensor> {
        Ok((span + (highlight * self.config.highlight_weight)?)?)
    }
}

/// Where the boundaries lie, one-hot `[batch, clips]`, and which clips are highlighted.
struct Truth {
    starts: Tensor,
    ends: Tensor,
    highlight: Tensor,
}

impl Truth {
    fn of_batch(batch: &Batch, extend: f64) -> Result<Self> {
        let clips = batch.videos.visual.dim(1)?;
        let spans = batch.targets(CARD.name)?.spans.iter().zip(&batch.videos.lengths);
        let [mut starts, mut ends, mut highlight] = [(); 3].map(|()| vec![0f32; clips * batch.len()]);
        for (row, (span, length)) in spans.enumerate() {
            let (first, last) = nearest_clips(*span, *length);
            starts[row * clips + first] = 1.0;
            ends[row * clips + last] = 1.0;
            let more = (extend * (last + 1 - first) as f64).round_ties_even() as usize;
            let lit = first.saturating_sub(more)..=(last + more).min(length.saturating_sub(1));
            lit.for_each(|clip| highlight[row * clips + clip] = 1.0);
        }
        let tensor = |values: Vec<f32>| Tensor::from_vec(values, (batch.len(), clips), batch.videos.visual.device());
        Ok(Self { starts: tensor(starts)?, ends: tensor(ends)?, highlight: tensor(highlight)? })
    }
}

/// Mean over the rows of minus the log probability where `one_hot` is 1.
fn cross_entropy(logits: &Tensor, one_hot: &Tensor) -> Result<Tensor> {
    Ok((log_softmax(logits, 1)? * one_hot)?.sum(1)?.mean_all()?.neg()?)
}

impl Model for VslNet {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBinsIfLonger { rows: self.config.positions },
            parses: self.characters.is_some(),
            ..Input::pairs(self.config.positions)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let truth = Truth::of_batch(batch, self.config.highlight_extend)?;
        let losses = self.losses(&self.of_batch(batch, pass)?, &batch.videos.mask, &truth)?;
        let total = self.total(&losses)?;
        let [span, highlight] = losses;
        Ok(Loss { total, parts: vec![("span", span), ("highlight", highlight)] })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let forward = self.of_batch(batch, &Pass::answering())?;
        let (starts, ends) = (softmax(&forward.starts, 1)?, softmax(&forward.ends, 1)?);
        Ok(rank_boundaries(&starts, &ends, &batch.videos.lengths)?)
    }
}
