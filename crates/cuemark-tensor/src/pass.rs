//! What a network is told about the pass it is in.

use std::cell::RefCell;

use candle_core::{Result, Tensor};
use cuemark_core::Rng;

use crate::dropout::Dropout;

/// One pass through a network: while training it has an epoch and a source of chance, otherwise nothing is random.
#[derive(Debug)]
pub struct Pass {
    training: Option<Training>,
}

#[derive(Debug)]
struct Training {
    stage: usize,
    epoch: usize,
    rng: RefCell<Rng>,
}

impl Pass {
    /// Nothing is dropped, running statistics are used.
    pub fn answering() -> Self {
        Self { training: None }
    }

    /// A training pass in `stage` (from 0) and its `epoch` (from 1) whose every draw comes from `rng`.
    pub fn training(stage: usize, epoch: usize, rng: Rng) -> Self {
        Self { training: Some(Training { stage, epoch, rng: RefCell::new(rng) }) }
    }

    /// Whether this pass trains.
    pub fn is_training(&self) -> bool {
        self.training.is_some()
    }

    /// The training stage, from 0; 0 when not training.
    pub fn stage(&self) -> usize {
        self.training.as_ref().map_or(0, |training| training.stage)
    }

    /// The epoch of the stage, from 1; 0 when not training.
    pub fn epoch(&self) -> usize {
        self.training.as_ref().map_or(0, |training| training.epoch)
    }

    /// Draws from the pass's own stream; `None` when not training.
    pub fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> Option<T> {
        self.training.as_ref().map(|training| draw(&mut training.rng.borrow_mut()))
    }

    /// As many passes as a batch has parts: each draws from a stream of its own, none of which depends on who draws first.
    pub fn split(&self, parts: usize) -> Vec<Self> {
        let part = |_| match &self.training {
            None => Self::answering(),
            Some(Training { stage, epoch, rng }) => Self::training(*stage, *epoch, Rng::new(rng.borrow_mut().bits())),
        };
        (0..parts).map(part).collect()
    }

    /// While training, sets each value to zero with probability `p` and scales the rest by `1 / (1 - p)`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn dropout(&self, x: &Tensor, p: f64) -> Result<Tensor> {
        self.draw_dropout(p).map_or_else(|| Ok(x.clone()), |dropout| dropout.apply(x))
    }

    /// What [`Pass::dropout`] would drop next; none when nothing is dropped.
    pub(crate) fn draw_dropout(&self, p: f64) -> Option<Dropout> {
        if p > 0.0 { self.draw(Rng::bits).map(|seed| Dropout::new(p, seed)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn dropout_keeps_the_mean_and_happens_only_while_training() {
        let x = Tensor::ones(100_000, candle_core::DType::F32, &Device::Cpu).unwrap();
        let kept = Pass::training(0, 1, Rng::new(3)).dropout(&x, 0.1).unwrap();
        let mean = kept.mean_all().unwrap().to_scalar::<f32>().unwrap();
        let zeros = kept.to_vec1::<f32>().unwrap().iter().filter(|value| **value == 0.0).count();
        assert!((mean - 1.0).abs() < 0.01 && (9_500..10_500).contains(&zeros), "{mean} {zeros}");
        let same = Pass::answering().dropout(&x, 0.1).unwrap();
        assert_eq!(same.to_vec1::<f32>().unwrap(), x.to_vec1::<f32>().unwrap());
    }

    #[test]
    fn parts_of_a_pass_draw_each_for_itself_and_the_same_again() {
        let bits = |seed: u64| -> Vec<u64> {
            let parts = Pass::training(2, 3, Rng::new(seed)).split(3);
            assert!(parts.iter().all(|part| (part.stage(), part.epoch()) == (2, 3)));
            // The last draws first.
            let mut drawn: Vec<u64> = parts.iter().rev().map(|part| part.draw(Rng::bits).unwrap()).collect();
            drawn.reverse();
            drawn
        };
        let drawn = bits(5);
        assert_eq!(drawn, bits(5));
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2]);
        assert!(Pass::answering().split(2).iter().all(|part| !part.is_training()));
    }

    #[test]
    fn every_dropout_of_a_pass_drops_others_and_the_same_pass_drops_the_same_again() {
        let x = Tensor::ones(1_000, candle_core::DType::F32, &Device::Cpu).unwrap();
        let twice = |seed: u64| {
            let pass = Pass::training(0, 1, Rng::new(seed));
            [(); 2].map(|()| pass.dropout(&x, 0.5).unwrap().to_vec1::<f32>().unwrap())
        };
        let [first, second] = twice(3);
        assert_ne!(first, second);
        assert_eq!([first.clone(), second], twice(3));
        assert_ne!(first, twice(4)[0]);
    }
}
