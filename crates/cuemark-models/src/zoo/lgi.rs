//! LGI: phrases from the query, each fused with the video, local then global context, and a regression of start and end.
//! Mun et al., "Local-Global Video-Text Interactions for Temporal Grounding", CVPR 2020.
//!
//! Differs from the published code: longer videos are averaged to `clips` rows instead of picked from, without jitter;
//! padded clips are zero in front of every convolution (`padded_clips = "published"` leaves them as they are, and then
//! they leak into valid ones); answers are clamped and put in order.

use candle_core::{D, DType, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    BatchNorm, Conv1d, Linear, Pair, QueryWords, Recurrent, Running, Steps, Ways, WordSource, final_states, linear,
    linear_no_bias,
};
use crate::losses::smooth_l1;
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "lgi",
    title: "LGI",
    paper: "Mun et al., Local-Global Video-Text Interactions for Temporal Grounding, CVPR 2020",
    family: Family::Regression,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "phrases of the query fused with the video, local and global context, one regressed span",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            // The number of words is what the published size implies.
            settings: "phrases = 5\nspread = 0.2\nblocks = 1\nheads = 1\nword_vectors = { own-of = 11100 }",
            visual: 500,
            words: 300,
            millions: Some(53.6),
        },
        FullSize {
            dataset: "charades-sta",
            settings: "phrases = 3\nspread = 0.3\nblocks = 2\nheads = 4\noutput = \"relu\"\n\
                       word_vectors = { own-of = 1111 }",
            visual: 1024,
            words: 300,
            millions: Some(33.8),
        },
    ],
    build: |table, given, vb| Ok(Box::new(Lgi::new(&read_settings("lgi", table)?, given, vb)?)),
    settings: |table| fill_settings::<LgiConfig>("lgi", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LgiConfig {
    /// The most clips of a video; longer ones are averaged to so many. Default: 128
    #[serde(default = "clips")]
    pub clips: usize,
    /// Width of clips and everything after them. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Width of the query's states, both ways together. Default: 512
    #[serde(default = "hidden")]
    pub query: usize,
    /// Width of the regression's hidden layer. Default: 512
    #[serde(default = "hidden")]
    pub head: usize,
    /// Widths of the attentions. Default: 256 each
    #[serde(default)]
    pub attention: AttentionWidths,
    /// Layers of the query's LSTM. Default: 2
    #[serde(default = "lstm_layers")]
    pub lstm_layers: usize,
    /// Phrases taken from a query. Default: 3
    #[serde(default = "phrases")]
    pub phrases: usize,
    /// Length of the local convolutions; odd. Default: 15
    #[serde(default = "kernel")]
    pub kernel: usize,
    /// Local blocks per phrase. Default: 1
    #[serde(default = "local_blocks")]
    pub local_blocks: usize,
    /// Global blocks. Default: 2
    #[serde(default = "blocks")]
    pub blocks: usize,
    /// Heads of a global block. Default: 4
    #[serde(default = "heads")]
    pub heads: usize,
    /// What bounds start and end. Default: sigmoid
    #[serde(default)]
    pub output: Output,
    /// How much of itself a phrase's attention may keep to few words; λ of the paper. Default: 0.3
    #[serde(default = "spread")]
    pub spread: f64,
    /// Weight of the temporal attention's loss. Default: 1.0
    #[serde(default = "one")]
    pub attention_weight: f64,
    /// Weight of the phrases' loss. Default: 1.0
    #[serde(default = "one")]
    pub phrase_weight: f64,
    /// Share of values dropped. Default: 0.5
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Where word vectors come from. Default: given
    #[serde(default)]
    pub word_vectors: WordSource,
    /// Whether padded clips reach the convolutions. Default: masked
    #[serde(default)]
    pub padded_clips: PaddedClips,
}

/// Widths of the attentions' hidden layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttentionWidths {
    /// Over words. Default: 256
    pub words: usize,
    /// Over phrases. Default: 256
    pub phrases: usize,
    /// Over clips. Default: 256
    pub clips: usize,
}

impl Default for AttentionWidths {
    fn default() -> Self {
        Self { words: 256, phrases: 256, clips: 256 }
    }
}

/// What bounds the two numbers of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Both below by 0 and above by 1. Default.
    #[default]
    Sigmoid,
    /// Below by 0 alone: the published choice for Charades-STA.
    Relu,
}

/// What convolutions see where a video has no more clips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaddedClips {
    /// Zeros: answers do not depend on the other videos of a batch. Default.
    #[default]
    Masked,
    /// As the published code has it: whatever the layers before make of padding.
    Published,
}

fn clips() -> usize {
    128
}

fn hidden() -> usize {
    512
}

fn lstm_layers() -> usize {
    2
}

fn phrases() -> usize {
    3
}

fn kernel() -> usize {
    15
}

fn local_blocks() -> usize {
    1
}

fn blocks() -> usize {
    2
}

fn heads() -> usize {
    4
}

fn spread() -> f64 {
    0.3
}

fn one() -> f64 {
    1.0
}

fn dropout() -> f64 {
    0.5
}

/// The network.
#[derive(Debug)]
pub struct Lgi {
    config: LgiConfig,
    words: QueryWords,
    query: QueryEncoder,
    video: VideoEncoder,
    phrases: PhraseReader,
    fuse: Vec<Fusion>,
    local: Vec<LocalContext>,
    phrase_score: Scorer,
    global: Vec<GlobalBlock>,
    pool: TemporalPool,
    head: Head,
}

/// Everything on the way to start and end.
struct Forward {
    words: Tensor,
    sentence: Tensor,
    segments: Tensor,
    phrases: Tensor,
    word_attention: Tensor,
    phrase_weights: Tensor,
    context: Tensor,
    temporal: Tensor,
    ends: Tensor,
}

impl Lgi {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for heads that do not divide the width.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &LgiConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let (hidden, query, widths) = (config.hidden, config.query, config.attention);
        let context = vb.pp("vti_fn");
        let fuse = |n: usize| Fusion::new(hidden, query, &context.pp("fusion_fn").pp(n));
        let local =
            |n: usize| LocalContext::new(hidden, config.kernel, config.local_blocks, &context.pp("local_fn").pp(n));
        let global = |n: usize| GlobalBlock::new(hidden, config.heads, CARD.name, &context.pp("global_fn").pp(n));
        // Published checkpoints hold this layer and never use it.
        linear(query, query, context.pp("satt_fn.fc"))?;
        Ok(Self {
            words: QueryWords::new(config.word_vectors, given, "query_enc.embedding.weight", &vb)?,
            query: QueryEncoder::new(given.words, query, config.lstm_layers, config.dropout, &vb.pp("query_enc.rnn"))?,
            video: VideoEncoder::new(given.visual, hidden, config.clips, config.dropout, &vb.pp("video_enc"))?,
            phrases: PhraseReader::new(query, widths.words, config.phrases, &vb.pp("sqan"))?,
            fuse: (0..config.phrases).map(fuse).collect::<Result<_>>()?,
            local: (0..config.phrases).map(local).collect::<Result<_>>()?,
            phrase_score: Scorer::new(query, widths.phrases, &context.pp("satt_fn"))?,
            global: (0..config.blocks).map(global).collect::<Result<_>>()?,
            pool: TemporalPool::new(hidden, widths.clips, &vb.pp("ta_reg_fn.tatt"))?,
            head: Head::new(hidden, config.head, config.output, &vb.pp("ta_reg_fn.MLP_reg"))?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - see [`Pair`]; ends of the result `[batch, 2]`: start and end as fractions
    fn forward(&self, pair: &Pair, pass: &Pass) -> Result<Forward> {
        let words = self.query.forward(pair.words, pair.lengths, pass)?;
        let sentence = final_states(&words, pair.lengths)?;
        let segments = self.video.forward(pair.visual, pair.clip_mask, pass)?;
        let (phrases, word_attention) = self.phrases.forward(&sentence, &words, pair.word_mask)?;
        let kept = kept_clips(self.config.padded_clips, pair.clip_mask)?;
        let mut of_phrases = Vec::with_capacity(self.config.phrases);
        for (n, (fuse, local)) in self.fuse.iter().zip(&self.local).enumerate() {
            let fused = fuse.forward(&segments, &phrases.narrow(1, n, 1)?)?;
            of_phrases.push(local.forward(&fused, &kept, pass)?);
        }
        let phrase_weights = softmax(&self.phrase_score.forward(&phrases)?, D::Minus1)?; // [batch, phrases]
        let mut context = segments.zeros_like()?;
        for (n, local) in of_phrases.iter().enumerate() {
            context = (context + local.broadcast_mul(&phrase_weights.narrow(1, n, 1)?.unsqueeze(2)?)?)?;
        }
        for block in &self.global {
            context = block.forward(&context, pair.clip_mask)?;
        }
        let (temporal, pooled) = self.pool.forward(&context, pair.clip_mask)?;
        let ends = self.head.forward(&pooled)?;
        Ok(Forward { words, sentence, segments, phrases, word_attention, phrase_weights, context, temporal, ends })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let words = self.words.forward(&batch.queries)?;
        self.forward(&Pair::of(batch, &words), pass)
    }

    /// Regression, attention and phrases, unweighted, then the total.
    ///
    /// # Shapes
    /// - truth `[batch, 2]`, inside `[batch, clips]`, 1 at clips of the moment
    fn losses(&self, forward: &Forward, truth: &Tensor, inside: &Tensor) -> Result<[Tensor; 4]> {
        let regression = pair_loss(&forward.ends, truth)?;
        let temporal = guidance_loss(&forward.temporal, inside)?;
        let phrases = self.phrase_loss(&forward.word_attention)?;
        let total =
            ((&regression + (&temporal * self.config.attention_weight)?)? + (&phrases * self.config.phrase_weight)?)?;
        Ok([regression, temporal, phrases, total])
    }

    /// How far the phrases' attentions are from disjoint ones: `‖A Aᵀ - λ I‖²`.
    fn phrase_loss(&self, attention: &Tensor) -> Result<Tensor> {
        let overlap = attention.times(&attention.t()?.contiguous()?)?;
        let own = (Tensor::eye(self.config.phrases, DType::F32, overlap.device())? * self.config.spread)?;
        Ok(overlap.broadcast_sub(&own)?.sqr()?.sum((1, 2))?.mean_all()?)
    }
}

/// Smooth L1 of both columns of `[batch, 2]`, a mean over the batch each.
pub(super) fn pair_loss(ours: &Tensor, truth: &Tensor) -> Result<Tensor> {
    Ok(smooth_l1(&(ours - truth)?)?.mean(0)?.sum_all()?)
}

/// Cross entropy of temporal attention with the clips of the moment, `[batch, clips]` each.
pub(super) fn guidance_loss(attention: &Tensor, inside: &Tensor) -> Result<Tensor> {
    let each = (attention + 1e-8)?.log()?.neg()?.mul(inside)?;
    Ok(each.sum(1)?.div(&inside.sum(1)?.maximum(1.0)?)?.mean_all()?)
}

/// The true spans as `[batch, 2]` and the clips that each covers, `[batch, clips]`.
pub(super) fn truth_of(batch: &Batch, model: &'static str) -> Result<(Tensor, Tensor)> {
    let (spans, device) = (&batch.targets(model)?.spans, batch.videos.visual.device());
    let clips = batch.videos.visual.dim(1)?;
    let ends: Vec<f32> = spans.iter().flat_map(|span| [span.start() as f32, span.end() as f32]).collect();
    let covered = |(span, length): (&NormSpan, &usize)| {
        let real = (*length).max(1);
        let at = |fraction: f64| (fraction * real as f64).round().max(0.0) as usize;
        let first = at(span.start()).min(real - 1);
        let last = at(span.end()).max(first + 1).min(real - 1);
        (0..clips).map(move |clip| f32::from(u8::from((first..=last).contains(&clip)))).collect::<Vec<f32>>()
    };
    let inside: Vec<f32> = spans.iter().zip(&batch.videos.lengths).flat_map(covered).collect();
    Ok((Tensor::from_vec(ends, (spans.len(), 2), device)?, Tensor::from_vec(inside, (spans.len(), clips), device)?))
}

/// One answer per query: its two numbers, clamped and in order.
pub(super) fn answers(ends: &Tensor) -> Result<Vec<Vec<Proposal>>> {
    let span = |row: Vec<f32>| NormSpan::new(f64::from(row[0]), f64::from(row[1])).map(NormSpan::clipped);
    let rows = ends.to_dtype(DType::F32)?.to_vec2::<f32>()?;
    Ok(rows.into_iter().map(|row| span(row).map(|span| Proposal { span, score: 1.0 }).into_iter().collect()).collect())
}

/// What clips are multiplied by in front of a convolution, `[batch, clips, 1]`.
pub(super) fn kept_clips(padded: PaddedClips, mask: &Tensor) -> Result<Tensor> {
    let kept = match padded {
        PaddedClips::Masked => mask.clone(),
        PaddedClips::Published => mask.ones_like()?,
    };
    Ok(kept.unsqueeze(2)?)
}

/// Words to states, both ways, over the real words of each query.
#[derive(Debug)]
pub(super) struct QueryEncoder {
    rnn: Recurrent,
    dropout: f64,
}

impl QueryEncoder {
    pub(super) fn new(words: usize, hidden: usize, layers: usize, dropout: f64, vb: &VarBuilder) -> Result<Self> {
        Ok(Self { rnn: Recurrent::lstm(words, hidden / 2, layers, Ways::Both, vb.clone())?, dropout })
    }

    /// # Shapes
    /// - words `[batch, words, d_word]`; returns `[batch, words, hidden]`, zero at padding
    pub(super) fn forward(&self, words: &Tensor, lengths: &[usize], pass: &Pass) -> Result<Tensor> {
        let running = Running { lengths: Some(lengths), dropout: self.dropout, ..Running::default() };
        Ok(self.rnn.every_layer(words, running, pass)?.pop().unwrap_or_else(|| words.clone()))
    }
}

/// A clip and where it stands, `[batch, clips, hidden]`, zero at padding.
#[derive(Debug)]
pub(super) struct VideoEncoder {
    project: Linear,
    places: Tensor,
    dropout: f64,
}

impl VideoEncoder {
    pub(super) fn new(visual: usize, hidden: usize, clips: usize, dropout: f64, vb: &VarBuilder) -> Result<Self> {
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        Ok(Self {
            project: linear(visual, hidden, vb.pp("vid_emb_fn.0"))?,
            places: vb.get_with_hints((clips, hidden), "pos_emb_fn.0.weight", normal)?,
            dropout,
        })
    }

    /// # Shapes
    /// - visual `[batch, clips, d_visual]`, mask `[batch, clips]`; no more clips than there are places
    pub(super) fn forward(&self, visual: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let clips = pass.dropout(&self.project.forward(visual)?.relu()?, self.dropout)?;
        let places = self.places.narrow(0, 0, visual.dim(1)?)?.relu()?;
        let places = pass.dropout(&places.broadcast_as(clips.shape())?.contiguous()?, self.dropout)?;
        Ok((clips + places)?.broadcast_mul(&mask.unsqueeze(2)?)?)
    }
}

/// Takes phrases from a query one after another, each guided by the one before.
#[derive(Debug)]
struct PhraseReader {
    of_sentence: Vec<Linear>,
    guide: Linear,
    attention: WordAttention,
}

impl PhraseReader {
    fn new(hidden: usize, width: usize, phrases: usize, vb: &VarBuilder) -> Result<Self> {
        let of_sentence = |n: usize| linear(hidden, hidden, vb.pp("global_emb_fn").pp(n));
        Ok(Self {
            of_sentence: (0..phrases).map(of_sentence).collect::<candle_core::Result<_>>()?,
            guide: linear(2 * hidden, hidden, vb.pp("guide_emb_fn.0"))?,
            attention: WordAttention::new(hidden, width, &vb.pp("att_fn"))?,
        })
    }

    /// # Shapes
    /// - sentence `[batch, hidden]`, words `[batch, words, hidden]`, mask `[batch, words]`
    /// - returns phrases `[batch, phrases, hidden]` and their attention `[batch, phrases, words]`
    fn forward(&self, sentence: &Tensor, words: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let mut before = sentence.zeros_like()?;
        let (mut phrases, mut attentions) = (Vec::new(), Vec::new());
        for of_sentence in &self.of_sentence {
            let guide = Tensor::cat(&[of_sentence.forward(sentence)?, before], 1)?;
            let guide = self.guide.forward(&guide)?.relu()?;
            let (phrase, attention) = self.attention.forward(&guide, words, mask)?;
            before = phrase.clone();
            phrases.push(phrase);
            attentions.push(attention);
        }
        Ok((Tensor::stack(&phrases, 1)?, Tensor::stack(&attentions, 1)?))
    }
}

/// Additive attention of one vector over words.
#[derive(Debug)]
pub(super) struct WordAttention {
    from_key: Linear,
    from_word: Linear,
    score: Linear,
}

impl WordAttention {
    pub(super) fn new(hidden: usize, width: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            from_key: linear(hidden, width, vb.pp("key2att"))?,
            from_word: linear(hidden, width, vb.pp("feat2att"))?,
            score: linear(width, 1, vb.pp("to_alpha"))?,
        })
    }

    /// # Shapes
    /// - key `[batch, hidden]`, words `[batch, words, hidden]`, mask `[batch, words]`
    /// - returns what is attended to, `[batch, hidden]`, and the weights `[batch, words]`
    pub(super) fn forward(&self, key: &Tensor, words: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let both = self.from_word.forward(words)?.broadcast_add(&self.from_key.forward(key)?.unsqueeze(1)?)?;
        let scores = self.score.forward(&both.tanh()?)?.squeeze(D::Minus1)?;
        let weights = softmax(&mask_out(&scores, mask, -1e9)?, D::Minus1)?;
        Ok((weights.unsqueeze(1)?.times(words)?.squeeze(1)?, weights))
    }
}

/// A phrase with every clip: a product between two layers.
#[derive(Debug)]
pub(super) struct Fusion {
    of_clip: Linear,
    of_phrase: Linear,
    out: Linear,
}

impl Fusion {
    pub(super) fn new(hidden: usize, query: usize, vb: &VarBuilder) -> Result<Self> {
        let layer = |inputs: usize, name: &str| linear(inputs, hidden, vb.pp(name));
        Ok(Self { of_clip: layer(hidden, "fc_1")?, of_phrase: layer(query, "fc_2")?, out: layer(hidden, "fc_3")? })
    }

    /// # Shapes
    /// - clips `[batch, clips, hidden]`, phrase `[batch, 1, query]`; returns `[batch, clips, hidden]`
    pub(super) fn forward(&self, clips: &Tensor, phrase: &Tensor) -> Result<Tensor> {
        let phrase = self.of_phrase.forward(&phrase.contiguous()?)?.relu()?;
        let both = self.of_clip.forward(clips)?.relu()?.broadcast_mul(&phrase)?;
        Ok(self.out.forward(&both)?.relu()?)
    }
}

/// Residual blocks of two convolutions along time.
#[derive(Debug)]
pub(super) struct LocalContext {
    blocks: Vec<[(Conv1d, BatchNorm); 2]>,
}

impl LocalContext {
    pub(super) fn new(hidden: usize, kernel: usize, blocks: usize, vb: &VarBuilder) -> Result<Self> {
        let steps = Steps { padding: kernel / 2, ..Steps::default() };
        let layer = |vb: &VarBuilder, place: usize| -> Result<(Conv1d, BatchNorm)> {
            let conv = Conv1d::without_bias(hidden, hidden, kernel, steps, vb.pp(place))?;
            Ok((conv, BatchNorm::new(hidden, vb.pp(place + 1))?))
        };
        // Places 0 and 1, then 3 and 4: the published block counts its ReLU.
        let block = |n: usize| {
            let vb = vb.pp("blocks").pp(n);
            Ok([layer(&vb, 0)?, layer(&vb, 3)?])
        };
        Ok(Self { blocks: (0..blocks).map(block).collect::<Result<_>>()? })
    }

    /// # Shapes
    /// - x `[batch, clips, hidden]`, kept `[batch, clips, 1]`; returns as x
    pub(super) fn forward(&self, x: &Tensor, kept: &Tensor, pass: &Pass) -> Result<Tensor> {
        let mut x = x.clone();
        for [first, second] in &self.blocks {
            let layer = |(conv, norm): &(Conv1d, BatchNorm), x: &Tensor| -> Result<Tensor> {
                Ok(norm.forward(&conv.forward(&x.broadcast_mul(kept)?)?, pass)?)
            };
            let y = layer(second, &layer(first, &x)?.relu()?)?;
            x = (x + y)?.relu()?;
        }
        Ok(x)
    }
}

/// A score per row: `w · tanh(W x)`, no biases.
#[derive(Debug)]
pub(super) struct Scorer {
    hidden: Linear,
    score: Linear,
}

impl Scorer {
    pub(super) fn new(inputs: usize, width: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            hidden: linear_no_bias(inputs, width, vb.pp("feat2att"))?,
            score: linear_no_bias(width, 1, vb.pp("to_alpha"))?,
        })
    }

    /// # Shapes
    /// - x `[batch, rows, inputs]`; returns `[batch, rows]`
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.score.forward(&self.hidden.forward(x)?.tanh()?)?.squeeze(D::Minus1)?)
    }
}

/// Every clip attends to all real ones; what it attends to is added.
#[derive(Debug)]
pub(super) struct GlobalBlock {
    key: Linear,
    query_value: Linear,
    heads: usize,
}

impl GlobalBlock {
    pub(super) fn new(hidden: usize, heads: usize, model: &'static str, vb: &VarBuilder) -> Result<Self> {
        if heads == 0 || !hidden.is_multiple_of(heads) {
            let problem = format!("`heads` = {heads} does not divide `hidden` = {hidden}");
            return Err(ModelError::Settings { model, problem });
        }
        Ok(Self {
            key: linear(hidden, hidden, vb.pp("v_lin"))?,
            query_value: linear(hidden, 2 * hidden, vb.pp("c_lin"))?,
            heads,
        })
    }

    /// # Shapes
    /// - x `[batch, clips, hidden]`, mask `[batch, clips]`; returns as x
    pub(super) fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let (batch, clips, hidden) = x.dims3()?;
        let width = hidden / self.heads;
        let split = |x: &Tensor| x.reshape((batch, clips, self.heads, width))?.transpose(1, 2)?.contiguous();
        let both = self.query_value.forward(x)?;
        let (query, value) = (split(&both.narrow(2, 0, hidden)?)?, split(&both.narrow(2, hidden, hidden)?)?);
        // Rows are the key projection: the published code has the two names the other way round.
        let key = split(&self.key.forward(x)?)?;
        let logits = (key.times(&query.t()?.contiguous()?)? * (width as f64).sqrt().recip())?;
        let weights = softmax(&mask_out(&logits, &mask.unsqueeze(1)?.unsqueeze(1)?, -1e9)?, D::Minus1)?;
        let attended = weights.times(&value)?.transpose(1, 2)?.reshape((batch, clips, hidden))?;
        Ok((x + attended)?)
    }
}

/// One vector of a video: clips weighted by attention, then a layer.
#[derive(Debug)]
pub(super) struct TemporalPool {
    score: Scorer,
    out: Linear,
}

impl TemporalPool {
    pub(super) fn new(hidden: usize, width: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self { score: Scorer::new(hidden, width, vb)?, out: linear(hidden, hidden, vb.pp("fc"))? })
    }

    /// # Shapes
    /// - x `[batch, clips, hidden]`, mask `[batch, clips]`; returns weights `[batch, clips]` and `[batch, hidden]`
    pub(super) fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let weights = softmax(&mask_out(&self.score.forward(x)?, mask, -1e9)?, D::Minus1)?;
        let pooled = weights.unsqueeze(1)?.times(x)?.squeeze(1)?;
        Ok((weights, self.out.forward(&pooled)?))
    }
}

/// Two bounded numbers from one vector.
#[derive(Debug)]
pub(super) struct Head {
    hidden: Linear,
    out: Linear,
    output: Output,
}

impl Head {
    pub(super) fn new(inputs: usize, hidden: usize, output: Output, vb: &VarBuilder) -> Result<Self> {
        Ok(Self { hidden: linear(inputs, hidden, vb.pp(0))?, out: linear(hidden, 2, vb.pp(2))?, output })
    }

    /// # Shapes
    /// - x `[batch, inputs]`; returns `[batch, 2]`
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let out = self.out.forward(&self.hidden.forward(x)?.relu()?)?;
        Ok(match self.output {
            Output::Sigmoid => sigmoid(&out)?,
            Output::Relu => out.relu()?,
        })
    }
}

/// Widths of a fixture's attentions, that over words under its own key.
pub(super) fn widths_of(fixture: &Fixture, words: &str) -> Result<AttentionWidths> {
    Ok(AttentionWidths {
        words: fixture.number(words)?,
        phrases: fixture.number("lgi_global_satt_att_hdim")?,
        clips: fixture.number("grounding_att_hdim")?,
    })
}

/// The head that the reference has for a fixture's dataset.
pub(super) fn output_of(fixture: &Fixture) -> Result<Output> {
    Ok(if fixture.config("dataset")?.as_str() == Some("charades") { Output::Relu } else { Output::Sigmoid })
}

impl Model for Lgi {
    fn input(&self) -> Input {
        let rows = self.config.clips;
        Input { normalise: Normalise::None, resample: Resample::MeanBinsIfLonger { rows }, ..Input::pairs(rows) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let (truth, inside) = truth_of(batch, CARD.name)?;
        let [regression, attention, phrases, total] = self.losses(&self.of_batch(batch, pass)?, &truth, &inside)?;
        Ok(Loss { total, parts: vec![("regression", regression), ("attention", attention), ("phrases", phrases)] })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        answers(&self.of_batch(batch, &Pass::answering())?.ends)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = LgiConfig {
        clips: fixture.number("video_enc_pemb_idim")?,
        hidden: fixture.number("video_enc_vemb_odim")?,
        query: 2 * fixture.number("query_enc_rnn_hdim")?,
        head: fixture.number("grounding_hdim")?,
        attention: widths_of(fixture, "sqan_att_hdim")?,
        lstm_layers: fixture.number("query_enc_rnn_nlayer")?,
        phrases: fixture.number("num_semantic_entity")?,
        kernel: fixture.number("conv_kernel")?,
        local_blocks: fixture.number("lgi_local_num_res_blocks")?,
        blocks: fixture.number("lgi_global_num_nl_block")?,
        heads: fixture.number("lgi_global_nl_nheads")?,
        output: output_of(fixture)?,
        spread: fixture.real("dqa_lambda")?,
        attention_weight: fixture.real("tag_weight")?,
        phrase_weight: fixture.real("dqa_weight")?,
        dropout: 0.0,
        word_vectors: WordSource::Own,
        padded_clips: PaddedClips::Published,
    };
    let visual = fixture.input("video_features")?;
    let given = given_of(fixture, &visual)?;
    let net = Lgi::new(&config, &given, vb.clone())?;
    let (clip_mask, word_mask) = (fixture.input("video_mask")?, fixture.input("query_mask")?);
    let words = net.words.look_up(&fixture.ids("query_ids")?, &word_mask)?;
    let lengths = fixture.lengths("query_mask")?;
    let pair = Pair { visual: &visual, clip_mask: &clip_mask, words: &words, word_mask: &word_mask, lengths: &lengths };
    let forward = net.forward(&pair, &Pass::answering())?;
    let truth = Tensor::stack(&[fixture.input("gt_start")?, fixture.input("gt_end")?], 1)?;
    let [regression, attention, phrases, total] = net.losses(&forward, &truth, &fixture.input("attention_mask")?)?;

    let mut trace = Trace::new();
    trace.out("word_features", &forward.words);
    trace.out("sentence_feature", &forward.sentence);
    trace.out("segment_embedding", &forward.segments);
    trace.out("phrase_features", &forward.phrases);
    trace.out("phrase_word_attention", &forward.word_attention);
    trace.out("phrase_weights", &forward.phrase_weights);
    trace.out("semantics_aware_segments", &forward.context);
    trace.out("temporal_attention", &forward.temporal);
    trace.out("start_end", &forward.ends);
    trace.loss("regression", &regression);
    trace.loss("tag", &attention);
    trace.loss("dqa", &phrases);
    trace.loss("total", &total);
    Ok(trace)
}

/// Widths of a fixture, its table of words included.
pub(super) fn given_of(fixture: &Fixture, visual: &Tensor) -> Result<Given> {
    let table = fixture.tensor("param.query_enc.embedding.weight")?.dims2()?;
    Ok(Given::widths(visual.dim(2)?, table.1, table.0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config(padded_clips: PaddedClips) -> LgiConfig {
        LgiConfig {
            clips: 12,
            hidden: 16,
            query: 12,
            head: 10,
            attention: AttentionWidths { words: 8, phrases: 6, clips: 4 },
            lstm_layers: 2,
            phrases: 2,
            kernel: 3,
            local_blocks: 1,
            blocks: 1,
            heads: 2,
            output: Output::Sigmoid,
            spread: 0.3,
            attention_weight: 1.0,
            phrase_weight: 1.0,
            dropout: 0.0,
            word_vectors: WordSource::Given,
            padded_clips,
        }
    }

    fn net(padded_clips: PaddedClips) -> Lgi {
        Lgi::new(&config(padded_clips), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    fn ends(net: &Lgi, batch: &Batch) -> Tensor {
        net.of_batch(batch, &Pass::answering()).unwrap().ends
    }

    #[test]
    fn every_query_gets_one_span_inside_its_video() {
        let batch = TOY.batch(1);
        let net = net(PaddedClips::Masked);
        let forward = net.of_batch(&batch, &Pass::answering()).unwrap();
        assert_eq!(forward.word_attention.dims(), [TOY.pairs, 2, TOY.words]);
        assert_eq!(forward.temporal.dims(), [TOY.pairs, TOY.clips]);
        let ranked = net.propose(&batch).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 1);
            assert!(proposals[0].span.start() >= 0.0 && proposals[0].span.end() <= 1.0);
        }
    }

    #[test]
    fn padding_changes_nothing_unless_the_published_leak_is_asked_for() {
        let batch = TOY.batch(1);
        let masked = net(PaddedClips::Masked);
        assert!(gap(&ends(&masked, &batch), &ends(&masked, &batch.with_longer_words(3))) < 1e-6);
        assert!(gap(&ends(&masked, &batch), &ends(&masked, &batch.with_longer_videos(3))) < 1e-6);
        let published = net(PaddedClips::Published);
        assert!(gap(&ends(&published, &batch), &ends(&published, &batch.with_longer_videos(3))) > 1e-6);
    }

    #[test]
    fn the_clips_of_a_moment_are_counted_in_real_ones() {
        let mut batch = TOY.batch(1).with_longer_videos(4);
        batch.videos.lengths = vec![4; TOY.pairs];
        // The first moment is 0 to 3/8 of the video: rounded ends 0 and 2 of 4 clips, both counted.
        let (_, inside) = truth_of(&batch, "lgi").unwrap();
        assert_eq!(inside.to_vec2::<f32>().unwrap()[0], [1., 1., 1., 0., 0., 0., 0., 0., 0., 0., 0., 0.]);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
            Ok(Box::new(Lgi::new(&config(PaddedClips::Masked), &TOY.given(), vb)?))
        };
        // The running statistics of the batch norms need their time.
        let (model, first, last) = overfit(build, &batch, 120, 5e-3);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.8 * first, "{first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    }
}
