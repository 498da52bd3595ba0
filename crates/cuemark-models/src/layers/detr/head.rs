//! From decoder states to a set of spans, and from a set of spans to answers.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_tensor::functional::{sigmoid, softmax};
use serde::{Deserialize, Serialize};

use super::super::{Linear, linear};
use super::anchored::logit;
use super::blocks::{Drawn, Mlp, MlpEnd};
use crate::losses::SetLayer;
use crate::{Proposal, Result};

/// The two heads that all decoder layers share: `class_embed` (right or background) and `span_embed` (centre and width).
#[derive(Debug, Clone)]
pub struct SetHead {
    label: Linear,
    span: Mlp,
}

impl SetHead {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(width: usize, vb: &VarBuilder) -> Result<Self> {
        let span = Mlp::new(&[width, width, width, 2], Drawn::Default, MlpEnd::Drawn, &vb.pp("span_embed"))?;
        Ok(Self { label: linear(width, 2, vb.pp("class_embed"))?, span })
    }

    /// Spans where the states say, counted from `anchors` when there are any.
    ///
    /// # Shapes
    /// - states `[batch, proposals, width]`, anchors `[batch, proposals, 2]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn layer(&self, states: &Tensor, anchors: Option<&Tensor>) -> Result<SetLayer> {
        let moved = self.span.forward(states)?;
        let moved = match anchors {
            Some(anchors) => (moved + logit(anchors)?)?,
            None => moved,
        };
        Ok(SetLayer { logits: self.label.forward(states)?, spans: sigmoid(&moved)? })
    }

    /// As [`SetHead::layer`], for every layer.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn layers(&self, states: &[Tensor], anchors: &[Tensor]) -> Result<Vec<SetLayer>> {
        states.iter().zip(anchors).map(|(states, anchors)| self.layer(states, Some(anchors))).collect()
    }
}

/// One row for every sample: `[rows, width]` to `[batch, rows, width]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn repeat_rows(rows: &Tensor, batch: usize) -> Result<Tensor> {
    let (count, width) = rows.dims2()?;
    Ok(rows.unsqueeze(0)?.broadcast_as((batch, count, width))?.contiguous()?)
}

/// The samples at `rows`, in that order.
///
/// # Errors
/// When there is no such row.
pub fn pick_rows(x: &Tensor, rows: &[usize]) -> Result<Tensor> {
    if rows.iter().enumerate().all(|(place, row)| place == *row) && x.dim(0)? == rows.len() {
        return Ok(x.clone());
    }
    let rows: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
    Ok(x.contiguous()?.index_select(&Tensor::new(rows, x.device())?, 0)?)
}

/// A learned token `[width]` before every sequence `[batch, steps, width]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn start_token(token: &Tensor, steps: &Tensor) -> Result<Tensor> {
    let token = repeat_rows(&token.unsqueeze(0)?, steps.dim(0)?)?;
    Ok(Tensor::cat(&[&token, steps], 1)?)
}

/// Where the ends of an answer may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// Between clips, as published: the nearest border, halves to the even one. Default.
    #[default]
    Clips,
    /// Anywhere.
    None,
}

impl Rounding {
    /// A fraction of a video of so many clips.
    pub fn apply(self, fraction: f64, clips: usize) -> f64 {
        match self {
            Self::Clips if clips > 0 => (fraction * clips as f64).round_ties_even() / clips as f64,
            Self::Clips | Self::None => fraction,
        }
    }
}

/// The spans of one layer, the surest first, cut at the borders of the video; `clips` says how many each video has.
///
/// # Errors
/// Those of the tensor operations.
pub fn rank_set(layer: &SetLayer, clips: &[usize], rounding: Rounding) -> Result<Vec<Vec<Proposal>>> {
    let scores = softmax(&layer.logits, D::Minus1)?;
    let rows = Tensor::cat(&[&scores, &layer.spans], D::Minus1)?.to_vec3::<f32>()?;
    let proposal = |row: &Vec<f32>, clips: usize| {
        let (centre, half) = (f64::from(row[2]), f64::from(row[3]) / 2.0);
        let span = NormSpan::new(centre - half, centre + half)?.clipped();
        let span = NormSpan::new(rounding.apply(span.start(), clips), rounding.apply(span.end(), clips))?;
        Some(Proposal { span, score: row[0] })
    };
    let ranked = |(rows, clips): (Vec<Vec<f32>>, &usize)| {
        let mut ranked: Vec<Proposal> = rows.iter().filter_map(|row| proposal(row, *clips)).collect();
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked
    };
    Ok(rows.into_iter().zip(clips).map(ranked).collect())
}
