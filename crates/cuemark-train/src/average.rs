//! Averaged weights (EMA): some recipes judge and keep a slow average of the weights instead of the weights themselves.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use cuemark_tensor::{Params, Tensor};
use serde::{Deserialize, Serialize};

use crate::Result;

/// How weights are averaged: `average = decay · average + (1 - decay) · weights`, from the first weights on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Averaging {
    /// What stays of the average, 0 to 1.
    pub decay: f64,
    /// Steps between two updates: a tenth as many with ten times the part cost a tenth and give nearly the same. Left out: an epoch's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<NonZeroUsize>,
}

/// What the names of averaged weights begin with in a checkpoint.
const PREFIX: &str = "average.";

/// The average of one network's weights, buffers included.
pub(crate) struct Average {
    averaging: Averaging,
    tensors: Vec<(String, Tensor)>,
}

impl Average {
    /// Takes up the average that `saved` holds, or begins one at the present weights.
    pub(crate) fn begin(averaging: Averaging, params: &Params, saved: &HashMap<String, Tensor>) -> Result<Self> {
        let mut tensors = Vec::new();
        for (name, var) in params.vars() {
            let tensor = match saved.get(&format!("{PREFIX}{name}")) {
                Some(tensor) => tensor.clone(),
                // A copy: optimisers step weights in place.
                None => var.as_tensor().copy()?,
            };
            tensors.push((name, tensor));
        }
        Ok(Self { averaging, tensors })
    }

    /// Whether it is moved after that step of a stage whose epochs have so many.
    pub(crate) fn is_due(&self, step: usize, per_epoch: usize) -> bool {
        step.is_multiple_of(self.averaging.every.map_or(per_epoch, NonZeroUsize::get))
    }

    /// Moves the average towards the present weights.
    pub(crate) fn update(&mut self, params: &Params) -> Result<()> {
        for (name, average) in &mut self.tensors {
            let Some(var) = params.var(name) else { continue };
            let kept = (&*average * self.averaging.decay)?;
            // Detached: an average with a history would hold the one before it, and that the one before, back to the first.
            *average = (kept + (var.as_tensor().detach() * (1.0 - self.averaging.decay))?)?;
        }
        Ok(())
    }

    /// Puts the average in the place of the weights and the weights in its own; a second call undoes the first.
    // In the same variables, so that whoever judges or saves the network needs to know nothing of averages.
    pub(crate) fn exchange(&mut self, params: &Params) -> Result<()> {
        for (name, average) in &mut self.tensors {
            let Some(var) = params.var(name) else { continue };
            let weights = var.as_tensor().copy()?;
            var.set(average)?;
            *average = weights;
        }
        Ok(())
    }

    /// What a checkpoint keeps of it.
    pub(crate) fn state(&self) -> impl Iterator<Item = (String, Tensor)> + '_ {
        self.tensors.iter().map(|(name, tensor)| (format!("{PREFIX}{name}"), tensor.clone()))
    }
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::Device;

    use super::*;

    fn value(params: &Params) -> f32 {
        params.var("w").unwrap().as_tensor().to_vec1::<f32>().unwrap()[0]
    }

    #[test]
    fn an_average_is_due_by_epochs_or_by_steps() {
        let params = Params::seeded(0, &Device::Cpu);
        let of = |every| Average::begin(Averaging { decay: 0.9, every }, &params, &HashMap::new()).unwrap();
        let due = |average: &Average| (1..=24).filter(|step| average.is_due(*step, 12)).collect::<Vec<_>>();
        assert_eq!(due(&of(None)), [12, 24]);
        assert_eq!(due(&of(NonZeroUsize::new(10))), [10, 20]);
    }

    #[test]
    fn the_average_follows_slowly_and_two_exchanges_change_nothing() {
        let params = Params::seeded(0, &Device::Cpu);
        params.builder().get(1, "w").unwrap();
        let set = |to: f32| params.var("w").unwrap().set(&Tensor::new(&[to], &Device::Cpu).unwrap()).unwrap();
        set(8.0);
        let mut average = Average::begin(Averaging { decay: 0.75, every: None }, &params, &HashMap::new()).unwrap();
        set(4.0);
        average.update(&params).unwrap();
        set(0.0);
        average.update(&params).unwrap();
        // 8, then 0.75 · 8 + 0.25 · 4 = 7, then 0.75 · 7 = 5.25.
        average.exchange(&params).unwrap();
        assert_eq!(value(&params), 5.25);
        average.exchange(&params).unwrap();
        assert_eq!(value(&params), 0.0);
        let saved: HashMap<String, Tensor> = average.state().collect();
        let mut again = Average::begin(Averaging { decay: 0.75, every: None }, &params, &saved).unwrap();
        again.exchange(&params).unwrap();
        assert_eq!(value(&params), 5.25, "a resumed run goes on with the average it had");
    }
}
