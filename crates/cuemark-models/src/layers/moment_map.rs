//! The start × end map of candidate spans that the 2D-map family shares (blocks A2 to A6 of 2D-TAN).
//!
//! Maps are kept as `[batch, cells, width]` with one row per **valid** cell; the whole N × N square is built only where a
//! method computes on invalid cells too.

use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_tensor::map::{LayerPlan, MapLayout, StackPlan, Support, map_conv_relu};
use serde::{Deserialize, Serialize};

use super::{Linear, pointwise, uniform};
use crate::check::Fixture;
use crate::{Grid, Proposal};

/// Sizes of a map, as every run file of the family states them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapSize {
    /// Rows that a video's features are averaged to before the projection.
    pub pre_clips: usize,
    /// Clips along each side of the map; divides `pre_clips`.
    pub clips: usize,
    /// How many more lengths are valid at stride 1, 2, 4, …
    pub counts: Vec<usize>,
}

impl MapSize {
    /// That of a fixture of the family, which lists the counts under `counts`.
    ///
    /// # Errors
    /// When it does not state it.
    pub fn of_fixture(fixture: &Fixture, counts: &str) -> crate::Result<Self> {
        Ok(Self {
            pre_clips: fixture.number("pre_clips")?,
            clips: fixture.number("clips")?,
            counts: fixture.numbers(counts)?,
        })
    }
}

/// The valid cells, what they mean, and how scores on them become answers.
#[derive(Debug, Clone)]
pub struct MomentMap {
    layout: Arc<MapLayout>,
}

impl MomentMap {
    /// The map of the given size.
    ///
    /// # Errors
    /// For counts that reach past the map.
    pub fn new(clips: usize, counts: &[usize]) -> Result<Self> {
        Ok(Self { layout: Arc::new(MapLayout::new(clips, counts)?) })
    }

    /// Which cells are valid.
    pub fn layout(&self) -> &Arc<MapLayout> {
        &self.layout
    }

    /// The grid that its cells are of.
    pub fn grid(&self) -> Grid {
        Grid { clips: self.layout.clips() }
    }

    /// The span of every valid cell, as fractions of what the clips cover.
    pub fn spans(&self) -> impl Iterator<Item = NormSpan> + '_ {
        let clips = self.layout.clips() as f64;
        let span =
            move |(start, end): &(u32, u32)| NormSpan::new(f64::from(*start) / clips, f64::from(end + 1) / clips);
        self.layout.cells().iter().filter_map(span)
    }

    /// Overlap of every valid cell with each of `spans`, `[spans, cells]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn ious(&self, spans: &[NormSpan], device: &Device) -> Result<Tensor> {
        let of = |truth: &NormSpan| self.spans().map(|cell| cell.iou_hull(*truth) as f32).collect::<Vec<f32>>();
        let values: Vec<f32> = spans.iter().flat_map(of).collect();
        Tensor::from_vec(values, (spans.len(), self.layout.len()), device)
    }

    /// Every valid cell of every row of `scores [queries, cells]`, best first; equal scores keep the order of the cells.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn rank(&self, scores: &Tensor) -> Result<Vec<Vec<Proposal>>> {
        let rows = scores.to_dtype(DType::F32)?.to_vec2::<f32>()?;
        let spans: Vec<NormSpan> = self.spans().collect();
        let rank = |row: Vec<f32>| {
            let mut ranked: Vec<Proposal> =
                spans.iter().zip(row).map(|(span, score)| Proposal { span: *span, score }).collect();
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
            ranked
        };
        Ok(rows.into_iter().map(rank).collect())
    }

    /// Puts the rows of `x [batch, cells, width]` where they belong on the whole map, zeros elsewhere: `[batch, width, N, N]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn to_square(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, _, width) = x.dims3()?;
        let clips = self.layout.clips();
        // Row 0 of the padded input is zero: where every invalid square looks.
        let padded = x.pad_with_zeros(1, 1, 0)?;
        let rows: Vec<u32> = (0..clips * clips)
            .map(|square| self.layout.number(square / clips, square % clips).map_or(0, |cell| cell as u32 + 1))
            .collect();
        let rows = Tensor::new(rows, x.device())?;
        padded.index_select(&rows, 1)?.transpose(1, 2)?.reshape((batch, width, clips, clips))
    }

    /// Takes the valid cells from the last two axes of `x [batch, width, N, N]`: `[batch, cells, width]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn cells_of_square(&self, x: &Tensor) -> Result<Tensor> {
        let rows = x.flatten_from(2)?.transpose(1, 2)?.contiguous()?;
        rows.index_select(&self.squares(x.device())?, 1)
    }

    /// For every valid cell its place on the whole map, row by row.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn squares(&self, device: &Device) -> Result<Tensor> {
        let clips = self.layout.clips() as u32;
        Tensor::new(self.layout.cells().iter().map(|(start, end)| start * clips + end).collect::<Vec<_>>(), device)
    }

    /// 1 at valid squares of the whole map, `[N, N]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn mask(&self, device: &Device) -> Result<Tensor> {
        let clips = self.layout.clips();
        let mask: Vec<f32> = self.layout.mask().into_iter().map(f32::from).collect();
        Tensor::from_vec(mask, (clips, clips), device)
    }
}

/// Clip projection (A2): 1×1 convolution, ReLU, then the mean of `pre_clips / clips` neighbours.
#[derive(Debug, Clone)]
pub struct ClipProjection {
    project: Linear,
    clips: usize,
}

impl ClipProjection {
    /// From `inputs` to `hidden` channels and to `clips` clips.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(inputs: usize, hidden: usize, clips: usize, vb: VarBuilder) -> Result<Self> {
        Ok(Self { project: pointwise(inputs, hidden, 1, vb)?, clips })
    }

    /// # Shapes
    /// - visual `[batch, pre_clips, inputs]`
    /// - returns `[batch, clips, hidden]`
    ///
    /// # Errors
    /// When the clips do not divide the pre-clips.
    pub fn forward(&self, visual: &Tensor) -> Result<Tensor> {
        let (batch, pre_clips, _) = visual.dims3()?;
        if self.clips == 0 || pre_clips % self.clips != 0 {
            candle_core::bail!("{pre_clips} pre-clips cannot be averaged to {} clips", self.clips);
        }
        let x = self.project.forward(visual)?.relu()?;
        if pre_clips == self.clips {
            return Ok(x);
        }
        x.reshape((batch, self.clips, pre_clips / self.clips, ()))?.mean(2)
    }
}

/// Masked convolution stack (A5): convolution, ReLU, division by the number of valid cells under the kernel.
#[derive(Debug, Clone)]
pub struct MapStack {
    kernel: usize,
    layers: Vec<MapLayer>,
}

#[derive(Debug, Clone)]
struct MapLayer {
    weight: Tensor,
    bias: Tensor,
    plan: Arc<LayerPlan>,
}

/// Which cells a stack computes, as run files name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MapSupport {
    /// Every cell that matters for a valid one: the published network. Default.
    #[default]
    Exact,
    /// Valid cells only in every layer: a smaller computation and another network.
    Valid,
}

impl From<MapSupport> for Support {
    fn from(support: MapSupport) -> Self {
        match support {
            MapSupport::Exact => Self::Exact,
            MapSupport::Valid => Self::Valid,
        }
    }
}

impl MapStack {
    /// `layers` layers of `kernel` × `kernel` on the valid cells of `map`, parameters under `0`, `1`, ….
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for kernels that cannot be.
    pub fn new(
        map: &MomentMap,
        hidden: usize,
        kernel: usize,
        layers: usize,
        support: MapSupport,
        vb: VarBuilder,
    ) -> Result<Self> {
        let plan = StackPlan::new(map.layout(), kernel, layers, support.into())?;
        let layer = |(number, plan): (usize, &Arc<LayerPlan>)| {
            let vb = vb.pp(number);
            let fan = uniform(hidden * kernel * kernel);
            let weight = vb.get_with_hints((hidden, hidden, kernel, kernel), "weight", fan)?;
            Ok(MapLayer { weight, bias: vb.get_with_hints(hidden, "bias", fan)?, plan: Arc::clone(plan) })
        };
        Ok(Self { kernel, layers: plan.layers.iter().enumerate().map(layer).collect::<Result<_>>()? })
    }

    /// # Shapes
    /// - x `[batch, cells, hidden]`; returns the same
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.layers.iter().try_fold(x.clone(), |x, layer| layer.forward(&x, &layer.plan))
    }

    /// What the published stack leaves on the whole map, the cells that no score reads included: `[batch, hidden, N, N]`.
    /// For comparison with a reference; answers never need it.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward_on_whole_map(&self, map: &MomentMap, x: &Tensor) -> Result<Tensor> {
        let plan = StackPlan::new(map.layout(), self.kernel, self.layers.len(), Support::Reached)?;
        let layers = self.layers.iter().zip(&plan.layers);
        let last = layers.clone().try_fold(x.clone(), |x, (layer, plan)| layer.forward(&x, plan))?;
        let (batch, _, hidden) = last.dims3()?;
        let clips = map.layout().clips();
        let mut rows = vec![0u32; clips * clips];
        for (row, (start, end)) in plan.layers.last().iter().flat_map(|plan| plan.outputs()).enumerate() {
            rows[*start as usize * clips + *end as usize] = row as u32 + 1;
        }
        let squares = last.pad_with_zeros(1, 1, 0)?.index_select(&Tensor::new(rows, x.device())?, 1)?;
        squares.transpose(1, 2)?.reshape((batch, hidden, clips, clips))
    }
}

impl MapLayer {
    fn forward(&self, x: &Tensor, plan: &Arc<LayerPlan>) -> Result<Tensor> {
        map_conv_relu(x, &self.weight, Some(&self.bias), plan, 1)
    }
}
