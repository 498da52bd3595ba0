//! RMMN: MMN trained to rank moments across many videos too: first without likely false negatives, then on sampled hard ones.
//! Yang et al., "MVMR: Evaluating Natural Language Video Localization Bias over Multiple Reliable Videos Pool", 2023.
//!
//! No training loop was released. By default the losses are those of the paper; `form = "released"` gives those of the
//! released code, in which filtered pairs still count (as cosines of 0, all logits rescaled) and the margin of a
//! hard-negative comparison wanders over all its sentences. The layer norm on moments that the text mentions is in neither
//! code and not here.

use candle_core::{DType, Tensor};
use candle_nn::VarBuilder;
use cuemark_core::Rng;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::softplus;
use serde::{Deserialize, Serialize};

use super::mmn::{Mmn, MmnConfig};
use crate::check::{Fixture, Trace};
use crate::layers::{
    MatchingEncoderSize, TextTraining, TwoSpaces, cells_of, cosines, one_video_each, spans_of, video_of_sentences,
};
use crate::losses::{Excluded, MatchingTerms, MutualMatching, Pairs, Reliable, ScaledIou};
use crate::{
    Batch, BiEncoder, Corpus, Family, FullSize, Given, HardNegatives, Input, Loss, Model, ModelCard, ModelError,
    Negatives, Proposal, Result, Supervision, Task, fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "rmmn",
    title: "RMMN",
    paper: "Yang et al., MVMR: Evaluating Natural Language Video Localization Bias over Multiple Reliable Videos Pool, 2023",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo, Task::Corpus],
    supervision: Supervision::Full,
    bi_encoder: true,
    idea: "MMN without false negatives, then fine-tuned on negatives that are as relevant as the positives",
    full_sizes: &[
        FullSize {
            dataset: "charades-sta",
            settings: "network = { map = { pre_clips = 32, clips = 16, counts = [15] }, kernel = 5, layers = 8 }\n\
                       matching = { margin = 0.4, weight = 0.05, switch_epoch = 14 }\n\
                       text = { frozen_epochs = 4 }\nsampling = { queries = 100, videos = 50 }",
            visual: 4096,
            words: 0,
            millions: None,
        },
        FullSize {
            dataset: "activitynet-captions",
            settings: "network = { map = { pre_clips = 256, clips = 64, counts = [15, 8, 8] }, kernel = 9, layers = 4 }\n\
                       matching = { margin = 0.3, weight = 0.1, switch_epoch = 6 }\n\
                       text = { frozen_epochs = 4 }\nsampling = { queries = 200, videos = 100 }",
            visual: 500,
            words: 0,
            millions: None,
        },
        FullSize {
            dataset: "tacos",
            settings: "network = { map = { pre_clips = 256, clips = 128, counts = [15, 8, 8, 8] }, kernel = 5, layers = 8 }\n\
                       targets = { min_iou = 0.3, max_iou = 0.7 }\n\
                       matching = { margin = 0.1, weight = 0.05, switch_epoch = 100 }\n\
                       text = { frozen_epochs = 40 }\npower = 0.3\nnms = 0.4\nsampling = { queries = 100, videos = 5 }",
            visual: 4096,
            words: 0,
            millions: None,
        },
    ],
    build: |table, given, vb| Ok(Box::new(Rmmn::new(&read_settings("rmmn", table)?, given, vb)?)),
    settings: |table| fill_settings::<RmmnConfig>("rmmn", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RmmnConfig {
    /// Sizes of the network, which is MMN's.
    pub network: MatchingEncoderSize,
    /// How overlaps become targets. Default: 0 up to 0.5, 1 at 1.0
    #[serde(default)]
    pub targets: ScaledIou,
    /// The contrastive terms.
    #[serde(default)]
    pub matching: MutualMatching,
    /// How the sentence encoder is trained.
    #[serde(default)]
    pub text: TextTraining,
    /// Similarity of a query with a video's own queries above which the two are no reliable negative pair. Default: 0.9
    #[serde(default = "threshold")]
    pub threshold: f64,
    /// Whose losses. Default: paper
    #[serde(default)]
    pub form: Form,
    /// Whether the second training stage learns from sampled negatives; without, it goes on as the first. Default: true
    #[serde(default = "step2")]
    pub step2: bool,
    /// How those are sampled.
    #[serde(default)]
    pub sampling: Sampling,
    /// What the matching score is raised to before it is multiplied with the overlap's. Default: 0.5
    #[serde(default = "half")]
    pub power: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.5
    #[serde(default = "half")]
    pub nms: f64,
}

fn threshold() -> f64 {
    0.9
}

fn step2() -> bool {
    true
}

fn half() -> f64 {
    0.5
}

/// Whose losses are trained with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Unreliable pairs are left out. Default.
    #[default]
    Paper,
    /// As the released code computes them.
    Released,
}

/// How the negatives of the second stage are sampled. The paper prints neither `a` nor `b`; `a` is the temperature that
/// the released settings name.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// How fast the chance falls as the relevance moves away from that of the positives. Default: 0.5
    pub a: f64,
    /// How much more relevant than the positives the likeliest negatives are. Default: 0
    pub b: f64,
    /// Videos for each query. Default: 50
    pub videos: usize,
    /// Queries for each video. Default: 100
    pub queries: usize,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { a: 0.5, b: 0.0, videos: 50, queries: 100 }
    }
}

impl Sampling {
    /// Draws `count` different candidates, fewer when there are not so many, in the order of drawing.
    ///
    /// `relevance` holds one value per candidate, all of them reliable negatives: of videos for a query, or of queries
    /// for a video. `positive` is the mean relevance of the positives.
    pub fn draw(&self, relevance: &[f64], positive: f64, count: usize, rng: &mut Rng) -> Vec<usize> {
        let mut weights = sampling_probabilities(relevance, positive, self.a, self.b);
        let mut drawn = Vec::with_capacity(count.min(weights.len()));
        while drawn.len() < count {
            let Some(candidate) = rng.weighted(&weights) else { break };
            weights[candidate] = 0.0;
            drawn.push(candidate);
        }
        drawn
    }
}

/// The chance of each candidate to be drawn as a negative: `exp(-a (r - positive - b)²)` over their sum.
///
/// Largest where a candidate is as relevant as the positives are. Without candidates nothing; all alike when every one is
/// so far off that its chance vanishes.
pub fn sampling_probabilities(relevance: &[f64], positive: f64, a: f64, b: f64) -> Vec<f64> {
    let weights: Vec<f64> = relevance.iter().map(|r| (-a * (r - positive - b).powi(2)).exp()).collect();
    let total: f64 = weights.iter().sum();
    if total > 0.0 {
        return weights.into_iter().map(|weight| weight / total).collect();
    }
    vec![1.0 / relevance.len() as f64; relevance.len()]
}

/// The network.
#[derive(Debug)]
pub struct Rmmn {
    config: RmmnConfig,
    mmn: Mmn,
}

/// What both stages compute first.
struct Forward {
    overlap_logits: Tensor,
    cosines: Tensor,
    ious: Tensor,
    own_video: Tensor,
}

impl Rmmn {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that no map can have.
    pub fn new(config: &RmmnConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let mmn = MmnConfig {
            network: config.network.clone(),
            targets: config.targets,
            matching: config.matching,
            text: config.text,
            part: None,
            power: config.power,
            nms: config.nms,
        };
        Ok(Self { mmn: Mmn::new(&mmn, given, vb)?, config: config.clone() })
    }

    fn forward(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let moments: TwoSpaces = self.mmn.moments(&batch.videos, pass)?;
        let sentences = self.mmn.sentences(&batch.queries, pass)?;
        let device = batch.videos.visual.device();
        Ok(Forward {
            overlap_logits: self.mmn.encoder.overlap_logits(&moments, &sentences)?,
            cosines: cosines(&sentences.matching, &moments.matching)?,
            ious: self.mmn.encoder.moments.map().ious(&batch.targets(CARD.name)?.spans, device)?,
            own_video: one_video_each(&batch.queries.video, moments.matching.dim(0)?, device)?,
        })
    }

    /// The first stage: every pair of the batch that is reliable.
    fn filtered(&self, batch: &Batch, pass: &Pass) -> Result<[Tensor; 3]> {
        let similarity = batch.similarity.as_ref();
        let similarity =
            similarity.ok_or(ModelError::Missing { model: CARD.name, what: "the similarity of queries" })?;
        let forward = self.forward(batch, pass)?;
        let (video, spans) = (&batch.queries.video, &batch.targets(CARD.name)?.spans);
        let pairs = Pairs { cosines: &forward.cosines, ious: &forward.ious, video, spans };
        let reliable = reliable(similarity, video, self.config.threshold, self.config.form)?;
        let terms = self.config.matching.terms(pairs, Some(&reliable))?;
        let logits = cells_of(&forward.overlap_logits, &forward.own_video)?;
        let overlap = self.config.targets.loss(&logits, &forward.ious)?;
        Ok([overlap, terms.to_sentences.mean_all()?, terms.to_moments.mean_all()?])
    }

    /// The second stage: every query that has sampled negatives, against those.
    fn hard(&self, batch: &Batch, pass: &Pass) -> Result<[Tensor; 3]> {
        let items = batch.negatives.as_deref().filter(|items| !items.is_empty());
        let items =
            items.ok_or(ModelError::Missing { model: CARD.name, what: "sampled negatives in its second stage" })?;
        let forward = self.forward(batch, pass)?;
        let (video, spans) = (&batch.queries.video, &batch.targets(CARD.name)?.spans);
        let pairs = Pairs { cosines: &forward.cosines, ious: &forward.ious, video, spans };
        let terms = hard_terms(&self.config.matching, pairs, items, self.config.form)?;
        let overlap = self.hard_overlap(&forward, items, video)?;
        Ok([overlap, terms.to_sentences.mean_all()?, terms.to_moments.mean_all()?])
    }

    /// The overlap's loss of the true pairs, and with targets of 0 the mean of that of the sampled ones.
    fn hard_overlap(&self, forward: &Forward, items: &[Negatives], video: &[usize]) -> Result<Tensor> {
        let device = forward.ious.device();
        let asked = Tensor::new(items.iter().map(|item| item.query as u32).collect::<Vec<_>>(), device)?;
        let own = cells_of(&forward.overlap_logits, &forward.own_video)?.index_select(&asked, 0)?;
        let positive = self.config.targets.loss(&own, &forward.ious.index_select(&asked, 0)?)?;
        let (queries, videos, _) = forward.overlap_logits.dims3()?;
        let mut shares = vec![0f32; queries * videos];
        for item in items {
            let own = video[item.query];
            let maps = item.videos.iter().map(|other| (item.query, *other));
            let maps = maps.chain(item.queries.iter().map(|other| (*other, own)));
            let count = (item.videos.len() + item.queries.len()) as f32;
            for (query, video) in maps {
                shares[query * videos + video] += 1.0 / (count * items.len() as f32);
            }
        }
        let shares = Tensor::from_vec(shares, (queries, videos), device)?;
        let negative = (softplus(&forward.overlap_logits)?.mean(2)? * shares)?.sum_all()?;
        Ok((positive + negative)?)
    }
}

/// Which pairs of the batch are reliable negatives by `similarity [queries, videos]`.
fn reliable(similarity: &Tensor, video: &[usize], threshold: f64, form: Form) -> Result<Reliable> {
    let videos = similarity.dim(1)?;
    let own_video = one_video_each(video, videos, similarity.device())?;
    // The own video is never filtered, whatever the similarity says of it.
    let videos = similarity.le(threshold)?.to_dtype(DType::F32)?.maximum(&own_video)?;
    // For the moment of a query: is each other query a negative of that moment's video?
    let sentences = own_video.times(&videos.t()?.contiguous()?)?;
    let excluded = if form == Form::Released { Excluded::Zeroed } else { Excluded::Removed };
    Ok(Reliable { sentences, videos, excluded })
}

/// The two contrastive terms of the queries that have negatives, each against its own, `[items, top_k]`.
fn hard_terms(matching: &MutualMatching, pairs: Pairs, items: &[Negatives], form: Form) -> Result<MatchingTerms> {
    let (queries, videos, _) = pairs.cosines.dims3()?;
    let device = pairs.cosines.device();
    // Every query is compared with itself alone until an item names more: a row of zeros would have no logarithm.
    let mut with_sentences: Vec<f32> = (0..queries * queries).map(|n| f32::from(n % (queries + 1) == 0)).collect();
    let mut with_videos = vec![0f32; queries * videos];
    for item in items {
        item.queries.iter().for_each(|other| with_sentences[item.query * queries + other] = 1.0);
        item.videos.iter().for_each(|other| with_videos[item.query * videos + other] = 1.0);
    }
    let reliable = Reliable {
        sentences: Tensor::from_vec(with_sentences, (queries, queries), device)?,
        videos: Tensor::from_vec(with_videos, (queries, videos), device)?,
        excluded: Excluded::Removed,
    };
    let terms = matching.terms(pairs, Some(&reliable))?;
    let asked = Tensor::new(items.iter().map(|item| item.query as u32).collect::<Vec<_>>(), device)?;
    let to_sentences = match form {
        Form::Paper => terms.to_sentences.index_select(&asked, 0)?,
        Form::Released => wandering_margin(matching, &matching.of_moments(pairs)?, items)?,
    };
    Ok(MatchingTerms { to_sentences, to_moments: terms.to_moments.index_select(&asked, 0)? })
}

/// The released comparison of a moment with sampled sentences: the mean over all of them, the positive included, of the
/// term with the margin at that one.
fn wandering_margin(matching: &MutualMatching, cosines: &Tensor, items: &[Negatives]) -> Result<Tensor> {
    let terms = items.iter().map(|item| {
        let columns = std::iter::once(&item.query).chain(&item.queries).map(|query| *query as u32);
        let columns = Tensor::new(columns.collect::<Vec<_>>(), cosines.device())?;
        let row = cosines.get(item.query)?.contiguous()?.index_select(&columns, 1)?; // [top_k, sentences]
        let margins = (Tensor::eye(row.dim(1)?, DType::F32, row.device())? * matching.margin)?;
        let logits = (row.unsqueeze(1)?.broadcast_sub(&margins)? / matching.tau)?; // [top_k, margin at, sentences]
        let positive = ((row.narrow(1, 0, 1)?.squeeze(1)? - matching.margin)? / matching.tau)?;
        logits.exp()?.sum(2)?.log()?.mean(1)? - positive
    });
    Ok(Tensor::stack(&terms.collect::<candle_core::Result<Vec<_>>>()?, 0)?)
}

impl Model for Rmmn {
    fn input(&self) -> Input {
        Input { similarity: true, ..self.mmn.input() }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let hard = self.config.step2 && pass.stage() > 0;
        let [overlap, to_sentences, to_moments] =
            if hard { self.hard(batch, pass)? } else { self.filtered(batch, pass)? };
        let matching = ((&to_sentences + &to_moments)? * self.config.matching.weight_in(pass))?;
        Ok(Loss {
            total: (&overlap + matching)?,
            parts: vec![("overlap", overlap), ("to_sentences", to_sentences), ("to_moments", to_moments)],
        })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        self.mmn.propose(batch)
    }

    fn hard_negatives(&self, stage: usize) -> Option<HardNegatives> {
        let settings = HardNegatives { sampling: self.config.sampling, threshold: self.config.threshold };
        (self.config.step2 && stage > 0).then_some(settings)
    }

    fn nms(&self) -> Option<f64> {
        self.mmn.nms()
    }

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        self.mmn.rate(parameter, pass)
    }

    fn corpus(&self) -> Option<&dyn Corpus> {
        self.mmn.corpus()
    }

    fn bi_encoder(&self) -> Option<&dyn BiEncoder> {
        self.mmn.bi_encoder()
    }
}

/// The fixture covers the losses; the network is MMN's and checked there.
fn check(fixture: &Fixture, _: &VarBuilder) -> Result<Trace> {
    let matching = MutualMatching {
        margin: fixture.real("margin")?,
        tau: fixture.real("tau")?,
        top_k: fixture.number("top_k")?,
        negative_iou: fixture.real("neg_iou")?,
        sentence_iou: fixture.real("sent_removal_iou")?,
        ..MutualMatching::default()
    };
    let mut trace = Trace::new();
    let moments = trace.watch("in.map_contrastive", &fixture.input("map_contrastive")?)?;
    let sentences = trace.watch("in.sent", &fixture.input("sent")?)?;
    let cells = valid_cells(fixture)?;
    let valid = |x: &Tensor| x.flatten_from(2)?.transpose(1, 2)?.contiguous()?.index_select(&cells, 1);
    let ious = valid(&fixture.input("iou2d")?.unsqueeze(1)?)?.squeeze(2)?;
    let cosines = cosines(&sentences, &valid(&moments)?)?;
    let (video, spans) = (video_of_sentences(fixture)?, spans_of(fixture)?);
    let pairs = Pairs { cosines: &cosines, ious: &ious, video: &video, spans: &spans };

    let plain = matching.terms(pairs, None)?;
    trace.loss("mmn_vid", &plain.to_sentences.mean_all()?);
    trace.loss("mmn_sent", &plain.to_moments.mean_all()?);

    let similarity = fixture.input("query_video_similarity")?;
    let reliable = reliable(&similarity, &video, fixture.real("threshold")?, Form::Released)?;
    let filtered = matching.terms(pairs, Some(&reliable))?;
    let (to_sentences, to_moments) = (filtered.to_sentences.mean_all()?, filtered.to_moments.mean_all()?);
    trace.loss("filtered_vid", &to_sentences);
    trace.loss("filtered_sent", &to_moments);
    trace.loss("filtered_total", &(to_sentences + to_moments)?);

    let (query, own) = (fixture.number("hard.query_sentence")?, fixture.number("hard.query_video")?);
    let others = fixture.numbers("hard.sentences_one_per_video")?;
    let hard = Negatives {
        query,
        videos: (0..moments.dim(0)?).filter(|video| *video != own).collect(),
        queries: others.into_iter().filter(|other| *other != query).collect(),
    };
    let hard = hard_terms(&matching, pairs, &[hard], Form::Released)?;
    trace.loss("hard_q2v", &hard.to_moments.mean_all()?);
    trace.loss("hard_v2q", &hard.to_sentences.mean_all()?);

    let reals = |name: &str| -> Result<Vec<f64>> {
        Ok(fixture.input(name)?.flatten_all()?.to_dtype(DType::F64)?.to_vec1::<f64>()?)
    };
    let positives = reals("relevance_positive")?;
    let positive = positives.iter().sum::<f64>() / positives.len().max(1) as f64;
    let (a, b) = (fixture.real("sampling.a")?, fixture.real("sampling.b")?);
    let probabilities = sampling_probabilities(&reals("relevance")?, positive, a, b);
    trace.out("sampling_prob", &Tensor::new(probabilities, moments.device())?);
    Ok(trace)
}

/// The places of the valid cells on the whole map, by `in.map_mask`.
fn valid_cells(fixture: &Fixture) -> Result<Tensor> {
    let mask = fixture.input("map_mask")?;
    let squares = mask.flatten_all()?.to_vec1::<f32>()?;
    let valid: Vec<u32> = (0..).zip(squares).filter(|(_, valid)| *valid > 0.0).map(|(square, _)| square).collect();
    Ok(Tensor::new(valid, mask.device())?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config() -> RmmnConfig {
        let settings = "network = { map = { pre_clips = 8, clips = 8, counts = [7] }, hidden = 16, joint = 12, kernel = 3,\n\
                        layers = 2, text = { dim = 8, layers = 1, heads = 2, ffn = 16, positions = 8, dropout = 0.0 } }\n\
                        matching = { margin = 0.1 }";
        toml::from_str(settings).unwrap()
    }

    fn model(config: &RmmnConfig) -> Rmmn {
        Rmmn::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    fn batch() -> Batch {
        let mut batch = TOY.batch(1);
        batch.similarity = Some(Tensor::zeros((4, 4), DType::F32, &Device::Cpu).unwrap());
        batch.negatives = Some(vec![
            Negatives { query: 0, videos: vec![1, 2], queries: vec![3] },
            Negatives { query: 2, videos: vec![3], queries: vec![0, 1] },
        ]);
        batch
    }

    fn loss(model: &Rmmn, batch: &Batch, stage: usize) -> Vec<f32> {
        let loss = model.loss(batch, &Pass::training(stage, 1, Rng::new(1))).unwrap();
        loss.parts.iter().map(|(_, part)| part.to_scalar().unwrap()).collect()
    }

    #[test]
    fn every_query_ranks_the_cells_of_its_video_and_padded_words_change_nothing() {
        let (model, batch) = (model(&config()), batch());
        let (short, long) = (model.propose(&batch).unwrap(), model.propose(&batch.with_longer_words(2)).unwrap());
        for (short, long) in short.iter().zip(&long) {
            assert_eq!(short.len(), 36);
            assert!(short.iter().zip(long).all(|(a, b)| (a.score - b.score).abs() < 1e-6));
        }
    }

    #[test]
    fn a_false_negative_leaves_the_loss_unless_the_form_is_the_released_one() {
        let mut batch = batch();
        let plain = loss(&model(&config()), &batch, 0);
        let mut similar = vec![0f32; 16];
        similar[1] = 0.95; // query 0 may describe something in video 1
        batch.similarity = Some(Tensor::from_vec(similar, (4, 4), &Device::Cpu).unwrap());
        let filtered = loss(&model(&config()), &batch, 0);
        assert!(filtered[1] < plain[1] && filtered[2] < plain[2], "{plain:?} {filtered:?}");
        assert_eq!(filtered[0], plain[0]);
        let released = loss(&model(&RmmnConfig { form: Form::Released, ..config() }), &batch, 0);
        assert!(released[2] > filtered[2]);
    }

    #[test]
    fn the_own_video_is_never_filtered() {
        let mut batch = batch();
        let plain = loss(&model(&config()), &batch, 0);
        batch.similarity = Some(Tensor::eye(4, DType::F32, &Device::Cpu).unwrap());
        assert_eq!(loss(&model(&config()), &batch, 0), plain);
    }

    #[test]
    fn the_second_stage_reads_only_what_was_sampled() {
        let (model, mut batch) = (model(&config()), batch());
        let before = loss(&model, &batch, 1);
        batch.similarity = None; // the filter belongs to the first stage
        assert_eq!(loss(&model, &batch, 1), before);
        batch.negatives = Some(vec![Negatives { query: 0, videos: vec![1, 2], queries: vec![3] }]);
        assert_ne!(loss(&model, &batch, 1), before);
        batch.negatives = None;
        let error = model.loss(&batch, &Pass::training(1, 1, Rng::new(1))).unwrap_err();
        assert!(error.to_string().contains("sampled negatives"));
    }

    #[test]
    fn hard_terms_are_those_of_a_batch_with_nothing_else_in_it() {
        let cosines = Tensor::arange(0f32, 24.0, &Device::Cpu).unwrap().reshape((3, 2, 4)).unwrap().sin().unwrap();
        let ious = Tensor::arange(0f32, 12.0, &Device::Cpu).unwrap().reshape((3, 4)).unwrap().cos().unwrap();
        let spans = [cuemark_core::NormSpan::new(0.0, 0.5).unwrap(); 3];
        let matching = MutualMatching::default();
        let pairs = Pairs { cosines: &cosines, ious: &ious, video: &[0, 0, 1], spans: &spans };
        let item = Negatives { query: 0, videos: vec![1], queries: vec![2] };
        let hard = hard_terms(&matching, pairs, &[item], Form::Paper).unwrap();
        let rows = Tensor::new(&[0u32, 2], &Device::Cpu).unwrap();
        let (cosines, ious) = (cosines.index_select(&rows, 0).unwrap(), ious.index_select(&rows, 0).unwrap());
        let pairs = Pairs { cosines: &cosines, ious: &ious, video: &[0, 1], spans: &spans[..2] };
        let alone = matching.terms(pairs, None).unwrap();
        assert!(gap(&hard.to_sentences, &alone.to_sentences.narrow(0, 0, 1).unwrap()) < 1e-5);
        assert!(gap(&hard.to_moments, &alone.to_moments.narrow(0, 0, 1).unwrap()) < 1e-5);
    }

    #[test]
    fn candidates_as_relevant_as_the_positives_are_drawn_most_often() {
        let probabilities = sampling_probabilities(&[0.2, 0.7, 1.2], 0.7, 4.0, 0.0);
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((probabilities[0] - probabilities[2]).abs() < 1e-12);
        assert!((probabilities[1] / probabilities[0] - 1f64.exp()).abs() < 1e-9); // exp(4 * 0.25)
        assert_eq!(sampling_probabilities(&[0.0, 0.0], 100.0, 1.0, 0.0), [0.5, 0.5]);
        let sampling = Sampling { a: 400.0, ..Sampling::default() };
        let drawn = sampling.draw(&[0.2, 0.7, 1.2], 0.7, 5, &mut Rng::new(1));
        assert_eq!(drawn[0], 1);
        assert_eq!(
            {
                let mut all = drawn.clone();
                all.sort_unstable();
                all
            },
            [0, 1, 2]
        );
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = batch();
        let (model, first, last) =
            overfit(|vb| Ok(Box::new(Rmmn::new(&config(), &TOY.given(), vb)?)), &batch, 120, 1e-2);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.4 * first, "{first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    }

    #[test]
    fn sampled_negatives_can_be_learnt_by_heart() {
        let (params, mut batch) = (Params::seeded(1, &Device::Cpu), batch());
        let item = |query| Negatives { query, videos: vec![(query + 1) % 4], queries: vec![(query + 2) % 4] };
        batch.negatives = Some((0..4).map(item).collect());
        let model = Rmmn::new(&config(), &TOY.given(), params.builder()).unwrap();
        let vars = params.vars().into_iter().map(|(_, var)| var).collect();
        let mut optimiser = AdamW::new(vars, ParamsAdamW { lr: 1e-2, ..ParamsAdamW::default() }).unwrap();
        let first = loss(&model, &batch, 1).iter().sum::<f32>();
        for step in 0..120 {
            let loss = model.loss(&batch, &Pass::training(1, 1, Rng::new(step))).unwrap();
            optimiser.backward_step(&loss.total).unwrap();
        }
        let last = loss(&model, &batch, 1).iter().sum::<f32>();
        assert!(last < 0.5 * first, "{first} to {last}");
        assert!(best_overlaps(&model, &batch).iter().all(|overlap| *overlap >= 0.7));
    }
}
