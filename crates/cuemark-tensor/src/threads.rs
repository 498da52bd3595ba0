//! The threads that operations share their work between.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::backprop::GradStore;
use candle_core::{Device, Result, Tensor, Var};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::slices::with_numbers;
use crate::vectorised;

/// Bytes of a training thread's stack: candle walks a network back by recursion, as deep as it has operations, and a thread that
/// waits takes up other work on top of that.
const STACK: usize = 64 << 20;
/// Numbers that one task adds up.
const BLOCK: usize = 1 << 14;

/// Runs `work`, many operations on `device` one after the other, on one of the threads that share operations on the CPU.
///
/// Called from any other thread, every operation wakes these threads, sleeps, and is woken when they are done; in the answer to
/// one query that takes longer than to compute it. One of them works on an operation itself from the start, and what no other
/// thread has taken up in time it does alone.
pub fn on_threads<R: Send>(device: &Device, work: impl FnOnce() -> R + Send) -> R {
    if device.is_cpu() { rayon::scope(|_| work()) } else { work() }
}

/// Runs `work`, a step of training on `device`, on a thread of a pool that shares its operations on the CPU. The pool has as many
/// threads as the machine has cores, or `RAYON_NUM_THREADS`, and at most `most`: threads that find nothing to do look for it all the
/// time, and take small pieces of work from those that would have done them sooner.
pub fn step_on_threads<R: Send>(device: &Device, most: usize, work: impl FnOnce() -> R + Send) -> R {
    static POOLS: Mutex<BTreeMap<usize, Arc<ThreadPool>>> = Mutex::new(BTreeMap::new());
    let threads = rayon::current_num_threads().min(most).max(1);
    let pool = || {
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&threads) {
            return Some(Arc::clone(pool));
        }
        let name = |number: usize| format!("training {number}");
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).thread_name(name);
        let pool = Arc::new(builder.build().ok()?);
        pools.insert(threads, Arc::clone(&pool));
        Some(pool)
    };
    match device.is_cpu().then(pool).flatten() {
        Some(pool) => pool.install(work),
        // Where the system has no thread left to give, the step still gets done.
        None => work(),
    }
}

/// Puts into `to` the sum of each parameter's gradients in `parts`, added in the order of the parts: no bit of it depends on who
/// adds. A parameter that no part has a gradient of gets none.
///
/// # Errors
/// When the gradients of one parameter are not 32-bit numbers of one shape on the CPU.
pub fn add_gradients(parameters: &[Var], parts: &[GradStore], to: &mut GradStore) -> Result<()> {
    let sum = |parameter: &Var| {
        let of_parts = parts.iter().filter_map(|part| part.get(parameter));
        let of_parts = of_parts.map(Tensor::contiguous).collect::<Result<Vec<_>>>()?;
        if of_parts.is_empty() { Ok(None) } else { add(&of_parts).map(Some) }
    };
    let sums = parameters.par_iter().with_max_len(1).map(sum).collect::<Result<Vec<_>>>()?;
    for (parameter, sum) in parameters.iter().zip(sums) {
        if let Some(sum) = sum {
            to.insert(parameter, sum);
        }
    }
    Ok(())
}

/// The sum of tensors of one shape, in their order.
pub(crate) fn add(tensors: &[Tensor]) -> Result<Tensor> {
    let [first, others @ ..] = tensors else { candle_core::bail!("a sum of nothing") };
    if others.is_empty() {
        return Ok(first.clone());
    }
    if others.iter().any(|other| other.shape() != first.shape()) {
        candle_core::bail!("gradients of one parameter in several shapes");
    }
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let sum = with_numbers(&tensors, |slices| {
        let mut sum = slices[0].to_vec();
        sum.par_chunks_mut(BLOCK).enumerate().for_each(|(block, sum)| {
            for slice in &slices[1..] {
                vectorised(
                    #[inline(always)]
                    || sum.iter_mut().zip(&slice[block * BLOCK..]).for_each(|(sum, x)| *sum += x),
                );
            }
        });
        Ok(sum)
    })?;
    Tensor::from_vec(sum, first.shape(), &Device::Cpu)
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;
    use crate::against::draw;
    use crate::{Bend, Heads, Part, Pass, Tensor, attend, layer_norm, linear};

    /// A transformer's layer on one query, its bits.
    fn layer(threads: usize) -> Vec<u32> {
        let (rng, width) = (&mut Rng::new(6), 160);
        let mut tensor =
            |shape: &[usize]| Tensor::from_vec(draw(rng, shape.iter().product()), shape, &Device::Cpu).unwrap();
        let (x, bias) = (tensor(&[1, 107, width]), tensor(&[3 * width]));
        let (weight, ones) = (tensor(&[3 * width, width]), tensor(&[width]));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let y = pool.install(|| {
            let part = |number: usize| {
                let part = Part { first: number * width, count: width };
                linear(&x, &weight, &bias, part, Bend::Relu).unwrap()
            };
            let heads = Heads { count: 4, bias: None, dropout: 0.0 };
            let seen = attend(&part(0), &part(1), &part(2), heads, &Pass::answering()).unwrap();
            layer_norm(&seen, &ones, &ones, 1e-5).unwrap()
        });
        y.flatten_all().unwrap().to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    }

    #[test]
    fn no_bit_of_an_answer_depends_on_the_number_of_threads() {
        assert!(layer(1) == layer(2));
        assert!(layer(1) == layer(3));
    }

    #[test]
    fn gradients_of_parts_add_up_and_those_of_nobody_stay_none() {
        let var = |count: usize| Var::zeros(count, crate::DType::F32, &Device::Cpu).unwrap();
        let [long, short, unused] = [var(3 * BLOCK + 5), var(2), var(1)];
        let part = |pull: f64, with_short: bool| {
            let mut loss = (long.as_tensor() * pull).unwrap().sum_all().unwrap();
            if with_short {
                loss = (loss + short.sum_all().unwrap()).unwrap();
            }
            loss.backward().unwrap()
        };
        let parts = [part(1.0, false), part(2.0, true), part(4.0, true)];
        let mut to = Var::zeros(1, crate::DType::F32, &Device::Cpu).unwrap().sum_all().unwrap().backward().unwrap();
        add_gradients(&[long.clone(), short.clone(), unused.clone()], &parts, &mut to).unwrap();
        assert_eq!(to.get(&long).unwrap().to_vec1::<f32>().unwrap(), vec![7.0; 3 * BLOCK + 5]);
        assert_eq!(to.get(&short).unwrap().to_vec1::<f32>().unwrap(), [2.0, 2.0]);
        assert!(to.get(&unused).is_none());
    }

    #[test]
    fn a_step_may_go_deeper_than_a_usual_stack() {
        fn deep(left: usize) -> usize {
            let room = std::hint::black_box([left; 128]);
            if left == 0 { 0 } else { 1 + deep(left - 1) + room[5] - left }
        }
        // 16 MiB at least, where a thread usually has two.
        assert_eq!(step_on_threads(&Device::Cpu, 2, || deep(16_384)), 16_384);
        assert_eq!(step_on_threads(&Device::Cpu, 1, rayon::current_num_threads), 1);
    }

    #[test]
    fn work_runs_on_a_thread_of_the_pool_and_gives_what_it_gives() {
        assert!(on_threads(&Device::Cpu, rayon::current_thread_index).is_some());
        assert_eq!(on_threads(&Device::Cpu, || Err::<(), _>("no")), Err("no"));
    }
}
