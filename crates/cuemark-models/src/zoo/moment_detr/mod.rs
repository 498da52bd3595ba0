//! Moment-DETR: an encoder over clips and words, learned proposals that decode a set of spans from it, and a score per clip.
//! Lei, Berg and Bansal, "QVHighlights: Detecting Moments and Highlights in Videos via Natural Language Queries", NeurIPS 2021.
//!
//! Spans count as fractions of what the clips cover, in training and in answers; the published code scales targets by the clips
//! and answers by the annotated duration, which differ by up to one clip.

mod align;
mod check;
mod config;
#[cfg(test)]
mod tests;

use candle_core::Tensor;
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::Pass;

use crate::layers::detr::{
    Activation, DetrSize, Encoder, InputLayers, JointInputs, LayerPlan, SetHead, normal, repeat_rows, sine_place,
    unused_word_places,
};
use crate::layers::{DecoderLayer, LayerNorm, Linear, TransformerSize, linear};
use crate::losses::{LabelLoss, SetLayer, SetLosses, margin_loss, set_losses};
use crate::{
    Batch, BatchAnswers, Family, FullSize, Given, Input, JointTruth, Loss, Model, ModelCard, Proposal, Result,
    Supervision, Task,
};

use align::Aligner;
pub use config::{Alignment, MomentDetrConfig};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "moment-detr",
    title: "Moment-DETR",
    paper: "Lei et al., QVHighlights: Detecting Moments and Highlights in Videos via Natural Language Queries, NeurIPS 2021",
    family: Family::Set,
    tasks: &[Task::SingleVideo, Task::Highlights],
    supervision: Supervision::Full,
    idea: "learned proposals decode a set of spans from clips and words that have seen each other; one score per clip",
    full_sizes: &[FullSize { dataset: "qvhighlights", settings: "", visual: 2816, words: 512, millions: None }],
    build: |settings, given, vb| Ok(Box::new(MomentDetr::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<MomentDetrConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct MomentDetr {
    config: MomentDetrConfig,
    audio: usize,
    video: InputLayers,
    text: InputLayers,
    encoder: Encoder,
    decoder: Vec<DecoderLayer>,
    norm: LayerNorm,
    proposals: Tensor,
    head: SetHead,
    saliency: Linear,
    aligner: Option<Aligner>,
}

/// What the network makes of its inputs.
struct Forward {
    /// Clips and words before they see each other.
    clips: Tensor,
    words: Tensor,
    place: Tensor,
    /// Clips, then words, after.
    memory: Tensor,
    /// Normed decoder states, by layer.
    states: Vec<Tensor>,
    layers: Vec<SetLayer>,
    /// `[batch, clips]`.
    saliency: Tensor,
}

struct Losses {
    set: Vec<SetLosses>,
    saliency: Tensor,
    /// By layer.
    align: Vec<Tensor>,
    total: Tensor,
}

impl MomentDetr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &MomentDetrConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let DetrSize { hidden, heads, ffn, dropout, .. } = config.network;
        let size = TransformerSize { width: hidden, heads, ffn, dropout };
        let inner = vb.pp("transformer");
        let layer = |number: usize| DecoderLayer::glorot(size, inner.pp("decoder.layers").pp(number));
        unused_word_places(config.words, hidden, &vb)?;
        Ok(Self {
            config: config.clone(),
            audio: given.audio,
            video: InputLayers::new(given.visual + 2 + given.audio, &config.network, &vb.pp("input_vid_proj"))?,
            text: InputLayers::new(given.words, &config.network, &vb.pp("input_txt_proj"))?,
            encoder: Encoder::new(
                &LayerPlan::of(&config.network, Activation::Relu),
                config.encoder_layers,
                &inner.pp("encoder"),
            )?,
            decoder: (0..config.decoder_layers).map(layer).collect::<candle_core::Result<_>>()?,
            norm: LayerNorm::new(hidden, 1e-5, inner.pp("decoder.norm"))?,
            proposals: vb.pp("query_embed").get_with_hints((config.proposals, hidden), "weight", normal())?,
            head: SetHead::new(hidden, &vb)?,
            saliency: linear(hidden, 1, vb.pp("saliency_proj"))?,
            aligner: config.align.map(|align| Aligner::new(align, hidden, &vb)).transpose()?,
        })
    }

    fn forward(&self, inputs: &JointInputs, pass: &Pass) -> Result<Forward> {
        let (batch, hidden) = (inputs.len(), self.config.network.hidden);
        let (clips, words) = (self.video.forward(&inputs.video, pass)?, self.text.forward(&inputs.text, pass)?);
        let place = sine_place(&inputs.clips, inputs.steps(), hidden, inputs.device())?;
        let both_places = Tensor::cat(&[&place, &words.zeros_like()?], 1)?;
        let bias = inputs.both_bias()?;
        let memory = self.encoder.forward(&Tensor::cat(&[&clips, &words], 1)?, &both_places, &bias, pass)?;
        let queries = repeat_rows(&self.proposals, batch)?;
        let mut x = queries.zeros_like()?;
        let mut states = Vec::with_capacity(self.decoder.len());
        for layer in &self.decoder {
            x = layer.forward(&x, &memory, [Some(&queries), Some(&both_places)], Some(&bias), pass)?;
            states.push(self.norm.forward(&x)?);
        }
        let layers = states.iter().map(|states| self.head.layer(states, None)).collect::<Result<_>>()?;
        let saliency = self.saliency.forward(&memory.narrow(1, 0, inputs.steps())?)?.squeeze(2)?;
        Ok(Forward { clips, words, place, memory, states, layers, saliency })
    }

    fn losses(&self, forward: &Forward, truth: &JointTruth) -> Result<Losses> {
        let label = LabelLoss::Entropy { background: self.config.background };
        let set = set_losses(&forward.layers, &truth.windows, &self.config.costs, label)?;
        let saliency = margin_loss(&forward.saliency, &truth.pairs, self.config.saliency.margin)?;
        let mut total = (&saliency * self.config.saliency.weight)?;
        for losses in &set {
            total = (total + losses.weighted(&self.config.weights)?)?;
        }
        let mut align = Vec::new();
        if let Some(aligner) = &self.aligner {
            let words = aligner.words(&forward.memory, forward.clips.dim(1)?)?;
            for (states, losses) in forward.states.iter().zip(&set) {
                let loss = aligner.loss(&aligner.proposals(states)?, &words, &losses.matchings)?;
                total = (total + aligner.weighted(&loss)?)?;
                align.push(loss);
            }
        }
        Ok(Losses { set, saliency, align, total })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<(JointInputs, Forward)> {
        let inputs = JointInputs::of(CARD.name, batch, self.config.words, self.audio)?;
        let forward = self.forward(&inputs, pass)?;
        Ok((inputs, forward))
    }
}

impl Model for MomentDetr {
    fn input(&self) -> Input {
        Input::joint(self.config.clips, self.config.words)
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let (_, forward) = self.of_batch(batch, pass)?;
        let losses = self.losses(&forward, &JointTruth::draw(CARD.name, batch, pass)?)?;
        let mut parts = Loss::parts_of(&losses.set);
        parts.push(("saliency", losses.saliency));
        Ok(Loss { total: losses.total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.answer(batch)?.proposals)
    }

    fn answer(&self, batch: &Batch) -> Result<BatchAnswers> {
        let (inputs, forward) = self.of_batch(batch, &Pass::answering())?;
        inputs.answers(&forward.layers, &forward.saliency, self.config.round)
    }
}
