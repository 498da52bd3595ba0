//! ReLoCLNet: XML with one more encoder per stream and two contrastive losses on the layer between.
//! Zhang et al., "Video Corpus Moment Retrieval with Contrastive Learning", SIGIR 2021; ranked after Liang et al.,
//! "TVR-Ranking", 2024; on single videos after Chae et al., "Towards a Complete Benchmark on Video Moment Localization", 2024.
//!
//! One network for the three. Without subtitles the second stream reads the video once more, as on single videos. Where
//! batches carry relevance, all losses of a query but the hinges are weighted by it, as the ranked model's released code
//! does; `positive_mask` adds what its paper says: all videos that answer a query stand in the numerator of the
//! video-level loss, and none of them is drawn as a negative.
//! Clips are as long as the video and its rows say, where the benchmark on single videos assumes five seconds.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{cosine, l2_normalise, mask_out, softplus};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    CurveRules, EndClip, Heads, InputProjection, LayerNorm, Linear, NOT_THERE, PairLimits, Positions, SelfAttention,
    SimilarityCurve, StreamQuery, WordPooling, bert_linear, clip_endpoints, fit_steps, pair_bias, stream_moments,
};
use crate::losses::{Comparison, DrawnNegatives, index_entropy};
use crate::{
    Answer, Batch, BiEncoder, Code, Corpus, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError,
    Moments, Proposal, QueryBatch, Result, Supervision, Task, VideoBatch, fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "reloclnet",
    title: "ReLoCLNet",
    paper: "Zhang et al., Video Corpus Moment Retrieval with Contrastive Learning, SIGIR 2021",
    family: Family::Corpus,
    tasks: &[Task::SingleVideo, Task::Corpus, Task::Ranked],
    supervision: Supervision::Full,
    bi_encoder: true,
    idea: "XML's dual encoder, taught by contrast between videos and between clips inside and outside the moment",
    full_sizes: &[
        FullSize {
            dataset: "tvr",
            settings: "subtitle = 768\nendpoints = true",
            visual: 3072,
            words: 768,
            millions: None,
        },
        FullSize { dataset: "tvr-ranking", settings: "subtitle = 768", visual: 1024, words: 768, millions: None },
        FullSize {
            dataset: "activitynet-captions",
            settings: "words = 64\nheads = 4",
            visual: 500,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "charades-sta",
            settings: "clips = 64\nwords = 64\nheads = 4",
            visual: 1024,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "tacos",
            settings: "clips = 200\nwords = 64\nheads = 4",
            visual: 4096,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "didemo",
            settings: "clips = 200\nwords = 64\nheads = 4",
            visual: 4096,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "youcook2",
            settings: "clips = 200\nwords = 64\nheads = 4",
            visual: 512,
            words: 300,
            millions: None,
        },
    ],
    build: |table, given, vb| Ok(Box::new(ReLoClNet::new(&read_settings("reloclnet", table)?, given, vb)?)),
    settings: |table| fill_settings::<ReLoClNetConfig>("reloclnet", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReLoClNetConfig {
    /// The most clips of a video; longer ones are averaged to them. Default: 128
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 30
    pub words: usize,
    /// Width of a clip's subtitle features. Default: that of the data; 0, or data without subtitles, reads the video twice
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<usize>,
    /// Whether every clip is told where in its video it begins and ends. Default: false
    pub endpoints: bool,
    /// Width of everything. Default: 384
    pub hidden: usize,
    /// Heads of every attention. Default: 8
    pub heads: usize,
    /// Share of values dropped while training. Default: 0.1
    pub dropout: f64,
    /// Clips that a filter sees. Default: 5
    pub kernel: usize,
    /// What the number of an end clip stands for. Default: after
    pub end_clip: EndClip,
    /// Clips between start and end of an answer. Default: 2 to 15
    pub pairs: PairLimits,
    /// How videos are told apart. Default: hinge of margin 0.1, the 20 hardest from epoch 20
    pub ranking: DrawnNegatives,
    /// Whether all videos that answer a query count as its own. Default: false
    pub positive_mask: bool,
    /// Weight of the start and end losses. Default: 0.01
    pub span_weight: f64,
    /// Weight of the loss between clips inside and outside the moment. Default: 0.03
    pub frame_weight: f64,
    /// Weight of the loss between videos on the layer between. Default: 0.03
    pub video_weight: f64,
    /// How strongly a video's score counts in its moments'. Default: 30
    pub sharpness: f64,
}

impl Default for ReLoClNetConfig {
    fn default() -> Self {
        Self {
            clips: 128,
            words: 30,
            subtitle: None,
            endpoints: false,
            hidden: 384,
            heads: 8,
            dropout: 0.1,
            kernel: 5,
            end_clip: EndClip::After,
            pairs: PairLimits { min: 2, max: 15 },
            ranking: DrawnNegatives::default(),
            positive_mask: false,
            span_weight: 0.01,
            frame_weight: 0.03,
            video_weight: 0.03,
            sharpness: 30.0,
        }
    }
}

/// The network.
#[derive(Debug)]
pub struct ReLoClNet {
    config: ReLoClNetConfig,
    query_project: InputProjection,
    query_positions: Positions,
    query_encoders: [SelfAttention; 2],
    pooling: WordPooling,
    clip_positions: Positions,
    streams: [Stream; 2],
    curve: SimilarityCurve,
}

/// One of video and subtitle.
#[derive(Debug)]
struct Stream {
    project: InputProjection,
    encoders: [SelfAttention; 3],
    cross: Heads,
    cross_norm: LayerNorm,
    query: Linear,
}

/// Videos as the model sees them: per stream `[videos, clips, hidden]`.
struct Context {
    first: Vec<Tensor>,
    middle: Vec<Tensor>,
    last: Vec<Tensor>,
    mask: Tensor,
}

/// The losses of every query, `[queries]`, before weighting.
struct PerQuery {
    start: Tensor,
    end: Tensor,
    frame: Tensor,
    video: Tensor,
}

impl ReLoClNet {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for subtitles of another width than the data's.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &ReLoClNetConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let ReLoClNetConfig { hidden, heads, dropout, .. } = *config;
        let subtitle = config.subtitle.unwrap_or(given.subtitle);
        if given.subtitle > 0 && subtitle > 0 && subtitle != given.subtitle {
            let problem = format!("`subtitle` is {subtitle} and the data's are {} wide", given.subtitle);
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let attention = |name: &str| SelfAttention::new(hidden, heads, dropout, vb.pp(name));
        let stream = |name: &str, width: usize| -> Result<Stream> {
            let width = width + if config.endpoints { 2 } else { 0 };
            let encoder = |number: usize| attention(&format!("{name}_encoder{number}"));
            Ok(Stream {
                project: InputProjection::new(width, hidden, dropout, vb.pp(format!("{name}_input_proj")))?,
                encoders: [encoder(1)?, encoder(2)?, encoder(3)?],
                cross: Heads::new(hidden, heads, dropout, vb.pp(format!("{name}_cross_att")))?,
                cross_norm: LayerNorm::new(hidden, 1e-5, vb.pp(format!("{name}_cross_layernorm")))?,
                query: bert_linear(hidden, hidden, vb.pp(format!("{name}_query_linear")))?,
            })
        };
        Ok(Self {
            query_project: InputProjection::new(given.words, hidden, dropout, vb.pp("query_input_proj"))?,
            query_positions: Positions::new(config.words, hidden, dropout, vb.pp("query_pos_embed"))?,
            query_encoders: [attention("query_encoder")?, attention("query_encoder1")?],
            pooling: WordPooling::new(hidden, 2, vb.pp("modular_vector_mapping"))?,
            clip_positions: Positions::new(config.clips, hidden, dropout, vb.pp("ctx_pos_embed"))?,
            streams: [
                stream("video", given.visual)?,
                stream("sub", if subtitle > 0 { subtitle } else { given.visual })?,
            ],
            curve: SimilarityCurve::new(config.kernel, "merged", vb.clone())?,
            config: ReLoClNetConfig { subtitle: Some(subtitle), ..config.clone() },
        })
    }

    /// # Shapes
    /// - words `[queries, words, d_word]`, mask `[queries, words]`
    /// - returns a vector per stream `[queries, 2, hidden]`
    fn queries(&self, words: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let most = self.config.words.min(words.dim(1)?);
        let (words, mask) = (fit_steps(words, most)?, fit_steps(mask, most)?);
        let mut x = self.query_positions.forward(&self.query_project.forward(&words, pass)?, pass)?;
        for encoder in &self.query_encoders {
            x = encoder.forward(&x, Some(&mask), pass)?;
        }
        Ok(self.pooling.forward(&x, &mask)?.0)
    }

    /// # Shapes
    /// - visual `[videos, clips, d_visual]`, subtitle `[videos, clips, d_subtitle]`, mask `[videos, clips]`
    fn context(&self, visual: &Tensor, subtitle: Option<&Tensor>, mask: &Tensor, pass: &Pass) -> Result<Context> {
        let clips = self.config.clips;
        let mask = fit_steps(mask, clips)?;
        let lengths: Vec<usize> = mask.sum(1)?.to_vec1::<f32>()?.into_iter().map(|length| length as usize).collect();
        let second = match (self.config.subtitle, subtitle) {
            (Some(0), _) => visual,
            (_, Some(subtitle)) => subtitle,
            (_, None) => return Err(ModelError::Missing { model: CARD.name, what: "subtitle features" }),
        };
        let enter = |stream: &Stream, input: &Tensor| -> Result<Tensor> {
            let mut x = fit_steps(input, clips)?;
            if self.config.endpoints {
                x = Tensor::cat(&[&x, &clip_endpoints(&lengths, &x)?], 2)?;
            }
            let x = self.clip_positions.forward(&stream.project.forward(&x, pass)?, pass)?;
            Ok(stream.encoders[0].forward(&x, Some(&mask), pass)?)
        };
        let first = vec![enter(&self.streams[0], visual)?, enter(&self.streams[1], second)?];
        let (mut middle, mut last) = (Vec::new(), Vec::new());
        for (number, stream) in self.streams.iter().enumerate() {
            let (own, other) = (&first[number], &first[1 - number]);
            let seen = stream.cross.forward(own, other, Some(&pair_bias(&mask, &mask)?), pass)?;
            let x = stream.cross_norm.forward(&(seen + own)?)?;
            let x = stream.encoders[1].forward(&x, Some(&mask), pass)?;
            last.push(stream.encoders[2].forward(&x, Some(&mask), pass)?);
            middle.push(x);
        }
        Ok(Context { first, middle, last, mask })
    }

    /// The best clip's cosine on the last layer, mean of the streams, `[queries, videos]`.
    fn scores(queries: &Tensor, context: &Context) -> Result<Tensor> {
        best_clips(queries, &context.last, &context.mask, |query, rows| Ok(cosine(query, rows)?))
    }

    /// The best clip's product on the layer between, mean of the streams, `[queries, videos]`.
    fn middle_scores(queries: &Tensor, context: &Context) -> Result<Tensor> {
        best_clips(queries, &context.middle, &context.mask, |query, rows| Ok(query.times(&rows.t()?)?))
    }

    /// The vector of one stream that the curve is made with, `[queries, hidden]`.
    fn curve_query(&self, queries: &Tensor, number: usize) -> Result<Tensor> {
        Ok(self.streams[number].query.forward(&of_stream(queries, number)?)?)
    }

    /// Start and end logits of every query in its own video, `[queries, clips]`.
    fn own_logits(&self, queries: &Tensor, context: &Context) -> Result<(Tensor, Tensor)> {
        let of = |number: usize| -> Result<Tensor> {
            let query = self.curve_query(queries, number)?.unsqueeze(1)?;
            Ok(context.last[number].broadcast_mul(&query)?.sum(2)?)
        };
        let curve = ((of(0)? + of(1)?)? * 0.5)?;
        Ok(self.curve.logits(&curve, &context.mask)?)
    }

    /// Start and end logits of every query in every video, `[queries, videos, clips]`.
    fn all_logits(&self, queries: &Tensor, context: &Context) -> Result<(Tensor, Tensor)> {
        let (videos, clips) = context.mask.dims2()?;
        let of = |number: usize| -> Result<Tensor> {
            Ok(self.curve_query(queries, number)?.times(&context.last[number].flatten_to(1)?.t()?)?)
        };
        let curve = ((of(0)? + of(1)?)? * 0.5)?.reshape(((), videos, clips))?;
        Ok(self.curve.logits(&curve, &context.mask.unsqueeze(0)?)?)
    }

    /// # Shapes
    /// - inside `[queries, clips]`, 1 at the clips of each query's moment; positives the videos that count as its own
    fn per_query(
        queries: &Tensor,
        context: &Context,
        logits: &(Tensor, Tensor),
        labels: &[(usize, usize)],
        inside: &Tensor,
        positives: &[Vec<usize>],
    ) -> Result<PerQuery> {
        let (starts, ends): (Vec<usize>, Vec<usize>) = labels.iter().copied().unzip();
        let frame = |number: usize| -> Result<Tensor> {
            let query = of_stream(queries, number)?.unsqueeze(1)?;
            let products = context.middle[number].broadcast_mul(&query)?.sum(2)?;
            frame_contrast(&products, inside, &context.mask)
        };
        Ok(PerQuery {
            start: index_entropy(&logits.0, &starts)?,
            end: index_entropy(&logits.1, &ends)?,
            frame: ((frame(0)? + frame(1)?)? * 0.5)?,
            video: video_contrast(&Self::middle_scores(queries, context)?, positives)?,
        })
    }

    fn weigh(&self, losses: &PerQuery) -> Result<Tensor> {
        let contrast = ((&losses.frame * self.config.frame_weight)? + (&losses.video * self.config.video_weight)?)?;
        Ok((contrast + ((&losses.start + &losses.end)? * self.config.span_weight)?)?)
    }

    fn rules(&self) -> CurveRules {
        CurveRules { pairs: self.config.pairs, end_clip: self.config.end_clip, sharpness: self.config.sharpness }
    }

    fn context_of(&self, videos: &VideoBatch, pass: &Pass) -> Result<Context> {
        self.context(&videos.visual, videos.subtitle.as_ref(), &videos.mask, pass)
    }

    fn stream_queries(&self, queries: &QueryBatch) -> Result<Vec<StreamQuery>> {
        self.stream_vectors(&self.queries(&queries.words, &queries.mask, &Pass::answering())?)
    }

    fn stream_vectors(&self, vectors: &Tensor) -> Result<Vec<StreamQuery>> {
        let of = |number: usize| {
            Ok(StreamQuery { whole: of_stream(vectors, number)?, curve: self.curve_query(vectors, number)? })
        };
        (0..2).map(of).collect()
    }

    fn lengths(&self, videos: &VideoBatch) -> Vec<usize> {
        videos.lengths.iter().map(|length| (*length).min(self.config.clips)).collect()
    }
}

/// `[queries, streams, hidden]` to the vectors of one stream, `[queries, hidden]`.
fn of_stream(queries: &Tensor, number: usize) -> Result<Tensor> {
    Ok(queries.narrow(1, number, 1)?.squeeze(1)?.contiguous()?)
}

/// The largest value over a video's clips of `compare(query, clips)`, mean of the streams, `[queries, videos]`.
fn best_clips(
    queries: &Tensor,
    streams: &[Tensor],
    mask: &Tensor,
    compare: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let (videos, clips) = mask.dims2()?;
    let of = |(number, rows): (usize, &Tensor)| -> Result<Tensor> {
        let all = compare(&of_stream(queries, number)?, &rows.flatten_to(1)?)?.reshape(((), videos, clips))?;
        Ok(mask_out(&all, &mask.unsqueeze(0)?, NOT_THERE)?.max(D::Minus1)?)
    };
    let scores = streams.iter().enumerate().map(of).collect::<Result<Vec<_>>>()?;
    Ok(Tensor::stack(&scores, 0)?.mean(0)?)
}

/// Jensen-Shannon estimate between clips inside and outside the moment, products `[queries, clips]` to `[queries]`.
fn frame_contrast(products: &Tensor, inside: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let outside = (mask - (mask * inside)?)?;
    let surprise = softplus(&products.neg()?)?;
    let mean =
        |values: &Tensor, of: &Tensor| -> Result<Tensor> { Ok(((values * of)?.sum(1)? / (of.sum(1)? + 1e-12)?)?) };
    let ln2 = std::f64::consts::LN_2;
    let (inner, outer) = (surprise.affine(-1.0, ln2)?, ((&surprise + products)? - ln2)?);
    Ok((mean(&outer, &outside)? - mean(&inner, inside)?)?)
}

/// Noise-contrastive loss of each row of a square of scores against its row and column together; the true entry stands
/// twice in the denominator, as published. With several true entries their exponentials are summed.
fn video_contrast(scores: &Tensor, positives: &[Vec<usize>]) -> Result<Tensor> {
    let (rows, columns) = scores.dims2()?;
    let mut keep = vec![0f32; rows * columns];
    for (row, positives) in positives.iter().enumerate() {
        positives.iter().filter(|column| **column < columns).for_each(|column| keep[row * columns + column] = 1.0);
    }
    let keep = Tensor::from_vec(keep, (rows, columns), scores.device())?;
    let all = Tensor::cat(&[scores, &scores.t()?.contiguous()?], 1)?.log_sum_exp(1)?;
    Ok((all - mask_out(scores, &keep, NOT_THERE)?.log_sum_exp(1)?)?)
}

/// 1 from each start to each end clip, both included, `[queries, clips]`.
fn clips_inside(labels: &[(usize, usize)], clips: usize, like: &Tensor) -> Result<Tensor> {
    let of = |(start, end): &(usize, usize)| {
        let range = *start..=*end;
        (0..clips).map(move |clip| f32::from(u8::from(range.contains(&clip))))
    };
    let values: Vec<f32> = labels.iter().flat_map(of).collect();
    Ok(Tensor::from_vec(values, (labels.len(), clips), like.device())?)
}

impl Model for ReLoClNet {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::L2Eps,
            resample: Resample::MeanBinsIfLonger { rows: self.config.clips },
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let mut targets = batch.targets(CARD.name)?.clone();
        if !self.config.positive_mask {
            targets.positives = None;
        }
        let queries = self.queries(&batch.queries.words, &batch.queries.mask, pass)?;
        let context = self.context_of(&batch.videos, pass)?;
        let labels = targets.spans.iter().zip(self.lengths(&batch.videos));
        let labels: Vec<(usize, usize)> = labels.map(|(span, n)| self.config.end_clip.label(*span, n)).collect();
        let inside = clips_inside(&labels, self.config.clips, &queries)?;
        let logits = self.own_logits(&queries, &context)?;
        let positives = targets.answering_videos();
        let losses = Self::per_query(&queries, &context, &logits, &labels, &inside, &positives)?;
        let rule = &self.config.ranking;
        let draw = || rule.draw_ranks(batch.len(), batch.len().saturating_sub(1), pass);
        let ways = [&*positives, &targets.answered_queries()];
        let (videos, queries) = rule.both_ways(&Self::scores(&queries, &context)?, ways, [&draw(), &draw()])?;
        let total = ((targets.weighted_mean(&self.weigh(&losses)?)? + &videos)? + &queries)?;
        let parts = vec![
            ("span", (losses.start + losses.end)?.mean_all()?),
            ("frame", losses.frame.mean_all()?),
            ("video", losses.video.mean_all()?),
            ("videos", videos),
            ("queries", queries),
        ];
        Ok(Loss { total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let pass = Pass::answering();
        let queries = self.queries(&batch.queries.words, &batch.queries.mask, &pass)?;
        let (starts, ends) = self.own_logits(&queries, &self.context_of(&batch.videos, &pass)?)?;
        Ok(SimilarityCurve::rank(&starts, &ends, &self.lengths(&batch.videos), &self.rules())?)
    }

    fn corpus(&self) -> Option<&dyn Corpus> {
        Some(self)
    }

    fn bi_encoder(&self) -> Option<&dyn BiEncoder> {
        Some(self)
    }
}

impl Corpus for ReLoClNet {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let context = self.context_of(videos, &Pass::answering())?;
        Ok(self.curve.encode(&context.last, &context.last, &self.lengths(videos))?)
    }

    fn score_videos(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Option<Vec<Vec<f32>>>> {
        Ok(Some(SimilarityCurve::score_videos(&self.stream_queries(queries)?, videos)?))
    }

    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<Answer>>> {
        let queries = self.stream_queries(queries)?;
        let scores = SimilarityCurve::score_videos(&queries, videos)?;
        Ok(self.curve.search(&queries, videos, &scores, &self.rules())?)
    }

    fn search_after(&self, queries: &QueryBatch, videos: &[&Code], first: &[Vec<f32>]) -> Result<Vec<Vec<Answer>>> {
        Ok(self.curve.search(&self.stream_queries(queries)?, videos, first, &self.rules())?)
    }
}

/// Moments are windows of 1, 2, 4, … clips; products of unit vectors are the mean of the streams' cosines.
impl BiEncoder for ReLoClNet {
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let context = self.context_of(videos, &Pass::answering())?;
        Ok(stream_moments(&context.last, &self.lengths(videos))?)
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        let vectors = self.queries(&queries.words, &queries.mask, &Pass::answering())?;
        Ok(l2_normalise(&l2_normalise(&vectors)?.flatten_from(1)?)?.detach())
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = ReLoClNetConfig {
        clips: fixture.number("max_ctx_l")?,
        words: fixture.number("max_desc_l")?,
        hidden: fixture.number("hidden_size")?,
        heads: fixture.number("n_heads")?,
        kernel: fixture.number("conv_kernel_size")?,
        pairs: PairLimits { min: fixture.number("pair_min")?, max: fixture.number("pair_max")? },
        ranking: DrawnNegatives {
            compare: if fixture.config("ranking_loss_type")? == "lse" { Comparison::Lse } else { Comparison::Hinge },
            margin: fixture.real("margin")?,
            ..DrawnNegatives::default()
        },
        span_weight: fixture.real("lw_st_ed")?,
        frame_weight: fixture.real("lw_fcl")?,
        video_weight: fixture.real("lw_vcl")?,
        sharpness: fixture.real("video_score_exponent")?,
        ..ReLoClNetConfig::default()
    };
    let (words, visual, subtitle) =
        (fixture.input("query_feat")?, fixture.input("video_feat")?, fixture.input("sub_feat")?);
    let given = Given { subtitle: subtitle.dim(2)?, ..Given::widths(visual.dim(2)?, words.dim(2)?, 0) };
    let net = ReLoClNet::new(&config, &given, vb.clone())?;
    let pass = Pass::answering();
    let queries = net.queries(&words, &fixture.input("query_mask")?, &pass)?;
    let context = net.context(&visual, Some(&subtitle), &fixture.input("video_mask")?, &pass)?;
    let (own, all) = (net.own_logits(&queries, &context)?, net.all_logits(&queries, &context)?);
    let scores = ReLoClNet::scores(&queries, &context)?;

    let mut trace = Trace::new();
    for (number, name) in ["video", "sub"].into_iter().enumerate() {
        trace.out(&format!("{name}_query"), &of_stream(&queries, number)?);
        trace.out(&format!("{name}_enc1"), &context.first[number]);
        trace.out(&format!("{name}_mid"), &context.middle[number]);
        trace.out(&format!("{name}_final"), &context.last[number]);
    }
    trace.out("query_context_scores", &scores);
    trace.out("mid_scores", &ReLoClNet::middle_scores(&queries, &context)?);
    trace.out_where("st_logits", &own.0, &context.mask);
    trace.out_where("ed_logits", &own.1, &context.mask);
    let everywhere = context.mask.unsqueeze(0)?.broadcast_as(all.0.shape())?.contiguous()?;
    trace.out_where("cross_st_logits", &all.0, &everywhere);
    trace.out_where("cross_ed_logits", &all.1, &everywhere);
    let lengths = fixture.lengths("video_mask")?;
    let codes = net.curve.encode(&context.last, &context.last, &lengths)?;
    let (codes, asked): (Vec<&Code>, _) = (codes.iter().collect(), net.stream_vectors(&queries)?);
    let answers = net.curve.search(&asked, &codes, &SimilarityCurve::score_videos(&asked, &codes)?, &net.rules())?;
    trace.ranked_moments("vcmr", answers, |_, video| lengths[video], config.end_clip, fixture.number("rank_size")?)?;

    let labels = fixture.counts("st_ed_indices")?;
    let labels: Vec<(usize, usize)> = labels.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let diagonal: Vec<Vec<usize>> = (0..labels.len()).map(|row| vec![row]).collect();
    let inside = fixture.input("match_labels")?;
    let losses = ReLoClNet::per_query(&queries, &context, &own, &labels, &inside, &diagonal)?;
    let ranks = [&*fixture.counts("neg_rank_ctx")?, &fixture.counts("neg_rank_q")?];
    let (videos, columns) = config.ranking.both_ways(&scores, [&diagonal, &diagonal], ranks)?;
    let hinges = ((&videos * fixture.real("lw_neg_ctx")?)? + (&columns * fixture.real("lw_neg_q")?)?)?;
    let mut weighed = net.weigh(&losses)?;
    if fixture.variant() == Some("ranking") {
        weighed = (weighed * fixture.input("simi")?)?;
        trace.loss("st_per_sample", &losses.start);
        trace.loss("ed_per_sample", &losses.end);
        trace.loss("fcl_per_sample", &losses.frame);
        trace.loss("vcl_per_sample", &losses.video);
        let mask = fixture.input("positive_pair_mask")?.to_vec2::<f32>()?;
        let true_ones = |row: &Vec<f32>| (0..row.len()).filter(|column| row[*column] > 0.0).collect();
        let positives: Vec<Vec<usize>> = mask.iter().map(true_ones).collect();
        let masked = video_contrast(&ReLoClNet::middle_scores(&queries, &context)?, &positives)?;
        trace.loss("vcl_masked_logsumexp_per_sample", &masked);
    } else {
        trace.loss("loss_st_ed", &((&losses.start + &losses.end)?.mean_all()? * config.span_weight)?);
        trace.loss("loss_fcl", &(losses.frame.mean_all()? * config.frame_weight)?);
        trace.loss("loss_vcl", &(losses.video.mean_all()? * config.video_weight)?);
        trace.loss("loss_neg_ctx", &(videos * fixture.real("lw_neg_ctx")?)?);
        trace.loss("loss_neg_q", &(columns * fixture.real("lw_neg_q")?)?);
    }
    trace.loss("total", &(weighed.mean_all()? + hinges)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, assert_learnt_by_heart, gap, with_subtitles};
    use crate::{Ask, find};

    fn config() -> ReLoClNetConfig {
        ReLoClNetConfig {
            clips: 10,
            words: 8,
            hidden: 16,
            heads: 2,
            dropout: 0.0,
            pairs: PairLimits { min: 1, max: 7 },
            ranking: DrawnNegatives { hard_from: 100, ..DrawnNegatives::default() },
            ..ReLoClNetConfig::default()
        }
    }

    fn given(subtitle: usize) -> Given {
        Given { subtitle, ..TOY.given() }
    }

    fn net(config: &ReLoClNetConfig, subtitle: usize) -> ReLoClNet {
        ReLoClNet::new(config, &given(subtitle), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_allowed_pair_is_proposed_once_with_and_without_subtitles() {
        let batch = TOY.batch(1);
        for (batch, subtitle) in [(batch.clone(), 0), (with_subtitles(&batch, 7), 7)] {
            let ranked = net(&config(), subtitle).propose(&batch).unwrap();
            assert_eq!(ranked.len(), TOY.pairs);
            for proposals in ranked {
                assert_eq!(proposals.len(), 28);
                assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
            }
        }
    }

    #[test]
    fn padding_changes_nothing() {
        let batch = with_subtitles(&TOY.batch(1), 7);
        let net = net(&ReLoClNetConfig { endpoints: true, ..config() }, 7);
        let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&batch.with_longer_words(2).with_longer_videos(1))) < 1e-5);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart_and_searched() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| ReLoClNet::new(&config(), &given(0), vb);
        let model = assert_learnt_by_heart(build, &batch, 200, 5e-3, 0.2);
        let corpus = model.corpus().unwrap();
        let codes = corpus.encode(&batch.videos).unwrap();
        let codes: Vec<&Code> = codes.iter().collect();
        let found = find(corpus, &batch.queries, &codes, &Ask { videos: 2, moments: 9, first_stage: None }).unwrap();
        for (query, found) in found.iter().enumerate() {
            assert_eq!((found.videos[0].video, found.moments[0].video), (query, query));
        }
    }

    #[test]
    fn videos_that_answer_too_make_the_video_loss_smaller() {
        let scores = Tensor::new(&[[1f32, 2.0], [0.0, 1.0]], &Device::Cpu).unwrap();
        let one = video_contrast(&scores, &[vec![0], vec![1]]).unwrap().to_vec1::<f32>().unwrap();
        let two = video_contrast(&scores, &[vec![0, 1], vec![1]]).unwrap().to_vec1::<f32>().unwrap();
        let all = (1f32.exp() + 2f32.exp() + 1f32.exp() + 1.0).ln();
        assert!((one[0] - (all - 1.0)).abs() < 1e-5 && (two[0] - (all - (1f32.exp() + 2f32.exp()).ln())).abs() < 1e-5);
        assert_eq!(one[1], two[1]);
    }

    #[test]
    fn relevance_weighs_every_loss_but_the_hinges() {
        let mut batch = TOY.batch(1);
        let net = net(&config(), 0);
        let of = |batch: &Batch| {
            let loss = net.loss(batch, &Pass::answering()).unwrap();
            let hinges: f32 = loss.parts[3..].iter().map(|part| part.1.to_scalar::<f32>().unwrap()).sum();
            (loss.total.to_scalar::<f32>().unwrap(), hinges)
        };
        let (whole, hinges) = of(&batch);
        batch.targets.as_mut().unwrap().relevance = Some(vec![0.25; TOY.pairs]);
        assert!((of(&batch).0 - (hinges + 0.25 * (whole - hinges))).abs() < 1e-5);
    }
}
