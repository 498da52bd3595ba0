//! UniVTG: every clip says whether it lies in the moment, how far its borders are, and how good it is; no queries, no matching.
//! Lin et al., "UniVTG: Towards Unified Video-Language Temporal Grounding", ICCV 2023.
//!
//! In the published code padded clips reach their neighbours through the convolutions (`padding = "leaks"`); ours do not unless
//! asked.

mod check;
mod config;
mod labels;
mod losses;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Init, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax};
use cuemark_tensor::{MatrixProduct as _, Pass};

use crate::layers::detr::{
    Activation, DetrSize, Drawn, Encoder, InputLayers, JointInputs, LayerPlan, Padding, Residual, sine_place,
    unused_word_places,
};
use crate::layers::{Conv1d, Steps, xavier};
use crate::{
    Batch, BatchAnswers, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task,
};

pub use config::{ClipScore, UniVtgConfig};
use labels::Truth;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "univtg",
    title: "UniVTG",
    paper: "Lin et al., UniVTG: Towards Unified Video-Language Temporal Grounding, ICCV 2023",
    family: Family::Regression,
    tasks: &[Task::SingleVideo, Task::Highlights],
    supervision: Supervision::Full,
    idea: "every clip says whether it is inside, how far the borders are and how good it is: one head for every kind of label",
    full_sizes: &[FullSize { dataset: "qvhighlights", settings: "", visual: 2816, words: 512, millions: None }],
    build: |settings, given, vb| Ok(Box::new(UniVtg::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<UniVtgConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct UniVtg {
    config: UniVtgConfig,
    audio: usize,
    video: InputLayers,
    text: InputLayers,
    kinds: Tensor,
    encoder: Encoder,
    inside: ClipHead,
    offsets: ClipHead,
    pool: Tensor,
}

/// Three convolutions over clips, ReLU between.
#[derive(Debug)]
struct ClipHead(Vec<Conv1d>);

/// What the network makes of its inputs.
struct Forward {
    /// Clips before they see anything, `[batch, clips, width]`.
    clips: Tensor,
    /// `[batch, width]`.
    sentence: Tensor,
    /// Clips, then words, after they have seen each other.
    memory: Tensor,
    /// Logits, `[batch, clips]`.
    inside: Tensor,
    /// To the borders, `[batch, clips, 2]`, the first at most 0 and the second at least.
    offsets: Tensor,
    /// Cosine of clip and sentence, `[batch, clips]`.
    likeness: Tensor,
}

impl ClipHead {
    fn new(width: usize, outputs: usize, vb: &VarBuilder) -> Result<Self> {
        let steps = Steps { padding: 1, ..Steps::default() };
        let layer = |number: usize, outputs: usize| Conv1d::new(width, outputs, 3, steps, vb.pp("layers").pp(number));
        Ok(Self(vec![layer(0, width)?, layer(1, width)?, layer(2, outputs)?]))
    }

    fn forward(&self, x: &Tensor, keep: Option<&Tensor>) -> Result<Tensor> {
        let mut x = x.clone();
        for (number, layer) in self.0.iter().enumerate() {
            if let Some(keep) = keep {
                x = x.broadcast_mul(keep)?;
            }
            x = layer.forward(&x)?;
            if number + 1 < self.0.len() {
                x = x.relu()?;
            }
        }
        Ok(x)
    }
}

impl UniVtg {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &UniVtgConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let DetrSize { hidden, heads, ffn, dropout, .. } = config.network;
        let plan = LayerPlan {
            width: hidden,
            heads,
            ffn,
            activation: Activation::Gelu,
            dropout: 0.0,
            residual: Residual::Branch(dropout),
            drawn: Drawn::Glorot,
        };
        unused_word_places(config.words, hidden, &vb)?;
        let kinds = Init::Randn { mean: 0.0, stdev: 0.02 };
        Ok(Self {
            config: config.clone(),
            audio: given.audio,
            video: InputLayers::new(given.visual + 2 + given.audio, &config.network, &vb.pp("input_vid_proj"))?,
            text: InputLayers::new(given.words, &config.network, &vb.pp("input_txt_proj"))?,
            kinds: vb.pp("token_type_embeddings").get_with_hints((2, hidden), "weight", kinds)?,
            encoder: Encoder::new(&plan, config.encoder_layers, &vb.pp("transformer.encoder"))?,
            inside: ClipHead::new(hidden, 1, &vb.pp("class_embed"))?,
            offsets: ClipHead::new(hidden, 2, &vb.pp("span_embed"))?,
            pool: vb.pp("weightedpool").get_with_hints((hidden, 1), "weight", xavier(hidden, 1))?,
        })
    }

    fn forward(&self, inputs: &JointInputs, pass: &Pass) -> Result<Forward> {
        let hidden = self.config.network.hidden;
        let kind = |number: usize| self.kinds.narrow(0, number, 1);
        let clips = self.video.forward(&inputs.video, pass)?.broadcast_add(&kind(1)?)?;
        let words = self.text.forward(&inputs.text, pass)?.broadcast_add(&kind(0)?)?;
        let place = sine_place(&inputs.clips, inputs.steps(), hidden, inputs.device())?;
        let places = Tensor::cat(&[&place, &words.zeros_like()?], 1)?;
        let both = Tensor::cat(&[&clips, &words], 1)?;
        let memory = self.encoder.forward(&both, &places, &inputs.both_bias()?, pass)?;
        let keep = match self.config.padding {
            Padding::Masked => Some(inputs.video_mask.unsqueeze(2)?),
            Padding::Leaks => None,
        };
        let seen = memory.narrow(1, 0, inputs.steps())?.contiguous()?;
        let inside = self.inside.forward(&seen, keep.as_ref())?.squeeze(2)?;
        let sides = Tensor::new(&[-1f32, 1.0], inputs.device())?;
        let offsets = sigmoid(&self.offsets.forward(&seen, keep.as_ref())?)?.broadcast_mul(&sides)?;
        let logits = mask_out(&words.times(&self.pool)?.squeeze(2)?, &inputs.text_mask, -1e30)?;
        let weights = softmax(&logits, D::Minus1)?.unsqueeze(1)?;
        let sentence = weights.contiguous()?.times(&words)?.squeeze(1)?;
        let likeness = unit(&clips)?.broadcast_mul(&unit(&sentence)?.unsqueeze(1)?)?.sum(2)?;
        Ok(Forward { clips, sentence, memory, inside, offsets, likeness })
    }

    fn inputs(&self, batch: &Batch) -> Result<JointInputs> {
        JointInputs::of(CARD.name, batch, self.config.words, self.audio)
    }
}

/// Rows of length 1; none shorter than 1e-8 is stretched.
fn unit(x: &Tensor) -> Result<Tensor> {
    let norm = x.sqr()?.sum_keepdim(D::Minus1)?.maximum(1e-16)?.sqrt()?;
    Ok(x.broadcast_div(&norm)?)
}

impl Model for UniVtg {
    fn input(&self) -> Input {
        Input::joint(self.config.clips, self.config.words)
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let inputs = self.inputs(batch)?;
        let forward = self.forward(&inputs, pass)?;
        let losses = self.losses(&inputs, &forward, &Truth::draw(CARD.name, batch, pass)?)?;
        let parts = vec![
            ("boundary", losses.boundary),
            ("overlap", losses.overlap),
            ("inside", losses.inside),
            ("intra", losses.intra),
            ("inter", losses.inter),
        ];
        Ok(Loss { total: losses.total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.answer(batch)?.proposals)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }

    fn answer(&self, batch: &Batch) -> Result<BatchAnswers> {
        let inputs = self.inputs(batch)?;
        let forward = self.forward(&inputs, &Pass::answering())?;
        let inside = sigmoid(&forward.inside)?;
        let saliency = match self.config.score {
            ClipScore::Add => (&forward.likeness + &inside)?,
            ClipScore::Saliency => forward.likeness,
        };
        let (scores, offsets) = (inside.to_vec2::<f32>()?, forward.offsets.to_vec3::<f32>()?);
        let ranked = |sample: usize| {
            let clips = inputs.clips[sample];
            let seconds = batch.videos.durations[sample] / clips.max(1) as f64;
            let round = |fraction: f64| self.config.round.apply(fraction.clamp(0.0, 1.0), clips);
            let proposal = |clip: usize| {
                let time = (clip as f64 + seconds / 2.0) / clips as f64;
                let bound = |side: usize| round(time + f64::from(offsets[sample][clip][side]));
                Some(Proposal { span: NormSpan::new(bound(0), bound(1))?, score: scores[sample][clip] })
            };
            let mut ranked: Vec<Proposal> = (0..clips).filter_map(proposal).collect();
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
            ranked
        };
        let proposals = (0..inputs.len()).map(ranked).collect();
        Ok(BatchAnswers { proposals, saliency: Some(inputs.real_clips(&saliency)?) })
    }
}
