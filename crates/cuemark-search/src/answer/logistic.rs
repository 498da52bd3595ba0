//! Logistic curves over several inputs, fitted by Newton's method.

/// What is known of one answer: what the curve reads of it, and whether it is right.
pub(super) type Judged<const N: usize> = ([f64; N], bool);

/// Solves `N` equations; `None` where they have no solution.
pub(super) type Solve<const N: usize> = fn([[f64; N]; N], [f64; N]) -> Option<[f64; N]>;

/// The weights of the curve that fits `judged` best, from `start` on, in at most so many `rounds`.
pub(super) fn fit<const N: usize>(
    start: [f64; N],
    judged: &[Judged<N>],
    rounds: usize,
    solve: Solve<N>,
) -> Option<[f64; N]> {
    let right = judged.iter().filter(|(_, right)| *right).count() as f64;
    // The two targets are drawn in a little, as Platt does, so that a sample without a mistake does not give certainty.
    let [high, low] = [(right + 1.0) / (right + 2.0), 1.0 / (judged.len() as f64 - right + 2.0)];
    let mut weights = start;
    for _ in 0..rounds {
        let (mut gradient, mut curve) = ([0.0f64; N], [[0.0f64; N]; N]);
        for (inputs, right) in judged {
            let sum: f64 = weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum();
            let p = 1.0 / (1.0 + (-sum).exp());
            let error = p - if *right { high } else { low };
            for row in 0..N {
                gradient[row] += error * inputs[row];
                for column in 0..N {
                    curve[row][column] += p * (1.0 - p) * inputs[row] * inputs[column];
                }
            }
        }
        // A little ridge: z and score are nearly the same for some encoders, and then nothing says which of them counts.
        (0..N).for_each(|row| curve[row][row] += 1e-3);
        let step = solve(curve, gradient)?;
        let longest = step.iter().fold(0.0f64, |longest, part| longest.max(part.abs()));
        // A long first step can overshoot where the curve is flat.
        let shorten = (4.0 / longest).min(1.0);
        weights.iter_mut().zip(step).for_each(|(weight, part)| *weight -= shorten * part);
        if longest < 1e-9 {
            break;
        }
    }
    Some(weights)
}
