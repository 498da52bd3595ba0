//! TMLGA: the sentence makes a filter that attends to the video; a recurrent localiser finds start and end in what is left.
//! Rodriguez-Opazo et al., "Proposal-free Temporal Moment Localization of a Natural-Language Query in Video using Guided
//! Attention", WACV 2020.
//!
//! Start and end are ranked jointly, an end never before its start; the published code takes the likeliest of each on its own
//! (`answer = "independent"` puts that pair first). The two layers that the code builds and never uses are left out.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::softmax;
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{Linear, Recurrent, Running, Ways, clip_span, linear, rank_boundaries, real_steps};
use crate::{
    Apart, Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "tmlga",
    title: "TMLGA",
    paper: "Rodriguez-Opazo et al., Proposal-free Temporal Moment Localization of a Natural-Language Query in Video using \
            Guided Attention, WACV 2020",
    family: Family::Span,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "a filter made from the sentence attends to clips; a recurrent network scores starts and ends",
    full_sizes: &[
        FullSize { dataset: "charades-sta", settings: "", visual: 1024, words: 300, millions: Some(4.0) },
        // As in the study that reports its time per query; the authors read up to 1,200 clips.
        FullSize {
            dataset: "activitynet-captions",
            settings: "clips = 200",
            visual: 1024,
            words: 300,
            millions: Some(4.0),
        },
        FullSize { dataset: "tacos", settings: "", visual: 1024, words: 300, millions: Some(4.0) },
    ],
    build: |settings, given, vb| Ok(Box::new(Tmlga::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<TmlgaConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TmlgaConfig {
    /// The most clips of a video; later ones are cut off. Default: 1200
    pub clips: usize,
    /// Width of each direction of the query's network. Default: 256
    pub query_hidden: usize,
    /// Width of the filter and of a clip. Default: 512
    pub width: usize,
    /// Width of each direction of the localiser. Default: 256
    pub hidden: usize,
    /// Layers of the query's network. Default: 1
    pub query_layers: usize,
    /// Layers of the localiser. Default: 2
    pub layers: usize,
    /// Share of values that training drops between the localiser's layers. Default: 0.5
    pub dropout: f64,
    /// How start and end are put together. Default: joint
    pub answer: Pairing,
}

impl Default for TmlgaConfig {
    fn default() -> Self {
        Self {
            clips: 1200,
            query_hidden: 256,
            width: 512,
            hidden: 256,
            query_layers: 1,
            layers: 2,
            dropout: 0.5,
            answer: Pairing::Joint,
        }
    }
}

/// How start and end are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// By the product of their probabilities, an end never before its start.
    Joint,
    /// First the likeliest start with the likeliest end, in whatever order they stand, then as `joint`.
    Independent,
}

/// Keeps probabilities above zero.
const TINY: f64 = 1e-13;

/// The network.
#[derive(Debug)]
pub struct Tmlga {
    config: TmlgaConfig,
    query: Recurrent,
    filter: Linear,
    video: Linear,
    localiser: Recurrent,
    start: Linear,
    end: Linear,
}

/// Everything on the way to the boundaries; distributions over clips `[batch, clips]`.
struct Forward {
    filter: Tensor,
    attention: Tensor,
    starts: Tensor,
    ends: Tensor,
}

/// What the loss sees of it.
#[derive(Clone, Copy)]
struct Found<'a> {
    attention: &'a Tensor,
    starts: &'a Tensor,
    ends: &'a Tensor,
}

/// Soft labels of the boundaries and the clips between them, `[batch, clips]`.
struct Truth {
    starts: Tensor,
    ends: Tensor,
    inside: Tensor,
}

/// Kullback-Leibler divergence of each sample, and the loss of the attention.
struct Losses {
    per_sample: Tensor,
    attention: Tensor,
}

impl Forward {
    fn found(&self) -> Found<'_> {
        Found { attention: &self.attention, starts: &self.starts, ends: &self.ends }
    }
}

impl Tmlga {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &TmlgaConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let TmlgaConfig { query_hidden, width, hidden, .. } = *config;
        let tail = vb.pp("model_df.tail_df.lstm");
        Ok(Self {
            query: Recurrent::gru_no_bias(given.words, query_hidden, config.query_layers, Ways::Both, tail)?,
            filter: linear(2 * query_hidden, width, vb.pp("model_df.head_df.mlp.0"))?,
            video: linear(given.visual, width, vb.pp("reduction"))?,
            localiser: Recurrent::gru_no_bias(width, hidden, config.layers, Ways::Both, vb.pp("rnn_localization"))?,
            start: linear(2 * hidden, 1, vb.pp("starting"))?,
            end: linear(2 * hidden, 1, vb.pp("ending"))?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, clips, d_visual]` with `mask [batch, clips]`; words `[batch, words, d_word]`
    /// - `lengths`: real clips and real words of each
    fn forward(
        &self,
        visual: &Tensor,
        mask: &Tensor,
        words: &Tensor,
        lengths: [&[usize]; 2],
        pass: &Pass,
    ) -> Result<Forward> {
        let [clips, word_counts] = lengths;
        let counts = word_counts.iter().map(|count| (*count).max(1) as f32).collect::<Vec<_>>();
        let counts = Tensor::from_vec(counts, (word_counts.len(), 1), visual.device())?;
        let read = self.query.forward_packed(words, word_counts)?.sum(1)?.broadcast_div(&counts)?;
        let filter = self.filter.forward(&read)?.tanh()?;
        let video = self.video.forward(visual)?;
        let logits = video.times(&filter.unsqueeze(2)?)?.squeeze(2)?;
        // The temperature is the root of the number of words, not of the width.
        let attention = masked_softmax(&logits.broadcast_div(&counts.sqrt()?)?, mask)?;
        let attended = video.broadcast_mul(&attention.unsqueeze(2)?)?;
        let running = Running { lengths: Some(clips), dropout: self.config.dropout, ..Running::default() };
        let found = self.localiser.every_layer(&attended, running, pass)?.pop().unwrap_or(attended);
        let boundary = |head: &Linear| masked_softmax(&head.forward(&found)?.squeeze(D::Minus1)?, mask);
        Ok(Forward { filter, attention, starts: boundary(&self.start)?, ends: boundary(&self.end)? })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let (videos, queries) = (&batch.videos, &batch.queries);
        self.forward(&videos.visual, &videos.mask, &queries.words, [&videos.lengths, &queries.lengths], pass)
    }
}

/// A softmax that padding has no part in, lifted above zero everywhere.
fn masked_softmax(logits: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let all = (softmax(&(logits * mask)?, 1)? * mask)?;
    Ok((all.broadcast_div(&(all.sum_keepdim(1)? + TINY)?)? + TINY)?)
}

/// 0.5 at the boundary, half of the rest on either side where there is a clip, next to nothing elsewhere, 0 on padding.
fn soft_label(boundary: usize, length: usize, clips: usize) -> Vec<f32> {
    let floor = 1e-10;
    let beside = (1.0 - (length as f64 - 3.0) * floor - 0.5) / 2.0;
    let value = |clip: usize| match clip.abs_diff(boundary) {
        _ if clip >= length => 0.0,
        0 => 0.5,
        1 => beside as f32,
        _ => floor as f32,
    };
    (0..clips).map(value).collect()
}

impl Truth {
    fn of_batch(batch: &Batch) -> Result<Self> {
        let clips = batch.videos.visual.dim(1)?;
        let (mut starts, mut ends, mut inside) = (Vec::new(), Vec::new(), Vec::new());
        for (span, length) in batch.targets(CARD.name)?.spans.iter().zip(&batch.videos.lengths) {
            let (start, end) = boundaries(*span, *length);
            starts.extend(soft_label(start, *length, clips));
            ends.extend(soft_label(end, *length, clips));
            inside.extend((0..clips).map(|clip| f32::from(u8::from((start..end).contains(&clip)))));
        }
        let tensor = |values: Vec<f32>| Tensor::from_vec(values, (batch.len(), clips), batch.videos.visual.device());
        Ok(Self { starts: tensor(starts)?, ends: tensor(ends)?, inside: tensor(inside)? })
    }

    fn losses(&self, found: Found, mask: &Tensor) -> Result<Losses> {
        // On padding both are 1, so that the logarithm of their ratio is 0.
        let lift = mask.affine(-1.0, 1.0)?;
        let divergence = |label: &Tensor, found: &Tensor| -> Result<Tensor> {
            // A probability that rounds to 0 has no logarithm.
            let found = ((found * mask)? + &lift)?.maximum(f32::MIN_POSITIVE)?;
            let ratio = (found.log()? - (label + &lift)?.log()?)?;
            Ok((label * ratio)?.sum(1)?.neg()?)
        };
        let per_sample = (divergence(&self.starts, found.starts)? + divergence(&self.ends, found.ends)?)?;
        let outside = self.inside.affine(-1.0, 1.0)?;
        // As large as the published 1e-12 where that is lost beside 1: an attention of exactly 1 inside the moment is no fault.
        let missed = found.attention.affine(-1.0, 1.0)?.maximum(1e-12f32)?.log()?;
        Ok(Losses { per_sample, attention: (outside * missed)?.sum(1)?.mean_all()?.neg()? })
    }
}

impl Losses {
    fn total(&self) -> Result<Tensor> {
        Ok((self.per_sample.mean_all()? + &self.attention)?)
    }
}

/// Clips that hold the start and the end of a span; the end no later than the last clip.
fn boundaries(span: NormSpan, length: usize) -> (usize, usize) {
    let last = length.saturating_sub(1);
    let clip = |fraction: f64| ((fraction * length as f64).floor().max(0.0) as usize).min(last);
    // An end that falls on the edge of a clip belongs to the clip before it.
    let end = ((span.end() * length as f64 - 1e-6).ceil().max(1.0) as usize - 1).min(last);
    let start = clip(span.start() + 1e-9);
    (start, end.max(start))
}

impl Model for Tmlga {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::Cut { rows: self.config.clips },
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        self.judge(&self.read(batch, pass)?, batch, pass)
    }

    fn apart(&self) -> Option<&dyn Apart> {
        Some(self)
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let forward = self.of_batch(batch, &Pass::answering())?;
        let mut ranked = rank_boundaries(&forward.starts, &forward.ends, &batch.videos.lengths)?;
        if self.config.answer == Pairing::Independent {
            let likeliest = |x: &Tensor| x.argmax(1)?.to_vec1::<u32>();
            let pairs = likeliest(&forward.starts)?.into_iter().zip(likeliest(&forward.ends)?);
            for (((start, end), proposals), length) in pairs.zip(&mut ranked).zip(&batch.videos.lengths) {
                let (first, last) = (start.min(end) as usize, start.max(end) as usize);
                let span = if start > end { NormSpan::new(0.0, 0.0) } else { clip_span(first, last, *length) };
                // Probabilities stay below 1, so this is ahead of them all.
                proposals.splice(0..0, span.map(|span| Proposal { span, score: 1.0 }));
            }
        }
        Ok(ranked)
    }
}

impl Apart for Tmlga {
    fn read(&self, part: &Batch, pass: &Pass) -> Result<Vec<Tensor>> {
        let Forward { attention, starts, ends, .. } = self.of_batch(part, pass)?;
        Ok(vec![attention, starts, ends])
    }

    fn judge(&self, found: &[Tensor], batch: &Batch, _: &Pass) -> Result<Loss> {
        let found = Found { attention: &found[0], starts: &found[1], ends: &found[2] };
        let losses = Truth::of_batch(batch)?.losses(found, &batch.videos.mask)?;
        let parts = vec![("boundaries", losses.per_sample.mean_all()?), ("attention", losses.attention.clone())];
        Ok(Loss { total: losses.total()?, parts })
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = TmlgaConfig {
        query_hidden: fixture.number("DYNAMIC_FILTER.LSTM.HIDDEN_SIZE")?,
        width: fixture.number("REDUCTION.OUTPUT_SIZE")?,
        hidden: fixture.number("LOCALIZATION.HIDDEN_SIZE")?,
        query_layers: fixture.number("DYNAMIC_FILTER.LSTM.NUM_LAYERS")?,
        layers: fixture.number("LOCALIZATION.NUM_LAYERS")?,
        dropout: 0.0,
        ..TmlgaConfig::default()
    };
    let (visual, words) = (fixture.input("video_features")?, fixture.input("token_vectors")?);
    let net = Tmlga::new(&config, &Given::widths(visual.dim(2)?, words.dim(2)?, 0), vb.clone())?;
    let (clips, counts) = (fixture.counts("video_len")?, fixture.counts("token_len")?);
    let mask = real_steps(&clips, visual.dim(1)?, visual.device())?;
    let forward = net.forward(&visual, &mask, &words, [&clips, &counts], &Pass::answering())?;
    let truth = Truth {
        starts: fixture.input("start_label")?,
        ends: fixture.input("end_label")?,
        inside: fixture.input("inside_label")?,
    };
    let losses = truth.losses(forward.found(), &mask)?;

    let mut trace = Trace::new();
    trace.out("dynamic_filter", &forward.filter);
    trace.out("attention", &forward.attention);
    trace.out("start_prob", &forward.starts);
    trace.out("end_prob", &forward.ends);
    trace.out("kl_per_sample", &losses.per_sample);
    trace.loss("start_plus_end_kl", &losses.per_sample.mean_all()?);
    trace.loss("attention", &losses.attention);
    trace.loss("total", &losses.total()?);
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, assert_learnt_by_heart, gap};

    fn config(answer: Pairing) -> TmlgaConfig {
        TmlgaConfig {
            clips: 16,
            query_hidden: 10,
            width: 14,
            hidden: 12,
            dropout: 0.0,
            answer,
            ..TmlgaConfig::default()
        }
    }

    fn net(answer: Pairing) -> Tmlga {
        Tmlga::new(&config(answer), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn distributions_sum_to_one_and_every_pair_is_ranked() {
        let batch = TOY.batch(1);
        let forward = net(Pairing::Joint).of_batch(&batch, &Pass::answering()).unwrap();
        for distribution in [&forward.attention, &forward.starts, &forward.ends] {
            assert_eq!(distribution.dims(), [TOY.pairs, TOY.clips]);
            assert!(gap(&distribution.sum(1).unwrap(), &Tensor::new(&[1f32; 4], &Device::Cpu).unwrap()) < 1e-5);
        }
        assert!(net(Pairing::Joint).propose(&batch).unwrap().iter().all(|proposals| proposals.len() == 36));
        assert!(net(Pairing::Independent).propose(&batch).unwrap().iter().all(|proposals| proposals.len() == 37));
    }

    #[test]
    fn padding_changes_nothing() {
        let (batch, net) = (TOY.batch(1), net(Pairing::Joint));
        let short = net.of_batch(&batch, &Pass::answering()).unwrap();
        let longer = batch.with_longer_words(3).with_longer_videos(2);
        let long = net.of_batch(&longer, &Pass::answering()).unwrap();
        assert!(gap(&short.starts, &long.starts.narrow(1, 0, TOY.clips).unwrap()) < 1e-6);
        let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&longer)) < 1e-5);
    }

    #[test]
    fn a_boundary_shares_its_label_with_its_neighbours() {
        let label = soft_label(0, 5, 6);
        assert_eq!((label[0], label[2], label[5]), (0.5, 1e-10, 0.0));
        assert!((label[1] - 0.25).abs() < 1e-6);
        assert_eq!(boundaries(NormSpan::new(0.25, 0.5).unwrap(), 8), (2, 3));
        assert_eq!(boundaries(NormSpan::new(0.9, 1.4).unwrap(), 8), (7, 7));
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| Tmlga::new(&config(Pairing::Joint), &TOY.given(), vb);
        assert_learnt_by_heart(build, &batch, 150, 1e-2, 0.3);
    }
}
