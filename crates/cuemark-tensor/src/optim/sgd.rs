//! Gradient descent with momentum as PyTorch computes it.

use std::collections::HashMap;

use candle_core::backprop::GradStore;
use candle_core::{DType, Result, Tensor, Var, bail};

use super::{Group, Optimise, WeightDecay, share_of};

/// Gradient descent over named parameters. A step moves along the sum of all gradients so far, each older one counting
/// `momentum` times less than the next.
#[derive(Debug)]
pub struct Sgd {
    momentum: f64,
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    name: String,
    parameter: Var,
    /// The sum of gradients, shaped like the parameter.
    speed: Tensor,
    rate: f64,
    weight_decay: WeightDecay,
}

impl Sgd {
    /// Starts at rest; `weight_decay` is for parameters that no group names.
    ///
    /// # Errors
    /// When a parameter is not `f32` or memory runs out.
    pub fn new(
        parameters: Vec<(String, Var)>,
        momentum: f64,
        weight_decay: WeightDecay,
        groups: &[Group],
    ) -> Result<Self> {
        let slot = |(name, parameter): (String, Var)| {
            if parameter.dtype() != DType::F32 {
                bail!("parameter `{name}` is not plain f32");
            }
            let (rate, weight_decay) = share_of(&name, groups, weight_decay);
            let speed = parameter.zeros_like()?;
            Ok(Slot { name, parameter, speed, rate, weight_decay })
        };
        Ok(Self { momentum, slots: parameters.into_iter().map(slot).collect::<Result<_>>()? })
    }
}

impl Optimise for Sgd {
    fn parameters(&self) -> Vec<&Var> {
        self.slots.iter().map(|slot| &slot.parameter).collect()
    }

    fn set_rates(&mut self, factor: &dyn Fn(&str) -> f64) {
        for slot in &mut self.slots {
            slot.rate = factor(&slot.name);
        }
    }

    fn step(&mut self, gradients: &GradStore, learning_rate: f64, factor: f64) -> Result<()> {
        for slot in &mut self.slots {
            let Some(gradient) = gradients.get(&slot.parameter) else { continue };
            if gradient.dims() != slot.parameter.dims() {
                bail!("a gradient of {:?} for `{}` of {:?}", gradient.dims(), slot.name, slot.parameter.dims());
            }
            let rate = learning_rate * slot.rate;
            let (in_gradient, keep) = match slot.weight_decay {
                WeightDecay::InGradient(decay) => (decay, 1.0),
                WeightDecay::Decoupled(decay) => (0.0, 1.0 - rate * decay),
            };
            // Not part of any later gradient.
            let parameter = slot.parameter.as_detached_tensor();
            let pull = (gradient.detach() * factor)?;
            let pull = if in_gradient == 0.0 { pull } else { (pull + (&parameter * in_gradient)?)? };
            slot.speed = ((&slot.speed * self.momentum)? + pull)?;
            slot.parameter.set(&((parameter * keep)? - (&slot.speed * rate)?)?)?;
        }
        Ok(())
    }

    /// Per parameter `NAME.speed`, shaped like it.
    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        Ok(self.slots.iter().map(|slot| (format!("{}.speed", slot.name), slot.speed.clone())).collect())
    }

    fn load_state(&mut self, state: &HashMap<String, Tensor>) -> Result<()> {
        let mut loaded = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let name = format!("{}.speed", slot.name);
            let Some(speed) = state.get(&name) else { bail!("optimiser state lacks `{name}`") };
            if speed.dims() != slot.speed.dims() || speed.dtype() != DType::F32 {
                let (found, wanted) = (speed.dims(), slot.speed.dims());
                bail!("optimiser state `{name}` is {found:?} where {wanted:?} of f32 was expected");
            }
            loaded.push(speed.to_device(slot.speed.device())?);
        }
        for (slot, speed) in self.slots.iter_mut().zip(loaded) {
            slot.speed = speed;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    fn gradients(parameter: &Var, pull: f32) -> GradStore {
        (parameter.as_tensor() * f64::from(pull)).unwrap().sum_all().unwrap().backward().unwrap()
    }

    fn sgd(parameter: &Var, momentum: f64, decay: f64) -> Sgd {
        Sgd::new(vec![("w".to_owned(), parameter.clone())], momentum, WeightDecay::InGradient(decay), &[]).unwrap()
    }

    fn value(parameter: &Var) -> f32 {
        parameter.to_vec1::<f32>().unwrap()[0]
    }

    /// By hand: speed 2, then 0.5 * 2 - 4 = -3; at rate 0.1 from 1: 0.8, then 1.1.
    #[test]
    fn two_steps_with_momentum_are_right_by_hand() {
        let w = Var::new(&[1f32], &Device::Cpu).unwrap();
        let mut sgd = sgd(&w, 0.5, 0.0);
        sgd.step(&gradients(&w, 2.0), 0.1, 1.0).unwrap();
        assert!((value(&w) - 0.8).abs() < 1e-6, "{}", value(&w));
        sgd.step(&gradients(&w, -8.0), 0.1, 0.5).unwrap();
        assert!((value(&w) - 1.1).abs() < 1e-6, "{}", value(&w));
    }

    /// Twice the rate, twice the way.
    #[test]
    fn rates_can_change_between_steps() {
        let w = Var::new(&[1f32], &Device::Cpu).unwrap();
        let mut sgd = sgd(&w, 0.0, 0.0);
        sgd.set_rates(&|name| if name == "w" { 2.0 } else { 1.0 });
        sgd.step(&gradients(&w, 1.0), 0.1, 1.0).unwrap();
        assert!((value(&w) - 0.8).abs() < 1e-6, "{}", value(&w));
    }

    /// 2 - 0.1 * (3 + 0.5 * 2) = 1.6
    #[test]
    fn decay_is_part_of_the_gradient() {
        let w = Var::new(&[2f32], &Device::Cpu).unwrap();
        sgd(&w, 0.9, 0.5).step(&gradients(&w, 3.0), 0.1, 1.0).unwrap();
        assert!((value(&w) - 1.6).abs() < 1e-6, "{}", value(&w));
    }

    #[test]
    fn an_optimiser_that_is_put_back_goes_on_bit_for_bit() {
        let w = Var::new(&[0.5f32], &Device::Cpu).unwrap();
        let mut whole = sgd(&w, 0.8, 1e-4);
        whole.step(&gradients(&w, 0.3), 0.01, 1.0).unwrap();
        let copy = Var::from_tensor(&w.as_detached_tensor().copy().unwrap()).unwrap();
        let mut resumed = sgd(&copy, 0.8, 1e-4);
        resumed.load_state(&whole.state().unwrap().into_iter().collect()).unwrap();
        whole.step(&gradients(&w, -0.7), 0.01, 1.0).unwrap();
        resumed.step(&gradients(&copy, -0.7), 0.01, 1.0).unwrap();
        assert_eq!(value(&w), value(&copy));
        let error = resumed.load_state(&HashMap::new()).unwrap_err().to_string();
        assert!(error.contains("lacks `w.speed`"), "{error}");
    }
}
