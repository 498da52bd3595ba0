//! The gradients of a loss, where those of parameters take no way round.
//!
//! candle starts every gradient as zeros and adds to a copy, on one thread. Between layers that is little; of a network with a
//! hundred million parameters it is four passes over half a gigabyte in every step, while all other threads wait. Operations of
//! ours hand the gradient of a parameter over here instead ([`keep`]), as it is.

use std::cell::RefCell;
use std::collections::HashMap;

use candle_core::backprop::GradStore;
use candle_core::{DType, Result, Tensor, TensorId};

use crate::threads::add;

type Kept = HashMap<TensorId, Tensor>;

thread_local! {
    /// What operations have handed over in the walk that this thread is in; none outside of one.
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// Puts back on drop what the thread kept before: while a walk waits for other threads, its own may take up another walk.
struct Walk {
    before: Option<Kept>,
}

impl Walk {
    fn begin() -> Self {
        Self { before: KEPT.replace(Some(Kept::new())) }
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        KEPT.set(self.before.take());
    }
}

/// The gradients of everything that `loss` depends on, as of candle's `backward`.
///
/// # Errors
/// Those of the tensor operations.
pub fn gradients(loss: &Tensor) -> Result<GradStore> {
    let walk = Walk::begin();
    let mut found = loss.backward()?;
    let kept = KEPT.take().unwrap_or_default();
    drop(walk);
    for (id, gradient) in kept {
        // Operations of candle's own may have read the parameter too.
        let gradient = match found.get_id(id) {
            Some(other) => sum(other, &gradient)?,
            None => gradient,
        };
        found.insert_id(id, gradient);
    }
    Ok(found)
}

/// Takes the gradient of `of` where it is a parameter and a walk collects them; else gives it back, for candle to add.
///
/// # Errors
/// When two gradients of one parameter have different shapes.
pub(crate) fn keep(of: &Tensor, gradient: Tensor) -> Result<Option<Tensor>> {
    let collecting = KEPT.with_borrow(Option::is_some);
    if !of.is_variable() || !collecting {
        return Ok(Some(gradient));
    }
    // The sum is made outside of the borrow: this thread may take up another walk while it waits for it.
    let before = KEPT.with_borrow(|kept| kept.as_ref().and_then(|kept| kept.get(&of.id()).cloned()));
    let gradient = match before {
        Some(before) => sum(&before, &gradient)?,
        None => gradient,
    };
    KEPT.with_borrow_mut(|kept| kept.as_mut().map(|kept| kept.insert(of.id(), gradient)));
    Ok(None)
}

fn sum(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.device().is_cpu() && a.dtype() == DType::F32 { add(&[a.contiguous()?, b.contiguous()?]) } else { a + b }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};
    use cuemark_core::Rng;

    use super::*;
    use crate::against::draw;
    use crate::{Bend, Part, linear};

    fn var(rng: &mut Rng, shape: &[usize]) -> Var {
        Var::from_tensor(&Tensor::from_vec(draw(rng, shape.iter().product()), shape, &Device::Cpu).unwrap()).unwrap()
    }

    /// A parameter that our layers read twice and candle once, one that they read once, and one that nobody reads.
    struct Net([Var; 4]);

    impl Net {
        fn new(seed: u64) -> Self {
            let rng = &mut Rng::new(seed);
            Self([var(rng, &[5, 5]), var(rng, &[5]), var(rng, &[3, 5]), var(rng, &[2])])
        }

        fn loss(&self) -> Tensor {
            let [weight, bias, x, _] = &self.0;
            let all = Part { first: 0, count: 5 };
            let once = linear(x, weight, bias, all, Bend::None).unwrap();
            let twice = linear(&once, weight, bias, all, Bend::Relu).unwrap();
            (twice.sqr().unwrap().sum_all().unwrap() + weight.sqr().unwrap().sum_all().unwrap()).unwrap()
        }

        fn of(&self, found: &GradStore) -> Vec<Option<Vec<f32>>> {
            let numbers = |gradient: &Tensor| gradient.flatten_all().unwrap().to_vec1().unwrap();
            self.0.iter().map(|var| found.get(var).map(numbers)).collect()
        }
    }

    #[test]
    fn they_are_those_that_candle_finds() {
        let net = Net::new(4);
        let (ours, wanted) = (net.of(&gradients(&net.loss()).unwrap()), net.of(&net.loss().backward().unwrap()));
        assert!(wanted[..3].iter().all(Option::is_some) && ours[3].is_none() && wanted[3].is_none());
        for (ours, wanted) in ours.iter().flatten().zip(wanted.iter().flatten()) {
            assert!(
                ours.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0)),
                "{ours:?} {wanted:?}"
            );
        }
    }

    #[test]
    fn a_walk_within_another_takes_nothing_of_it() {
        let (outer, inner) = (Net::new(4), Net::new(5));
        let (of_outer, of_inner) = ([0, 1].map(|_| outer.loss()), inner.loss());
        let alone = [outer.of(&gradients(&of_outer[0]).unwrap()), inner.of(&gradients(&of_inner).unwrap())];
        // As a thread does that takes up other work while it waits in the midst of a walk.
        let walk = Walk::begin();
        let [weight, ..] = &outer.0;
        assert!(keep(weight, weight.ones_like().unwrap()).unwrap().is_none());
        assert_eq!(inner.of(&gradients(&of_inner).unwrap()), alone[1]);
        let kept = KEPT.take().unwrap();
        assert_eq!((kept.len(), kept[&weight.id()].to_vec2::<f32>().unwrap()), (1, vec![vec![1.0; 5]; 5]));
        drop(walk);
        // Outside of a walk candle gets what it asks for, as it did before.
        assert!(keep(weight, weight.ones_like().unwrap()).unwrap().is_some());
        assert_eq!(outer.of(&gradients(&of_outer[1]).unwrap()), alone[0]);
    }
}
