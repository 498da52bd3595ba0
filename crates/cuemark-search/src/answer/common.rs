//! What everything has in common, taken out of both sides of a comparison.
//!
//! The vectors of all names lean one way, and so does every sentence and every moment made of them: a part of each cosine says only
//! that both are of this space, and it is largest for moments that are a little of everything. Without it a moment stands beside the
//! question's best name by what tells them apart. Mu and Viswanath, "All-but-the-Top", ICLR 2018, of which this is the first step:
//! taking out more directions found less.

use cuemark_core::{Span, VideoId};

use super::{Background, Calibration, Spread};
use crate::{Embedding, Index, Result};

/// What is left of a moment is at least this long: one that is nothing but common has no direction of its own.
const LEAST_LEFT: f32 = 0.1;

/// The direction that a background leans, and the background without it.
#[derive(Debug)]
pub(crate) struct Common {
    direction: Embedding,
    rest: Background,
}

impl Common {
    /// `None` of moments that lean nowhere.
    pub(super) fn of(moments: &[Embedding]) -> Option<Self> {
        let mut sum = vec![0.0; moments.first()?.width()];
        for moment in moments {
            sum.iter_mut().zip(moment.numbers()).for_each(|(sum, number)| *sum += number);
        }
        let direction = Embedding::unit(sum)?;
        let rest = Background::new(moments.iter().map(|moment| without(moment, &direction)).collect());
        Some(Self { direction, rest })
    }
}

fn without(embedding: &Embedding, direction: &Embedding) -> Embedding {
    embedding.away_from(direction, embedding.cosine(direction))
}

/// The cosine with what is left of a moment: from the product with all of it, and how far it goes along what was taken out.
fn with_rest(product: f32, along: f32) -> f32 {
    product / (1.0 - along * along).max(LEAST_LEFT * LEAST_LEFT).sqrt()
}

/// What is taken out of every comparison of an index: nothing, unless its curve says so.
pub(super) fn taken_out<'a>(background: &'a Background, curve: &Calibration) -> Option<&'a Common> {
    if curve.without_common { background.common() } else { None }
}

/// How a question's scores are spread over a background, as moments are compared with it.
pub(crate) fn spread(background: &Background, curve: &Calibration, query: &Embedding) -> Spread {
    match taken_out(background, curve) {
        Some(common) => common.rest.spread(&without(query, &common.direction)),
        None => background.spread(query),
    }
}

impl Index {
    /// Every moment of a video by its cosine with `to`, without what `common` is; `None` of a video that is not there.
    pub(super) fn scores_without(
        &self,
        common: Option<&Common>,
        video: &VideoId,
        to: &Embedding,
    ) -> Result<Option<Vec<(Span, f32)>>> {
        let Some(Common { direction, .. }) = common else { return self.engine().scores(video, to) };
        let Some(mut scored) = self.engine().scores(video, &without(to, direction))? else { return Ok(None) };
        let along = self.engine().scores(video, direction)?.unwrap_or_default();
        for ((_, score), (_, along)) in scored.iter_mut().zip(along) {
            *score = with_rest(*score, along);
        }
        Ok(Some(scored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(numbers: [f32; 3]) -> Embedding {
        Embedding::unit(numbers.to_vec()).unwrap()
    }

    /// Four names that lean along the third axis.
    fn names() -> Background {
        Background::new(vec![
            unit([1.0, 0.0, 1.0]),
            unit([-1.0, 0.0, 1.0]),
            unit([0.0, 1.0, 1.0]),
            unit([0.0, -1.0, 1.0]),
        ])
    }

    #[test]
    fn a_moment_that_is_a_little_of_everything_stands_near_nothing() {
        let (names, query) = (names(), unit([1.0, 0.0, 1.0]));
        let plain = Calibration::default();
        let curve = Calibration { without_common: true, ..plain };
        let common = taken_out(&names, &curve).unwrap();
        let left = |moment: &Embedding| {
            let product = without(&query, &common.direction).cosine(moment);
            with_rest(product, moment.cosine(&common.direction))
        };
        let (everything, itself, other) = (unit([0.1, 0.5, 2.0]), query.clone(), unit([0.0, 1.0, 1.0]));
        // As they are, what is everywhere seems to be most of the best name.
        assert!(names.spread(&query).share(query.cosine(&everything), 0.0) > 0.7);
        let spread = spread(&names, &curve, &query);
        assert!(spread.share(left(&everything), 0.0) < 0.25, "{}", left(&everything));
        assert!((spread.share(left(&itself), 0.0) - 1.0).abs() < 1e-5 && left(&other).abs() < 1e-5);
        assert!(taken_out(&names, &plain).is_none(), "indexes made before keep their rule");
    }

    #[test]
    fn scores_without_it_are_cosines_of_what_is_left() {
        let names = names();
        let common = names.common().unwrap();
        for (a, b) in [([0.3, -0.2, 0.9], [0.7, 0.1, 0.2]), ([-0.5, 0.4, 0.1], [0.2, 0.9, 0.6])] {
            let (a, b) = (unit(a), unit(b));
            let expected = without(&a, &common.direction).cosine(&without(&b, &common.direction));
            let found = with_rest(without(&a, &common.direction).cosine(&b), b.cosine(&common.direction));
            assert!((expected - found).abs() < 1e-5, "{expected} {found}");
        }
    }

    #[test]
    fn what_is_nothing_else_is_near_nothing_and_what_leans_nowhere_has_nothing_in_common() {
        assert!(with_rest(0.0, 1.0).abs() < 1e-6 && with_rest(1e-4, 1.0) < 0.01);
        assert!(Common::of(&[]).is_none());
        assert!(Common::of(&[unit([1.0, 0.0, 0.0]), unit([-1.0, 0.0, 0.0])]).is_none());
    }
}
