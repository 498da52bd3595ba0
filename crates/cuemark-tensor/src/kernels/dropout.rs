//! Dropout in one pass over memory, alone and added to something.

use candle_core::{CudaStorage, Layout, Result, Shape};

use super::{launch, over, room, view};
use crate::dropout::Dropout;

pub(crate) fn dropout(dropout: &Dropout, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
    let device = x.device.clone();
    let x = view((x, layout))?;
    let count = x.len();
    let mut y = room(&device, count)?;
    let Dropout { seed, limit, scale } = dropout;
    launch!(device, "dropout", over(count), &x, &mut y, &count, seed, limit, scale);
    Ok((CudaStorage::wrap_cuda_slice(y, device), layout.shape().clone()))
}

/// `x` and what is left of `branch`.
pub(crate) fn residual(
    dropout: Dropout,
    x: (&CudaStorage, &Layout),
    branch: (&CudaStorage, &Layout),
) -> Result<(CudaStorage, Shape)> {
    let (device, shape) = (x.0.device.clone(), x.1.shape().clone());
    let (x, branch) = (view(x)?, view(branch)?);
    let count = x.len();
    let mut y = room(&device, count)?;
    let Dropout { seed, limit, scale } = &dropout;
    launch!(device, "residual", over(count), &x, &branch, &mut y, &count, seed, limit, scale);
    Ok((CudaStorage::wrap_cuda_slice(y, device), shape))
}
