//! ReLoCLNet: XML with one more encoder per stream and two contrastive losses on the layer between.
//! Zhang et al., "Video Corpus Moment Retrieval with Contrastive Learning", SIGIR 2021; ranked after Liang et al.,
//! "TVR-Ranking", 2024; on single videos after Chae et al., "Towards a Complete Benchmark on Video Moment Localization", 2024.
//!
//! One network for the three. Without subtitles the second stream reads the video once more, as on single videos. Where
//! batches carry relevance, all losses of a query but the hinges are weighted by it, as the ranked model's released code
//! does; `positive_mask` adds what its paper says: all videos that answer a query stand in the numerator of the
//! video-level loss, and none of them is drawn as a negative.
//! Clips are as long as the video and its rows say, where the benchmark on single videos assumes five seconds.

mod check;
mod config;
mod contrast;
#[cfg(test)]
mod tests;

use candle_core::Tensor;
use candle_nn::{Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::cosine;

use crate::layers::{
    CurveRules, Heads, InputProjection, LayerNorm, Linear, Positions, SelfAttention, SimilarityCurve, StreamQuery,
    WordPooling, bert_linear, clip_endpoints, fit_steps, of_stream, pair_bias, stream_moments, unit_queries,
};
use crate::{
    Batch, BiEncoder, Code, Corpus, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Moments,
    Proposal, QueryBatch, Result, Supervision, Task, VideoAnswer, VideoBatch,
};

pub use config::ReLoClNetConfig;
use contrast::{best_clips, clips_inside};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "reloclnet",
    title: "ReLoCLNet",
    paper: "Zhang et al., Video Corpus Moment Retrieval with Contrastive Learning, SIGIR 2021",
    family: Family::Corpus,
    tasks: &[Task::SingleVideo, Task::Corpus, Task::Ranked],
    supervision: Supervision::Full,
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
    build: |settings, given, vb| Ok(Box::new(ReLoClNet::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<ReLoClNetConfig>(),
    check: check::check,
};

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

impl ReLoClNet {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for subtitles of another width than the data's.
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

    fn context_of(&self, videos: &VideoBatch, pass: &Pass) -> Result<Context> {
        self.context(&videos.visual, videos.subtitle.as_ref(), &videos.mask, pass)
    }

    fn lengths(&self, videos: &VideoBatch) -> Vec<usize> {
        videos.lengths.iter().map(|length| (*length).min(self.config.clips)).collect()
    }
}

impl ReLoClNet {
    fn rules(&self) -> CurveRules {
        CurveRules { pairs: self.config.pairs, end_clip: self.config.end_clip, sharpness: self.config.sharpness }
    }

    /// A vector per stream, `[queries, streams, hidden]`.
    fn query_vectors(&self, queries: &QueryBatch) -> Result<Tensor> {
        self.queries(&queries.words, &queries.mask, &Pass::answering())
    }

    /// The vector of one stream that the curve is made with, `[queries, hidden]`.
    fn curve_query(&self, vectors: &Tensor, stream: usize) -> Result<Tensor> {
        Ok(self.streams[stream].query.forward(&of_stream(vectors, stream)?)?)
    }

    /// What queries ask of every stream.
    fn stream_queries(&self, vectors: &Tensor) -> Result<Vec<StreamQuery>> {
        StreamQuery::of_streams(vectors, |stream| self.curve_query(vectors, stream))
    }
}

impl Corpus for ReLoClNet {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let last = self.context_of(videos, &Pass::answering())?.last;
        Ok(self.curve.encode(&last, &last, &self.lengths(videos))?)
    }

    fn score_videos(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Option<Vec<Vec<f32>>>> {
        let asked = self.stream_queries(&self.query_vectors(queries)?)?;
        Ok(Some(SimilarityCurve::score_videos(&asked, videos)?))
    }

    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<VideoAnswer>>> {
        let asked = self.stream_queries(&self.query_vectors(queries)?)?;
        let scores = SimilarityCurve::score_videos(&asked, videos)?;
        Ok(self.curve.search(&asked, videos, &scores, &self.rules())?)
    }

    fn search_after(
        &self,
        queries: &QueryBatch,
        videos: &[&Code],
        first: &[Vec<f32>],
    ) -> Result<Vec<Vec<VideoAnswer>>> {
        let asked = self.stream_queries(&self.query_vectors(queries)?)?;
        Ok(self.curve.search(&asked, videos, first, &self.rules())?)
    }
}

/// Moments are windows of 1, 2, 4, … clips; products of unit vectors are the mean of the streams' cosines.
impl BiEncoder for ReLoClNet {
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let last = self.context_of(videos, &Pass::answering())?.last;
        Ok(stream_moments(&last, &self.lengths(videos))?)
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        Ok(unit_queries(&self.query_vectors(queries)?)?)
    }
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
