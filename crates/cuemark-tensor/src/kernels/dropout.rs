//! Dropout in one pass over memory.

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
