//! Generalised IoU in one dimension.

use candle_core::{Result, Tensor};

/// Overlap over union, less the share of the hull that neither covers; spans by centre and width, `[spans, 2]` to `[spans]`.
/// Nothing is clipped.
///
/// # Errors
/// Those of the tensor operations.
pub fn generalised_overlap(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let bounds = |x: &Tensor| -> Result<[Tensor; 2]> {
        let (centre, half) = (x.narrow(1, 0, 1)?.squeeze(1)?, (x.narrow(1, 1, 1)?.squeeze(1)? / 2.0)?);
        Ok([(&centre - &half)?, (centre + half)?])
    };
    overlap_of_bounds(bounds(a)?, bounds(b)?)
}

/// As [`generalised_overlap`], of starts and ends.
///
/// # Errors
/// Those of the tensor operations.
pub fn overlap_of_bounds([start, end]: [Tensor; 2], [other_start, other_end]: [Tensor; 2]) -> Result<Tensor> {
    let both = (end.minimum(&other_end)? - start.maximum(&other_start)?)?.relu()?;
    let union = (((&end - &start)? + (&other_end - &other_start)?)? - &both)?.maximum(TINY)?;
    let hull = (end.maximum(&other_end)? - start.minimum(&other_start)?)?.maximum(TINY)?;
    (both / &union)? - ((&hull - &union)? / &hull)?
}

/// Two spans without length have nothing to divide by.
const TINY: f64 = 1e-12;

/// As [`generalised_overlap`], of one pair by centre and width; 0 when neither has a length.
pub fn overlap_of(a: [f64; 2], b: [f64; 2]) -> f64 {
    let bounds = |[centre, width]: [f64; 2]| (centre - width / 2.0, centre + width / 2.0);
    let ((start, end), (other_start, other_end)) = (bounds(a), bounds(b));
    let both = (end.min(other_end) - start.max(other_start)).max(0.0);
    let union = (end - start) + (other_end - other_start) - both;
    let hull = end.max(other_end) - start.min(other_start);
    if union > 0.0 && hull > 0.0 { both / union - (hull - union) / hull } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::Device;

    use super::*;

    #[test]
    fn overlap_is_one_with_itself_and_negative_apart_and_both_forms_agree() {
        assert!((overlap_of([0.5, 0.2], [0.5, 0.2]) - 1.0).abs() < 1e-12);
        assert!(overlap_of([0.2, 0.2], [0.8, 0.2]) < 0.0);
        assert!((overlap_of([0.1, 0.2], [0.15, 0.3]) - 2.0 / 3.0).abs() < 1e-9);
        assert!((overlap_of([0.75, 0.5], [0.15, 0.3]) + 0.2).abs() < 1e-9);
        let tensor = |pair: [f64; 2]| Tensor::new(&[pair.map(|x| x as f32)], &Device::Cpu).unwrap();
        for (a, b) in [([0.2, 0.2], [0.8, 0.2]), ([0.75, 0.5], [0.5, 1.0]), ([0.1, 0.2], [0.15, 0.3])] {
            let found = generalised_overlap(&tensor(a), &tensor(b)).unwrap().to_vec1::<f32>().unwrap()[0];
            assert!((f64::from(found) - overlap_of(a, b)).abs() < 1e-6, "{a:?} {b:?}: {found}");
        }
        let none = generalised_overlap(&tensor([0.5, 0.0]), &tensor([0.5, 0.0])).unwrap().to_vec1::<f32>().unwrap();
        assert!(none[0].is_finite());
    }
}
