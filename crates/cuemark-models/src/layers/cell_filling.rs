//! How the cells of a start × end map are made from the clips of their spans (block A4 of 2D-TAN).

use std::sync::Arc;

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;
use cuemark_tensor::map::{MapLayout, span_max};
use serde::{Deserialize, Serialize};

use super::{Conv1d, MomentMap, Steps};

/// How a cell longer than one clip is made from the clips of its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellFill {
    /// The largest value of each channel. Default.
    #[default]
    Pool,
    /// A convolution of its own for every length.
    Conv,
}

/// What the released networks of the `conv` variant call their convolutions, and where they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillNames {
    /// 2D-TAN's: `SCALE.STEP`, a scale for every stride; single clips have a convolution too.
    ByScale,
    /// MMN's: one number each; single clips are taken as they are.
    InOneRow,
}

/// Cells from clips.
#[derive(Debug, Clone)]
pub struct CellFilling {
    layout: Arc<MapLayout>,
    by: By,
}

#[derive(Debug, Clone)]
enum By {
    Pooling,
    /// One convolution for each step of the layout behind those that are `taken` as they are.
    Convolutions {
        each: Vec<Conv1d>,
        taken: usize,
    },
}

impl CellFilling {
    /// For the cells of `map`, between `hidden` channels.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(map: &MomentMap, fill: CellFill, names: FillNames, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        let by = match fill {
            CellFill::Pool => By::Pooling,
            CellFill::Conv => {
                let taken = match names {
                    FillNames::ByScale => 0,
                    FillNames::InOneRow => 1,
                };
                By::Convolutions { each: convolutions(map.layout(), taken, names, hidden, vb)?, taken }
            }
        };
        Ok(Self { layout: Arc::clone(map.layout()), by })
    }

    /// # Shapes
    /// - clips `[batch, clips, hidden]`
    /// - returns `[batch, cells, hidden]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, clips: &Tensor) -> Result<Tensor> {
        let By::Convolutions { each, taken } = &self.by else {
            return span_max(clips, &self.layout);
        };
        let mut written = vec![clips.clone(); *taken];
        let mut columns = clips.clone();
        for convolution in each {
            // Every step reads what the step before it wrote: a column grows longer by the kernel each time.
            columns = convolution.forward(&columns)?;
            written.push(columns.clone());
        }
        let order = Tensor::new(self.layout.fill_order(), clips.device())?;
        Tensor::cat(&written, 1)?.index_select(&order, 1)
    }
}

fn convolutions(
    layout: &MapLayout,
    taken: usize,
    names: FillNames,
    hidden: usize,
    vb: &VarBuilder,
) -> Result<Vec<Conv1d>> {
    let (mut scale, mut number) = (0, 0);
    let mut each = Vec::new();
    for step in layout.steps().iter().skip(taken) {
        let place = match names {
            FillNames::ByScale => {
                // A step that advances by more than one column begins the next stride.
                if step.advance > 1 {
                    (scale, number) = (scale + 1, 0);
                }
                vb.pp(scale).pp(number)
            }
            FillNames::InOneRow => vb.pp(number),
        };
        let steps = Steps { stride: step.advance, ..Steps::default() };
        each.push(Conv1d::new(hidden, hidden, step.kernel, steps, place)?);
        number += 1;
    }
    Ok(each)
}
