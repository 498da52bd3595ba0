//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;

use super::config::half;
use super::{PhraseConfig, Texts, Trm, TrmConfig};
use crate::check::{Fixture, Trace};
use crate::layers::{
    MatchingEncoder, MatchingEncoderSize, TextTraining, cells_of, one_video_each, spans_of, video_of_sentences,
};
use crate::losses::{MutualMatching, Pairs, ScaledIou};
use crate::{Given, Phrases, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let focal = fixture.config("loss.focal")?.as_bool().unwrap_or(true);
    let config = TrmConfig {
        network: MatchingEncoderSize::of_fixture(fixture)?,
        targets: ScaledIou::of_fixture(fixture)?,
        matching: MutualMatching::of_fixture(fixture)?,
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
        words: None,
        lengths: fixture.counts("phrase_lens")?,
        per_query: fixture.counts("phrases_per_sentence")?,
    };
    let (video, spans) = (video_of_sentences(fixture)?, spans_of(fixture)?);
    let map = net.encoder.moments.map();
    let texts = Texts { tokens: &tokens, lengths: &lengths, video: &video, phrases: Some(&phrases) };
    let pass = Pass::answering(); // the fixture has inference statistics in its losses too
    let forward = net.forward(&visual, &texts, &pass)?;
    let ious = map.cells_of_square(&fixture.input("iou2d")?.unsqueeze(1)?)?.squeeze(2)?;
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
