//! CONQUER: re-ranks the videos of a first stage, fusing video and subtitle by weights that the query chooses.
//! Hou et al., "CONQUER: Contextual Query-aware Ranking for Video Corpus Moment Retrieval", ACM MM 2021.
//!
//! Queries and videos are always padded to `words` and `clips`, as published: the fusion weights count padded words and the
//! video score looks at padded clips. Differs from the published code: without sampled negatives in the batch, other
//! videos of the batch stand in; without subtitles there is nothing to fuse. As a ranked model the losses of each query are
//! weighted by its relevance where batches carry it.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{gelu, l2_normalise, l2_normalise_along, mask_out, softmax};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    Conv1d, EndClip, InputProjection, LayerNorm, Linear, NOT_THERE, PairLimits, SelfAttention, Steps, as_proposals,
    bert_linear, bert_linear_no_bias, bert_table, best_pairs, fit_steps, probabilities,
};
use crate::losses::index_entropy;
use crate::{
    Answer, Batch, Code, Corpus, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal,
    QueryBatch, Result, Supervision, Targets, Task, VideoBatch, fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "conquer",
    title: "CONQUER",
    paper: "Hou et al., CONQUER: Contextual Query-aware Ranking for Video Corpus Moment Retrieval, ACM MM 2021",
    family: Family::Corpus,
    tasks: &[Task::SingleVideo, Task::Corpus, Task::Ranked],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "reads the videos of a first stage together with the query and ranks moments over all of them",
    full_sizes: &[
        FullSize { dataset: "tvr", settings: "subtitle = 768", visual: 4352, words: 768, millions: None },
        FullSize { dataset: "tvr-ranking", settings: "subtitle = 768", visual: 4352, words: 768, millions: None },
    ],
    build: |table, given, vb| Ok(Box::new(Conquer::new(&read_settings("conquer", table)?, given, vb)?)),
    settings: |table| fill_settings::<ConquerConfig>("conquer", table),
    check,
};

/// What replaces the logit of a clip that is not there.
const NO_CLIP: f64 = -1e4;
/// Pairs of a query and a video that are read at once.
const CHUNK: usize = 32;
/// Moments that are kept of one video.
const KEPT: usize = 200;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConquerConfig {
    /// Clips that every video is cut or padded to. Default: 100
    pub clips: usize,
    /// Words that every query is cut or padded to. Default: 30
    pub words: usize,
    /// Width of a clip's subtitle features. Default: that of the data; 0, or data without subtitles, leaves the video alone
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<usize>,
    /// Width of everything. Default: 768
    pub hidden: usize,
    /// Width of the feed-forward layers. Default: 3072
    pub wide: usize,
    /// Heads of every attention. Default: 12
    pub heads: usize,
    /// Layers of the query's and of every other transformer. Default: 1 and 1
    pub layers: Layers,
    /// Clusters that the words are pooled by. Default: 32
    pub clusters: usize,
    /// Width of the scoring heads. Default: 128
    pub scoring: usize,
    /// Clips that a scoring head sees. Default: 5
    pub kernel: usize,
    /// Share of values dropped while training. Default: 0.1
    pub dropout: f64,
    /// How moments of different videos are compared. Default: general
    pub measure: Measure,
    /// Clips between start and end of an answer. Default: 0 to 23
    pub pairs: PairLimits,
    /// Other videos that each query is trained against. Default: 3
    pub negatives: usize,
    /// Weight of the start and end losses. Default: 0.01
    pub span_weight: f64,
    /// Weight of the video loss of the exclusive measure. Default: 0.05
    pub video_weight: f64,
    /// Overlap above which the worse of two answers is dropped. Default: none; the published best run has 0.7
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nms: Option<f64>,
}

/// Layers of the transformers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layers {
    /// Of the query's.
    pub query: usize,
    /// Of every other.
    pub video: usize,
}

/// How moments of different videos are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// First-stage score times the two probabilities; videos keep the order of the first stage.
    General,
    /// A score of its own, softmax over the videos asked, times the two probabilities; videos are ranked by it.
    Exclusive,
    /// The sum of the two logits; a video is as good as its best moment.
    Disjoint,
}

impl Default for ConquerConfig {
    fn default() -> Self {
        Self {
            clips: 100,
            words: 30,
            subtitle: None,
            hidden: 768,
            wide: 3072,
            heads: 12,
            layers: Layers { query: 1, video: 1 },
            clusters: 32,
            scoring: 128,
            kernel: 5,
            dropout: 0.1,
            measure: Measure::General,
            pairs: PairLimits { min: 0, max: 23 },
            negatives: 3,
            span_weight: 0.01,
            video_weight: 0.05,
            nms: None,
        }
    }
}

/// The network.
#[derive(Debug)]
pub struct Conquer {
    config: ConquerConfig,
    query_project: InputProjection,
    query_embed: Embeddings,
    query_layers: Vec<BertLayer>,
    visual_project: InputProjection,
    subtitle: Option<Subtitle>,
    video_embed: Embeddings,
    video_layers: Vec<BertLayer>,
    similarity: Tensor,
    context: Reader,
    begin: Reader,
    end: Reader,
    begin_score: ClipScore,
    end_score: ClipScore,
    video_score: Option<VideoScoreHead>,
}

/// What subtitles add: their projection and the query's weights for the two streams.
#[derive(Debug)]
struct Subtitle {
    project: InputProjection,
    clusters: Tensor,
    centres: Tensor,
    norm: LayerNorm,
    weights: Linear,
}

/// Positions and token types.
#[derive(Debug)]
struct Embeddings {
    positions: Tensor,
    types: Tensor,
    norm: LayerNorm,
}

/// A whole BERT layer, norms after the sums.
#[derive(Debug)]
struct BertLayer {
    attention: SelfAttention,
    widen: Linear,
    narrow: Linear,
    norm: LayerNorm,
    dropout: f64,
}

/// Projection and transformer.
#[derive(Debug)]
struct Reader {
    project: InputProjection,
    layers: Vec<BertLayer>,
}

#[derive(Debug)]
struct ClipScore {
    first: Conv1d,
    second: Conv1d,
}

#[derive(Debug)]
struct VideoScoreHead {
    reader: Reader,
    first: Linear,
    second: Linear,
}

/// Videos before any query: `[videos, clips, hidden]` each.
struct Videos {
    visual: Tensor,
    subtitle: Option<Tensor>,
    mask: Tensor,
}

/// Pairs of a query and a video.
struct Forward {
    fusion: Option<Tensor>,
    fused: Tensor,
    aware: Tensor,
    context: Tensor,
    /// `[pairs, clips]`.
    begin: Tensor,
    end: Tensor,
    /// `[pairs]`, exclusive measure only.
    video: Option<Tensor>,
}

impl Embeddings {
    fn new(steps: usize, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            positions: bert_table(steps, hidden, vb.pp("position_embeddings"))?,
            types: bert_table(2, hidden, vb.pp("token_type_embeddings"))?,
            norm: LayerNorm::new(hidden, 1e-5, vb.pp("LayerNorm"))?,
        })
    }

    /// Adds positions from 0 and the vector of one token type.
    fn place(&self, x: &Tensor, kind: usize) -> Result<Tensor> {
        let positions = self.positions.narrow(0, 0, x.dim(1)?)?;
        Ok(x.broadcast_add(&positions.broadcast_add(&self.types.narrow(0, kind, 1)?)?)?)
    }
}

impl BertLayer {
    fn stack(count: usize, config: &ConquerConfig, vb: &VarBuilder) -> Result<Vec<Self>> {
        let ConquerConfig { hidden, wide, heads, dropout, .. } = *config;
        let layer = |number: usize| {
            let vb = vb.pp("encoder.layer").pp(number);
            Ok(Self {
                attention: SelfAttention::new(hidden, heads, dropout, vb.pp("attention"))?,
                widen: bert_linear(hidden, wide, vb.pp("intermediate.dense"))?,
                narrow: bert_linear(wide, hidden, vb.pp("output.dense"))?,
                norm: LayerNorm::new(hidden, 1e-5, vb.pp("output.LayerNorm"))?,
                dropout,
            })
        };
        (0..count).map(layer).collect()
    }

    fn forward(&self, x: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let x = self.attention.forward(x, Some(mask), pass)?;
        let wide = gelu(&self.widen.forward(&x)?)?;
        Ok(self.norm.forward(&(pass.dropout(&self.narrow.forward(&wide)?, self.dropout)? + x)?)?)
    }
}

fn run(layers: &[BertLayer], x: Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
    layers.iter().try_fold(x, |x, layer| layer.forward(&x, mask, pass))
}

impl Reader {
    fn new(inputs: usize, config: &ConquerConfig, vb: &VarBuilder) -> Result<Self> {
        let project = InputProjection::new(inputs, config.hidden, config.dropout, vb.pp("trans_linear"))?;
        Ok(Self { project, layers: BertLayer::stack(config.layers.video, config, vb)? })
    }

    fn forward(&self, x: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        run(&self.layers, self.project.forward(x, pass)?, mask, pass)
    }
}

impl ClipScore {
    fn new(config: &ConquerConfig, vb: &VarBuilder) -> Result<Self> {
        let vb = vb.pp("clip_score_predictor");
        let steps = Steps { padding: config.kernel / 2, ..Steps::default() };
        Ok(Self {
            first: Conv1d::without_bias(config.hidden, config.scoring, config.kernel, steps, vb.pp(0))?,
            second: Conv1d::without_bias(config.scoring, 1, 1, Steps::default(), vb.pp(2))?,
        })
    }

    fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let logits = self.second.forward(&self.first.forward(x)?.relu()?)?.squeeze(2)?;
        Ok(mask_out(&logits, mask, NO_CLIP)?)
    }
}

impl Subtitle {
    fn new(width: usize, config: &ConquerConfig, vb: &VarBuilder) -> Result<Self> {
        let ConquerConfig { hidden, clusters, dropout, .. } = *config;
        let pooling = vb.pp("query_weight.text_pooling");
        let init = Init::Randn { mean: 0.0, stdev: (hidden as f64).sqrt().recip() };
        Ok(Self {
            project: InputProjection::new(width, hidden, dropout, vb.pp("encoder.videoEncoder.text_linear"))?,
            clusters: pooling.get_with_hints((hidden, clusters), "clusters", init)?,
            centres: pooling.get_with_hints((1, hidden, clusters), "clusters2", init)?,
            norm: LayerNorm::new(clusters, 1e-5, pooling.pp("LayerNorm"))?,
            weights: bert_linear_no_bias(hidden * clusters, 2, vb.pp("query_weight.moe_fc_txt"))?,
        })
    }

    /// How much the query listens to video and to subtitle, `[queries, 2]`: words pooled by their nearness to clusters.
    fn weigh(&self, words: &Tensor, dropout: f64, pass: &Pass) -> Result<Tensor> {
        let nearness = softmax(&self.norm.forward(&words.times(&self.clusters)?)?, D::Minus1)?;
        let gathered = words.transpose(1, 2)?.contiguous()?.times(&nearness)?; // [queries, hidden, clusters]
        let shares = nearness.sum_keepdim(1)?;
        let residual = (gathered - self.centres.broadcast_mul(&shares)?)?;
        let pooled = l2_normalise(&l2_normalise_along(&residual, 1)?.flatten_from(1)?)?;
        Ok(softmax(&self.weights.forward(&pass.dropout(&pooled, dropout)?)?, D::Minus1)?)
    }
}

impl Conquer {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for subtitles of another width than the data's.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &ConquerConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let ConquerConfig { hidden, dropout, .. } = *config;
        let subtitle = config.subtitle.unwrap_or(given.subtitle);
        if given.subtitle > 0 && subtitle > 0 && subtitle != given.subtitle {
            let problem = format!("`subtitle` is {subtitle} and the data's are {} wide", given.subtitle);
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let (query, video) = (vb.pp("encoder.queryEncoder"), vb.pp("encoder.videoEncoder"));
        let head = vb.pp("moment_localization_head");
        let scored = config.measure == Measure::Exclusive;
        let similarity = vb.pp("query_aware_feature_learning_layer.similarity_weight");
        Ok(Self {
            query_project: InputProjection::new(given.words, hidden, dropout, query.pp("linear"))?,
            query_embed: Embeddings::new(config.words, hidden, &query.pp("transformer.embeddings"))?,
            query_layers: BertLayer::stack(config.layers.query, config, &query.pp("transformer"))?,
            visual_project: InputProjection::new(given.visual, hidden, dropout, video.pp("img_linear"))?,
            subtitle: if subtitle > 0 { Some(Subtitle::new(subtitle, config, &vb)?) } else { None },
            video_embed: Embeddings::new(config.clips, hidden, &video.pp("transformer.embeddings"))?,
            video_layers: BertLayer::stack(config.layers.video, config, &video.pp("transformer"))?,
            similarity: bert_table(1, 3 * hidden, similarity)?,
            context: Reader::new(4 * hidden, config, &vb.pp("contextual_QAL_feature_learning"))?,
            begin: Reader::new(5 * hidden, config, &head.pp("begin_feature_modeling"))?,
            end: Reader::new(2 * hidden, config, &head.pp("end_feature_modeling"))?,
            begin_score: ClipScore::new(config, &head.pp("begin_score_modeling"))?,
            end_score: ClipScore::new(config, &head.pp("end_score_modeling"))?,
            video_score: if scored { Some(VideoScoreHead::new(config, &vb.pp("video_scoring_head"))?) } else { None },
            config: config.clone(),
        })
    }

    /// Words `[queries, words, d_word]` to `[queries, words, hidden]`, with the mask of the padded length.
    fn queries(&self, words: &Tensor, mask: &Tensor, pass: &Pass) -> Result<(Tensor, Tensor)> {
        let (words, mask) = (fit_steps(words, self.config.words)?, fit_steps(mask, self.config.words)?);
        let x = self.query_embed.place(&self.query_project.forward(&words, pass)?, 1)?;
        let x = pass.dropout(&self.query_embed.norm.forward(&x)?, self.config.dropout)?;
        Ok((run(&self.query_layers, x, &mask, pass)?, mask))
    }

    /// # Shapes
    /// - visual `[videos, clips, d_visual]`, subtitle `[videos, clips, d_subtitle]`, mask `[videos, clips]`
    fn videos(&self, visual: &Tensor, subtitle: Option<&Tensor>, mask: &Tensor, pass: &Pass) -> Result<Videos> {
        let clips = self.config.clips;
        let mask = fit_steps(mask, clips)?;
        let visual = self.visual_project.forward(&fit_steps(visual, clips)?, pass)?;
        let mut parts = vec![self.video_embed.place(&visual, 0)?];
        if let Some(stream) = &self.subtitle {
            let missing = || ModelError::Missing { model: CARD.name, what: "subtitle features" };
            let text = stream.project.forward(&fit_steps(subtitle.ok_or_else(missing)?, clips)?, pass)?;
            parts.push(self.video_embed.place(&text, 1)?);
        }
        let masks = vec![&mask; parts.len()];
        let x = pass.dropout(&self.video_embed.norm.forward(&Tensor::cat(&parts, 1)?)?, self.config.dropout)?;
        let x = run(&self.video_layers, x, &Tensor::cat(&masks, 1)?, pass)?;
        let half = |number: usize| x.narrow(1, number * clips, clips)?.contiguous();
        let subtitle = self.subtitle.as_ref().map(|_| half(1)).transpose()?;
        Ok(Videos { visual: half(0)?, subtitle, mask })
    }

    fn videos_of(&self, videos: &VideoBatch, pass: &Pass) -> Result<Videos> {
        self.videos(&videos.visual, videos.subtitle.as_ref(), &videos.mask, pass)
    }

    /// Reads pair by pair: words `[pairs, words, hidden]` and their mask, the videos of the same pairs.
    fn forward(&self, words: &Tensor, word_mask: &Tensor, videos: &Videos, pass: &Pass) -> Result<Forward> {
        let mask = &videos.mask;
        let fusion = match &self.subtitle {
            Some(stream) => Some(stream.weigh(words, self.config.dropout, pass)?),
            None => None,
        };
        let fused = match (&fusion, &videos.subtitle) {
            (Some(weights), Some(subtitle)) => {
                let weight = |number: usize| weights.narrow(1, number, 1)?.unsqueeze(2);
                (videos.visual.broadcast_mul(&weight(0)?)? + subtitle.broadcast_mul(&weight(1)?)?)?
            }
            _ => videos.visual.clone(),
        };
        let aware = self.query_aware(&fused, words, mask, word_mask)?;
        let context = self.context.forward(&aware, mask, pass)?;
        let global = Tensor::cat(&[&aware, &context], 2)?;
        let begin = self.begin.forward(&global, mask, pass)?;
        let end = self.end.forward(&Tensor::cat(&[&context, &begin], 2)?, mask, pass)?;
        let video = match &self.video_score {
            Some(head) => Some(head.forward(&global, mask, pass)?),
            None => None,
        };
        Ok(Forward {
            fusion,
            fused,
            aware,
            begin: self.begin_score.forward(&begin, mask)?,
            end: self.end_score.forward(&end, mask)?,
            context,
            video,
        })
    }

    /// Attention both ways between clips and words, `[pairs, clips, 4 hidden]`.
    fn query_aware(&self, x: &Tensor, words: &Tensor, mask: &Tensor, word_mask: &Tensor) -> Result<Tensor> {
        let hidden = self.config.hidden;
        let part = |number: usize| self.similarity.narrow(1, number * hidden, hidden);
        let clips = x.broadcast_mul(&part(0)?)?.sum(2)?.unsqueeze(2)?;
        let asked = words.broadcast_mul(&part(1)?)?.sum(2)?.unsqueeze(1)?;
        let both = x.broadcast_mul(&part(2)?)?.times(&words.transpose(1, 2)?.contiguous()?)?;
        let similarity = both.broadcast_add(&clips)?.broadcast_add(&asked)?;
        let real = mask.unsqueeze(2)?.broadcast_mul(&word_mask.unsqueeze(1)?)?;
        let similarity = mask_out(&similarity, &real, NOT_THERE)?;
        let to_query = softmax(&similarity, D::Minus1)?.times(words)?;
        let weights = softmax(&similarity.max(D::Minus1)?, D::Minus1)?.unsqueeze(1)?;
        let to_video = weights.times(x)?; // [pairs, 1, hidden]
        Ok(Tensor::cat(&[x, &to_query, &(x * &to_query)?, &x.broadcast_mul(&to_video)?], 2)?)
    }

    /// For every query of pairs its own video, then as many others for each, from sampled negatives or from the batch.
    fn slots(&self, batch: &Batch, targets: &Targets, pass: &Pass) -> Vec<Vec<usize>> {
        let ids = &batch.videos.ids;
        let answering = targets.answering_videos();
        let sampled = |query: usize| {
            let negatives = batch.negatives.as_ref()?.iter().find(|negatives| negatives.query == query)?;
            Some(negatives.videos.clone())
        };
        let others = |query: usize| {
            let wrong = |video: &usize| !answering[query].contains(video) && ids[*video] != ids[query];
            let mut others: Vec<usize> = (0..ids.len()).filter(wrong).collect();
            pass.draw(|rng| rng.shuffle(&mut others));
            others
        };
        let others: Vec<Vec<usize>> =
            (0..batch.len()).map(|query| sampled(query).unwrap_or_else(|| others(query))).collect();
        let most = others.iter().map(Vec::len).min().unwrap_or(0).min(self.config.negatives);
        let own = |(query, others): (usize, &Vec<usize>)| {
            std::iter::once(query).chain(others.iter().copied().take(most)).collect()
        };
        others.iter().enumerate().map(own).collect()
    }

    /// Start, end and, under the exclusive measure, video losses of every query, whose own video is the first of its `slots`.
    fn losses(&self, pairs: &Forward, queries: usize, labels: &[(usize, usize)]) -> Result<(Tensor, Option<Tensor>)> {
        let (starts, ends): (Vec<usize>, Vec<usize>) = labels.iter().copied().unzip();
        // One softmax over the clips of all slots makes scores comparable between videos.
        let flat = |logits: &Tensor| logits.reshape((queries, ()));
        let span = (index_entropy(&flat(&pairs.begin)?, &starts)? + index_entropy(&flat(&pairs.end)?, &ends)?)?;
        let video = match &pairs.video {
            Some(scores) => Some(index_entropy(&flat(scores)?, &vec![0; queries])?),
            None => None,
        };
        Ok((span, video))
    }

    /// One query's moments in each of its videos; `scores` are those of a first stage.
    fn answers(&self, pairs: &Logits, scores: Option<&[f32]>, measure: Measure) -> Vec<Answer> {
        let own = if measure == Measure::Exclusive { Some(probabilities(&pairs.video)) } else { None };
        let factors = own.as_deref().or(scores);
        let mut answers = Vec::new();
        for (place, length) in pairs.lengths.iter().enumerate() {
            let (begin, end) = (&pairs.begin[place][..*length], &pairs.end[place][..*length]);
            let factor = factors.and_then(|factors| factors.get(place)).copied();
            let best = if measure == Measure::Disjoint {
                best_pairs(self.config.pairs, *length, KEPT, |i, j| begin[i] + end[j])
            } else {
                let (begin, end) = (probabilities(begin), probabilities(end));
                best_pairs(self.config.pairs, *length, KEPT, |i, j| factor.unwrap_or(1.0) * begin[i] * end[j])
            };
            let moments = as_proposals(&best, EndClip::Last, *length);
            let best = moments.first().map_or(f32::MIN, |best| best.score);
            let video_score = if measure == Measure::Disjoint { best } else { factor.unwrap_or(best) };
            answers.push(Answer { video_score, moments });
        }
        answers
    }

    /// Reads every query with every video, a few pairs at a time.
    fn read(&self, queries: &QueryBatch, videos: &[&Code], first: Option<&[Vec<f32>]>) -> Result<Vec<Vec<Answer>>> {
        let pass = Pass::answering();
        let (words, mask) = self.queries(&queries.words, &queries.mask, &pass)?;
        let mut answers = Vec::with_capacity(queries.ids.len());
        for query in 0..queries.ids.len() {
            let (words, mask) = (words.narrow(0, query, 1)?, mask.narrow(0, query, 1)?);
            let mut logits = Logits::default();
            for chunk in videos.chunks(CHUNK) {
                let codes = stacked(chunk)?;
                let repeated = words.repeat((chunk.len(), 1, 1))?;
                let pairs = self.forward(&repeated, &mask.repeat((chunk.len(), 1))?, &codes, &pass)?;
                logits.extend(&pairs, &codes.mask)?;
            }
            let scores = first.and_then(|first| first.get(query)).map(Vec::as_slice);
            answers.push(self.answers(&logits, scores, self.config.measure));
        }
        Ok(answers)
    }
}

impl VideoScoreHead {
    fn new(config: &ConquerConfig, vb: &VarBuilder) -> Result<Self> {
        let predictor = vb.pp("video_score_predictor");
        Ok(Self {
            reader: Reader::new(5 * config.hidden, config, &vb.pp("video_feature_modeling"))?,
            first: bert_linear_no_bias(config.hidden, config.scoring, predictor.pp(0))?,
            second: bert_linear_no_bias(config.scoring, 1, predictor.pp(2))?,
        })
    }

    /// `[pairs, clips, 5 hidden]` to `[pairs]`; the maximum is over padded clips too, as published.
    fn forward(&self, x: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let best = self.reader.forward(x, mask, pass)?.max(1)?;
        Ok(self.second.forward(&self.first.forward(&best)?.relu()?)?.squeeze(1)?)
    }
}

/// What one query's pairs gave, video by video.
#[derive(Default)]
struct Logits {
    begin: Vec<Vec<f32>>,
    end: Vec<Vec<f32>>,
    video: Vec<f32>,
    lengths: Vec<usize>,
}

impl Logits {
    /// Those of some pairs only.
    fn rows(&self, pairs: std::ops::Range<usize>) -> Self {
        Self {
            begin: self.begin[pairs.clone()].to_vec(),
            end: self.end[pairs.clone()].to_vec(),
            video: self.video.get(pairs.clone()).unwrap_or_default().to_vec(),
            lengths: self.lengths[pairs].to_vec(),
        }
    }

    fn extend(&mut self, pairs: &Forward, mask: &Tensor) -> Result<()> {
        self.begin.extend(pairs.begin.to_vec2::<f32>()?);
        self.end.extend(pairs.end.to_vec2::<f32>()?);
        if let Some(video) = &pairs.video {
            self.video.extend(video.to_vec1::<f32>()?);
        }
        self.lengths.extend(mask.sum(1)?.to_vec1::<f32>()?.into_iter().map(|length| length as usize));
        Ok(())
    }
}

/// Codes as videos again: visual, mask, subtitle where there is one.
fn stacked(codes: &[&Code]) -> Result<Videos> {
    let part = |place: usize| Tensor::stack(&codes.iter().map(|code| &code.0[place]).collect::<Vec<_>>(), 0);
    let subtitle = codes.first().filter(|code| code.0.len() > 2).map(|_| part(2)).transpose()?;
    Ok(Videos { visual: part(0)?, mask: part(1)?, subtitle })
}

impl Videos {
    fn select(&self, rows: &Tensor) -> Result<Self> {
        let subtitle = self.subtitle.as_ref().map(|subtitle| subtitle.index_select(rows, 0)).transpose()?;
        Ok(Self { visual: self.visual.index_select(rows, 0)?, subtitle, mask: self.mask.index_select(rows, 0)? })
    }
}

impl Model for Conquer {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::L2Eps,
            resample: Resample::Cut { rows: self.config.clips },
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let targets = batch.targets(CARD.name)?;
        let slots = self.slots(batch, targets, pass);
        let device = batch.videos.visual.device();
        let each = slots.first().map_or(1, Vec::len) as u32;
        let of_query: Vec<u32> =
            (0..batch.len() as u32).flat_map(|query| std::iter::repeat_n(query, each as usize)).collect();
        let of_query = Tensor::new(of_query, device)?;
        let of_video: Vec<u32> = slots.iter().flatten().map(|video| *video as u32).collect();
        let (words, mask) = self.queries(&batch.queries.words, &batch.queries.mask, pass)?;
        let videos = self.videos_of(&batch.videos, pass)?.select(&Tensor::new(of_video, device)?)?;
        let (words, mask) = (words.index_select(&of_query, 0)?, mask.index_select(&of_query, 0)?);
        let pairs = self.forward(&words, &mask, &videos, pass)?;
        let label = |(span, length): (&cuemark_core::NormSpan, &usize)| {
            EndClip::Last.label(*span, (*length).min(self.config.clips))
        };
        let labels: Vec<(usize, usize)> = targets.spans.iter().zip(&batch.videos.lengths).map(label).collect();
        let (span, video) = self.losses(&pairs, batch.len(), &labels)?;
        let mut total = (targets.weighted_mean(&span)? * self.config.span_weight)?;
        let mut parts = vec![("span", span.mean_all()?)];
        if let Some(video) = video {
            total = (total + (targets.weighted_mean(&video)? * self.config.video_weight)?)?;
            parts.push(("video", video.mean_all()?));
        }
        Ok(Loss { total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let pass = Pass::answering();
        let (words, mask) = self.queries(&batch.queries.words, &batch.queries.mask, &pass)?;
        let videos = self.videos_of(&batch.videos, &pass)?;
        let rows: Vec<u32> = (0..batch.len() as u32).collect();
        let own: Vec<u32> = batch.queries.video.iter().map(|video| *video as u32).collect();
        let mut logits = Logits::default();
        for (rows, own) in rows.chunks(CHUNK).zip(own.chunks(CHUNK)) {
            let (rows, own) = (Tensor::new(rows, words.device())?, Tensor::new(own, words.device())?);
            let (words, mask) = (words.index_select(&rows, 0)?, mask.index_select(&rows, 0)?);
            let videos = videos.select(&own)?;
            logits.extend(&self.forward(&words, &mask, &videos, &pass)?, &videos.mask)?;
        }
        let of = |pair: usize| self.answers(&logits.rows(pair..pair + 1), None, self.config.measure);
        Ok((0..batch.len()).map(|pair| of(pair).pop().unwrap_or_default().moments).collect())
    }

    fn nms(&self) -> Option<f64> {
        self.config.nms
    }

    fn corpus(&self) -> Option<&dyn Corpus> {
        Some(self)
    }
}

/// Meant to come after a first stage: without one it reads every video with every query, and the general measure takes all
/// videos for equally likely.
impl Corpus for Conquer {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let videos = self.videos_of(videos, &Pass::answering())?;
        let of = |video: usize| {
            let parts = [Some(&videos.visual), Some(&videos.mask), videos.subtitle.as_ref()];
            let kept = parts.into_iter().flatten().map(|part| Ok(part.get(video)?.detach()));
            Ok(Code(kept.collect::<Result<_>>()?))
        };
        (0..videos.mask.dim(0)?).map(of).collect()
    }

    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<Answer>>> {
        self.read(queries, videos, None)
    }

    fn search_after(&self, queries: &QueryBatch, videos: &[&Code], first: &[Vec<f32>]) -> Result<Vec<Vec<Answer>>> {
        self.read(queries, videos, Some(first))
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let exclusive = fixture.under("param.video_scoring_head").next().is_some();
    let config = ConquerConfig {
        clips: fixture.number("video_len")?,
        words: fixture.number("query_bert_config.max_position_embeddings")?,
        hidden: fixture.number("hidden_dim")?,
        wide: fixture.number("bert_config.intermediate_size")?,
        heads: fixture.number("bert_config.num_attention_heads")?,
        layers: Layers {
            query: fixture.number("query_bert_config.num_hidden_layers")?,
            video: fixture.number("bert_config.num_hidden_layers")?,
        },
        clusters: fixture.number("netvlad_config.text_cluster")?,
        scoring: fixture.number("moment_localization_config.conv_cfg_1.out_channels")?,
        kernel: fixture.number("moment_localization_config.conv_cfg_1.kernel_size")?,
        measure: if exclusive { Measure::Exclusive } else { Measure::General },
        pairs: PairLimits { min: fixture.number("pair_min")?, max: fixture.number("pair_max")? },
        span_weight: fixture.real("lw_st_ed")?,
        video_weight: fixture.real("lw_video_ce")?,
        ..ConquerConfig::default()
    };
    let (words, visual, subtitle) =
        (fixture.input("query_feat")?, fixture.input("visual_feat")?, fixture.input("sub_feat")?);
    let (queries, each, clips, width) = visual.dims4()?;
    let given = Given { subtitle: subtitle.dim(3)?, ..Given::widths(width, words.dim(2)?, 0) };
    let net = Conquer::new(&config, &given, vb.clone())?;
    let pass = Pass::answering();
    let (asked, word_mask) = net.queries(&words, &fixture.input("query_mask")?, &pass)?;
    let mask = fixture.input("video_mask")?;
    let videos = net.videos(&visual.flatten_to(1)?, Some(&subtitle.flatten_to(1)?), &mask.flatten_to(1)?, &pass)?;
    let of_query: Vec<u32> = (0..queries as u32).flat_map(|query| std::iter::repeat_n(query, each)).collect();
    let of_query = Tensor::new(of_query, asked.device())?;
    let pairs =
        net.forward(&asked.index_select(&of_query, 0)?, &word_mask.index_select(&of_query, 0)?, &videos, &pass)?;

    let mut trace = Trace::new();
    trace.out("query_enc", &asked);
    trace.out("visual_enc", &videos.visual);
    if let (Some(subtitle), Some(fusion)) = (&videos.subtitle, &pairs.fusion) {
        trace.out("sub_enc", subtitle);
        trace.out("fusion_weight", fusion);
    }
    trace.out("qdf", &pairs.fused);
    trace.out("qal", &pairs.aware);
    trace.out("contextual_qal", &pairs.context);
    trace.out_where("begin_logits", &pairs.begin.reshape((queries, each, clips))?, &mask);
    trace.out_where("end_logits", &pairs.end.reshape((queries, each, clips))?, &mask);
    if let Some(video) = &pairs.video {
        trace.out("video_score", &video.reshape((queries, each))?);
    }
    let first = fixture.input("first_stage_score")?.to_vec2::<f32>()?;
    let mut all = Logits::default();
    all.extend(&pairs, &videos.mask)?;
    let lengths = all.lengths.clone();
    let measures = [("general", Measure::General), ("exclusive", Measure::Exclusive), ("disjoint", Measure::Disjoint)];
    for (name, measure) in measures.into_iter().filter(|(_, measure)| exclusive || *measure != Measure::Exclusive) {
        let of = |query: usize| {
            let logits = all.rows(query * each..(query + 1) * each);
            net.answers(&logits, Some(&first[query]), measure)
        };
        let answers = (0..queries).map(of).collect();
        let clips = |query: usize, video: usize| lengths[query * each + video];
        trace.ranked_moments(name, answers, clips, EndClip::Last, fixture.number("rank_size")?)?;
    }
    let labels = fixture.counts("st_ed_indices")?;
    let labels: Vec<(usize, usize)> = labels.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let (span, video) = net.losses(&pairs, queries, &labels)?;
    let mut total = (span.mean_all()? * config.span_weight)?;
    trace.loss("moment_ce", &total);
    if let Some(video) = video {
        let video = (video.mean_all()? * config.video_weight)?;
        trace.loss("video_ce", &video);
        total = (total + video)?;
    }
    trace.loss("total", &total);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit, with_subtitles};
    use crate::{Ask, VideoScore, find};

    fn config(measure: Measure) -> ConquerConfig {
        ConquerConfig {
            clips: 10,
            words: 8,
            hidden: 16,
            wide: 24,
            heads: 2,
            clusters: 3,
            scoring: 8,
            dropout: 0.0,
            measure,
            pairs: PairLimits { min: 0, max: 7 },
            ..ConquerConfig::default()
        }
    }

    fn given(subtitle: usize) -> Given {
        Given { subtitle, ..TOY.given() }
    }

    fn net(measure: Measure, subtitle: usize) -> Conquer {
        Conquer::new(&config(measure), &given(subtitle), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_allowed_pair_is_proposed_once_with_and_without_subtitles() {
        let batch = TOY.batch(1);
        for (batch, subtitle) in [(batch.clone(), 0), (with_subtitles(&batch, 7), 7)] {
            let ranked = net(Measure::Disjoint, subtitle).propose(&batch).unwrap();
            assert_eq!(ranked.len(), TOY.pairs);
            for proposals in ranked {
                assert_eq!(proposals.len(), 36);
                assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
            }
        }
    }

    #[test]
    fn padding_changes_nothing() {
        let batch = with_subtitles(&TOY.batch(1), 7);
        let net = net(Measure::Exclusive, 7);
        let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&batch.with_longer_words(2).with_longer_videos(1))) < 1e-6);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart_and_searched_after_a_first_stage() {
        let batch = with_subtitles(&TOY.batch(1), 7);
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
            Ok(Box::new(Conquer::new(&config(Measure::Exclusive), &given(7), vb)?))
        };
        let (model, first, last) = overfit(build, &batch, 120, 3e-3);
        assert!(last < 0.2 * first, "{first} to {last}");
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
        let corpus = model.corpus().unwrap();
        let codes = corpus.encode(&batch.videos).unwrap();
        let codes: Vec<&Code> = codes.iter().collect();
        // A first stage that finds the right video second: re-ranking puts it first.
        let list =
            |query: usize| [(query + 1) % TOY.pairs, query].map(|video| VideoScore { video, score: 1.0 }).to_vec();
        let lists: Vec<Vec<VideoScore>> = (0..TOY.pairs).map(list).collect();
        let ask = Ask { videos: 2, moments: 9, first_stage: Some(&lists) };
        for (query, found) in find(corpus, &batch.queries, &codes, &ask).unwrap().iter().enumerate() {
            assert_eq!((found.videos[0].video, found.moments[0].video), (query, query));
        }
    }

    #[test]
    fn the_general_measure_multiplies_with_the_first_stage() {
        let batch = TOY.batch(1);
        let net = net(Measure::General, 0);
        let codes = net.encode(&batch.videos).unwrap();
        let codes: Vec<&Code> = codes.iter().collect();
        let one = batch.queries.select(&[0]).unwrap();
        let plain = net.search(&one, &codes).unwrap();
        let after = net.search_after(&one, &codes, &[vec![2.0, 0.5, 1.0, 3.0]]).unwrap();
        for (place, factor) in [2.0, 0.5, 1.0, 3.0].into_iter().enumerate() {
            let (plain, after) = (&plain[0][place], &after[0][place]);
            assert_eq!(after.video_score, factor);
            assert!((after.moments[0].score - factor * plain.moments[0].score).abs() < 1e-6);
        }
    }

    #[test]
    fn a_query_is_never_trained_against_a_video_that_answers_it() {
        let mut batch = TOY.batch(1);
        batch.targets.as_mut().unwrap().positives = Some(vec![vec![0, 1], vec![1], vec![2], vec![3]]);
        let net = net(Measure::General, 0);
        for seed in 0..20 {
            let pass = Pass::training(0, 1, cuemark_core::Rng::new(seed));
            let slots = net.slots(&batch, batch.targets.as_ref().unwrap(), &pass);
            assert!(slots.iter().enumerate().all(|(query, slots)| slots[0] == query && slots.len() == 3));
            assert!(!slots[0].contains(&1));
        }
    }
}
