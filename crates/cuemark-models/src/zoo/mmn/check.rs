//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;

use super::{Mmn, MmnConfig};
use crate::check::{Fixture, Trace};
use crate::layers::{
    MatchingEncoder, MatchingEncoderSize, TextTraining, cells_of, cosines, one_video_each, spans_of, video_of_sentences,
};
use crate::losses::{MutualMatching, Pairs, ScaledIou};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = MmnConfig {
        network: MatchingEncoderSize::of_fixture(fixture)?,
        targets: ScaledIou::of_fixture(fixture)?,
        matching: MutualMatching::of_fixture(fixture)?,
        text: TextTraining::default(),
        part: None,
        power: fixture.real("score_pow")?,
        nms: fixture.real("nms_threshold")?,
        matching_share: 0.5,
    };
    let (visual, tokens, lengths) = (fixture.input("visual")?, fixture.ids("tokens")?, fixture.counts("token_lens")?);
    let given = Given::widths(visual.dim(2)?, 0, fixture.number("distilbert.vocab")?);
    let net = Mmn::new(&config, &given, vb.clone())?;
    let pass = Pass::answering(); // the fixture has inference statistics in its losses too
    let (encoder, map) = (&net.encoder, net.encoder.moments.map());
    let forward = encoder.moments.forward(&visual, &pass)?;
    let sentences = encoder.sentences.forward(&tokens, &lengths, &pass)?;
    let (video, spans) = (video_of_sentences(fixture)?, spans_of(fixture)?);
    let ious = map.cells_of_square(&fixture.input("iou2d")?.unsqueeze(1)?)?.squeeze(2)?;
    let own_video = one_video_each(&video, visual.dim(0)?, visual.device())?;
    let all = cosines(&sentences.matching, &forward.moments.matching)?;
    let matching = cells_of(&all, &own_video)?;
    let logits = cells_of(&encoder.overlap_logits(&forward.moments, &sentences)?, &own_video)?;
    let scores = MatchingEncoder::scores(&matching, &logits, config.power)?;
    let terms = config.matching.terms(Pairs { cosines: &all, ious: &ious, video: &video, spans: &spans }, None)?;
    let (overlap, to_sentences, to_moments) =
        (config.targets.loss(&logits, &ious)?, terms.to_sentences.mean_all()?, terms.to_moments.mean_all()?);

    let mut trace = Trace::new();
    let square = |x: &Tensor| map.to_square(&x.unsqueeze(2)?)?.squeeze(1);
    let whole = encoder.moments.on_whole_map(&forward.cells)?;
    trace.out("clip_feat", &forward.clips.transpose(1, 2)?);
    trace.out("map_mask", &map.mask(visual.device())?);
    trace.out("map_feat", &map.to_square(&forward.cells)?);
    trace.out("map_contrastive", &whole.matching);
    trace.out("map_iou", &whole.overlap);
    trace.out("sent_contrastive", &sentences.matching);
    trace.out("sent_iou", &sentences.overlap);
    trace.out("score_contrastive", &square(&matching)?);
    trace.out("score_iou", &square(&sigmoid(&logits)?)?);
    trace.out("score_final", &square(&scores)?);
    let durations = fixture.durations()?;
    let durations: Vec<f64> = video.iter().filter_map(|video| durations.get(*video).copied()).collect();
    trace.out("segments_top5", &fixture.top_segments(&map.rank(&scores)?, &durations, config.nms, Some(map.grid()))?);
    trace.loss("iou_bce", &overlap);
    trace.loss("vid", &to_sentences);
    trace.loss("sent", &to_moments);
    trace.loss("total", &(overlap + ((to_sentences + to_moments)? * config.matching.weight)?)?);
    Ok(trace)
}
