//! TaskWeave: after the words, moments and highlights part; what one finds helps the other, and learned uncertainties balance the
//! two losses.
//! Yang et al., "Task-Driven Exploration: Decoupling and Inter-Task Feedback for Joint Moment Retrieval and Highlight Detection",
//! CVPR 2024.
//!
//! In the published code padding takes part in pooling and in the mean that salient clips must reach (`padding = "leaks"`), and
//! the mask mixes the samples of a batch (`mask_order = "tiled"`); ours does neither unless asked. The convolution of the moments
//! is dead there, since its mask has the wrong sense, and so it is here. Answers always use the feedback.

mod branches;
mod check;
mod config;
#[cfg(test)]
mod tests;

use candle_core::Tensor;
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::functional::sigmoid;
use cuemark_tensor::{DType, Pass};

use crate::layers::detr::{
    Activation, AnchoredDecoder, CrossLayer, Decoded, InputLayers, JointInputs, LayerPlan, Memory, Padding, SetHead,
    cross_bias, normal, pick_rows, repeat_rows, sine_place, unused_word_places,
};
use crate::layers::{Linear, linear, pointwise};
use crate::losses::{LabelLoss, PairedSaliency, SetLayer, SetLosses, SetWeights, set_losses};
use crate::{
    Batch, BatchAnswers, Family, FullSize, Given, Input, JointTruth, Loss, Model, ModelCard, Proposal, Result,
    Supervision, Task,
};

use branches::{Branched, Branches};
pub use config::{Feedback, TaskWeaveConfig};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "taskweave",
    title: "TaskWeave",
    paper: "Yang et al., Task-Driven Exploration: Decoupling and Inter-Task Feedback for Joint Moment Retrieval and Highlight \
            Detection, CVPR 2024",
    family: Family::Set,
    tasks: &[Task::SingleVideo, Task::Highlights],
    supervision: Supervision::Full,
    idea: "one branch per task; what one task finds helps the other, and learned uncertainties balance them",
    full_sizes: &[FullSize { dataset: "qvhighlights", settings: "", visual: 2816, words: 512, millions: None }],
    build: |settings, given, vb| Ok(Box::new(TaskWeave::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<TaskWeaveConfig>(),
    check: check::check,
};

/// The losses of moments are summed as they are.
const PLAIN: SetWeights = SetWeights { span: 1.0, overlap: 1.0, label: 1.0 };

/// The network.
#[derive(Debug)]
pub struct TaskWeave {
    config: TaskWeaveConfig,
    audio: usize,
    video: InputLayers,
    text: InputLayers,
    text_to_video: Vec<CrossLayer>,
    branches: Branches,
    decoder: AnchoredDecoder,
    anchors: Tensor,
    head: SetHead,
    saliency: [Linear; 3],
    /// Logarithms of the uncertainties of highlights and moments.
    doubts: [Tensor; 2],
}

/// Clips and words at the network's width.
struct Projected {
    clips: Tensor,
    words: Tensor,
    place: Tensor,
}

/// What one pass sees.
struct Seen {
    seen: Tensor,
    branched: Branched,
}

/// The moments that one pass finds.
struct Found {
    decoded: Decoded,
    layers: Vec<SetLayer>,
}

/// What the network makes of its inputs.
struct Forward {
    first: Seen,
    /// The pass that moments were decoded from, when it is not the first.
    second: Option<Seen>,
    found: Found,
    /// What one task told the other, `[batch, clips]`.
    told: Option<Tensor>,
    saliency: Tensor,
}

struct Losses {
    set: Vec<SetLosses>,
    moments: Tensor,
    saliency: PairedSaliency,
    total: Tensor,
}

impl TaskWeave {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &TaskWeaveConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let (hidden, plan) = (config.network.hidden, LayerPlan::of(&config.network, Activation::Prelu));
        let inner = vb.pp("transformer");
        unused_word_places(config.words, hidden, &vb)?;
        let doubt = |name: &str| vb.get_with_hints(1, name, Init::Const(0.0));
        Ok(Self {
            config: config.clone(),
            audio: given.audio,
            video: InputLayers::new(given.visual + 2 + given.audio, &config.network, &vb.pp("input_vid_proj"))?,
            text: InputLayers::new(given.words, &config.network, &vb.pp("input_txt_proj"))?,
            text_to_video: CrossLayer::stack(&plan, config.encoder_layers, &inner.pp("t2v_encoder"))?,
            branches: Branches::new(&plan, config.shared_layers, config.padding, &inner)?,
            decoder: AnchoredDecoder::new(&plan, config.decoder_layers, &inner.pp("mr_decoder"))?,
            anchors: vb.pp("query_embed").get_with_hints((config.proposals, 2), "weight", normal())?,
            head: SetHead::new(hidden, &vb)?,
            saliency: [
                linear(hidden, hidden, vb.pp("saliency_proj_linear"))?,
                pointwise(hidden, hidden, 1, vb.pp("saliency_proj_local"))?,
                linear(hidden, 1, vb.pp("output_saliency"))?,
            ],
            doubts: [doubt("hd_log_var")?, doubt("mr_log_var")?],
        })
    }

    fn project(&self, inputs: &JointInputs, pass: &Pass) -> Result<Projected> {
        Ok(Projected {
            clips: self.video.forward(&inputs.video, pass)?,
            words: self.text.forward(&inputs.text, pass)?,
            place: sine_place(&inputs.clips, inputs.steps(), self.config.network.hidden, inputs.device())?,
        })
    }

    /// One pass over `clips` with the words of the sample in `texts`.
    fn see(
        &self,
        inputs: &JointInputs,
        projected: &Projected,
        clips: &Tensor,
        texts: &[usize],
        pass: &Pass,
    ) -> Result<Seen> {
        let words = pick_rows(&projected.words, texts)?;
        let lengths: Vec<usize> = texts.iter().map(|row| inputs.words[*row]).collect();
        let (queries, keys) = (inputs.padded_clips(), inputs.words_of(&lengths));
        let bias = cross_bias(self.config.mask_order, queries, keys, self.config.network.heads, inputs.device())?;
        let mut seen = clips.clone();
        for layer in &self.text_to_video {
            seen = layer.forward(&seen, Some(&projected.place), [&words, &words], &bias, pass)?;
        }
        let branched = self.branches.forward(&seen, &projected.place, &inputs.clip_bias(0)?, inputs, pass)?;
        Ok(Seen { seen, branched })
    }

    fn find(&self, inputs: &JointInputs, projected: &Projected, seen: &Seen, pass: &Pass) -> Result<Found> {
        let anchors = sigmoid(&repeat_rows(&self.anchors, inputs.len())?)?;
        let shape = (inputs.len(), self.config.proposals, self.config.network.hidden);
        let start = Tensor::zeros(shape, DType::F32, inputs.device())?;
        let bias = inputs.clip_bias(0)?;
        let look = Memory { values: &seen.branched.moments, place: &projected.place, bias: &bias };
        let decoded = self.decoder.forward(&start, &anchors, look, pass)?;
        let layers = self.head.layers(&decoded.states, &decoded.before)?;
        Ok(Found { decoded, layers })
    }

    /// How good every clip is; `told`, when given, weighs what the head reads and not the sum of channels.
    fn scores(&self, highlights: &Tensor, told: Option<&Tensor>) -> Result<Tensor> {
        let scale = (self.config.network.hidden as f64).sqrt().recip();
        let weighed = match told {
            Some(told) => highlights.broadcast_mul(&(told.unsqueeze(2)? + 1.0)?)?,
            None => highlights.clone(),
        };
        let mut x = weighed;
        for layer in &self.saliency {
            x = layer.forward(&x)?;
        }
        Ok((x.squeeze(2)? + (highlights.sum(2)? * scale)?)?)
    }

    /// 1 where a clip is more salient than the mean.
    fn salient(&self, inputs: &JointInputs, scores: &Tensor) -> Result<Tensor> {
        let scores = scores.detach();
        let mean = match self.config.padding {
            Padding::Leaks => scores.mean_keepdim(1)?,
            Padding::Masked => {
                let sum = (&scores * &inputs.video_mask)?.sum_keepdim(1)?;
                (sum / inputs.video_mask.sum_keepdim(1)?.maximum(1.0)?)?
            }
        };
        Ok(scores.broadcast_gt(&mean)?.to_dtype(DType::F32)?)
    }

    /// How many proposals cover every clip, counted twice a clip, of length 1 over the clips.
    fn covered(&self, inputs: &JointInputs, layers: &[SetLayer]) -> Result<Tensor> {
        let steps = inputs.steps();
        let Some(last) = layers.last() else {
            return Ok(Tensor::zeros((inputs.len(), steps), DType::F32, inputs.device())?);
        };
        let mut covered = vec![0f32; inputs.len() * steps];
        for (sample, spans) in last.spans.detach().to_vec3::<f32>()?.iter().enumerate() {
            let clips = if self.config.padding == Padding::Leaks { steps } else { inputs.clips[sample] };
            let halves = (2 * clips) as f32;
            let row = &mut covered[sample * steps..(sample + 1) * steps];
            for span in spans {
                let place = |fraction: f32| (fraction * halves).clamp(0.0, (halves - 1.0).max(0.0)) as usize;
                let (first, last) = (place(span[0] - 0.5 * span[1]), place(span[0] + 0.5 * span[1]));
                (first..=last).filter(|half| half / 2 < clips).for_each(|half| row[half / 2] += 0.5);
            }
            let length = row.iter().map(|count| count * count).sum::<f32>().sqrt().max(1e-12);
            row.iter_mut().for_each(|count| *count /= length);
        }
        Ok(Tensor::from_vec(covered, (inputs.len(), steps), inputs.device())?)
    }

    fn forward(
        &self,
        inputs: &JointInputs,
        projected: &Projected,
        helps: Option<Feedback>,
        pass: &Pass,
    ) -> Result<Forward> {
        let own = inputs.own_text();
        let first = self.see(inputs, projected, &projected.clips, &own, pass)?;
        match helps {
            Some(Feedback::HighlightsToMoments) => {
                let saliency = self.scores(&first.branched.highlights, None)?;
                let told = self.salient(inputs, &saliency)?;
                let louder = projected.clips.broadcast_mul(&(told.unsqueeze(2)? + 1.0)?)?;
                let second = self.see(inputs, projected, &louder, &own, pass)?;
                let found = self.find(inputs, projected, &second, pass)?;
                Ok(Forward { first, second: Some(second), found, told: Some(told), saliency })
            }
            Some(Feedback::MomentsToHighlights) => {
                let found = self.find(inputs, projected, &first, pass)?;
                let told = self.covered(inputs, &found.layers)?;
                let saliency = self.scores(&first.branched.highlights, Some(&told))?;
                Ok(Forward { first, second: None, found, told: Some(told), saliency })
            }
            None => {
                let found = self.find(inputs, projected, &first, pass)?;
                let saliency = self.scores(&first.branched.highlights, None)?;
                Ok(Forward { first, second: None, found, told: None, saliency })
            }
        }
    }

    /// The scores of every video with the words of the next sample.
    fn wrong_scores(&self, inputs: &JointInputs, projected: &Projected, pass: &Pass) -> Result<Tensor> {
        let seen = self.see(inputs, projected, &projected.clips, &inputs.next_text(), pass)?;
        self.scores(&seen.branched.highlights, None)
    }

    fn losses(&self, inputs: &JointInputs, forward: &Forward, wrong: &Tensor, truth: &JointTruth) -> Result<Losses> {
        let label = LabelLoss::Entropy { background: self.config.background };
        let set = set_losses(&forward.found.layers, &truth.windows, &self.config.costs, label)?;
        let scores = [&forward.saliency, wrong];
        let saliency = PairedSaliency::of(scores, &inputs.video_mask, truth, self.config.margin)?;
        let mut moments = (saliency.margin.clone() * 0.0)?;
        for losses in &set {
            moments = (moments + losses.weighted(&PLAIN)?)?;
        }
        let [highlights, of_moments] = &self.doubts;
        let of = |doubt: &Tensor, loss: &Tensor| loss.broadcast_mul(&doubt.neg()?.exp()?);
        let weighed = of(highlights, &(saliency.sum()? * self.config.highlight_weight)?)?;
        let total = (weighed + of(of_moments, &moments)?)?;
        let total = ((total + highlights)? + of_moments)?.squeeze(0)?;
        Ok(Losses { set, moments, saliency, total })
    }

    fn inputs(&self, batch: &Batch) -> Result<JointInputs> {
        JointInputs::of(CARD.name, batch, self.config.words, self.audio)
    }
}

impl Model for TaskWeave {
    fn input(&self) -> Input {
        Input::joint(self.config.clips, self.config.words)
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let inputs = self.inputs(batch)?;
        let projected = self.project(&inputs, pass)?;
        let helps = (pass.epoch() > self.config.feedback_after).then_some(self.config.feedback);
        let forward = self.forward(&inputs, &projected, helps, pass)?;
        let wrong = self.wrong_scores(&inputs, &projected, pass)?;
        let losses = self.losses(&inputs, &forward, &wrong, &JointTruth::draw(CARD.name, batch, pass)?)?;
        let mut parts = Loss::parts_of(&losses.set);
        parts.push(("moments", losses.moments));
        parts.extend(losses.saliency.parts());
        Ok(Loss { total: losses.total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.answer(batch)?.proposals)
    }

    fn answer(&self, batch: &Batch) -> Result<BatchAnswers> {
        let (inputs, pass) = (self.inputs(batch)?, Pass::answering());
        let projected = self.project(&inputs, &pass)?;
        let forward = self.forward(&inputs, &projected, Some(self.config.feedback), &pass)?;
        inputs.answers(&forward.found.layers, &forward.saliency, self.config.round)
    }
}
