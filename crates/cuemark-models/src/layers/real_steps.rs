//! Which steps of padded sequences are real.

use candle_core::{Device, Result, Tensor};

/// 1 at the first `lengths[row]` of `steps` steps and 0 after them, `[rows, steps]`; a longer sequence is real throughout.
///
/// # Errors
/// Those of the tensor operations.
pub fn real_steps(lengths: &[usize], steps: usize, device: &Device) -> Result<Tensor> {
    let real = lengths.iter().flat_map(|length| (0..steps).map(move |step| f32::from(u8::from(step < *length))));
    Tensor::from_vec(real.collect(), (lengths.len(), steps), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_after_the_end_of_a_sequence_are_not_real() {
        let real = real_steps(&[2, 0, 5], 3, &Device::Cpu).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(real, [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]);
    }
}
