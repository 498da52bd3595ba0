//! Distance correlation of two sets of rows, with its gradient.

use candle_core::Tensor;
use cuemark_tensor::MatrixProduct as _;

use crate::Result;

/// Distance correlation of the rows of `x` and of `y`, both `[rows, width]`: 0 when they are independent, 1 at most.
///
/// The gradient is worked out by hand and carried by a sum that is 0: recorded by the tensors it would hold a dozen
/// rows × rows matrices until the backward pass.
pub(super) fn distance_correlation(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let correlate = if x.device().is_cpu() { correlate_on_cpu } else { correlate_with_tensors };
    let (value, by_x, by_y) = correlate(&x.detach(), &y.detach())?;
    let carrier = (along(x, &by_x)? + along(y, &by_y)?)?;
    Ok(((&carrier - carrier.detach())? + value)?)
}

/// A scalar whose gradient in the rows of `x` is that of a value with these slopes, `[rows, rows]` and symmetric, in the
/// squared distances between rows.
fn along(x: &Tensor, by_squares: &Tensor) -> Result<Tensor> {
    let rows = x.detach();
    let slope = (rows.broadcast_mul(&by_squares.sum_keepdim(1)?)? - by_squares.times(&rows)?)?;
    Ok((x * (slope * 4.0)?)?.sum(1)?.sum(0)?)
}

/// Distance correlation from `xy`, `xx` and `yy`, sums over all pairs of rows of products of centred distances, and its
/// slopes in the three.
fn from_sums(xy: f64, xx: f64, yy: f64, rows: usize) -> (f64, [f64; 3]) {
    let pairs = (rows as f64).powi(2);
    let [xy, xx, yy] = [xy, xx, yy].map(|sum| (sum / pairs).max(0.0).sqrt());
    let scale = xx * yy + 1e-9;
    // A root of 0 has no slope.
    let slope = |value: f64| if value.is_finite() { value / pairs } else { 0.0 };
    let by_own = |own: f64, other: f64| slope(-0.25 * xy / scale.powf(1.5) * other / own);
    (xy / scale.sqrt(), [slope(0.5 / (xy * scale.sqrt())), by_own(xx, yy), by_own(yy, xx)])
}

/// The distance correlation and its slopes in the squared distances of `x` and of `y`, `[rows, rows]` each.
fn correlate_with_tensors(x: &Tensor, y: &Tensor) -> Result<(f64, Tensor, Tensor)> {
    let distances = |x: &Tensor| -> Result<(Tensor, Tensor)> {
        let squares = x.sqr()?.sum_keepdim(1)?;
        let products = (x.times(&x.t()?)? * -2.0)?;
        let squared = products.broadcast_add(&squares)?.broadcast_add(&squares.t()?)?;
        let plain = (squared.relu()? + 1e-9)?.sqrt()?;
        let means = plain.mean_keepdim(1)?;
        let shifts = means.broadcast_sub(&means.mean_keepdim(0)?)?.t()?;
        let centred = plain.broadcast_sub(&means)?.broadcast_sub(&shifts)?;
        Ok((plain, centred))
    };
    let ((plain_x, a), (plain_y, b)) = (distances(x)?, distances(y)?);
    let sum = |a: &Tensor, b: &Tensor| -> Result<f64> { Ok(f64::from((a * b)?.sum(1)?.sum(0)?.to_scalar::<f32>()?)) };
    let (value, [by_xy, by_xx, by_yy]) = from_sums(sum(&a, &b)?, sum(&a, &a)?, sum(&b, &b)?, x.dim(0)?);
    // Centring is a projection, so that the slope in a plain distance is the centred matrix; 1 / (2 d) is the root's.
    let slopes = |own: &Tensor, other: &Tensor, plain: &Tensor, by_own: f64| -> Result<Tensor> {
        Ok((((own * by_own)? + (other * (0.5 * by_xy))?)? / plain)?)
    };
    Ok((value, slopes(&a, &b, &plain_x, by_xx)?, slopes(&b, &a, &plain_y, by_yy)?))
}

/// As [`correlate_with_tensors`], in three walks over the distances instead of some thirty.
fn correlate_on_cpu(x: &Tensor, y: &Tensor) -> Result<(f64, Tensor, Tensor)> {
    let rows = x.dim(0)?;
    let (mut a, mut b) = (Distances::new(x)?, Distances::new(y)?);
    let mut sums = [0f64; 3];
    for row in 0..rows {
        let mut of_row = [0f32; 3];
        for (a, b) in a.centred(row).zip(b.centred(row)) {
            of_row[0] += a * b;
            of_row[1] += a * a;
            of_row[2] += b * b;
        }
        sums.iter_mut().zip(of_row).for_each(|(sum, of_row)| *sum += f64::from(of_row));
    }
    let (value, slopes) = from_sums(sums[0], sums[1], sums[2], rows);
    let [by_xy, by_xx, by_yy] = slopes.map(|slope| slope as f32);
    let mut slopes = vec![(0f32, 0f32); rows];
    for row in 0..rows {
        let centred = a.centred(row).zip(b.centred(row));
        for (slopes, (a, b)) in slopes.iter_mut().zip(centred) {
            *slopes = (a * by_xx + b * (0.5 * by_xy), b * by_yy + a * (0.5 * by_xy));
        }
        let distances = a.row_mut(row).iter_mut().zip(b.row_mut(row));
        for ((a, b), (by_a, by_b)) in distances.zip(&slopes) {
            (*a, *b) = (by_a / *a, by_b / *b);
        }
    }
    let tensor = |distances: Distances| Tensor::from_vec(distances.values, (rows, rows), x.device());
    Ok((value, tensor(a)?, tensor(b)?))
}

/// Distances between all rows of a matrix, in memory.
struct Distances {
    /// Row by row.
    values: Vec<f32>,
    /// The mean of each row.
    means: Vec<f32>,
    /// The mean of all.
    mean: f32,
}

impl Distances {
    pub(super) fn new(x: &Tensor) -> Result<Self> {
        let mut values = x.times(&x.t()?)?.flatten_all()?.to_vec1::<f32>()?;
        let squares = x.sqr()?.sum(1)?.to_vec1::<f32>()?;
        let rows = squares.len();
        let mut means = Vec::with_capacity(rows);
        for (row, square) in values.chunks_exact_mut(rows.max(1)).zip(&squares) {
            for (value, other) in row.iter_mut().zip(&squares) {
                *value = ((square + other - 2.0 * *value).max(0.0) + 1e-9).sqrt();
            }
            means.push((row.iter().map(|value| f64::from(*value)).sum::<f64>() / rows as f64) as f32);
        }
        let mean = means.iter().map(|mean| f64::from(*mean)).sum::<f64>() / rows as f64;
        Ok(Self { values, means, mean: mean as f32 })
    }

    /// One row with the means of rows and columns taken out.
    fn centred(&self, row: usize) -> impl Iterator<Item = f32> + '_ {
        let rows = self.means.len();
        let own = self.means[row] - self.mean;
        self.values[row * rows..(row + 1) * rows].iter().zip(&self.means).map(move |(value, mean)| value - own - mean)
    }

    fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let rows = self.means.len();
        &mut self.values[row * rows..(row + 1) * rows]
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::{Device, Var};

    use super::*;
    use crate::testing::gap;

    /// The definition in plain loops.
    fn correlation_by_definition(x: &[Vec<f64>], y: &[Vec<f64>]) -> f64 {
        let rows = x.len();
        let centred = |x: &[Vec<f64>]| -> Vec<Vec<f64>> {
            let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            let plain: Vec<Vec<f64>> = x.iter().map(|a| x.iter().map(|b| distance(a, b)).collect()).collect();
            let means: Vec<f64> = plain.iter().map(|row| row.iter().sum::<f64>() / rows as f64).collect();
            let mean = means.iter().sum::<f64>() / rows as f64;
            let centre = |i: usize, j: usize| plain[i][j] - means[i] - means[j] + mean;
            (0..rows).map(|i| (0..rows).map(|j| centre(i, j)).collect()).collect()
        };
        let (a, b) = (centred(x), centred(y));
        let covariance = |a: &[Vec<f64>], b: &[Vec<f64>]| -> f64 {
            a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum::<f64>()
        };
        (covariance(&a, &b) / (covariance(&a, &a) * covariance(&b, &b)).sqrt()).sqrt()
    }

    #[test]
    fn distances_of_a_thing_correlate_fully_with_themselves_and_with_their_multiples() {
        let x = Tensor::arange(0f32, 24.0, &Device::Cpu).unwrap().reshape((8, 3)).unwrap().sin().unwrap();
        for y in [x.clone(), (&x * 3.0).unwrap()] {
            let value = distance_correlation(&x, &y).unwrap().to_scalar::<f32>().unwrap();
            assert!((value - 1.0).abs() < 1e-3, "{value}");
        }
    }

    #[test]
    fn distance_correlation_is_its_definition_with_and_without_tensors() {
        let mut rng = Rng::new(3);
        let rows = 60;
        let x: Vec<Vec<f64>> = (0..rows).map(|_| vec![rng.normal(), rng.normal()]).collect();
        let y: Vec<Vec<f64>> = x.iter().map(|row| vec![row[0] + rng.normal(), row[1] * row[0], rng.normal()]).collect();
        let tensor = |x: &[Vec<f64>]| {
            let values: Vec<f32> = x.iter().flatten().map(|value| *value as f32).collect();
            Tensor::from_vec(values, (rows, x[0].len()), &Device::Cpu).unwrap()
        };
        let wanted = correlation_by_definition(&x, &y);
        let (on_cpu, x_cpu, y_cpu) = correlate_on_cpu(&tensor(&x), &tensor(&y)).unwrap();
        let (with_tensors, x_tensors, y_tensors) = correlate_with_tensors(&tensor(&x), &tensor(&y)).unwrap();
        assert!(
            (on_cpu - wanted).abs() < 1e-4 && (with_tensors - wanted).abs() < 1e-4,
            "{on_cpu} {with_tensors} {wanted}"
        );
        // Slopes at a distance of 0 are large and cancel: they are compared as they are used.
        for (rows, a, b) in [(tensor(&x), x_cpu, x_tensors), (tensor(&y), y_cpu, y_tensors)] {
            let pull = |slopes: &Tensor| {
                let own = rows.broadcast_mul(&slopes.sum_keepdim(1).unwrap()).unwrap();
                (own - slopes.times(&rows).unwrap()).unwrap()
            };
            assert!(gap(&pull(&a), &pull(&b)) < 1e-4);
        }
    }

    #[test]
    fn the_gradient_of_the_distance_correlation_is_that_of_small_steps() {
        let values = |phase: f32| (0..24).map(|n| (n as f32 * 0.9 + phase).sin() * 2.0).collect::<Vec<f32>>();
        let var = |values: &[f32]| Var::from_slice(values, (8, 3), &Device::Cpu).unwrap();
        let value = |x: &[f32], y: &[f32]| {
            distance_correlation(var(x).as_tensor(), var(y).as_tensor()).unwrap().to_scalar::<f32>().unwrap()
        };
        let (x, y) = (values(0.0), values(1.3));
        let (of_x, of_y) = (var(&x), var(&y));
        let grads = distance_correlation(of_x.as_tensor(), of_y.as_tensor()).unwrap().backward().unwrap();
        let grad = |of: &Var| grads.get(of.as_tensor()).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for place in [0, 7, 16, 23] {
            let moved = |values: &[f32], by: f32| {
                let mut moved = values.to_vec();
                moved[place] += by;
                moved
            };
            let in_x = (value(&moved(&x, 1e-2), &y) - value(&moved(&x, -1e-2), &y)) / 2e-2;
            let in_y = (value(&x, &moved(&y, 1e-2)) - value(&x, &moved(&y, -1e-2))) / 2e-2;
            assert!((in_x - grad(&of_x)[place]).abs() < 1e-3, "{in_x} {}", grad(&of_x)[place]);
            assert!((in_y - grad(&of_y)[place]).abs() < 1e-3, "{in_y} {}", grad(&of_y)[place]);
        }
    }
}
