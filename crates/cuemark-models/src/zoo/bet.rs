//! BET: clips and the query apart; the query becomes a start and an end vector, and clips are compared with both.
//! Yang et al., "MVMR: Evaluating Natural Language Video Localization Bias over Multiple Reliable Videos Pool", 2023
//! (appendix; a baseline without public code).
//!
//! What the paper leaves open is chosen as the model's card chooses it; labels and loss are those of CET. In an index, a moment is
//! the vectors of its first and last clip side by side.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{l2_normalise, masked_mean};
use serde::{Deserialize, Serialize};

use super::cet::{Boundaries, Labels, Mlp, sizes_of, trace_boundaries};
use crate::check::{Fixture, Trace};
use crate::layers::{
    BertSize, EncoderLayer, Linear, TextTraining, TokenEncoder, TransformerSize, clip_span, linear_no_bias,
};
use crate::{
    Batch, BiEncoder, Code, Corpus, Family, FullSize, Given, Grid, Input, Loss, Model, ModelCard, Moments, Proposal,
    QueryBatch, Result, Supervision, Task, Text, VideoAnswer, VideoBatch,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "bet",
    title: "BET",
    paper: "Yang et al., MVMR: Evaluating Natural Language Video Localization Bias over Multiple Reliable Videos Pool, 2023",
    family: Family::Span,
    tasks: &[Task::SingleVideo, Task::Corpus],
    supervision: Supervision::Full,
    idea: "clips and the query encoded apart; a start and an end vector of the query are compared with every clip",
    full_sizes: &[
        FullSize { dataset: "activitynet-captions", settings: "clips = 64", visual: 500, words: 0, millions: None },
        FullSize { dataset: "charades-sta", settings: "clips = 16", visual: 4096, words: 0, millions: None },
        FullSize {
            dataset: "tacos",
            settings: "clips = 128\nnms = 0.4\ntext_training = { frozen_epochs = 40 }",
            visual: 4096,
            words: 0,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Bet::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<BetConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BetConfig {
    /// Clips that every video is brought to. Default: 64
    pub clips: usize,
    /// Width of the joint space. Default: 512
    pub hidden: usize,
    /// Heads of the attention. Default: 8
    pub heads: usize,
    /// Width inside the feed-forward parts. Default: 2048
    pub ffn: usize,
    /// Layers of the transformer. Default: 6
    pub layers: usize,
    /// Layers that turn the query into a start or an end vector. Default: 3
    pub query_layers: usize,
    /// What a cosine is multiplied by before it becomes a probability. Default: 10.0
    pub scale: f64,
    /// How steeply labels fall from the boundaries. Default: 10.0
    pub power: f64,
    /// What a boundary itself is worth. Default: published
    pub labels: Labels,
    /// Overlap above which the worse of two answers is dropped. Default: 0.5
    pub nms: f64,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
    /// The sentence encoder. Default: the published DistilBERT
    pub text: BertSize,
    /// How it is trained. Default: after 4 epochs, at a tenth of the rate
    pub text_training: TextTraining,
}

impl Default for BetConfig {
    fn default() -> Self {
        Self {
            clips: 64,
            hidden: 512,
            heads: 8,
            ffn: 2048,
            layers: 6,
            query_layers: 3,
            scale: 10.0,
            power: 10.0,
            labels: Labels::Published,
            nms: 0.5,
            dropout: 0.1,
            text: BertSize::default(),
            text_training: TextTraining { frozen_epochs: 4, ..TextTraining::default() },
        }
    }
}

/// The network.
#[derive(Debug)]
pub struct Bet {
    config: BetConfig,
    text: TokenEncoder,
    core: Core,
}

/// Everything but the sentence encoder.
#[derive(Debug)]
struct Core {
    clips: Linear,
    places: Tensor,
    layers: Vec<EncoderLayer>,
    query: Linear,
    start: Mlp,
    end: Mlp,
    scale: f64,
}

/// What a query looks for, `[queries, hidden]` each.
struct Wanted {
    start: Tensor,
    end: Tensor,
}

impl Bet {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &BetConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let text = TokenEncoder::new(&config.text, given, vb.pp("text_encoder.bert"))?;
        Ok(Self { core: Core::new(config, given.visual, text.width(), &vb)?, text, config: config.clone() })
    }

    fn wanted(&self, queries: &QueryBatch, pass: &Pass) -> Result<Wanted> {
        let tokens = self.text.forward(self.text.reads(&queries.word_ids, &queries.words), &queries.mask, pass)?;
        self.core.wanted(&tokens, &queries.mask)
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Boundaries> {
        let clips = self.core.encode(&batch.videos.visual, pass)?;
        self.core.compare(&clips, &self.wanted(&batch.queries, pass)?)
    }
}

impl Core {
    fn new(config: &BetConfig, visual: usize, tokens: usize, vb: &VarBuilder) -> Result<Self> {
        let BetConfig { hidden, heads, ffn, dropout, .. } = *config;
        let size = TransformerSize { width: hidden, heads, ffn, dropout };
        let small = Init::Randn { mean: 0.0, stdev: 0.02 };
        Ok(Self {
            clips: linear_no_bias(visual, hidden, vb.pp("w_v"))?,
            places: vb.pp("pos").get_with_hints((config.clips, hidden), "weight", small)?,
            layers: (0..config.layers)
                .map(|number| EncoderLayer::new(size, vb.pp("encoder.layers").pp(number)))
                .collect::<candle_core::Result<_>>()?,
            query: linear_no_bias(tokens, hidden, vb.pp("w_q"))?,
            start: Mlp::new(config.query_layers, hidden, hidden, &vb.pp("mlp_s"))?,
            end: Mlp::new(config.query_layers, hidden, hidden, &vb.pp("mlp_e"))?,
            scale: config.scale,
        })
    }

    /// `visual [videos, clips, d_visual]` to `[videos, clips, hidden]`, without the query.
    fn encode(&self, visual: &Tensor, pass: &Pass) -> Result<Tensor> {
        let x = self.clips.forward(visual)?.broadcast_add(&self.places)?;
        Ok(self.layers.iter().try_fold(x, |x, layer| layer.forward(&x, None, None, pass))?)
    }

    /// `tokens [queries, tokens, d_token]` with `mask [queries, tokens]`.
    fn wanted(&self, tokens: &Tensor, mask: &Tensor) -> Result<Wanted> {
        let query = masked_mean(&self.query.forward(tokens)?, &mask.unsqueeze(D::Minus1)?, 1)?;
        Ok(Wanted { start: self.start.forward(&query)?, end: self.end.forward(&query)? })
    }

    /// `clips [queries, clips, hidden]`, one video for every query.
    fn compare(&self, clips: &Tensor, wanted: &Wanted) -> Result<Boundaries> {
        let clips = l2_normalise(clips)?;
        let logits = |vector: &Tensor| -> Result<Tensor> {
            Ok((clips.times(&l2_normalise(vector)?.unsqueeze(2)?)?.squeeze(2)? * self.scale)?)
        };
        Ok(Boundaries { starts: logits(&wanted.start)?, ends: logits(&wanted.end)? })
    }
}

/// Two halves of one unit vector.
fn side_by_side(start: &Tensor, end: &Tensor) -> Result<Tensor> {
    Ok((Tensor::cat(&[l2_normalise(start)?, l2_normalise(end)?], D::Minus1)? * 0.5f64.sqrt())?)
}

impl Model for Bet {
    fn input(&self) -> Input {
        Input { normalise: Normalise::None, text: Text::Tokens, ..Input::pairs(self.config.clips) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        self.of_batch(batch, pass)?.loss(batch, CARD.name, self.config.labels, self.config.power)
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        self.of_batch(batch, &Pass::answering())?.rank()
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }

    fn grid(&self) -> Option<Grid> {
        Some(Grid { clips: self.config.clips })
    }

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        self.config.text_training.factor(parameter, pass)
    }

    fn corpus(&self) -> Option<&dyn Corpus> {
        Some(self)
    }

    fn bi_encoder(&self) -> Option<&dyn BiEncoder> {
        Some(self)
    }
}

impl Corpus for Bet {
    /// The clips in the joint space, `[clips, hidden]`.
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let clips = self.core.encode(&videos.visual, &Pass::answering())?;
        (0..clips.dim(0)?).map(|video| Ok(Code(vec![clips.get(video)?]))).collect()
    }

    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<VideoAnswer>>> {
        let wanted = self.wanted(queries, &Pass::answering())?;
        let clips: Vec<&Tensor> = videos.iter().filter_map(|code| code.0.first()).collect();
        if clips.is_empty() {
            return Ok(vec![Vec::new(); queries.ids.len()]);
        }
        let clips = Tensor::stack(&clips, 0)?;
        let ask = |query: usize| -> Result<Vec<VideoAnswer>> {
            let of = |vector: &Tensor| -> Result<Tensor> {
                let one = vector.narrow(0, query, 1)?;
                Ok(one.broadcast_as((clips.dim(0)?, one.dim(1)?))?.contiguous()?)
            };
            self.core
                .compare(&clips, &Wanted { start: of(&wanted.start)?, end: of(&wanted.end)? })?
                .answers(self.config.nms)
        };
        (0..queries.ids.len()).map(ask).collect()
    }
}

impl BiEncoder for Bet {
    /// The first and the last clip side by side: the product with a query is the mean of the two cosines, which orders moments
    /// much as the product of the two probabilities does without being it; [`Corpus::search`] gives that.
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>> {
        let encoded = self.core.encode(&videos.visual, &Pass::answering())?;
        let count = encoded.dim(1)?;
        let pairs: Vec<(usize, usize)> =
            (0..count).flat_map(|first| (first..count).map(move |last| (first, last))).collect();
        let spans: Vec<NormSpan> = pairs.iter().filter_map(|(first, last)| clip_span(*first, *last, count)).collect();
        let rows = |of: fn(&(usize, usize)) -> usize| {
            Tensor::new(pairs.iter().map(|pair| of(pair) as u32).collect::<Vec<_>>(), encoded.device())
        };
        let (firsts, lasts) = (rows(|pair| pair.0)?, rows(|pair| pair.1)?);
        let of_video = |video: usize| {
            let clips = encoded.get(video)?.contiguous()?;
            let embeddings = side_by_side(&clips.index_select(&firsts, 0)?, &clips.index_select(&lasts, 0)?)?;
            Ok(Moments { spans: spans.clone(), embeddings })
        };
        (0..encoded.dim(0)?).map(of_video).collect()
    }

    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor> {
        let wanted = self.wanted(queries, &Pass::answering())?;
        side_by_side(&wanted.start, &wanted.end)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let sizes = sizes_of(fixture)?;
    let config = BetConfig {
        clips: sizes.clips,
        hidden: sizes.hidden,
        heads: sizes.heads,
        ffn: sizes.ffn,
        layers: sizes.layers,
        query_layers: sizes.score_layers,
        scale: fixture.real("r")?,
        power: sizes.power,
        dropout: 0.0,
        ..BetConfig::default()
    };
    let (visual, tokens, mask) =
        (fixture.input("video")?, fixture.input("query_tokens")?, fixture.input("query_mask")?);
    let core = Core::new(&config, visual.dim(2)?, tokens.dim(2)?, vb)?;
    let encoded = core.encode(&visual, &Pass::answering())?;
    let wanted = core.wanted(&tokens, &mask)?;

    let mut trace = Trace::new();
    trace.out("encoder_clips", &encoded);
    trace.out("start_vector", &wanted.start);
    trace.out("end_vector", &wanted.end);
    trace_boundaries(&mut trace, fixture, &core.compare(&encoded, &wanted)?, config.power)?;
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, assert_learnt_by_heart, gap};

    fn config() -> BetConfig {
        let like = super::super::cet::tests::small();
        BetConfig {
            clips: like.clips,
            hidden: like.hidden,
            heads: like.heads,
            ffn: like.ffn,
            layers: like.layers,
            power: like.power,
            labels: like.labels,
            dropout: 0.0,
            text: like.text,
            ..BetConfig::default()
        }
    }

    fn net() -> Bet {
        Bet::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn probabilities_stay_between_the_bounds_of_the_cosine() {
        let (low, high) = (1.0 / (1.0 + 10f32.exp()), 1.0 / (1.0 + (-10f32).exp()));
        for proposals in net().propose(&TOY.batch(1)).unwrap() {
            assert_eq!(proposals.len(), 36);
            assert!(proposals.iter().all(|one| (low * low..=high * high).contains(&one.score)));
        }
    }

    #[test]
    fn padded_tokens_change_nothing() {
        let (batch, net) = (TOY.batch(1), net());
        let embed = |batch: &Batch| net.embed_queries(&batch.queries).unwrap();
        assert!(gap(&embed(&batch), &embed(&batch.with_longer_words(3))) < 1e-5);
    }

    #[test]
    fn the_length_of_a_clips_vector_does_not_matter() {
        let (batch, net) = (TOY.batch(1), net());
        let clips = net.core.encode(&batch.videos.visual, &Pass::answering()).unwrap();
        let wanted = net.wanted(&batch.queries, &Pass::answering()).unwrap();
        let starts = |clips: &Tensor| net.core.compare(clips, &wanted).unwrap().starts;
        assert!(gap(&starts(&clips), &starts(&(&clips * 7.0).unwrap())) < 1e-4);
    }

    #[test]
    fn a_pool_is_answered_as_its_videos_are_one_by_one() {
        let (batch, net) = (TOY.batch(1), net());
        let codes = net.encode(&batch.videos).unwrap();
        let answers = net.search(&batch.queries, &codes.iter().collect::<Vec<_>>()).unwrap();
        for (query, alone) in net.propose(&batch).unwrap().iter().enumerate() {
            assert_eq!(answers[query].len(), TOY.pairs);
            assert!((answers[query][query].video_score - alone[0].score).abs() < 1e-5);
            assert_eq!(answers[query][query].moments[0].span, alone[0].span);
        }
    }

    #[test]
    fn embeddings_are_unit_vectors_whose_product_is_the_mean_cosine() {
        let (batch, net) = (TOY.batch(1), net());
        let moments = net.embed_moments(&batch.videos).unwrap();
        let query = net.embed_queries(&batch.queries).unwrap();
        let lengths = moments[0].embeddings.sqr().unwrap().sum(1).unwrap();
        assert!(gap(&lengths, &lengths.ones_like().unwrap()) < 1e-5);
        let products = query.narrow(0, 0, 1).unwrap().times(&moments[0].embeddings.t().unwrap()).unwrap();
        let products = products.squeeze(0).unwrap().to_vec1::<f32>().unwrap();
        let found = net.of_batch(&batch, &Pass::answering()).unwrap();
        let (starts, ends) = (found.starts.to_vec2::<f32>().unwrap(), found.ends.to_vec2::<f32>().unwrap());
        // The second candidate reaches from the first clip to the second.
        assert!((products[1] - (starts[0][0] + ends[0][1]) / 20.0).abs() < 1e-5);
        assert_eq!(moments[0].spans[1].end(), 0.25);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| Bet::new(&config(), &TOY.given(), vb);
        assert_learnt_by_heart(build, &batch, 120, 5e-3, 0.7); // soft labels leave a floor
    }
}
