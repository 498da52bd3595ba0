//! Places and anchors as sines and cosines.

use candle_core::{D, Device, Result, Tensor};

/// Every angle divided by `10000^(2 ⌊c / 2⌋ / width)` for channels `c` in `0..width`: sines on even ones, cosines on odd ones.
///
/// # Shapes
/// - angles `[.., 1]`, in radians; returns `[.., width]`
///
/// # Errors
/// Those of the tensor operations.
pub fn sine_code(angles: &Tensor, width: usize) -> Result<Tensor> {
    let period = |channel: usize| 10_000f64.powf(-((2 * (channel / 2)) as f64) / width as f64) as f32;
    let scale = Tensor::from_vec((0..width).map(period).collect::<Vec<_>>(), width, angles.device())?;
    // A cosine is a sine a quarter of a circle on: one operation for both.
    let shift = |channel: usize| if channel.is_multiple_of(2) { 0f32 } else { std::f32::consts::FRAC_PI_2 };
    let shift = Tensor::from_vec((0..width).map(shift).collect::<Vec<_>>(), width, angles.device())?;
    angles.broadcast_mul(&scale)?.broadcast_add(&shift)?.sin()
}

/// The place of every step among the real ones, spread over one circle; steps after the end repeat the last place.
///
/// # Shapes
/// - returns `[rows, steps, width]`
///
/// # Errors
/// Those of the tensor operations.
pub fn sine_place(lengths: &[usize], steps: usize, width: usize, device: &Device) -> Result<Tensor> {
    let place = |length: usize, step: usize| {
        let (count, total) = ((step + 1).min(length) as f64, length.min(steps) as f64);
        (count / (total + 1e-6) * std::f64::consts::TAU) as f32
    };
    let places: Vec<f32> = lengths.iter().flat_map(|length| (0..steps).map(move |step| place(*length, step))).collect();
    sine_code(&Tensor::from_vec(places, (lengths.len(), steps, 1), device)?, width)
}

/// Centre and width of every anchor, each as a code of `width` channels: `[batch, anchors, 2]` to `[batch, anchors, 2 width]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn anchor_code(anchors: &Tensor, width: usize) -> Result<Tensor> {
    let angles = (anchors * std::f64::consts::TAU)?;
    let code = |coordinate: usize| sine_code(&angles.narrow(D::Minus1, coordinate, 1)?, width);
    Tensor::cat(&[code(0)?, code(1)?], D::Minus1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_is_one_step_round_and_padding_repeats_the_last() {
        let codes = sine_place(&[4], 6, 4, &Device::Cpu).unwrap().to_vec3::<f32>().unwrap();
        let angle = std::f64::consts::TAU / (4.0 + 1e-6);
        let wanted = [angle.sin(), angle.cos(), (angle / 100.0).sin(), (angle / 100.0).cos()];
        for (found, wanted) in codes[0][0].iter().zip(wanted) {
            assert!((f64::from(*found) - wanted).abs() < 1e-6);
        }
        assert_eq!(codes[0][3], codes[0][5]);
        assert_ne!(codes[0][2], codes[0][3]);
    }
}
