//! The threads that operations share their work between.

use candle_core::Device;

/// Runs `work`, many operations on `device` one after the other, on one of the threads that share operations on the CPU.
///
/// Called from any other thread, every operation wakes these threads, sleeps, and is woken when they are done; in the answer to
/// one query that takes longer than to compute it. One of them works on an operation itself from the start, and what no other
/// thread has taken up in time it does alone.
pub fn on_threads<R: Send>(device: &Device, work: impl FnOnce() -> R + Send) -> R {
    if device.is_cpu() { rayon::scope(|_| work()) } else { work() }
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
    fn work_runs_on_a_thread_of_the_pool_and_gives_what_it_gives() {
        assert!(on_threads(&Device::Cpu, rayon::current_thread_index).is_some());
        assert_eq!(on_threads(&Device::Cpu, || Err::<(), _>("no")), Err("no"));
    }
}
