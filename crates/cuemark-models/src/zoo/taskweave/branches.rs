//! The two branches: what they share, and what each has for itself.

use candle_core::Tensor;
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::mask_out;

use crate::Result;
use crate::layers::detr::{Encoder, JointInputs, LayerPlan, Padding, glorot};
use crate::layers::{Conv1d, Linear, Steps, xavier};

/// Steps on either side that a clip is pooled with.
const REACH: usize = 2;
/// Below anything that a clip says.
const LEAST: f64 = -1e9;

#[derive(Debug)]
pub(super) struct Branches {
    into_moments: Linear,
    into_highlights: Linear,
    shared: Encoder,
    convolution: Conv1d,
    /// Scale and shift of the norm after the convolution, stored `[1, width, 1]`.
    norm: [Tensor; 2],
    project: Linear,
    padding: Padding,
}

/// What the branches make of clips that have seen the words.
pub(super) struct Branched {
    pub(super) moments_in: Tensor,
    pub(super) highlights_in: Tensor,
    /// After the shared layers, before pooling.
    pub(super) moments_shared: Tensor,
    pub(super) highlights_shared: Tensor,
    /// The part of the moments that is theirs alone.
    pub(super) moments_own: Tensor,
    pub(super) moments: Tensor,
    pub(super) highlights: Tensor,
}

impl Branches {
    pub(super) fn new(plan: &LayerPlan, layers: usize, padding: Padding, vb: &VarBuilder) -> Result<Self> {
        let width = plan.width;
        let steps = Steps { padding: REACH, groups: width, ..Steps::default() };
        let kernel = 2 * REACH + 1;
        let weight =
            vb.pp("mr_conv.conv").get_with_hints((width, 1, kernel), "weight", xavier(kernel, kernel * width))?;
        let norm = |name: &str, value: f64| {
            let stored = vb.pp("mr_norm").get_with_hints((1, width, 1), name, Init::Const(value))?;
            stored.reshape(width)
        };
        let project = vb.pp("mr_proj");
        let matrix =
            project.get_with_hints((width, width, 1), "weight", xavier(width, width))?.reshape((width, width))?;
        Ok(Self {
            into_moments: glorot(width, width, vb.pp("mr_linear"))?,
            into_highlights: glorot(width, width, vb.pp("hd_linear"))?,
            shared: Encoder::new(plan, layers, &vb.pp("shared_encoder"))?,
            convolution: Conv1d::of(weight, None, steps),
            norm: [norm("weight", 1.0)?, norm("bias", 0.0)?],
            project: Linear::new(matrix, Some(project.get_with_hints(width, "bias", crate::layers::uniform(width))?)),
            padding,
        })
    }

    /// # Shapes
    /// - seen and place `[batch, clips, width]`, bias as the encoder takes it
    pub(super) fn forward(
        &self,
        seen: &Tensor,
        place: &Tensor,
        bias: &Tensor,
        inputs: &JointInputs,
        pass: &Pass,
    ) -> Result<Branched> {
        let pooled = self.pool(seen, inputs)?;
        let (moments_in, highlights_in) = (self.into_moments.forward(&pooled)?, self.into_highlights.forward(&pooled)?);
        let moments_shared = self.shared.forward(&moments_in, place, bias, pass)?;
        let highlights_shared = self.shared.forward(&highlights_in, place, bias, pass)?;
        // The published mask has the wrong sense: real clips are set to 0, so that on them only the shift of the norm is left.
        let padding = inputs.video_mask.affine(-1.0, 1.0)?.unsqueeze(2)?;
        let own = self.convolution.forward(&moments_in)?.broadcast_mul(&padding)?;
        let centred = own.broadcast_sub(&own.mean_keepdim(2)?)?;
        let deviation = (centred.sqr()?.mean_keepdim(2)? + 1e-5)?.sqrt()?;
        let normed = centred.broadcast_div(&deviation)?.broadcast_mul(&self.norm[0])?.broadcast_add(&self.norm[1])?;
        let moments_own = self.project.forward(&normed)?;
        Ok(Branched {
            moments: (&moments_own * self.pool(&moments_shared, inputs)?)?,
            highlights: (&highlights_in * self.pool(&highlights_shared, inputs)?)?,
            moments_in,
            highlights_in,
            moments_shared,
            highlights_shared,
            moments_own,
        })
    }

    /// The largest value of every channel among a clip and the two on either side.
    fn pool(&self, x: &Tensor, inputs: &JointInputs) -> Result<Tensor> {
        let (batch, steps, width) = x.dims3()?;
        let x = match self.padding {
            Padding::Leaks => x.clone(),
            Padding::Masked => mask_out(x, &inputs.video_mask.unsqueeze(2)?, LEAST)?,
        };
        let edge = Tensor::full(LEAST as f32, (batch, REACH, width), x.device())?;
        let wide = Tensor::cat(&[&edge, &x, &edge], 1)?;
        let mut pooled = wide.narrow(1, 0, steps)?;
        for shift in 1..=2 * REACH {
            pooled = pooled.maximum(&wide.narrow(1, shift, steps)?)?;
        }
        match self.padding {
            Padding::Leaks => Ok(pooled),
            // Nothing far below everything may be left on padded clips: the next layers multiply it.
            Padding::Masked => Ok(mask_out(&pooled, &inputs.video_mask.unsqueeze(2)?, 0.0)?),
        }
    }
}
