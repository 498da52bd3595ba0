//! The one place that calls the matrix-product library.

/// `out = left · rightᵀ` on the calling thread, all three row after row: `left` has `out.len() / rights` rows of
/// `width`, `right` has `rights` rows of `width`.
///
/// # Panics
/// When the lengths do not fit each other; that is a bug of the caller.
pub(super) fn product(left: &[f32], right: &[f32], width: usize, out: &mut [f32]) {
    if out.is_empty() {
        return;
    }
    let lefts = left.len() / width.max(1);
    let rights = right.len() / width.max(1);
    assert!(
        left.len() == lefts * width && right.len() == rights * width && out.len() == lefts * rights,
        "{} × {width} and {} × {width} values do not give {}",
        left.len(),
        right.len(),
        out.len()
    );
    let (width_step, right_step) = (width as isize, rights as isize);
    // SAFETY: `out` is lefts × rights with steps (rights, 1), `left` is lefts × width with steps (width, 1) and
    // `rightᵀ` is width × rights with steps (1, width); the assertion above makes every index of each lie inside its
    // slice, and `out` is borrowed mutably, so it overlaps neither of the others.
    #[allow(unsafe_code)]
    unsafe {
        gemm::gemm(
            lefts,
            rights,
            width,
            out.as_mut_ptr(),
            1,
            right_step,
            false,
            left.as_ptr(),
            1,
            width_step,
            right.as_ptr(),
            width_step,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::Rng;

    #[test]
    fn the_product_is_that_of_three_plain_loops() {
        let mut rng = Rng::new(3);
        for (lefts, rights, width) in [(1, 1, 1), (3, 5, 7), (17, 33, 64), (40, 2, 384)] {
            let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.normal() as f32).collect() };
            let (left, right) = (draw(lefts * width), draw(rights * width));
            let mut out = vec![f32::NAN; lefts * rights];
            product(&left, &right, width, &mut out);
            for (row, values) in out.chunks(rights).enumerate() {
                for (column, value) in values.iter().enumerate() {
                    let pair = left[row * width..].iter().zip(&right[column * width..][..width]);
                    let expected: f64 = pair.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    assert!((f64::from(*value) - expected).abs() < 1e-3, "{value} {expected}");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "do not give")]
    fn lengths_that_do_not_fit_never_reach_the_library() {
        product(&[0.0; 4], &[0.0; 4], 2, &mut [0.0; 5]);
    }
}
