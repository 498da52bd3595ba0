//! Slots that share out the clips of a video among themselves: each becomes an event.

use candle_core::{Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{mask_out, softmax};

use crate::layers::detr::{Drawn, Mlp, MlpEnd, Padding, glorot};
use crate::layers::{LayerNorm, Linear};

/// Added to a sum before anything is divided by it.
const EPS: f64 = 1e-8;

/// Iterated attention whose weights compete over the slots.
#[derive(Debug)]
pub struct Slots {
    norm_inputs: LayerNorm,
    norm_slots: LayerNorm,
    norm_mlp: LayerNorm,
    norm_out: LayerNorm,
    query: Linear,
    key: Linear,
    value: Linear,
    mlp: Mlp,
    rounds: usize,
    padding: Padding,
}

impl Slots {
    /// Slots of `width`, shared out in `rounds`; `inner` are the widths inside the feed-forward part.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(width: usize, inner: &[usize], rounds: usize, padding: Padding, vb: &VarBuilder) -> Result<Self> {
        let norm = |name: &str| LayerNorm::new(width, 1e-5, vb.pp(name));
        let square = |name: &str| glorot(width, width, vb.pp(name));
        let widths: Vec<usize> = [&[width], inner, &[width]].concat();
        Ok(Self {
            norm_inputs: norm("norm_inputs")?,
            norm_slots: norm("norm_slots")?,
            norm_mlp: norm("norm_mlp")?,
            norm_out: norm("norm_out")?,
            query: square("project_q")?,
            key: square("project_k")?,
            value: square("project_v")?,
            mlp: Mlp::new(&widths, Drawn::Glorot, MlpEnd::Drawn, &vb.pp("mlp"))?,
            rounds,
            padding,
        })
    }

    /// # Shapes
    /// - slots `[batch, slots, width]`, clips `[batch, clips, width]`, mask `[batch, clips]`; returns as slots
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, slots: &Tensor, clips: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let scale = (clips.dim(2)? as f64).sqrt().recip();
        let clips = self.norm_inputs.forward(clips)?;
        let (keys, values) = (self.key.forward(&clips)?.t()?.contiguous()?, self.value.forward(&clips)?);
        let real = mask.unsqueeze(1)?; // [batch, 1, clips]
        let mut slots = slots.clone();
        for _ in 0..self.rounds {
            let query = (self.query.forward(&self.norm_slots.forward(&slots)?)? * scale)?;
            // A padded clip belongs to every slot alike, as published, or to none.
            let shares = softmax(&mask_out(&query.times(&keys)?, &real, -1e9)?, 1)?;
            let shares = match self.padding {
                Padding::Leaks => shares,
                Padding::Masked => shares.broadcast_mul(&real)?,
            };
            let shares = shares.broadcast_div(&(shares.sum_keepdim(2)? + EPS)?)?;
            slots = (&slots + shares.contiguous()?.times(&values)?)?;
            slots = (&slots + self.mlp.forward(&self.norm_mlp.forward(&slots)?)?)?;
        }
        self.norm_out.forward(&slots)
    }
}
