//! CG-DETR: dummy tokens take the attention of clips that the query is not about, the attention to words is taught by a space in
//! which moments and sentences meet, and the token of saliency is made per video from a pool of prompts.
//! Moon et al., "Correlation-Guided Query-Dependency Calibration for Video Temporal Grounding", 2023.
//!
//! The published mask mixes the samples of a batch (`mask_order = "tiled"`); ours does not unless asked. The layers of words drop
//! as much as the rest of the network, a tenth there whatever the settings.

mod adaptive;
mod check;
mod config;
mod losses;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::functional::{cosine, l2_normalise, masked_mean, sigmoid, softmax};
use cuemark_tensor::{DType, MatrixProduct as _, Pass};

use crate::layers::detr::{
    Activation, AnchoredDecoder, Decoded, Drawn, Encoder, InputLayers, JointInputs, LayerPlan, Memory, Padded,
    Residual, SetHead, cross_bias, normal, pick_rows, repeat_rows, sine_place, start_token, unused_word_places,
};
use crate::layers::{LayerNorm, Linear, linear, see_only};
use crate::losses::SetLayer;
use crate::{
    Batch, BatchAnswers, Family, FullSize, Given, Input, JointTruth, Loss, Model, ModelCard, Proposal, Result,
    Supervision, Task,
};

use adaptive::{AdaptiveLayer, Keys};
pub use config::CgDetrConfig;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "cg-detr",
    title: "CG-DETR",
    paper: "Moon et al., Correlation-Guided Query-Dependency Calibration for Video Temporal Grounding, 2023",
    family: Family::Set,
    tasks: &[Task::SingleVideo, Task::Highlights],
    supervision: Supervision::Full,
    idea: "dummy tokens take the attention of clips that the query is not about; the rest is taught where moments and \
           sentences meet",
    full_sizes: &[FullSize { dataset: "qvhighlights", settings: "", visual: 2816, words: 512, millions: None }],
    build: |settings, given, vb| Ok(Box::new(CgDetr::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<CgDetrConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct CgDetr {
    config: CgDetrConfig,
    audio: usize,
    video: InputLayers,
    text: InputLayers,
    kinds: Tensor,
    dummies: [Tensor; 2],
    dummy_encoder: Encoder,
    sentence: [Tensor; 2],
    sentence_encoder: Encoder,
    moment: [Tensor; 2],
    moment_encoder: Encoder,
    adaptive: Vec<AdaptiveLayer>,
    prompts: Tensor,
    token_place: Tensor,
    encoder: Encoder,
    decoder: AnchoredDecoder,
    anchors: Tensor,
    head: SetHead,
    saliency: [Linear; 2],
}

/// Clips, words and dummies at the network's width.
struct Projected {
    /// Before the kind of input is added.
    bare: [Tensor; 2],
    clips: Tensor,
    words: Tensor,
    place: Tensor,
    /// `[batch, dummies, width]`.
    dummies: Tensor,
    /// The mean of the real clips, without gradient, `[batch, width]`.
    context: Tensor,
}

/// Clips after they have seen a query.
struct Seen {
    clips: Tensor,
    /// `[batch, clips, dummies + words]`, mean over heads and layers.
    attention: Tensor,
    /// How like the clips are to every prompt, and which were used.
    likeness: Tensor,
    used: Vec<Vec<usize>>,
    token_in: Tensor,
    token_out: Tensor,
    memory: Tensor,
    token: Tensor,
    saliency: Tensor,
    /// Attention to words, `[batch, clips]`.
    word_share: Tensor,
}

/// Tokens that only training needs: of moments and what is none, of sentences and dummies, each with its steps.
struct Taught {
    moment: [Tensor; 2],
    other: [Tensor; 2],
    sentence: [Tensor; 2],
    dummy: [Tensor; 2],
    /// What the attention should be, `[batch, clips, dummies + words]`.
    wanted: Tensor,
}

impl CgDetr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &CgDetrConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let hidden = config.network.hidden;
        let residual = Residual::Branch(config.network.dropout);
        let plan = LayerPlan { residual, ..LayerPlan::of(&config.network, Activation::Prelu) };
        let of_words = LayerPlan { heads: config.text_heads, drawn: Drawn::Default, ..plan };
        let inner = vb.pp("transformer");
        unused_word_places(config.words, hidden, &vb)?;
        // In checkpoints, and never read.
        LayerNorm::new(given.words, 1e-5, vb.pp("txt_proj_linear.LayerNorm"))?;
        linear(given.words, hidden, vb.pp("txt_proj_linear.net.1"))?;
        let token = |name: &str| vb.get_with_hints(hidden, name, normal());
        let tokens = |rows: usize, name: &str| vb.get_with_hints((rows, hidden), name, normal());
        let kinds = Init::Randn { mean: 0.0, stdev: 0.02 };
        Ok(Self {
            config: config.clone(),
            audio: given.audio,
            video: InputLayers::new(given.visual + 2 + given.audio, &config.network, &vb.pp("input_vid_proj"))?,
            text: InputLayers::new(given.words, &config.network, &vb.pp("input_txt_proj"))?,
            kinds: vb.pp("token_type_embeddings").get_with_hints((2, hidden), "weight", kinds)?,
            dummies: [tokens(config.dummies, "dummy_rep_token")?, tokens(config.dummies, "dummy_rep_pos")?],
            dummy_encoder: Encoder::new(&of_words, config.dummy_layers, &vb.pp("txtproj_encoder"))?,
            sentence: [token("sent_rep_token")?, token("sent_rep_pos")?],
            sentence_encoder: Encoder::new(&of_words, config.sentence_layers, &vb.pp("scls_encoder"))?,
            moment: [token("moment_rep_token")?, token("moment_rep_pos")?],
            moment_encoder: Encoder::new(&plan, config.moment_layers, &inner.pp("mcls_encoder"))?,
            adaptive: AdaptiveLayer::stack(&plan, config.text_layers, &inner.pp("t2v_encoder"))?,
            prompts: tokens(config.prompts, "global_rep_token")?,
            token_place: tokens(1, "global_rep_pos")?,
            encoder: Encoder::new(&plan, config.encoder_layers, &inner.pp("encoder"))?,
            decoder: AnchoredDecoder::new(&plan, config.decoder_layers, &inner.pp("decoder"))?,
            anchors: vb.pp("query_embed").get_with_hints((config.proposals, 2), "weight", normal())?,
            head: SetHead::new(hidden, &vb)?,
            saliency: [
                linear(hidden, hidden, vb.pp("saliency_proj1"))?,
                linear(hidden, hidden, vb.pp("saliency_proj2"))?,
            ],
        })
    }

    fn project(&self, inputs: &JointInputs, pass: &Pass) -> Result<Projected> {
        let bare = [self.video.forward(&inputs.video, pass)?, self.text.forward(&inputs.text, pass)?];
        let clips = bare[0].broadcast_add(&self.kinds.narrow(0, 1, 1)?)?;
        let words = bare[1].broadcast_add(&self.kinds.narrow(0, 0, 1)?)?;
        let rows = |rows: &Tensor| repeat_rows(rows, inputs.len());
        let seen = Tensor::ones((inputs.len(), self.config.dummies), DType::F32, inputs.device())?;
        let bias = see_only(&Tensor::cat(&[&seen, &inputs.text_mask], 1)?)?;
        let steps = Tensor::cat(&[&rows(&self.dummies[0])?, &words], 1)?;
        let places = Tensor::cat(&[&rows(&self.dummies[1])?, &words.zeros_like()?], 1)?;
        let dummies = self.dummy_encoder.forward(&steps, &places, &bias, pass)?.narrow(1, 0, self.config.dummies)?;
        Ok(Projected {
            place: sine_place(&inputs.clips, inputs.steps(), self.config.network.hidden, inputs.device())?,
            context: masked_mean(&clips, &inputs.video_mask.unsqueeze(2)?, 1)?.detach(),
            dummies: dummies.contiguous()?,
            bare,
            clips,
            words,
        })
    }

    /// The videos at `rows` with the words at `texts`.
    fn see(
        &self,
        inputs: &JointInputs,
        projected: &Projected,
        [rows, texts]: [&[usize]; 2],
        pass: &Pass,
    ) -> Result<Seen> {
        let of = |tensor: &Tensor, rows: &[usize]| pick_rows(tensor, rows);
        let (clips, place) = (of(&projected.clips, rows)?, of(&projected.place, rows)?);
        let (dummies, words) = (of(&projected.dummies, texts)?, of(&projected.words, texts)?);
        let (video_mask, text_mask) = (of(&inputs.video_mask, rows)?, of(&inputs.text_mask, texts)?);
        let (count, slots) = (self.config.dummies, inputs.padded_words().steps);
        let lengths: Vec<usize> = texts.iter().map(|row| count + inputs.words[*row]).collect();
        let of_clips: Vec<usize> = rows.iter().map(|row| inputs.clips[*row]).collect();
        let bias = cross_bias(
            self.config.mask_order,
            Padded { lengths: &of_clips, steps: inputs.steps() },
            Padded { lengths: &lengths, steps: count + slots },
            self.config.network.heads,
            inputs.device(),
        )?;
        let keys = Tensor::cat(&[&(&dummies + repeat_rows(&self.dummies[1], rows.len())?)?, &words], 1)?;
        let keys = Keys { keys: &keys, words: &words, bias: &bias };
        let (mut x, mut attention) = (clips.clone(), Vec::new());
        for layer in &self.adaptive {
            let (seen, weights) = layer.forward(&x, &place, &keys, pass)?;
            x = seen;
            attention.push(weights);
        }
        let attention = Tensor::stack(&attention, 0)?.mean(0)?;
        let to_words = attention.narrow(2, count, slots)?;
        let share = (to_words.sum(2)?.detach() * &video_mask)?;
        let context = of(&projected.context, rows)?;
        let (likeness, used, token_in) = self.token(&clips, &context, &share)?;
        let mut token_out = token_in.unsqueeze(1)?;
        for layer in &self.adaptive {
            token_out = layer.alone(&token_out, pass)?;
        }
        let seen = Tensor::cat(&[&token_out, &x], 1)?;
        let places = Tensor::cat(&[&repeat_rows(&self.token_place, rows.len())?, &place], 1)?;
        let first = Tensor::ones((rows.len(), 1), DType::F32, inputs.device())?;
        let hide = see_only(&Tensor::cat(&[&first, &video_mask], 1)?)?;
        let encoded = self.encoder.forward(&seen, &places, &hide, pass)?;
        let token = encoded.narrow(1, 0, 1)?;
        let memory = encoded.narrow(1, 1, inputs.steps())?.broadcast_add(&token)?;
        let [of_memory, of_token] = [self.saliency[0].forward(&memory)?, self.saliency[1].forward(&token)?];
        let scale = (self.config.network.hidden as f64).sqrt().recip();
        Ok(Seen {
            clips: x,
            likeness,
            used,
            token_in,
            token_out: token_out.squeeze(1)?,
            saliency: (of_memory.broadcast_mul(&of_token)?.sum(2)? * scale)?,
            memory,
            token: token.squeeze(1)?,
            word_share: to_words.broadcast_mul(&text_mask.unsqueeze(1)?)?.sum(2)?.clamp(0f32, 1f32)?,
            attention,
        })
    }

    /// The token of saliency: the context and the prompts that the clips which look at the words are most like.
    fn token(&self, clips: &Tensor, context: &Tensor, share: &Tensor) -> Result<(Tensor, Vec<Vec<usize>>, Tensor)> {
        let (batch, steps, width) = clips.dims3()?;
        let apart = clips.broadcast_sub(&context.unsqueeze(1)?)?.reshape((batch * steps, width))?;
        let alike = softmax(&cosine(&apart, &self.prompts)?, D::Minus1)?.reshape((batch, steps, ()))?;
        let share = share.broadcast_div(&share.sum_keepdim(1)?.maximum(1e-12)?)?;
        let likeness = alike.broadcast_mul(&share.unsqueeze(2)?)?.sum(1)?;
        let mut used = Vec::with_capacity(batch);
        let mut chosen = vec![0f32; batch * self.config.prompts];
        for (sample, row) in likeness.detach().to_vec2::<f32>()?.iter().enumerate() {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
            order.truncate(self.config.used_prompts);
            order.sort_unstable();
            order.iter().for_each(|prompt| chosen[sample * self.config.prompts + prompt] = 1.0);
            used.push(order);
        }
        let chosen = Tensor::from_vec(chosen, (batch, self.config.prompts), clips.device())?;
        let token = ((&likeness * chosen)?.times(&self.prompts)? + context)?;
        Ok((likeness, used, token))
    }

    fn decode(
        &self,
        inputs: &JointInputs,
        place: &Tensor,
        memory: &Tensor,
        pass: &Pass,
    ) -> Result<(Decoded, Vec<SetLayer>)> {
        let anchors = sigmoid(&repeat_rows(&self.anchors, inputs.len())?)?;
        let shape = (inputs.len(), self.config.proposals, self.config.network.hidden);
        let start = Tensor::zeros(shape, memory.dtype(), memory.device())?;
        let bias = inputs.clip_bias(0)?;
        let decoded = self.decoder.forward(&start, &anchors, Memory { values: memory, place, bias: &bias }, pass)?;
        let layers = self.head.layers(&decoded.states, &decoded.before)?;
        Ok((decoded, layers))
    }

    /// What training needs besides; `relevant [batch, clips]`.
    fn teach(&self, inputs: &JointInputs, projected: &Projected, relevant: &Tensor, pass: &Pass) -> Result<Taught> {
        let apart = |steps: Tensor| -> Result<[Tensor; 2]> {
            Ok([steps.narrow(1, 0, 1)?.squeeze(1)?, steps.narrow(1, 1, steps.dim(1)? - 1)?.contiguous()?])
        };
        let first = Tensor::ones((inputs.len(), 1), DType::F32, inputs.device())?;
        let only = |mask: &Tensor| -> Result<Tensor> { Ok(see_only(&Tensor::cat(&[&first, mask], 1)?)?) };
        let clips = start_token(&self.moment[0], &projected.clips)?;
        let places = start_token(&self.moment[1], &projected.place)?;
        let moments = |mask: Tensor| apart(self.moment_encoder.forward(&clips, &places, &only(&mask)?, pass)?);
        let moment = moments((&inputs.video_mask * relevant)?)?;
        let other = moments((&inputs.video_mask * relevant.affine(-1.0, 1.0)?)?)?;
        let sentences = |steps: &Tensor, places: &Tensor, mask: &Tensor| {
            let (steps, places) = (start_token(&self.sentence[0], steps)?, start_token(&self.sentence[1], places)?);
            apart(self.sentence_encoder.forward(&steps, &places, &only(mask)?, pass)?)
        };
        let sentence = sentences(&projected.words, &projected.words.zeros_like()?, &inputs.text_mask)?;
        let places = repeat_rows(&self.dummies[1], inputs.len())?;
        let all = Tensor::ones((inputs.len(), self.config.dummies), DType::F32, inputs.device())?;
        let dummy = sentences(&projected.dummies, &places, &all)?;
        let keys = Tensor::cat(&[&dummy[1], &sentence[1]], 1)?.detach();
        let wanted = moment[1].detach().times(&keys.t()?.contiguous()?)?;
        Ok(Taught { moment, other, sentence, dummy, wanted })
    }

    fn inputs(&self, batch: &Batch) -> Result<JointInputs> {
        JointInputs::of(CARD.name, batch, self.config.words, self.audio)
    }
}

/// The samples whose next sample shows another source.
fn real_negatives<T: PartialEq>(sources: &[T]) -> Vec<usize> {
    (0..sources.len()).filter(|row| sources[*row] != sources[(row + 1) % sources.len()]).collect()
}

/// The video that an excerpt `SOURCE_START_END` was cut from; any other id is its own.
fn source_of(video: &str) -> &str {
    let mut parts = video.rsplitn(3, '_');
    let times = [parts.next(), parts.next()].map(|part| part.is_some_and(|part| part.parse::<f64>().is_ok()));
    match parts.next() {
        Some(source) if times == [true, true] => source,
        _ => video,
    }
}

/// Unit rows.
fn unit(x: &Tensor) -> Result<Tensor> {
    Ok(l2_normalise(x)?)
}

impl Model for CgDetr {
    fn input(&self) -> Input {
        Input::joint(self.config.clips, self.config.words)
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let inputs = self.inputs(batch)?;
        let truth = JointTruth::draw(CARD.name, batch, pass)?;
        let projected = self.project(&inputs, pass)?;
        let own = inputs.own_text();
        let right = self.see(&inputs, &projected, [&own, &own], pass)?;
        let (_, layers) = self.decode(&inputs, &projected.place, &right.memory, pass)?;
        let taught = self.teach(&inputs, &projected, &truth.graded_clips(inputs.device())?, pass)?;
        let sources: Vec<&str> = batch.videos.ids.iter().map(|id| source_of(id.as_str())).collect();
        let rows = real_negatives(&sources);
        let wrong = self.see_wrong(&inputs, &projected, &rows, pass)?;
        let views = losses::Views { right: &right, wrong: wrong.as_ref(), negatives: &rows };
        let losses = self.losses(&inputs, &projected, &layers, views, &taught, &truth)?;
        let mut parts = Loss::parts_of(&losses.set);
        parts.extend([("saliency", losses.saliency.sum), ("align", losses.align.sum), ("distill", losses.distill)]);
        parts.push(("apart", losses.apart));
        Ok(Loss { total: losses.total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.answer(batch)?.proposals)
    }

    fn answer(&self, batch: &Batch) -> Result<BatchAnswers> {
        let (inputs, pass) = (self.inputs(batch)?, Pass::answering());
        let projected = self.project(&inputs, &pass)?;
        let own = inputs.own_text();
        let seen = self.see(&inputs, &projected, [&own, &own], &pass)?;
        let (_, layers) = self.decode(&inputs, &projected.place, &seen.memory, &pass)?;
        inputs.answers(&layers, &seen.saliency, self.config.round)
    }
}
