//! Dropout without a mask in memory: whether a value stays is decided by its place and a seed, so forward and backward agree,
//! the CPU and a GPU drop the same values, and nothing is drawn one after the other.

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::map::numbers;
use crate::vectorised;

/// Values that one task computes.
const BLOCK: usize = 1 << 14;
/// The odd number nearest to 2⁶⁴ over the golden ratio: its multiples spread evenly.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Sets values to zero, each with the same probability, and scales the rest so that the mean stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dropout {
    /// Which values are dropped.
    pub(crate) seed: u64,
    /// A value is dropped when its 32 bits are below this.
    pub(crate) limit: u32,
    /// Factor of the values that stay.
    pub(crate) scale: f32,
}

impl Dropout {
    /// Drops with probability `p`, less than 1; another `seed` drops others.
    pub(crate) fn new(p: f64, seed: u64) -> Self {
        Self { seed, limit: (p * f64::from(u32::MAX)) as u32, scale: (1.0 / (1.0 - p)) as f32 }
    }

    /// # Errors
    /// When `x` is not of 32-bit numbers, and those of the tensor operations.
    pub(crate) fn apply(self, x: &Tensor) -> Result<Tensor> {
        if x.dtype() != DType::F32 {
            bail!("dropout of {:?}: only 32-bit numbers", x.dtype());
        }
        x.contiguous()?.apply_op1(self)
    }

    /// What the value at a place is multiplied by.
    #[inline(always)]
    pub(crate) fn factor(&self, place: u64) -> f32 {
        if bits(self.seed, place) < self.limit { 0.0 } else { self.scale }
    }
}

/// 32 even bits for each place under a seed: the upper half of SplitMix64's output. `map.cu` has the same.
#[inline(always)]
fn bits(seed: u64, place: u64) -> u32 {
    let mut x = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(STRIDE));
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 32) as u32
}

impl CustomOp1 for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = numbers(x, layout)?;
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(BLOCK).zip(x.par_chunks(BLOCK)).enumerate().for_each(|(block, (y, x))| {
            let places = (block * BLOCK) as u64..;
            vectorised(
                #[inline(always)]
                || y.iter_mut().zip(x).zip(places.clone()).for_each(|((y, x), place)| *y = x * self.factor(place)),
            );
        });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &candle_core::CudaStorage, layout: &Layout) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::dropout(self, x, layout)
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        gradient.contiguous()?.apply_op1_no_bwd(self).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    #[test]
    fn gradients_flow_where_values_stay_and_only_there() {
        let x = Var::ones(50_000, DType::F32, &Device::Cpu).unwrap();
        let y = Dropout::new(0.25, 7).apply(x.as_tensor()).unwrap();
        let gradient = y.sum_all().unwrap().backward().unwrap().get(x.as_tensor()).unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(gradient, y.to_vec1::<f32>().unwrap());
        let dropped = gradient.iter().filter(|value| **value == 0.0).count();
        assert!((12_000..13_000).contains(&dropped), "{dropped}");
    }

    #[test]
    fn neighbours_and_seeds_drop_independently() {
        // Of four equally likely pairs each should make a quarter: 10,000 of 40,000, with a deviation of 87.
        let x = Tensor::ones(40_001, DType::F32, &Device::Cpu).unwrap();
        let kept = |seed| Dropout::new(0.5, seed).apply(&x).unwrap().to_vec1::<f32>().unwrap();
        let (first, second) = (kept(1), kept(2));
        let both = |pairs: &mut dyn Iterator<Item = (f32, f32)>| pairs.filter(|(a, b)| *a > 0.0 && *b > 0.0).count();
        let neighbours = both(&mut first.iter().copied().zip(first[1..].iter().copied()));
        let seeds = both(&mut first[..40_000].iter().copied().zip(second.iter().copied()));
        assert!([neighbours, seeds].iter().all(|count| (9_600..10_400).contains(count)), "{neighbours} {seeds}");
    }

    #[test]
    fn the_bits_of_a_place_are_those_of_splitmix64() {
        // What its authors' generator gives first, second and third from these two seeds, cut to the upper half. Resumed runs
        // and the kernel of `map.cu` count on them.
        let known = [
            (0, [0xE220_A839_7B1D_CDAF_u64, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]),
            (1_234_567, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]),
        ];
        for (seed, outputs) in known {
            let upper = outputs.map(|output| (output >> 32) as u32);
            assert_eq!([0, 1, 2].map(|place| bits(seed, place)), upper);
        }
    }

    #[test]
    fn what_stays_is_scaled_and_what_a_value_is_decides_nothing() {
        let values: Vec<f32> = (1..=1_000).map(|n| n as f32 - 500.5).collect();
        let x = Tensor::new(values.as_slice(), &Device::Cpu).unwrap();
        let dropped =
            |x: &Tensor| Dropout::new(0.5, 3).apply(x).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let ones = dropped(&x.ones_like().unwrap());
        for ((value, kept), factor) in values.iter().zip(dropped(&x)).zip(&ones) {
            assert!(*factor == 0.0 || *factor == 2.0, "{factor}");
            assert_eq!(kept, value * factor);
        }
        // Places are counted in the order in which a tensor is read, wherever its numbers lie.
        let turned = x.reshape((20, 50)).unwrap().t().unwrap();
        assert_eq!(dropped(&turned), dropped(&turned.contiguous().unwrap()));
    }

    #[test]
    fn blocks_that_are_computed_apart_do_not_repeat_each_other() {
        // Of both in one place a quarter stays: 4,096 of 16,384, with a deviation of 55.
        let x = Tensor::ones(2 * BLOCK, DType::F32, &Device::Cpu).unwrap();
        let y = Dropout::new(0.5, 9).apply(&x).unwrap().to_vec1::<f32>().unwrap();
        let both = y[..BLOCK].iter().zip(&y[BLOCK..]).filter(|(a, b)| **a > 0.0 && **b > 0.0).count();
        assert!((3_800..4_400).contains(&both), "{both}");
    }

    #[test]
    fn only_32_bit_numbers_are_dropped() {
        let x = Tensor::ones(4, DType::F64, &Device::Cpu).unwrap();
        let refused = Dropout::new(0.5, 1).apply(&x).unwrap_err().to_string();
        assert!(refused.starts_with("dropout of F64: only 32-bit numbers"), "{refused}");
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn a_gpu_drops_what_the_cpu_drops() {
        let Ok(gpu) = Device::new_cuda(0) else { return };
        let values: Vec<f32> = (0..10_000).map(|n| n as f32 - 5_000.0).collect();
        let x = Tensor::new(values, &Device::Cpu).unwrap();
        let on_gpu = Dropout::new(0.3, 11).apply(&x.to_device(&gpu).unwrap()).unwrap();
        let on_cpu = Dropout::new(0.3, 11).apply(&x).unwrap();
        assert_eq!(on_gpu.to_vec1::<f32>().unwrap(), on_cpu.to_vec1::<f32>().unwrap());
    }
}
