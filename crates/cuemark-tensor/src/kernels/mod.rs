//! What runs on NVIDIA GPUs: kernels of our own, and matrix products through cuBLAS.

#![allow(unsafe_code)] // kernels and cuBLAS are called through pointers

mod dropout;
mod optim;
mod plan_cache;
mod transformer;

use candle_core::cuda_backend::cudarc::cublas::{result, sys};
use candle_core::cuda_backend::cudarc::driver::{
    CudaSlice, CudaView, CudaViewMut, DevicePtr as _, DevicePtrMut as _, LaunchConfig, sys as driver,
};
use candle_core::cuda_backend::{CudaDevice, WrapErr as _};
use candle_core::{CudaStorage, Layout, Result, bail};

pub(crate) use dropout::{dropout, residual};
pub(crate) use optim::{AdamStep, adam_steps, sums_of_squares};
pub(crate) use plan_cache::{PlanCache, PlanLists};
pub(crate) use transformer::{
    attention, attention_gradient, gelu, gelu_gradient, layer_norm, layer_norm_gradient, linear, linear_input_gradient,
    linear_parameter_gradient, prelu, prelu_gradient, relu_gradient, softmax, softmax_gradient,
};

/// A compiled file of kernels and the name it is loaded under.
pub(crate) type Ptx = (&'static str, &'static str);

pub(crate) const MAP_PTX: Ptx = ("cuemark", include_str!(concat!(env!("OUT_DIR"), "/map.ptx")));
pub(crate) const VOLUME_PTX: Ptx = ("cuemark-volume", include_str!(concat!(env!("OUT_DIR"), "/volume.ptx")));

pub(crate) const RECURRENT_PTX: Ptx = ("cuemark-recurrent", include_str!(concat!(env!("OUT_DIR"), "/recurrent.ptx")));

/// Threads of a block where nothing else decides.
const THREADS: u32 = 256;

/// Keeps memory that tensors give back for the next ones, instead of returning it to the driver at every wait.
///
/// # Errors
/// When the driver refuses.
pub(crate) fn keep_memory(device: &CudaDevice) -> Result<()> {
    let mut most = u64::MAX;
    // SAFETY: this attribute is a u64, and the pool belongs to the device for as long as the process runs.
    unsafe {
        let threshold = driver::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        driver::cuMemPoolSetAttribute(pool(device)?, threshold, (&raw mut most).cast()).result().w()
    }
}

/// The most memory of the GPU that tensors held at once so far, in bytes.
///
/// # Errors
/// When the driver refuses.
pub fn peak_bytes(device: &CudaDevice) -> Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: as in `keep_memory`.
    unsafe {
        let high = driver::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH;
        driver::cuMemPoolGetAttribute(pool(device)?, high, (&raw mut bytes).cast()).result().w()?;
    }
    Ok(bytes)
}

fn pool(device: &CudaDevice) -> Result<driver::CUmemoryPool> {
    let mut pool = std::ptr::null_mut();
    // SAFETY: writes one handle to a place of its size.
    unsafe {
        driver::cuDeviceGetDefaultMemPool(&raw mut pool, device.cuda_stream().context().cu_device()).result().w()?;
    }
    Ok(pool)
}

/// Room for numbers that the caller writes before it reads them; until then they are whatever lay there.
pub(crate) fn room(device: &CudaDevice, count: usize) -> Result<CudaSlice<f32>> {
    // SAFETY: every pattern of bits is an f32, and no one but the GPU sees them before they are written.
    unsafe { device.alloc::<f32>(count) }
}

/// The numbers of a tensor without gaps.
pub(crate) fn view<'a>((storage, layout): (&'a CudaStorage, &Layout)) -> Result<CudaView<'a, f32>> {
    let Some((start, end)) = layout.contiguous_offsets() else { bail!("a tensor with gaps") };
    Ok(storage.as_cuda_slice::<f32>()?.slice(start..end))
}

/// Blocks that cover `count` numbers with one thread each, or several passes of as many as fit well.
pub(crate) fn over(count: usize) -> LaunchConfig {
    let blocks = count.div_ceil(THREADS as usize).clamp(1, 132 * 16) as u32;
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 }
}

/// Sizes as kernels count them, in 32 bits.
///
/// # Errors
/// When one is larger; cut off it would make a kernel read and write elsewhere.
pub(crate) fn counted<const N: usize>(sizes: [usize; N]) -> Result<[u32; N]> {
    let mut small = [0; N];
    for (small, size) in small.iter_mut().zip(sizes) {
        let Ok(counted) = u32::try_from(size) else { bail!("a size of {size} is more than the GPU's kernels count") };
        *small = counted;
    }
    Ok(small)
}

/// A size as cuBLAS takes it, in 31 bits.
fn signed(size: usize) -> Result<i32> {
    let Ok(size) = i32::try_from(size) else { bail!("a matrix with a side of {size} is too large for cuBLAS") };
    Ok(size)
}

/// A distance as cuBLAS takes it, in 63 bits.
fn far(distance: usize) -> Result<i64> {
    let Ok(distance) = i64::try_from(distance) else {
        bail!("matrices that lie {distance} apart are too far for cuBLAS")
    };
    Ok(distance)
}

/// One block per row, threads for its `width` channels.
///
/// # Errors
/// When there are more rows than a grid has blocks.
pub(crate) fn per_row(rows: usize, width: usize) -> Result<LaunchConfig> {
    let threads = (width.div_ceil(32) * 32).clamp(32, THREADS as usize) as u32;
    // A grid has one block fewer than 2^31 along its first axis.
    let blocks = signed(rows)?.unsigned_abs();
    Ok(LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 })
}

/// Blocks over `rows` of `width` numbers: as many threads across as a row has numbers, up to a warp, the rest over rows.
pub(crate) fn by_rows(rows: usize, width: usize) -> LaunchConfig {
    let across = width.next_power_of_two().clamp(1, 32) as u32;
    let down = THREADS / across;
    let blocks = rows.div_ceil(down as usize).clamp(1, 132 * 64) as u32;
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (across, down, 1), shared_mem_bytes: 0 }
}

/// Launches the kernel `name` of the file `ptx` with the arguments that follow.
macro_rules! launch_from {
    ($ptx:expr, $device:expr, $name:expr, $config:expr, $($argument:expr),* $(,)?) => {{
        use candle_core::cuda_backend::WrapErr as _;
        use candle_core::cuda_backend::cudarc::driver::PushKernelArg as _;
        let (module, code) = $ptx;
        let function = $device.get_or_load_custom_func($name, module, code)?;
        let mut builder = function.builder();
        $( builder.arg($argument); )*
        // SAFETY: every call passes the arguments that the file declares under this name, over buffers that are as long
        // as the sizes it passes along say.
        unsafe { builder.launch($config) }.w()?;
    }};
}
pub(crate) use launch_from;

/// Launches the kernel `name` of `recurrent.cu`, whose blocks wait for each other: all of them are on the GPU at once, or it fails.
macro_rules! launch_together {
    ($device:expr, $name:expr, $config:expr, $($argument:expr),* $(,)?) => {{
        use candle_core::cuda_backend::WrapErr as _;
        use candle_core::cuda_backend::cudarc::driver::PushKernelArg as _;
        let (module, code) = $crate::kernels::RECURRENT_PTX;
        let function = $device.get_or_load_custom_func($name, module, code)?;
        let mut builder = function.builder();
        $( builder.arg($argument); )*
        // SAFETY: as in `launch_from`.
        unsafe { builder.launch_cooperative($config) }.w()?;
    }};
}
pub(crate) use launch_together;

/// Blocks of so many threads, one warp for each of `channels` where the GPU has room for that: never more than one block for each of
/// its multiprocessors, so that all can wait for each other.
///
/// # Errors
/// When the driver does not tell how many there are.
pub(crate) fn waiting(device: &CudaDevice, channels: usize, threads: u32, shared: usize) -> Result<LaunchConfig> {
    let count = driver::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    let most = device.cuda_stream().context().attribute(count).w()?.max(1).unsigned_abs();
    let [channels, shared_mem_bytes] = counted([channels, shared * size_of::<f32>()])?;
    let blocks = channels.div_ceil(threads / 32).clamp(1, most);
    Ok(LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes })
}

/// Launches the kernel `name` of `map.cu` with the arguments that follow.
macro_rules! launch {
    ($device:expr, $($rest:tt)*) => { $crate::kernels::launch_from!($crate::kernels::MAP_PTX, $device, $($rest)*) };
}
pub(crate) use launch;

/// One factor of a matrix product: rows lie `stride` apart; `Turned` ones are stored as their transpose.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Plain { stride: usize },
    Turned { stride: usize },
}

impl Form {
    fn operation(self) -> Result<(sys::cublasOperation_t, i32)> {
        Ok(match self {
            Self::Plain { stride } => (sys::cublasOperation_t::CUBLAS_OP_N, signed(stride)?),
            Self::Turned { stride } => (sys::cublasOperation_t::CUBLAS_OP_T, signed(stride)?),
        })
    }
}

/// Whether products may round to 19 bits.
pub(crate) fn rounds_to_tf32() -> bool {
    candle_core::cuda_backend::gemm_reduced_precision_f32()
}

/// How products outside of maps and recurrent layers compute.
fn general() -> sys::cublasComputeType_t {
    if rounds_to_tf32() {
        sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32
    } else {
        sys::cublasComputeType_t::CUBLAS_COMPUTE_32F
    }
}

/// Sizes of a product `[rows, inner] * [inner, columns]`, repeated for `groups` that lie so far apart in each buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product {
    pub(crate) rows: usize,
    pub(crate) inner: usize,
    pub(crate) columns: usize,
    pub(crate) groups: usize,
    pub(crate) apart: [usize; 3],
}

impl Product {
    /// `to = left * right`, added to what is there when `add`; rows of `to` lie `stride` apart.
    pub(crate) fn run(
        self,
        device: &CudaDevice,
        (left, left_form): (&CudaView<f32>, Form),
        (right, right_form): (&CudaView<f32>, Form),
        (to, stride): (&mut CudaViewMut<f32>, usize),
        add: f32,
    ) -> Result<()> {
        let compute = if crate::device::rounds_to_bf16() {
            sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_16BF
        } else {
            general()
        };
        self.run_in(compute, device, (left, left_form), (right, right_form), (to, stride), add)
    }

    /// As [`Product::run`], replacing what is there and never rounding to 16 bits: outside of maps and recurrent layers.
    pub(crate) fn run_general(
        self,
        device: &CudaDevice,
        left: (&CudaView<f32>, Form),
        right: (&CudaView<f32>, Form),
        to: (&mut CudaViewMut<f32>, usize),
    ) -> Result<()> {
        self.run_in(general(), device, left, right, to, 0.0)
    }

    fn run_in(
        self,
        compute: sys::cublasComputeType_t,
        device: &CudaDevice,
        (left, left_form): (&CudaView<f32>, Form),
        (right, right_form): (&CudaView<f32>, Form),
        (to, stride): (&mut CudaViewMut<f32>, usize),
        add: f32,
    ) -> Result<()> {
        let (stream, blas) = (device.cuda_stream(), device.cublas_handle());
        let ((left_op, left_stride), (right_op, right_stride)) = (left_form.operation()?, right_form.operation()?);
        let [rows, inner, columns, groups] = [self.rows, self.inner, self.columns, self.groups].map(signed);
        let (rows, inner, columns, groups, stride) = (rows?, inner?, columns?, groups?, signed(stride)?);
        let [left_apart, right_apart, to_apart] = self.apart.map(far);
        let (left_apart, right_apart, to_apart) = (left_apart?, right_apart?, to_apart?);
        let (one, float) = (1f32, sys::cudaDataType_t::CUDA_R_32F);
        let (left, _left) = left.device_ptr(&stream);
        let (right, _right) = right.device_ptr(&stream);
        let (to, _to) = to.device_ptr_mut(&stream);
        // SAFETY: callers pass views that hold the matrices they describe. cuBLAS counts columns first, so the product
        // is asked for turned: to^T = right^T * left^T.
        unsafe {
            result::gemm_strided_batched_ex(
                *blas.handle(),
                right_op,
                left_op,
                columns,
                rows,
                inner,
                (&raw const one).cast(),
                right as *const _,
                float,
                right_stride,
                right_apart,
                left as *const _,
                float,
                left_stride,
                left_apart,
                (&raw const add).cast(),
                to as *mut _,
                float,
                stride,
                to_apart,
                groups,
                compute,
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
            .w()
        }
    }
}
