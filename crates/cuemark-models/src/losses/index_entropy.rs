//! Cross entropy with the number of the right entry (XML, ReLoCLNet, CONQUER).

use candle_core::{D, Result, Tensor};
use cuemark_tensor::functional::log_softmax;

/// For every row how unlikely the right entry is, `-log softmax(logits)[label]`.
///
/// # Shapes
/// - logits `[rows, entries]`, one label per row; returns `[rows]`
///
/// # Errors
/// When a label lies past the entries.
pub fn index_entropy(logits: &Tensor, labels: &[usize]) -> Result<Tensor> {
    let labels: Vec<u32> = labels.iter().map(|label| *label as u32).collect();
    let labels = Tensor::from_vec(labels, (logits.dim(0)?, 1), logits.device())?;
    log_softmax(logits, D::Minus1)?.gather(&labels, 1)?.squeeze(1)?.neg()
}
