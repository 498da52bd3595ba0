//! A convolution over volumes, with its bias and activation.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Storage, Tensor, bail};
use rayon::prelude::*;

use super::window::Placed;
use super::winograd::{self, Quick};
use super::{Activation, Padding, Window, lines};
use crate::map::numbers;
use crate::matrix::{Into, Matrix, Threads, product_into};

/// Rows of one product: enough to keep the product busy, few enough for the second-level cache.
const BLOCK_ROWS: usize = 256;
/// A row of the kernel with fewer numbers is not worth a product of its own.
const FEW: usize = 64;
/// Columns of the narrowest block of a GPU's product: one with fewer channels leaves the rest of it empty.
const NARROW: usize = 32;

/// One convolution: weights, bias, window and activation.
#[derive(Debug, Clone)]
pub struct VolumeConv {
    weight: Tensor,
    bias: Tensor,
    op: Conv,
    /// The same for several outputs of a line at once, where that pays.
    joined: Option<Box<Joined>>,
}

/// A convolution whose channels are those of `count` outputs side by side: its kernel is the given one as often, each a stride further.
///
/// What lies in memory is the same. Windows that overlap are read once instead of `count` times, and a block of few channels is full.
#[derive(Debug, Clone)]
struct Joined {
    count: usize,
    conv: VolumeConv,
}

/// How the weights lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// `[times, height, width, c_in, c_out]`: one product per row of the kernel, on the input as it is.
    Rows,
    /// `[width, times, height, c_in, c_out]`: one product for some lines, on a copy of what they read; for inputs of few channels.
    Columns,
}

#[derive(Debug, Clone)]
pub(super) struct Conv {
    pub(super) window: Window,
    pub(super) activation: Activation,
    c_in: usize,
    order: Order,
    /// What is added before the activation.
    pub(super) past: Option<Tensor>,
    /// The weights as [`winograd`] wants them, made for the first input on which that pays.
    turned: Arc<OnceLock<Vec<f32>>>,
}

impl VolumeConv {
    /// From a kernel `[times, height, width, c_in, c_out]` and a bias `[c_out]`.
    ///
    /// # Errors
    /// When the shapes do not fit the window or each other.
    pub fn new(kernel: &Tensor, bias: &Tensor, window: Window, activation: Activation) -> Result<Self> {
        let (times, height, width, c_in, c_out) = kernel.dims5()?;
        if [times, height, width] != window.kernel {
            bail!("a kernel of {times} x {height} x {width} for a window of {:?}", window.kernel);
        }
        if bias.dims() != [c_out] {
            bail!("a bias of {:?} for {c_out} channels", bias.dims());
        }
        let joined = if kernel.device().is_cpu() { None } else { Joined::of(kernel, bias, window, activation)? };
        let few = width * c_in < FEW && times * height > 1 && kernel.device().is_cpu();
        let (weight, order) = if few {
            (kernel.permute((2, 0, 1, 3, 4))?, Order::Columns)
        } else if kernel.device().is_cpu() {
            (kernel.clone(), Order::Rows)
        } else {
            (kernel.pad_with_zeros(3, 0, widened(c_in) - c_in)?, Order::Rows)
        };
        let weight = weight.contiguous()?.reshape(((), c_out))?.detach();
        let op = Conv { window, activation, c_in, order, past: None, turned: Arc::default() };
        Ok(Self { weight, bias: bias.contiguous()?.detach(), op, joined: joined.map(Box::new) })
    }

    /// # Shapes
    /// - x `[batch, times, height, width, c_in]`
    /// - returns `[batch, times', height', width', c_out]`
    ///
    /// # Errors
    /// When the channels differ or the window is larger than the input.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.run(x, None)
    }

    /// The convolution with what went past it added, before the activation: the end of a residual block in one pass.
    ///
    /// # Shapes
    /// As [`VolumeConv::forward`]; `past` as what that returns.
    ///
    /// # Errors
    /// As [`VolumeConv::forward`], and when `past` has another shape.
    pub fn forward_onto(&self, x: &Tensor, past: &Tensor) -> Result<Tensor> {
        self.run(x, Some(past))
    }

    fn run(&self, x: &Tensor, past: Option<&Tensor>) -> Result<Tensor> {
        if let Some(joined) = &self.joined
            && let Some(y) = joined.run(self, x, past)?
        {
            return Ok(y);
        }
        let x = x.contiguous()?;
        let Some(past) = past else { return x.apply_op3_no_bwd(&self.weight, &self.bias, &self.op) };
        let op = Conv { past: Some(past.contiguous()?), ..self.op.clone() };
        x.apply_op3_no_bwd(&self.weight, &self.bias, &op)
    }
}

impl Joined {
    /// `None` where the joined windows would read nearly as much as all of them apart.
    fn of(kernel: &Tensor, bias: &Tensor, window: Window, activation: Activation) -> Result<Option<Self>> {
        let (_, _, width, _, c_out) = kernel.dims5()?;
        // Zeros of `Padding::Same` lie elsewhere around a wider window.
        let Padding::Each(_) = window.padding else { return Ok(None) };
        let count = NARROW / c_out.max(1);
        let together = width + window.stride[2] * count.saturating_sub(1);
        if count < 2 || 3 * together > 2 * count * width {
            return Ok(None);
        }
        Self::new(kernel, bias, window, activation, count).map(Some)
    }

    fn new(kernel: &Tensor, bias: &Tensor, window: Window, activation: Activation, count: usize) -> Result<Self> {
        let (stride, mut wider) = (window.stride[2], window);
        wider.kernel[2] += stride * (count - 1);
        wider.stride[2] *= count;
        let at = |n: usize| kernel.pad_with_zeros(2, stride * n, stride * (count - 1 - n));
        let kernels = (0..count).map(at).collect::<Result<Vec<_>>>()?;
        let conv = VolumeConv::new(&Tensor::cat(&kernels, 4)?, &bias.repeat(count)?, wider, activation)?;
        Ok(Self { count, conv })
    }

    /// What `apart` gives; `None` where its lines have no whole number of joined outputs.
    fn run(&self, apart: &VolumeConv, x: &Tensor, past: Option<&Tensor>) -> Result<Option<Tensor>> {
        let (batch, placed, _, c_out) = apart.op.sizes(x.shape(), apart.weight.shape())?;
        let [times, height, width] = placed.output;
        if width % self.count != 0 {
            return Ok(None);
        }
        let together = (batch, times, height, width / self.count, self.count * c_out);
        let past = past.map(|past| past.contiguous()?.reshape(together)).transpose()?;
        let y = self.conv.run(x, past.as_ref())?;
        y.reshape((batch, times, height, width, c_out)).map(Some)
    }
}

/// Channels as a GPU reads them, sixteen bytes at a time; those beyond the given are zeros.
pub(super) fn widened(channels: usize) -> usize {
    channels.next_multiple_of(4)
}

impl Conv {
    /// Batch, where the window stands, channels in and out.
    pub(super) fn sizes(&self, x: &Shape, weight: &Shape) -> Result<(usize, Placed, usize, usize)> {
        let (batch, times, height, width, channels) = x.dims5()?;
        let (c_in, c_out) = (self.c_in, weight.dims2()?.1);
        if channels != c_in {
            bail!("a volume of {channels} channels where the kernel reads {c_in}");
        }
        let placed = self.window.place([times, height, width])?;
        let [times, height, width] = placed.output;
        if let Some(past) = self.past.as_ref().filter(|past| past.dims() != [batch, times, height, width, c_out]) {
            bail!("{:?} is added to a convolution of {:?}", past.dims(), [batch, times, height, width, c_out]);
        }
        Ok((batch, placed, c_in, c_out))
    }

    /// The smallest and the largest number that a product may give.
    fn range(&self) -> (f32, f32) {
        // What is added later may bring a number back into the range.
        if self.past.is_some() { Activation::None.range() } else { self.activation.range() }
    }
}

impl CustomOp3 for Conv {
    fn name(&self) -> &'static str {
        "volume-conv"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, placed, c_in, c_out) = self.sizes(x_layout.shape(), weight_layout.shape())?;
        let (x, bias) = (numbers(x, x_layout)?, numbers(bias, bias_layout)?);
        let work = Work { placed, c_in, c_out, weights: numbers(weight, weight_layout)?, bias, range: self.range() };
        let mut y = vec![0.0; batch * placed.outputs() * c_out];
        if placed.is_point() {
            work.points(x, &mut y);
        } else {
            let items = y.chunks_mut((placed.outputs() * c_out).max(1)).zip(x.chunks((placed.inputs() * c_in).max(1)));
            match self.order {
                Order::Rows if winograd::pays(&placed) => {
                    let weights =
                        self.turned.get_or_init(|| winograd::turned_weights(work.weights, self.window.kernel[0]));
                    let quick = Quick { placed, c_in, c_out, weights, bias, range: work.range };
                    items.for_each(|(y, x)| quick.convolve(x, y));
                }
                Order::Rows => items.for_each(|(y, x)| work.rows(x, y)),
                Order::Columns => items.for_each(|(y, x)| work.columns(x, y)),
            }
        }
        if let Some(past) = &self.past {
            let (storage, layout) = past.storage_and_layout();
            let Storage::Cpu(storage) = &*storage else { bail!("what is added to a convolution lies elsewhere") };
            lines::add_here(&mut y, numbers(storage, layout)?, self.activation.range());
        }
        let [times, height, width] = placed.output;
        Ok((CpuStorage::F32(y), Shape::from((batch, times, height, width, c_out))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        x_layout: &Layout,
        weight: &candle_core::CudaStorage,
        weight_layout: &Layout,
        bias: &candle_core::CudaStorage,
        bias_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        super::cuda::conv(self, (x, x_layout), (weight, weight_layout), (bias, bias_layout))
    }
}

/// One convolution on the CPU.
struct Work<'a> {
    placed: Placed,
    c_in: usize,
    c_out: usize,
    weights: &'a [f32],
    bias: &'a [f32],
    range: (f32, f32),
}

impl Work<'_> {
    /// Every place by itself: one product.
    fn points(&self, x: &[f32], y: &mut [f32]) {
        let &Self { c_in, c_out, .. } = self;
        let blocks = y.par_chunks_mut(BLOCK_ROWS * c_out).zip(x.par_chunks(BLOCK_ROWS * c_in));
        blocks.for_each(|(y, x)| {
            let left = Matrix::new(x, y.len() / c_out, c_in, c_in, 1);
            product_into(left, Matrix::new(self.weights, c_in, c_out, c_out, 1), y, c_out, Into::Replace, Threads::One);
            lines::finish_here(y, self.bias, self.range);
        });
    }

    /// One product per row of the kernel.
    ///
    /// What an output reads of one input line lies side by side, and starts one input further for the next output: seen
    /// as a matrix its rows overlap, and run on from line to line. The few rows that straddle two lines are computed
    /// and thrown away.
    fn rows(&self, x: &[f32], y: &mut [f32]) {
        let &Self { placed, c_in, c_out, .. } = self;
        let ([kernel_t, kernel_h, kernel_w], [_, stride_h, stride_w]) = (placed.window.kernel, placed.window.stride);
        let (high, wide, width) = (placed.padded(1), placed.padded(2), placed.output[2]);
        let x = lines::padded(x, &placed, c_in);
        // Lines run on only where outputs and inputs keep step.
        let at_once = if stride_h == 1 && stride_w == 1 { BLOCK_ROWS.div_ceil(wide).min(placed.output[1]) } else { 1 };
        let inner = kernel_w * c_in;
        y.par_chunks_mut(placed.output[1] * width * c_out).enumerate().for_each(|(time, y)| {
            y.par_chunks_mut(at_once * width * c_out).enumerate().for_each_init(Vec::new, |product, (block, y)| {
                let count = y.len() / (width * c_out);
                let rows = (count - 1) * wide + width;
                product.resize(rows * c_out, 0.0);
                let mut into = Into::Replace;
                for place_t in 0..kernel_t {
                    let Some(from_t) = placed.at(0, time, place_t) else { continue };
                    for place_h in 0..kernel_h {
                        let line = from_t * high + block * at_once * stride_h + place_h;
                        let left = Matrix::new(&x[line * wide * c_in..], rows, inner, stride_w * c_in, 1);
                        let first = (place_t * kernel_h + place_h) * inner * c_out;
                        let right = Matrix::new(&self.weights[first..], inner, c_out, c_out, 1);
                        product_into(left, right, product, c_out, into, Threads::One);
                        into = Into::Add;
                    }
                }
                for (y, product) in y.chunks_exact_mut(width * c_out).zip(product.chunks(wide * c_out)) {
                    lines::finish(&product[..width * c_out], self.bias, self.range, y);
                }
            });
        });
    }

    /// One product for some output lines, on a copy of what all their windows read: `[lines, width, times, height, c_in]`.
    fn columns(&self, x: &[f32], y: &mut [f32]) {
        let &Self { placed, c_in, c_out, .. } = self;
        let ([kernel_t, kernel_h, kernel_w], stride_w) = (placed.window.kernel, placed.window.stride[2]);
        let (width, column) = (placed.output[2], kernel_t * kernel_h * c_in);
        // Whole steps from line to line, so that one product runs over all of them: it copies the weights into an order of its own,
        // which a single line would not be worth. The few rows between two lines are thrown away.
        let steps = placed.padded(2).div_ceil(stride_w);
        let at_once = BLOCK_ROWS.div_ceil(steps).min(placed.output[1]);
        y.par_chunks_mut(placed.output[1] * width * c_out).enumerate().for_each(|(time, y)| {
            let blocks = y.par_chunks_mut(at_once * width * c_out).enumerate();
            blocks.for_each_init(<(Vec<f32>, Vec<f32>)>::default, |(lines, product), (block, y)| {
                let count = y.len() / (width * c_out);
                lines.clear();
                lines.resize(count * steps * stride_w * column, 0.0);
                for (line, to) in lines.chunks_exact_mut(steps * stride_w * column).enumerate() {
                    self.gather(x, (time, block * at_once + line), to);
                }
                let rows = (count - 1) * steps + width;
                product.resize(rows * c_out, 0.0);
                let left = Matrix::new(lines, rows, kernel_w * column, stride_w * column, 1);
                let right = Matrix::new(self.weights, kernel_w * column, c_out, c_out, 1);
                product_into(left, right, product, c_out, Into::Replace, Threads::One);
                for (y, product) in y.chunks_exact_mut(width * c_out).zip(product.chunks(steps * c_out)) {
                    lines::finish(&product[..width * c_out], self.bias, self.range, y);
                }
            });
        });
    }

    /// What the windows of one output line read: `[width, times, height, c_in]`.
    fn gather(&self, x: &[f32], (time, height): (usize, usize), to: &mut [f32]) {
        let &Self { placed, c_in, .. } = self;
        let [kernel_t, kernel_h, _] = placed.window.kernel;
        let [_, in_height, in_width] = placed.input;
        let column = kernel_t * kernel_h * c_in;
        for place_t in 0..kernel_t {
            for place_h in 0..kernel_h {
                let (Some(t), Some(h)) = (placed.at(0, time, place_t), placed.at(1, height, place_h)) else { continue };
                let from = &x[(t * in_height + h) * in_width * c_in..][..in_width * c_in];
                let first = placed.before[2] * column + (place_t * kernel_h + place_h) * c_in;
                let places = to[first..].chunks_mut(column);
                match c_in {
                    // Pixels: a length that the compiler knows is copied without a call.
                    3 => places.zip(from.as_chunks::<3>().0).for_each(|(to, from)| to[..3].copy_from_slice(from)),
                    _ => places.zip(from.chunks_exact(c_in)).for_each(|(to, from)| to[..c_in].copy_from_slice(from)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn joined_outputs_are_those_of_each_by_itself() {
        let random = |shape: &[usize]| Tensor::randn(0f32, 1f32, shape, &Device::Cpu).unwrap();
        // SlowFast's fast stem and a smaller one, with a rest that no window reads, on lines of 12, 9 and 8 outputs.
        let stem = Window { kernel: [5, 7, 7], stride: [1, 2, 2], padding: Padding::Each([2, 3, 3]) };
        for (window, width, count) in
            [(stem, 24, 4), (stem, 23, 4), (Window::square(3, 1, 1), 9, 3), (Window::square(5, 3, 1), 25, 4)]
        {
            let [t, h, w] = window.kernel;
            let (kernel, bias) = (random(&[t, h, w, 3, 8]), random(&[8]));
            let apart = VolumeConv::new(&kernel, &bias, window, Activation::Relu).unwrap();
            let joined = Joined::new(&kernel, &bias, window, Activation::Relu, count).unwrap();
            let x = random(&[2, 6, 10, width, 3]);
            let expected = apart.forward(&x).unwrap();
            let past = random(expected.dims());
            let found = joined.run(&apart, &x, None).unwrap().unwrap();
            let onto = joined.run(&apart, &x, Some(&past)).unwrap().unwrap();
            for (found, expected) in [(found, expected), (onto, apart.forward_onto(&x, &past).unwrap())] {
                assert_eq!(found.dims(), expected.dims());
                let off = (found - expected).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
                assert!(off < 1e-4, "{window:?} on lines of {width}, {count} at once: off by {off}");
            }
            // One column more makes a line that cannot be shared out.
            let longer = random(&[1, 6, 10, width + window.stride[2], 3]);
            assert!(joined.run(&apart, &longer, None).unwrap().is_none());
        }
    }

    #[test]
    fn outputs_are_joined_only_where_windows_overlap() {
        let joins = |window: Window, c_out: usize| {
            let [t, h, w] = window.kernel;
            let kernel = Tensor::zeros((t, h, w, 4, c_out), candle_core::DType::F32, &Device::Cpu).unwrap();
            let bias = Tensor::zeros(c_out, candle_core::DType::F32, &Device::Cpu).unwrap();
            Joined::of(&kernel, &bias, window, Activation::None).unwrap().map(|joined| joined.count)
        };
        assert_eq!([joins(Window::square(7, 2, 3), 8), joins(Window::square(3, 1, 1), 16)], [Some(4), Some(2)]);
        assert_eq!([joins(Window::POINT, 8), joins(Window::square(3, 2, 1), 8)], [None; 2]);
        assert_eq!([joins(Window::square(7, 2, 3), 64), joins(Window::same([1, 7, 7], [1, 2, 2]), 8)], [None; 2]);
    }
}
