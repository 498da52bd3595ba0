//! Attention of several heads, with the parameters of PyTorch's `MultiheadAttention`.

use candle_core::{D, Result, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::functional::softmax;
use cuemark_tensor::{Bend, Heads, MatrixProduct as _, Part, Pass, attend, linear};

use super::{Linear, uniform, xavier};

/// What is added to the logit of a key that must not be seen.
const UNSEEN: f64 = -1e9;

/// Queries, keys and values of one width, projected by one stacked matrix (`in_proj_weight`: queries, keys, values).
#[derive(Debug, Clone)]
pub struct MultiHead {
    weight: Tensor,
    bias: Tensor,
    out: Linear,
    heads: usize,
}

/// What the stacked matrix makes.
#[derive(Debug, Clone, Copy)]
enum Role {
    Query,
    Key,
    Value,
}

impl MultiHead {
    /// `heads` heads that share `width` evenly.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, or the width cannot be shared evenly.
    pub fn new(width: usize, heads: usize, vb: VarBuilder) -> Result<Self> {
        Self::drawn(width, heads, uniform(width), &vb)
    }

    /// As [`MultiHead::new`], the matrix after the heads drawn as Glorot's too.
    ///
    /// # Errors
    /// As [`MultiHead::new`].
    pub fn glorot(width: usize, heads: usize, vb: VarBuilder) -> Result<Self> {
        Self::drawn(width, heads, xavier(width, width), &vb)
    }

    fn drawn(width: usize, heads: usize, out_init: Init, vb: &VarBuilder) -> Result<Self> {
        if heads == 0 || !width.is_multiple_of(heads) {
            candle_core::bail!("{heads} heads cannot share a width of {width}");
        }
        let weight = vb.get_with_hints((3 * width, width), "in_proj_weight", xavier(width, 3 * width))?;
        let bias = vb.get_with_hints(3 * width, "in_proj_bias", Init::Const(0.0))?;
        let out = vb.pp("out_proj");
        let out_weight = out.get_with_hints((width, width), "weight", out_init)?;
        let out_bias = out.get_with_hints(width, "bias", Init::Const(0.0))?;
        let out = Linear::new(out_weight, Some(out_bias));
        Ok(Self { weight, bias, out, heads })
    }

    /// # Shapes
    /// - query `[batch, queries, width]`, key and value `[batch, keys, width]`
    /// - bias, added to the logits, broadcast to `[batch, heads, queries, keys]`; see [`see_only`]
    /// - returns `[batch, queries, width]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        bias: Option<&Tensor>,
        dropout: f64,
        pass: &Pass,
    ) -> Result<Tensor> {
        let [query, key] = [self.project(query, Role::Query)?, self.project(key, Role::Key)?];
        let value = self.project(value, Role::Value)?;
        self.out.forward(&attend(&query, &key, &value, Heads { count: self.heads, bias, dropout }, pass)?)
    }

    /// `[batch, steps, width]` through the rows of the matrix that are for `role`.
    fn project(&self, x: &Tensor, role: Role) -> Result<Tensor> {
        let count = self.weight.dim(1)?;
        linear(x, &self.weight, &self.bias, Part { first: role as usize * count, count }, Bend::None)
    }

    /// How much every query looks at every key, `[batch, heads, queries, keys]`; rows sum to 1.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn weights(&self, query: &Tensor, key: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let scale = (query.dim(D::Minus1)? as f64 / self.heads as f64).sqrt().recip();
        let query = self.split(&(self.project(query, Role::Query)? * scale)?)?;
        let key = self.split(&self.project(key, Role::Key)?)?;
        let logits = query.times(&key.t()?.contiguous()?)?;
        let logits = match bias {
            Some(bias) => logits.broadcast_add(bias)?,
            None => logits,
        };
        softmax(&logits, D::Minus1)
    }

    /// The values as `weights [batch, heads, queries, keys]` mix them, projected: `[batch, queries, width]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn mix(&self, weights: &Tensor, value: &Tensor) -> Result<Tensor> {
        let mixed = weights.contiguous()?.times(&self.split(&self.project(value, Role::Value)?)?)?;
        self.out.forward(&mixed.transpose(1, 2)?.flatten_from(2)?)
    }

    /// `[batch, steps, width]` to `[batch, heads, steps, width / heads]`.
    fn split(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, steps, width) = x.dims3()?;
        x.reshape((batch, steps, self.heads, width / self.heads))?.transpose(1, 2)?.contiguous()
    }
}

/// The bias that hides keys: `mask [batch, keys]`, 1 where a key may be seen, to `[batch, 1, 1, keys]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn see_only(mask: &Tensor) -> Result<Tensor> {
    mask.affine(-UNSEEN, UNSEEN)?.unsqueeze(1)?.unsqueeze(1)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;

    #[test]
    fn a_hidden_key_changes_nothing() {
        let net = MultiHead::new(4, 2, Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let keys = Tensor::arange(0f32, 12.0, &Device::Cpu).unwrap().reshape((1, 3, 4)).unwrap().sin().unwrap();
        let query = keys.narrow(1, 0, 1).unwrap();
        let seen = keys.narrow(1, 0, 2).unwrap();
        let bias = see_only(&Tensor::new(&[[1f32, 1.0, 0.0]], &Device::Cpu).unwrap()).unwrap();
        let pass = Pass::answering();
        let all = net.forward(&query, &keys, &keys, Some(&bias), 0.0, &pass).unwrap();
        let two = net.forward(&query, &seen, &seen, None, 0.0, &pass).unwrap();
        assert!(crate::testing::gap(&all, &two) < 1e-6);
        let three = net.forward(&query, &keys, &keys, None, 0.0, &pass).unwrap();
        assert!(crate::testing::gap(&all, &three) > 1e-4);
    }

    #[test]
    fn a_width_that_heads_cannot_share_is_refused() {
        assert!(MultiHead::new(5, 2, Params::seeded(1, &Device::Cpu).builder()).is_err());
    }
}
