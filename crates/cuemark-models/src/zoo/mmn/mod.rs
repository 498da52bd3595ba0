//! MMN: maps sentences and all candidate spans into joint spaces, and learns from mismatched pairs of both kinds.
//! Wang et al., "Negative Sample Matters: A Renaissance of Metric Learning for Temporal Grounding", AAAI 2022.
//!
//! Follows the released code where it and the paper differ: cells that overlap the span are zeroed in the second contrastive
//! term, not left out (`matching.excluded = "removed"` leaves them out). The released scripts split a batch over several
//! GPUs and take negatives and batch-norm statistics from the local part only; here they come from the whole batch unless
//! `part` says otherwise.

mod check;
mod config;
mod corpus;
#[cfg(test)]
mod tests;

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_core::NormSpan;
use cuemark_tensor::Pass;

use crate::layers::{MatchingEncoder, TwoSpaces, cells_of, cosines, one_video_each};
use crate::losses::Pairs;
use crate::{
    Batch, BatchBy, BiEncoder, Corpus, Family, FullSize, Given, Grid, Input, Loss, Model, ModelCard, Proposal,
    QueryBatch, Result, Supervision, Task, Text, Towers, VideoBatch,
};

pub use config::MmnConfig;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "mmn",
    title: "MMN",
    paper: "Wang et al., Negative Sample Matters: A Renaissance of Metric Learning for Temporal Grounding, AAAI 2022",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo, Task::Corpus],
    supervision: Supervision::Full,
    idea: "maps sentences and all spans into joint spaces, with negatives from other sentences and other videos",
    full_sizes: &[
        FullSize {
            dataset: "charades-sta",
            settings: "network = { map = { pre_clips = 32, clips = 16, counts = [15] }, kernel = 5, layers = 8 }\n\
                       matching = { margin = 0.4, weight = 0.05, switch_epoch = 7 }\n\
                       text = { frozen_epochs = 4 }",
            visual: 4096,
            words: 0,
            millions: None,
        },
        FullSize {
            dataset: "activitynet-captions",
            settings: "network = { map = { pre_clips = 256, clips = 64, counts = [15, 8, 8] }, kernel = 9, layers = 4 }\n\
                       matching = { margin = 0.3, weight = 0.1, switch_epoch = 6 }\n\
                       text = { frozen_epochs = 4 }",
            visual: 500,
            words: 0,
            millions: None,
        },
        FullSize {
            dataset: "tacos",
            settings: "network = { map = { pre_clips = 256, clips = 128, counts = [15, 8, 8, 8] }, kernel = 5, layers = 8 }\n\
                       targets = { min_iou = 0.3, max_iou = 0.7 }\n\
                       matching = { margin = 0.1, top_k = 3, weight = 0.1, switch_epoch = 100 }\n\
                       text = { frozen_epochs = 40 }\npower = 0.3\nnms = 0.4",
            visual: 4096,
            words: 0,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Mmn::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<MmnConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Mmn {
    config: MmnConfig,
    pub(super) encoder: MatchingEncoder,
}

/// Videos with all their sentences.
struct Part<'a> {
    visual: Tensor,
    tokens: Tensor,
    lengths: Vec<usize>,
    video: Vec<usize>,
    spans: &'a [NormSpan],
}

impl Mmn {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that no map can have.
    pub fn new(config: &MmnConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let encoder = MatchingEncoder::new(&config.network, given, vb)?;
        Ok(Self { encoder, config: config.clone() })
    }

    /// The queries in both spaces, `[queries, joint]`.
    pub(super) fn sentences(&self, queries: &QueryBatch, pass: &Pass) -> Result<TwoSpaces> {
        Ok(self.encoder.sentences.forward(self.tokens(queries), &queries.lengths, pass)?)
    }

    /// Numbers of tokens, or their vectors where an encoder that stays as it is made them.
    fn tokens<'a>(&self, queries: &'a QueryBatch) -> &'a Tensor {
        self.encoder.sentences.reads(&queries.word_ids, &queries.words)
    }

    /// The moments of videos in both spaces, `[videos, cells, joint]`.
    pub(super) fn moments(&self, videos: &VideoBatch, pass: &Pass) -> Result<TwoSpaces> {
        Ok(self.encoder.moments.forward(&videos.visual, pass)?.moments)
    }

    /// The overlap's loss and the two contrastive terms.
    fn losses(&self, part: &Part, pass: &Pass) -> Result<[Tensor; 3]> {
        let moments = self.encoder.moments.forward(&part.visual, pass)?.moments;
        let sentences = self.encoder.sentences.forward(&part.tokens, &part.lengths, pass)?;
        self.compared(&moments, &sentences, &part.video, part.spans)
    }

    /// The same, of moments and of sentences that were found, with the video and the span of each sentence.
    fn compared(
        &self,
        moments: &TwoSpaces,
        sentences: &TwoSpaces,
        video: &[usize],
        spans: &[NormSpan],
    ) -> Result<[Tensor; 3]> {
        let device = moments.matching.device();
        let ious = self.encoder.moments.map().ious(spans, device)?;
        let own_video = one_video_each(video, moments.matching.dim(0)?, device)?;
        let logits = cells_of(&self.encoder.overlap_logits(moments, sentences)?, &own_video)?;
        let cosines = cosines(&sentences.matching, &moments.matching)?;
        let pairs = Pairs { cosines: &cosines, ious: &ious, video, spans };
        let terms = self.config.matching.terms(pairs, None)?;
        let overlap = self.config.targets.loss(&logits, &ious)?;
        Ok([overlap, terms.to_sentences.mean_all()?, terms.to_moments.mean_all()?])
    }

    /// The mean over the parts of `overlap + weight * (to_sentences + to_moments)`.
    fn total(&self, losses: &[[Tensor; 3]], pass: &Pass) -> Result<Loss> {
        let mean = |which: usize| {
            let of_parts: Vec<&Tensor> = losses.iter().map(|losses| &losses[which]).collect();
            Tensor::stack(&of_parts, 0)?.mean_all()
        };
        let (overlap, to_sentences, to_moments) = (mean(0)?, mean(1)?, mean(2)?);
        let matching = ((&to_sentences + &to_moments)? * self.config.matching.weight_in(pass))?;
        Ok(Loss {
            total: (&overlap + matching)?,
            parts: vec![("overlap", overlap), ("to_sentences", to_sentences), ("to_moments", to_moments)],
        })
    }

    /// The batch cut into parts of so many videos; parts without a query are left out.
    fn parts<'a>(&self, batch: &Batch, spans: &'a mut Vec<NormSpan>) -> Result<Vec<Part<'a>>> {
        let (videos, queries) = (batch.videos.visual.dim(0)?, &batch.queries);
        let truth = &batch.targets(CARD.name)?.spans;
        let size = self.config.part.unwrap_or(videos).clamp(1, videos.max(1));
        // Queries in the order of their videos, so that the spans of a part stand together.
        let mut order: Vec<usize> = (0..batch.len()).collect();
        order.sort_by_key(|query| queries.video[*query]);
        spans.extend(order.iter().map(|query| truth[*query]));
        let (mut parts, mut rest, mut after) = (Vec::new(), order.as_slice(), spans.as_slice());
        for first in (0..videos).step_by(size) {
            let count = size.min(videos - first);
            let (of_part, others) = rest.split_at(rest.partition_point(|query| queries.video[*query] < first + count));
            let (spans, spans_after) = after.split_at(of_part.len());
            (rest, after) = (others, spans_after);
            if of_part.is_empty() {
                continue;
            }
            let rows: Vec<u32> = of_part.iter().map(|query| *query as u32).collect();
            let rows = Tensor::new(rows, queries.word_ids.device())?;
            parts.push(Part {
                visual: batch.videos.visual.narrow(0, first, count)?.contiguous()?,
                tokens: self.tokens(queries).contiguous()?.index_select(&rows, 0)?,
                lengths: of_part.iter().map(|query| queries.lengths[*query]).collect(),
                video: of_part.iter().map(|query| queries.video[*query] - first).collect(),
                spans,
            });
        }
        Ok(parts)
    }

    /// Scores of every moment for every sentence, `[sentences, videos, cells]`.
    fn scores(&self, moments: &TwoSpaces, sentences: &TwoSpaces) -> Result<Tensor> {
        let matching = cosines(&sentences.matching, &moments.matching)?;
        let logits = self.encoder.overlap_logits(moments, sentences)?;
        Ok(MatchingEncoder::scores(&matching, &logits, self.config.power)?)
    }
}

impl Model for Mmn {
    fn input(&self) -> Input {
        let pairs = Input::pairs(self.config.network.map.pre_clips);
        Input { text: Text::Tokens, batch_by: BatchBy::Videos, ..pairs }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let mut spans = Vec::with_capacity(batch.len());
        let parts = self.parts(batch, &mut spans)?;
        let losses = parts.iter().map(|part| self.losses(part, pass)).collect::<Result<Vec<_>>>()?;
        self.total(&losses, pass)
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let pass = Pass::answering();
        let moments = self.moments(&batch.videos, &pass)?;
        let scores = self.scores(&moments, &self.sentences(&batch.queries, &pass)?)?;
        let own_video = one_video_each(&batch.queries.video, scores.dim(1)?, scores.device())?;
        Ok(self.encoder.moments.map().rank(&cells_of(&scores, &own_video)?)?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }

    fn grid(&self) -> Option<Grid> {
        Some(self.encoder.moments.map().grid())
    }

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        self.config.text.factor(parameter, pass)
    }

    /// Parts of a batch each have their own statistics and negatives: such a batch is read part after part.
    fn towers(&self) -> Option<&dyn Towers> {
        self.config.part.is_none().then_some(self)
    }

    fn corpus(&self) -> Option<&dyn Corpus> {
        Some(self)
    }

    fn bi_encoder(&self) -> Option<&dyn BiEncoder> {
        Some(self)
    }
}

impl Towers for Mmn {
    fn of_videos(&self, batch: &Batch, pass: &Pass) -> Result<Vec<Tensor>> {
        let TwoSpaces { matching, overlap } = self.moments(&batch.videos, pass)?;
        Ok(vec![matching, overlap])
    }

    fn of_sentences(&self, batch: &Batch, pass: &Pass) -> Result<Vec<Tensor>> {
        let TwoSpaces { matching, overlap } = self.sentences(&batch.queries, pass)?;
        Ok(vec![matching, overlap])
    }

    fn compare(&self, videos: &[Tensor], sentences: &[Tensor], batch: &Batch, pass: &Pass) -> Result<Loss> {
        let spaces = |of: &[Tensor]| TwoSpaces { matching: of[0].clone(), overlap: of[1].clone() };
        let (video, spans) = (&batch.queries.video, &batch.targets(CARD.name)?.spans);
        self.total(&[self.compared(&spaces(videos), &spaces(sentences), video, spans)?], pass)
    }
}
