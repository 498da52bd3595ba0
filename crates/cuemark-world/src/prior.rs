//! Where in a video the moments lie: the bias that the world puts in and everybody else has to find.
//!
//! A moment is drawn as a length (a fraction of the video) and a placement (0 = as early as that length allows,
//! 1 = as late). Both have a density that is raised to the power `bias`: at 0 they are uniform, at 1 as peaked as
//! written below. The placement's density has a part that all queries share, a part for each verb and, in worlds that ask
//! for it, a part for each actor's colour: three confounders that can be told apart. Test-ood uses the same draw mirrored in
//! time, which changes no length; at bias 0 the mirror image has the same distribution.

use cuemark_core::{NormSpan, Rng};

use crate::{Colour, Verb};

/// Whether moments lie where they usually do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Train, val and test-iid.
    Usual,
    /// Test-ood: mirrored in time.
    Reversed,
}

/// Cells of the density tables; draws are uniform inside a cell.
const CELLS: usize = 128;
const SHORTEST: f64 = 0.10;
const LONGEST: f64 = 0.35;

/// How much of the place of a moment hangs on what the query says; the rest is the same for all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// On its verb.
    pub verb: f64,
    /// On the colour of its actor.
    pub actor: f64,
}

impl Default for Shares {
    fn default() -> Self {
        Self { verb: 0.75, actor: 0.0 }
    }
}

/// The distribution of moments over a video.
#[derive(Debug, Clone)]
pub struct Prior {
    bias: f64,
    overlong: f64,
    shares: Shares,
}

impl Prior {
    /// `bias` sharpens the densities; `overlong` is the share of moments that fill half of the video or more.
    pub fn new(bias: f64, overlong: f64, shares: Shares) -> Self {
        Self { bias, overlong, shares }
    }

    /// One moment in which somebody of that colour does that, inside 0..1.
    pub fn draw(&self, verb: Verb, actor: Colour, side: Side, rng: &mut Rng) -> NormSpan {
        let length = if rng.chance(self.overlong) {
            rng.between(0.5, 0.9)
        } else {
            SHORTEST + (LONGEST - SHORTEST) * self.sharpened(usual_length, rng)
        };
        let Shares { verb: of_verb, actor: of_actor } = self.shares;
        let of_all = 1.0 - of_verb - of_actor;
        let density = |u| of_all * early(u) + of_verb * habit(verb, u) + of_actor * custom(actor, u);
        let usual = self.sharpened(density, rng);
        let placement = match side {
            Side::Usual => usual,
            Side::Reversed => 1.0 - usual,
        };
        let start = placement * (1.0 - length);
        NormSpan::new(start, start + length).unwrap_or_else(|| unreachable!("both are finite"))
    }

    /// A number in 0..1 with density proportional to `density` to the power of the bias.
    fn sharpened(&self, density: impl Fn(f64) -> f64, rng: &mut Rng) -> f64 {
        let weights: Vec<f64> =
            (0..CELLS).map(|cell| density((cell as f64 + 0.5) / CELLS as f64).powf(self.bias)).collect();
        let cell = rng.weighted(&weights).unwrap_or(0);
        (cell as f64 + rng.uniform()) / CELLS as f64
    }
}

/// A peak at `mean` on a low floor, so that no place is ever impossible.
fn peak(u: f64, mean: f64, sd: f64) -> f64 {
    0.05 + (-0.5 * ((u - mean) / sd).powi(2)).exp()
}

/// All verbs: rather early, as in films of people who cut to the chase.
fn early(u: f64) -> f64 {
    peak(u, 0.15, 0.16)
}

/// What each verb adds; none is centred, or its mirror image would be the same.
fn habit(verb: Verb, u: f64) -> f64 {
    let mean = match verb {
        Verb::Enter => 0.04,
        Verb::Jump => 0.12,
        Verb::Spin => 0.24,
        Verb::Slide => 0.32,
        Verb::Grow => 0.40,
        Verb::Meet => 0.76,
        Verb::Leave => 0.96,
    };
    peak(u, mean, 0.1)
}

/// What each colour adds, where actors count; as with verbs, none is centred.
fn custom(actor: Colour, u: f64) -> f64 {
    let mean = match actor {
        Colour::Red => 0.06,
        Colour::Orange => 0.16,
        Colour::Yellow => 0.26,
        Colour::Green => 0.36,
        Colour::Cyan => 0.64,
        Colour::Blue => 0.74,
        Colour::Purple => 0.84,
        Colour::Pink => 0.94,
    };
    peak(u, mean, 0.1)
}

/// Lengths between the shortest (0) and the longest (1).
fn usual_length(u: f64) -> f64 {
    peak(u, 0.4, 0.22)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_centre(bias: f64, side: Side, verb: Verb) -> f64 {
        mean_centre_of(&Prior::new(bias, 0.1, Shares::default()), side, verb, Colour::Red)
    }

    fn mean_centre_of(prior: &Prior, side: Side, verb: Verb, actor: Colour) -> f64 {
        let mut rng = Rng::new(3);
        (0..4_000).map(|_| prior.draw(verb, actor, side, &mut rng).centre()).sum::<f64>() / 4_000.0
    }

    #[test]
    fn what_a_place_hangs_on_can_be_told_apart() {
        let far = |shares: Shares, (a, b): (Verb, Verb), (one, other): (Colour, Colour)| {
            let prior = Prior::new(1.0, 0.0, shares);
            let left = mean_centre_of(&prior, Side::Usual, a, one);
            (left - mean_centre_of(&prior, Side::Usual, b, other)).abs()
        };
        let (verbs, colours) = ((Verb::Enter, Verb::Leave), (Colour::Red, Colour::Pink));
        let (same_verb, same_colour) = ((Verb::Enter, Verb::Enter), (Colour::Red, Colour::Red));
        for (shares, by_verb, by_actor) in [
            (Shares { verb: 0.0, actor: 0.0 }, false, false),
            (Shares { verb: 1.0, actor: 0.0 }, true, false),
            (Shares { verb: 0.0, actor: 1.0 }, false, true),
            (Shares { verb: 0.5, actor: 0.5 }, true, true),
        ] {
            // The same draws with the same seed differ by nothing at all where the density does not.
            assert_eq!(far(shares, verbs, same_colour) > 0.1, by_verb, "{shares:?}");
            assert_eq!(far(shares, same_verb, colours) > 0.1, by_actor, "{shares:?}");
        }
    }

    #[test]
    fn moments_lie_inside_the_video_and_have_their_lengths() {
        let (prior, mut rng) = (Prior::new(0.7, 0.25, Shares::default()), Rng::new(1));
        let mut overlong = 0;
        for round in 0..4_000 {
            let span = prior.draw(Verb::ALL[round % 7], Colour::ALL[round % 8], Side::Reversed, &mut rng);
            assert!(span.start() >= 0.0 && span.end() <= 1.0 + 1e-12);
            assert!((SHORTEST - 1e-12..=0.9 + 1e-12).contains(&span.len()));
            overlong += usize::from(span.len() >= 0.5);
        }
        // 1000 are expected; four standard deviations are 110.
        assert!((890..1_110).contains(&overlong), "{overlong}");
    }

    #[test]
    fn without_bias_the_mirror_image_is_the_same_and_no_verb_has_a_place_of_its_own() {
        for verb in Verb::ALL {
            for side in [Side::Usual, Side::Reversed] {
                // A centre has a standard deviation of about 0.2, its mean over 4000 one of 0.0034.
                assert!((mean_centre(0.0, side, verb) - 0.5).abs() < 0.014, "{verb:?} {side:?}");
            }
        }
    }

    #[test]
    fn with_bias_the_mirror_image_is_elsewhere_and_verbs_differ() {
        for verb in Verb::ALL {
            let (usual, reversed) = (mean_centre(1.0, Side::Usual, verb), mean_centre(1.0, Side::Reversed, verb));
            assert!((usual + reversed - 1.0).abs() < 0.014, "a mirror image: {usual} {reversed}");
        }
        let (enter, leave) = (mean_centre(1.0, Side::Usual, Verb::Enter), mean_centre(1.0, Side::Usual, Verb::Leave));
        assert!(enter < 0.35 && leave > enter + 0.1, "{enter} {leave}");
    }
}
