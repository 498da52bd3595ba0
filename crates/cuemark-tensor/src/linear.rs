//! A product with a matrix, its bias and an activation as one operation.
//!
//! Composed of general operations, a linear layer goes back through eight of them, each with a copy of its gradient.

use candle_core::{CpuStorage, CustomOp2, CustomOp3, D, DType, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::gradients::keep;
use crate::map::numbers;
use crate::matrix::{Into, Matrix, Threads, product_by_columns, product_into};
use crate::vectorised;
use crate::zeros::zeros;

/// Numbers that one task passes over.
const BLOCK: usize = 1 << 15;
/// Rows that are added one after the other before blocks are added to each other.
const BLOCK_ROWS: usize = 256;
/// Multiplications below which a product is not worth waking threads for.
const ENOUGH_PRODUCT: usize = 1 << 18;

/// Rows, as those of one query, with which bringing the weights into order takes a good part of a product's time.
const FEW_ROWS: usize = 256;

/// What follows a linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bend {
    /// Nothing.
    None,
    /// `max(0, x)`.
    Relu,
}

/// Which of the stacked outputs of a matrix are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The first row of the matrix.
    pub first: usize,
    /// How many.
    pub count: usize,
}

/// `x Wᵀ + b` of the rows `part` of `weight` and `bias`, then `bend`.
///
/// # Shapes
/// - x `[.., inputs]`, weight `[outputs, inputs]`, bias `[outputs]`; returns `[.., part.count]`
///
/// # Errors
/// When shapes do not fit each other or the numbers are not 32 bits wide.
pub fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor, part: Part, bend: Bend) -> Result<Tensor> {
    let ((outputs, inputs), width) = (weight.dims2()?, x.dim(D::Minus1)?);
    if width != inputs || bias.dims() != [outputs] || part.first + part.count > outputs {
        bail!("{part:?} of weights {:?} and biases {:?} on a width of {width}", weight.dims(), bias.dims());
    }
    if [x, weight, bias].iter().any(|part| part.dtype() != DType::F32) {
        bail!("a linear layer on {:?}: only 32-bit numbers", x.dtype());
    }
    if x.elem_count() == 0 || part.count == 0 {
        let mut shape = x.dims().to_vec();
        shape.pop();
        shape.push(part.count);
        return Tensor::zeros(shape, DType::F32, x.device());
    }
    x.contiguous()?.apply_op3(&weight.contiguous()?, &bias.contiguous()?, Linear { part, bend })
}

/// The operation, over tensors without gaps.
pub(crate) struct Linear {
    pub(crate) part: Part,
    pub(crate) bend: Bend,
}

/// Rows of all axes before the last, and its width.
pub(crate) fn rows_of(layout: &Layout) -> (usize, usize) {
    let width = layout.dims().last().copied().unwrap_or(1).max(1);
    (layout.shape().elem_count() / width, width)
}

/// The shape with another last axis.
pub(crate) fn widened(layout: &Layout, width: usize) -> Shape {
    let mut shape = layout.dims().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = width;
    }
    Shape::from(shape)
}

fn threads(product: usize) -> Threads {
    if product < ENOUGH_PRODUCT { Threads::One } else { Threads::All }
}

/// Numbers below 0 become 0; not a number stays none.
fn rectify(numbers: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || numbers.iter_mut().for_each(|y| *y = if *y < 0.0 { 0.0 } else { *y }),
    );
}

/// Every row and the bias, bent.
fn add_to_rows(rows: &mut [f32], bias: &[f32], bend: Bend) {
    let least = if bend == Bend::Relu { 0.0 } else { f32::NEG_INFINITY };
    vectorised(
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(bias.len()) {
                for (y, bias) in row.iter_mut().zip(bias) {
                    let sum = *y + bias;
                    // Not a number stays none.
                    *y = if sum < least { least } else { sum };
                }
            }
        },
    );
}

impl CustomOp3 for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (rows, inputs) = rows_of(layout);
        let Part { first, count } = self.part;
        let x = numbers(x, layout)?;
        let weight = &numbers(weight, weight_layout)?[first * inputs..(first + count) * inputs];
        let bias = &numbers(bias, bias_layout)?[first..first + count];
        let (x, turned) = (Matrix::new(x, rows, inputs, inputs, 1), Matrix::new(weight, inputs, count, 1, inputs));
        let y = if rows <= FEW_ROWS {
            // The product is added to the bias where it lies already, one pass less.
            let mut y = bias.repeat(rows);
            match threads(rows * inputs * count) {
                Threads::One => product_into(x, turned, &mut y, count, Into::Add, Threads::One),
                Threads::All => product_by_columns(x, turned, &mut y, count, Into::Add),
            }
            if self.bend == Bend::Relu {
                y.par_chunks_mut(BLOCK).for_each(rectify);
            }
            y
        } else {
            let mut y = zeros(rows * count);
            product_into(x, turned, &mut y, count, Into::Replace, threads(rows * inputs * count));
            y.par_chunks_mut(BLOCK.div_ceil(count) * count).for_each(|rows| add_to_rows(rows, bias, self.bend));
            y
        };
        Ok((CpuStorage::F32(y), widened(layout, count)))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        layout: &Layout,
        weight: &candle_core::CudaStorage,
        weight_layout: &Layout,
        bias: &candle_core::CudaStorage,
        bias_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::linear(self, (x, layout), (weight, weight_layout), (bias, bias_layout))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        y: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.contiguous()?;
        let gradient = match self.bend {
            Bend::None => gradient,
            Bend::Relu => y.contiguous()?.apply_op2_no_bwd(&gradient, &ReluGradient)?,
        };
        let of_x = x.track_op().then(|| gradient.apply_op2_no_bwd(weight, &OfInput { part: self.part })).transpose()?;
        if !weight.track_op() && !bias.track_op() {
            return Ok((of_x, None, None));
        }
        let (outputs, inputs) = weight.dims2()?;
        let all = gradient.apply_op2_no_bwd(x, &OfParameters { part: self.part, outputs })?;
        let of_weight = all.narrow(0, 0, outputs * inputs)?.reshape((outputs, inputs))?;
        let of_bias = all.narrow(0, outputs * inputs, outputs)?;
        Ok((of_x, keep(weight, of_weight)?, keep(bias, of_bias)?))
    }
}

/// The gradient where `y` is above 0.
pub(crate) struct ReluGradient;

impl CustomOp2 for ReluGradient {
    fn name(&self) -> &'static str {
        "relu-gradient"
    }

    fn cpu_fwd(&self, y: &CpuStorage, layout: &Layout, g: &CpuStorage, of_g: &Layout) -> Result<(CpuStorage, Shape)> {
        let (y, g) = (numbers(y, layout)?, numbers(g, of_g)?);
        let mut to = vec![0f32; y.len()];
        to.par_chunks_mut(BLOCK).zip(y.par_chunks(BLOCK)).zip(g.par_chunks(BLOCK)).for_each(|((to, y), g)| {
            vectorised(
                #[inline(always)]
                || to.iter_mut().zip(y.iter().zip(g)).for_each(|(to, (y, g))| *to = if *y > 0.0 { *g } else { 0.0 }),
            );
        });
        Ok((CpuStorage::F32(to), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        y: &candle_core::CudaStorage,
        layout: &Layout,
        gradient: &candle_core::CudaStorage,
        gradient_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::relu_gradient((y, layout), (gradient, gradient_layout))
    }
}

/// From the gradient of the output and the weights to that of the input.
pub(crate) struct OfInput {
    pub(crate) part: Part,
}

impl CustomOp2 for OfInput {
    fn name(&self) -> &'static str {
        "linear-input-gradient"
    }

    fn cpu_fwd(
        &self,
        gradient: &CpuStorage,
        layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ((rows, count), (_, inputs)) = (rows_of(layout), weight_layout.shape().dims2()?);
        let weight = &numbers(weight, weight_layout)?[self.part.first * inputs..][..count * inputs];
        let mut to = zeros(rows * inputs);
        let gradient = Matrix::new(numbers(gradient, layout)?, rows, count, count, 1);
        let weight = Matrix::new(weight, count, inputs, inputs, 1);
        match threads(rows * inputs * count) {
            Threads::All if rows <= FEW_ROWS => product_by_columns(gradient, weight, &mut to, inputs, Into::Replace),
            threads => product_into(gradient, weight, &mut to, inputs, Into::Replace, threads),
        }
        Ok((CpuStorage::F32(to), widened(layout, inputs)))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        gradient: &candle_core::CudaStorage,
        layout: &Layout,
        weight: &candle_core::CudaStorage,
        weight_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::linear_input_gradient(self, (gradient, layout), (weight, weight_layout))
    }
}

/// From the gradient of the output and the input to those of all weights, then of all biases; zeros outside of the part.
pub(crate) struct OfParameters {
    pub(crate) part: Part,
    pub(crate) outputs: usize,
}

impl CustomOp2 for OfParameters {
    fn name(&self) -> &'static str {
        "linear-parameter-gradient"
    }

    fn cpu_fwd(
        &self,
        gradient: &CpuStorage,
        layout: &Layout,
        x: &CpuStorage,
        x_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ((rows, inputs), Part { first, count }) = (rows_of(x_layout), self.part);
        let gradient = numbers(gradient, layout)?;
        let mut all = zeros(self.outputs * (inputs + 1));
        let (of_weight, of_bias) = all.split_at_mut(self.outputs * inputs);
        product_into(
            Matrix::new(gradient, count, rows, 1, count),
            Matrix::new(numbers(x, x_layout)?, rows, inputs, inputs, 1),
            &mut of_weight[first * inputs..(first + count) * inputs],
            inputs,
            Into::Replace,
            threads(rows * inputs * count),
        );
        let blocks: Vec<Vec<f32>> = gradient
            .par_chunks(BLOCK_ROWS * count)
            .map(|block| {
                let mut sum = vec![0f32; count];
                vectorised(
                    #[inline(always)]
                    || {
                        for row in block.chunks_exact(count) {
                            sum.iter_mut().zip(row).for_each(|(sum, g)| *sum += g);
                        }
                    },
                );
                sum
            })
            .collect();
        for block in &blocks {
            of_bias[first..first + count].iter_mut().zip(block).for_each(|(sum, g)| *sum += g);
        }
        let size = all.len();
        Ok((CpuStorage::F32(all), Shape::from(size)))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        gradient: &candle_core::CudaStorage,
        layout: &Layout,
        x: &candle_core::CudaStorage,
        x_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::linear_parameter_gradient(self, (gradient, layout), (x, x_layout))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};
    use cuemark_core::Rng;

    use super::*;
    use crate::against::{assert_close, devices, draw};

    /// Values and gradients by plain loops in double precision, of the loss `sum(y * pull)`.
    fn loops(x: &[f32], weight: &[f32], bias: &[f32], pull: &[f32], part: Part, bend: Bend) -> [Vec<f64>; 4] {
        let (inputs, outputs) = (weight.len() / bias.len(), bias.len());
        let mut all = [vec![], vec![0.0; x.len()], vec![0.0; outputs * inputs], vec![0.0; outputs]];
        for row in 0..x.len() / inputs {
            for out in 0..part.count {
                let at = part.first + out;
                let product = |n: usize| f64::from(x[row * inputs + n]) * f64::from(weight[at * inputs + n]);
                let sum = (0..inputs).map(product).sum::<f64>() + f64::from(bias[at]);
                all[0].push(if bend == Bend::Relu { sum.max(0.0) } else { sum });
                let pull = if bend == Bend::Relu && sum <= 0.0 { 0.0 } else { f64::from(pull[row * part.count + out]) };
                all[3][at] += pull;
                for n in 0..inputs {
                    all[1][row * inputs + n] += pull * f64::from(weight[at * inputs + n]);
                    all[2][at * inputs + n] += pull * f64::from(x[row * inputs + n]);
                }
            }
        }
        all
    }

    #[test]
    fn values_and_gradients_are_those_of_plain_loops() {
        let rng = &mut Rng::new(5);
        let whole = |count: usize| Part { first: 0, count };
        let cases = [
            (1, 1, 1, whole(1), Bend::None),
            (7, 5, 3, whole(3), Bend::Relu),
            (300, 33, 12, Part { first: 4, count: 4 }, Bend::None),
            (530, 64, 48, Part { first: 16, count: 32 }, Bend::Relu),
            (64, 2818, 20, whole(20), Bend::None),
        ];
        for (rows, inputs, outputs, part, bend) in cases {
            let [x, weight] = [draw(rng, rows * inputs), draw(rng, outputs * inputs)];
            let [bias, pull] = [draw(rng, outputs), draw(rng, rows * part.count)];
            let wanted = loops(&x, &weight, &bias, &pull, part, bend);
            for device in devices() {
                let var = |values: &[f32], shape: &[usize]| {
                    Var::from_tensor(&Tensor::from_slice(values, shape, &device).unwrap()).unwrap()
                };
                let vars = [var(&x, &[rows, 1, inputs]), var(&weight, &[outputs, inputs]), var(&bias, &[outputs])];
                let y = linear(&vars[0], &vars[1], &vars[2], part, bend).unwrap();
                assert_eq!(y.dims(), [rows, 1, part.count]);
                let pull = Tensor::from_slice(&pull, y.shape(), &device).unwrap();
                let gradients = (&y * pull).unwrap().sum_all().unwrap().backward().unwrap();
                let what = format!("{part:?} of {outputs} x {inputs} on {rows} rows, {bend:?}, {device:?}");
                assert_close(&y, &wanted[0], 1e-5, &what);
                for (var, wanted) in vars.iter().zip(&wanted[1..]) {
                    assert_close(gradients.get(var).unwrap(), wanted, 1e-5, &what);
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_gives_nothing() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
        let (weight, bias, part) = (zeros(&[4, 3]), zeros(&[4]), Part { first: 0, count: 4 });
        let refused = |x: &Tensor, part| linear(x, &weight, &bias, part, Bend::None).unwrap_err().to_string();
        assert!(refused(&zeros(&[2, 5]), part).contains("a width of 5"));
        assert!(refused(&zeros(&[2, 3]), Part { first: 2, count: 3 }).contains("first: 2, count: 3"));
        assert_eq!(linear(&zeros(&[0, 3]), &weight, &bias, part, Bend::None).unwrap().dims(), [0, 4]);
    }

    #[test]
    fn an_input_without_gradient_gets_none() {
        let x = Tensor::ones((2, 3), DType::F32, &Device::Cpu).unwrap();
        let weight = Var::ones((4, 3), DType::F32, &Device::Cpu).unwrap();
        let bias = Var::zeros(4, DType::F32, &Device::Cpu).unwrap();
        let y = linear(&x, &weight, &bias, Part { first: 0, count: 4 }, Bend::None).unwrap();
        let gradients = y.sum_all().unwrap().backward().unwrap();
        assert!(gradients.get(&x).is_none());
        assert_eq!(gradients.get(&bias).unwrap().to_vec1::<f32>().unwrap(), [2.0; 4]);
    }
}
