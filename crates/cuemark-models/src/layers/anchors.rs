//! Anchors of fixed widths centred on every frame, their scores and offsets (blocks C4 and C5 of CMIN).
//!
//! Boxes are frame indices, both ends included. What offsets are added to, in the loss and in answers, is the box with both
//! ends cut to whole numbers, as in the published code; overlaps are those of the uncut boxes.

use candle_core::{D, DType, Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_tensor::functional::{bce_with_logits, sigmoid};
use serde::{Deserialize, Serialize};

use super::{Linear, pointwise};
use crate::check::{Fixture, Trace};
use crate::losses::smooth_l1;
use crate::{Loss, Proposal};

/// What training makes smaller, and its terms.
#[derive(Debug, Clone)]
pub struct AnchorLosses {
    /// Of the scores.
    pub score: Tensor,
    /// Of the offsets, unweighted.
    pub offset: Tensor,
    /// Both, weighted.
    pub total: Tensor,
}

impl AnchorLosses {
    /// Adds them to what a fixture is compared with.
    pub fn trace(&self, trace: &mut Trace) {
        trace.loss("cls", &self.score);
        trace.loss("reg", &self.offset);
        trace.loss("total", &self.total);
    }
}

impl From<AnchorLosses> for Loss {
    fn from(losses: AnchorLosses) -> Self {
        Self { total: losses.total, parts: vec![("score", losses.score), ("offset", losses.offset)] }
    }
}

/// Which anchors there are, as every run file of the family states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorSettings {
    /// Widths in frames, as papers list them.
    pub widths: Vec<f64>,
    /// An anchor reaches `spread * (width - 1)` frames to either side. The published code has 0.125 for short videos, so
    /// that the true width is a quarter of the listed one. Default: 0.5
    #[serde(default = "spread")]
    pub spread: f64,
}

fn spread() -> f64 {
    0.5
}

impl AnchorSettings {
    /// Those of a fixture of the family.
    ///
    /// # Errors
    /// When it does not state them.
    pub fn of_fixture(fixture: &Fixture) -> crate::Result<Self> {
        let widths = fixture.config("anchor_widths")?;
        let widths = serde_json::from_value(widths.clone())
            .map_err(|_| fixture.fault("config.anchor_widths", format!("{widths} is no list of numbers")))?;
        Ok(Self { widths, spread: spread() })
    }
}

/// The true ranges of a fixture.
///
/// # Errors
/// When it does not hold them.
pub fn ranges_of_fixture(fixture: &Fixture) -> crate::Result<Vec<FrameRange>> {
    Ok(fixture.counts("gt_index")?.chunks_exact(2).map(|ends| (ends[0], ends[1])).collect())
}

/// An inclusive range of frames.
pub type FrameRange = (usize, usize);

/// Scores every anchor and moves its ends.
#[derive(Debug, Clone)]
pub struct AnchorHead {
    score: Linear,
    offsets: Linear,
    frames: usize,
    boxes: Vec<(f32, f32)>,
}

/// What the head says about every anchor; index = frame × widths + width.
#[derive(Debug, Clone)]
pub struct Anchored {
    /// `[batch, anchors]`, before the sigmoid, illegal anchors included.
    pub logits: Tensor,
    /// `[batch, anchors, 2]`, in frames.
    pub offsets: Tensor,
}

impl AnchorHead {
    /// On features of `width` channels at each of `frames` frames.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and when no anchor fits into the frames.
    pub fn new(settings: &AnchorSettings, frames: usize, width: usize, vb: VarBuilder) -> Result<Self> {
        let widths = settings.widths.len();
        let spread = |width: &f64| (settings.spread * (width - 1.0)) as f32;
        let around = |centre: usize| {
            settings.widths.iter().map(move |width| (centre as f32 - spread(width), centre as f32 + spread(width)))
        };
        let head = Self {
            score: pointwise(width, widths, 1, vb.pp("fc_score"))?,
            offsets: pointwise(width, 2 * widths, 1, vb.pp("fc_reg"))?,
            frames,
            boxes: (0..frames).flat_map(around).collect(),
        };
        if !head.boxes.iter().any(|anchor| head.is_legal(*anchor)) {
            candle_core::bail!("none of the anchor widths {:?} fits into {frames} frames", settings.widths);
        }
        Ok(head)
    }

    /// # Shapes
    /// - x `[batch, frames, width]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor) -> Result<Anchored> {
        let logits = self.score.forward(x)?.flatten_from(1)?;
        let offsets = self.offsets.forward(x)?.reshape((x.dim(0)?, self.boxes.len(), 2))?;
        Ok(Anchored { logits, offsets })
    }

    /// Whether the cut box lies inside the video; anchors of even width may reach half a frame past the last.
    fn is_legal(&self, (start, end): (f32, f32)) -> bool {
        start >= 0.0 && end < self.frames as f32
    }

    /// 1 at anchors inside the video, `[1, anchors]`.
    fn legal(&self, like: &Tensor) -> Result<Tensor> {
        let legal: Vec<f32> = self.boxes.iter().map(|anchor| f32::from(u8::from(self.is_legal(*anchor)))).collect();
        Tensor::from_vec(legal, (1, self.boxes.len()), like.device())
    }

    /// Boxes cut to whole numbers, `[anchors, 2]`.
    fn cut_boxes(&self, like: &Tensor) -> Result<Tensor> {
        let ends: Vec<f32> = self.boxes.iter().flat_map(|(start, end)| [start.trunc(), end.trunc()]).collect();
        Tensor::from_vec(ends, (self.boxes.len(), 2), like.device())
    }

    /// Probability of every anchor, `[batch, anchors]`, 0 for those that leave the video.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn probabilities(&self, anchored: &Anchored) -> Result<Tensor> {
        sigmoid(&anchored.logits)?.broadcast_mul(&self.legal(&anchored.logits)?)
    }

    /// Cut boxes moved by their offsets, `[batch, anchors, 2]`.
    fn moved(&self, anchored: &Anchored) -> Result<Tensor> {
        anchored.offsets.broadcast_add(&self.cut_boxes(&anchored.offsets)?)
    }

    /// The frames that a span covers best; at least one.
    pub fn range(&self, span: NormSpan) -> FrameRange {
        let frames = self.frames as f64;
        let last = self.frames - 1;
        let start = ((span.start() * frames).round().max(0.0) as usize).min(last);
        let end = ((span.end() * frames).round() as usize).saturating_sub(1).min(last);
        (start, end.max(start))
    }

    /// Overlap of every anchor with a range of frames, 0 for those that leave the video.
    pub fn ious(&self, truth: FrameRange) -> Vec<f32> {
        let (first, last) = (truth.0 as f32, truth.1 as f32);
        let iou = |anchor: &(f32, f32)| {
            let inter = anchor.1.min(last) - anchor.0.max(first) + 1.0;
            let union = anchor.1.max(last) - anchor.0.min(first) + 1.0;
            if self.is_legal(*anchor) { (inter / union).max(0.0) } else { 0.0 }
        };
        self.boxes.iter().map(iou).collect()
    }

    /// Score targets of raw overlaps, `[ranges, anchors]`: shares of the largest, those below `clear` of it set to 0.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn targets(&self, ious: &[Vec<f32>], clear: f32, like: &Tensor) -> Result<Tensor> {
        let row = |ious: &Vec<f32>| {
            let largest = largest(ious);
            let share = move |iou: &f32| if largest > 0.0 && *iou >= clear * largest { iou / largest } else { 0.0 };
            ious.iter().map(share).collect::<Vec<f32>>()
        };
        Tensor::from_vec(ious.iter().flat_map(row).collect(), (ious.len(), self.boxes.len()), like.device())
    }

    /// Cross entropy with `targets [batch, anchors]`, a mean over all anchors: those that leave the video count and cost nothing.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn score_loss(&self, anchored: &Anchored, targets: &Tensor) -> Result<Tensor> {
        let each = bce_with_logits(&anchored.logits, targets)?;
        each.broadcast_mul(&self.legal(&each)?)?.mean_all()
    }

    /// Smooth L1 between moved boxes and true ranges, a mean over `chosen` pairs of row and anchor; 0 when there is none.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn offset_loss(&self, anchored: &Anchored, chosen: &[(usize, usize)], truth: &[FrameRange]) -> Result<Tensor> {
        if chosen.is_empty() {
            return Tensor::zeros((), DType::F32, anchored.offsets.device());
        }
        let anchors = self.boxes.len();
        let rows: Vec<u32> = chosen.iter().map(|(row, anchor)| (row * anchors + anchor) as u32).collect();
        let ends: Vec<f32> = chosen.iter().flat_map(|(row, _)| [truth[*row].0 as f32, truth[*row].1 as f32]).collect();
        let ends = Tensor::from_vec(ends, (chosen.len(), 2), anchored.offsets.device())?;
        let rows = Tensor::new(rows, anchored.offsets.device())?;
        let moved = self.moved(anchored)?.flatten(0, 1)?.index_select(&rows, 0)?;
        smooth_l1(&(moved - ends)?)?.mean_all()
    }

    /// Both terms, and their sum with the offsets weighted.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn losses(
        &self,
        anchored: &Anchored,
        targets: &Tensor,
        chosen: &[(usize, usize)],
        truth: &[FrameRange],
        offset_weight: f64,
    ) -> Result<AnchorLosses> {
        let score = self.score_loss(anchored, targets)?;
        let offset = self.offset_loss(anchored, chosen, truth)?;
        let total = (&score + (&offset * offset_weight)?)?;
        Ok(AnchorLosses { score, offset, total })
    }

    /// Every anchor inside the video, moved, rounded to whole frames and clipped, best first.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn rank(&self, anchored: &Anchored) -> Result<Vec<Vec<Proposal>>> {
        let scores = self.probabilities(anchored)?.to_vec2::<f32>()?;
        let boxes = self.moved(anchored)?.to_vec3::<f32>()?;
        let (frames, last) = (self.frames as f64, (self.frames - 1) as f64);
        let rank = |(scores, boxes): (Vec<f32>, Vec<Vec<f32>>)| {
            let mut ranked: Vec<Proposal> = Vec::with_capacity(scores.len());
            for (number, (score, moved)) in scores.into_iter().zip(boxes).enumerate() {
                let start = f64::from(moved[0]).round().clamp(0.0, last);
                let end = f64::from(moved[1]).round().clamp(start, last);
                let span = NormSpan::new(start / frames, (end + 1.0) / frames);
                ranked.extend(span.filter(|_| self.is_legal(self.boxes[number])).map(|span| Proposal { span, score }));
            }
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
            ranked
        };
        Ok(scores.into_iter().zip(boxes).map(rank).collect())
    }

    /// Writes what fixtures of the family hold about the head.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn trace(&self, anchored: &Anchored, trace: &mut Trace) -> Result<()> {
        let probabilities = self.probabilities(anchored)?;
        let best = probabilities.argmax(D::Minus1)?;
        let index = best.unsqueeze(1)?.unsqueeze(2)?.repeat((1, 1, 2))?;
        let ends: Vec<f32> = self.boxes.iter().flat_map(|(start, end)| [*start, *end]).collect();
        trace.out("proposals", &Tensor::from_vec(ends, (self.boxes.len(), 2), best.device())?);
        trace.out("proposals_truncated", &self.cut_boxes(&probabilities)?);
        trace.out("reg", &anchored.offsets);
        trace.out("best_box", &self.moved(anchored)?.gather(&index.contiguous()?, 1)?.squeeze(1)?);
        trace.out("best_index", &best);
        trace.out("prob", &probabilities);
        Ok(())
    }
}

/// Which anchors learn their offsets, as run files name it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Positives {
    /// Those with at least this share of the largest overlap of their query.
    TimesMax(f64),
    /// Those with at least this overlap.
    AtLeast(f64),
}

impl Positives {
    /// Pairs of row and anchor; none of a row whose overlaps are all 0.
    pub fn choose(self, ious: &[Vec<f32>]) -> Vec<(usize, usize)> {
        let of_row = |(row, ious): (usize, &Vec<f32>)| {
            let bound = match self {
                Self::TimesMax(share) => share as f32 * largest(ious),
                Self::AtLeast(iou) => iou as f32,
            };
            let high = ious.iter().enumerate().filter(move |(_, iou)| **iou > 0.0 && **iou >= bound);
            high.map(|(anchor, _)| (row, anchor)).collect::<Vec<_>>()
        };
        ious.iter().enumerate().flat_map(of_row).collect()
    }
}

/// The anchor of the largest overlap of each row, the first of equals.
pub fn best_anchors(ious: &[Vec<f32>]) -> Vec<(usize, usize)> {
    let best = |ious: &Vec<f32>| {
        let most = largest(ious);
        ious.iter().position(|iou| *iou >= most).unwrap_or(0)
    };
    ious.iter().map(best).enumerate().collect()
}

fn largest(ious: &[f32]) -> f32 {
    ious.iter().copied().fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;

    fn head(frames: usize, widths: &[f64], spread: f64) -> AnchorHead {
        let settings = AnchorSettings { widths: widths.to_vec(), spread };
        AnchorHead::new(&settings, frames, 4, Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn targets_are_shares_of_the_largest_overlap() {
        // Frames 1 to 3 of 5; anchors of width 3 at centres 0 to 4 overlap it by 0 (illegal), 2/4, 3/3, 2/4, 0 (illegal).
        let head = head(5, &[3.0], 0.5);
        let ious = vec![head.ious((1, 3))];
        assert_eq!(ious[0], [0.0, 0.5, 1.0, 0.5, 0.0]);
        let like = Tensor::zeros(1, DType::F32, &Device::Cpu).unwrap();
        let targets = |clear: f32| head.targets(&ious, clear, &like).unwrap().to_vec2::<f32>().unwrap().remove(0);
        assert_eq!(targets(0.0), [0.0, 0.5, 1.0, 0.5, 0.0]);
        assert_eq!(targets(0.6), [0.0, 0.0, 1.0, 0.0, 0.0]);
        assert_eq!(best_anchors(&ious), [(0, 2)]);
        assert_eq!(Positives::TimesMax(0.5).choose(&ious), [(0, 1), (0, 2), (0, 3)]);
        assert_eq!(Positives::AtLeast(0.6).choose(&ious), [(0, 2)]);
    }

    #[test]
    fn a_small_spread_makes_narrow_anchors() {
        // 0.125 * (9 - 1) = 1 frame to either side.
        assert_eq!(head(5, &[9.0], 0.125).boxes[2], (1.0, 3.0));
    }

    #[test]
    fn anchors_that_never_fit_are_refused() {
        let settings = AnchorSettings { widths: vec![9.0], spread: 0.5 };
        let refused = AnchorHead::new(&settings, 5, 4, Params::seeded(1, &Device::Cpu).builder());
        assert!(refused.unwrap_err().to_string().contains("fits into 5 frames"));
    }

    #[test]
    fn a_span_is_the_frames_it_covers() {
        let head = head(8, &[2.0], 0.5);
        let range = |start: f64, end: f64| head.range(NormSpan::new(start, end).unwrap());
        assert_eq!(range(0.25, 0.75), (2, 5));
        assert_eq!(range(0.0, 1.0), (0, 7));
        assert_eq!(range(0.5, 0.5), (4, 4));
        assert_eq!(range(1.0, 1.2), (7, 7));
    }

    #[test]
    fn targets_are_those_of_the_references() {
        for (name, clear) in [("cmin", 0.3), ("csmgan", 0.0), ("ia-net", 0.0)] {
            let Some(folder) = cuemark_testkit::shared("parity") else { return };
            let fixture = Fixture::open(&folder.join(format!("{name}.safetensors")), &Device::Cpu).unwrap();
            let widths = AnchorSettings::of_fixture(&fixture).unwrap().widths;
            let head = head(fixture.number("frames").unwrap(), &widths, 0.5);
            let truth = ranges_of_fixture(&fixture).unwrap();
            let ious: Vec<Vec<f32>> = truth.iter().map(|truth| head.ious(*truth)).collect();
            let stored = fixture.input("label").unwrap();
            assert!(crate::testing::gap(&head.targets(&ious, clear, &stored).unwrap(), &stored) < 1e-6, "{name}");
            if name != "cmin" {
                let stored = fixture.input("positive_iou").unwrap().to_vec2::<f32>().unwrap();
                let chosen = Positives::TimesMax(fixture.real("positive_threshold_times_max").unwrap()).choose(&ious);
                let wanted = stored.iter().enumerate().flat_map(|(row, ious)| {
                    ious.iter().enumerate().filter(|(_, iou)| **iou > 0.0).map(move |(anchor, _)| (row, anchor))
                });
                assert_eq!(chosen, wanted.collect::<Vec<_>>(), "{name}");
            }
        }
    }
}
