//! MS-DETR: a pyramid of clips that looks at the words while it shrinks, then proposals refined layer by layer from what each
//! covers on every level.
//! Wang et al., "MS-DETR: Natural Language Video Localization with Sampling Moment-Moment Interaction", ACL 2023.
//!
//! As published, the head that guesses hidden words reads their embeddings, which have not seen the video; `word_head =
//! "encoded"` lets it read what the encoder made of them. The last encoder layer then has an effect; else it is not computed.
//! Groups of proposals that the authors' code builds and does not use are left out. Proposals begin half as long as the video,
//! in the code an eighth.

mod check;
mod config;
mod decoder;
mod encoder;
mod losses;
#[cfg(test)]
mod tests;

use candle_core::Tensor;
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;
use cuemark_text::Vocabulary;

use crate::layers::{DecoderLayer, LayerNorm, Linear, TransformerSize, linear, see_only};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, QueryBatch, Result,
    Supervision, Task,
};

pub use config::{MsDetrConfig, WordHead};
use decoder::{Mlp, Proposed, Refinement};
use encoder::{EPS, EncoderLayer};
use losses::Truth;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "ms-detr",
    title: "MS-DETR",
    paper: "Wang et al., MS-DETR: Natural Language Video Localization with Sampling Moment-Moment Interaction, ACL 2023",
    family: Family::Span,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "learned proposals, refined layer by layer from what each covers on a pyramid of clips",
    full_sizes: &[
        FullSize { dataset: "activitynet-captions", settings: "", visual: 500, words: 300, millions: None },
        FullSize { dataset: "charades-sta", settings: "", visual: 1024, words: 300, millions: None },
        FullSize { dataset: "tacos", settings: "", visual: 4096, words: 300, millions: None },
    ],
    build: |settings, given, vb| Ok(Box::new(MsDetr::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<MsDetrConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct MsDetr {
    config: MsDetrConfig,
    vocabulary: usize,
    clips_in: Linear,
    clip_norm: LayerNorm,
    clip_places: Tensor,
    words_in: Linear,
    word_norm: LayerNorm,
    word_places: Tensor,
    hidden_word: Tensor,
    encoder: Vec<EncoderLayer>,
    proposals: Tensor,
    decoder: Vec<Refinement>,
    stages_in: Linear,
    stages: Vec<Mlp>,
    guess: Mlp,
}

struct Forward {
    words: Tensor,
    encoded_words: Tensor,
    levels: Vec<Tensor>,
    layers: Vec<Proposed>,
    stages: Tensor,
}

/// Words `[batch, words, width]`, 1 where one is real and 1 where one is hidden, `[batch, words]` both.
struct Asked<'a> {
    words: &'a Tensor,
    mask: &'a Tensor,
    hidden: Option<&'a Tensor>,
}

impl MsDetr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for levels that no encoder layer begins with.
    pub fn new(config: &MsDetrConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let MsDetrConfig { hidden, heads, ffn, dropout, .. } = *config;
        let layers = config.reduce.len();
        if config.halve.len() != layers
            || config.levels.is_empty()
            || config.levels.iter().any(|level| *level >= layers)
        {
            let problem = "`reduce` and `halve` need one value per encoder layer, `levels` numbers of such layers";
            return Err(ModelError::Settings { model: CARD.name, problem: problem.to_owned() });
        }
        let vocabulary = config.vocabulary.unwrap_or(given.vocabulary);
        let (body, head) = (vb.pp("backbone"), vb.pp("head"));
        let small = Init::Randn { mean: 0.0, stdev: 0.02 };
        let table = |rows: usize, name: &str| body.pp(name).get_with_hints((rows, hidden), "weight", small);
        let size = TransformerSize { width: hidden, heads, ffn, dropout };
        let refinement = |number: usize| -> Result<Refinement> {
            let of = |name: &str| head.pp(name).pp(number);
            let pooled = config.levels.len() * config.pieces * hidden;
            Ok(Refinement {
                layer: DecoderLayer::new(size, of("layers"))?,
                score: Mlp::new([hidden, hidden, 1], &of("score_heads"))?,
                offset: Mlp::offset(hidden, &of("bbox_heads"))?,
                pool: Mlp::new([pooled, hidden, hidden], &of("pool_ffns"))?,
            })
        };
        let stage = |number: usize| Mlp::new([hidden, hidden, 1], &vb.pp("stage_mlps").pp(number));
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        Ok(Self {
            clips_in: linear(given.visual, hidden, body.pp("vid_proj"))?,
            clip_norm: LayerNorm::new(hidden, EPS, body.pp("vid_ln"))?,
            clip_places: table(config.clips, "vid_pe")?,
            words_in: linear(given.words, hidden, body.pp("txt_proj"))?,
            word_norm: LayerNorm::new(hidden, EPS, body.pp("txt_ln"))?,
            word_places: table(config.words, "txt_pe")?,
            hidden_word: table(1, "mask_embedding")?,
            encoder: (0..layers)
                .map(|number| EncoderLayer::new(config, number, &body.pp("encoder")))
                .collect::<Result<_>>()?,
            proposals: head.pp("query_embeddings.0").get_with_hints((config.proposals, hidden), "weight", normal)?,
            decoder: (0..config.decoder_layers).map(refinement).collect::<Result<_>>()?,
            stages_in: linear(hidden, 3 * hidden, vb.pp("stage_mlp1"))?,
            stages: (0..3).map(stage).collect::<Result<_>>()?,
            guess: Mlp::new([hidden, hidden, vocabulary], &vb.pp("text_mlp"))?,
            vocabulary,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, clips, d_visual]`, all real
    fn forward(&self, visual: &Tensor, asked: &Asked, pass: &Pass) -> Result<Forward> {
        let drop = |x: &Tensor| pass.dropout(x, self.config.dropout);
        let mut clips = self.clips_in.forward(visual)?.broadcast_add(&self.clip_places)?;
        clips = drop(&self.clip_norm.forward(&clips)?)?;
        let mut words = self.words_in.forward(asked.words)?;
        if let Some(hidden) = asked.hidden {
            let hidden = hidden.unsqueeze(2)?;
            let stand_in = self.hidden_word.unsqueeze(0)?.broadcast_mul(&hidden)?;
            words = (words.broadcast_mul(&hidden.affine(-1.0, 1.0)?)? + stand_in)?;
        }
        let places = self.word_places.narrow(0, 0, words.dim(1)?)?;
        let words = drop(&self.word_norm.forward(&words.broadcast_add(&places)?)?)?;

        let needed = self.config.levels.iter().max().copied().unwrap_or_default();
        let bias = see_only(asked.mask)?;
        let mut places = self.clip_places.unsqueeze(0)?;
        let mut encoded_words = words.clone();
        let mut states = Vec::with_capacity(self.encoder.len());
        for (number, layer) in self.encoder.iter().enumerate() {
            if layer.halve {
                (clips, places) = layer.halved(&clips, &places)?;
            }
            states.push(clips.clone());
            if number == needed && self.config.word_head == WordHead::Embedded {
                break; // nothing reads what later layers would make
            }
            encoded_words = layer.word_norm.forward(&layer.words.forward(&encoded_words)?)?;
            (clips, encoded_words) = layer.forward(&clips, &encoded_words, &bias, pass)?;
        }
        let levels: Vec<Tensor> = self.config.levels.iter().filter_map(|level| states.get(*level).cloned()).collect();
        let memory = levels.last().unwrap_or(&clips);
        let layers = self.decode(memory, &levels, pass)?;
        let parts = self.stages_in.forward(memory)?;
        let stage = |(number, mlp): (usize, &Mlp)| {
            mlp.forward(&parts.narrow(2, number * self.config.hidden, self.config.hidden)?)
        };
        let stages = Tensor::cat(&self.stages.iter().enumerate().map(stage).collect::<Result<Vec<_>>>()?, 2)?;
        Ok(Forward { words, encoded_words, levels, layers, stages })
    }

    /// Words of a batch, cut to the length there are places for.
    fn cut(&self, queries: &QueryBatch) -> Result<[Tensor; 3]> {
        let words = queries.words.dim(1)?.min(self.config.words);
        let cut = |x: &Tensor| x.narrow(1, 0, words)?.contiguous();
        let known = |id: u32| if (id as usize) < self.vocabulary { id } else { Vocabulary::UNKNOWN };
        let ids = cut(&queries.word_ids)?.flatten_all()?.to_vec1::<u32>()?.into_iter().map(known);
        let ids = Tensor::from_vec(ids.collect::<Vec<_>>(), (queries.ids.len(), words), queries.words.device())?;
        Ok([cut(&queries.words)?, cut(&queries.mask)?, ids])
    }
}

impl Model for MsDetr {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBins { rows: self.config.clips },
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let spans = &batch.targets(CARD.name)?.spans;
        let bounds = spans.iter().flat_map(|span| [span.start().max(0.0) as f32, span.end().min(1.0) as f32]);
        let bounds = Tensor::from_vec(bounds.collect::<Vec<_>>(), (spans.len(), 2), batch.videos.visual.device())?;
        let [words, mask, ids] = self.cut(&batch.queries)?;
        let hidden = pass.draw(|rng| -> Vec<f32> {
            (0..mask.elem_count()).map(|_| f32::from(u8::from(rng.chance(self.config.hide)))).collect()
        });
        let hidden = match hidden {
            Some(hidden) => Some((Tensor::from_vec(hidden, mask.shape(), mask.device())? * &mask)?),
            None => None,
        };
        let asked = Asked { words: &words, mask: &mask, hidden: hidden.as_ref() };
        let forward = self.forward(&batch.videos.visual, &asked, pass)?;
        let losses = self.losses(&forward, &Truth { bounds: &bounds, ids: &ids, guessed: hidden.as_ref() })?;
        let total = self.total(&losses)?;
        let mut parts = vec![("inside", losses.inside), ("words", losses.words)];
        parts.extend(losses.layers.into_iter().next_back().map(|last| ("boundaries", last)));
        Ok(Loss { total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let [words, mask, _] = self.cut(&batch.queries)?;
        let asked = Asked { words: &words, mask: &mask, hidden: None };
        let forward = self.forward(&batch.videos.visual, &asked, &Pass::answering())?;
        let Some(last) = forward.layers.last() else { return Ok(vec![Vec::new(); batch.len()]) };
        let rows = last.bounds.to_vec3::<f32>()?.into_iter().zip(sigmoid(&last.scores)?.to_vec2::<f32>()?);
        let rank = |(boxes, scores): (Vec<Vec<f32>>, Vec<f32>)| {
            let proposal = |(bounds, score): (Vec<f32>, f32)| {
                let span = NormSpan::new(f64::from(bounds[0]), f64::from(bounds[1]))?.clipped();
                Some(Proposal { span, score })
            };
            let mut ranked: Vec<Proposal> = boxes.into_iter().zip(scores).filter_map(proposal).collect();
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
            ranked
        };
        Ok(rows.map(rank).collect())
    }
}
