//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::{DType, Tensor};
use candle_nn::VarBuilder;
use cuemark_core::NormSpan;
use cuemark_tensor::Pass;

use super::captioner::{Captioner, SoftMasks};
use super::localiser::{Localised, Localiser};
use super::reader::{Clips, Sentences};
use super::{WsslConfig, choice_loss};
use crate::Result;
use crate::check::{Fixture, Trace};

/// The supervised loss of the published code: the anchor that overlaps the span best, and how it would have to be moved.
struct Supervised {
    labels: Vec<u32>,
    deltas: Vec<f32>,
}

impl Supervised {
    /// `spans` as fractions.
    pub(super) fn new(anchors: &[[f32; 2]], spans: &[NormSpan]) -> Self {
        let mut found = Self { labels: Vec::new(), deltas: Vec::new() };
        for span in spans {
            let bounds = |[centre, width]: [f32; 2]| [centre - width / 2.0, centre + width / 2.0].map(f64::from);
            let overlap = |anchor: &[f32; 2]| {
                let [start, end] = bounds(*anchor);
                NormSpan::new(start, end).map_or(0.0, |anchor| anchor.iou_hull(*span))
            };
            let mut best = (0, f64::MIN);
            for (number, anchor) in anchors.iter().enumerate() {
                if overlap(anchor) > best.1 {
                    best = (number, overlap(anchor));
                }
            }
            let [start, end] = anchors.get(best.0).map_or([0.0, 1.0], |anchor| bounds(*anchor));
            let (start, end) = (start - span.start(), end - span.end());
            found.labels.push(best.0 as u32);
            found.deltas.extend([start.midpoint(end) as f32, (end - start) as f32]);
        }
        found
    }

    pub(super) fn loss(&self, localised: &Localised, weight: f64) -> Result<Tensor> {
        let device = localised.logits.device();
        let (count, anchors) = localised.logits.dims2()?;
        let labels = Tensor::from_vec(self.labels.clone(), (count, 1), device)?;
        let rows = self.labels.iter().enumerate().map(|(row, label)| (row * anchors) as u32 + label);
        let moved = localised.refine.flatten_to(1)?.index_select(&Tensor::new(rows.collect::<Vec<_>>(), device)?, 0)?;
        let deltas = Tensor::from_vec(self.deltas.clone(), (count, 2), device)?;
        let distance = (moved - deltas)?.abs()?.mean_all()?;
        Ok((choice_loss(&localised.logits, &labels)? + (distance * weight)?)?)
    }
}

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = WsslConfig {
        hidden: fixture.number("hidden")?,
        layers: fixture.number("rnn_layers")?,
        localiser_words: fixture.number("embedding_sl")?,
        captioner_words: fixture.number("embedding_cg")?,
        reach: fixture.real("regressor_scale")?,
        sharpness: fixture.real("softmask_scale")?,
        dropout: 0.0,
        ..WsslConfig::default()
    };
    let visual = fixture.input("video_feat")?;
    let (width, vocabulary) = (visual.dim(2)?, fixture.number("vocab")?);
    let anchors = fixture.input("anchors")?.to_vec2::<f32>()?.iter().map(|pair| [pair[0], pair[1]]).collect();
    let localiser = Localiser::new(&config, anchors, width, vocabulary, &vb.pp("sl"))?;
    let captioner = Captioner::new(&config, width, vocabulary, &vb.pp("cg"))?;
    let sizes = fixture.input("video_length")?.to_vec2::<f32>()?;
    let lengths: Vec<usize> = sizes.iter().map(|size| size[0] as usize).collect();
    let mask = fixture.input("video_mask")?.squeeze(2)?;
    let clips = Clips { x: &visual, mask: &mask, lengths: &lengths };
    let video = fixture.ids("gather_index")?;
    let sentences =
        |name: &str| Sentences::with_lengths(fixture.ids(name)?, fixture.counts("sentence_length")?, video.clone());
    let pass = Pass::answering();
    let localised = localiser.localise(clips, &sentences("sentence")?, &pass)?;
    let captions = sentences("caption")?;
    let said = captioner.say(clips, &captions, &fixture.input("caption_segment_cw")?, &pass)?;
    let soft = SoftMasks::new(&fixture.input("mask_cw")?.unsqueeze(0)?, &mask.narrow(0, 0, 1)?, config.sharpness)?;
    let seconds = |row: &u32| f64::from(sizes.get(*row as usize).and_then(|size| size.get(1)).copied().unwrap_or(1.0));
    let durations: Vec<f64> = video.to_vec1::<u32>()?.iter().map(seconds).collect();
    let truth = fixture.input("segment_seconds")?.to_vec2::<f32>()?;
    let truth = truth
        .iter()
        .zip(&durations)
        .filter_map(|(span, seconds)| NormSpan::new(f64::from(span[0]) / seconds, f64::from(span[1]) / seconds));
    let supervised = Supervised::new(&localiser.anchors, &truth.collect::<Vec<_>>());
    let ranked = localised.rank(&localiser)?;
    let best = ranked.iter().zip(&durations).filter_map(|(ranked, seconds)| Some((ranked.first()?.span, *seconds)));
    let best: Vec<f32> =
        best.flat_map(|(span, seconds)| [(span.start() * seconds) as f32, (span.end() * seconds) as f32]).collect();
    let count = durations.len();

    let mut trace = Trace::new();
    trace.out("anchor_logits", &localised.logits);
    trace.out("refine", &localised.refine);
    trace.out("segment_cw", &localised.moved(&localiser, 0.0)?);
    trace.out("segment_seconds", &Tensor::from_vec(best, (count, 2), visual.device())?);
    trace.out("anchor_label", &Tensor::new(supervised.labels.clone(), visual.device())?.to_dtype(DType::F32)?);
    trace.out("anchor_delta", &Tensor::from_vec(supervised.deltas.clone(), (count, 2), visual.device())?);
    trace.out("caption_logprob", &said);
    trace.out("mask_c", &soft.inside);
    trace.out("mask_l", &soft.left);
    trace.out("mask_r", &soft.right);
    trace.loss("caption", &captions.unsaid(&said)?.mean_all()?);
    trace.loss("supervised", &supervised.loss(&localised, fixture.real("regression_loss_weight")?)?);
    Ok(trace)
}
