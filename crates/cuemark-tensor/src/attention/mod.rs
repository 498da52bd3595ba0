//! Attention of several heads as one operation: products, softmax and dropout without a copy per head.
//!
//! Nothing of the size queries × keys is kept: going back, the weights are computed again.

#[cfg(test)]
mod against_loops;
mod cpu;

use candle_core::{CpuStorage, CustomOp3, D, DType, Device, Layout, Result, Shape, Tensor, bail};

use crate::dropout::Dropout;
use crate::map::numbers;
use crate::softmax::softmax;
use crate::{MatrixProduct as _, Pass};

/// How heads look.
#[derive(Debug, Clone, Copy)]
pub struct Heads<'a> {
    /// How many share the width evenly.
    pub count: usize,
    /// Added to the logits, broadcast to `[batch, heads, queries, keys]`.
    pub bias: Option<&'a Tensor>,
    /// Share of the weights that training drops.
    pub dropout: f64,
}

/// `softmax(q kᵀ / √d + bias) v` of every head by itself, heads beside each other in the last axis.
///
/// # Shapes
/// - q `[batch, queries, heads d]`, k `[batch, keys, heads d]`, v `[batch, keys, heads e]`
/// - returns `[batch, queries, heads e]`
///
/// # Errors
/// When shapes do not fit each other or the numbers are not 32 bits wide.
pub fn attend(q: &Tensor, k: &Tensor, v: &Tensor, heads: Heads<'_>, pass: &Pass) -> Result<Tensor> {
    let sizes = Sizes::of([q.shape(), k.shape(), v.shape()], heads.count)?;
    if [q, k, v].iter().any(|part| part.dtype() != DType::F32) {
        bail!("attention of {:?}: only 32-bit numbers", q.dtype());
    }
    let bias = heads.bias.map(|bias| four_axes(bias, &sizes)).transpose()?;
    let dropout = pass.draw_dropout(heads.dropout);
    let learned = bias.as_ref().is_some_and(Tensor::track_op);
    if learned || !sizes.fit(q.device()) {
        return composed(q, k, v, heads.count, bias.as_ref(), dropout);
    }
    let op = Attend { heads: heads.count, bias, dropout };
    q.contiguous()?.apply_op3(&k.contiguous()?, &v.contiguous()?, op)
}

/// The bias with its four axes, each as long as wanted or 1, without gaps.
fn four_axes(bias: &Tensor, sizes: &Sizes) -> Result<Tensor> {
    let mut dims = vec![1; 4usize.saturating_sub(bias.rank())];
    dims.extend(bias.dims());
    let bias = bias.reshape(dims)?;
    let wanted = [sizes.batch, sizes.heads, sizes.queries, sizes.keys];
    if bias.rank() != 4 || bias.dims().iter().zip(wanted).any(|(found, wanted)| *found != wanted && *found != 1) {
        bail!("a bias of {:?} on logits of {wanted:?}", bias.dims());
    }
    let (keys, dims) = (sizes.keys, bias.dims().to_vec());
    bias.broadcast_as((dims[0], dims[1], dims[2], keys))?.to_dtype(DType::F32)?.contiguous()
}

/// Of general operations, for what the one below does not do.
fn composed(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    heads: usize,
    bias: Option<&Tensor>,
    dropout: Option<Dropout>,
) -> Result<Tensor> {
    let split = |x: &Tensor| {
        let (batch, steps, width) = x.dims3()?;
        x.reshape((batch, steps, heads, width / heads))?.transpose(1, 2)?.contiguous()
    };
    let (q, k, v) = (split(q)?, split(k)?, split(v)?);
    let scale = (q.dim(D::Minus1)? as f64).sqrt().recip();
    let logits = (q * scale)?.times(&k.t()?.contiguous()?)?;
    let logits = match bias {
        Some(bias) => logits.broadcast_add(bias)?,
        None => logits,
    };
    let weights = softmax(&logits, D::Minus1)?;
    let weights = dropout.map_or_else(|| Ok(weights.clone()), |dropout| dropout.apply(&weights))?;
    weights.times(&v)?.transpose(1, 2)?.flatten_from(2)
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    /// Of one head's queries and keys.
    pub(crate) width: usize,
    /// Of one head's values.
    pub(crate) values: usize,
}

impl Sizes {
    fn of([q, k, v]: [&Shape; 3], heads: usize) -> Result<Self> {
        let ((batch, queries, width), (key_batch, keys, key_width)) = (q.dims3()?, k.dims3()?);
        let (value_batch, value_steps, values) = v.dims3()?;
        let fits = batch == key_batch && batch == value_batch && keys == value_steps && width == key_width;
        if !fits {
            bail!("queries {:?}, keys {:?} and values {:?} do not fit each other", q.dims(), k.dims(), v.dims());
        }
        if heads == 0 || !width.is_multiple_of(heads) || !values.is_multiple_of(heads) {
            bail!("{heads} heads cannot share widths of {width} and {values}");
        }
        Ok(Self { batch, heads, queries, keys, width: width / heads, values: values / heads })
    }

    /// Numbers of the gradients of queries, keys and values.
    pub(crate) fn numbers(&self) -> [usize; 3] {
        let Self { batch, heads, queries, keys, width, values } = *self;
        [queries * width, keys * width, keys * values].map(|count| batch * heads * count)
    }

    pub(crate) fn scale(&self) -> f32 {
        ((self.width as f64).sqrt().recip()) as f32
    }

    /// Whether the operation below takes it: on the CPU anything that is not empty, on a GPU what its kernels have room for.
    fn fit(&self, device: &Device) -> bool {
        !self.numbers().contains(&0) && (device.is_cpu() || (device.is_cuda() && fits_gpu(self)))
    }
}

/// Numbers of the memory that threads of one block share.
const SHARED: usize = 12 * 1024;
/// Warps of a block.
pub(crate) const WARPS: usize = 8;

/// Numbers that a block keeps of one head: its keys, its values, and for every warp a query, a gradient and two rows of weights.
pub(crate) fn shared_numbers(sizes: &Sizes) -> usize {
    let Sizes { keys, width, values, .. } = *sizes;
    keys * (width + values + 2) + WARPS * (width + values + 2 * keys)
}

fn fits_gpu(sizes: &Sizes) -> bool {
    sizes.keys <= 256 && sizes.width <= 64 && sizes.values <= 64 && shared_numbers(sizes) <= SHARED
}

/// The operation, over tensors without gaps.
pub(crate) struct Attend {
    pub(crate) heads: usize,
    /// With four axes.
    pub(crate) bias: Option<Tensor>,
    pub(crate) dropout: Option<Dropout>,
}

/// The bias on the CPU, and how far apart it lies along batch, heads and queries.
pub(crate) type Bias<'a> = Option<(&'a [f32], [usize; 3])>;

impl Attend {
    pub(crate) fn sizes(&self, q: &Layout, k: &Layout, v: &Layout) -> Result<Sizes> {
        Sizes::of([q.shape(), k.shape(), v.shape()], self.heads)
    }

    /// How far apart the bias lies along batch, heads and queries; 0 where it is repeated.
    pub(crate) fn bias_strides(&self) -> [usize; 3] {
        let Some(bias) = &self.bias else { return [0; 3] };
        let [batch, heads, queries, keys] = bias.dims() else { return [0; 3] };
        let apart = |length: usize, stride: usize| if length == 1 { 0 } else { stride };
        [apart(*batch, heads * queries * keys), apart(*heads, queries * keys), apart(*queries, *keys)]
    }

    fn with_bias<R>(&self, work: impl FnOnce(Bias) -> R) -> Result<R> {
        let Some(bias) = &self.bias else { return Ok(work(None)) };
        let (storage, layout) = bias.storage_and_layout();
        let candle_core::Storage::Cpu(storage) = &*storage else { bail!("a bias on another device than its logits") };
        Ok(work(Some((numbers(storage, layout)?, self.bias_strides()))))
    }
}

impl CustomOp3 for Attend {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_layout: &Layout,
        k: &CpuStorage,
        k_layout: &Layout,
        v: &CpuStorage,
        v_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let sizes = self.sizes(q_layout, k_layout, v_layout)?;
        let (q, k, v) = (numbers(q, q_layout)?, numbers(k, k_layout)?, numbers(v, v_layout)?);
        let y = self.with_bias(|bias| cpu::forward(&sizes, [q, k, v], bias, self.dropout))?;
        Ok((CpuStorage::F32(y), Shape::from((sizes.batch, sizes.queries, sizes.heads * sizes.values))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        q: &candle_core::CudaStorage,
        q_layout: &Layout,
        k: &candle_core::CudaStorage,
        k_layout: &Layout,
        v: &candle_core::CudaStorage,
        v_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let sizes = self.sizes(q_layout, k_layout, v_layout)?;
        crate::kernels::attention(self, &sizes, (q, q_layout), (k, k_layout), (v, v_layout))
    }

    fn bwd(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let op = AttendGradient { of: self, gradient: gradient.contiguous()? };
        let all = q.apply_op3_no_bwd(k, v, &op)?;
        let mut first = 0;
        let mut next = |of: &Tensor| {
            let part = all.narrow(0, first, of.elem_count())?.reshape(of.shape())?;
            first += of.elem_count();
            Ok::<_, candle_core::Error>(Some(part))
        };
        Ok((next(q)?, next(k)?, next(v)?))
    }
}

/// The gradients of queries, keys and values, one after the other.
pub(crate) struct AttendGradient<'a> {
    pub(crate) of: &'a Attend,
    pub(crate) gradient: Tensor,
}

impl CustomOp3 for AttendGradient<'_> {
    fn name(&self) -> &'static str {
        "attention-gradient"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_layout: &Layout,
        k: &CpuStorage,
        k_layout: &Layout,
        v: &CpuStorage,
        v_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let sizes = self.of.sizes(q_layout, k_layout, v_layout)?;
        let (q, k, v) = (numbers(q, q_layout)?, numbers(k, k_layout)?, numbers(v, v_layout)?);
        let (storage, layout) = self.gradient.storage_and_layout();
        let candle_core::Storage::Cpu(gradient) = &*storage else { bail!("a gradient on another device") };
        let gradient = numbers(gradient, layout)?;
        let all = self.of.with_bias(|bias| cpu::backward(&sizes, [q, k, v], gradient, bias, self.of.dropout))?;
        let count = all.len();
        Ok((CpuStorage::F32(all), Shape::from(count)))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        q: &candle_core::CudaStorage,
        q_layout: &Layout,
        k: &candle_core::CudaStorage,
        k_layout: &Layout,
        v: &candle_core::CudaStorage,
        v_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let sizes = self.of.sizes(q_layout, k_layout, v_layout)?;
        crate::kernels::attention_gradient(self, &sizes, (q, q_layout), (k, k_layout), (v, v_layout))
    }
}
