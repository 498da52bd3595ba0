//! MS-SL: a video fits a sentence as well as its best pooled clip does, and as the frames do that this clip looks at.
//! Dong et al., "Partially Relevant Video Retrieval", ACM MM 2022. The first stage of MVMR's pipeline, where it is called PRMR.
//!
//! It ranks videos and never sees a span; its best clip is a coarse answer. Differs from the published code: pieces are
//! averaged from at most `frames` rows, where the code averages them from all rows of longer videos; equal scores keep
//! the order of the videos.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::{ClipRange, NormSpan};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{cosine, l2_normalise, mask_out, softmax};
use cuemark_tensor::{Device, Pass};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    InputProjection, Linear, NOT_THERE, Positions, SelfAttention, WordPooling, bert_linear_no_bias, fit_steps,
    sliding_windows, window_means, window_span,
};
use crate::losses::{Comparison, DrawnNegatives};
use crate::{
    Answer, Batch, BatchBy, BiEncoder, Code, Corpus, Family, FullSize, Given, Input, Loss, Model, ModelCard, Moments,
    Proposal, QueryBatch, Result, Supervision, Task, VideoBatch, fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "ms-sl",
    title: "MS-SL",
    paper: "Dong et al., Partially Relevant Video Retrieval, ACM MM 2022",
    family: Family::Corpus,
    tasks: &[Task::Corpus],
    supervision: Supervision::Weak,
    bi_encoder: true,
    idea: "scores a video by its best pooled clip and by the frames that this clip attends to",
    full_sizes: &[
        FullSize { dataset: "tvr", settings: "ranking = { margin = 0.1 }", visual: 3072, words: 768, millions: None },
        FullSize { dataset: "activitynet-captions", settings: "", visual: 1024, words: 1024, millions: None },
        FullSize { dataset: "charades-sta", settings: "clip_share = 0.5", visual: 1024, words: 1024, millions: None },
    ],
    build: |table, given, vb| Ok(Box::new(MsSl::new(&read_settings("ms-sl", table)?, given, vb)?)),
    settings: |table| fill_settings::<MsSlConfig>("ms-sl", table),
    check,
};

/// Value that replaces the attention to frames that are not there.
const NO_FRAME: f64 = -1e9;
/// Coarse moments that are kept of one video.
const KEPT: usize = 50;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MsSlConfig {
    /// Pieces that a video is averaged to for pooled clips. Default: 32
    pub pieces: usize,
    /// The most frames of a video; longer ones are averaged to them. Default: 128
    pub frames: usize,
    /// The most words of a query; later ones are cut off. Default: 30
    pub words: usize,
    /// Width of everything. Default: 384
    pub hidden: usize,
    /// Heads of every attention. Default: 4
    pub heads: usize,
    /// Share of values dropped while training. Default: 0.1
    pub dropout: f64,
    /// How videos are told apart. Default: hinge of margin 0.2, the 20 hardest from epoch 20
    pub ranking: Ranking,
    /// Weight of the contrast between pooled clips. Default: 0.02
    pub clip_contrast: f64,
    /// Weight of the contrast between attended frames. Default: 0.04
    pub frame_contrast: f64,
    /// Whether two sentences of one video are spared as each other's negatives on frames, where the published code takes
    /// them. Default: false
    pub spare_same_video: bool,
    /// Share of the pooled clips in a video's score; the rest is that of the frames. Default: 0.7
    pub clip_share: f64,
}

/// How videos are told apart.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ranking {
    /// How much better the true pair must score. Default: 0.2
    pub margin: f64,
    /// The epoch from which only the hardest are drawn. Default: 20
    pub hard_from: usize,
    /// How many the hardest are. Default: 20
    pub hard_pool: usize,
}

impl Default for Ranking {
    fn default() -> Self {
        Self { margin: 0.2, hard_from: 20, hard_pool: 20 }
    }
}

impl Default for MsSlConfig {
    fn default() -> Self {
        Self {
            pieces: 32,
            frames: 128,
            words: 30,
            hidden: 384,
            heads: 4,
            dropout: 0.1,
            ranking: Ranking::default(),
            clip_contrast: 0.02,
            frame_contrast: 0.04,
            spare_same_video: false,
            clip_share: 0.7,
        }
    }
}

/// The network.
#[derive(Debug)]
pub struct MsSl {
    config: MsSlConfig,
    query: Branch,
    pooling: WordPooling,
    clip: Branch,
    frame: Branch,
    key: Linear,
    value: Linear,
    windows: Vec<ClipRange>,
}

/// Projection, positions and one self-attention.
#[derive(Debug)]
struct Branch {
    project: InputProjection,
    positions: Positions,
    encoder: SelfAttention,
}

/// Videos as the model sees them.
struct Context {
    /// `[videos, pieces, hidden]`.
    clips: Tensor,
    /// `[videos, proposals, hidden]`, by length, then by start.
    proposals: Tensor,
    /// `[videos, frames, hidden]`.
    frames: Tensor,
    mask: Tensor,
}

/// The ranks of the negatives of one step.
struct Ranks {
    /// For each video among the sentences of others, from 1.
    sentences: Vec<usize>,
    /// For each query among the other videos, from 1.
    videos: Vec<usize>,
    /// For each query among the other rows and columns on frames, from 1.
    frames: [Vec<usize>; 2],
}

/// The four losses before weighting.
struct Losses {
    clip_nce: Tensor,
    clip_triplet: Tensor,
    frame_nce: Tensor,
    frame_triplet: Tensor,
}

impl Branch {
    fn new(name: &str, inputs: usize, steps: usize, config: &MsSlConfig, vb: &VarBuilder) -> Result<Self> {
        let MsSlConfig { hidden, heads, dropout, .. } = *config;
        Ok(Self {
            project: InputProjection::new(inputs, hidden, dropout, vb.pp(format!("{name}_input_proj")))?,
            positions: Positions::new(steps, hidden, dropout, vb.pp(format!("{name}_pos_embed")))?,
            encoder: SelfAttention::new(hidden, heads, dropout, vb.pp(format!("{name}_encoder")))?,
        })
    }

    fn forward(&self, x: &Tensor, mask: Option<&Tensor>, pass: &Pass) -> Result<Tensor> {
        let x = self.positions.forward(&self.project.forward(x, pass)?, pass)?;
        Ok(self.encoder.forward(&x, mask, pass)?)
    }
}

impl MsSl {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &MsSlConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let lengths: Vec<usize> = (1..=config.pieces).collect();
        Ok(Self {
            query: Branch::new("query", given.words, config.words, config, &vb)?,
            pooling: WordPooling::new(config.hidden, 1, vb.pp("modular_vector_mapping"))?,
            clip: Branch::new("clip", given.visual, config.frames.max(config.pieces), config, &vb)?,
            frame: Branch::new("frame", given.visual, config.frames, config, &vb)?,
            key: bert_linear_no_bias(config.hidden, config.hidden, vb.pp("mapping_linear.0"))?,
            value: bert_linear_no_bias(config.hidden, config.hidden, vb.pp("mapping_linear.1"))?,
            windows: sliding_windows(config.pieces, &lengths, config.pieces.max(1)),
            config: config.clone(),
        })
    }

    /// One vector per query, `[queries, hidden]`.
    fn queries(&self, words: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let most = self.config.words.min(words.dim(1)?);
        let (words, mask) = (fit_steps(words, most)?, fit_steps(mask, most)?);
        let words = self.query.forward(&words, Some(&mask), pass)?;
        Ok(self.pooling.forward(&words, &mask)?.0.squeeze(1)?)
    }

    /// # Shapes
    /// - pieces `[videos, pieces, d_visual]`, frames `[videos, frames, d_visual]`, mask `[videos, frames]`
    fn context(&self, pieces: &Tensor, frames: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Context> {
        let clips = self.clip.forward(pieces, None, pass)?;
        let means = window_means(&self.windows, self.config.pieces, clips.device())?;
        Ok(Context {
            proposals: means.unsqueeze(0)?.times(&clips)?,
            clips,
            frames: self.frame.forward(frames, Some(mask), pass)?,
            mask: mask.clone(),
        })
    }

    fn context_of(&self, videos: &VideoBatch, pass: &Pass) -> Result<Context> {
        let most = self.config.frames.min(videos.visual.dim(1)?);
        let (visual, mask) = (fit_steps(&videos.visual, most)?, fit_steps(&videos.mask, most)?);
        let device = visual.device();
        let of = |length: &usize| averaging((*length).min(most), most, self.config.pieces, device);
        let averaging = videos.lengths.iter().map(of).collect::<Result<Vec<_>>>()?;
        let pieces = unit_rows(&Tensor::stack(&averaging, 0)?.times(&visual)?)?;
        self.context(&pieces, &unit_rows(&visual)?, &mask, pass)
    }

    /// For every query and video the best cosine of any proposal and which it is, and the best product.
    fn clip_scores(queries: &Tensor, proposals: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
        let (videos, count, _) = proposals.dims3()?;
        let rows = proposals.flatten_to(1)?;
        let cosines = cosine(queries, &rows)?.reshape(((), videos, count))?;
        let products = queries.times(&rows.t()?)?.reshape(((), videos, count))?;
        Ok((cosines.max(D::Minus1)?, cosines.argmax(D::Minus1)?, products.max(D::Minus1)?))
    }

    /// What each chosen proposal sees in the frames of its video.
    ///
    /// # Shapes
    /// - frames `[rows, frames, hidden]`, mask `[rows, frames]`, chosen `[rows, hidden]`; returns `[rows, hidden]`
    fn attend(&self, frames: &Tensor, mask: &Tensor, chosen: &Tensor) -> Result<Tensor> {
        let logits = self.key.forward(frames)?.broadcast_mul(&chosen.unsqueeze(1)?)?.sum(2)?;
        let weights = softmax(&mask_out(&logits, mask, NO_FRAME)?, 1)?;
        Ok(weights.unsqueeze(1)?.times(&self.value.forward(frames)?)?.squeeze(1)?)
    }

    /// For every query what the best proposal of its own video sees, `[queries, hidden]`.
    fn attend_own(&self, context: &Context, best: &Tensor, own: &[usize]) -> Result<Tensor> {
        let count = context.proposals.dim(1)?;
        let best = best.to_vec2::<u32>()?;
        let rows = own.iter().zip(&best).map(|(video, best)| (video * count) as u32 + best[*video]);
        let rows = Tensor::new(rows.collect::<Vec<u32>>(), context.proposals.device())?;
        let chosen = context.proposals.flatten_to(1)?.index_select(&rows, 0)?;
        let videos =
            Tensor::new(own.iter().map(|video| *video as u32).collect::<Vec<_>>(), context.proposals.device())?;
        self.attend(&context.frames.index_select(&videos, 0)?, &context.mask.index_select(&videos, 0)?, &chosen)
    }

    fn rule(&self) -> DrawnNegatives {
        let Ranking { margin, hard_from, hard_pool } = self.config.ranking;
        DrawnNegatives { compare: Comparison::Hinge, margin, hard_from, hard_pool }
    }

    fn draw_ranks(&self, own: &[usize], videos: usize, pass: &Pass) -> Ranks {
        let rule = self.rule();
        let queries = own.len();
        let others = |video: usize| own.iter().filter(|own| **own != video).count();
        // Of the sentences of other videos the single hardest one is taken late in training.
        let sentence = |video| if rule.is_hard(pass) { 1 } else { rule.draw_ranks(1, others(video).max(1), pass)[0] };
        let frames = || rule.draw_ranks(queries, queries.saturating_sub(1).max(1), pass);
        Ranks {
            sentences: (0..videos).map(sentence).collect(),
            videos: rule.draw_ranks(queries, videos.saturating_sub(1).max(1), pass),
            frames: [frames(), frames()],
        }
    }

    fn losses(&self, queries: &Tensor, context: &Context, own: &[usize], ranks: &Ranks) -> Result<Losses> {
        let (cosines, best, products) = Self::clip_scores(queries, &context.proposals)?;
        let seen = self.attend_own(context, &best, own)?;
        Ok(Losses {
            clip_nce: clip_nce(&products, own)?,
            clip_triplet: clip_triplet(&self.rule(), &cosines, own, ranks)?,
            frame_nce: frame_nce(&queries.times(&seen.t()?)?)?,
            frame_triplet: self.frame_triplet(&cosine(queries, &seen)?, own, ranks)?,
        })
    }

    fn frame_triplet(&self, scores: &Tensor, own: &[usize], ranks: &Ranks) -> Result<Tensor> {
        let spared = |query: usize| {
            let same = (0..own.len()).filter(move |other| *other != query && own[*other] == own[query]);
            std::iter::once(query).chain(same.filter(|_| self.config.spare_same_video)).collect()
        };
        let positives: Vec<Vec<usize>> = (0..own.len()).map(spared).collect();
        let (rows, columns) =
            self.rule().both_ways(scores, [&positives, &positives], [&ranks.frames[0], &ranks.frames[1]])?;
        Ok((rows + columns)?)
    }

    fn total(&self, losses: &Losses) -> Result<Tensor> {
        let clip = ((&losses.clip_nce * self.config.clip_contrast)? + &losses.clip_triplet)?;
        let frame = ((&losses.frame_nce * self.config.frame_contrast)? + &losses.frame_triplet)?;
        Ok((clip + frame)?)
    }

    /// Scores of one video for every query: cosines of its proposals `[query][proposal]`, and of its attended frames.
    fn score_video(&self, queries: &Tensor, means: &Tensor, code: &Code) -> Result<(Vec<Vec<f32>>, Vec<f32>)> {
        let [clips, keys, values] = code.0.as_slice() else { return Ok((Vec::new(), Vec::new())) };
        let proposals = means.times(clips)?;
        let cosines = cosine(queries, &proposals)?;
        let chosen = proposals.index_select(&cosines.argmax(1)?, 0)?;
        let seen = softmax(&chosen.times(&keys.t()?)?, 1)?.times(values)?;
        let frame = (l2_normalise(queries)? * l2_normalise(&seen)?)?.sum(1)?;
        Ok((cosines.to_vec2()?, frame.to_vec1()?))
    }

    fn answers(&self, queries: &Tensor, videos: &[&Code]) -> Result<Vec<Vec<Answer>>> {
        let share = self.config.clip_share as f32;
        let spans: Vec<NormSpan> = self.windows.iter().filter_map(|w| window_span(*w, self.config.pieces)).collect();
        let means = window_means(&self.windows, self.config.pieces, queries.device())?;
        let mut answers = vec![Vec::with_capacity(videos.len()); queries.dim(0)?];
        for code in videos {
            let (clips, frames) = self.score_video(queries, &means, code)?;
            for ((answers, clips), frame) in answers.iter_mut().zip(clips).zip(frames) {
                let scored = |(span, clip): (&NormSpan, f32)| Proposal {
                    span: *span,
                    score: share * clip + (1.0 - share) * frame,
                };
                let mut moments: Vec<Proposal> = spans.iter().zip(clips).map(scored).collect();
                moments.sort_by(|a, b| b.score.total_cmp(&a.score));
                moments.truncate(KEPT);
                answers.push(Answer { video_score: moments.first().map_or(0.0, |best| best.score), moments });
            }
        }
        Ok(answers)
    }

    /// Clips before pooling, and keys and values of the real frames.
    fn codes(&self, context: &Context, lengths: &[usize]) -> Result<Vec<Code>> {
        let of = |(video, length): (usize, &usize)| {
            let frames = context.frames.get(video)?.narrow(0, 0, (*length).min(context.frames.dim(1)?))?;
            let parts = [context.clips.get(video)?, self.key.forward(&frames)?, self.value.forward(&frames)?];
            Ok(Code(parts.map(|part| part.detach()).to_vec()))
        };
        lengths.iter().enumerate().map(of).collect()
    }
}

/// What `length` rows must be multiplied with to give `pieces` means, `[pieces, rows]`: bins between rounded edges that never
/// reach past the last row; an empty bin is the row it begins at.
fn averaging(length: usize, rows: usize, pieces: usize, device: &Device) -> Result<Tensor> {
    let last = length.saturating_sub(1);
    let edge = |piece: usize| ((piece as f64 / pieces as f64 * length as f64).round_ties_even() as usize).min(last);
    let bin = |piece: usize| ClipRange::new(edge(piece), edge(piece + 1).max(edge(piece) + 1));
    let bins: Vec<ClipRange> = (0..pieces).filter_map(bin).collect();
    Ok(window_means(&bins, rows, device)?)
}

/// `x / (‖x‖ + 1e-5)` along the last axis.
fn unit_rows(x: &Tensor) -> Result<Tensor> {
    let norm = (x.sqr()?.sum_keepdim(D::Minus1)?.sqrt()? + 1e-5)?;
    Ok(x.broadcast_div(&norm)?)
}

/// 1 where a query belongs to a video, `[queries, videos]`.
fn belongs(own: &[usize], like: &Tensor) -> Result<Tensor> {
    let (queries, videos) = like.dims2()?;
    let mut values = vec![0f32; queries * videos];
    own.iter().enumerate().for_each(|(query, video)| values[query * videos + video] = 1.0);
    Ok(Tensor::from_vec(values, (queries, videos), like.device())?)
}

/// Each query against all videos, and the sentences of each video together against those of all.
fn clip_nce(products: &Tensor, own: &[usize]) -> Result<Tensor> {
    let keep = belongs(own, products)?;
    let queries = (products.log_sum_exp(1)? - (products * &keep)?.sum(1)?)?.mean_all()?;
    let true_ones = mask_out(products, &keep, NOT_THERE)?.log_sum_exp(0)?;
    Ok((queries + (products.log_sum_exp(0)? - true_ones)?.mean_all()?)?)
}

/// Each video's mean score with its sentences against one of other videos, and each query's video against another.
fn clip_triplet(rule: &DrawnNegatives, scores: &Tensor, own: &[usize], ranks: &Ranks) -> Result<Tensor> {
    let queries = rule.loss(scores, &own.iter().map(|video| vec![*video]).collect::<Vec<_>>(), &ranks.videos)?;
    let keep = belongs(own, scores)?;
    let means = ((scores * &keep)?.sum(0)? / keep.sum(0)?.maximum(1.0)?)?;
    let sentences = scores.t()?.contiguous()?;
    let (videos, _) = sentences.dims2()?;
    let of = |video: usize| (0..own.len()).filter(|query| own[*query] == video).collect::<Vec<_>>();
    let positives: Vec<Vec<usize>> = (0..videos).map(of).collect();
    let others = DrawnNegatives::others(&sentences, &positives, &ranks.sentences)?;
    let counts: Vec<f32> = others.iter().map(|other| f32::from(u8::from(other.is_some()))).collect();
    let others: Vec<u32> = others.iter().map(|other| other.unwrap_or(0) as u32).collect();
    let others = sentences.gather(&Tensor::from_vec(others, (videos, 1), scores.device())?, 1)?.squeeze(1)?;
    let counts = Tensor::from_vec(counts, videos, scores.device())?;
    let videos = (rule.compare(&means, &others)? * counts)?.mean_all()?;
    Ok((queries.mean_all()? + videos)?)
}

/// Each query with its own frames against its row and column together; the true entry stands twice below, as published.
fn frame_nce(products: &Tensor) -> Result<Tensor> {
    let all = Tensor::cat(&[products, &products.t()?.contiguous()?], 1)?.log_sum_exp(1)?;
    let own: Vec<usize> = (0..products.dim(0)?).collect();
    Ok((all - (products * belongs(&own, products)?)?.sum(1)?)?.mean_all()?)
}

impl Model for MsSl {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBinsIfLonger { rows: self.config.frames },
            batch_by: BatchBy::Videos,
            spans: false,
            ..Input::pairs(self.config.frames)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let queries = self.queries(&batch.queries.words, &batch.queries.mask, pass)?;
        let context = self.context_of(&batch.videos, pass)?;
        let own = &batch.queries.video;
        let ranks = self.draw_ranks(own, batch.videos.ids.len(), pass);
        let losses = self.losses(&queries, &context, own, &ranks)?;
        let total = self.total(&losses)?;
        let parts = vec![
            ("clip_contrast", losses.clip_nce),
            ("clip_ranking", losses.clip_triplet),
            ("frame_contrast", losses.frame_nce),
            ("frame_ranking", losses.frame_triplet),
        ];
        Ok(Loss { total, parts })
    }

    /// The best pooled clips of the video: coarse, and all that a model without spans can say.
    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let codes = self.encode(&batch.videos)?;
        let of = |(query, video): (usize, &usize)| {
            let answers = self.search(&batch.queries.select(&[query])?, &[&codes[*video]])?;
            Ok(answers.into_iter().flatten().next().unwrap_or_default().moments)
        };
        batch.queries.video.iter().enumerate().map(of).collect()
    }

    fn corpus(&self) -> Option<&dyn Corpus> {
        Some(self)
    }

    fn bi_encoder(&self) -> Option<&dyn BiEncoder> {
        Some(self)
    }
}

impl Corpus for MsSl {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        self.codes(&self.context_of(videos, &Pass::answering())?, &videos.lengths)
    }

    fn score_videos(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Option<Vec<Vec<f32>>>> {
        let answers = self.search(queries, videos)?;
        Ok(Some(answers.into_iter().map(|row| row.iter().map(|answer| answer.video_score).collect()).collect()))
    }

    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<Answer>>> {
        let queries = self.queries(&queries.words, &queries.mask, &Pass::answering())?;
        self.answers(&queries, videos)
    }
}

/// Moments are the pooled clips; their products with queries are the clip scores.
impl BiEncoder for MsSl {
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let context = self.context_of(videos, &Pass::answering())?;
        let spans: Vec<NormSpan> = self.windows.iter().filter_map(|w| window_span(*w, self.config.pieces)).collect();
        let of = |video: usize| {
            let embeddings = l2_normalise(&context.proposals.get(video)?)?.detach();
            Ok(Moments { spans: spans.clone(), embeddings })
        };
        (0..videos.ids.len()).map(of).collect()
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        Ok(l2_normalise(&self.queries(&queries.words, &queries.mask, &Pass::answering())?)?.detach())
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = MsSlConfig {
        pieces: fixture.number("map_size")?,
        frames: fixture.number("max_ctx_l")?,
        words: fixture.number("max_desc_l")?,
        hidden: fixture.number("hidden_size")?,
        heads: fixture.number("n_heads")?,
        ranking: Ranking { margin: fixture.real("margin")?, ..Ranking::default() },
        clip_contrast: fixture.real("clip_nce_weight")?,
        frame_contrast: fixture.real("frame_nce_weight")?,
        clip_share: fixture.real("inference_weights.clip")?,
        ..MsSlConfig::default()
    };
    let (words, frames) = (fixture.input("query_feat")?, fixture.input("frame_video_feat")?);
    let net = MsSl::new(&config, &Given::widths(frames.dim(2)?, words.dim(2)?, 0), vb.clone())?;
    let pass = Pass::answering();
    let queries = net.queries(&words, &fixture.input("query_mask")?, &pass)?;
    let mask = fixture.input("frame_video_mask")?;
    let context = net.context(&fixture.input("clip_video_feat")?, &frames, &mask, &pass)?;
    let own = fixture.counts("query_labels")?;
    let (cosines, best, products) = MsSl::clip_scores(&queries, &context.proposals)?;
    let seen = net.attend_own(&context, &best, &own)?;

    let mut trace = Trace::new();
    trace.out("query", &queries);
    trace.out("proposal_feat", &context.proposals);
    trace.out("frame_feat", &context.frames);
    trace.out("key_clip_index", &best);
    trace.out("clip_scores", &cosines);
    trace.out("clip_scores_unnorm", &products);
    trace.out("frame_scores", &cosine(&queries, &seen)?);
    trace.out("frame_scores_unnorm", &queries.times(&seen.t()?)?);
    let codes = net.codes(&context, &fixture.lengths("frame_video_mask")?)?;
    let (mut clips, mut attended, mut scores) = (Vec::new(), Vec::new(), Vec::new());
    let means = window_means(&net.windows, config.pieces, queries.device())?;
    for code in &codes {
        let (cosines, frames) = net.score_video(&queries, &means, code)?;
        clips.push(cosines.iter().map(|row| row.iter().copied().fold(f32::MIN, f32::max)).collect::<Vec<f32>>());
        attended.push(frames);
    }
    for answers in net.answers(&queries, &codes.iter().collect::<Vec<_>>())? {
        scores.push(answers.iter().map(|answer| answer.video_score).collect::<Vec<f32>>());
    }
    trace.out("inf_clip_scores", &Tensor::new(clips, &Device::Cpu)?.t()?);
    trace.out("inf_frame_scores", &Tensor::new(attended, &Device::Cpu)?.t()?);
    trace.out("inf_scores", &Tensor::new(scores, &Device::Cpu)?);

    // The fixture counts sentences of other videos from 0, everything else from 1.
    let drawn = Ranks {
        sentences: fixture.counts("v2t_neg_rank")?.into_iter().map(|rank| rank + 1).collect(),
        videos: fixture.counts("t2v_neg_rank")?,
        frames: [fixture.counts("frame_neg_rank_ctx")?, fixture.counts("frame_neg_rank_q")?],
    };
    let losses = net.losses(&queries, &context, &own, &drawn)?;
    let ones = |count: usize| vec![1; count];
    let hardest =
        Ranks { sentences: ones(codes.len()), videos: ones(own.len()), frames: [ones(own.len()), ones(own.len())] };
    let hard = net.losses(&queries, &context, &own, &hardest)?;
    trace.loss("clip_nce", &(&losses.clip_nce * config.clip_contrast)?);
    trace.loss("frame_nce", &(&losses.frame_nce * config.frame_contrast)?);
    trace.loss("clip_triplet", &losses.clip_triplet);
    trace.loss("frame_triplet", &losses.frame_triplet);
    trace.loss("clip_triplet_hard", &hard.clip_triplet);
    trace.loss("frame_triplet_hard", &hard.frame_triplet);
    trace.loss("total", &net.total(&losses)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::Params;

    use super::*;
    use crate::testing::{TOY, gap, overfit};
    use crate::{Ask, find};

    fn config() -> MsSlConfig {
        MsSlConfig { pieces: 4, frames: 12, words: 8, hidden: 16, heads: 2, dropout: 0.0, ..MsSlConfig::default() }
    }

    fn net() -> MsSl {
        MsSl::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_pooled_clip_is_proposed_once() {
        let ranked = net().propose(&TOY.batch(1)).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 10);
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padding_changes_nothing() {
        let batch = TOY.batch(1);
        let loss = |batch: &Batch| net().loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&batch.with_longer_words(2).with_longer_videos(3))) < 1e-5);
    }

    #[test]
    fn spans_are_never_read() {
        let batch = TOY.batch(1);
        let without = Batch { targets: None, ..batch.clone() };
        let loss = |batch: &Batch| net().loss(batch, &Pass::answering()).unwrap().total;
        assert_eq!(gap(&loss(&batch), &loss(&without)), 0.0);
    }

    #[test]
    fn pieces_are_means_between_rounded_edges() {
        // Six rows into four pieces: edges 0, 2 (1.5 rounds to even), 3, 4 (4.5), 5, so bins 0..2, 2..3, 3..4, 4..5.
        let matrix = averaging(6, 7, 4, &Device::Cpu).unwrap().to_vec2::<f32>().unwrap();
        let rows: Vec<Vec<usize>> =
            matrix.iter().map(|row| (0..7).filter(|column| row[*column] > 0.0).collect()).collect();
        assert_eq!(rows, [vec![0, 1], vec![2], vec![3], vec![4]]);
        assert_eq!(averaging(1, 1, 3, &Device::Cpu).unwrap().to_vec2::<f32>().unwrap(), [[1.0], [1.0], [1.0]]);
    }

    #[test]
    fn one_batch_of_videos_can_be_told_apart() {
        let batch = TOY.batch(1);
        let build =
            |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(MsSl::new(&config(), &TOY.given(), vb)?)) };
        let (model, first, last) = overfit(build, &batch, 150, 5e-3);
        assert!(last < 0.5 * first, "{first} to {last}");
        let corpus = model.corpus().unwrap();
        let codes = corpus.encode(&batch.videos).unwrap();
        let codes: Vec<&Code> = codes.iter().collect();
        let found = find(corpus, &batch.queries, &codes, &Ask { videos: 2, moments: 5, first_stage: None }).unwrap();
        for (query, found) in found.iter().enumerate() {
            assert_eq!(found.videos[0].video, query);
        }
    }
}
