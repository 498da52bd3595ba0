//! What training makes smaller.

use candle_core::{D, Tensor};
use cuemark_tensor::DType;
use cuemark_tensor::functional::{bce_with_logits, log_softmax, sigmoid};

use super::decoder::Proposed;
use super::{Forward, MsDetr, WordHead};
use crate::Result;

/// What is to be found: start and end `[batch, 2]`, numbers of the words and which of them count.
pub(super) struct Truth<'a> {
    pub(super) bounds: &'a Tensor,
    pub(super) ids: &'a Tensor,
    pub(super) guessed: Option<&'a Tensor>,
}

/// The parts of the loss.
pub(super) struct Losses {
    pub(super) layers: Vec<Tensor>,
    pub(super) inside: Tensor,
    pub(super) words: Tensor,
}

impl MsDetr {
    pub(super) fn losses(&self, forward: &Forward, truth: &Truth) -> Result<Losses> {
        let layer = |proposed: &Proposed| self.layer_loss(proposed, truth.bounds);
        let inside = forward.stages.narrow(2, 0, 1)?.squeeze(2)?;
        let labels = inside_labels(truth.bounds, inside.dim(1)?)?;
        let words = match truth.guessed {
            Some(guessed) => {
                let read = match self.config.word_head {
                    WordHead::Embedded => &forward.words,
                    WordHead::Encoded => &forward.encoded_words,
                };
                let log = log_softmax(&self.guess.forward(read)?, D::Minus1)?;
                let right = log.gather(&truth.ids.unsqueeze(2)?.contiguous()?, 2)?.squeeze(2)?;
                (right * guessed)?.mean_all()?.neg()?
            }
            None => Tensor::zeros((), DType::F32, inside.device())?,
        };
        Ok(Losses {
            layers: forward.layers.iter().map(layer).collect::<Result<_>>()?,
            inside: focal(&inside, &labels, self.config.inside_balance, self.config.focus)?,
            words,
        })
    }

    /// Scores follow the overlap; the best proposals alone are drawn to the span.
    fn layer_loss(&self, proposed: &Proposed, truth: &Tensor) -> Result<Tensor> {
        let (boxes, spans) = (proposed.bounds.detach().to_vec3::<f32>()?, truth.to_vec2::<f32>()?);
        let (mut wanted, mut best_rows, mut best_spans) = (Vec::new(), Vec::new(), Vec::new());
        for (row, (boxes, span)) in boxes.iter().zip(&spans).enumerate() {
            let ious: Vec<f32> = boxes.iter().map(|bounds| iou([bounds[0], bounds[1]], [span[0], span[1]])).collect();
            let mut order: Vec<usize> = (0..ious.len()).collect();
            order.sort_by(|a, b| ious[*b].total_cmp(&ious[*a]));
            order.truncate(self.config.best);
            let target = |(number, iou): (usize, &f32)| match *iou {
                _ if order.contains(&number) => 1.0,
                iou if f64::from(iou) < self.config.min_iou => 0.0,
                iou => iou,
            };
            wanted.extend(ious.iter().enumerate().map(target));
            best_rows.extend(order.iter().map(|best| (row * boxes.len() + best) as u32));
            best_spans.extend(order.iter().flat_map(|_| [span[0], span[1]]));
        }
        let device = truth.device();
        let wanted = Tensor::from_vec(wanted, proposed.scores.shape(), device)?;
        let scores = focal(&proposed.scores, &wanted, self.config.score_balance, self.config.focus)?;
        let best_spans = Tensor::from_vec(best_spans, (best_rows.len(), 2), device)?;
        let best = proposed.bounds.flatten_to(1)?.index_select(&Tensor::new(best_rows, device)?, 0)?;
        let distance = (best - best_spans)?.abs()?.mean_all()?;
        Ok(((scores * self.config.score_weight)? + (distance * self.config.distance_weight)?)?)
    }

    pub(super) fn total(&self, losses: &Losses) -> Result<Tensor> {
        let mut total = ((&losses.inside * self.config.inside_weight)? + (&losses.words * self.config.word_weight)?)?;
        for (number, layer) in losses.layers.iter().enumerate() {
            // Layers beyond the listed weights count as the last of them.
            let weights = &self.config.layer_weights;
            let weight = weights.get(number).or(weights.last()).copied().unwrap_or(1.0);
            total = (total + (layer * weight)?)?;
        }
        Ok(total)
    }
}

/// Overlap of two proposals. In single precision, as the reference has it: targets and the choice of the best hang on its last bit,
/// which `NormSpan`, in double precision, would round otherwise.
fn iou(a: [f32; 2], b: [f32; 2]) -> f32 {
    let both = (a[1].min(b[1]) - a[0].max(b[0])).max(0.0);
    let union = (a[1] - a[0]) + (b[1] - b[0]) - both;
    if union > 0.0 { both / union } else { 0.0 }
}

/// Cross entropy in which easy examples count little and right ones `balance`, mean.
fn focal(logits: &Tensor, targets: &Tensor, balance: f64, focus: f64) -> Result<Tensor> {
    let share = sigmoid(logits)?;
    let wrong = ((&share + targets)? - (share * targets)?.affine(2.0, 0.0)?)?; // 1 - p_t
    let weight = targets.affine(2.0 * balance - 1.0, 1.0 - balance)?;
    Ok(((bce_with_logits(logits, targets)? * wrong.powf(focus)?)? * weight)?.mean_all()?)
}

/// 1 for the clips from the one nearest to the start to the one nearest to the end, `[batch, clips]`.
fn inside_labels(bounds: &Tensor, clips: usize) -> Result<Tensor> {
    let last = clips.saturating_sub(1) as f64;
    let label = |span: &Vec<f32>| {
        let [first, end] = [span[0], span[1]].map(|bound| (f64::from(bound) * last).round_ties_even());
        (0..clips).map(move |clip| f32::from(u8::from((first..=end).contains(&(clip as f64))))).collect::<Vec<_>>()
    };
    let rows = bounds.to_vec2::<f32>()?;
    let labels: Vec<f32> = rows.iter().flat_map(label).collect();
    Ok(Tensor::from_vec(labels, (rows.len(), clips), bounds.device())?)
}
