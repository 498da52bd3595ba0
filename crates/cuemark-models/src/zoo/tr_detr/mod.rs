//! TR-DETR: clips and words are aligned before they are joined; saliency weighs the memory that moments are decoded from, and
//! the best moment weighs saliency.
//! Sun et al., "TR-DETR: Task-Reciprocal Transformer for Joint Moment Retrieval and Highlight Detection", AAAI 2024.
//!
//! The paper describes a weighted cross entropy; the published code trains a focal loss, and so do we. There the mask mixes the
//! samples of a batch (`mask_order = "tiled"`) and padding takes part in the weights of the memory, the means of videos and
//! sentences and the length that the best moment is measured by (`padding = "leaks"`); ours does neither unless asked.

mod check;
mod config;
mod refiner;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::functional::{bce_with_logits, l2_normalise, log_softmax, mask_out, masked_mean, sigmoid, softmax};
use cuemark_tensor::{DType, MatrixProduct as _, Pass};

use crate::layers::detr::{
    Activation, AnchoredDecoder, CrossLayer, Decoded, Encoder, InputLayers, JointInputs, LayerPlan, Memory, Padding,
    SetHead, cross_bias, normal, repeat_rows, sine_place, unused_word_places,
};
use crate::layers::{Linear, Recurrent, Ways, last_step, linear};
use crate::losses::{LabelLoss, SetLayer, SetLosses, margin_loss, rank_contrast, set_losses};
use crate::{
    Batch, BatchAnswers, Family, FullSize, Given, Input, JointTruth, Loss, Model, ModelCard, Proposal, Result,
    Supervision, Task,
};

pub use config::TrDetrConfig;
use refiner::Refiner;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "tr-detr",
    title: "TR-DETR",
    paper: "Sun et al., TR-DETR: Task-Reciprocal Transformer for Joint Moment Retrieval and Highlight Detection, AAAI 2024",
    family: Family::Set,
    tasks: &[Task::SingleVideo, Task::Highlights],
    supervision: Supervision::Full,
    idea: "saliency weighs what moments are decoded from, and the best moment weighs saliency",
    full_sizes: &[FullSize { dataset: "qvhighlights", settings: "", visual: 2816, words: 512, millions: None }],
    build: |settings, given, vb| Ok(Box::new(TrDetr::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<TrDetrConfig>(),
    check: check::check,
};

/// Divides similarities.
const TEMPERATURE: f64 = 0.07;

/// The network.
#[derive(Debug)]
pub struct TrDetr {
    config: TrDetrConfig,
    audio: usize,
    video: InputLayers,
    text: InputLayers,
    refiner: Refiner,
    text_to_video: Vec<CrossLayer>,
    encoder: Encoder,
    decoder: AnchoredDecoder,
    anchors: Tensor,
    head: SetHead,
    saliency: Linear,
    moment: Recurrent,
}

/// What the network makes of its inputs.
struct Forward {
    clips: Tensor,
    words: Tensor,
    joined: Tensor,
    /// Clips after the words, and after each other for the first time.
    seen: Tensor,
    first: Tensor,
    first_saliency: Tensor,
    memory: Tensor,
    decoded: Decoded,
    layers: Vec<SetLayer>,
    /// First and last clip of the best span, and what was read of it.
    best: Vec<[i64; 2]>,
    state: Tensor,
    saliency: Tensor,
}

struct Losses {
    set: Vec<SetLosses>,
    rank: Tensor,
    saliency: Tensor,
    videos: Tensor,
    clips: Tensor,
    total: Tensor,
}

/// Where `first..=last` lies in a list of `length`, by Python's rules: a negative place counts from the end.
fn slice(first: i64, last: i64, length: usize) -> std::ops::Range<usize> {
    let place = |place: i64| {
        let place = if place < 0 { place + length as i64 } else { place };
        place.clamp(0, length as i64) as usize
    };
    let (start, end) = (place(first), place(last.saturating_add(1)));
    start..end.max(start)
}

impl TrDetr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &TrDetrConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let (hidden, plan) = (config.network.hidden, LayerPlan::of(&config.network, Activation::Prelu));
        let inner = vb.pp("transformer");
        unused_word_places(config.words, hidden, &vb)?;
        Ok(Self {
            config: config.clone(),
            audio: given.audio,
            video: InputLayers::new(given.visual + 2 + given.audio, &config.network, &vb.pp("input_vid_proj"))?,
            text: InputLayers::new(given.words, &config.network, &vb.pp("input_txt_proj"))?,
            refiner: Refiner::new(hidden, config.network.dropout, &vb.pp("fuser"))?,
            text_to_video: CrossLayer::stack(&plan, config.encoder_layers, &inner.pp("t2v_encoder"))?,
            encoder: Encoder::new(&plan, config.encoder_layers, &inner.pp("encoder"))?,
            decoder: AnchoredDecoder::new(&plan, config.decoder_layers, &inner.pp("decoder"))?,
            anchors: vb.pp("query_embed").get_with_hints((config.proposals, 2), "weight", normal())?,
            head: SetHead::new(hidden, &vb)?,
            saliency: linear(hidden, hidden, vb.pp("saliency_proj1"))?,
            moment: Recurrent::gru(hidden, hidden, 1, Ways::Forward, vb.pp("gru_extractor.gru"))?,
        })
    }

    fn forward(&self, inputs: &JointInputs, pass: &Pass) -> Result<Forward> {
        let (hidden, heads) = (self.config.network.hidden, self.config.network.heads);
        let (clips, words) = (self.video.forward(&inputs.video, pass)?, self.text.forward(&inputs.text, pass)?);
        let place = sine_place(&inputs.clips, inputs.steps(), hidden, inputs.device())?;
        let joined = self.refiner.forward(&clips, &words, inputs, pass)?;
        let (queries, keys) = (inputs.padded_clips(), inputs.padded_words());
        let bias = cross_bias(self.config.mask_order, queries, keys, heads, inputs.device())?;
        let mut seen = joined.clone();
        for layer in &self.text_to_video {
            seen = layer.forward(&seen, Some(&place), [&words, &words], &bias, pass)?;
        }
        let hide = inputs.clip_bias(0)?;
        let first = self.encoder.forward(&seen, &place, &hide, pass)?;
        let first_saliency = self.scores(&first)?;
        let shown = match self.config.padding {
            Padding::Leaks => first_saliency.clone(),
            Padding::Masked => mask_out(&first_saliency, &inputs.video_mask, -1e9)?,
        };
        let weights = softmax(&shown, D::Minus1)?.unsqueeze(2)?;
        let again = (&first + seen.broadcast_mul(&weights)?)?;
        let memory = self.encoder.forward(&again, &place, &hide, pass)?;
        let anchors = sigmoid(&repeat_rows(&self.anchors, inputs.len())?)?;
        let start = Tensor::zeros((inputs.len(), self.config.proposals, hidden), DType::F32, inputs.device())?;
        let look = Memory { values: &memory, place: &place, bias: &hide };
        let decoded = self.decoder.forward(&start, &anchors, look, pass)?;
        let layers = self.head.layers(&decoded.states, &decoded.before)?;
        let best = self.best_clips(inputs, layers.last())?;
        let state = self.read(inputs, &clips, &best)?;
        let fits = clips.broadcast_mul(&state.unsqueeze(1)?)?.sum_keepdim(2)?;
        let saliency = self.scores(&memory.broadcast_mul(&(fits + 1.0)?)?)?;
        Ok(Forward {
            clips,
            words,
            joined,
            seen,
            first,
            first_saliency,
            memory,
            decoded,
            layers,
            best,
            state,
            saliency,
        })
    }

    /// The sum over channels, `[batch, clips]`.
    fn scores(&self, clips: &Tensor) -> Result<Tensor> {
        let scale = (self.config.network.hidden as f64).sqrt().recip();
        Ok((self.saliency.forward(clips)?.sum(2)? * scale)?)
    }

    /// How many clips a span is measured by.
    fn measure(&self, inputs: &JointInputs, sample: usize) -> usize {
        match self.config.padding {
            Padding::Leaks => inputs.steps(),
            Padding::Masked => inputs.clips[sample],
        }
    }

    /// First and last clip of the surest span of every sample; they may lie outside the video.
    fn best_clips(&self, inputs: &JointInputs, layer: Option<&SetLayer>) -> Result<Vec<[i64; 2]>> {
        let Some(layer) = layer else { return Ok(vec![[0, -1]; inputs.len()]) };
        let scores = softmax(&layer.logits.detach(), D::Minus1)?;
        let rows = Tensor::cat(&[&scores, &layer.spans.detach()], D::Minus1)?.to_vec3::<f32>()?;
        let clips = |(sample, rows): (usize, Vec<Vec<f32>>)| {
            let mut best = 0;
            for (place, row) in rows.iter().enumerate() {
                if row[0] > rows[best][0] {
                    best = place;
                }
            }
            let length = self.measure(inputs, sample) as f32;
            let Some([_, _, centre, width]) = rows.get(best).map(|row| [row[0], row[1], row[2], row[3]]) else {
                return [0, -1];
            };
            [((centre - 0.5 * width) * length).floor() as i64, ((centre + 0.5 * width) * length).floor() as i64]
        };
        Ok(rows.into_iter().enumerate().map(clips).collect())
    }

    /// The clips of the best span, read one after another and then nothing up to the length of the video.
    fn read(&self, inputs: &JointInputs, clips: &Tensor, best: &[[i64; 2]]) -> Result<Tensor> {
        let (batch, steps, width) = clips.dims3()?;
        let mut rows = Vec::with_capacity(batch * steps);
        for (sample, [first, last]) in best.iter().enumerate() {
            let slice = slice(*first, *last, self.measure(inputs, sample));
            let nothing = sample * (steps + 1) + steps;
            let found = slice.map(|clip| sample * (steps + 1) + clip);
            rows.extend(found.chain(std::iter::repeat(nothing)).take(steps).map(|row| row as u32));
        }
        let padded = clips.pad_with_zeros(1, 0, 1)?.reshape((batch * (steps + 1), width))?;
        let read = padded.index_select(&Tensor::new(rows, clips.device())?, 0)?.reshape((batch, steps, width))?;
        let states = self.moment.forward(&read)?;
        let lengths: Vec<usize> = (0..batch).map(|sample| self.measure(inputs, sample)).collect();
        Ok(last_step(&states, &lengths)?)
    }

    fn losses(&self, inputs: &JointInputs, forward: &Forward, truth: &JointTruth) -> Result<Losses> {
        let set = set_losses(&forward.layers, &truth.windows, &self.config.costs, LabelLoss::Focal)?;
        let rank = rank_contrast(&forward.saliency, &truth.totals, &inputs.video_mask)?;
        let saliency = (&rank + margin_loss(&forward.saliency, &truth.pairs, self.config.saliency.margin)?)?;
        let videos = self.videos_apart(inputs, forward)?;
        let clips = clips_apart(inputs, forward, truth)?;
        let mut total = (&saliency * self.config.saliency.weight)?;
        for losses in &set {
            total = (total + losses.weighted(&self.config.weights)?)?;
        }
        total = (total + (&videos * self.config.video_weight)?)?;
        total = (total + (&clips * self.config.clip_weight)?)?;
        Ok(Losses { set, rank, saliency, videos, clips, total })
    }

    /// Whole videos and sentences of a batch are told apart.
    fn videos_apart(&self, inputs: &JointInputs, forward: &Forward) -> Result<Tensor> {
        let mean = |steps: &Tensor, mask: &Tensor| match self.config.padding {
            Padding::Leaks => steps.mean(1),
            Padding::Masked => masked_mean(steps, &mask.unsqueeze(2)?, 1),
        };
        let video = l2_normalise(&mean(&forward.clips, &inputs.video_mask)?)?;
        let text = l2_normalise(&mean(&forward.words, &inputs.text_mask)?)?;
        let logits = (text.times(&video.t()?.contiguous()?)? / TEMPERATURE)?;
        let own = Tensor::eye(inputs.len(), DType::F32, inputs.device())?;
        let lost = |logits: &Tensor| (log_softmax(logits, D::Minus1)? * &own)?.sum_all();
        let sum = (lost(&logits)? + lost(&logits.t()?.contiguous()?)?)?;
        Ok((sum * (-0.5 / inputs.len().max(1) as f64))?)
    }

    fn inputs(&self, batch: &Batch) -> Result<JointInputs> {
        JointInputs::of(CARD.name, batch, self.config.words, self.audio)
    }
}

/// Relevant clips are told from others by the sentence; padded ones add a constant, as published.
fn clips_apart(inputs: &JointInputs, forward: &Forward, truth: &JointTruth) -> Result<Tensor> {
    let (clips, words) = (l2_normalise(&forward.clips)?, l2_normalise(&forward.words)?);
    let sentence = masked_mean(&words, &inputs.text_mask.unsqueeze(2)?, 1)?;
    let alike = (clips.broadcast_mul(&sentence.unsqueeze(1)?)?.sum(2)? * &inputs.video_mask)?;
    let relevant = truth.relevant_clips(inputs.device())?;
    Ok(bce_with_logits(&(alike / TEMPERATURE)?, &relevant)?.mean_all()?)
}

impl Model for TrDetr {
    fn input(&self) -> Input {
        Input::joint(self.config.clips, self.config.words)
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let inputs = self.inputs(batch)?;
        let forward = self.forward(&inputs, pass)?;
        let losses = self.losses(&inputs, &forward, &JointTruth::draw(CARD.name, batch, pass)?)?;
        let mut parts = Loss::parts_of(&losses.set);
        parts.extend([("saliency", losses.saliency), ("videos", losses.videos), ("clips", losses.clips)]);
        Ok(Loss { total: losses.total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.answer(batch)?.proposals)
    }

    fn answer(&self, batch: &Batch) -> Result<BatchAnswers> {
        let inputs = self.inputs(batch)?;
        let forward = self.forward(&inputs, &Pass::answering())?;
        inputs.answers(&forward.layers, &forward.saliency, self.config.round)
    }
}
