//! From what the levels say to ranked spans.

use candle_core::Tensor;
use cuemark_core::NormSpan;
use cuemark_tensor::functional::sigmoid;

use super::{Drn, Forward, all};
use crate::{Proposal, Result};

impl Drn {
    /// Spans of all locations as fractions, not clamped, `[batch, locations, 2]`.
    pub(super) fn decoded(&self, forward: &Forward) -> Result<Tensor> {
        let middles: Vec<f32> =
            (0..self.config.levels.len()).flat_map(|level| self.locations(level)).map(|x| x as f32).collect();
        let distances = all(&forward.levels, |level| &level.distances)?;
        let middles = Tensor::from_vec(middles, (1, distances.dim(1)?), distances.device())?;
        let start = middles.broadcast_sub(&distances.narrow(2, 0, 1)?.squeeze(2)?)?;
        let end = middles.broadcast_add(&distances.narrow(2, 1, 1)?.squeeze(2)?)?;
        Ok((Tensor::stack(&[start, end], 2)? * (1.0 / self.config.clips as f64))?)
    }

    /// The answers of each query by level and location, before they are sorted; the whole video when there is none.
    pub(super) fn detections(&self, forward: &Forward, scores: Scores) -> Result<Vec<Vec<Proposal>>> {
        let class = sigmoid(&all(&forward.levels, |level| &level.class)?)?.to_vec2::<f32>()?;
        let overlap = sigmoid(&all(&forward.levels, |level| &level.overlap)?)?.to_vec2::<f32>()?;
        let decoded = self.decoded(forward)?.to_vec3::<f32>()?;
        let counts: Vec<usize> = (0..self.config.levels.len()).map(|level| self.locations(level).len()).collect();
        let of_query = |query: usize| {
            let mut found = Vec::new();
            let mut from = 0;
            for count in &counts {
                let mut places: Vec<usize> = (from..from + count).collect();
                places.retain(|place| f64::from(class[query][*place]) > self.config.min_score);
                if places.len() > self.config.top {
                    places.sort_by(|a, b| class[query][*b].total_cmp(&class[query][*a]));
                    places.truncate(self.config.top);
                    places.sort_unstable();
                }
                found.extend(places.into_iter().filter_map(|place| {
                    let row = &decoded[query][place];
                    let span = NormSpan::new(f64::from(row[0]), f64::from(row[1]))?.clipped();
                    let factor = if scores == Scores::Class { 1.0 } else { overlap[query][place] };
                    Some(Proposal { span, score: (class[query][place] * factor).sqrt() })
                }));
                from += count;
            }
            if found.is_empty() {
                found.extend(NormSpan::new(0.0, 1.0).map(|span| Proposal { span, score: 1.0 }));
            }
            found
        };
        Ok((0..class.len()).map(of_query).collect())
    }
}

/// What an answer's score is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scores {
    /// The score head alone, as in the first stage.
    Class,
    /// The score head and the overlap head.
    ClassAndOverlap,
}
