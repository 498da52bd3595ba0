//! TRM: MMN with a score map for every phrase of the sentence, mixed into the sentence's own by attention.
//! Zheng et al., "Phrase-level Temporal Relationship Mining for Temporal Sentence Localization", AAAI 2023.
//!
//! Paper and released settings disagree: the paper presents the consistency and the exclusiveness of phrases as its
//! contributions, the settings give exclusiveness no weight anywhere and consistency one on Charades only. The defaults are
//! the settings' for Charades. A phrase for which no cell overlaps enough adds nothing, and a batch of one video has no
//! negative one: both are rules here and accidents in the released code.

use candle_core::{D, DType, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax, softplus};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    Linear, MatchingEncoder, MatchingEncoderSize, TextTraining, TwoSpaces, cells_of, cosines, largest, linear_no_bias,
    matching_of, network_of, one_video_each, spans_of, video_of_sentences,
};
use crate::losses::{MutualMatching, Pairs, ScaledIou};
use crate::{
    Batch, BatchBy, Family, FullSize, Given, Input, Loss, Model, ModelCard, Phrases, Proposal, Result, Supervision,
    Task, Text, fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "trm",
    title: "TRM",
    paper: "Zheng et al., Phrase-level Temporal Relationship Mining for Temporal Sentence Localization, AAAI 2023",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
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
    build: |table, given, vb| Ok(Box::new(Trm::new(&read_settings("trm", table)?, given, vb)?)),
    settings: |table| fill_settings::<TrmConfig>("trm", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrmConfig {
    /// Sizes of the network, which is MMN's.
    pub network: MatchingEncoderSize,
    /// How overlaps become targets. Default: 0 up to 0.5, 1 at 1.0
    #[serde(default)]
    pub targets: ScaledIou,
    /// The contrastive terms.
    #[serde(default)]
    pub matching: MutualMatching,
    /// How the sentence encoder is trained.
    #[serde(default)]
    pub text: TextTraining,
    /// What becomes of the phrases.
    #[serde(default)]
    pub phrases: PhraseConfig,
    /// What the matching score is raised to before it is multiplied with the overlap's. Default: 0.5
    #[serde(default = "half")]
    pub power: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.5
    #[serde(default = "half")]
    pub nms: f64,
}

fn half() -> f64 {
    0.5
}

/// What becomes of the phrases of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PhraseConfig {
    /// The most of one sentence; later ones are not read. Default: 10
    pub most: usize,
    /// Inner width of their attention. Default: 128
    pub attention: usize,
    /// Weight of the phrases' maps in the sentence's. Default: 1.0
    pub residual: f64,
    /// Chance of a phrase to be left out while training. Default: 0
    pub dropout: f64,
    /// Overlap with the span from which a cell may be the phrase's. Default: 0.1
    pub threshold: f64,
    /// Power of the factor that makes easy phrases count less. Default: 2
    pub focal: f64,
    /// Weight of consistency: every phrase is somewhere in the span and nowhere in another video. Default: 1.0
    pub consistency: f64,
    /// Weight of exclusiveness: outside the span some phrase is missing. Default: 0
    pub exclusiveness: f64,
}

impl Default for PhraseConfig {
    fn default() -> Self {
        Self {
            most: 10,
            attention: 128,
            residual: 1.0,
            dropout: 0.0,
            threshold: 0.1,
            focal: 2.0,
            consistency: 1.0,
            exclusiveness: 0.0,
        }
    }
}

/// The network.
#[derive(Debug)]
pub struct Trm {
    config: TrmConfig,
    encoder: MatchingEncoder,
    to_hidden: Linear,
    to_weight: Linear,
}

/// Which phrases there are, and whose.
struct Owners {
    /// The sentence of every phrase.
    sentence: Vec<usize>,
    /// The video of every phrase.
    video: Vec<usize>,
    /// For every sentence and slot 1 + the phrase there, 0 where there is none.
    slots: Vec<u32>,
    /// 1 for every phrase that is not dropped in this pass.
    kept: Vec<f32>,
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

/// The losses of the phrases.
struct PhraseLosses {
    present: Tensor,
    absent: Tensor,
    exclusive: Tensor,
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
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &TrmConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let attention = vb.pp("text_encoder.patt");
        let (joint, hidden) = (config.network.joint, config.phrases.attention);
        Ok(Self {
            to_hidden: linear_no_bias(joint, hidden, attention.pp("feat2att"))?,
            to_weight: linear_no_bias(hidden, 1, attention.pp("to_alpha"))?,
            encoder: MatchingEncoder::new(&config.network, given.visual, given.vocabulary, vb)?,
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

    /// Vectors of all phrases in the overlap space, `[phrases, joint]`; a sentence without any is its own only phrase.
    fn phrases(&self, texts: &Texts, sentences: &TwoSpaces, pass: &Pass) -> Result<(Tensor, Owners)> {
        let config = &self.config.phrases;
        let (mut rows, mut slots) = (Vec::new(), Vec::new());
        let mut sentence = Vec::new();
        let (mut first, all) = (0, texts.phrases.map_or(0, |phrases| phrases.lengths.len()));
        for number in 0..texts.lengths.len() {
            let count = texts.phrases.map_or(0, |phrases| phrases.per_query[number]);
            let mut own: Vec<u32> = (first..first + count).take(config.most).map(|row| row as u32).collect();
            if own.is_empty() {
                own.push((all + number) as u32);
            }
            slots
                .extend((0..config.most).map(|slot| if slot < own.len() { (rows.len() + slot + 1) as u32 } else { 0 }));
            sentence.extend(own.iter().map(|_| number));
            rows.extend(own);
            first += count;
        }
        let mut vectors = vec![sentences.overlap.clone()];
        if let Some(phrases) = texts.phrases.filter(|phrases| !phrases.lengths.is_empty()) {
            let spoken = self.encoder.sentences.forward(&phrases.word_ids, &phrases.lengths, pass)?;
            vectors.insert(0, spoken.overlap);
        }
        let chosen = Tensor::new(rows.as_slice(), sentences.overlap.device())?;
        let vectors = Tensor::cat(&vectors, 0)?.index_select(&chosen, 0)?;
        let kept = pass.draw(|rng| rows.iter().map(|_| f32::from(!rng.chance(config.dropout))).collect());
        let kept = kept.unwrap_or_else(|| vec![1.0; rows.len()]);
        let video = sentence.iter().map(|sentence| texts.video[*sentence]).collect();
        Ok((vectors, Owners { sentence, video, slots, kept }))
    }

    /// Another video of the batch for each, drawn in training and the next one otherwise; none for the only one.
    fn other_videos(videos: usize, pass: &Pass) -> Option<Vec<usize>> {
        if videos < 2 {
            return None;
        }
        let steps = pass.draw(|rng| (0..videos).map(|_| 1 + rng.below(videos - 1)).collect());
        let steps: Vec<usize> = steps.unwrap_or_else(|| vec![1; videos]);
        Some(steps.iter().enumerate().map(|(video, step)| (video + step) % videos).collect())
    }

    /// `ious [sentences, cells]`; `others` a negative video for each video.
    fn phrase_losses(
        &self,
        forward: &Forward,
        ious: &Tensor,
        video: &[usize],
        others: Option<&[usize]>,
    ) -> Result<PhraseLosses> {
        let (config, owners) = (&self.config.phrases, &forward.owners);
        let (_, videos, cells) = forward.phrase_logits.dims3()?;
        let device = ious.device();
        let kept = Tensor::from_slice(&owners.kept, owners.kept.len(), device)?;
        let own = cells_of(&forward.phrase_logits, &one_video_each(&owners.video, videos, device)?)?;

        // The best cell that overlaps the span enough; no such cell, no loss.
        let inside = ious.ge(config.threshold)?.to_dtype(DType::F32)?;
        let sentence: Vec<u32> = owners.sentence.iter().map(|sentence| *sentence as u32).collect();
        let inside_own = inside.index_select(&Tensor::new(sentence, device)?, 0)?;
        let best = largest(&mask_out(&own, &inside_own, -1e9)?, D::Minus1)?;
        let some = inside_own.max(1)?;
        // Where there is none, the logit is replaced before the loss, which would otherwise multiply infinity by 0.
        let present = (focal_present(&mask_out(&best, &some, 0.0)?, config.focal)? * (some * &kept)?)?;
        let present = mean_over(&present, &kept)?;

        let absent = match others {
            None => Tensor::zeros((), DType::F32, device)?,
            Some(others) => {
                let best = focal_absent(&largest(&forward.phrase_logits, D::Minus1)?, config.focal)?; // [phrases, videos]
                let elsewhere: Vec<usize> = owners.video.iter().map(|video| others[*video]).collect();
                let elsewhere = one_video_each(&elsewhere, videos, device)?;
                let strange = |own: &usize| others.iter().map(|other| f32::from(other == own)).collect::<Vec<_>>();
                let strange: Vec<f32> = owners.video.iter().flat_map(strange).collect();
                let strange = Tensor::from_vec(strange, (owners.video.len(), videos), device)?;
                let mean = |pairs: Tensor| {
                    let pairs = pairs.broadcast_mul(&kept.unsqueeze(1)?)?;
                    mean_over(&(&best * &pairs)?, &pairs)
                };
                ((mean(elsewhere)? + mean(strange)?)? / 2.0)?
            }
        };

        // Per cell the phrase that fits least; sentences without a kept phrase add nothing.
        let (count, most) = (video.len(), config.most);
        let slots = Tensor::from_slice(&owners.slots, owners.slots.len(), device)?;
        let own = own.pad_with_zeros(0, 1, 0)?.index_select(&slots, 0)?.reshape((count, most, cells))?;
        let kept = kept.pad_with_zeros(0, 1, 0)?.index_select(&slots, 0)?.reshape((count, most, 1))?;
        let far = mask_out(&own.neg()?, &kept, -1e9)?;
        let least = largest(&far.transpose(1, 2)?, D::Minus1)?.neg()?; // [sentences, cells]
        let some = kept.max(1)?;
        let least = mask_out(&least, &some, 0.0)?;
        let outside = inside.affine(-1.0, 1.0)?;
        let exclusive = (focal_absent(&least, config.focal)?.broadcast_mul(&some)? * &outside)?.sum_all()?;
        // The released mean pads every video to the one with most sentences and counts the padding's cells as well.
        let mut per_video = vec![0; videos];
        video.iter().for_each(|video| per_video[*video] += 1);
        let padded = videos * per_video.iter().max().copied().unwrap_or(0) - count;
        let counted = (outside.sum_all()? + (padded * cells) as f64)?.maximum(1.0)?;
        Ok(PhraseLosses { present, absent, exclusive: (exclusive / counted)? })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let queries = &batch.queries;
        let phrases = queries.phrases.as_ref();
        let texts = Texts { tokens: &queries.word_ids, lengths: &queries.lengths, video: &queries.video, phrases };
        self.forward(&batch.videos.visual, &texts, pass)
    }

    /// Cosines in the matching space, `[sentences, videos, cells]`.
    fn matching(forward: &Forward) -> Result<Tensor> {
        Ok(cosines(&forward.sentences.matching, &forward.moments.matching)?)
    }
}

/// `-log(p) (1 - p)^focal` of a logit.
fn focal_present(logits: &Tensor, focal: f64) -> candle_core::Result<Tensor> {
    focal_absent(&logits.neg()?, focal)
}

/// `-log(1 - p) p^focal` of a logit.
fn focal_absent(logits: &Tensor, focal: f64) -> candle_core::Result<Tensor> {
    softplus(logits)? * sigmoid(logits)?.powf(focal)?
}

/// Sum over the sum of `weights`; 0 where that is 0.
fn mean_over(x: &Tensor, weights: &Tensor) -> candle_core::Result<Tensor> {
    x.sum_all()? / weights.sum_all()?.maximum(1.0)?
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

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        self.config.text.factor(parameter, pass)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let focal = fixture.config("loss.focal")?.as_bool().unwrap_or(true);
    let config = TrmConfig {
        network: network_of(fixture)?,
        targets: ScaledIou::of_fixture(fixture)?,
        matching: matching_of(fixture)?,
        text: TextTraining::default(),
        phrases: PhraseConfig {
            most: fixture.number("max_phrases")?,
            attention: fixture.number("attention_hidden")?,
            residual: fixture.real("residual")?,
            dropout: fixture.real("phrase_dropout")?,
            threshold: fixture.real("loss.phrase_threshold")?,
            focal: if focal { fixture.real("loss.focal_gamma")? } else { 0.0 },
            consistency: fixture.real("loss.consistency_weight")?,
            exclusiveness: fixture.real("loss.exclusive_weight")?,
        },
        power: fixture.real("score_pow")?,
        nms: half(),
    };
    let (visual, tokens, lengths) = (fixture.input("visual")?, fixture.ids("tokens")?, fixture.counts("token_lens")?);
    let given = Given::widths(visual.dim(2)?, 0, fixture.number("distilbert.vocab")?);
    let net = Trm::new(&config, &given, vb.clone())?;
    let phrases = Phrases {
        word_ids: fixture.ids("phrase_tokens")?,
        lengths: fixture.counts("phrase_lens")?,
        per_query: fixture.counts("phrases_per_sentence")?,
    };
    let (video, spans) = (video_of_sentences(fixture)?, spans_of(fixture)?);
    let map = net.encoder.moments.map();
    let texts = Texts { tokens: &tokens, lengths: &lengths, video: &video, phrases: Some(&phrases) };
    let pass = Pass::answering(); // the fixture has inference statistics in its losses too
    let forward = net.forward(&visual, &texts, &pass)?;
    let ious = map.from_square(&fixture.input("iou2d")?.unsqueeze(1)?)?.squeeze(2)?;
    let all = Trm::matching(&forward)?;
    let matching = cells_of(&all, &one_video_each(&video, visual.dim(0)?, visual.device())?)?;
    let scores = MatchingEncoder::scores(&matching, &forward.logits, config.power)?;
    let terms = config.matching.terms(Pairs { cosines: &all, ious: &ious, video: &video, spans: &spans }, None)?;
    let (to_sentences, to_moments) = (terms.to_sentences.mean_all()?, terms.to_moments.mean_all()?);
    let overlap = config.targets.loss(&forward.logits, &ious)?;
    let others = fixture.counts("negative_video")?;
    let losses = net.phrase_losses(&forward, &ious, &video, Some(&others))?;

    let mut trace = Trace::new();
    let square = |x: &Tensor| map.to_square(&x.unsqueeze(2)?)?.squeeze(1);
    let whole = net.encoder.moments.on_whole_map(&net.encoder.moments.forward(&visual, &pass)?.cells)?;
    let slots = Tensor::from_slice(&forward.owners.slots, (video.len(), config.phrases.most), visual.device())?;
    let in_slots = forward.phrases.pad_with_zeros(0, 1, 0)?.index_select(&slots.flatten_all()?, 0)?;
    trace.out("map_iou", &whole.overlap);
    trace.out("map_mask", &map.mask(visual.device())?);
    trace.out("phrase_iou", &in_slots.reshape((video.len(), config.phrases.most, ()))?);
    trace.out("phrase_mask", &slots.gt(0u32)?);
    trace.out("phrase_weight", &forward.attention);
    trace.out("score_contrastive", &square(&matching)?);
    trace.out("score_iou", &square(&sigmoid(&forward.logits)?)?);
    trace.out("score_final", &square(&scores)?);
    trace.out("sent_contrastive", &forward.sentences.matching);
    trace.out("sent_iou", &forward.sentences.overlap);
    trace.loss("iou_sentence", &overlap);
    trace.loss("phrase_pos", &losses.present);
    trace.loss("phrase_neg", &losses.absent);
    trace.loss("phrase_exclusive", &losses.exclusive);
    trace.loss("vid", &to_sentences);
    trace.loss("sent", &to_moments);
    let consistency = ((losses.present + losses.absent)? * (0.5 * config.phrases.consistency))?;
    let exclusiveness = (losses.exclusive * config.phrases.exclusiveness)?;
    let contrast = ((to_sentences + to_moments)? * config.matching.weight)?;
    trace.loss("total", &(((overlap + consistency)? + exclusiveness)? + contrast)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config() -> TrmConfig {
        let settings = "network = { map = { pre_clips = 8, clips = 8, counts = [7] }, hidden = 16, joint = 12, kernel = 3,\n\
                        layers = 2, text = { dim = 8, layers = 1, heads = 2, ffn = 16, positions = 8, dropout = 0.0 } }\n\
                        matching = { margin = 0.1 }\nphrases = { most = 3, attention = 6, exclusiveness = 0.5 }";
        toml::from_str(settings).unwrap()
    }

    fn model(config: &TrmConfig) -> Trm {
        Trm::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    /// Sentences with 2, 1, 0 and 2 phrases.
    fn batch() -> Batch {
        let mut batch = TOY.batch(1);
        let tokens = [[1u32, 5, 2], [1, 2, 0], [1, 7, 2], [1, 3, 2], [1, 9, 0]];
        batch.queries.phrases = Some(Phrases {
            word_ids: Tensor::new(&tokens, &Device::Cpu).unwrap(),
            lengths: vec![3, 2, 3, 3, 2],
            per_query: vec![2, 1, 0, 2],
        });
        batch
    }

    fn phrase_losses(model: &Trm, batch: &Batch, others: Option<&[usize]>) -> [f32; 3] {
        let forward = model.of_batch(batch, &Pass::answering()).unwrap();
        let spans = &batch.targets.as_ref().unwrap().spans;
        let ious = model.encoder.moments.map().ious(spans, &Device::Cpu).unwrap();
        let losses = model.phrase_losses(&forward, &ious, &batch.queries.video, others).unwrap();
        [losses.present, losses.absent, losses.exclusive].map(|loss| loss.to_scalar().unwrap())
    }

    #[test]
    fn every_query_ranks_the_cells_of_its_video() {
        let ranked = model(&config()).propose(&batch()).unwrap();
        assert_eq!(ranked.len(), 4);
        assert!(ranked.iter().all(|ranked| ranked.len() == 36 && ranked.is_sorted_by(|a, b| a.score >= b.score)));
    }

    #[test]
    fn padded_words_of_sentences_and_phrases_change_nothing() {
        let (model, batch) = (model(&config()), batch());
        let mut longer = batch.with_longer_words(2);
        let phrases = longer.queries.phrases.as_mut().unwrap();
        phrases.word_ids = phrases.word_ids.pad_with_zeros(1, 0, 2).unwrap();
        let of = |batch: &Batch| model.of_batch(batch, &Pass::answering()).unwrap().logits;
        assert!(gap(&of(&batch), &of(&longer)) < 1e-5);
    }

    #[test]
    fn a_sentence_without_phrases_is_its_own() {
        let (model, batch) = (model(&config()), batch());
        let forward = model.of_batch(&batch, &Pass::answering()).unwrap();
        assert_eq!(forward.owners.slots, [1, 2, 0, 3, 0, 0, 4, 0, 0, 5, 6, 0]);
        assert_eq!(forward.attention.to_vec2::<f32>().unwrap()[2], [1.0, 0.0, 0.0]);
        let (phrase, sentence) = (forward.phrases.get(3).unwrap(), forward.sentences.overlap.get(2).unwrap());
        assert!(gap(&phrase, &sentence) == 0.0);
        let mut without = batch.clone();
        without.queries.phrases = None;
        let forward = model.of_batch(&without, &Pass::answering()).unwrap();
        assert!(gap(&forward.phrases, &forward.sentences.overlap) == 0.0);
    }

    #[test]
    fn phrases_past_the_most_are_not_read() {
        let few = TrmConfig { phrases: PhraseConfig { most: 1, attention: 6, ..PhraseConfig::default() }, ..config() };
        let (model, batch) = (model(&few), batch());
        let mut changed = batch.clone();
        let tokens = [[1u32, 5, 2], [1, 8, 8], [1, 7, 2], [1, 3, 2], [1, 8, 8]];
        changed.queries.phrases.as_mut().unwrap().word_ids = Tensor::new(&tokens, &Device::Cpu).unwrap();
        let of = |batch: &Batch| model.of_batch(batch, &Pass::answering()).unwrap().logits;
        assert!(gap(&of(&batch), &of(&changed)) == 0.0);
    }

    #[test]
    fn a_phrase_without_an_overlapping_cell_and_a_video_without_another_cost_nothing() {
        let never = PhraseConfig { threshold: 1.5, ..config().phrases };
        let model = model(&TrmConfig { phrases: never, ..config() });
        let [present, absent, exclusive] = phrase_losses(&model, &batch(), None);
        assert_eq!((present, absent), (0.0, 0.0));
        assert!(exclusive > 0.0);
        let loss = model.loss(&batch(), &Pass::training(0, 1, Rng::new(1))).unwrap().total;
        let gradients = loss.backward().unwrap();
        let gradient = gradients.get(model.to_hidden.weight()).unwrap().abs().unwrap().sum_all().unwrap();
        assert!(gradient.to_scalar::<f32>().unwrap().is_finite());
    }

    #[test]
    fn focal_terms_are_right_by_hand() {
        let logits = Tensor::new(&[2f32.ln(), 0.0], &Device::Cpu).unwrap(); // p = 2/3 and 1/2
        let absent = focal_absent(&logits, 2.0).unwrap().to_vec1::<f32>().unwrap();
        assert!((absent[0] - 3f32.ln() * 4.0 / 9.0).abs() < 1e-6 && (absent[1] - 2f32.ln() / 4.0).abs() < 1e-6);
        let present = focal_present(&logits, 2.0).unwrap().to_vec1::<f32>().unwrap();
        assert!((present[0] - 1.5f32.ln() / 9.0).abs() < 1e-6);
    }

    #[test]
    fn other_videos_are_other_and_drawn_only_in_training() {
        let draw = |seed| Trm::other_videos(5, &Pass::training(0, 1, Rng::new(seed))).unwrap();
        for seed in 0..20 {
            assert!(draw(seed).iter().enumerate().all(|(video, other)| *other != video && *other < 5));
        }
        assert_ne!(draw(1), draw(2));
        assert_eq!(Trm::other_videos(3, &Pass::answering()).unwrap(), [1, 2, 0]);
        assert!(Trm::other_videos(1, &Pass::answering()).is_none());
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = batch();
        let (model, first, last) =
            overfit(|vb| Ok(Box::new(Trm::new(&config(), &TOY.given(), vb)?)), &batch, 120, 1e-2);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.5 * first, "{first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    }
}
