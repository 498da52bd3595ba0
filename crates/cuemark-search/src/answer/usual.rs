//! What a question scores on anything in this index: what an answer must stand out from.
//!
//! Half of the class names that a sentence comes near are near to nearly everything that this collection shows. What all its moments
//! score is no evidence, so a cut is held against heights above that. A collection of one film, or of one subject, is all alike, and
//! what it is about must still be found in it: there, what a question scores on names that may be seen anywhere counts for more.

use std::sync::{Arc, PoisonError};

use super::{Background, MOMENTS_OF_FILM, Spread};
use crate::{Embedding, Index, Result, dot};

/// The films whose weight the names have that may be seen anywhere.
const NAMES_ARE: f64 = 8.0;
/// The most that the films of an index may count, however many there are.
const MOST: f64 = 0.7;

/// What the moments of an index have in common.
#[derive(Debug)]
pub(crate) struct Usual {
    /// Of a sample of them; empty where there are none.
    mean: Vec<f32>,
    /// What it counts beside the names.
    weight: f64,
}

/// The moments that an index had then.
pub(crate) type Moments = usize;

impl Usual {
    fn of(sample: &[Embedding], moments: Moments) -> Self {
        let mut mean = vec![0.0; sample.first().map_or(0, Embedding::width)];
        for moment in sample {
            mean.iter_mut().zip(moment.numbers()).for_each(|(sum, number)| *sum += number / sample.len() as f32);
        }
        let films = moments as f64 / MOMENTS_OF_FILM;
        Self { weight: if sample.is_empty() { 0.0 } else { (films / (films + NAMES_ARE)).min(MOST) }, mean }
    }

    /// What a question scores on anything, where it is spread like this over the names.
    pub(super) fn score(&self, query: &Embedding, names: &Spread) -> f64 {
        if self.mean.len() != query.width() {
            return names.mean();
        }
        self.weight * f64::from(dot(&self.mean, query.numbers())) + (1.0 - self.weight) * names.mean()
    }
}

impl Index {
    /// What its moments have in common, by a sample that is taken anew when moments have come or gone.
    pub(super) fn usual(&self) -> Result<Arc<Usual>> {
        let moments = self.engine().status()?.moments;
        let mut known = self.usual_cell().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, usual)) = known.as_ref().filter(|(then, _)| *then == moments) {
            return Ok(Arc::clone(usual));
        }
        let usual = Arc::new(Usual::of(&self.engine().sample(Background::SIZE)?, moments));
        *known = Some((moments, Arc::clone(&usual)));
        Ok(usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(numbers: [f32; 2]) -> Embedding {
        Embedding::unit(numbers.to_vec()).unwrap()
    }

    /// What a question scores above what is usual, as a share of what its best name does, in an index of so many moments, all of
    /// which score `usual`; its names score 0 and 1.
    fn standing(moments: usize, usual: f32, score: f32) -> f64 {
        let query = unit([1.0, 0.0]);
        let names = Background::new(vec![query.clone(), unit([0.0, 1.0])]).spread(&query);
        let moment = unit([usual, (1.0 - usual * usual).sqrt()]);
        let usual = Usual::of(&vec![moment; moments.min(50)], moments);
        names.share(score, usual.score(&query, &names))
    }

    #[test]
    fn what_everything_scores_is_no_evidence() {
        let many = 36 * 12;
        assert!(standing(many, 0.6, 0.65) < 0.4, "{}", standing(many, 0.6, 0.65));
        assert!(standing(many, 0.1, 0.65) > 0.5, "the same score where little comes near");
        assert!(standing(12, 0.6, 0.65) < standing(12, 0.1, 0.65), "a single film says a little");
    }

    #[test]
    fn a_collection_of_one_subject_and_one_of_one_film_are_found_by_what_they_show() {
        // Nearly as good as a name by itself, as are all the others.
        for moments in [1, 12, 12 * 36, 12 * 10_000] {
            assert!(standing(moments, 0.85, 0.9) > 0.6, "{moments}: {}", standing(moments, 0.85, 0.9));
        }
    }

    #[test]
    fn an_empty_index_leaves_it_to_the_names() {
        let query = unit([1.0, 0.0]);
        let names = Background::new(vec![query.clone(), unit([0.0, 1.0])]).spread(&query);
        assert_eq!(Usual::of(&[], 0).score(&query, &names), names.mean());
    }
}
