//! MMN: maps sentences and all candidate spans into joint spaces, and learns from mismatched pairs of both kinds.
//! Wang et al., "Negative Sample Matters: A Renaissance of Metric Learning for Temporal Grounding", AAAI 2022.
//!
//! Follows the released code where it and the paper differ: cells that overlap the span are zeroed in the second contrastive
//! term, not left out (`matching.excluded = "removed"` leaves them out). The released scripts split a batch over several
//! GPUs and take negatives and batch-norm statistics from the local part only; here they come from the whole batch unless
//! `part` says otherwise.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_core::NormSpan;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{l2_normalise, sigmoid};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    MatchingEncoder, MatchingEncoderSize, TextTraining, TwoSpaces, cells_of, cosines, matching_of, network_of,
    one_video_each, spans_of, video_of_sentences,
};
use crate::losses::{MutualMatching, Pairs, ScaledIou};
use crate::{
    Answer, Batch, BatchBy, BiEncoder, Code, Corpus, Family, FullSize, Given, Input, Loss, Model, ModelCard,
    ModelError, Moments, Proposal, QueryBatch, Result, Supervision, Task, Text, VideoBatch, fill_settings,
    read_settings, suppress,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "mmn",
    title: "MMN",
    paper: "Wang et al., Negative Sample Matters: A Renaissance of Metric Learning for Temporal Grounding, AAAI 2022",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo, Task::Corpus],
    supervision: Supervision::Full,
    bi_encoder: true,
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
    build: |table, given, vb| Ok(Box::new(Mmn::new(&read_settings("mmn", table)?, given, vb)?)),
    settings: |table| fill_settings::<MmnConfig>("mmn", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MmnConfig {
    /// Sizes of the network.
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
    /// Videos whose sentences and moments are each other's negatives; the batch is cut into parts of so many, as several
    /// GPUs would. Default: the whole batch
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    /// What the matching score is raised to before it is multiplied with the overlap's. Default: 0.5
    #[serde(default = "half")]
    pub power: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.5
    #[serde(default = "half")]
    pub nms: f64,
}

fn half() -> f64 {
    0.5
}

/// Most moments of one video in an answer over many.
const MOMENTS_PER_VIDEO: usize = 100;

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
        let encoder = MatchingEncoder::new(&config.network, given.visual, given.vocabulary, vb)?;
        Ok(Self { encoder, config: config.clone() })
    }

    /// The queries in both spaces, `[queries, joint]`.
    pub(super) fn sentences(&self, queries: &QueryBatch, pass: &Pass) -> Result<TwoSpaces> {
        Ok(self.encoder.sentences.forward(&queries.word_ids, &queries.lengths, pass)?)
    }

    /// The moments of videos in both spaces, `[videos, cells, joint]`.
    pub(super) fn moments(&self, videos: &VideoBatch, pass: &Pass) -> Result<TwoSpaces> {
        Ok(self.encoder.moments.forward(&videos.visual, pass)?.moments)
    }

    /// The overlap's loss and the two contrastive terms.
    fn losses(&self, part: &Part, pass: &Pass) -> Result<[Tensor; 3]> {
        let moments = self.encoder.moments.forward(&part.visual, pass)?.moments;
        let sentences = self.encoder.sentences.forward(&part.tokens, &part.lengths, pass)?;
        let ious = self.encoder.moments.map().ious(part.spans, part.visual.device())?;
        let own_video = one_video_each(&part.video, part.visual.dim(0)?, part.visual.device())?;
        let logits = cells_of(&self.encoder.overlap_logits(&moments, &sentences)?, &own_video)?;
        let cosines = cosines(&sentences.matching, &moments.matching)?;
        let pairs = Pairs { cosines: &cosines, ious: &ious, video: &part.video, spans: part.spans };
        let terms = self.config.matching.terms(pairs, None)?;
        let overlap = self.config.targets.loss(&logits, &ious)?;
        Ok([overlap, terms.to_sentences.mean_all()?, terms.to_moments.mean_all()?])
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
                tokens: queries.word_ids.contiguous()?.index_select(&rows, 0)?,
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

    /// The mean over the parts of `overlap + weight * (to_sentences + to_moments)`.
    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let mut spans = Vec::with_capacity(batch.len());
        let parts = self.parts(batch, &mut spans)?;
        let losses = parts.iter().map(|part| self.losses(part, pass)).collect::<Result<Vec<_>>>()?;
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

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        self.config.text.factor(parameter, pass)
    }

    fn corpus(&self) -> Option<&dyn Corpus> {
        Some(self)
    }

    fn bi_encoder(&self) -> Option<&dyn BiEncoder> {
        Some(self)
    }
}

impl Corpus for Mmn {
    /// The moments in the matching and in the overlap space, `[cells, joint]` each.
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let moments = self.moments(videos, &Pass::answering())?;
        let code = |video| Ok(Code(vec![moments.matching.get(video)?, moments.overlap.get(video)?]));
        (0..moments.matching.dim(0)?).map(code).collect()
    }

    /// A video fits as well as its best moment.
    fn score_videos(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Option<Vec<Vec<f32>>>> {
        let sentences = self.sentences(queries, &Pass::answering())?;
        let mut scores: Vec<Vec<f32>> = vec![Vec::with_capacity(videos.len()); queries.ids.len()];
        for chunk in videos.chunks(VIDEOS_AT_ONCE) {
            let space = |which: usize| {
                let codes: Vec<&Tensor> = chunk.iter().filter_map(|code| code.0.get(which)).collect();
                Tensor::stack(&codes, 0)
            };
            let moments = TwoSpaces { matching: space(0)?, overlap: space(1)? };
            let best = self.scores(&moments, &sentences)?.max(2)?.to_vec2::<f32>()?;
            scores.iter_mut().zip(best).for_each(|(scores, best)| scores.extend(best));
        }
        Ok(Some(scores))
    }

    /// Overlaps inside each video are suppressed; a video fits as well as its best moment.
    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<Answer>>> {
        let sentences = self.sentences(queries, &Pass::answering())?;
        let mut answers: Vec<Vec<Answer>> = vec![Vec::with_capacity(videos.len()); queries.ids.len()];
        for code in videos {
            let [matching, overlap] = code.0.as_slice() else {
                return Err(ModelError::Missing { model: CARD.name, what: "codes of videos that it made itself" });
            };
            let moments = TwoSpaces { matching: matching.unsqueeze(0)?, overlap: overlap.unsqueeze(0)? };
            let scores = self.scores(&moments, &sentences)?.squeeze(1)?;
            for (answers, ranked) in answers.iter_mut().zip(self.encoder.moments.map().rank(&scores)?) {
                let moments = suppress(&ranked, self.config.nms, MOMENTS_PER_VIDEO);
                answers.push(Answer { video_score: moments.first().map_or(0.0, |best| best.score), moments });
            }
        }
        Ok(answers)
    }
}

impl BiEncoder for Mmn {
    /// Both spaces side by side: the product of two such vectors is the mean of the two cosines, which orders moments
    /// much as the final score does without being it; [`Corpus::search`] gives that.
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let both = side_by_side(&self.moments(videos, &Pass::answering())?)?;
        let spans: Vec<NormSpan> = self.encoder.moments.map().spans().collect();
        let of_video = |video| Ok(Moments { spans: spans.clone(), embeddings: both.get(video)? });
        (0..both.dim(0)?).map(of_video).collect()
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        side_by_side(&self.sentences(queries, &Pass::answering())?)
    }
}

/// Videos that are scored together: enough to keep the processor busy, few enough for memory.
const VIDEOS_AT_ONCE: usize = 128;

/// Unit vectors that hold both spaces, twice as wide.
fn side_by_side(spaces: &TwoSpaces) -> Result<Tensor> {
    let both = [l2_normalise(&spaces.matching)?, l2_normalise(&spaces.overlap)?];
    Ok((Tensor::cat(&both, both[0].rank() - 1)? * 0.5f64.sqrt())?)
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = MmnConfig {
        network: network_of(fixture)?,
        targets: ScaledIou::of_fixture(fixture)?,
        matching: matching_of(fixture)?,
        text: TextTraining::default(),
        part: None,
        power: fixture.real("score_pow")?,
        nms: fixture.real("nms_threshold")?,
    };
    let (visual, tokens, lengths) = (fixture.input("visual")?, fixture.ids("tokens")?, fixture.counts("token_lens")?);
    let given = Given::widths(visual.dim(2)?, 0, fixture.number("distilbert.vocab")?);
    let net = Mmn::new(&config, &given, vb.clone())?;
    let pass = Pass::answering(); // the fixture has inference statistics in its losses too
    let (encoder, map) = (&net.encoder, net.encoder.moments.map());
    let forward = encoder.moments.forward(&visual, &pass)?;
    let sentences = encoder.sentences.forward(&tokens, &lengths, &pass)?;
    let (video, spans) = (video_of_sentences(fixture)?, spans_of(fixture)?);
    let ious = map.from_square(&fixture.input("iou2d")?.unsqueeze(1)?)?.squeeze(2)?;
    let own_video = one_video_each(&video, visual.dim(0)?, visual.device())?;
    let all = cosines(&sentences.matching, &forward.moments.matching)?;
    let matching = cells_of(&all, &own_video)?;
    let logits = cells_of(&encoder.overlap_logits(&forward.moments, &sentences)?, &own_video)?;
    let scores = MatchingEncoder::scores(&matching, &logits, config.power)?;
    let terms = config.matching.terms(Pairs { cosines: &all, ious: &ious, video: &video, spans: &spans }, None)?;
    let (overlap, to_sentences, to_moments) =
        (config.targets.loss(&logits, &ious)?, terms.to_sentences.mean_all()?, terms.to_moments.mean_all()?);

    let mut trace = Trace::new();
    let square = |x: &Tensor| map.to_square(&x.unsqueeze(2)?)?.squeeze(1);
    let whole = encoder.moments.on_whole_map(&forward.cells)?;
    trace.out("clip_feat", &forward.clips.transpose(1, 2)?);
    trace.out("map_mask", &map.mask(visual.device())?);
    trace.out("map_feat", &map.to_square(&forward.cells)?);
    trace.out("map_contrastive", &whole.matching);
    trace.out("map_iou", &whole.overlap);
    trace.out("sent_contrastive", &sentences.matching);
    trace.out("sent_iou", &sentences.overlap);
    trace.out("score_contrastive", &square(&matching)?);
    trace.out("score_iou", &square(&sigmoid(&logits)?)?);
    trace.out("score_final", &square(&scores)?);
    let durations = fixture.durations()?;
    let durations: Vec<f64> = video.iter().filter_map(|video| durations.get(*video).copied()).collect();
    trace.out("segments_top5", &fixture.top_segments(&map.rank(&scores)?, &durations, config.nms)?);
    trace.loss("iou_bce", &overlap);
    trace.loss("vid", &to_sentences);
    trace.loss("sent", &to_moments);
    trace.loss("total", &(overlap + ((to_sentences + to_moments)? * config.matching.weight)?)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::layers::{CellFill, MapSupport};
    use crate::testing::{TOY, best_overlaps, gap, overfit};
    use cuemark_tensor::MatrixProduct as _;

    fn config() -> MmnConfig {
        let settings = "network = { map = { pre_clips = 8, clips = 8, counts = [7] }, hidden = 16, joint = 12, kernel = 3,\n\
                        layers = 2, text = { dim = 8, layers = 1, heads = 2, ffn = 16, positions = 8, dropout = 0.0 } }\n\
                        matching = { margin = 0.1 }";
        toml::from_str(settings).unwrap()
    }

    fn model() -> Mmn {
        Mmn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    /// Four queries asked of two videos, not in the order of the videos.
    fn two_videos() -> Batch {
        let mut batch = TOY.batch(1);
        batch.queries.video = vec![1, 0, 1, 0];
        batch.videos.visual = batch.videos.visual.narrow(0, 0, 2).unwrap();
        batch
    }

    #[test]
    fn every_query_ranks_the_cells_of_its_own_video() {
        let (model, batch) = (model(), two_videos());
        let ranked = model.propose(&batch).unwrap();
        assert!(ranked.iter().all(|ranked| ranked.len() == 36));
        let mut swapped = batch.clone();
        swapped.queries.video = vec![0, 0, 1, 0];
        let others = model.propose(&swapped).unwrap();
        assert_ne!(ranked[0], others[0]);
        assert_eq!(ranked[1..], others[1..]);
    }

    #[test]
    fn padded_words_change_nothing() {
        let (model, batch) = (model(), TOY.batch(1));
        let of = |batch: &Batch| model.sentences(&batch.queries, &Pass::answering()).unwrap();
        let (short, long) = (of(&batch), of(&batch.with_longer_words(3)));
        assert!(gap(&short.matching, &long.matching) < 1e-6 && gap(&short.overlap, &long.overlap) < 1e-6);
    }

    /// The published network in the open: dense convolutions on the padded map, batch norm over all of it.
    #[test]
    fn training_statistics_run_over_the_whole_padded_map() {
        let params = Params::seeded(1, &Device::Cpu);
        let model = Mmn::new(&config(), &TOY.given(), params.builder()).unwrap();
        let visual = TOY.batch(1).videos.visual;
        let map = model.encoder.moments.map();
        let forward = model.encoder.moments.forward(&visual, &Pass::training(0, 1, Rng::new(0))).unwrap();
        let get = |name: &str| params.var(&format!("proposal_conv.{name}")).unwrap().as_tensor().clone();
        let mut x = map.to_square(&forward.cells).unwrap();
        let mut mask = map.mask(&Device::Cpu).unwrap().reshape((1, 1, 8, 8)).unwrap();
        for (layer, padding) in [(0, 2), (1, 0)] {
            let y = x.conv2d(&get(&format!("convs.{layer}.weight")), padding, 1, 1, 1).unwrap();
            let y = y.broadcast_add(&get(&format!("convs.{layer}.bias")).reshape((1, (), 1, 1)).unwrap()).unwrap();
            let mean = y.mean_keepdim((0, 2, 3)).unwrap();
            let centred = y.broadcast_sub(&mean).unwrap();
            let var = centred.sqr().unwrap().mean_keepdim((0, 2, 3)).unwrap();
            let y = centred.broadcast_div(&(var + 1e-5).unwrap().sqrt().unwrap()).unwrap().relu().unwrap();
            let count = mask.conv2d(&Tensor::ones((1, 1, 3, 3), mask.dtype(), &Device::Cpu).unwrap(), padding, 1, 1, 1);
            let count = count.unwrap();
            mask = count.gt(0.5).unwrap().to_dtype(count.dtype()).unwrap();
            x = y.broadcast_mul(&(&mask / count.maximum(1.0).unwrap()).unwrap()).unwrap();
        }
        let weight = get("conv1x1_iou.weight").squeeze(3).unwrap().squeeze(2).unwrap();
        let dense = map.from_square(&x).unwrap().times(&weight.t().unwrap()).unwrap();
        let dense = dense.broadcast_add(&get("conv1x1_iou.bias")).unwrap();
        assert!(gap(&dense, &forward.moments.overlap) < 1e-4);
    }

    #[test]
    fn a_batch_in_parts_is_the_mean_of_its_parts() {
        let batch = two_videos();
        let settings = MmnConfig { part: Some(1), ..config() };
        let model = Mmn::new(&settings, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let loss = |batch: &Batch| model.loss(batch, &Pass::answering()).unwrap().total.to_scalar::<f32>().unwrap();
        let alone = |video: usize| {
            let mut one = batch.clone();
            let asked: Vec<usize> = (0..4).filter(|query| batch.queries.video[*query] == video).collect();
            let rows = Tensor::new(asked.iter().map(|query| *query as u32).collect::<Vec<_>>(), &Device::Cpu).unwrap();
            one.videos.visual = batch.videos.visual.narrow(0, video, 1).unwrap();
            one.queries.ids.truncate(2);
            one.queries.video = vec![0, 0];
            one.queries.word_ids = batch.queries.word_ids.index_select(&rows, 0).unwrap();
            one.queries.lengths = asked.iter().map(|query| batch.queries.lengths[*query]).collect();
            let spans = &batch.targets.as_ref().unwrap().spans;
            one.targets.as_mut().unwrap().spans = asked.iter().map(|query| spans[*query]).collect();
            loss(&one)
        };
        assert!((loss(&batch) - (alone(0) + alone(1)) / 2.0).abs() < 1e-5);
        let whole = Mmn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let whole = whole.loss(&batch, &Pass::answering()).unwrap().total.to_scalar::<f32>().unwrap();
        assert!((loss(&batch) - whole).abs() > 1e-3); // fewer negatives, smaller loss
    }

    #[test]
    fn a_corpus_answers_as_single_videos_do() {
        let (model, batch) = (model(), two_videos());
        let codes = Corpus::encode(&model, &batch.videos).unwrap();
        let answers = model.search(&batch.queries, &codes.iter().collect::<Vec<_>>()).unwrap();
        let ranked = model.propose(&batch).unwrap();
        for (query, video) in batch.queries.video.iter().enumerate() {
            let answer = &answers[query][*video];
            let kept = suppress(&ranked[query], 0.5, MOMENTS_PER_VIDEO);
            assert_eq!(answer.moments.len(), kept.len());
            assert!((answer.video_score - kept[0].score).abs() < 1e-5);
        }
    }

    #[test]
    fn embeddings_are_unit_vectors_of_one_space() {
        let (model, batch) = (model(), two_videos());
        let moments = model.embed_moments(&batch.videos).unwrap();
        let queries = model.embed_queries(&batch.queries).unwrap();
        assert_eq!(moments.len(), 2);
        assert_eq!(moments[0].embeddings.dims(), [36, 24]);
        assert_eq!(moments[0].spans.len(), 36);
        for rows in [&moments[1].embeddings, &queries] {
            let norms = rows.sqr().unwrap().sum(1).unwrap().to_vec1::<f32>().unwrap();
            assert!(norms.iter().all(|norm| (norm - 1.0).abs() < 1e-5));
        }
    }

    #[test]
    fn distilbert_is_frozen_first_and_slow_afterwards() {
        let text = TextTraining { frozen_epochs: 4, ..TextTraining::default() };
        let model =
            Mmn::new(&MmnConfig { text, ..config() }, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let rate = |name: &str, epoch| model.rate(name, &Pass::training(0, epoch, Rng::new(0)));
        let bert = "text_encoder.bert.embeddings.LayerNorm.weight";
        assert_eq!((rate(bert, 4), rate(bert, 5), rate("text_encoder.fc_out1.weight", 1)), (0.0, 0.1, 1.0));
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        for (fill, support) in [(CellFill::Pool, MapSupport::Exact), (CellFill::Conv, MapSupport::Valid)] {
            let network = MatchingEncoderSize { fill, support, ..config().network };
            let settings = MmnConfig { network, ..config() };
            let (model, first, last) =
                overfit(|vb| Ok(Box::new(Mmn::new(&settings, &TOY.given(), vb)?)), &batch, 120, 1e-2);
            let overlaps = best_overlaps(model.as_ref(), &batch);
            assert!(last < 0.4 * first, "{fill:?} {support:?}: {first} to {last}");
            assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{fill:?} {support:?}: {overlaps:?}");
        }
    }
}
