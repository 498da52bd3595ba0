//! Batch norm over channels-last input, also where some of the rows are known without being computed.

use std::sync::Arc;

use candle_core::{D, Device, Result, Tensor, Var};
use candle_nn::{Init, VarBuilder};
use cuemark_tensor::{Normalising, Pass, batch_norm};

/// Share of the new statistics in the running ones.
const MOMENTUM: f64 = 0.1;

/// `(x - mean) / sqrt(var + eps) * weight + bias` per channel, eps 1e-5 unless said otherwise; statistics of the batch while training, running ones else.
#[derive(Debug, Clone)]
pub struct BatchNorm {
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    eps: f64,
}

/// Rows that all hold the same values and are not part of the input: `rows` times `value [channels]`.
#[derive(Debug, Clone, Copy)]
pub struct ConstantRows<'a> {
    /// How many there are.
    pub rows: usize,
    /// What each holds.
    pub value: &'a Tensor,
}

/// What each cell is multiplied by, in both forms that are asked for.
#[derive(Debug, Clone)]
pub struct Shares {
    values: Arc<Vec<f32>>,
    /// `[cells, 1]`.
    tensor: Tensor,
}

impl Shares {
    /// One per cell.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn new(shares: &[f32], device: &Device) -> Result<Self> {
        let tensor = Tensor::from_slice(shares, (shares.len(), 1), device)?;
        Ok(Self { values: Arc::new(shares.to_vec()), tensor })
    }
}

impl BatchNorm {
    /// Over `channels` channels.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(channels: usize, vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            weight: vb.get_with_hints(channels, "weight", Init::Const(1.0))?,
            bias: vb.get_with_hints(channels, "bias", Init::Const(0.0))?,
            running_mean: vb.get_with_hints(channels, "running_mean", Init::Const(0.0))?,
            running_var: vb.get_with_hints(channels, "running_var", Init::Const(1.0))?,
            eps: 1e-5,
        })
    }

    /// The same with another `eps`: other frameworks have other defaults.
    #[must_use]
    pub fn with_eps(mut self, eps: f64) -> Self {
        self.eps = eps;
        self
    }

    /// # Shapes
    /// - x `[.., channels]`; returns the same
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        self.forward_among(x, None, pass)
    }

    /// As [`BatchNorm::forward`], with statistics that count `constant` rows as well.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward_among(&self, x: &Tensor, constant: Option<ConstantRows>, pass: &Pass) -> Result<Tensor> {
        self.forward_bent(x, constant, None, pass)
    }

    /// As [`BatchNorm::forward_among`]; with `shares [cells, 1]`, what is below 0 becomes 0 then, and cells are multiplied by them.
    ///
    /// # Shapes
    /// - x `[videos, cells, channels]` with shares, else as [`BatchNorm::forward`]
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward_bent(
        &self,
        x: &Tensor,
        constant: Option<ConstantRows>,
        shares: Option<&Shares>,
        pass: &Pass,
    ) -> Result<Tensor> {
        if pass.is_training() && x.device().is_cpu() {
            let by = Normalising {
                weight: &self.weight,
                bias: &self.bias,
                constant: constant.map(|constant| (constant.rows, constant.value)),
                eps: self.eps,
                shares: shares.map(|shares| Arc::clone(&shares.values)),
            };
            let normalised = batch_norm(x, by)?;
            let rows = x.elem_count() / x.dim(D::Minus1)?.max(1) + constant.map_or(0, |constant| constant.rows);
            let unbiased = rows as f64 / (rows as f64 - 1.0).max(1.0);
            self.remember(&normalised.mean, &(normalised.variance * unbiased)?)?;
            return Ok(normalised.y);
        }
        let y = self.composed(x, constant, pass)?;
        match shares {
            Some(shares) => y.relu()?.broadcast_mul(&shares.tensor),
            None => Ok(y),
        }
    }

    /// Of general operations, as a GPU computes it and as running statistics are applied.
    fn composed(&self, x: &Tensor, constant: Option<ConstantRows>, pass: &Pass) -> Result<Tensor> {
        if !pass.is_training() {
            return self.scale(&x.broadcast_sub(&self.running_mean)?, &self.running_var);
        }
        let rows = x.flatten_to(x.rank() - 2)?;
        let constant_rows = constant.map_or(0, |constant| constant.rows);
        let count = (rows.dim(0)? + constant_rows) as f64;
        let mut sum = rows.sum(0)?;
        if let Some(constant) = constant {
            sum = (sum + (constant.value * constant_rows as f64)?)?;
        }
        let mean = (sum / count)?;
        let centred = x.broadcast_sub(&mean)?;
        let mut squares = centred.sqr()?.flatten_to(x.rank() - 2)?.sum(0)?;
        if let Some(constant) = constant {
            squares = (squares + ((constant.value - &mean)?.sqr()? * constant_rows as f64)?)?;
        }
        let var = (squares / count)?;
        self.remember(&mean, &(&var * (count / (count - 1.0).max(1.0)))?)?;
        self.scale(&centred, &var)
    }

    fn scale(&self, centred: &Tensor, var: &Tensor) -> Result<Tensor> {
        let factor = (&self.weight / (var + self.eps)?.sqrt()?)?;
        centred.broadcast_mul(&factor)?.broadcast_add(&self.bias)
    }

    /// Moves the running statistics towards those of this batch.
    fn remember(&self, mean: &Tensor, var: &Tensor) -> Result<()> {
        for (running, new) in [(&self.running_mean, mean), (&self.running_var, var)] {
            let moved = ((running * (1.0 - MOMENTUM))? + (new.detach() * MOMENTUM)?)?;
            Var::from_tensor(running)?.set(&moved.detach())?;
        }
        Ok(())
    }
}
