//! The shape of one kernel: how wide, how tilted, how high.

use cuemark_core::NormSpan;

use crate::{ProtocolError, Result};

/// Added to the diagonal of a covariance that has no width in some direction.
const DIAGONAL_FLOOR: f64 = 1e-6;

/// A bivariate normal kernel with covariance `H = L·Lᵀ`, and the mean of the points it was fitted to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel {
    mean: [f64; 2],
    /// Lower Cholesky factor of `H`: `[[a, 0], [b, c]]`.
    cholesky: [f64; 3],
}

impl Kernel {
    /// Scott's bandwidth: `H = n^(-1/3) · C`, `C` the unbiased covariance of `points`.
    pub(super) fn fit(points: &[NormSpan]) -> Result<Self> {
        if points.is_empty() {
            return Err(ProtocolError::NoMoments { what: "the density".to_owned() });
        }
        let n = points.len() as f64;
        let total = points.iter().fold([0.0, 0.0], |[x, y], point| [x + point.start(), y + point.end()]);
        let mean = total.map(|sum| sum / n);
        let [xx, xy, yy] = points.iter().fold([0.0; 3], |[xx, xy, yy], point| {
            let (x, y) = (point.start() - mean[0], point.end() - mean[1]);
            [xx + x * x, xy + x * y, yy + y * y]
        });
        // One point has no covariance; the floor below gives it a width.
        let covariance = [xx, xy, yy].map(|sum| sum / (n - 1.0).max(1.0));
        let [xx, xy, yy] = with_floor(covariance).map(|c| c * n.powf(-1.0 / 3.0));
        let a = xx.sqrt();
        let b = xy / a;
        let c = (yy - b * b).sqrt();
        if [a, b, c].iter().all(|entry| entry.is_finite()) && a > 0.0 && c > 0.0 {
            Ok(Self { mean, cholesky: [a, b, c] })
        } else {
            Err(ProtocolError::Spread { points: points.len() })
        }
    }

    /// The density of one kernel at its own centre.
    pub(super) fn peak(&self) -> f64 {
        let [a, _, c] = self.cholesky;
        1.0 / (std::f64::consts::TAU * a * c)
    }

    /// Coordinates in which the kernel, relative to its peak, is `2^-(distance²)`.
    pub(super) fn whiten(&self, start: f64, end: f64) -> [f64; 2] {
        let [a, b, c] = self.cholesky;
        // exp(-z²/2) = 2^-(s·z)² with s² = log2(e)/2.
        let scale = (0.5 * std::f64::consts::LOG2_E).sqrt();
        let x = (start - self.mean[0]) / a;
        let y = (end - self.mean[1] - b * x) / c;
        [x * scale, y * scale]
    }

    /// `L` times a pair of standard normal numbers.
    pub(super) fn colour(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [a, b, c] = self.cholesky;
        [a * x, b * x + c * y]
    }
}

/// `[xx, xy, yy]` with the floor added to `xx` and `yy` when the smaller eigenvalue lies below it.
fn with_floor([xx, xy, yy]: [f64; 3]) -> [f64; 3] {
    let smaller_eigenvalue = 0.5 * (xx + yy) - (0.25 * (xx - yy).powi(2) + xy * xy).sqrt();
    if smaller_eigenvalue < DIAGONAL_FLOOR { [xx + DIAGONAL_FLOOR, xy, yy + DIAGONAL_FLOOR] } else { [xx, xy, yy] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: &[(f64, f64)]) -> Vec<NormSpan> {
        of.iter().map(|&(start, end)| NormSpan::new(start, end).unwrap()).collect()
    }

    #[test]
    fn whitening_undoes_colouring() {
        let kernel = Kernel::fit(&points(&[(0.1, 0.2), (0.3, 0.9), (0.0, 0.5), (0.6, 0.7)])).unwrap();
        let scale = (0.5 * std::f64::consts::LOG2_E).sqrt();
        let [dx, dy] = kernel.colour([0.3, -1.7]);
        let [x, y] = kernel.whiten(kernel.mean[0] + dx, kernel.mean[1] + dy);
        assert!((x / scale - 0.3).abs() < 1e-12 && (y / scale + 1.7).abs() < 1e-12, "{x} {y}");
    }

    #[test]
    fn points_on_a_line_or_all_the_same_still_have_a_width() {
        for degenerate in [vec![(0.5, 0.6)], vec![(0.2, 0.4); 50], vec![(0.1, 0.3), (0.2, 0.4), (0.5, 0.7)]] {
            let kernel = Kernel::fit(&points(&degenerate)).unwrap();
            assert!(kernel.peak().is_finite() && kernel.peak() > 0.0);
        }
    }

    #[test]
    fn no_points_and_absurd_points_are_refused() {
        assert!(matches!(Kernel::fit(&[]), Err(ProtocolError::NoMoments { .. })));
        let absurd = points(&[(0.0, 1.0), (1e300, 1.5e300)]);
        assert!(matches!(Kernel::fit(&absurd), Err(ProtocolError::Spread { points: 2 })));
    }
}
