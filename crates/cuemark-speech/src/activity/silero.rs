//! Silero's voice detector: the Fourier transform as a convolution, four small convolutions, one recurrent cell.
//!
//! Silero team, "Silero VAD", 2021 to 2026 (MIT). 512 samples at a time with the 64 before them; plain loops, since each frame is
//! less than a million products and the frames depend on each other.

use camino::Utf8Path;
use candle_core::Device;
use cuemark_features::tensor_file;
use cuemark_tensor::vectorised;

use super::FRAME;
use crate::Result;
use crate::numeric::exp;
use crate::weights::Tensors;

/// Samples before a frame that it is judged with.
const BEFORE: usize = 64;
/// Samples of one transform, and between two.
const WINDOW: usize = 256;
const HOP: usize = 128;
const BINS: usize = WINDOW / 2 + 1;
/// Transforms of one frame: 64 + 512 samples, and 64 mirrored at the end.
const STEPS: usize = 4;
const HIDDEN: usize = 128;

/// The network.
pub(crate) struct Silero {
    /// Real parts above imaginary ones: `[2 * BINS, WINDOW]`.
    transform: Vec<f32>,
    convolutions: [Convolution; 4],
    /// `[4 * HIDDEN, HIDDEN]` each: of what comes in, of what was.
    input: Vec<f32>,
    hidden: Vec<f32>,
    bias: Vec<f32>,
    last: Vec<f32>,
    last_bias: f32,
}

/// What it remembers from frame to frame.
pub(crate) struct SileroState {
    before: [f32; BEFORE],
    hidden: [f32; HIDDEN],
    cell: [f32; HIDDEN],
}

impl Default for SileroState {
    fn default() -> Self {
        Self { before: [0.0; BEFORE], hidden: [0.0; HIDDEN], cell: [0.0; HIDDEN] }
    }
}

/// Three steps wide, one step of zeros on either side, units of max(x, 0).
struct Convolution {
    /// `[outputs, 3, inputs]`: products run along the inputs.
    weight: Vec<f32>,
    bias: Vec<f32>,
    inputs: usize,
    stride: usize,
}

impl Silero {
    /// Reads the safetensors file of the published package.
    pub(crate) fn read(path: &Utf8Path) -> Result<Self> {
        let mut tensors = Tensors::of(path, tensor_file::read(path)?, &Device::Cpu);
        let mut convolution = |number: usize, outputs: usize, inputs: usize, stride: usize| {
            let weight = tensors.values(&format!("conv{number}.weight"), &[outputs, inputs, 3])?;
            let mut turned = vec![0f32; weight.len()];
            for (at, value) in weight.into_iter().enumerate() {
                let (output, input, tap) = (at / (3 * inputs), at / 3 % inputs, at % 3);
                turned[(output * 3 + tap) * inputs + input] = value;
            }
            let bias = tensors.values(&format!("conv{number}.bias"), &[outputs])?;
            Ok::<_, crate::SpeechError>(Convolution { weight: turned, bias, inputs, stride })
        };
        let convolutions = [
            convolution(1, 128, BINS, 1)?,
            convolution(2, 64, 128, 2)?,
            convolution(3, 64, 64, 2)?,
            convolution(4, HIDDEN, 64, 1)?,
        ];
        let gates = [4 * HIDDEN, HIDDEN];
        let mut bias = tensors.values("lstm_cell.bias_ih", &gates[..1])?;
        let other = tensors.values("lstm_cell.bias_hh", &gates[..1])?;
        bias.iter_mut().zip(other).for_each(|(bias, other)| *bias += other);
        Ok(Self {
            transform: tensors.values("stft_conv.weight", &[2 * BINS, 1, WINDOW])?,
            convolutions,
            input: tensors.values("lstm_cell.weight_ih", &gates)?,
            hidden: tensors.values("lstm_cell.weight_hh", &gates)?,
            bias,
            last: tensors.values("final_conv.weight", &[1, HIDDEN, 1])?,
            last_bias: tensors.values("final_conv.bias", &[1])?[0],
        })
    }

    pub(super) fn judge(&self, frame: &[f32; FRAME], state: &mut SileroState) -> f32 {
        vectorised(
            #[inline(always)]
            || self.forward(frame, state),
        )
    }

    #[inline(always)]
    fn forward(&self, frame: &[f32; FRAME], state: &mut SileroState) -> f32 {
        let mut samples = [0f32; BEFORE + FRAME + 64];
        let whole = BEFORE + FRAME;
        samples[..BEFORE].copy_from_slice(&state.before);
        samples[BEFORE..whole].copy_from_slice(frame);
        for step in 0..64 {
            samples[whole + step] = samples[whole - 2 - step];
        }
        state.before.copy_from_slice(&frame[FRAME - BEFORE..]);
        let mut x = vec![0f32; STEPS * BINS];
        for (step, row) in x.chunks_exact_mut(BINS).enumerate() {
            let window = &samples[step * HOP..step * HOP + WINDOW];
            for (bin, out) in row.iter_mut().enumerate() {
                let real = dot(&self.transform[bin * WINDOW..(bin + 1) * WINDOW], window);
                let imaginary = dot(&self.transform[(BINS + bin) * WINDOW..(BINS + bin + 1) * WINDOW], window);
                *out = (real * real + imaginary * imaginary).sqrt();
            }
        }
        for convolution in &self.convolutions {
            x = convolution.forward(&x);
        }
        let mut gates = [0f32; 4 * HIDDEN];
        for (row, gate) in gates.iter_mut().enumerate() {
            let at = row * HIDDEN..(row + 1) * HIDDEN;
            *gate = self.bias[row] + dot(&self.input[at.clone()], &x) + dot(&self.hidden[at], &state.hidden);
        }
        let mut score = self.last_bias;
        for unit in 0..HIDDEN {
            let (input, forget) = (sigmoid(gates[unit]), sigmoid(gates[HIDDEN + unit]));
            let (candidate, output) = (gates[2 * HIDDEN + unit].tanh(), sigmoid(gates[3 * HIDDEN + unit]));
            state.cell[unit] = forget * state.cell[unit] + input * candidate;
            state.hidden[unit] = output * state.cell[unit].tanh();
            score += self.last[unit] * state.hidden[unit].max(0.0);
        }
        sigmoid(score)
    }
}

impl Convolution {
    #[inline(always)]
    fn forward(&self, x: &[f32]) -> Vec<f32> {
        let steps = x.len() / self.inputs;
        let outputs = self.bias.len();
        let made = (steps - 1) / self.stride + 1;
        let mut y = vec![0f32; made * outputs];
        for (step, row) in y.chunks_exact_mut(outputs).enumerate() {
            for (output, y) in row.iter_mut().enumerate() {
                let mut sum = self.bias[output];
                for tap in 0..3 {
                    let Some(from) = (step * self.stride + tap).checked_sub(1).filter(|from| *from < steps) else {
                        continue;
                    };
                    let weight = &self.weight[(output * 3 + tap) * self.inputs..][..self.inputs];
                    sum += dot(weight, &x[from * self.inputs..][..self.inputs]);
                }
                *y = sum.max(0.0);
            }
        }
        y
    }
}

#[inline(always)]
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0f32; 16];
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<16>(), right.as_chunks::<16>());
    for (left, right) in left.iter().zip(right) {
        for lane in 0..16 {
            sums[lane] += left[lane] * right[lane];
        }
    }
    sums.iter().sum::<f32>() + left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum::<f32>()
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of a NumPy program written after the package's own description of the network (`tinygrad_model.py`) for the same
    /// sound: a buzz of 120 Hz through three resonances, two syllables a second.
    #[test]
    fn frames_are_judged_as_by_the_package_s_own_network() {
        let Some(root) = cuemark_testkit::weights("silero-vad") else { return };
        let network = Silero::read(&root.join("weights/silero-vad/silero_vad_16k.safetensors")).unwrap();
        let turn = 2.0 * std::f64::consts::PI;
        let sample = |n: usize| {
            let t = n as f64 / 16_000.0;
            let buzz: f64 = (1..30)
                .map(|harmonic| {
                    let f = 120.0 * f64::from(harmonic);
                    let resonance = |centre: f64, width: f64| (-((f - centre) / width).powi(2)).exp();
                    let strength = resonance(600.0, 150.0) + resonance(1_200.0, 200.0) + resonance(2_500.0, 300.0);
                    strength * (turn * f * t + 0.7 * f64::from(harmonic * harmonic)).sin()
                })
                .sum();
            (buzz * 0.1 * (turn * 2.0 * t).sin().max(0.0)) as f32
        };
        let samples: Vec<f32> = (0..32_000).map(sample).collect();
        let mut state = SileroState::default();
        let judged: Vec<f32> =
            samples.as_chunks::<FRAME>().0.iter().map(|frame| network.judge(frame, &mut state)).collect();
        for (frame, expected) in [
            (0, 0.360_86),
            (3, 0.615_51),
            (6, 0.737_29),
            (10, 0.637_67),
            (14, 0.071_05),
            (20, 0.880_73),
            (30, 0.045_04),
            (40, 0.369_01),
            (50, 0.402_74),
            (60, 0.051_86),
        ] {
            assert!((judged[frame] - expected).abs() < 2e-4, "{frame}: {} {expected}", judged[frame]);
        }
    }
}
