//! A convolution over the cells of a plan, with its gradients.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::plan::LayerPlan;
use super::product::{PlacedWeights, Sizes, Way, multiply, weight_gradient};
use crate::gradients::keep;
use crate::zeros::zeros;

/// Convolves the cells that `plan` names.
///
/// Cells outside the plan are zeros when they are read. Numbers are `f32`.
///
/// # Shapes
/// - x `[batch, plan.input_count(), c_in]`
/// - weight `[c_out, c_in / groups, kernel, kernel]`, bias `[c_out]`
/// - returns `[batch, plan.output_count(), c_out]`
///
/// # Errors
/// When shapes do not fit each other or the plan.
pub fn map_conv(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    plan: &Arc<LayerPlan>,
    groups: usize,
) -> Result<Tensor> {
    convolve(x, weight, bias, plan, groups, Finish::Nothing)
}

/// [`map_conv`], then the larger of it and 0, times the plan's weight of the cell: one layer of the published stack.
///
/// # Shapes
/// As [`map_conv`].
///
/// # Errors
/// As [`map_conv`].
pub fn map_conv_relu(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    plan: &Arc<LayerPlan>,
    groups: usize,
) -> Result<Tensor> {
    convolve(x, weight, bias, plan, groups, Finish::ReluAndWeight)
}

/// What happens to a cell after bias was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    Nothing,
    ReluAndWeight,
}

fn convolve(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    plan: &Arc<LayerPlan>,
    groups: usize,
    finish: Finish,
) -> Result<Tensor> {
    let (_, cells, c_in) = x.dims3()?;
    let (c_out, width, height, breadth) = weight.dims4()?;
    let kernel = plan.kernel();
    if cells != plan.input_count() {
        bail!("a map of {cells} cells where the plan reads {}", plan.input_count());
    }
    if (height, breadth) != (kernel, kernel) {
        bail!("a kernel of {height} x {breadth} where the plan has {kernel} x {kernel}");
    }
    if groups == 0 || width * groups != c_in || c_out % groups != 0 {
        bail!("weights {:?} do not fit {c_in} channels in {groups} groups", weight.dims());
    }
    let bias = match bias {
        Some(bias) if bias.dims() != [c_out] => bail!("a bias of {:?} for {c_out} channels", bias.dims()),
        Some(bias) => bias.contiguous()?,
        None => Tensor::zeros(c_out, x.dtype(), x.device())?,
    };
    x.contiguous()?.apply_op3(&weight.contiguous()?, &bias, MapConv { plan: plan.clone(), groups, finish })
}

pub(super) struct MapConv {
    pub(super) plan: Arc<LayerPlan>,
    pub(super) groups: usize,
    pub(super) finish: Finish,
}

impl MapConv {
    pub(super) fn sizes(&self, x: &Shape, weight: &Shape) -> Result<Sizes> {
        let (batch, _, c_in) = x.dims3()?;
        Ok(Sizes { batch, c_in, c_out: weight.dims4()?.0, groups: self.groups })
    }
}

impl CustomOp3 for MapConv {
    fn name(&self) -> &'static str {
        "map-conv"
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
        let sizes = self.sizes(x_layout.shape(), weight_layout.shape())?;
        let (area, width) = (self.plan.kernel() * self.plan.kernel(), sizes.c_in / sizes.groups);
        let (x, bias) = (numbers(x, x_layout)?, numbers(bias, bias_layout)?);
        let weights = PlacedWeights::new(numbers(weight, weight_layout)?, Way::Forward, area, width);
        let cells = self.plan.output_count();
        let mut y = zeros(sizes.batch * cells * sizes.c_out);
        y.par_chunks_exact_mut(sizes.c_out.max(1)).for_each(|row| row.copy_from_slice(bias));
        multiply(&self.plan, sizes, &weights, x, &mut y);
        if self.finish == Finish::ReluAndWeight {
            let weights = self.plan.weights();
            y.par_chunks_exact_mut(sizes.c_out.max(1)).enumerate().for_each(|(row, y)| {
                let weight = weights[row % cells];
                y.iter_mut().for_each(|y| *y = y.max(0.0) * weight);
            });
        }
        Ok((CpuStorage::F32(y), Shape::from((sizes.batch, cells, sizes.c_out))))
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
        super::cuda::forward(self, (x, x_layout), (weight, weight_layout), (bias, bias_layout))
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
        let gradient = match self.finish {
            Finish::Nothing => gradient,
            Finish::ReluAndWeight => y.apply_op2_no_bwd(&gradient, &Unfinish { plan: self.plan.clone() })?,
        };
        let part = Part { plan: self.plan.clone(), groups: self.groups };
        let of_x =
            x.track_op().then(|| weight.apply_op2_no_bwd(&gradient, &InputGradient(part.clone()))).transpose()?;
        let of_weight =
            if weight.track_op() { keep(weight, x.apply_op2_no_bwd(&gradient, &WeightGradient(part))?)? } else { None };
        let of_bias = if bias.track_op() { keep(bias, crate::map::rows::sum_rows(&gradient)?)? } else { None };
        Ok((of_x, of_weight, of_bias))
    }
}

/// The gradient before the cell weight and the activation, from the layer's result and the gradient of that.
pub(super) struct Unfinish {
    pub(super) plan: Arc<LayerPlan>,
}

impl CustomOp2 for Unfinish {
    fn name(&self) -> &'static str {
        "map-conv-unfinish"
    }

    fn cpu_fwd(
        &self,
        y: &CpuStorage,
        y_layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (y, gradient) = (numbers(y, y_layout)?, numbers(gradient, gradient_layout)?);
        let (_, cells, width) = y_layout.shape().dims3()?;
        let weights = self.plan.weights();
        let mut before = zeros(y.len());
        let rows = before.par_chunks_exact_mut(width.max(1)).zip(y.par_chunks_exact(width.max(1)));
        rows.zip(gradient.par_chunks_exact(width.max(1))).enumerate().for_each(|(row, ((before, y), gradient))| {
            let weight = weights[row % cells];
            for ((before, y), gradient) in before.iter_mut().zip(y).zip(gradient) {
                *before = if *y > 0.0 { *gradient * weight } else { 0.0 };
            }
        });
        Ok((CpuStorage::F32(before), y_layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        y: &candle_core::CudaStorage,
        y_layout: &Layout,
        gradient: &candle_core::CudaStorage,
        gradient_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        super::cuda::unfinish(self, (y, y_layout), (gradient, gradient_layout))
    }
}

/// What both gradients need to know.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) plan: Arc<LayerPlan>,
    pub(super) groups: usize,
}

/// From weight and gradient to the gradient of the input.
pub(super) struct InputGradient(pub(super) Part);

impl CustomOp2 for InputGradient {
    fn name(&self) -> &'static str {
        "map-conv-input-gradient"
    }

    fn cpu_fwd(
        &self,
        weight: &CpuStorage,
        weight_layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let Part { plan, groups } = &self.0;
        let (batch, _, c_out) = gradient_layout.shape().dims3()?;
        let (_, width, ..) = weight_layout.shape().dims4()?;
        let sizes = Sizes { batch, c_in: width * groups, c_out, groups: *groups };
        let area = plan.kernel() * plan.kernel();
        let weights = PlacedWeights::new(numbers(weight, weight_layout)?, Way::Backward, area, width);
        let mut x = zeros(batch * plan.input_count() * sizes.c_in);
        multiply(plan, sizes, &weights, numbers(gradient, gradient_layout)?, &mut x);
        Ok((CpuStorage::F32(x), Shape::from((batch, plan.input_count(), sizes.c_in))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        weight: &candle_core::CudaStorage,
        weight_layout: &Layout,
        gradient: &candle_core::CudaStorage,
        gradient_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        super::cuda::input_gradient(&self.0, (weight, weight_layout), (gradient, gradient_layout))
    }
}

/// From input and gradient to the gradient of the weight.
pub(super) struct WeightGradient(pub(super) Part);

impl CustomOp2 for WeightGradient {
    fn name(&self) -> &'static str {
        "map-conv-weight-gradient"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let Part { plan, groups } = &self.0;
        let (batch, _, c_in) = x_layout.shape().dims3()?;
        let (_, _, c_out) = gradient_layout.shape().dims3()?;
        let sizes = Sizes { batch, c_in, c_out, groups: *groups };
        let weight = weight_gradient(plan, sizes, numbers(x, x_layout)?, numbers(gradient, gradient_layout)?);
        Ok((CpuStorage::F32(weight), Shape::from((c_out, c_in / groups, plan.kernel(), plan.kernel()))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        x_layout: &Layout,
        gradient: &candle_core::CudaStorage,
        gradient_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        super::cuda::weight_gradient(&self.0, (x, x_layout), (gradient, gradient_layout))
    }
}

/// The numbers of a tensor without gaps.
pub(crate) fn numbers<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let Some((start, end)) = layout.contiguous_offsets() else { bail!("a tensor with gaps") };
    Ok(&storage.as_slice::<f32>()?[start..end])
}
