//! CONQUER: re-ranks the videos of a first stage, fusing video and subtitle by weights that the query chooses.
//! Hou et al., "CONQUER: Contextual Query-aware Ranking for Video Corpus Moment Retrieval", ACM MM 2021.
//!
//! Queries and videos are always padded to `words` and `clips`, as published: the fusion weights count padded words and the
//! video score looks at padded clips. Differs from the published code: without a first stage (`data.first_stage`) other
//! videos of the batch stand in for its negatives; without subtitles there is nothing to fuse. As a ranked model the losses of each query are
//! weighted by its relevance where batches carry it.

mod answers;
mod blocks;
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
use cuemark_tensor::functional::{mask_out, softmax};

use crate::layers::{EndClip, InputProjection, NOT_THERE, bert_table, fit_steps};
use crate::losses::index_entropy;
use crate::{
    Batch, Corpus, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision,
    Targets, Task, VideoBatch,
};

use answers::{CHUNK, Logits};
use blocks::{BertLayer, ClipScore, Embeddings, Reader, Subtitle, VideoScoreHead, run};
pub use config::{ConquerConfig, Layers, Measure};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "conquer",
    title: "CONQUER",
    paper: "Hou et al., CONQUER: Contextual Query-aware Ranking for Video Corpus Moment Retrieval, ACM MM 2021",
    family: Family::Corpus,
    tasks: &[Task::SingleVideo, Task::Corpus, Task::Ranked],
    supervision: Supervision::Full,
    idea: "reads the videos of a first stage together with the query and ranks moments over all of them",
    full_sizes: &[
        FullSize { dataset: "tvr", settings: "subtitle = 768", visual: 4352, words: 768, millions: None },
        FullSize { dataset: "tvr-ranking", settings: "subtitle = 768", visual: 4352, words: 768, millions: None },
    ],
    build: |settings, given, vb| Ok(Box::new(Conquer::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<ConquerConfig>(),
    check: check::check,
};

/// What replaces the logit of a clip that is not there.
const NO_CLIP: f64 = -1e4;

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

impl Conquer {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for subtitles of another width than the data's.
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
            normalise_words: Some(Normalise::None), // queries and subtitles are read as RoBERTa left them
            resample: Resample::Cut { rows: self.config.clips },
            ..Input::pairs(self.config.clips)
        }
    }

    fn first_stage_negatives(&self) -> usize {
        self.config.negatives
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
