//! XML: query and clips meet only as vectors; the best clip scores a video, two filters over the curve of products find
//! the moment. Lei et al., "TVR: A Large-Scale Dataset for Video-Subtitle Moment Retrieval", ECCV 2020.
//!
//! Differs from the published code: an end clip is the last one of the moment both in labels and in answers
//! (`end_clip = "after-then-last"` is the published rule, whose answers end up to a clip late), and videos are always padded
//! to `clips`, so that what the filters see past a video's end does not depend on its neighbours in the batch.
//! As a ranked model: where batches carry relevance, the span loss of each query is weighted by it; where they carry all
//! videos that answer a query and `positive_mask` is on, none of them is drawn as a negative.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{cosine, l2_normalise, mask_out};
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
    name: "xml",
    title: "XML",
    paper: "Lei et al., TVR: A Large-Scale Dataset for Video-Subtitle Moment Retrieval, ECCV 2020",
    family: Family::Corpus,
    tasks: &[Task::SingleVideo, Task::Corpus, Task::Ranked],
    supervision: Supervision::Full,
    bi_encoder: true,
    idea: "scores videos by their best clip and finds the moment with two filters over the query-clip similarity curve",
    full_sizes: &[
        FullSize { dataset: "tvr", settings: "subtitle = 768", visual: 3072, words: 768, millions: None },
        FullSize { dataset: "tvr-ranking", settings: "subtitle = 768", visual: 3072, words: 768, millions: None },
    ],
    build: |table, given, vb| Ok(Box::new(Xml::new(&read_settings("xml", table)?, given, vb)?)),
    settings: |table| fill_settings::<XmlConfig>("xml", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct XmlConfig {
    /// The most clips of a video; later ones are cut off. Default: 100
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 30
    pub words: usize,
    /// Width of a clip's subtitle features. Default: that of the data; 0, or data without subtitles, leaves the video alone
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<usize>,
    /// Whether every clip is told where in its video it begins and ends. Default: false
    pub endpoints: bool,
    /// Width of everything. Default: 256
    pub hidden: usize,
    /// Heads of every attention. Default: 4
    pub heads: usize,
    /// Share of values dropped while training. Default: 0.1
    pub dropout: f64,
    /// Clips that a filter sees. Default: 5
    pub kernel: usize,
    /// What the number of an end clip stands for. Default: last
    pub end_clip: EndClip,
    /// Clips between start and end of an answer. Default: 2 to 15
    pub pairs: PairLimits,
    /// How videos are told apart. Default: hinge of margin 0.1, the 20 hardest from epoch 20
    pub ranking: DrawnNegatives,
    /// Whether all videos that answer a query are kept out of its negatives. Default: false
    pub positive_mask: bool,
    /// Weight of the start and end losses. Default: 0.01
    pub span_weight: f64,
    /// How strongly a video's score counts in its moments'. Default: 20
    pub sharpness: f64,
}

impl Default for XmlConfig {
    fn default() -> Self {
        Self {
            clips: 100,
            words: 30,
            subtitle: None,
            endpoints: false,
            hidden: 256,
            heads: 4,
            dropout: 0.1,
            kernel: 5,
            end_clip: EndClip::Last,
            pairs: PairLimits { min: 2, max: 15 },
            ranking: DrawnNegatives::default(),
            positive_mask: false,
            span_weight: 0.01,
            sharpness: 20.0,
        }
    }
}

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
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
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
            let query = queries.narrow(1, number, 1)?.squeeze(1)?;
            let cosines = cosine(&query, &rows.flatten_to(1)?)?.reshape(((), videos, clips))?;
            Ok(mask_out(&cosines, &context.mask.unsqueeze(0)?, NOT_THERE)?.max(D::Minus1)?)
        };
        let scores = context.first.iter().enumerate().map(of).collect::<Result<Vec<_>>>()?;
        Ok(Tensor::stack(&scores, 0)?.mean(0)?)
    }

    /// The vector of one stream that the curve is made with, `[queries, hidden]`.
    fn curve_query(&self, queries: &Tensor, number: usize) -> Result<Tensor> {
        Ok(self.streams[number].query.forward(&queries.narrow(1, number, 1)?.squeeze(1)?)?)
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

    fn rules(&self) -> CurveRules {
        CurveRules { pairs: self.config.pairs, end_clip: self.config.end_clip, sharpness: self.config.sharpness }
    }

    fn context_of(&self, videos: &VideoBatch, pass: &Pass) -> Result<Context> {
        self.context(&videos.visual, videos.subtitle.as_ref(), &videos.mask, pass)
    }

    fn stream_queries(&self, queries: &QueryBatch) -> Result<Vec<StreamQuery>> {
        self.stream_vectors(&self.queries(&queries.words, &queries.mask, &Pass::answering())?.1)
    }

    fn stream_vectors(&self, vectors: &Tensor) -> Result<Vec<StreamQuery>> {
        let of = |number: usize| {
            let whole = vectors.narrow(1, number, 1)?.squeeze(1)?.contiguous()?;
            Ok(StreamQuery { whole, curve: self.curve_query(vectors, number)? })
        };
        (0..self.streams.len()).map(of).collect()
    }

    fn lengths(&self, videos: &VideoBatch) -> Vec<usize> {
        videos.lengths.iter().map(|length| (*length).min(self.config.clips)).collect()
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

impl Corpus for Xml {
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let context = self.context_of(videos, &Pass::answering())?;
        Ok(self.curve.encode(&context.first, &context.second, &self.lengths(videos))?)
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
impl BiEncoder for Xml {
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let context = self.context_of(videos, &Pass::answering())?;
        Ok(stream_moments(&context.first, &self.lengths(videos))?)
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        let (_, vectors, _) = self.queries(&queries.words, &queries.mask, &Pass::answering())?;
        Ok(l2_normalise(&l2_normalise(&vectors)?.flatten_from(1)?)?.detach())
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = XmlConfig {
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
        sharpness: fixture.real("video_score_exponent")?,
        ..XmlConfig::default()
    };
    let (words, visual, subtitle) =
        (fixture.input("query_feat")?, fixture.input("video_feat")?, fixture.input("sub_feat")?);
    let given = Given { subtitle: subtitle.dim(2)?, ..Given::widths(visual.dim(2)?, words.dim(2)?, 0) };
    let net = Xml::new(&config, &given, vb.clone())?;
    let pass = Pass::answering();
    let (encoded, queries, weights) = net.queries(&words, &fixture.input("query_mask")?, &pass)?;
    let context = net.context(&visual, Some(&subtitle), &fixture.input("video_mask")?, &pass)?;
    let scores = net.scores(&queries, &context)?;
    let own = net.own_logits(&queries, &context)?;
    let all = net.all_logits(&queries, &context)?;

    let mut trace = Trace::new();
    trace.out("encoded_query", &encoded);
    trace.out("modular_att", &weights);
    for (number, name) in ["video", "sub"].into_iter().enumerate() {
        trace.out(&format!("{name}_query"), &queries.narrow(1, number, 1)?.squeeze(1)?);
        trace.out(&format!("{name}_feat1"), &context.first[number]);
        trace.out(&format!("{name}_feat2"), &context.second[number]);
    }
    trace.out("query_context_scores", &scores);
    trace.out_where("st_logits", &own.0, &context.mask);
    trace.out_where("ed_logits", &own.1, &context.mask);
    let everywhere = context.mask.unsqueeze(0)?.broadcast_as(all.0.shape())?.contiguous()?;
    trace.out_where("cross_st_logits", &all.0, &everywhere);
    trace.out_where("cross_ed_logits", &all.1, &everywhere);
    let lengths = fixture.lengths("video_mask")?;
    let codes = net.curve.encode(&context.first, &context.second, &lengths)?;
    let asked = net.stream_vectors(&queries)?;
    let codes: Vec<&Code> = codes.iter().collect();
    let whole = SimilarityCurve::score_videos(&asked, &codes)?;
    let answers = net.curve.search(&asked, &codes, &whole, &net.rules())?;
    trace.ranked_moments("vcmr", answers, |_, video| lengths[video], config.end_clip, fixture.number("rank_size")?)?;
    trace.out("length_mask", &config.pairs.square(config.clips)?);

    let labels = fixture.counts("st_ed_indices")?;
    let labels: Vec<(usize, usize)> = labels.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let span = (span_loss(&own, &labels)?.mean_all()? * config.span_weight)?;
    let diagonal: Vec<Vec<usize>> = (0..labels.len()).map(|row| vec![row]).collect();
    let ranked = |videos: &str, queries: &str| -> Result<(Tensor, Tensor)> {
        let ranks = [&*fixture.counts(videos)?, &fixture.counts(queries)?];
        Ok(config.ranking.both_ways(&scores, [&diagonal, &diagonal], ranks)?)
    };
    let (easy, hard) = (ranked("neg_rank_ctx", "neg_rank_q")?, ranked("hard_rank_ctx", "hard_rank_q")?);
    let (videos, queries) = ((easy.0 * fixture.real("lw_neg_ctx")?)?, (easy.1 * fixture.real("lw_neg_q")?)?);
    trace.loss("loss_st_ed", &span);
    trace.loss("loss_neg_ctx", &videos);
    trace.loss("loss_neg_q", &queries);
    trace.loss("hard_neg_ctx", &hard.0);
    trace.loss("hard_neg_q", &hard.1);
    trace.loss("total", &((span + videos)? + queries)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, assert_learnt_by_heart, gap, with_subtitles};
    use crate::{Ask, find};

    fn config() -> XmlConfig {
        let ranking = DrawnNegatives { hard_from: 100, ..DrawnNegatives::default() };
        let pairs = PairLimits { min: 1, max: 7 };
        XmlConfig { clips: 10, words: 8, hidden: 16, heads: 2, dropout: 0.0, pairs, ranking, ..XmlConfig::default() }
    }

    fn given(subtitle: usize) -> Given {
        Given { subtitle, ..TOY.given() }
    }

    fn net(config: &XmlConfig, subtitle: usize) -> Xml {
        Xml::new(config, &given(subtitle), Params::seeded(1, &Device::Cpu).builder()).unwrap()
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
                assert!(proposals.iter().all(|proposal| proposal.span.end() <= 1.0));
            }
        }
    }

    #[test]
    fn padding_changes_nothing() {
        let batch = with_subtitles(&TOY.batch(1), 7);
        let net = net(&XmlConfig { endpoints: true, ..config() }, 7);
        let pass = Pass::answering();
        let all = |batch: &Batch| {
            let (_, queries, _) = net.queries(&batch.queries.words, &batch.queries.mask, &pass).unwrap();
            let context = net.context_of(&batch.videos, &pass).unwrap();
            let (starts, _) = net.own_logits(&queries, &context).unwrap();
            (starts.narrow(1, 0, TOY.clips).unwrap(), net.scores(&queries, &context).unwrap())
        };
        let (short, long) = (all(&batch), all(&batch.with_longer_words(2).with_longer_videos(1)));
        assert!(gap(&short.0, &long.0) < 1e-5 && gap(&short.1, &long.1) < 1e-6);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart_and_searched() {
        let batch = with_subtitles(&TOY.batch(1), 7);
        let build = |vb: VarBuilder| Xml::new(&config(), &given(7), vb);
        let model = assert_learnt_by_heart(build, &batch, 200, 5e-3, 0.2);

        let corpus = model.corpus().unwrap();
        let codes = corpus.encode(&batch.videos).unwrap();
        let codes: Vec<&Code> = codes.iter().collect();
        for videos in [2, 4] {
            let ask = Ask { videos, moments: 10, first_stage: None };
            let found = find(corpus, &batch.queries, &codes, &ask).unwrap();
            for (query, found) in found.iter().enumerate() {
                assert_eq!((found.videos[0].video, found.moments[0].video), (query, query));
                assert_eq!(found.moments[0].proposal.span, model.propose(&batch).unwrap()[query][0].span);
            }
        }
    }

    #[test]
    fn relevance_weighs_spans_and_the_mask_spares_true_videos() {
        let mut batch = with_subtitles(&TOY.batch(1), 7);
        let masked = net(&XmlConfig { positive_mask: true, ..config() }, 7);
        let part = |net: &Xml, batch: &Batch, part: usize| {
            net.loss(batch, &Pass::answering()).unwrap().parts[part].1.to_scalar::<f32>().unwrap()
        };
        let (span, videos) = (part(&masked, &batch, 0), part(&masked, &batch, 1));
        let targets = batch.targets.as_mut().unwrap();
        targets.relevance = Some(vec![0.5; TOY.pairs]);
        targets.positives = Some(vec![(0..TOY.pairs).collect(); TOY.pairs]);
        assert!((part(&masked, &batch, 0) - 0.5 * span).abs() < 1e-5);
        assert!(videos > 0.0 && part(&masked, &batch, 1) == 0.0);
        assert!((part(&net(&config(), 7), &batch, 1) - videos).abs() < 1e-6);
    }

    #[test]
    fn embeddings_have_unit_length_and_their_products_are_mean_cosines() {
        let batch = with_subtitles(&TOY.batch(1), 7);
        let net = net(&config(), 7);
        let moments = net.embed_moments(&batch.videos).unwrap();
        let queries = net.embed_queries(&batch.queries).unwrap();
        assert_eq!(moments[0].embeddings.dims(), [moments[0].spans.len(), 32]);
        let codes = net.encode(&batch.videos).unwrap();
        let scores = net.score_videos(&batch.queries, &codes.iter().collect::<Vec<_>>()).unwrap().unwrap();
        // The mean over streams of the best cosines is at least that of any one clip.
        for (video, moments) in moments.iter().enumerate() {
            let clips = moments.embeddings.narrow(0, 0, TOY.clips).unwrap();
            let best = queries.times(&clips.t().unwrap()).unwrap().max(1).unwrap().to_vec1::<f32>().unwrap();
            assert!(best.iter().enumerate().all(|(query, best)| *best <= scores[query][video] + 1e-5));
        }
    }
}
