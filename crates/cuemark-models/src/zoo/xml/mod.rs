//! XML: query and clips meet only as vectors; the best clip scores a video, two filters over the curve of products find
//! the moment. Lei et al., "TVR: A Large-Scale Dataset for Video-Subtitle Moment Retrieval", ECCV 2020.
//!
//! Differs from the published code: an end clip is the last one of the moment both in labels and in answers
//! (`end_clip = "after-then-last"` is the published rule, whose answers end up to a clip late), and videos are always padded
//! to `clips`, so that what the filters see past a video's end does not depend on its neighbours in the batch.
//! As a ranked model: where batches carry relevance, the span loss of each query is weighted by it; where they carry all
//! videos that answer a query and `positive_mask` is on, none of them is drawn as a negative.

mod check;
mod config;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{cosine, mask_out};

use crate::layers::{
    CurveRules, Heads, InputProjection, LayerNorm, Linear, NOT_THERE, Positions, SelfAttention, SimilarityCurve,
    StreamQuery, WordPooling, bert_linear, clip_endpoints, fit_steps, of_stream, pair_bias, stream_moments,
    unit_queries,
};
use crate::losses::index_entropy;
use crate::{
    Batch, BiEncoder, Code, Corpus, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Moments,
    Proposal, QueryBatch, Result, Supervision, Task, VideoAnswer, VideoBatch,
};

pub use config::XmlConfig;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "xml",
    title: "XML",
    paper: "Lei et al., TVR: A Large-Scale Dataset for Video-Subtitle Moment Retrieval, ECCV 2020",
    family: Family::Corpus,
    tasks: &[Task::SingleVideo, Task::Corpus, Task::Ranked],
    supervision: Supervision::Full,
    idea: "scores videos by their best clip and finds the moment with two filters over the query-clip similarity curve",
    full_sizes: &[
        FullSize { dataset: "tvr", settings: "subtitle = 768", visual: 3072, words: 768, millions: None },
        FullSize { dataset: "tvr-ranking", settings: "subtitle = 768", visual: 3072, words: 768, millions: None },
    ],
    build: |settings, given, vb| Ok(Box::new(Xml::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<XmlConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Xml {
    config: XmlConfig,
    query_project: InputProjection,
    query_positions: Positions,
    query_encoder: SelfAttention,
    pooling: WordPooling,
    clip_positions: Positions,
    streams: Vec<Stream>,
    curve: SimilarityCurve,
}

/// One of video and subtitle.
#[derive(Debug)]
struct Stream {
    project: InputProjection,
    first: SelfAttention,
    /// Attention to the other stream; one stream alone has a third encoder instead.
    cross: Option<(Heads, LayerNorm)>,
    second: SelfAttention,
    third: Option<SelfAttention>,
    query: Linear,
}

/// Videos as the model sees them: per stream `[videos, clips, hidden]`.
struct Context {
    first: Vec<Tensor>,
    second: Vec<Tensor>,
    mask: Tensor,
}

impl Xml {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for subtitles of another width than the data's.
    pub fn new(config: &XmlConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let XmlConfig { hidden, heads, dropout, .. } = *config;
        let subtitle = config.subtitle.unwrap_or(given.subtitle);
        if given.subtitle > 0 && subtitle > 0 && subtitle != given.subtitle {
            let problem = format!("`subtitle` is {subtitle} and the data's are {} wide", given.subtitle);
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let attention = |name: &str| SelfAttention::new(hidden, heads, dropout, vb.pp(name));
        let alone = subtitle == 0;
        let stream = |name: &str, width: usize| -> Result<Stream> {
            let width = width + if config.endpoints { 2 } else { 0 };
            let cross = || -> Result<(Heads, LayerNorm)> {
                let heads = Heads::new(hidden, heads, dropout, vb.pp(format!("{name}_cross_att")))?;
                Ok((heads, LayerNorm::new(hidden, 1e-5, vb.pp(format!("{name}_cross_layernorm")))?))
            };
            Ok(Stream {
                project: InputProjection::new(width, hidden, dropout, vb.pp(format!("{name}_input_proj")))?,
                first: attention(&format!("{name}_encoder1"))?,
                cross: if alone { None } else { Some(cross()?) },
                second: attention(&format!("{name}_encoder2"))?,
                third: if alone { Some(attention(&format!("{name}_encoder3"))?) } else { None },
                query: bert_linear(hidden, hidden, vb.pp(format!("{name}_query_linear")))?,
            })
        };
        let mut streams = vec![stream("video", given.visual)?];
        if !alone {
            streams.push(stream("sub", subtitle)?);
        }
        Ok(Self {
            query_project: InputProjection::new(given.words, hidden, dropout, vb.pp("query_input_proj"))?,
            query_positions: Positions::new(config.words, hidden, dropout, vb.pp("query_pos_embed"))?,
            query_encoder: attention("query_encoder")?,
            pooling: WordPooling::new(hidden, streams.len(), vb.pp("modular_vector_mapping"))?,
            clip_positions: Positions::new(config.clips, hidden, dropout, vb.pp("ctx_pos_embed"))?,
            curve: SimilarityCurve::new(config.kernel, if alone { "video" } else { "merged" }, vb.clone())?,
            streams,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - words `[queries, words, d_word]`, mask `[queries, words]`
    /// - returns words `[queries, words, hidden]`, a vector per stream `[queries, streams, hidden]`, weights of words
    fn queries(&self, words: &Tensor, mask: &Tensor, pass: &Pass) -> Result<(Tensor, Tensor, Tensor)> {
        let most = self.config.words.min(words.dim(1)?);
        let (words, mask) = (fit_steps(words, most)?, fit_steps(mask, most)?);
        let x = self.query_positions.forward(&self.query_project.forward(&words, pass)?, pass)?;
        let x = self.query_encoder.forward(&x, Some(&mask), pass)?;
        let (vectors, weights) = self.pooling.forward(&x, &mask)?;
        Ok((x, vectors, weights))
    }

    /// # Shapes
    /// - visual `[videos, clips, d_visual]`, subtitle `[videos, clips, d_subtitle]`, mask `[videos, clips]`
    fn context(&self, visual: &Tensor, subtitle: Option<&Tensor>, mask: &Tensor, pass: &Pass) -> Result<Context> {
        let clips = self.config.clips;
        let mask = fit_steps(mask, clips)?;
        let lengths: Vec<usize> = mask.sum(1)?.to_vec1::<f32>()?.into_iter().map(|length| length as usize).collect();
        let inputs: Vec<&Tensor> = std::iter::once(visual).chain(subtitle).collect();
        if inputs.len() < self.streams.len() {
            return Err(ModelError::Missing { model: CARD.name, what: "subtitle features" });
        }
        let mut first = Vec::new();
        for (stream, input) in self.streams.iter().zip(inputs) {
            let mut x = fit_steps(input, clips)?;
            if self.config.endpoints {
                x = Tensor::cat(&[&x, &clip_endpoints(&lengths, &x)?], 2)?;
            }
            let x = self.clip_positions.forward(&stream.project.forward(&x, pass)?, pass)?;
            first.push(stream.first.forward(&x, Some(&mask), pass)?);
        }
        let mut second = Vec::new();
        for (number, stream) in self.streams.iter().enumerate() {
            let mut x = first[number].clone();
            if let Some((heads, norm)) = &stream.cross {
                let seen = heads.forward(&x, &first[1 - number], Some(&pair_bias(&mask, &mask)?), pass)?;
                x = norm.forward(&(seen + x)?)?;
            }
            x = stream.second.forward(&x, Some(&mask), pass)?;
            second.push(match &stream.third {
                Some(third) => third.forward(&x, Some(&mask), pass)?,
                None => x,
            });
        }
        Ok(Context { first, second, mask })
    }

    /// The best cosine over clips, mean of the streams, `[queries, videos]`.
    fn scores(&self, queries: &Tensor, context: &Context) -> Result<Tensor> {
        let (videos, clips) = context.mask.dims2()?;
        let of = |(number, rows): (usize, &Tensor)| -> Result<Tensor> {
            let cosines = cosine(&of_stream(queries, number)?, &rows.flatten_to(1)?)?.reshape(((), videos, clips))?;
            Ok(mask_out(&cosines, &context.mask.unsqueeze(0)?, NOT_THERE)?.max(D::Minus1)?)
        };
        let scores = context.first.iter().enumerate().map(of).collect::<Result<Vec<_>>>()?;
        Ok(Tensor::stack(&scores, 0)?.mean(0)?)
    }

    /// Start and end logits of every query in its own video, `[queries, clips]`.
    fn own_logits(&self, queries: &Tensor, context: &Context) -> Result<(Tensor, Tensor)> {
        let of = |(number, rows): (usize, &Tensor)| -> Result<Tensor> {
            Ok(rows.broadcast_mul(&self.curve_query(queries, number)?.unsqueeze(1)?)?.sum(2)?)
        };
        let curves = context.second.iter().enumerate().map(of).collect::<Result<Vec<_>>>()?;
        Ok(self.curve.logits(&Tensor::stack(&curves, 0)?.mean(0)?, &context.mask)?)
    }

    /// Start and end logits of every query in every video, `[queries, videos, clips]`.
    fn all_logits(&self, queries: &Tensor, context: &Context) -> Result<(Tensor, Tensor)> {
        let (videos, clips) = context.mask.dims2()?;
        let of = |(number, rows): (usize, &Tensor)| -> Result<Tensor> {
            let products = self.curve_query(queries, number)?.times(&rows.flatten_to(1)?.t()?)?;
            Ok(products.reshape(((), videos, clips))?)
        };
        let curves = context.second.iter().enumerate().map(of).collect::<Result<Vec<_>>>()?;
        Ok(self.curve.logits(&Tensor::stack(&curves, 0)?.mean(0)?, &context.mask.unsqueeze(0)?)?)
    }

    fn context_of(&self, videos: &VideoBatch, pass: &Pass) -> Result<Context> {
        self.context(&videos.visual, videos.subtitle.as_ref(), &videos.mask, pass)
    }

    fn lengths(&self, videos: &VideoBatch) -> Vec<usize> {
        videos.lengths.iter().map(|length| (*length).min(self.config.clips)).collect()
    }
}

impl Xml {
    fn rules(&self) -> CurveRules {
        CurveRules { pairs: self.config.pairs, end_clip: self.config.end_clip, sharpness: self.config.sharpness }
    }

    /// A vector per stream, `[queries, streams, hidden]`.
    fn query_vectors(&self, queries: &QueryBatch) -> Result<Tensor> {
        Ok(self.queries(&queries.words, &queries.mask, &Pass::answering())?.1)
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

impl Corpus for Xml {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let Context { first, second, .. } = self.context_of(videos, &Pass::answering())?;
        Ok(self.curve.encode(&first, &second, &self.lengths(videos))?)
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
impl BiEncoder for Xml {
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let first = self.context_of(videos, &Pass::answering())?.first;
        Ok(stream_moments(&first, &self.lengths(videos))?)
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        Ok(unit_queries(&self.query_vectors(queries)?)?)
    }
}

impl Model for Xml {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::L2Eps,
            resample: Resample::Cut { rows: self.config.clips },
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let mut targets = batch.targets(CARD.name)?.clone();
        if !self.config.positive_mask {
            targets.positives = None;
        }
        let (_, queries, _) = self.queries(&batch.queries.words, &batch.queries.mask, pass)?;
        let context = self.context_of(&batch.videos, pass)?;
        let labels = targets.spans.iter().zip(self.lengths(&batch.videos));
        let labels: Vec<(usize, usize)> = labels.map(|(span, n)| self.config.end_clip.label(*span, n)).collect();
        let span = targets.weighted_mean(&span_loss(&self.own_logits(&queries, &context)?, &labels)?)?;
        let scores = self.scores(&queries, &context)?;
        let rule = &self.config.ranking;
        let draw = || rule.draw_ranks(batch.len(), batch.len().saturating_sub(1), pass);
        let positives = [&*targets.answering_videos(), &targets.answered_queries()];
        let (videos, queries) = rule.both_ways(&scores, positives, [&draw(), &draw()])?;
        let total = (((&span * self.config.span_weight)? + &videos)? + &queries)?;
        Ok(Loss { total, parts: vec![("span", span), ("videos", videos), ("queries", queries)] })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let pass = Pass::answering();
        let (_, queries, _) = self.queries(&batch.queries.words, &batch.queries.mask, &pass)?;
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

/// Start plus end cross entropy of each query, `[queries]`.
fn span_loss(logits: &(Tensor, Tensor), labels: &[(usize, usize)]) -> Result<Tensor> {
    let (starts, ends): (Vec<usize>, Vec<usize>) = labels.iter().copied().unzip();
    Ok((index_entropy(&logits.0, &starts)? + index_entropy(&logits.1, &ends)?)?)
}
