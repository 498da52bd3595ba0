//! TRM: MMN with a score map for every phrase of the sentence, mixed into the sentence's own by attention.
//! Zheng et al., "Phrase-level Temporal Relationship Mining for Temporal Sentence Localization", AAAI 2023.
//!
//! Paper and released settings disagree: the paper presents the consistency and the exclusiveness of phrases as its
//! contributions, the settings give exclusiveness no weight anywhere and consistency one on Charades only. The defaults are
//! the settings' for Charades. A phrase for which no cell overlaps enough adds nothing, and a batch of one video has no
//! negative one: both are rules here and accidents in the released code.

mod check;
mod config;
mod phrases;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, softmax};

use crate::layers::{Linear, MatchingEncoder, TwoSpaces, cells_of, cosines, linear_no_bias, one_video_each};
use crate::losses::Pairs;
use crate::{
    Batch, BatchBy, Family, FullSize, Given, Grid, Input, Loss, Model, ModelCard, Phrases, Proposal, Result,
    Supervision, Task, Text,
};

pub use config::{PhraseConfig, TrmConfig};
use phrases::Owners;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "trm",
    title: "TRM",
    paper: "Zheng et al., Phrase-level Temporal Relationship Mining for Temporal Sentence Localization, AAAI 2023",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "gives every phrase its own score map and mixes them into the sentence's by attention",
    full_sizes: &[
        FullSize {
            dataset: "charades-sta",
            settings: "network = { map = { pre_clips = 32, clips = 16, counts = [15] }, joint = 512, kernel = 5, layers = 8 }\n\
                       matching = { margin = 0.4, weight = 0.05, switch_epoch = 7 }\n\
                       text = { frozen_epochs = 2 }\nphrases = { dropout = 0.1 }",
            visual: 4096,
            words: 0,
            millions: None,
        },
        FullSize {
            dataset: "activitynet-captions",
            settings: "network = { map = { pre_clips = 256, clips = 64, counts = [15, 8, 8] }, kernel = 9, layers = 4 }\n\
                       matching = { margin = 0.3, weight = 0.01, switch_epoch = 6 }\n\
                       text = { frozen_epochs = 4 }\nphrases = { residual = 0.1, threshold = 0.2, consistency = 0.0 }",
            visual: 500,
            words: 0,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Trm::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<TrmConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Trm {
    config: TrmConfig,
    encoder: MatchingEncoder,
    to_hidden: Linear,
    to_weight: Linear,
}

/// Everything on the way to the scores.
struct Forward {
    moments: TwoSpaces,
    sentences: TwoSpaces,
    /// `[phrases, joint]` in the overlap space.
    phrases: Tensor,
    owners: Owners,
    /// `[sentences, slots]`
    attention: Tensor,
    /// Logits of every phrase on every video's map, `[phrases, videos, cells]`.
    phrase_logits: Tensor,
    /// Logits of the sentences on their own videos' maps, `[sentences, cells]`.
    logits: Tensor,
}

/// The tokens of sentences and phrases, and whose each is.
struct Texts<'a> {
    tokens: &'a Tensor,
    lengths: &'a [usize],
    video: &'a [usize],
    /// Left out when no sentence has any.
    phrases: Option<&'a Phrases>,
}

impl Trm {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that no map can have.
    pub fn new(config: &TrmConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let attention = vb.pp("text_encoder.patt");
        let (joint, hidden) = (config.network.joint, config.phrases.attention);
        Ok(Self {
            to_hidden: linear_no_bias(joint, hidden, attention.pp("feat2att"))?,
            to_weight: linear_no_bias(hidden, 1, attention.pp("to_alpha"))?,
            encoder: MatchingEncoder::new(&config.network, given, vb)?,
            config: config.clone(),
        })
    }

    fn forward(&self, visual: &Tensor, texts: &Texts, pass: &Pass) -> Result<Forward> {
        let moments = self.encoder.moments.forward(visual, pass)?.moments;
        let sentences = self.encoder.sentences.forward(texts.tokens, texts.lengths, pass)?;
        let (phrases, owners) = self.phrases(texts, &sentences, pass)?;
        let device = visual.device();
        let (count, most) = (texts.lengths.len(), self.config.phrases.most);

        // Row 0 stands for slots without a phrase, here and below.
        let slots = Tensor::from_slice(&owners.slots, owners.slots.len(), device)?;
        let kept = Tensor::from_slice(&owners.kept, owners.kept.len(), device)?;
        let in_slots = |x: &Tensor| x.pad_with_zeros(0, 1, 0)?.index_select(&slots, 0);
        let alpha = self.to_weight.forward(&self.to_hidden.forward(&in_slots(&phrases)?)?.tanh()?)?;
        let alpha = mask_out(&alpha.reshape((count, most))?, &in_slots(&kept)?.reshape((count, most))?, -1e9)?;
        let attention = softmax(&alpha, D::Minus1)?;

        let scale = self.config.network.scale;
        let phrase_logits = (cosines(&phrases, &moments.overlap)? * scale)?;
        let own = cells_of(&phrase_logits, &one_video_each(&owners.video, visual.dim(0)?, device)?)?;
        let cells = own.dim(1)?;
        let mixed = attention.unsqueeze(1)?.times(&in_slots(&own)?.reshape((count, most, cells))?)?.squeeze(1)?;
        let own_video = one_video_each(texts.video, visual.dim(0)?, device)?;
        let logits = cells_of(&self.encoder.overlap_logits(&moments, &sentences)?, &own_video)?;
        let logits = (logits + (mixed * self.config.phrases.residual)?)?;
        Ok(Forward { moments, sentences, phrases, owners, attention, phrase_logits, logits })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let queries = &batch.queries;
        let phrases = queries.phrases.as_ref();
        let tokens = self.encoder.sentences.reads(&queries.word_ids, &queries.words);
        let texts = Texts { tokens, lengths: &queries.lengths, video: &queries.video, phrases };
        self.forward(&batch.videos.visual, &texts, pass)
    }

    /// Cosines in the matching space, `[sentences, videos, cells]`.
    fn matching(forward: &Forward) -> Result<Tensor> {
        Ok(cosines(&forward.sentences.matching, &forward.moments.matching)?)
    }
}

impl Model for Trm {
    fn input(&self) -> Input {
        let pairs = Input::pairs(self.config.network.map.pre_clips);
        Input { text: Text::Tokens, batch_by: BatchBy::Videos, phrases: self.config.phrases.most, ..pairs }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let config = &self.config.phrases;
        let (video, spans) = (&batch.queries.video, &batch.targets(CARD.name)?.spans);
        let forward = self.of_batch(batch, pass)?;
        let ious = self.encoder.moments.map().ious(spans, batch.videos.visual.device())?;
        let cosines = Self::matching(&forward)?;
        let pairs = Pairs { cosines: &cosines, ious: &ious, video, spans };
        let terms = self.config.matching.terms(pairs, None)?;
        let (to_sentences, to_moments) = (terms.to_sentences.mean_all()?, terms.to_moments.mean_all()?);
        let overlap = self.config.targets.loss(&forward.logits, &ious)?;
        let matching = ((&to_sentences + &to_moments)? * self.config.matching.weight_in(pass))?;
        let mut total = (&overlap + matching)?;
        let mut parts = vec![("overlap", overlap), ("to_sentences", to_sentences), ("to_moments", to_moments)];
        if config.consistency != 0.0 || config.exclusiveness != 0.0 {
            let others = Self::other_videos(cosines.dim(1)?, pass);
            let losses = self.phrase_losses(&forward, &ious, video, others.as_deref())?;
            let consistency = ((&losses.present + &losses.absent)? * (0.5 * config.consistency))?;
            total = ((total + consistency)? + (&losses.exclusive * config.exclusiveness)?)?;
            parts.extend([("present", losses.present), ("absent", losses.absent), ("exclusive", losses.exclusive)]);
        }
        Ok(Loss { total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let forward = self.of_batch(batch, &Pass::answering())?;
        let all = Self::matching(&forward)?;
        let own_video = one_video_each(&batch.queries.video, all.dim(1)?, all.device())?;
        let scores = MatchingEncoder::scores(&cells_of(&all, &own_video)?, &forward.logits, self.config.power)?;
        Ok(self.encoder.moments.map().rank(&scores)?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }

    fn grid(&self) -> Option<Grid> {
        Some(self.encoder.moments.map().grid())
    }

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        self.config.text.factor(parameter, pass)
    }
}
