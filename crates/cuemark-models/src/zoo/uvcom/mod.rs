//! UVCOM: words and clips are summed up in a few centres; a random walk from those of the words weighs the clips, the centre of
//! the clips that is most like them says what salient means, and videos, clips and sentences are aligned.
//! Xiao et al., "Bridging the Gap: A Unified Video Comprehension Framework for Moment Retrieval and Highlight Detection",
//! CVPR 2024.
//!
//! In the published code padding takes part in the mean of the words, the centres, the walk and the slots
//! (`padding = "leaks"`), and the mask mixes the samples of a batch (`mask_order = "tiled"`); ours does neither unless asked. All
//! slots begin alike and stay alike, as published: proposals differ by their own embedding and anchor.

mod centres;
mod check;
mod config;
mod losses;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::functional::{l2_normalise, masked_mean, sigmoid, softmax};
use cuemark_tensor::{MatrixProduct as _, Pass};

use crate::layers::detr::{
    Activation, AnchoredDecoder, CrossLayer, Decoded, Drawn, Encoder, InputLayers, JointInputs, LayerPlan, Memory, Mlp,
    MlpEnd, Padding, SetHead, cross_bias, glorot, normal, pick_rows, repeat_rows, sine_place, start_token,
    unused_word_places,
};
use crate::layers::{Conv1d, LayerNorm, Linear, Steps, linear, xavier};
use crate::losses::SetLayer;
use crate::zoo::eatr::slots::Slots;
use crate::{
    Batch, BatchAnswers, Family, FullSize, Given, Input, JointTruth, Loss, Model, ModelCard, Proposal, Result,
    Supervision, Task,
};

use centres::{move_centres, short, walk};
pub use config::{UvcomConfig, Walk};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "uvcom",
    title: "UVCOM",
    paper: "Xiao et al., Bridging the Gap: A Unified Video Comprehension Framework for Moment Retrieval and Highlight \
            Detection, CVPR 2024",
    family: Family::Set,
    tasks: &[Task::SingleVideo, Task::Highlights],
    supervision: Supervision::Full,
    idea: "a walk from the centres of the words weighs the clips; videos, clips and sentences are aligned at every grain",
    full_sizes: &[FullSize { dataset: "qvhighlights", settings: "", visual: 2816, words: 512, millions: None }],
    build: |settings, given, vb| Ok(Box::new(Uvcom::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<UvcomConfig>(),
    check: check::check,
};

/// How often slots share out the clips, whatever the settings.
const SLOT_ROUNDS: usize = 5;

/// The network.
#[derive(Debug)]
pub struct Uvcom {
    config: UvcomConfig,
    audio_layers: Option<InputLayers>,
    visual: usize,
    audio: usize,
    video: InputLayers,
    text: InputLayers,
    text_to_video: Vec<CrossLayer>,
    video_to_text: Vec<CrossLayer>,
    sentence: (Linear, LayerNorm),
    centres: [Tensor; 2],
    local: Vec<Conv1d>,
    token_place: Tensor,
    encoder: Encoder,
    slots: Slots,
    decoder: AnchoredDecoder,
    proposals: Tensor,
    anchors: Tensor,
    head: SetHead,
    saliency: [Linear; 2],
    of_video: Mlp,
    of_text: Mlp,
}

/// Clips and words at the network's width.
struct Projected {
    clips: Tensor,
    words: Tensor,
    place: Tensor,
}

/// Clips after they have seen a query.
struct Encoded {
    seen: Tensor,
    text: Tensor,
    sentence: Tensor,
    word_centres: Tensor,
    clip_centres: Tensor,
    best: Vec<usize>,
    local: Tensor,
    walked: Tensor,
    /// The token, then the clips, before and after the encoder.
    before: Tensor,
    after: Tensor,
    saliency: Tensor,
}

/// How like videos and clips are to sentences.
struct Alike {
    /// `[videos, sentences]`.
    inter: Tensor,
    /// `[samples, clips]`.
    clips: Tensor,
    /// The mean over a video's clips, `[videos, sentences]`.
    clip_means: Tensor,
}

impl Uvcom {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &UvcomConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let (hidden, plan) = (config.network.hidden, LayerPlan::of(&config.network, Activation::Prelu));
        let inner = vb.pp("CIM");
        unused_word_places(config.words, hidden, &vb)?;
        vb.get_with_hints(hidden, "global_rep_token", normal())?; // in checkpoints, and written over by a centre
        let audio_layers = match given.audio {
            0 => None,
            width => Some(InputLayers::new(width, &config.network, &vb.pp("input_aud_proj"))?),
        };
        let centre = |rows: usize, name: &str| inner.get_with_hints((rows, hidden), name, xavier(hidden, rows));
        let convolution = |number: usize, kernel: usize| {
            let steps = Steps { padding: kernel / 2, ..Steps::default() };
            Conv1d::new(hidden, hidden, kernel, steps, inner.pp("conv_local").pp(number))
        };
        let mlp = |name: &str| {
            Mlp::new(&[hidden, config.mlp, config.mlp, hidden], Drawn::Glorot, MlpEnd::Drawn, &inner.pp(name))
        };
        let slots = inner.pp("processer_for_tgt");
        let decoder = inner.pp("decoder");
        let shape = (config.proposals, hidden);
        Ok(Self {
            config: config.clone(),
            audio_layers,
            visual: given.visual + 2,
            audio: given.audio,
            video: InputLayers::new(given.visual + 2, &config.network, &vb.pp("input_vid_proj"))?,
            text: InputLayers::new(given.words, &config.network, &vb.pp("input_txt_proj"))?,
            text_to_video: CrossLayer::stack(&plan, config.encoder_layers, &inner.pp("t2v_encoder"))?,
            video_to_text: CrossLayer::stack(&plan, config.encoder_layers, &inner.pp("v2t_encoder"))?,
            sentence: (
                glorot(hidden, hidden, inner.pp("feature_proj.0"))?,
                LayerNorm::new(hidden, 1e-5, inner.pp("feature_proj.1"))?,
            ),
            centres: [centre(config.word_centres, "txt_mu")?, centre(config.clip_centres, "vid_mu")?],
            local: vec![convolution(0, 1)?, convolution(1, 3)?, convolution(2, 1)?],
            token_place: vb.get_with_hints(hidden, "global_rep_pos", normal())?,
            encoder: Encoder::new(&plan, config.encoder_layers, &inner.pp("GKA_Module"))?,
            slots: Slots::new(hidden, &[config.mlp, config.mlp], SLOT_ROUNDS, config.padding, &slots)?,
            decoder: AnchoredDecoder::new(&plan, config.decoder_layers, &decoder)?,
            proposals: decoder.pp("span_embed").get_with_hints(shape, "weight", xavier(hidden, config.proposals))?,
            anchors: vb.pp("query_embed").get_with_hints((config.proposals, 2), "weight", normal())?,
            head: SetHead::new(hidden, &vb)?,
            saliency: [
                linear(hidden, hidden, vb.pp("saliency_proj1"))?,
                linear(hidden, hidden, vb.pp("saliency_proj2"))?,
            ],
            of_video: mlp("sim_vid")?,
            of_text: mlp("sim_txt")?,
        })
    }

    fn project(&self, inputs: &JointInputs, pass: &Pass) -> Result<Projected> {
        let mut clips = self.video.forward(&inputs.video.narrow(2, 0, self.visual)?.contiguous()?, pass)?;
        if let Some(layers) = &self.audio_layers {
            let sound = inputs.video.narrow(2, self.visual, self.audio)?.contiguous()?;
            clips = (clips + layers.forward(&sound, pass)?)?;
        }
        Ok(Projected {
            clips,
            words: self.text.forward(&inputs.text, pass)?,
            place: sine_place(&inputs.clips, inputs.steps(), self.config.network.hidden, inputs.device())?,
        })
    }

    /// The mask that leaves padding out, unless it is let through.
    fn unless_leaking<'a>(&self, mask: &'a Tensor) -> Option<&'a Tensor> {
        (self.config.padding == Padding::Masked).then_some(mask)
    }

    /// Every video with the words of the sample in `texts`.
    fn encode(&self, inputs: &JointInputs, projected: &Projected, texts: &[usize], pass: &Pass) -> Result<Encoded> {
        let (order, heads, device) = (self.config.mask_order, self.config.network.heads, inputs.device());
        let words = pick_rows(&projected.words, texts)?;
        let text_mask = pick_rows(&inputs.text_mask, texts)?;
        let lengths: Vec<usize> = texts.iter().map(|row| inputs.words[*row]).collect();
        let (of_clips, of_words) = (inputs.padded_clips(), inputs.words_of(&lengths));
        let to_words = cross_bias(order, of_clips, of_words, heads, device)?;
        let to_clips = cross_bias(order, of_words, of_clips, heads, device)?;
        let (mut seen, mut text) = (projected.clips.clone(), words.clone());
        for layer in &self.text_to_video {
            seen = layer.forward(&seen, Some(&projected.place), [&words, &words], &to_words, pass)?;
        }
        let placed = (&projected.clips + &projected.place)?;
        for layer in &self.video_to_text {
            text = layer.forward(&text, None, [&placed, &projected.clips], &to_clips, pass)?;
        }
        let told = self.sentence.1.forward(&self.sentence.0.forward(&text)?)?;
        let sentence = match self.unless_leaking(&text_mask) {
            Some(mask) => masked_mean(&told, &mask.unsqueeze(2)?, 1)?,
            None => told.mean(1)?,
        };
        let rows = |rows: &Tensor| repeat_rows(rows, inputs.len());
        let (words_only, clips_only) = (self.unless_leaking(&text_mask), self.unless_leaking(&inputs.video_mask));
        let rounds = self.config.centre_rounds;
        let word_centres = move_centres(&rows(&self.centres[0])?, &text, words_only, rounds)?;
        let clip_centres = move_centres(&rows(&self.centres[1])?, &seen, clips_only, rounds)?;
        let mut local = seen.broadcast_mul(&inputs.video_mask.unsqueeze(2)?)?;
        for layer in &self.local {
            // Between layers padding is let in with its bias, as published, or kept out.
            if let Some(mask) = clips_only {
                local = local.broadcast_mul(&mask.unsqueeze(2)?)?;
            }
            local = layer.forward(&local)?;
        }
        let local = (&seen + local)?;
        let (best, token) = best_centre(&word_centres, &clip_centres)?;
        let walked = walk(&word_centres, &local, clips_only, self.config.walk)?;
        let weighed = (&seen + &walked)?;
        let before = Tensor::cat(&[&token, &weighed], 1)?;
        let places = start_token(&self.token_place, &projected.place)?;
        let after = self.encoder.forward(&before, &places, &inputs.clip_bias(1)?, pass)?;
        let (first, rest) = (after.narrow(1, 0, 1)?, after.narrow(1, 1, inputs.steps())?);
        let scale = (self.config.network.hidden as f64).sqrt().recip();
        let [of_clips, of_token] = [self.saliency[0].forward(&rest)?, self.saliency[1].forward(&first)?];
        let saliency = (of_clips.broadcast_mul(&of_token)?.sum(2)? * scale)?;
        Ok(Encoded { seen, text, sentence, word_centres, clip_centres, best, local, walked, before, after, saliency })
    }

    /// Slots, and what is decoded from them.
    fn decode(
        &self,
        inputs: &JointInputs,
        projected: &Projected,
        encoded: &Encoded,
        pass: &Pass,
    ) -> Result<(Tensor, Decoded, Vec<SetLayer>)> {
        let (batch, count) = (inputs.len(), self.config.proposals);
        let memory = encoded.after.narrow(1, 1, inputs.steps())?.contiguous()?;
        let hidden = self.config.network.hidden;
        let start = encoded.sentence.unsqueeze(1)?.broadcast_as((batch, count, hidden))?.contiguous()?;
        let slots = self.slots.forward(&start, &memory, &inputs.video_mask)?;
        let contents = slots.broadcast_add(&self.proposals.unsqueeze(0)?)?;
        let anchors = sigmoid(&repeat_rows(&self.anchors, batch)?)?;
        let bias = inputs.clip_bias(0)?;
        let look = Memory { values: &memory, place: &projected.place, bias: &bias };
        let decoded = self.decoder.forward(&contents, &anchors, look, pass)?;
        let layers = self.head.layers(&decoded.states, &decoded.after)?;
        Ok((slots, decoded, layers))
    }

    fn alike(&self, inputs: &JointInputs, encoded: &Encoded) -> Result<Alike> {
        let token = encoded.after.narrow(1, 0, 1)?.squeeze(1)?;
        let clips = encoded.before.narrow(1, 1, inputs.steps())?.contiguous()?;
        let video = l2_normalise(&self.of_video.forward(&token)?)?;
        let text = l2_normalise(&self.of_text.forward(&encoded.sentence)?)?;
        let clips = l2_normalise(&self.of_video.forward(&clips)?)?;
        let means = match self.unless_leaking(&inputs.video_mask) {
            Some(mask) => masked_mean(&clips, &mask.unsqueeze(2)?, 1)?,
            None => clips.mean(1)?,
        };
        let across = text.t()?.contiguous()?;
        Ok(Alike {
            inter: video.times(&across)?,
            clips: clips.broadcast_mul(&text.unsqueeze(1)?)?.sum(2)?,
            clip_means: means.times(&across)?,
        })
    }

    /// For every video the text that is least like it.
    fn least_like(alike: &Alike) -> Result<Vec<usize>> {
        let shares = (softmax(&alike.inter.detach(), D::Minus1)? + softmax(&alike.clip_means.detach(), D::Minus1)?)?;
        let least = |row: Vec<f32>| {
            let places = row.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
            places.map_or(0, |(place, _)| place)
        };
        Ok(shares.to_vec2::<f32>()?.into_iter().map(least).collect())
    }

    fn inputs(&self, batch: &Batch) -> Result<JointInputs> {
        JointInputs::of(CARD.name, batch, self.config.words, self.audio)
    }
}

/// The centre of the clips that is most like the centres of the words, `[batch, 1, width]`.
fn best_centre(words: &Tensor, clips: &Tensor) -> Result<(Vec<usize>, Tensor)> {
    let alike = short(clips)?.times(&short(words)?.t()?.contiguous()?)?.mean(2)?.detach().to_vec2::<f32>()?;
    let largest = |row: &Vec<f32>| {
        let mut best = 0;
        for (place, value) in row.iter().enumerate() {
            if *value > row[best] {
                best = place;
            }
        }
        best
    };
    let best: Vec<usize> = alike.iter().map(largest).collect();
    let (batch, count, width) = clips.dims3()?;
    let rows: Vec<u32> = best.iter().enumerate().map(|(row, place)| (row * count + place) as u32).collect();
    let token = clips.reshape((batch * count, width))?.index_select(&Tensor::new(rows, clips.device())?, 0)?;
    Ok((best, token.unsqueeze(1)?))
}

impl Model for Uvcom {
    fn input(&self) -> Input {
        Input::joint(self.config.clips, self.config.words)
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let inputs = self.inputs(batch)?;
        let projected = self.project(&inputs, pass)?;
        let right = self.encode(&inputs, &projected, &inputs.own_text(), pass)?;
        let (_, _, layers) = self.decode(&inputs, &projected, &right, pass)?;
        let alike = self.alike(&inputs, &right)?;
        let late = pass.epoch() > self.config.hard_negatives_from;
        let texts = if late { Self::least_like(&alike)? } else { inputs.next_text() };
        let wrong = self.encode(&inputs, &projected, &texts, pass)?;
        let truth = JointTruth::draw(CARD.name, batch, pass)?;
        let losses = self.losses(&inputs, &layers, [&right.saliency, &wrong.saliency], &alike, &truth)?;
        let mut parts = Loss::parts_of(&losses.set);
        parts.extend(losses.saliency.parts());
        parts.push(("align", losses.align));
        Ok(Loss { total: losses.total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.answer(batch)?.proposals)
    }

    fn answer(&self, batch: &Batch) -> Result<BatchAnswers> {
        let (inputs, pass) = (self.inputs(batch)?, Pass::answering());
        let projected = self.project(&inputs, &pass)?;
        let encoded = self.encode(&inputs, &projected, &inputs.own_text(), &pass)?;
        let (_, _, layers) = self.decode(&inputs, &projected, &encoded, &pass)?;
        inputs.answers(&layers, &encoded.saliency, self.config.round)
    }
}
