//! QD-DETR: clips look at the words first, pairs of a video and another query must not be salient, and a learned token says per
//! video what salient means; the decoder moves anchors.
//! Moon et al., "Query-Dependent Video Representation for Moment Retrieval and Highlight Detection", CVPR 2023.
//!
//! The published mask mixes the samples of a batch (`mask_order = "tiled"`); ours does not unless asked.

mod check;
mod config;
#[cfg(test)]
mod tests;

use std::ops::Range;

use candle_core::Tensor;
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::functional::sigmoid;
use cuemark_tensor::{DType, Pass};

use crate::layers::detr::{
    Activation, AnchoredDecoder, CrossLayer, Decoded, Encoder, InputLayers, JointInputs, LayerPlan, MaskOrder, Memory,
    SetHead, cross_bias, normal, pick_rows, repeat_rows, sine_place, start_token, unused_word_places,
};
use crate::layers::{Linear, linear};
use crate::losses::{LabelLoss, PairedSaliency, SetLayer, SetLosses, set_losses};
use crate::{
    Apart, Batch, BatchAnswers, Family, FullSize, Given, Input, JointTruth, Loss, Model, ModelCard, Proposal, Result,
    Supervision, Task,
};

pub use config::QdDetrConfig;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "qd-detr",
    title: "QD-DETR",
    paper: "Moon et al., Query-Dependent Video Representation for Moment Retrieval and Highlight Detection, CVPR 2023",
    family: Family::Set,
    tasks: &[Task::SingleVideo, Task::Highlights],
    supervision: Supervision::Full,
    idea: "clips depend on the query before anything is detected; mismatched pairs teach what is not salient",
    full_sizes: &[FullSize { dataset: "qvhighlights", settings: "", visual: 2816, words: 512, millions: None }],
    build: |settings, given, vb| Ok(Box::new(QdDetr::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<QdDetrConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct QdDetr {
    config: QdDetrConfig,
    audio: usize,
    video: InputLayers,
    text: InputLayers,
    text_to_video: Vec<CrossLayer>,
    encoder: Encoder,
    decoder: AnchoredDecoder,
    anchors: Tensor,
    head: SetHead,
    saliency: [Linear; 2],
    token: Tensor,
    token_place: Tensor,
}

/// Clips and words at the network's width.
struct Projected {
    clips: Tensor,
    words: Tensor,
    place: Tensor,
}

/// Clips after they have seen a query.
struct Encoded {
    /// The token and the clips after the words.
    seen: Tensor,
    /// `[batch, clips, width]` and `[batch, width]`.
    memory: Tensor,
    token: Tensor,
    /// `[batch, clips]`.
    saliency: Tensor,
}

struct Losses {
    set: Vec<SetLosses>,
    saliency: PairedSaliency,
    total: Tensor,
}

impl QdDetr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &QdDetrConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let (hidden, plan) = (config.network.hidden, LayerPlan::of(&config.network, Activation::Prelu));
        let inner = vb.pp("transformer");
        unused_word_places(config.words, hidden, &vb)?;
        Ok(Self {
            config: config.clone(),
            audio: given.audio,
            video: InputLayers::new(given.visual + 2 + given.audio, &config.network, &vb.pp("input_vid_proj"))?,
            text: InputLayers::new(given.words, &config.network, &vb.pp("input_txt_proj"))?,
            text_to_video: CrossLayer::stack(&plan, config.encoder_layers, &inner.pp("t2v_encoder"))?,
            encoder: Encoder::new(&plan, config.encoder_layers, &inner.pp("encoder"))?,
            decoder: AnchoredDecoder::new(&plan, config.decoder_layers, &inner.pp("decoder"))?,
            anchors: vb.pp("query_embed").get_with_hints((config.proposals, 2), "weight", normal())?,
            head: SetHead::new(hidden, &vb)?,
            saliency: [
                linear(hidden, hidden, vb.pp("saliency_proj1"))?,
                linear(hidden, hidden, vb.pp("saliency_proj2"))?,
            ],
            token: vb.get_with_hints(hidden, "global_rep_token", normal())?,
            token_place: vb.get_with_hints(hidden, "global_rep_pos", normal())?,
        })
    }

    fn project(&self, inputs: &JointInputs, pass: &Pass) -> Result<Projected> {
        Ok(Projected {
            clips: self.video.forward(&inputs.video, pass)?,
            words: self.text.forward(&inputs.text, pass)?,
            place: sine_place(&inputs.clips, inputs.steps(), self.config.network.hidden, inputs.device())?,
        })
    }

    /// Every video with the words of the sample in `texts`.
    fn encode(&self, inputs: &JointInputs, projected: &Projected, texts: &[usize], pass: &Pass) -> Result<Encoded> {
        let words = pick_rows(&projected.words, texts)?;
        let lengths: Vec<usize> = texts.iter().map(|row| inputs.words[*row]).collect();
        let keys = inputs.words_of(&lengths);
        let heads = self.config.network.heads;
        let bias = cross_bias(self.config.mask_order, inputs.padded_clips(), keys, heads, inputs.device())?;
        let mut clips = projected.clips.clone();
        for layer in &self.text_to_video {
            clips = layer.forward(&clips, Some(&projected.place), [&words, &words], &bias, pass)?;
        }
        let seen = start_token(&self.token, &clips)?;
        let places = start_token(&self.token_place, &projected.place)?;
        let encoded = self.encoder.forward(&seen, &places, &inputs.clip_bias(1)?, pass)?;
        let token = encoded.narrow(1, 0, 1)?;
        let memory = encoded.narrow(1, 1, inputs.steps())?.contiguous()?;
        let [of_clips, of_token] = [self.saliency[0].forward(&memory)?, self.saliency[1].forward(&token)?];
        let scale = (self.config.network.hidden as f64).sqrt().recip();
        let saliency = (of_clips.broadcast_mul(&of_token)?.sum(2)? * scale)?;
        Ok(Encoded { seen, memory, token: token.squeeze(1)?, saliency })
    }

    fn decode(
        &self,
        inputs: &JointInputs,
        projected: &Projected,
        memory: &Tensor,
        pass: &Pass,
    ) -> Result<(Decoded, Vec<SetLayer>)> {
        let anchors = sigmoid(&repeat_rows(&self.anchors, inputs.len())?)?;
        let shape = (inputs.len(), self.config.proposals, self.config.network.hidden);
        let start = Tensor::zeros(shape, memory.dtype(), memory.device())?;
        let bias = inputs.clip_bias(0)?;
        let memory = Memory { values: memory, place: &projected.place, bias: &bias };
        let decoded = self.decoder.forward(&start, &anchors, memory, pass)?;
        let layers = self.head.layers(&decoded.states, &decoded.before)?;
        Ok((decoded, layers))
    }

    fn losses(
        &self,
        video_mask: &Tensor,
        layers: &[SetLayer],
        [right, wrong]: [&Tensor; 2],
        truth: &JointTruth,
    ) -> Result<Losses> {
        let label = LabelLoss::Entropy { background: self.config.background };
        let set = set_losses(layers, &truth.windows, &self.config.costs, label)?;
        let saliency = PairedSaliency::of([right, wrong], video_mask, truth, self.config.saliency.margin)?;
        let mut total = (saliency.sum()? * self.config.saliency.weight)?;
        for losses in &set {
            total = (total + losses.weighted(&self.config.weights)?)?;
        }
        Ok(Losses { set, saliency, total })
    }

    fn inputs(&self, batch: &Batch) -> Result<JointInputs> {
        JointInputs::of(CARD.name, batch, self.config.words, self.audio)
    }
}

impl Model for QdDetr {
    fn input(&self) -> Input {
        Input::joint(self.config.clips, self.config.words)
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        self.judge(&self.read(batch, pass)?, batch, pass)
    }

    fn apart(&self) -> Option<&dyn Apart> {
        (self.config.mask_order != MaskOrder::Tiled).then_some(self)
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.answer(batch)?.proposals)
    }

    fn answer(&self, batch: &Batch) -> Result<BatchAnswers> {
        let (inputs, pass) = (self.inputs(batch)?, Pass::answering());
        let projected = self.project(&inputs, &pass)?;
        let encoded = self.encode(&inputs, &projected, &inputs.own_text(), &pass)?;
        let (_, layers) = self.decode(&inputs, &projected, &encoded.memory, &pass)?;
        inputs.answers(&layers, &encoded.saliency, self.config.round)
    }
}

impl Apart for QdDetr {
    /// The pairs, and after their queries the one that follows: the last of them must not find it salient.
    fn part(&self, batch: &Batch, pairs: Range<usize>) -> Result<Batch> {
        let rows: Vec<usize> = (pairs.start..=pairs.end).map(|row| row % batch.len().max(1)).collect();
        Ok(Batch { queries: batch.queries.select(&rows)?, ..batch.pairs(pairs)? })
    }

    /// What each decoder layer proposes, logits and spans, then the clips' scores for the own query and for the next one.
    fn read(&self, part: &Batch, pass: &Pass) -> Result<Vec<Tensor>> {
        let inputs = self.inputs(part)?;
        let projected = self.project(&inputs, pass)?;
        let right = self.encode(&inputs, &projected, &inputs.own_text(), pass)?;
        let wrong = self.encode(&inputs, &projected, &inputs.next_text(), pass)?;
        let (_, layers) = self.decode(&inputs, &projected, &right.memory, pass)?;
        let mut found: Vec<Tensor> = layers.into_iter().flat_map(|layer| [layer.logits, layer.spans]).collect();
        found.extend([right.saliency, wrong.saliency]);
        Ok(found)
    }

    fn judge(&self, found: &[Tensor], batch: &Batch, pass: &Pass) -> Result<Loss> {
        let (layers, saliency) = found.split_at(found.len() - 2);
        let layer = |pair: &[Tensor]| SetLayer { logits: pair[0].clone(), spans: pair[1].clone() };
        let layers: Vec<SetLayer> = layers.chunks_exact(2).map(layer).collect();
        let truth = JointTruth::draw(CARD.name, batch, pass)?;
        let mask = batch.videos.mask.to_dtype(DType::F32)?;
        let losses = self.losses(&mask, &layers, [&saliency[0], &saliency[1]], &truth)?;
        let mut parts = Loss::parts_of(&losses.set);
        parts.extend(losses.saliency.parts());
        Ok(Loss { total: losses.total, parts })
    }
}
