//! The three products of a convolution over listed cells, on the CPU: forward, gradient of the input, gradient of the weight.
//!
//! Per place of the kernel, the rows that have a neighbour there are gathered and multiplied by that place's weights.
//! Places without a neighbour cost nothing, and the buffers are as small as one block of rows. Blocks and their order
//! do not depend on the number of threads, so neither does any sum.

use rayon::prelude::*;

use super::plan::LayerPlan;
use crate::matrix::{Into, Matrix, Threads, product_into};
use crate::zeros::zeros;

/// The most rows that are multiplied at once: three buffers of that many rows of 512 numbers fit the second-level cache.
const BLOCK_ROWS: usize = 256;
/// The fewest: with fewer, bringing the weights into order takes a good part of a product's time.
const FEWEST_ROWS: usize = 128;
/// Blocks come in multiples of this many, so that up to as many threads all end at once.
const EVENLY: usize = 16;
/// Rows of a weight gradient that one task adds up.
const BLOCK_CHANNELS: usize = 128;

/// Rows of a block, of so many in all: a matter of the work, never of the number of threads.
fn block_rows(rows: usize) -> usize {
    let blocks = EVENLY * rows.div_ceil(EVENLY * BLOCK_ROWS).max(1);
    rows.div_ceil(blocks).clamp(FEWEST_ROWS, BLOCK_ROWS)
}

/// Sizes of one convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) batch: usize,
    pub(super) c_in: usize,
    pub(super) c_out: usize,
    pub(super) groups: usize,
}

/// Which way rows go through a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// From input cells to output cells.
    Forward,
    /// From output cells back to input cells.
    Backward,
}

/// Weights with one matrix per place of the kernel, whose rows have no gaps in the direction that a product wants:
/// `[c_in / groups, kernel * kernel, c_out]` forward, `[c_out, kernel * kernel, c_in / groups]` backward.
pub(super) struct PlacedWeights {
    values: Vec<f32>,
    way: Way,
    area: usize,
    /// Length of a row.
    width: usize,
}

impl PlacedWeights {
    /// From `[c_out, width, area]`, with `width` the input channels of a group.
    pub(super) fn new(weight: &[f32], way: Way, area: usize, width: usize) -> Self {
        let channel = area * width;
        let mut values = zeros(weight.len());
        let c_out = weight.len() / channel.max(1);
        let width = match way {
            Way::Forward => {
                values.par_chunks_mut((area * c_out).max(1)).enumerate().for_each(|(input, to)| {
                    for (output, from) in weight.chunks_exact(channel).enumerate() {
                        let from = &from[input * area..(input + 1) * area];
                        to.iter_mut().skip(output).step_by(c_out).zip(from).for_each(|(to, from)| *to = *from);
                    }
                });
                c_out
            }
            Way::Backward => {
                values.par_chunks_mut(channel.max(1)).zip(weight.par_chunks(channel.max(1))).for_each(|(to, from)| {
                    for (place, row) in to.chunks_exact_mut(width).enumerate() {
                        row.iter_mut().zip(from.iter().skip(place).step_by(area)).for_each(|(to, from)| *to = *from);
                    }
                });
                width
            }
        };
        Self { values, way, area, width }
    }

    /// The matrix of one place between a group's channels, `rows` by `columns`.
    fn matrix(&self, place: usize, group: usize, rows: usize, columns: usize) -> Matrix<'_> {
        let stride = self.area * self.width;
        let first = match self.way {
            Way::Forward => place * self.width + group * columns,
            Way::Backward => group * rows * stride + place * self.width,
        };
        Matrix::new(&self.values[first..], rows, columns, stride, 1)
    }
}

/// What one thread needs while it works on a block.
struct Scratch {
    /// Rows of the block that have a neighbour at the place of the kernel, and the neighbour.
    pairs: Vec<(usize, usize)>,
    gathered: Vec<f32>,
    product: Vec<f32>,
}

impl Scratch {
    /// For blocks whose gathered rows and products have so many channels.
    fn new(gathered: usize, product: usize) -> Self {
        Self {
            pairs: Vec::with_capacity(BLOCK_ROWS),
            gathered: vec![0.0; BLOCK_ROWS * gathered],
            product: vec![0.0; BLOCK_ROWS * product],
        }
    }
}

/// Adds to every row of `to` the products of its neighbours' rows in `from` with the weights between them.
///
/// `from` is `[batch, cells, channels]` of one end of the layer and `to` of the other, as the weights are placed.
pub(super) fn multiply(plan: &LayerPlan, sizes: Sizes, weights: &PlacedWeights, from: &[f32], to: &mut [f32]) {
    let Sizes { c_in, c_out, groups, .. } = sizes;
    let area = weights.area;
    let (list, from_cells, to_cells, c_from, c_to) = match weights.way {
        Way::Forward => (plan.gather(), plan.input_count(), plan.output_count(), c_in, c_out),
        Way::Backward => (plan.inverse(), plan.output_count(), plan.input_count(), c_out, c_in),
    };
    let (g_from, g_to) = (c_from / groups, c_to / groups);
    let scratch = || Scratch::new(c_from, c_to);
    let size = block_rows(to.len() / c_to.max(1));
    to.par_chunks_mut((size * c_to).max(1)).enumerate().for_each_init(scratch, |scratch, (block, to)| {
        let rows = to.len() / c_to;
        for place in 0..area {
            scratch.pairs.clear();
            for row in 0..rows {
                let (item, cell) = ((block * size + row) / to_cells, (block * size + row) % to_cells);
                let other = list[cell * area + place] as usize;
                if other > 0 {
                    scratch.pairs.push((row, item * from_cells + other - 1));
                }
            }
            let count = scratch.pairs.len();
            if count == 0 {
                continue;
            }
            gather(&mut scratch.gathered, from, c_from, 0..c_from, scratch.pairs.iter().map(|(_, other)| *other));
            // When every row has a neighbour here, the product is added where it belongs without a detour.
            let direct = count == rows;
            let product: &mut [f32] = if direct { &mut *to } else { &mut scratch.product };
            for group in 0..groups {
                product_into(
                    Matrix::new(&scratch.gathered[group * g_from..], count, g_from, c_from, 1),
                    weights.matrix(place, group, g_from, g_to),
                    &mut product[group * g_to..],
                    c_to,
                    if direct { Into::Add } else { Into::Replace },
                    Threads::One,
                );
            }
            if !direct {
                for ((row, _), product) in scratch.pairs.iter().zip(scratch.product.chunks_exact(c_to)) {
                    let to = &mut to[row * c_to..(row + 1) * c_to];
                    to.iter_mut().zip(product).for_each(|(to, product)| *to += *product);
                }
            }
        }
    });
}

/// Gradient of the weight, `[c_out, c_in / groups, kernel * kernel]`: for each place the products of input rows with
/// the gradients of the outputs that read them there.
pub(super) fn weight_gradient(plan: &LayerPlan, sizes: Sizes, input: &[f32], gradient: &[f32]) -> Vec<f32> {
    let Sizes { batch, c_in, c_out, groups } = sizes;
    let (area, width) = (plan.kernel() * plan.kernel(), c_in / groups);
    let (cells, inputs) = (plan.output_count(), plan.input_count());
    let channels = if groups == 1 && c_out % BLOCK_CHANNELS == 0 { BLOCK_CHANNELS } else { c_out };
    let blocks = c_out / channels;
    let mut placed = zeros(area * c_out * width);
    let scratch = || Scratch::new(c_in, channels);
    placed.par_chunks_mut((channels * width).max(1)).enumerate().for_each_init(scratch, |scratch, (task, to)| {
        let (place, first) = (task / blocks, task % blocks * channels);
        let present =
            (0..batch).flat_map(|item| (0..cells).map(move |cell| (item, cell))).filter_map(|(item, cell)| {
                let input = plan.gather()[cell * area + place] as usize;
                (input > 0).then(|| (item * cells + cell, item * inputs + input - 1))
            });
        let mut present = present.peekable();
        while present.peek().is_some() {
            scratch.pairs.clear();
            scratch.pairs.extend(present.by_ref().take(BLOCK_ROWS));
            let count = scratch.pairs.len();
            gather(&mut scratch.gathered, input, c_in, 0..c_in, scratch.pairs.iter().map(|(_, input)| *input));
            let columns = first..first + channels;
            gather(&mut scratch.product, gradient, c_out, columns, scratch.pairs.iter().map(|(output, _)| *output));
            let out_width = channels / groups;
            for group in 0..groups {
                product_into(
                    Matrix::new(&scratch.product[group * out_width..], out_width, count, 1, channels),
                    Matrix::new(&scratch.gathered[group * width..], count, width, c_in, 1),
                    &mut to[group * out_width * width..],
                    width,
                    Into::Add,
                    Threads::One,
                );
            }
        }
    });
    let mut weight = zeros(placed.len());
    let matrix = c_out * width;
    weight.par_chunks_mut(area * 256).enumerate().for_each(|(block, to)| {
        for (n, to) in to.chunks_exact_mut(area).enumerate() {
            let from = placed.iter().skip(block * 256 + n).step_by(matrix);
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
    });
    weight
}

/// Copies `columns` of the named rows of `from` one after the other.
fn gather(
    to: &mut [f32],
    from: &[f32],
    width: usize,
    columns: std::ops::Range<usize>,
    rows: impl Iterator<Item = usize>,
) {
    for (to, row) in to.chunks_exact_mut(columns.len()).zip(rows) {
        to.copy_from_slice(&from[row * width..][columns.clone()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{MapLayout, StackPlan, Support};

    #[test]
    fn blocks_are_even_for_sixteen_threads_and_neither_small_nor_large() {
        assert_eq!([1, 2_000, 2_049, 4_096, 5_600].map(block_rows), [128, 128, 129, 256, 175]);
    }

    /// Of the published sizes the smallest, with one item: the buffers of two threads and our largest layer together
    /// take less than the dense layer's output alone.
    #[test]
    fn buffers_and_cells_take_less_memory_than_a_dense_map() {
        let width = 512;
        let scratch = Scratch::new(width, width);
        let buffers = 2 * (scratch.gathered.len() + scratch.product.len()) * size_of::<f32>();
        for (clips, counts, kernel, layers, batch) in
            [(16, vec![15], 5, 8, 2), (64, vec![15, 8, 8], 9, 4, 1), (128, vec![15, 8, 8, 8], 5, 8, 1)]
        {
            let layout = MapLayout::new(clips, &counts).unwrap();
            let plan = StackPlan::new(&layout, kernel, layers, Support::Exact).unwrap();
            let bytes = |cells: usize| batch * cells * width * size_of::<f32>();
            let dense = plan.layers.iter().map(|layer| bytes(layer.dense_cells())).max().unwrap();
            let ours = plan.layers.iter().map(|layer| bytes(layer.output_count())).max().unwrap();
            assert!(ours + buffers < dense, "{clips} clips: {ours} and {buffers} against {dense}");
        }
    }
}
