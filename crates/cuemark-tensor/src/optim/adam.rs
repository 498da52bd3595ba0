//! Adam and `AdamW` as PyTorch computes them.
//!
//! Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015;
//! Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.

use std::collections::HashMap;

use candle_core::backprop::GradStore;
use candle_core::{CpuStorage, DType, Device, InplaceOp2, InplaceOp3, Layout, Result, Tensor, Var, bail};
use rayon::prelude::*;

use super::{Group, WeightDecay, share_of};
use crate::map::numbers;
use crate::vectorised;

/// Numbers that one task changes.
const BLOCK: usize = 1 << 14;

/// Settings of one optimiser; the learning rate comes with each step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamConfig {
    /// How much of the mean gradient stays per step. Default: 0.9
    pub beta1: f64,
    /// How much of the mean square stays per step. Default: 0.999
    pub beta2: f64,
    /// What keeps the divisor from 0. Default: 1e-8
    pub eps: f64,
    /// For parameters that no group names. Default: none
    pub weight_decay: WeightDecay,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: WeightDecay::InGradient(0.0) }
    }
}

/// Adam over named parameters, changed in place.
#[derive(Debug)]
pub struct Adam {
    config: AdamConfig,
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    name: String,
    parameter: Var,
    /// `[2, count]`: mean of the gradients, mean of their squares.
    means: Tensor,
    /// Steps this parameter has taken; those without a gradient do not count.
    steps: u32,
    rate: f64,
    weight_decay: WeightDecay,
}

impl Adam {
    /// Starts with means of 0.
    ///
    /// # Errors
    /// When a parameter is not `f32` or memory runs out.
    pub fn new(parameters: Vec<(String, Var)>, config: AdamConfig, groups: &[Group]) -> Result<Self> {
        let slot = |(name, parameter): (String, Var)| {
            if parameter.dtype() != DType::F32 || !parameter.is_contiguous() {
                bail!("parameter `{name}` is not plain f32");
            }
            let means = Tensor::zeros((2, parameter.elem_count()), DType::F32, parameter.device())?;
            let (rate, weight_decay) = share_of(&name, groups, config.weight_decay);
            Ok(Slot { name, parameter, means, steps: 0, rate, weight_decay })
        };
        Ok(Self { config, slots: parameters.into_iter().map(slot).collect::<Result<_>>()? })
    }

    /// The parameters it changes.
    pub fn parameters(&self) -> impl Iterator<Item = &Var> {
        self.slots.iter().map(|slot| &slot.parameter)
    }

    /// From now on the learning rate of each parameter is multiplied by what `factor` says for its name.
    pub fn set_rates(&mut self, factor: &dyn Fn(&str) -> f64) {
        for slot in &mut self.slots {
            slot.rate = factor(&slot.name);
        }
    }

    /// One step at `learning_rate` with every gradient multiplied by `factor` (see [`crate::optim::clip_factor`]; 1 for none).
    ///
    /// Parameters without a gradient stay as they are.
    ///
    /// # Errors
    /// When a gradient has another shape or type than its parameter.
    pub fn step(&mut self, gradients: &GradStore, learning_rate: f64, factor: f64) -> Result<()> {
        #[cfg(feature = "cuda")]
        let mut on_gpu = Vec::new();
        for slot in &mut self.slots {
            let Some(gradient) = gradients.get(&slot.parameter) else { continue };
            let gradient = gradient.contiguous()?;
            let (update, change) = slot.plan(&self.config, &gradient, learning_rate, factor)?;
            #[cfg(feature = "cuda")]
            if gradient.device().is_cuda() {
                let (parameter, means) = (slot.parameter.as_detached_tensor(), slot.means.clone());
                on_gpu.push(crate::kernels::AdamStep { parameter, gradient, means, update, change });
                continue;
            }
            slot.means.inplace_op3(&gradient, slot.parameter.as_tensor(), &update)?;
            slot.parameter.as_tensor().inplace_op2(&slot.means, &change)?;
        }
        #[cfg(feature = "cuda")]
        crate::kernels::adam_steps(&on_gpu)?;
        Ok(())
    }

    /// Everything that the next step depends on besides the parameters: per parameter `NAME.means` (`[2, count]`: of
    /// gradients, of their squares) and `NAME.steps` (`[1]`, `u32`).
    ///
    /// # Errors
    /// When memory runs out.
    pub fn state(&self) -> Result<Vec<(String, Tensor)>> {
        let mut state = Vec::with_capacity(2 * self.slots.len());
        for slot in &self.slots {
            state.push((format!("{}.means", slot.name), slot.means.copy()?));
            state.push((format!("{}.steps", slot.name), Tensor::new(&[slot.steps], &Device::Cpu)?));
        }
        Ok(state)
    }

    /// Puts back what [`Adam::state`] gave.
    ///
    /// # Errors
    /// When a tensor is missing, misshaped or of the wrong type; nothing is changed then.
    pub fn load_state(&mut self, state: &HashMap<String, Tensor>) -> Result<()> {
        let mut loaded = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let find = |part: &str| {
                let name = format!("{}.{part}", slot.name);
                state.get(&name).ok_or_else(|| candle_core::Error::Msg(format!("optimiser state lacks `{name}`")).bt())
            };
            let (means, steps) = (find("means")?, find("steps")?);
            if means.dims() != slot.means.dims() || means.dtype() != DType::F32 {
                let (found, wanted) = (means.dims(), slot.means.dims());
                bail!("optimiser state `{}.means` is {found:?} where {wanted:?} of f32 was expected", slot.name);
            }
            let steps: Vec<u32> = steps.flatten_all()?.to_vec1()?;
            let [steps] = steps[..] else { bail!("optimiser state `{}.steps` is not one number", slot.name) };
            // A copy, since steps change it in place and the caller keeps the original.
            loaded.push((means.to_device(slot.means.device())?.contiguous()?.copy()?, steps));
        }
        for (slot, (means, steps)) in self.slots.iter_mut().zip(loaded) {
            (slot.means, slot.steps) = (means, steps);
        }
        Ok(())
    }
}

impl Slot {
    /// Counts a step and says what it does.
    fn plan(
        &mut self,
        config: &AdamConfig,
        gradient: &Tensor,
        learning_rate: f64,
        factor: f64,
    ) -> Result<(UpdateMeans, MoveParameter)> {
        if gradient.dims() != self.parameter.dims() {
            bail!("a gradient of {:?} for `{}` of {:?}", gradient.dims(), self.name, self.parameter.dims());
        }
        self.steps += 1;
        let rate = learning_rate * self.rate;
        let exponent = f64::from(self.steps);
        let (in_gradient, keep) = match self.weight_decay {
            WeightDecay::InGradient(decay) => (decay, 1.0),
            WeightDecay::Decoupled(decay) => (0.0, 1.0 - rate * decay),
        };
        // The scalars are worked out in double precision and rounded once, as PyTorch does.
        let means = UpdateMeans {
            factor: factor as f32,
            decay: in_gradient as f32,
            mean_share: (1.0 - config.beta1) as f32,
            square_keep: config.beta2 as f32,
            square_share: (1.0 - config.beta2) as f32,
        };
        let parameter = MoveParameter {
            keep: keep as f32,
            size: (rate / (1.0 - config.beta1.powf(exponent))) as f32,
            correction: (1.0 - config.beta2.powf(exponent)).sqrt() as f32,
            eps: config.eps as f32,
        };
        Ok((means, parameter))
    }
}

/// First pass: the means, from gradient and parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpdateMeans {
    pub(crate) factor: f32,
    pub(crate) decay: f32,
    pub(crate) mean_share: f32,
    pub(crate) square_keep: f32,
    pub(crate) square_share: f32,
}

impl InplaceOp3 for UpdateMeans {
    fn name(&self) -> &'static str {
        "adam-means"
    }

    fn cpu_fwd(
        &self,
        means: &mut CpuStorage,
        layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
        parameter: &CpuStorage,
        parameter_layout: &Layout,
    ) -> Result<()> {
        let (gradient, parameter) = (numbers(gradient, gradient_layout)?, numbers(parameter, parameter_layout)?);
        let (mean, square) = numbers_mut(means, layout)?.split_at_mut(gradient.len());
        let means = mean.par_chunks_mut(BLOCK).zip(square.par_chunks_mut(BLOCK));
        let from = gradient.par_chunks(BLOCK).zip(parameter.par_chunks(BLOCK));
        means.zip(from).for_each(|((mean, square), (gradient, parameter))| {
            vectorised(
                #[inline(always)]
                || {
                    let means = mean.iter_mut().zip(&mut *square);
                    for ((mean, square), (gradient, parameter)) in means.zip(gradient.iter().zip(parameter)) {
                        let gradient = gradient * self.factor + self.decay * parameter;
                        *mean += (gradient - *mean) * self.mean_share;
                        *square = *square * self.square_keep + self.square_share * gradient * gradient;
                    }
                },
            );
        });
        Ok(())
    }
}

/// Second pass: the parameter, from its means.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MoveParameter {
    pub(crate) keep: f32,
    pub(crate) size: f32,
    pub(crate) correction: f32,
    pub(crate) eps: f32,
}

impl InplaceOp2 for MoveParameter {
    fn name(&self) -> &'static str {
        "adam-move"
    }

    fn cpu_fwd(
        &self,
        parameter: &mut CpuStorage,
        layout: &Layout,
        means: &CpuStorage,
        means_layout: &Layout,
    ) -> Result<()> {
        let means = numbers(means, means_layout)?;
        let (mean, square) = means.split_at(means.len() / 2);
        let means = mean.par_chunks(BLOCK).zip(square.par_chunks(BLOCK));
        numbers_mut(parameter, layout)?.par_chunks_mut(BLOCK).zip(means).for_each(|(parameter, (mean, square))| {
            vectorised(
                #[inline(always)]
                || {
                    for (parameter, (mean, square)) in parameter.iter_mut().zip(mean.iter().zip(square)) {
                        let divisor = square.sqrt() / self.correction + self.eps;
                        *parameter = *parameter * self.keep - self.size * (mean / divisor);
                    }
                },
            );
        });
        Ok(())
    }
}

fn numbers_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    let (CpuStorage::F32(numbers), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
        bail!("an optimiser works on f32 without gaps");
    };
    Ok(&mut numbers[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loss whose gradient at every step is `pull`.
    fn gradients(parameter: &Var, pull: &[f32]) -> GradStore {
        let pull = Tensor::new(pull, parameter.device()).unwrap();
        (parameter.as_tensor() * pull).unwrap().sum_all().unwrap().backward().unwrap()
    }

    fn parameter(values: &[f32]) -> Var {
        Var::new(values, &Device::Cpu).unwrap()
    }

    fn adam(parameter: &Var, config: AdamConfig) -> Adam {
        Adam::new(vec![("w".to_owned(), parameter.clone())], config, &[]).unwrap()
    }

    fn assert_close(var: &Var, wanted: &[f64]) {
        let values: Vec<f32> = var.to_vec1().unwrap();
        for (value, wanted) in values.iter().zip(wanted) {
            assert!((f64::from(*value) - wanted).abs() < 1e-6, "{values:?} {wanted:?}");
        }
    }

    /// By hand: the first step is the rate times the sign, since mean and root are corrected to g and |g|. Then with
    /// g = 1, -2: m = 0.9 * 0.1 - 0.1 * 2 = -0.11, v = 0.999e-3 + 4e-3 = 4.999e-3; corrected, -0.11 / 0.19 and
    /// 4.999e-3 / 1.999e-3.
    #[test]
    fn two_steps_are_right_by_hand() {
        let w = parameter(&[1.0]);
        let mut adam = adam(&w, AdamConfig::default());
        adam.step(&gradients(&w, &[1.0]), 0.1, 1.0).unwrap();
        assert_close(&w, &[0.9]);
        adam.step(&gradients(&w, &[-2.0]), 0.1, 1.0).unwrap();
        let second = 0.1 * (-0.11f64 / 0.19) / (4.999e-3f64 / 1.999e-3).sqrt();
        assert_close(&w, &[0.9 - second]);
    }

    /// With decay in the gradient, the step sees g + decay * w; decoupled, w shrinks first and the step does not see it.
    #[test]
    fn both_decays_are_right_by_hand() {
        let w = parameter(&[2.0]);
        let config = AdamConfig { weight_decay: WeightDecay::Decoupled(0.5), ..AdamConfig::default() };
        adam(&w, config).step(&gradients(&w, &[3.0]), 0.1, 1.0).unwrap();
        assert_close(&w, &[2.0 * (1.0 - 0.05) - 0.1]);

        // g + decay * w = 1 - 0.5 * 2 = 0: nothing moves.
        let w = parameter(&[2.0]);
        let config = AdamConfig { weight_decay: WeightDecay::InGradient(0.5), ..AdamConfig::default() };
        adam(&w, config).step(&gradients(&w, &[-1.0]), 0.1, 1.0).unwrap();
        assert_close(&w, &[2.0]);
    }

    #[test]
    fn a_clipped_step_is_the_step_of_shorter_gradients() {
        let (a, b) = (parameter(&[1.0, -1.0]), parameter(&[1.0, -1.0]));
        let (mut clipped, mut plain) = (adam(&a, AdamConfig::default()), adam(&b, AdamConfig::default()));
        for pull in [[8f32, 2.0], [-4.0, 16.0]] {
            clipped.step(&gradients(&a, &pull), 0.1, 0.25).unwrap();
            plain.step(&gradients(&b, &pull.map(|x| x / 4.0)), 0.1, 1.0).unwrap();
        }
        assert_eq!(a.to_vec1::<f32>().unwrap(), b.to_vec1::<f32>().unwrap());
    }

    #[test]
    fn the_longest_prefix_decides_and_parameters_without_gradient_stay() {
        let (slow, fast, idle) = (parameter(&[1.0]), parameter(&[1.0]), parameter(&[1.0]));
        let group =
            |prefix: &str, rate| Group { prefix: prefix.to_owned(), rate, weight_decay: WeightDecay::InGradient(0.0) };
        let named = |name: &str, var: &Var| (name.to_owned(), var.clone());
        let parameters = vec![named("text.layer", &slow), named("text.head", &fast), named("text.idle", &idle)];
        let groups = [group("text.h", 2.0), group("text.", 0.5)];
        let mut adam = Adam::new(parameters, AdamConfig::default(), &groups).unwrap();
        let loss = (slow.as_tensor() + fast.as_tensor()).unwrap().sum_all().unwrap();
        adam.step(&loss.backward().unwrap(), 0.1, 1.0).unwrap();
        assert_close(&slow, &[0.95]);
        assert_close(&fast, &[0.8]);
        assert_close(&idle, &[1.0]);
    }

    #[test]
    fn an_optimiser_that_is_put_back_goes_on_bit_for_bit() {
        let pulls = [[1f32, -0.3], [0.2, 0.7], [-0.9, 0.1]];
        let w = parameter(&[0.5, -0.25]);
        let mut whole = adam(&w, AdamConfig::default());
        whole.step(&gradients(&w, &pulls[0]), 0.01, 1.0).unwrap();
        let copy = Var::from_tensor(&w.as_detached_tensor().copy().unwrap()).unwrap();
        let state: HashMap<String, Tensor> = whole.state().unwrap().into_iter().collect();
        let mut resumed = adam(&copy, AdamConfig::default());
        resumed.load_state(&state).unwrap();
        for pull in &pulls[1..] {
            whole.step(&gradients(&w, pull), 0.01, 1.0).unwrap();
            resumed.step(&gradients(&copy, pull), 0.01, 1.0).unwrap();
        }
        assert_eq!(w.to_vec1::<f32>().unwrap(), copy.to_vec1::<f32>().unwrap());
        // What was handed out does not change with later steps.
        assert_eq!(state["w.steps"].to_vec1::<u32>().unwrap(), [1]);
        let means = state["w.means"].to_vec2::<f32>().unwrap();
        assert!((means[0][0] - 0.1).abs() < 1e-7, "{means:?}");
    }

    #[test]
    fn a_state_that_does_not_fit_is_refused_by_name() {
        let w = parameter(&[0.5, -0.25]);
        let mut optimiser = adam(&w, AdamConfig::default());
        let error = optimiser.load_state(&HashMap::new()).unwrap_err().to_string();
        assert!(error.contains("lacks `w.means`"), "{error}");
        let mut state: HashMap<String, Tensor> = optimiser.state().unwrap().into_iter().collect();
        state.insert("w.means".to_owned(), Tensor::zeros((2, 3), DType::F32, &Device::Cpu).unwrap());
        let error = optimiser.load_state(&state).unwrap_err().to_string();
        assert!(error.contains("`w.means` is [2, 3]"), "{error}");
    }

    #[test]
    fn long_parameters_are_stepped_to_their_end() {
        let w = parameter(&vec![1.0; 2 * BLOCK + 5]);
        let mut optimiser = adam(&w, AdamConfig::default());
        optimiser.step(&gradients(&w, &vec![1.0; 2 * BLOCK + 5]), 0.1, 1.0).unwrap();
        assert!(w.to_vec1::<f32>().unwrap().iter().all(|w| (w - 0.9).abs() < 1e-6));
    }
}
