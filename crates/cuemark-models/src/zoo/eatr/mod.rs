//! EaTR: slots that share out the clips become events, events become the queries of the decoder, and a gate lets those through
//! that fit the sentence. Pseudo events, seen from the features alone, teach the slots.
//! Jang et al., "Knowing Where to Focus: Event-aware Transformer for Video Grounding", ICCV 2023.
//!
//! In the published code padding takes part in the slots, in the mean that a border of events must reach and in the sentence
//! (`padding = "leaks"`); ours leaves it out unless asked. Odd batches there get one wrong event; ours do not. The gate drops as
//! much as the rest of the network, a tenth there whatever the settings.

mod check;
mod config;
mod decoder;
mod events;
pub mod slots;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::mask_out;

use crate::layers::detr::{
    Activation, Encoder, InputLayers, JointInputs, LayerPlan, Memory, Padding, repeat_rows, sine_place,
    unused_word_places,
};
use crate::layers::{Linear, linear, xavier};
use crate::losses::{
    LabelLoss, Matching, SetLayer, SetLosses, SetWeights, distances, margin_loss, match_windows, set_losses,
};
use crate::{
    Batch, BatchAnswers, Family, FullSize, Given, Input, JointTruth, Loss, Model, ModelCard, Proposal, Result,
    Supervision, Task,
};

pub use config::EatrConfig;
use decoder::EventDecoder;
use events::{Events, events};
use slots::Slots;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "eatr",
    title: "EaTR",
    paper: "Jang et al., Knowing Where to Focus: Event-aware Transformer for Video Grounding, ICCV 2023",
    family: Family::Set,
    tasks: &[Task::SingleVideo, Task::Highlights],
    supervision: Supervision::Full,
    idea: "events found in the video itself become the queries of the decoder; a gate lets through what fits the sentence",
    full_sizes: &[FullSize { dataset: "qvhighlights", settings: "", visual: 2816, words: 512, millions: None }],
    build: |settings, given, vb| Ok(Box::new(Eatr::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<EatrConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Eatr {
    config: EatrConfig,
    audio: usize,
    video: InputLayers,
    text: InputLayers,
    encoder: Encoder,
    slots: Slots,
    start: Tensor,
    decoder: EventDecoder,
    label: Linear,
    saliency: Linear,
}

/// What the network makes of its inputs.
struct Forward {
    clips: Tensor,
    words: Tensor,
    /// The largest value of every channel over the words.
    sentence: Tensor,
    place: Tensor,
    /// Clips, then words, after they have seen each other.
    memory: Tensor,
    slots: Tensor,
    /// Normed slots, and the events that they say.
    event_state: Tensor,
    events: Tensor,
    /// The slots after the gate.
    gated: Tensor,
    anchors: Vec<Tensor>,
    states: Vec<Tensor>,
    layers: Vec<SetLayer>,
    saliency: Tensor,
}

struct Losses {
    set: Vec<SetLosses>,
    saliency: Tensor,
    /// Distance and overlap of events.
    events: [Tensor; 2],
    event_matchings: Vec<Matching>,
    total: Tensor,
}

impl Eatr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &EatrConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let (hidden, plan) = (config.network.hidden, LayerPlan::of(&config.network, Activation::Relu));
        let slot_vb = vb.pp("transformer.decoder.slot_atten");
        unused_word_places(config.words, hidden, &vb)?;
        Ok(Self {
            config: config.clone(),
            audio: given.audio,
            video: InputLayers::new(given.visual + 2 + given.audio, &config.network, &vb.pp("input_vid_proj"))?,
            text: InputLayers::new(given.words, &config.network, &vb.pp("input_txt_proj"))?,
            encoder: Encoder::new(&plan, config.encoder_layers, &vb.pp("transformer.encoder"))?,
            slots: Slots::new(hidden, &[hidden], config.slot_rounds, config.padding, &slot_vb)?,
            start: slot_vb.get_with_hints((config.proposals, hidden), "slots", xavier(hidden, config.proposals))?,
            decoder: EventDecoder::new(&plan, config.decoder_layers, &vb)?,
            label: linear(hidden, 2, vb.pp("class_embed"))?,
            saliency: linear(hidden, 1, vb.pp("saliency_proj"))?,
        })
    }

    fn forward(&self, inputs: &JointInputs, pass: &Pass) -> Result<Forward> {
        let hidden = self.config.network.hidden;
        let (clips, words) = (self.video.forward(&inputs.video, pass)?, self.text.forward(&inputs.text, pass)?);
        let sentence = match self.config.padding {
            Padding::Leaks => words.max(1)?,
            Padding::Masked => mask_out(&words, &inputs.text_mask.unsqueeze(2)?, -1e9)?.max(1)?,
        };
        let place = sine_place(&inputs.clips, inputs.steps(), hidden, inputs.device())?;
        let both_places = Tensor::cat(&[&place, &words.zeros_like()?], 1)?;
        let bias = inputs.both_bias()?;
        let memory = self.encoder.forward(&Tensor::cat(&[&clips, &words], 1)?, &both_places, &bias, pass)?;
        let start = repeat_rows(&self.start, inputs.len())?;
        let slots = self.slots.forward(&start, &(&clips + &place)?, &inputs.video_mask)?;
        let seen = Memory { values: &memory, place: &both_places, bias: &bias };
        let decoded = self.decoder.forward(&slots, &sentence, seen, pass)?;
        let layer = |(states, spans): (&Tensor, &Tensor)| -> Result<SetLayer> {
            Ok(SetLayer { logits: self.label.forward(states)?, spans: spans.clone() })
        };
        let layers = decoded.states.iter().zip(&decoded.spans).map(layer).collect::<Result<_>>()?;
        let saliency = self.saliency.forward(&memory.narrow(1, 0, inputs.steps())?)?.squeeze(D::Minus1)?;
        Ok(Forward {
            clips,
            words,
            sentence,
            place,
            memory,
            slots,
            event_state: decoded.event_state,
            events: decoded.events,
            gated: decoded.gated,
            anchors: decoded.anchors,
            states: decoded.states,
            layers,
            saliency,
        })
    }

    fn losses(&self, forward: &Forward, truth: &JointTruth, events: &Events) -> Result<Losses> {
        let label = LabelLoss::Entropy { background: self.config.background };
        let set = set_losses(&forward.layers, &truth.windows, &self.config.costs, label)?;
        let saliency = margin_loss(&forward.saliency, &truth.pairs, self.config.saliency.margin)?;
        let mut total = (&saliency * self.config.saliency.weight)?;
        for losses in &set {
            total = (total + losses.weighted(&self.config.weights)?)?;
        }
        let as_layer = SetLayer { logits: forward.events.zeros_like()?, spans: forward.events.clone() };
        let costs = SetWeights { label: 0.0, ..self.config.costs };
        let event_matchings = match_windows(&[as_layer], &events.spans, &costs)?.remove(0);
        let (mut rows, mut wanted) = (Vec::new(), Vec::new());
        for (sample, (matching, events)) in event_matchings.iter().zip(&events.spans).enumerate() {
            for (slot, event) in matching {
                rows.push((sample * self.config.proposals + slot) as u32);
                wanted.push(events[*event]);
            }
        }
        let of_events = distances(&forward.events, &rows, &wanted)?;
        let weights = &self.config.weights;
        let weighted = ((&of_events[0] * weights.span)? + (&of_events[1] * weights.overlap)?)?;
        total = (total + (weighted * self.config.event_weight)?)?;
        Ok(Losses { set, saliency, events: of_events, event_matchings, total })
    }

    fn inputs(&self, batch: &Batch) -> Result<JointInputs> {
        JointInputs::of(CARD.name, batch, self.config.words, self.audio)
    }
}

impl Model for Eatr {
    fn input(&self) -> Input {
        Input::joint(self.config.clips, self.config.words)
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let inputs = self.inputs(batch)?;
        let forward = self.forward(&inputs, pass)?;
        let events = events(&inputs, self.config.padding)?;
        let losses = self.losses(&forward, &JointTruth::draw(CARD.name, batch, pass)?, &events)?;
        let mut parts = Loss::parts_of(&losses.set);
        let [distance, overlap] = losses.events;
        parts.extend([("saliency", losses.saliency), ("event span", distance), ("event overlap", overlap)]);
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
