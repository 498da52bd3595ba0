//! Clip features brought to one scale (z-scores, `data.standardise`): an extractor whose numbers differ in size by a factor of a thousand
//! hides the small ones, above all where rows are brought to length 1 afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;

use cuemark_core::{Truth, VideoId};
use cuemark_features::{Features, Normalise};
use cuemark_tensor::{Params, Tensor};

use crate::footage::Footage;
use crate::{Result, TrainError};

/// Training videos that are measured, spread over all of them.
const MEASURED: usize = 2_000;

/// Standard deviations at which a number is cut off: one film that is like no other must not outshine the rest of its row.
const FURTHEST: f32 = 5.0;

/// What the names of its buffers begin with: it is a part of the trained model and lies in its checkpoints.
pub(crate) const CLIPS: &str = "clips.";
const MEAN: &str = "clips.fixed_mean";
const DEVIATION: &str = "clips.fixed_deviation";

/// Mean and standard deviation of every number of a row, further streams after the first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    mean: Vec<f32>,
    /// 0 for a number that is always the same.
    deviation: Vec<f32>,
}

impl Scale {
    /// That of the videos of the training queries, and of no other.
    pub(crate) fn measured(footage: &Footage, train: &[Truth]) -> Result<Self> {
        let written_for = train.iter().filter_map(|truth| truth.video.as_ref()).map(|video| &video.id);
        // Queries of a whole corpus are written for no video; what answers them is.
        let answering = train.iter().flat_map(|truth| &truth.moments).map(|graded| &graded.moment.video);
        let videos: BTreeSet<&VideoId> = written_for.chain(answering).collect();
        if videos.is_empty() {
            let problem = "no training query names a video to measure".to_owned();
            return Err(TrainError::Setting { key: "data.standardise", problem, hint: Some("leave it out".into()) });
        }
        let mut sums = Sums::default();
        for video in videos.iter().step_by(videos.len().div_ceil(MEASURED).max(1)) {
            sums.add(&footage.as_stored(video)?);
        }
        Ok(sums.scale())
    }

    /// Puts it among the parameters of a fresh model.
    pub(crate) fn keep(&self, params: &Params) -> Result<()> {
        for (name, numbers) in [(MEAN, &self.mean), (DEVIATION, &self.deviation)] {
            params.builder().get(numbers.len(), name)?;
            let Some(var) = params.var(name) else { unreachable!("it was just made") };
            var.set(&Tensor::new(numbers.as_slice(), params.device())?)?;
        }
        Ok(())
    }

    /// What a checkpoint has kept, for rows of so many numbers.
    pub(crate) fn kept(params: &Params, width: usize) -> Result<Self> {
        let numbers = |name: &str| Ok(params.builder().get(width, name)?.to_vec1::<f32>()?);
        numbers(MEAN).and_then(|mean| Ok(Self { mean, deviation: numbers(DEVIATION)? }))
    }

    /// Rows on this scale, where there is one, and then of the length that a model wants; `first` numbers of other streams stand before
    /// them.
    pub(crate) fn brought(scale: Option<&Arc<Self>>, normalise: Normalise, rows: Features, first: usize) -> Features {
        normalise.apply(match scale {
            Some(scale) => scale.apply(rows, first),
            None => rows,
        })
    }

    /// The rows in standard deviations from the mean; `first` numbers of other streams stand before them.
    fn apply(&self, features: Features, first: usize) -> Features {
        let (rows, width) = (features.rows(), features.width());
        let mut data = features.into_data();
        for row in data.chunks_exact_mut(width.max(1)) {
            let by = self.mean.iter().zip(&self.deviation).skip(first);
            for (number, (mean, deviation)) in row.iter_mut().zip(by) {
                let away = if *deviation > 0.0 { (*number - mean) / deviation } else { 0.0 };
                *number = away.clamp(-FURTHEST, FURTHEST);
            }
        }
        Features::new(rows, width, data).unwrap_or_else(|| unreachable!("as many numbers as before"))
    }
}

/// Sums over rows, in f64: hundreds of thousands of them are added.
#[derive(Default)]
struct Sums {
    rows: f64,
    numbers: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn add(&mut self, features: &Features) {
        let width = features.width();
        self.numbers.resize(width, 0.0);
        self.squares.resize(width, 0.0);
        for row in features.data().chunks_exact(width.max(1)) {
            self.rows += 1.0;
            for ((number, sum), square) in row.iter().zip(&mut self.numbers).zip(&mut self.squares) {
                *sum += f64::from(*number);
                *square += f64::from(*number) * f64::from(*number);
            }
        }
    }

    fn scale(&self) -> Scale {
        let rows = self.rows.max(1.0);
        let mean: Vec<f64> = self.numbers.iter().map(|sum| sum / rows).collect();
        let deviation = |(square, mean): (&f64, &f64)| {
            let variance = square / rows - mean * mean;
            // What is left of equal numbers is rounding.
            if variance > 1e-12 * (square / rows) { variance.sqrt() as f32 } else { 0.0 }
        };
        let deviation = self.squares.iter().zip(&mean).map(deviation).collect();
        Scale { mean: mean.into_iter().map(|mean| mean as f32).collect(), deviation }
    }
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::Device;

    use super::*;

    fn scale_of(rows: &[[f32; 3]]) -> Scale {
        let mut sums = Sums::default();
        rows.iter().for_each(|row| sums.add(&Features::new(1, 3, row.to_vec()).unwrap()));
        sums.scale()
    }

    #[test]
    fn large_and_small_numbers_count_alike_and_constant_ones_nothing() {
        let rows = [[1000.0, 0.01, 7.1], [3000.0, 0.03, 7.1], [1000.0, 0.03, 7.1], [3000.0, 0.01, 7.1]];
        let scale = scale_of(&rows);
        let brought = |row: [f32; 3]| scale.apply(Features::new(1, 3, row.to_vec()).unwrap(), 0).into_data();
        for row in rows {
            let [large, small, constant] = brought(row)[..] else { panic!("three numbers") };
            assert!((large.abs() - 1.0).abs() < 1e-4 && (small.abs() - 1.0).abs() < 1e-4, "{large} {small}");
            assert_eq!(constant, 0.0);
        }
        // Another value of a number that never varied says nothing that can be compared; one far away is cut off.
        assert_eq!(brought([2000.0, 9.0, 8.0])[1..], [5.0, 0.0]);
    }

    #[test]
    fn a_second_stream_is_measured_after_the_first() {
        let scale = scale_of(&[[0.0, 10.0, 1.0], [0.0, 20.0, 3.0]]);
        let second = scale.apply(Features::new(1, 2, vec![20.0, 1.0]).unwrap(), 1);
        assert_eq!(second.data(), [1.0, -1.0]);
    }

    #[test]
    fn what_is_kept_is_what_was_measured() {
        let (scale, params) = (scale_of(&[[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]]), Params::seeded(0, &Device::Cpu));
        scale.keep(&params).unwrap();
        assert!(params.trainable().is_empty(), "nothing learns it");
        let tensors = params.vars().into_iter().map(|(name, var)| (name, var.as_tensor().clone())).collect();
        let loaded = Params::loaded(tensors, &Device::Cpu);
        assert_eq!(Scale::kept(&loaded, 3).unwrap(), scale);
        assert!(Scale::kept(&loaded, 4).is_err());
    }
}
