//! How the anchor family reads a video (blocks C2 and C3 of CMIN): local self-attention and a GRU over frames, and the
//! words that each frame attends to.

use candle_core::{D, Result, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{attention, mask_out, softmax};
use serde::{Deserialize, Serialize};

use crate::check::Fixture;

use super::{Linear, Recurrent, Ways, linear, linear_no_bias};

/// How frames are encoded, as every run file of the family states it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameSettings {
    /// Frames that a video's features are sampled to.
    pub frames: usize,
    /// Width that features are projected to before they are attended. Default: as wide as they are, no projection
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Heads of the self-attention; divides the width. Default: 4
    #[serde(default = "heads")]
    pub heads: usize,
    /// Layers of self-attention. Default: 2
    #[serde(default = "layers")]
    pub layers: usize,
    /// Frames on either side that one attends to. Default: 3
    #[serde(default = "reach")]
    pub reach: usize,
}

impl FrameSettings {
    /// Those of a fixture of the family.
    ///
    /// # Errors
    /// When it does not state them.
    pub fn of_fixture(fixture: &Fixture) -> crate::Result<Self> {
        Ok(Self {
            frames: fixture.number("frames")?,
            width: None,
            heads: fixture.number("heads")?,
            layers: fixture.number("attn_layers")?,
            reach: fixture.number("local_attention_half_width")?,
        })
    }
}

fn heads() -> usize {
    4
}

fn layers() -> usize {
    2
}

fn reach() -> usize {
    3
}

/// Frames to states: dropout, projection, local self-attention with residuals, a GRU both ways.
#[derive(Debug, Clone)]
pub struct FrameEncoder {
    settings: FrameSettings,
    project: Option<Linear>,
    layers: Vec<LocalAttention>,
    rnn: Recurrent,
    dropout: f64,
}

#[derive(Debug, Clone)]
struct LocalAttention {
    packed: Linear,
    out: Linear,
}

impl FrameEncoder {
    /// From `inputs` to `hidden` channels.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and when the heads do not divide the width.
    pub fn new(settings: &FrameSettings, inputs: usize, hidden: usize, dropout: f64, vb: VarBuilder) -> Result<Self> {
        let width = settings.width.unwrap_or(inputs);
        if settings.heads == 0 || !width.is_multiple_of(settings.heads) {
            candle_core::bail!("`heads` = {} does not divide the width {width} of a frame", settings.heads);
        }
        let project = if width == inputs { None } else { Some(linear(inputs, width, vb.pp("project"))?) };
        let layer = |number: usize| LocalAttention::new(width, &vb.pp("attn_layers").pp(number));
        Ok(Self {
            project,
            layers: (0..settings.layers).map(layer).collect::<Result<_>>()?,
            rnn: Recurrent::gru(width, hidden / 2, 1, Ways::Both, vb.pp("rnn.gru"))?,
            settings: settings.clone(),
            dropout,
        })
    }

    /// # Shapes
    /// - visual `[batch, frames, inputs]`, every frame real
    /// - returns `[batch, frames, hidden]`
    ///
    /// # Errors
    /// When there are more or fewer frames than the settings say.
    pub fn forward(&self, visual: &Tensor, pass: &Pass) -> Result<Tensor> {
        let frames = visual.dim(1)?;
        if frames != self.settings.frames {
            candle_core::bail!("a video has {frames} frames, the anchors cover {}", self.settings.frames);
        }
        let mut x = pass.dropout(visual, self.dropout)?;
        if let Some(project) = &self.project {
            x = project.forward(&x)?;
        }
        let far = self.far(&x)?;
        for layer in &self.layers {
            x = (&x + pass.dropout(&layer.forward(&x, self.settings.heads, &far)?, self.dropout)?)?;
        }
        pass.dropout(&self.rnn.forward(&x)?, self.dropout)
    }

    /// What is added to the logits: 0 within reach, a large negative number beyond, `[frames, frames]`.
    fn far(&self, x: &Tensor) -> Result<Tensor> {
        let (frames, reach) = (self.settings.frames, self.settings.reach);
        let rows =
            (0..frames).flat_map(|i| (0..frames).map(move |j| if i.abs_diff(j) <= reach { 0f32 } else { -1e10 }));
        Tensor::from_vec(rows.collect(), (frames, frames), x.device())
    }
}

impl LocalAttention {
    fn new(width: usize, vb: &VarBuilder) -> Result<Self> {
        let bound = (6.0 / (4 * width) as f64).sqrt();
        let xavier = Init::Uniform { lo: -bound, up: bound };
        let weight = vb.get_with_hints((3 * width, width), "in_proj_weight", xavier)?;
        let bias = vb.get_with_hints(3 * width, "in_proj_bias", Init::Const(0.0))?;
        Ok(Self { packed: Linear::new(weight, Some(bias)), out: linear(width, width, vb.pp("out_proj"))? })
    }

    fn forward(&self, x: &Tensor, heads: usize, far: &Tensor) -> Result<Tensor> {
        let (batch, frames, width) = x.dims3()?;
        let packed = self.packed.forward(x)?;
        let part = |number: usize| {
            let part = packed.narrow(2, number * width, width)?;
            part.reshape((batch, frames, heads, width / heads))?.transpose(1, 2)
        };
        let (attended, _) = attention(&part(0)?, &part(1)?, &part(2)?, Some(far))?;
        self.out.forward(&attended.transpose(1, 2)?.reshape((batch, frames, width))?)
    }
}

/// The words that each frame attends to: additive attention, padded words left out.
#[derive(Debug, Clone)]
pub struct FrameToWords {
    from_frame: Linear,
    from_word: Linear,
    score: Linear,
}

impl FrameToWords {
    /// Over frames and words of `width` channels.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(width: usize, vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            from_frame: linear(width, width, vb.pp("ws1"))?,
            from_word: linear_no_bias(width, width, vb.pp("ws2"))?,
            score: linear_no_bias(width, 1, vb.pp("wst"))?,
        })
    }

    /// # Shapes
    /// - frames `[batch, frames, width]`, words `[batch, words, width]`, mask `[batch, words]`, 1 at real words
    /// - returns `[batch, frames, width]`: for each frame the words it attends to
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, frames: &Tensor, words: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let from_frames = self.from_frame.forward(frames)?.unsqueeze(2)?;
        let from_words = self.from_word.forward(words)?.unsqueeze(1)?;
        let scores = self.score.forward(&from_frames.broadcast_add(&from_words)?.tanh()?)?.squeeze(D::Minus1)?;
        let weights = softmax(&mask_out(&scores, &mask.unsqueeze(1)?, -1e30)?, D::Minus1)?;
        weights.times(words)
    }
}
