//! A few centres sum up a sequence, and a random walk from the centres of the words weighs the clips.

use candle_core::{D, Result, Tensor};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::softmax;

use super::Walk;

/// Spread of a centre.
const SIGMA: f64 = 1.2;
/// Added to a norm or a sum before anything is divided by it.
const EPS: f64 = 1e-9;
/// The chance of walking on.
const ON: f64 = 0.5;
/// A step walks on twice, so what is left of a walk falls to a quarter each time: after so many steps it is below the last digit.
const STEPS: usize = 14;

/// Rows divided by their length.
pub(super) fn short(x: &Tensor) -> Result<Tensor> {
    // The root has no slope at 0: kept a little above, far below the last digit.
    let norm = (x.sqr()?.sum_keepdim(D::Minus1)?.maximum(1e-24)?.sqrt()? + EPS)?;
    x.broadcast_div(&norm)
}

/// Centres moved towards what they stand for (expectation maximisation).
///
/// # Shapes
/// - centres `[batch, centres, width]`, steps `[batch, steps, width]`, mask `[batch, steps]` when padding is left out
pub(super) fn move_centres(centres: &Tensor, steps: &Tensor, mask: Option<&Tensor>, rounds: usize) -> Result<Tensor> {
    let of_steps = short(steps)?;
    let (across, squares) = (of_steps.t()?.contiguous()?, of_steps.sqr()?.sum(2)?.unsqueeze(1)?);
    let mut centres = centres.clone();
    for _ in 0..rounds {
        let of_centres = short(&centres)?;
        let near = (of_centres.times(&across)? * 2.0)?.broadcast_sub(&squares)?;
        let near = near.broadcast_sub(&of_centres.sqr()?.sum_keepdim(2)?)?;
        let shares = softmax(&(near * (0.5 / (SIGMA * SIGMA)))?, 1)?;
        let shares = match mask {
            Some(mask) => shares.broadcast_mul(&mask.unsqueeze(1)?)?,
            None => shares,
        };
        let total = (shares.sum_keepdim(2)? + EPS)?;
        centres = shares.contiguous()?.times(steps)?.broadcast_div(&total)?;
    }
    Ok(centres)
}

/// The clips as a walk between them and the centres leaves them; shapes as [`move_centres`].
pub(super) fn walk(centres: &Tensor, clips: &Tensor, mask: Option<&Tensor>, ending: Walk) -> Result<Tensor> {
    let alike = short(centres)?.times(&short(clips)?.t()?.contiguous()?)?;
    let to_centres = softmax(&(alike * 5.0)?, 1)?; // [batch, centres, clips]
    let back = match mask {
        Some(mask) => to_centres.broadcast_mul(&mask.unsqueeze(1)?)?,
        None => to_centres.clone(),
    };
    let back = back.broadcast_div(&(back.sum_keepdim(2)? + EPS)?)?.contiguous()?;
    let out = to_centres.t()?.contiguous()?; // [batch, clips, centres]
    let start = ((out.times(centres)? * ON)? + clips)?;
    // One step goes from clips to centres and back; the matrix of all pairs of clips is never made.
    let step = |x: &Tensor| out.times(&back.times(x)?)? * (ON * ON);
    let ended = match ending {
        Walk::Series => (&start - step(&start)?)?,
        Walk::Inverse => {
            let mut x = start.clone();
            for _ in 0..STEPS {
                x = (&start + step(&x)?)?;
            }
            x
        }
    };
    ended * (1.0 - ON)
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::Device;

    use super::*;

    fn drawn(shape: (usize, usize, usize), seed: u64) -> Tensor {
        let mut rng = Rng::new(seed);
        let values: Vec<f32> = (0..shape.0 * shape.1 * shape.2).map(|_| rng.normal() as f32).collect();
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }

    #[test]
    fn no_rounds_leave_the_centres_where_they_are() {
        let (centres, steps) = (drawn((2, 3, 4), 1), drawn((2, 5, 4), 2));
        let moved = move_centres(&centres, &steps, None, 0).unwrap();
        assert_eq!(crate::testing::gap(&moved, &centres), 0.0);
    }

    #[test]
    fn the_walk_solves_its_equation() {
        let (centres, clips) = (drawn((1, 3, 4), 1), drawn((1, 6, 4), 2));
        let found = (walk(&centres, &clips, None, Walk::Inverse).unwrap() / (1.0 - ON)).unwrap();
        let alike = short(&centres).unwrap().times(&short(&clips).unwrap().t().unwrap().contiguous().unwrap()).unwrap();
        let to = softmax(&(alike * 5.0).unwrap(), 1).unwrap();
        let back = to.broadcast_div(&to.sum_keepdim(2).unwrap()).unwrap();
        let pairs = to.t().unwrap().contiguous().unwrap().times(&back.contiguous().unwrap()).unwrap();
        let sums = pairs.sum(2).unwrap();
        assert!(crate::testing::gap(&sums, &sums.ones_like().unwrap()) < 1e-5, "every row sums to 1");
        let start = ((to.t().unwrap().contiguous().unwrap().times(&centres).unwrap() * ON).unwrap() + &clips).unwrap();
        let again = (&found - (pairs.times(&found).unwrap() * 0.25).unwrap()).unwrap();
        assert!(crate::testing::gap(&again, &start) < 1e-5);
    }
}
