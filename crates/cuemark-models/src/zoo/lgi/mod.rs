//! LGI: phrases from the query, each fused with the video, local then global context, and a regression of start and end.
//! Mun et al., "Local-Global Video-Text Interactions for Temporal Grounding", CVPR 2020.
//!
//! Differs from the published code: longer videos are averaged to `clips` rows instead of picked from, without jitter;
//! padded clips are zero in front of every convolution (`padded_clips = "published"` leaves them as they are, and then
//! they leak into valid ones); answers are clamped and put in order.

mod blocks;
mod check;
mod config;
#[cfg(test)]
mod tests;

use candle_core::{D, DType, Tensor};
use candle_nn::VarBuilder;
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::softmax;

use crate::layers::{Pair, QueryWords, final_states, linear};
use crate::losses::smooth_l1;
use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

use blocks::PhraseReader;
pub(super) use blocks::{
    Fusion, GlobalBlock, Head, LocalContext, QueryEncoder, Scorer, TemporalPool, VideoEncoder, WordAttention,
};
pub(super) use check::{given_of, output_of, widths_of};
pub use config::{AttentionWidths, LgiConfig, Output, PaddedClips};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "lgi",
    title: "LGI",
    paper: "Mun et al., Local-Global Video-Text Interactions for Temporal Grounding, CVPR 2020",
    family: Family::Regression,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
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
    build: |settings, given, vb| Ok(Box::new(Lgi::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<LgiConfig>(),
    check: check::check,
};

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
