//! The plain numbers of tensors on the CPU, for operations whose gradient reads more tensors than candle hands over.

use candle_core::{Result, Storage, Tensor, bail};

use crate::map::numbers;

/// What `work` makes of the numbers of tensors without gaps.
///
/// # Errors
/// When a tensor has gaps, is not of 32-bit numbers or not on the CPU, and those of `work`.
pub(crate) fn with_numbers<R>(tensors: &[&Tensor], work: impl FnOnce(&[&[f32]]) -> Result<R>) -> Result<R> {
    let held: Vec<_> = tensors.iter().map(|tensor| tensor.storage_and_layout()).collect();
    let mut slices = Vec::with_capacity(held.len());
    for (storage, layout) in &held {
        let Storage::Cpu(storage) = &**storage else { bail!("a tensor that is not on the CPU") };
        slices.push(numbers(storage, layout)?);
    }
    work(&slices)
}
