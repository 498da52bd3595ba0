//! CPL: several Gaussians over the video, ranked by how well hidden words are guessed from what each covers.
//! Zheng et al., "Weakly Supervised Temporal Sentence Grounding with Gaussian-based Contrastive Proposal Learning", CVPR 2022.
//!
//! As in the published code, clips are read from left to right only and words are hidden when answering too; there the choice
//! is random, here it follows from the query's id. Every sentence ends with an end to guess, in the code all but the longest of
//! a batch. The margin on ActivityNet has the authors' weight of 2, not the paper's 1.

use candle_core::{IndexOp, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::Rng;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;
use serde::{Deserialize, Serialize};

use super::cnm::{even_steps, kept_clips, spans};
use crate::check::{Fixture, Trace};
use crate::layers::{
    DualTransformer, Guessed, Linear, MaskedWords, Sequence, TransformerSize, guessing_loss, linear, place,
    sentence_mask,
};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task, fill_settings,
    read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "cpl",
    title: "CPL",
    paper: "Zheng et al., Weakly Supervised Temporal Sentence Grounding with Gaussian-based Contrastive Proposal Learning, \
            CVPR 2022",
    family: Family::Weak,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Weak,
    bi_encoder: false,
    idea: "several Gaussian masks, ranked by how well hidden words are guessed from each",
    full_sizes: &[
        FullSize {
            dataset: "charades-sta",
            settings: "vocabulary = 1112",
            visual: 1024,
            words: 300,
            millions: Some(5.4),
        },
        FullSize {
            dataset: "activitynet-captions",
            settings: "vocabulary = 8001\ngamma = 0.0\nrank_weight = 2.0\ndiversity_weight = 0.1\nlambda = 0.13",
            visual: 500,
            words: 300,
            millions: None,
        },
    ],
    build: |table, given, vb| Ok(Box::new(Cpl::new(&read_settings("cpl", table)?, given, vb)?)),
    settings: |table| fill_settings::<CplConfig>("cpl", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CplConfig {
    /// Clips that every video is brought to. Default: 200
    pub clips: usize,
    /// One clip in this many is kept for guessing words. Default: 4
    pub keep_every: usize,
    /// Width of everything. Default: 256
    pub hidden: usize,
    /// Heads of the attention. Default: 4
    pub heads: usize,
    /// Width inside the feed-forward parts. Default: 512
    pub ffn: usize,
    /// Layers of the decoder of clips. Default: 3
    pub clip_layers: usize,
    /// Layers of the decoder of words. Default: 3
    pub word_layers: usize,
    /// The most frequent words that are guessed, padding included; rarer ones count as unknown. Default: all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// Gaussians per query. Default: 8
    pub proposals: usize,
    /// A Gaussian's deviation is its width divided by this. Default: 9.0
    pub sigma: f64,
    /// Power with which negatives grow over the epochs; 0 for full size at once. Default: 0.5
    pub gamma: f64,
    /// The epoch at which they are full-sized. Default: 30
    pub full_epoch: usize,
    /// Overlap that masks should have with themselves. Default: 0.146
    pub lambda: f64,
    /// By how much guessing from the whole video must be worse. Default: 0.1
    pub whole_margin: f64,
    /// By how much guessing from either side must be worse. Default: 0.15
    pub side_margin: f64,
    /// Weight of the margins. Default: 1.0
    pub rank_weight: f64,
    /// Weight of the diversity of masks. Default: 5.0
    pub diversity_weight: f64,
    /// How proposals are ranked. Default: loss
    pub answer: Ranking,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
}

impl Default for CplConfig {
    fn default() -> Self {
        Self {
            clips: 200,
            keep_every: 4,
            hidden: 256,
            heads: 4,
            ffn: 512,
            clip_layers: 3,
            word_layers: 3,
            vocabulary: None,
            proposals: 8,
            sigma: 9.0,
            gamma: 0.5,
            full_epoch: 30,
            lambda: 0.146,
            whole_margin: 0.1,
            side_margin: 0.15,
            rank_weight: 1.0,
            diversity_weight: 5.0,
            answer: Ranking::Loss,
            dropout: 0.1,
        }
    }
}

/// How proposals are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ranking {
    /// By how well words are guessed from each.
    Loss,
    /// By how much each overlaps the others.
    Vote,
    /// By how much each overlaps the others, each counted by its own overlap with the one words are guessed from best.
    WeightedVote,
}

/// The network.
#[derive(Debug)]
pub struct Cpl {
    config: CplConfig,
    vocabulary: usize,
    asked: Tensor,
    clips: Linear,
    words: MaskedWords,
    transformer: DualTransformer,
    spans: Linear,
    guess: Linear,
}

/// Where the Gaussians lie, `[batch, proposals]` each.
struct Places {
    centre: Tensor,
    width: Tensor,
}

/// Masks over kept clips, `[batch × proposals, kept]`, proposals of one query together.
struct Masks {
    covered: Tensor,
    left: Tensor,
    right: Tensor,
}

/// Words as they are shown to the guesser and what it should say.
struct Shown<'a> {
    x: &'a Tensor,
    mask: &'a Tensor,
    ids: &'a Tensor,
}

/// Logits of words and how badly each guess fits, per row.
struct Guess {
    logits: Tensor,
    badness: Tensor,
}

/// The parts of the loss.
struct Losses {
    reconstruction: Tensor,
    whole: Tensor,
    left: Tensor,
    right: Tensor,
    diversity: Tensor,
}

impl Cpl {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &CplConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let CplConfig { hidden, heads, ffn, dropout, .. } = *config;
        let size = TransformerSize { width: hidden, heads, ffn, dropout };
        let vocabulary = config.vocabulary.unwrap_or(given.vocabulary);
        let layers = [config.clip_layers, config.word_layers];
        Ok(Self {
            asked: vb.get_with_hints(given.visual, "pred_vec", Init::Uniform { lo: 0.0, up: 1.0 })?,
            clips: linear(given.visual, hidden, vb.pp("frame_fc"))?,
            words: MaskedWords::new(given.words, hidden, vb.clone())?,
            transformer: DualTransformer::new(size, layers, vb.pp("trans"))?,
            spans: linear(hidden, 2 * config.proposals, vb.pp("fc_gauss"))?,
            guess: linear(hidden, vocabulary, vb.pp("fc_comp"))?,
            vocabulary,
            config: config.clone(),
        })
    }

    /// Clips and, after them, the place that answers: `[batch, clips + 1, hidden]`.
    fn read_clips(&self, visual: &Tensor, pass: &Pass) -> Result<Tensor> {
        let (batch, _, width) = visual.dims3()?;
        let all = Tensor::cat(&[visual, &self.asked.broadcast_as((batch, 1, width))?], 1)?;
        Ok(self.clips.forward(&pass.dropout(&all, self.config.dropout)?)?)
    }

    /// # Shapes
    /// - clips `[batch, clips + 1, hidden]`, of which `mask [batch, clips]` are real; words `[batch, 1 + words, hidden]`
    fn places(&self, clips: &Tensor, mask: &Tensor, words: Sequence, pass: &Pass) -> Result<Places> {
        let placed = place(words.x)?;
        let mask = mask.pad_with_zeros(1, 0, 1)?; // nothing attends to the place that answers
        let clips = Sequence { x: clips, mask: &mask };
        let seen = self.transformer.clips_from_words(clips, Sequence { x: &placed, ..words }, pass)?;
        let last = seen.narrow(1, seen.dim(1)? - 1, 1)?.squeeze(1)?;
        let found = sigmoid(&self.spans.forward(&last)?)?.reshape(((), self.config.proposals, 2))?;
        Ok(Places { centre: found.i((.., .., 0))?, width: found.i((.., .., 1))? })
    }

    /// `growth`: how much of their full size the negatives have.
    fn masks(&self, places: &Places, kept: usize, growth: f64) -> Result<Masks> {
        let Places { centre, width } = places;
        let half = (width / 2.0)?;
        let left = ((centre - &half)?.relu()? * (0.5 * growth))?;
        let right = ((centre + &half)?.affine(-1.0, 1.0)?.relu()? * (0.5 * growth))?;
        let sigma = self.config.sigma;
        Ok(Masks {
            covered: bell(centre, width, kept, sigma)?,
            left: bell(&left, &left, kept, sigma / 2.0)?,
            right: bell(&right.affine(-1.0, 1.0)?, &right, kept, sigma / 2.0)?,
        })
    }

    /// Guesses the words of every query once for each of its rows in `weights [rows, kept]`, or once from everything.
    fn guess(&self, shown: &Shown, clips: Sequence, weights: Option<&Tensor>, pass: &Pass) -> Result<Guess> {
        let times = match weights {
            Some(weights) => weights.dim(0)? / shown.ids.dim(0)?.max(1),
            None => 1,
        };
        let (x, mask) = (repeat(clips.x, times)?, repeat(clips.mask, times)?);
        let (words, word_mask) = (repeat(shown.x, times)?, repeat(shown.mask, times)?);
        let words = Sequence { x: &words, mask: &word_mask };
        let decoded = self.transformer.words_from_clips(words, Sequence { x: &x, mask: &mask }, weights, pass)?;
        let logits = self.guess.forward(&decoded.x)?;
        let badness = guessing_loss(&logits, &repeat(shown.ids, times)?, &word_mask)?;
        Ok(Guess { logits, badness })
    }

    /// The clips that guesses are made from, and which of them are real.
    fn keep(&self, clips: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let kept = Tensor::new(kept_clips(mask.dim(1)?, self.config.keep_every), clips.device())?;
        Ok((clips.contiguous()?.index_select(&kept, 1)?, mask.index_select(&kept, 1)?))
    }

    fn growth(&self, epoch: usize) -> f64 {
        (epoch as f64 / self.config.full_epoch.max(1) as f64).min(1.0).powf(self.config.gamma)
    }

    fn losses(&self, masks: &Masks, covered: &Guess, whole: &Guess, sides: [&Guess; 2]) -> Result<Losses> {
        let proposals = self.config.proposals;
        let covered = covered.badness.reshape(((), proposals))?;
        let best = covered.argmin_keepdim(1)?;
        let pick = |badness: &Tensor| badness.reshape(((), proposals))?.gather(&best, 1)?.squeeze(1);
        let best_badness = pick(&covered)?;
        let hinge = |other: &Tensor, margin: f64| -> Result<Tensor> {
            Ok(((&best_badness - other)? + margin)?.relu()?.mean_all()?)
        };
        let [left, right] = sides.map(|side| hinge(&pick(&side.badness)?, self.config.side_margin));
        let reconstruction = ((best_badness.mean_all()? + whole.badness.mean_all()?)? / 2.0)?;
        let shares = masks.covered.broadcast_div(&masks.covered.sum_keepdim(1)?)?;
        let shares = shares.reshape(((), proposals, masks.covered.dim(1)?))?;
        let alike = shares.times(&shares.t()?.contiguous()?)?;
        let wanted = (Tensor::eye(proposals, alike.dtype(), alike.device())? * self.config.lambda)?;
        Ok(Losses {
            reconstruction,
            whole: hinge(&whole.badness, self.config.whole_margin)?,
            left: left?,
            right: right?,
            diversity: alike.broadcast_sub(&wanted)?.sqr()?.flatten_from(1)?.sum(1)?.mean_all()?,
        })
    }

    fn ranking_and_diversity(&self, losses: &Losses) -> Result<Tensor> {
        let rank = ((&losses.whole + &losses.left)? + &losses.right)?;
        Ok(((rank * self.config.rank_weight)? + (&losses.diversity * self.config.diversity_weight)?)?)
    }

    /// Proposals of each query, best first, from how badly words are guessed from each, `[batch, proposals]`.
    fn rank(&self, places: &Places, badness: &Tensor) -> Result<Vec<Vec<Proposal>>> {
        let spans = spans(&places.centre, &places.width)?;
        let rank = |(row, spans): (Vec<f32>, &[Option<cuemark_core::NormSpan>])| {
            let scored = spans.iter().zip(row).filter_map(|(span, bad)| Some(Proposal { span: (*span)?, score: -bad }));
            let mut ranked: Vec<Proposal> = scored.collect();
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
            match self.config.answer {
                Ranking::Loss => ranked,
                Ranking::Vote => vote(&ranked, |_, _| 1.0),
                Ranking::WeightedVote => vote(&ranked, |one, first| one.span.iou_hull(first.span)),
            }
        };
        let rows = badness.to_vec2::<f32>()?.into_iter();
        Ok(rows.zip(spans.chunks(self.config.proposals)).map(rank).collect())
    }
}

/// Reorders proposals by their overlap with all, each counted as `weight` of it and of the first says.
fn vote(ranked: &[Proposal], weight: impl Fn(&Proposal, &Proposal) -> f64) -> Vec<Proposal> {
    let Some(first) = ranked.first() else { return Vec::new() };
    let score =
        |one: &Proposal| ranked.iter().map(|other| one.span.iou_hull(other.span) * weight(other, first)).sum::<f64>();
    let mut voted: Vec<Proposal> = ranked.iter().map(|one| Proposal { score: score(one) as f32, ..*one }).collect();
    voted.sort_by(|a, b| b.score.total_cmp(&a.score));
    voted
}

/// Gaussians whose largest value on `kept` even steps is 1: `[batch, proposals]` to `[batch × proposals, kept]`.
fn bell(centre: &Tensor, width: &Tensor, kept: usize, sigma: f64) -> Result<Tensor> {
    let (centre, width) = (centre.flatten_all()?.unsqueeze(1)?, width.flatten_all()?.unsqueeze(1)?);
    let deviation = (width.maximum(0.01)? / sigma)?;
    let distance = even_steps(kept, centre.device())?.unsqueeze(0)?.broadcast_sub(&centre)?;
    let height = (distance.broadcast_div(&deviation)?.sqr()? * -0.5)?.exp()?;
    let top = height.gather(&height.argmax_keepdim(1)?, 1)?;
    Ok(height.broadcast_div(&top)?)
}

/// Every row `times` times in a row.
fn repeat(x: &Tensor, times: usize) -> Result<Tensor> {
    if times == 1 {
        return Ok(x.clone());
    }
    let mut shape = x.dims().to_vec();
    shape.insert(1, times);
    let repeated = x.unsqueeze(1)?.broadcast_as(shape)?.contiguous()?;
    Ok(repeated.flatten(0, 1)?)
}

impl Model for Cpl {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBins { rows: self.config.clips },
            parses: true,
            spans: false,
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let guessed = Guessed::of(&batch.queries, self.vocabulary)?;
        let clips = self.read_clips(&batch.videos.visual, pass)?;
        let words = self.words.read(&guessed.words, self.config.dropout, pass)?;
        let hidden = match pass.draw(|rng| guessed.choose(Some(rng))) {
            Some(hidden) => hidden?,
            None => guessed.choose(None)?,
        };
        let places = self.places(&clips, &batch.videos.mask, Sequence { x: &words, mask: &guessed.mask }, pass)?;
        let (kept, real) = self.keep(&clips, &batch.videos.mask)?;
        let masks = self.masks(&places, kept.dim(1)?, self.growth(pass.epoch()))?;
        let (x, mask) = (self.words.hide(&words, &hidden)?, guessed.mask.narrow(1, 0, guessed.mask.dim(1)? - 1)?);
        let shown = Shown { x: &x, mask: &mask.contiguous()?, ids: &guessed.ids };
        let guess = |weights: Option<&Tensor>| self.guess(&shown, Sequence { x: &kept, mask: &real }, weights, pass);
        let (covered, whole) = (guess(Some(&masks.covered))?, guess(None)?);
        let (left, right) = (guess(Some(&masks.left))?, guess(Some(&masks.right))?);
        let losses = self.losses(&masks, &covered, &whole, [&left, &right])?;
        let total = (&losses.reconstruction + self.ranking_and_diversity(&losses)?)?;
        let rank = ((losses.whole + losses.left)? + losses.right)?;
        let parts = vec![("reconstruction", losses.reconstruction), ("ranking", rank), ("diversity", losses.diversity)];
        Ok(Loss { total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let pass = Pass::answering();
        let guessed = Guessed::of(&batch.queries, self.vocabulary)?;
        let clips = self.read_clips(&batch.videos.visual, &pass)?;
        let words = self.words.read(&guessed.words, self.config.dropout, &pass)?;
        let places = self.places(&clips, &batch.videos.mask, Sequence { x: &words, mask: &guessed.mask }, &pass)?;
        let (kept, real) = self.keep(&clips, &batch.videos.mask)?;
        let masks = self.masks(&places, kept.dim(1)?, 1.0)?;
        // The same words are hidden whatever else is in the batch.
        let choose = |row: usize| -> Result<Tensor> {
            let one = Guessed {
                lengths: guessed.lengths[row..=row].to_vec(),
                weights: guessed.weights[row..=row].to_vec(),
                ..guessed.clone()
            };
            let id = batch.queries.ids.get(row).map(ToString::to_string).unwrap_or_default();
            Ok(one.choose(Some(&mut Rng::stream(0, &id)))?)
        };
        let hidden = Tensor::cat(&(0..guessed.lengths.len()).map(choose).collect::<Result<Vec<_>>>()?, 0)?;
        let (x, mask) = (self.words.hide(&words, &hidden)?, guessed.mask.narrow(1, 0, guessed.mask.dim(1)? - 1)?);
        let shown = Shown { x: &x, mask: &mask.contiguous()?, ids: &guessed.ids };
        let covered = self.guess(&shown, Sequence { x: &kept, mask: &real }, Some(&masks.covered), &pass)?;
        self.rank(&places, &covered.badness.reshape(((), self.config.proposals))?)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = CplConfig {
        clips: fixture.tensor("in.frames")?.dim(1)?,
        keep_every: fixture.number("frame_subsample")?,
        hidden: fixture.number("hidden_size")?,
        heads: fixture.number("DualTransformer.num_heads")?,
        ffn: fixture.shape("trans.decoder1.decoder_layers.0.fc1.bias")?.iter().product(),
        clip_layers: fixture.number("DualTransformer.num_decoder_layers1")?,
        word_layers: fixture.number("DualTransformer.num_decoder_layers2")?,
        vocabulary: Some(fixture.number("vocab_size")?),
        proposals: fixture.number("num_props")?,
        sigma: fixture.real("sigma")?,
        gamma: fixture.real("gamma")?,
        full_epoch: fixture.number("max_epoch")?,
        lambda: fixture.real("loss.lambda")?,
        whole_margin: fixture.real("loss.margin_1")?,
        side_margin: fixture.real("loss.margin_2")?,
        rank_weight: fixture.real("loss.alpha_1")?,
        diversity_weight: fixture.real("loss.alpha_2")?,
        answer: Ranking::Loss,
        dropout: 0.0,
    };
    let (visual, words) = (fixture.input("frames")?, fixture.input("words_feat")?);
    let net = Cpl::new(&config, &Given::widths(visual.dim(2)?, words.dim(2)?, 0), vb.clone())?;
    let pass = Pass::answering();
    let slots = words.dim(1)?;
    let clip_mask = visual.narrow(2, 0, 1)?.squeeze(2)?.ones_like()?;
    let mask = sentence_mask(&fixture.counts("words_len")?, slots, visual.device())?;
    let clips = net.read_clips(&visual, &pass)?;
    // Slot 0 of the fixture's words is a place for the start, which reading puts there itself.
    let read = net.words.read(&words.narrow(1, 1, slots - 1)?, 0.0, &pass)?;
    let places = net.places(&clips, &clip_mask, Sequence { x: &read, mask: &mask }, &pass)?;
    let (kept, real) = net.keep(&clips, &clip_mask)?;
    let masks = net.masks(&places, kept.dim(1)?, net.growth(fixture.number("epoch")?))?;
    let x = net.words.hide(&read, &fixture.input("masked_positions")?)?;
    let mask = mask.narrow(1, 0, slots - 1)?.contiguous()?;
    let ids = fixture.ids("words_id")?;
    let shown = Shown { x: &x, mask: &mask, ids: &ids };
    let guess = |weights: Option<&Tensor>| net.guess(&shown, Sequence { x: &kept, mask: &real }, weights, &pass);
    let (covered, whole) = (guess(Some(&masks.covered))?, guess(None)?);
    let (left, right) = (guess(Some(&masks.left))?, guess(Some(&masks.right))?);
    let losses = net.losses(&masks, &covered, &whole, [&left, &right])?;
    let badness = covered.badness.reshape(((), config.proposals))?;
    let ranked = net.rank(&places, &badness)?;
    let bounds = ranked.iter().flatten().flat_map(|one| [one.span.start() as f32, one.span.end() as f32]);
    let ranked = Tensor::from_vec(bounds.collect::<Vec<_>>(), (ranked.len(), config.proposals, 2), visual.device())?;
    let second = net.ranking_and_diversity(&losses)?;

    let mut trace = Trace::new();
    trace.out("center", &places.centre);
    trace.out("width", &places.width);
    trace.out("gauss_weight", &masks.covered);
    trace.out("neg_weight_left", &masks.left);
    trace.out("neg_weight_right", &masks.right);
    trace.out("words_mask", &mask);
    trace.out("words_logit", &covered.logits);
    trace.out("ref_words_logit", &whole.logits);
    trace.out("neg_words_logit_1", &left.logits);
    trace.out("neg_words_logit_2", &right.logits);
    trace.out("nll_per_proposal", &badness);
    trace.out("ranked_spans", &ranked);
    trace.loss("reconstruction", &losses.reconstruction);
    trace.loss("ref", &losses.whole);
    trace.loss("neg_1", &losses.left);
    trace.loss("neg_2", &losses.right);
    trace.loss("diversity", &losses.diversity);
    trace.loss("ranking_and_diversity", &second);
    trace.loss("total", &(&losses.reconstruction + second)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_core::NormSpan;
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, gap, overfit};

    fn config() -> CplConfig {
        CplConfig {
            clips: 8,
            keep_every: 2,
            hidden: 16,
            heads: 2,
            ffn: 24,
            clip_layers: 1,
            word_layers: 1,
            proposals: 3,
            dropout: 0.0,
            ..CplConfig::default()
        }
    }

    fn net() -> Cpl {
        Cpl::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_query_gets_its_proposals_best_first_whatever_else_is_asked() {
        let batch = TOY.batch(1);
        let ranked = net().propose(&batch).unwrap();
        assert!(ranked.iter().all(|proposals| proposals.len() == 3));
        assert!(ranked.iter().all(|proposals| proposals.is_sorted_by(|a, b| a.score >= b.score)));
        for (short, long) in ranked.iter().zip(net().propose(&batch.with_longer_words(3)).unwrap()) {
            for (short, long) in short.iter().zip(long) {
                assert!((short.score - long.score).abs() < 1e-4);
                assert!((short.span.start() - long.span.start()).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn spans_are_neither_asked_for_nor_read() {
        let (mut batch, net) = (TOY.batch(1), net());
        assert!(!net.input().spans);
        let loss = |batch: &Batch| net.loss(batch, &Pass::training(0, 1, Rng::new(3))).unwrap().total;
        let with = loss(&batch);
        batch.targets = None;
        assert_eq!(gap(&with, &loss(&batch)), 0.0);
    }

    #[test]
    fn votes_go_to_the_span_that_most_agree_with() {
        let proposal = |start, end, score| Proposal { span: NormSpan::new(start, end).unwrap(), score };
        let ranked = [proposal(0.8, 1.0, -1.0), proposal(0.1, 0.5, -2.0), proposal(0.1, 0.6, -3.0)];
        assert_eq!(vote(&ranked, |_, _| 1.0)[0].span.start(), 0.1);
        assert_eq!(vote(&ranked, |one, first| one.span.iou_hull(first.span))[0].span.start(), 0.8);
    }

    #[test]
    fn negatives_grow_with_the_epochs_unless_they_are_full_at_once() {
        let net = net();
        assert_eq!((net.growth(0), net.growth(30), net.growth(60)), (0.0, 1.0, 1.0));
        let at_once = CplConfig { gamma: 0.0, ..config() };
        let at_once = Cpl::new(&at_once, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
        assert_eq!(at_once.growth(0), 1.0);
    }

    #[test]
    fn hidden_words_of_one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Cpl::new(&config(), &TOY.given(), vb)?)) };
        let (_, first, last) = overfit(build, &batch, 100, 1e-2);
        assert!(last < 0.7 * first, "{first} to {last}");
    }
}
