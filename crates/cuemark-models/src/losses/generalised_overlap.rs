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

/// [`generalised_overlap`] of one pair by centre and width, and its slope along the centre and the width of the first. Where two
/// ends coincide, the slopes of either side are averaged.
pub fn overlap_and_slope(a: [f64; 2], b: [f64; 2]) -> (f64, [f64; 2]) {
    let bounds = |[centre, width]: [f64; 2]| (centre - width / 2.0, centre + width / 2.0);
    let ((start, end), (other_start, other_end)) = (bounds(a), bounds(b));
    // 1 where the first decides, one half where both do.
    let share = |decides: bool, same: bool| if same { 0.5 } else { f64::from(u8::from(decides)) };
    let both = end.min(other_end) - start.max(other_start);
    let meets = f64::from(u8::from(both >= 0.0));
    // Slopes along start and end.
    let of_both =
        [-meets * share(start > other_start, start == other_start), meets * share(end < other_end, end == other_end)];
    let both = if both < 0.0 { 0.0 } else { both };
    let union = (end - start) + (other_end - other_start) - both;
    let hull = end.max(other_end) - start.min(other_start);
    let has = |length: f64| f64::from(u8::from(length >= TINY));
    let of_union = [has(union) * (-1.0 - of_both[0]), has(union) * (1.0 - of_both[1])];
    let of_hull = [
        -has(hull) * share(start < other_start, start == other_start),
        has(hull) * share(end > other_end, end == other_end),
    ];
    // Not a number stays none.
    let at_least = |length: f64| if length < TINY { TINY } else { length };
    let (union, hull) = (at_least(union), at_least(hull));
    let slope = |n: usize| {
        (of_both[n] * union - both * of_union[n]) / (union * union)
            + (of_union[n] * hull - union * of_hull[n]) / (hull * hull)
    };
    let [of_start, of_end] = [slope(0), slope(1)];
    (both / union - (hull - union) / hull, [of_start + of_end, (of_end - of_start) / 2.0])
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

    #[test]
    fn slopes_are_those_of_the_tensors() {
        let mut rng = cuemark_core::Rng::new(11);
        let mut cases = vec![[[0.5, 0.2], [0.5, 0.2]], [[0.25, 0.5], [0.75, 0.5]], [[0.5, 0.0], [0.5, 0.0]]];
        cases.extend((0..200).map(|_| [(); 2].map(|()| [rng.uniform(), rng.uniform()])));
        for [a, b] in cases {
            // Rounded alike, so that ends which coincide do so on both sides.
            let [a, b] = [a, b].map(|pair| pair.map(|x| x as f32));
            let x = cuemark_tensor::Var::new(&[a], &Device::Cpu).unwrap();
            let found = generalised_overlap(x.as_tensor(), &Tensor::new(&[b], &Device::Cpu).unwrap()).unwrap();
            let gradients = found.sum_all().unwrap().backward().unwrap();
            let wanted = gradients.get(&x).unwrap().to_vec2::<f32>().unwrap();
            let (value, slope) = overlap_and_slope(a.map(f64::from), b.map(f64::from));
            assert!((value - f64::from(found.to_vec1::<f32>().unwrap()[0])).abs() < 1e-5, "{a:?} {b:?}");
            for (found, wanted) in slope.iter().zip(&wanted[0]) {
                let off = (found - f64::from(*wanted)).abs();
                assert!(off <= 1e-3 * f64::from(wanted.abs()).max(1.0), "{a:?} {b:?}: {slope:?} {wanted:?}");
            }
        }
    }
}
