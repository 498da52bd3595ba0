//! Losses of a set of spans: each true window goes to one of them, the rest are background.

use candle_core::{D, Tensor};
use cuemark_tensor::functional::{bce_with_logits, sigmoid};
use cuemark_tensor::known;
use serde::{Deserialize, Serialize};

use super::{assign, overlap_and_slope, overlap_of};
use crate::Result;

/// What one decoder layer proposes.
#[derive(Debug, Clone)]
pub struct SetLayer {
    /// Right or background, `[batch, proposals, 2]`, the right one first.
    pub logits: Tensor,
    /// Centre and width as fractions, `[batch, proposals, 2]`.
    pub spans: Tensor,
}

/// How much each part counts, as a cost of matching or as a loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SetWeights {
    /// Distance of centre and width. Default: 10.0
    pub span: f64,
    /// Generalised overlap. Default: 1.0
    pub overlap: f64,
    /// Right or background. Default: 4.0
    pub label: f64,
}

impl Default for SetWeights {
    fn default() -> Self {
        Self { span: 10.0, overlap: 1.0, label: 4.0 }
    }
}

/// How right and background are told apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LabelLoss {
    /// Cross entropy; background counts this much.
    Entropy {
        /// Weight of background.
        background: f64,
    },
    /// Focal loss on both logits by themselves: 0.25 for ones, squared certainty.
    Focal,
}

/// Pairs of a proposal and a window, ordered by proposal.
pub type Matching = Vec<(usize, usize)>;

/// The losses of one layer.
#[derive(Debug, Clone)]
pub struct SetLosses {
    /// Mean distance of matched centres and widths.
    pub span: Tensor,
    /// Mean of 1 less the generalised overlap.
    pub overlap: Tensor,
    /// Mean over all proposals.
    pub label: Tensor,
    /// Who was matched with whom, by sample.
    pub matchings: Vec<Matching>,
}

impl SetLosses {
    /// # Errors
    /// Those of the tensor operations.
    pub fn weighted(&self, weights: &SetWeights) -> Result<Tensor> {
        let span = ((&self.span * weights.span)? + (&self.overlap * weights.overlap)?)?;
        Ok((span + (&self.label * weights.label)?)?)
    }
}

/// Logits, then centre and width, of every proposal of one sample.
type Rows = Vec<Vec<f32>>;

/// What every layer says, by layer and sample. One trip from the device for all.
fn fetch(layers: &[SetLayer], samples: usize) -> Result<Vec<Vec<Rows>>> {
    let rows = |layer: &SetLayer| Tensor::cat(&[layer.logits.detach(), layer.spans.detach()], D::Minus1);
    let rows = layers.iter().map(rows).collect::<candle_core::Result<Vec<_>>>()?;
    let mut all = Tensor::cat(&rows, 0)?.to_vec3::<f32>()?.into_iter();
    Ok(layers.iter().map(|_| all.by_ref().take(samples).collect()).collect())
}

/// The share that the softmax of both logits gives to the first.
fn share(row: &[f32]) -> f32 {
    1.0 / (1.0 + (row[1] - row[0]).exp())
}

/// The cheapest matching of every sample's windows (centre and width) in every layer. One trip from the device for all.
///
/// # Errors
/// Those of the tensor operations.
pub fn match_windows(layers: &[SetLayer], windows: &[Vec<[f32; 2]>], costs: &SetWeights) -> Result<Vec<Vec<Matching>>> {
    let fetched = fetch(layers, windows.len())?;
    Ok(fetched.iter().map(|rows| match_layer(rows, windows, costs)).collect())
}

fn match_layer(rows: &[Rows], windows: &[Vec<[f32; 2]>], costs: &SetWeights) -> Vec<Matching> {
    let matched = |(rows, windows): (&Rows, &Vec<[f32; 2]>)| -> Matching {
        let cost = |row: &Vec<f32>, wanted: &[f32; 2]| {
            let distance = f64::from((row[2] - wanted[0]).abs() + (row[3] - wanted[1]).abs());
            let overlap = overlap_of([row[2], row[3]].map(f64::from), wanted.map(f64::from));
            costs.span * distance - costs.overlap * overlap - costs.label * f64::from(share(row))
        };
        if windows.is_empty() {
            return Matching::new();
        }
        assign(&rows.iter().map(|row| windows.iter().map(|window| cost(row, window)).collect()).collect::<Vec<_>>())
    };
    rows.iter().zip(windows).map(matched).collect()
}

/// The losses of every layer, each matched by itself. They are worked out on the host, where the matching needs its numbers anyway.
///
/// # Errors
/// Those of the tensor operations.
pub fn set_losses(
    layers: &[SetLayer],
    windows: &[Vec<[f32; 2]>],
    costs: &SetWeights,
    label: LabelLoss,
) -> Result<Vec<SetLosses>> {
    let fetched = fetch(layers, windows.len())?;
    let losses = |(layer, rows): (&SetLayer, &Vec<Rows>)| {
        let matchings = match_layer(rows, windows, costs);
        losses_of(layer, &rows.concat(), windows, matchings, label)
    };
    layers.iter().zip(&fetched).map(losses).collect()
}

fn losses_of(
    layer: &SetLayer,
    rows: &[Vec<f32>],
    windows: &[Vec<[f32; 2]>],
    matchings: Vec<Matching>,
    label: LabelLoss,
) -> Result<SetLosses> {
    let (_, proposals, _) = layer.logits.dims3()?;
    let mut right = vec![false; rows.len()];
    let mut pairs = Vec::new();
    for (sample, (matching, windows)) in matchings.iter().zip(windows).enumerate() {
        for (proposal, window) in matching {
            right[sample * proposals + proposal] = true;
            pairs.push((sample * proposals + proposal, windows[*window]));
        }
    }
    let found: Vec<[f32; 2]> = rows.iter().map(|row| [row[2], row[3]]).collect();
    let [span, overlap] = known_distances(&layer.spans, &found, &pairs)?;
    let label = match label {
        LabelLoss::Entropy { background } => entropy(&layer.logits, rows, &right, background)?,
        LabelLoss::Focal => focal(&layer.logits, &right)?,
    };
    Ok(SetLosses { span, overlap, label, matchings })
}

/// Mean distance, and mean of 1 less the generalised overlap, of the spans in `rows` and what they should be; zeros for none.
///
/// # Errors
/// Those of the tensor operations.
pub fn distances(spans: &Tensor, rows: &[u32], wanted: &[[f32; 2]]) -> Result<[Tensor; 2]> {
    let found = spans.detach().flatten_to(1)?.to_vec2::<f32>()?;
    let found: Vec<[f32; 2]> = found.iter().map(|span| [span[0], span[1]]).collect();
    let pairs: Vec<(usize, [f32; 2])> = rows.iter().map(|row| *row as usize).zip(wanted.iter().copied()).collect();
    known_distances(spans, &found, &pairs)
}

/// As [`distances`], of spans whose numbers are `found`.
fn known_distances(spans: &Tensor, found: &[[f32; 2]], pairs: &[(usize, [f32; 2])]) -> Result<[Tensor; 2]> {
    let (mut far, mut of_far) = (0.0, vec![0f32; 2 * found.len()]);
    let (mut apart, mut of_apart) = (0.0, vec![0f32; 2 * found.len()]);
    let share = 1.0 / pairs.len().max(1) as f64;
    for (row, wanted) in pairs {
        let (found, wanted) = (found[*row].map(f64::from), wanted.map(f64::from));
        let (overlap, slope) = overlap_and_slope(found, wanted);
        apart += (1.0 - overlap) * share;
        for side in 0..2 {
            let distance = found[side] - wanted[side];
            far += distance.abs() * share / 2.0;
            let sign = if distance == 0.0 { 0.0 } else { distance.signum() };
            of_far[2 * row + side] += (sign * share / 2.0) as f32;
            of_apart[2 * row + side] -= (slope[side] * share) as f32;
        }
    }
    Ok([known(spans, far as f32, of_far)?, known(spans, apart as f32, of_apart)?])
}

/// The plain mean over all proposals, not divided by the weights, as the published code has it.
fn entropy(logits: &Tensor, rows: &[Vec<f32>], right: &[bool], background: f64) -> Result<Tensor> {
    let each = 1.0 / rows.len().max(1) as f64;
    let (mut loss, mut slopes) = (0.0, Vec::with_capacity(2 * rows.len()));
    for (row, right) in rows.iter().zip(right) {
        // How far the wrong one lies above the right one: the loss is log(1 + exp of it).
        let (wanted, weight) = if *right { (0, each) } else { (1, each * background) };
        let above = f64::from(row[1 - wanted]) - f64::from(row[wanted]);
        loss += weight * (above.max(0.0) + (-above.abs()).exp().ln_1p());
        let slope = (weight / (1.0 + (-above).exp())) as f32;
        slopes.extend(if *right { [-slope, slope] } else { [slope, -slope] });
    }
    Ok(known(logits, loss as f32, slopes)?)
}

fn focal(logits: &Tensor, right: &[bool]) -> Result<Tensor> {
    let wanted: Vec<f32> = right.iter().flat_map(|right| if *right { [1f32, 0.0] } else { [0.0, 1.0] }).collect();
    let wanted = Tensor::from_vec(wanted, logits.shape(), logits.device())?;
    let sure = sigmoid(logits)?;
    // The chance given to what is wrong: 1 - p for ones, p for zeros.
    let missed = ((&wanted * sure.affine(-1.0, 1.0)?)? + (wanted.affine(-1.0, 1.0)? * &sure)?)?;
    let balance = wanted.affine(-0.5, 0.75)?;
    Ok(((bce_with_logits(logits, &wanted)? * missed.sqr()?)? * balance)?.mean_all()?)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::Device;

    use super::*;

    fn layer() -> SetLayer {
        let logits = Tensor::new(&[[[0.3f32, -0.2], [0.1, 0.4], [1.0, 0.2]]], &Device::Cpu).unwrap();
        let spans = Tensor::new(&[[[0.2f32, 0.2], [0.8, 0.1], [0.5, 0.9]]], &Device::Cpu).unwrap();
        SetLayer { logits, spans }
    }

    #[test]
    fn each_window_goes_to_the_nearest_span_and_the_rest_are_background() {
        let windows = [vec![[0.81f32, 0.1], [0.2, 0.21]]];
        let entropy = LabelLoss::Entropy { background: 0.1 };
        let losses = &set_losses(&[layer()], &windows, &SetWeights::default(), entropy).unwrap()[0];
        assert_eq!(losses.matchings, [vec![(0, 1), (1, 0)]]);
        assert!((losses.span.to_scalar::<f32>().unwrap() - 0.02 / 4.0).abs() < 1e-6);
        let plain = |right: f32, wrong: f32| (1.0 + (wrong - right).exp()).ln();
        let by_hand = (plain(0.3, -0.2) + plain(0.1, 0.4) + 0.1 * plain(0.2, 1.0)) / 3.0;
        assert!((losses.label.to_scalar::<f32>().unwrap() - by_hand).abs() < 1e-6);
    }

    #[test]
    fn more_windows_than_spans_leave_the_dearest_out_and_none_at_all_cost_nothing() {
        let many = [vec![[0.2f32, 0.2], [0.8, 0.1], [0.5, 0.9], [0.1, 0.01]]];
        let costs = SetWeights::default();
        assert_eq!(match_windows(&[layer()], &many, &costs).unwrap()[0][0], [(0, 0), (1, 1), (2, 2)]);
        let losses = &set_losses(&[layer()], &[vec![]], &costs, LabelLoss::Focal).unwrap()[0];
        assert_eq!([&losses.span, &losses.overlap].map(|loss| loss.to_scalar::<f32>().unwrap()), [0.0, 0.0]);
    }

    #[test]
    fn focal_loss_of_undecided_logits_does_not_depend_on_the_matching() {
        let undecided = SetLayer { logits: layer().logits.zeros_like().unwrap(), ..layer() };
        for windows in [vec![], vec![[0.5f32, 0.5]]] {
            let costs = SetWeights::default();
            let losses =
                &set_losses(std::slice::from_ref(&undecided), &[windows], &costs, LabelLoss::Focal).unwrap()[0];
            let by_hand = 2f32.ln() * 0.25 * (0.25 + 0.75) / 2.0;
            assert!((losses.label.to_scalar::<f32>().unwrap() - by_hand).abs() < 1e-6);
        }
    }
}
