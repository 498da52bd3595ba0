//! Which cells each layer of a convolution stack computes, and from which cells it reads.

use std::sync::Arc;

use super::{MapError, MapLayout};

const LARGEST_KERNEL: usize = 31;
const MOST_LAYERS: usize = 32;
/// Most entries of a list of neighbours: 512 MiB.
const MOST_NEIGHBOURS: usize = 1 << 27;

/// Which cells a stack keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Support {
    /// Those that are not zero and reach a valid cell of the last layer: the published network, without the cells that
    /// cannot matter.
    Exact,
    /// All that are not zero, for batch norm, which takes statistics over the whole padded map. Cells outside hold the
    /// bias; [`LayerPlan::dense_cells`] tells how many there are.
    Reached,
    /// The valid cells in every layer. Another network than the published one, with the same parameters.
    Valid,
}

/// The layers of a masked stack whose first layer is padded by `(kernel - 1) * layers / 2` and the others by nothing.
#[derive(Debug)]
pub struct StackPlan {
    /// First to last; the input cells of one are the output cells of the one before.
    pub layers: Vec<Arc<LayerPlan>>,
    valid_rows: Vec<u32>,
}

/// One layer: its cells, and each cell's neighbours under the kernel.
#[derive(Debug)]
pub struct LayerPlan {
    kernel: usize,
    inputs: Vec<(i32, i32)>,
    outputs: Vec<(i32, i32)>,
    gather: Vec<u32>,
    inverse: Vec<u32>,
    weights: Vec<f32>,
    dense_cells: usize,
    #[cfg(feature = "cuda")]
    pub(super) on_gpu: crate::kernels::PlanCache,
}

impl StackPlan {
    /// Plans `layers` layers of `kernel` × `kernel` on the valid cells of `layout`.
    ///
    /// # Errors
    /// For an even or absurd kernel, for no or too many layers, and when a layer is too large to list.
    pub fn new(layout: &MapLayout, kernel: usize, layers: usize, support: Support) -> Result<Self, MapError> {
        check(kernel, layers)?;
        let reach = (kernel - 1) / 2;
        // The published stack pads once, before the first layer, by what all layers together take away: until the last layer its
        // maps are larger than the map, and cells outside it are computed from valid ones and feed valid ones again.
        let valid = Grid::valid(layout, reach * layers);
        let mut mask = valid.clone();
        let mut inputs = valid.cells();
        let mut plans = Vec::with_capacity(layers);
        for layer in 0..layers {
            // What is left of the padding after this layer, and so also how far the layers after it still reach.
            let margin = reach * (layers - 1 - layer);
            // Counts are of whole cells, so the published rounding changes nothing here.
            let counts = mask.counts(reach);
            // The published mask grows with every layer: a cell counts as soon as one that counted lies under its kernel.
            mask = match support {
                Support::Valid => valid.clone(),
                Support::Exact | Support::Reached => counts.clone().at_least_one().without_margin(margin),
            };
            // A cell further from every valid one than the layers after this reach is read by nothing that is read: this is where
            // half of the published work goes. Batch norm takes its statistics over them all the same, hence `Reached`.
            let kept = if support == Support::Exact { mask.clone().and(&valid.grown(margin)) } else { mask.clone() };
            let outputs = kept.cells();
            // Never a division by 0: a cell is kept because something counted under its kernel.
            let weights = outputs.iter().map(|cell| 1.0 / counts.at(*cell) as f32).collect();
            let side = layout.clips() + 2 * margin;
            plans.push(Arc::new(LayerPlan::new(kernel, inputs, outputs.clone(), weights, side * side)?));
            inputs = outputs;
        }
        let valid_rows = layout.cells().iter().map(|(start, end)| {
            let row = inputs.binary_search(&(*start as i32, *end as i32));
            row.map_or(0, |row| row as u32) // never missing: a valid cell counts itself
        });
        Ok(Self { valid_rows: valid_rows.collect(), layers: plans })
    }

    /// For each valid cell in the layout's order, its row among the cells of the last layer.
    ///
    /// `0, 1, 2, …` except for [`Support::Reached`], whose last layer has more cells than the valid ones.
    pub fn valid_rows(&self) -> &[u32] {
        &self.valid_rows
    }

    /// Cells that all layers compute, here and in the dense stack.
    pub fn cells_computed(&self) -> CellsComputed {
        let sum = |of: fn(&LayerPlan) -> usize| self.layers.iter().map(|layer| of(layer)).sum();
        let products: usize = self.layers.iter().map(|layer| layer.products()).sum();
        let area = self.layers.first().map_or(1, |layer| layer.kernel * layer.kernel);
        CellsComputed {
            dense: sum(LayerPlan::dense_cells),
            sparse: sum(LayerPlan::output_count),
            products: products as f64 / area as f64,
        }
    }
}

/// How much work a stack is, in cells of one item: what one may hope to gain from leaving cells out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellsComputed {
    /// Cells of the padded maps of all layers, in the published stack.
    pub dense: usize,
    /// Cells that are computed here.
    pub sparse: usize,
    /// Products of a neighbour and a weight that are computed here, in units of one full cell: neighbours that are
    /// zero cost nothing, so this is below `sparse`.
    pub products: f64,
}

impl LayerPlan {
    /// A convolution padded to keep the map's size and masked afterwards, on the valid cells alone: every cell has weight 1.
    ///
    /// # Errors
    /// As [`StackPlan::new`].
    pub fn same(layout: &MapLayout, kernel: usize) -> Result<Self, MapError> {
        check(kernel, 1)?;
        let cells = Grid::valid(layout, 0).cells();
        let weights = vec![1.0; cells.len()];
        Self::new(kernel, cells.clone(), cells, weights, layout.clips() * layout.clips())
    }

    /// `inputs` and `outputs` sorted.
    fn new(
        kernel: usize,
        inputs: Vec<(i32, i32)>,
        outputs: Vec<(i32, i32)>,
        weights: Vec<f32>,
        dense_cells: usize,
    ) -> Result<Self, MapError> {
        let area = kernel * kernel;
        let cells = inputs.len().max(outputs.len());
        if cells.checked_mul(area).is_none_or(|entries| entries > MOST_NEIGHBOURS) {
            return Err(MapError::TooLarge { cells, kernel });
        }
        let mut gather = vec![0; outputs.len() * area];
        let mut inverse = vec![0; inputs.len() * area];
        let reach = (kernel as i32 - 1) / 2;
        // Lists in both directions, made once for a network: forward and backward then only read, each output and each gradient
        // is summed by one thread in one order, and two runs give the same bits.
        for (output, (start, end)) in outputs.iter().enumerate() {
            for offset in 0..area {
                let (down, right) = ((offset / kernel) as i32 - reach, (offset % kernel) as i32 - reach);
                if let Ok(input) = inputs.binary_search(&(start + down, end + right)) {
                    // From 1, so that 0 can stand for the zero row before the first: a missing neighbour needs no branch.
                    gather[output * area + offset] = input as u32 + 1;
                    inverse[input * area + offset] = output as u32 + 1;
                }
            }
        }
        Ok(Self {
            kernel,
            inputs,
            outputs,
            gather,
            inverse,
            weights,
            dense_cells,
            #[cfg(feature = "cuda")]
            on_gpu: crate::kernels::PlanCache::default(),
        })
    }

    /// Cells along each side of the kernel.
    pub fn kernel(&self) -> usize {
        self.kernel
    }

    /// Cells that are read, by start, then end. Cells of the margin have negative indices or ones past the last clip.
    pub fn inputs(&self) -> &[(i32, i32)] {
        &self.inputs
    }

    /// Cells that are computed, in the same order.
    pub fn outputs(&self) -> &[(i32, i32)] {
        &self.outputs
    }

    /// Number of cells that are read.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// Number of cells that are computed.
    pub fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// Cells of this layer's map in the published, dense form, margin included.
    pub fn dense_cells(&self) -> usize {
        self.dense_cells
    }

    /// For each output cell and each place of the kernel (rows first), 1 + the input cell there, 0 where there is none.
    pub fn gather(&self) -> &[u32] {
        &self.gather
    }

    /// For each input cell and each place of the kernel, 1 + the output cell that reads it there, 0 where none does.
    ///
    /// An input meets a place of the kernel in one output at most, so that gradients are gathered, never scattered.
    pub fn inverse(&self) -> &[u32] {
        &self.inverse
    }

    /// What each output is multiplied by after its activation: 1 over the number of cells it was made from.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Pairs of an output and a neighbour that is there.
    pub fn products(&self) -> usize {
        self.gather.iter().filter(|input| **input > 0).count()
    }
}

fn check(kernel: usize, layers: usize) -> Result<(), MapError> {
    let sound = kernel % 2 == 1 && kernel <= LARGEST_KERNEL && (1..=MOST_LAYERS).contains(&layers);
    if sound { Ok(()) } else { Err(MapError::Stack { kernel, layers }) }
}

/// A map with a margin around it: how many, per square.
#[derive(Debug, Clone)]
struct Grid {
    clips: usize,
    margin: usize,
    squares: Vec<u32>,
}

impl Grid {
    /// 1 at valid cells.
    fn valid(layout: &MapLayout, margin: usize) -> Self {
        let side = layout.clips() + 2 * margin;
        let mut squares = vec![0; side * side];
        for (start, end) in layout.cells() {
            squares[(*start as usize + margin) * side + *end as usize + margin] = 1;
        }
        Self { clips: layout.clips(), margin, squares }
    }

    fn side(&self) -> usize {
        self.clips + 2 * self.margin
    }

    fn at(&self, (start, end): (i32, i32)) -> u32 {
        let place = |index: i32| (index + self.margin as i32) as usize;
        self.squares[place(start) * self.side() + place(end)]
    }

    /// Coordinates of squares that are not 0, by start, then end.
    fn cells(&self) -> Vec<(i32, i32)> {
        let (side, margin) = (self.side(), self.margin as i32);
        let set = self.squares.iter().enumerate().filter(|(_, square)| **square > 0);
        set.map(|(place, _)| ((place / side) as i32 - margin, (place % side) as i32 - margin)).collect()
    }

    /// For each square the sum over those within `reach` of it: first along rows, then along columns.
    // A kernel of ones is the product of a row and a column of ones: two passes of its side instead of one of its area.
    fn counts(&self, reach: usize) -> Self {
        let side = self.side();
        let near = |place: usize| place.saturating_sub(reach)..(place + reach + 1).min(side);
        let mut along = vec![0; side * side];
        for row in 0..side {
            for column in 0..side {
                along[row * side + column] = near(column).map(|other| self.squares[row * side + other]).sum();
            }
        }
        let mut squares = vec![0; side * side];
        for row in 0..side {
            for column in 0..side {
                squares[row * side + column] = near(row).map(|other| along[other * side + column]).sum();
            }
        }
        Self { squares, ..*self }
    }

    fn at_least_one(mut self) -> Self {
        self.squares.iter_mut().for_each(|square| *square = (*square).min(1));
        self
    }

    fn grown(&self, reach: usize) -> Self {
        self.counts(reach).at_least_one()
    }

    /// 0 further than `margin` outside the map.
    fn without_margin(mut self, margin: usize) -> Self {
        let side = self.side();
        let outer = self.margin.saturating_sub(margin);
        let inside = outer..side - outer;
        for (place, square) in self.squares.iter_mut().enumerate() {
            if !(inside.contains(&(place / side)) && inside.contains(&(place % side))) {
                *square = 0;
            }
        }
        self
    }

    fn and(mut self, other: &Self) -> Self {
        self.squares.iter_mut().zip(&other.squares).for_each(|(square, with)| *square *= *with);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(clips: usize, counts: &[usize], kernel: usize, layers: usize, support: Support) -> StackPlan {
        StackPlan::new(&MapLayout::new(clips, counts).unwrap(), kernel, layers, support).unwrap()
    }

    /// Cells of the published stacks, counted by hand for N = 16: a triangle of 136, grown by 2 it fills a square of 20
    /// less a corner of 120, by 4 one of 24 less the same corner.
    #[test]
    fn supports_grow_and_shrink_again() {
        let stack = plan(16, &[15], 5, 4, Support::Exact);
        let outputs: Vec<usize> = stack.layers.iter().map(|layer| layer.output_count()).collect();
        assert_eq!(outputs, [280, 456, 280, 136]);
        assert_eq!(stack.cells_computed().dense, 28 * 28 + 24 * 24 + 20 * 20 + 16 * 16);
        // Each of the first two layers' inputs, and each of the last two's outputs, has all its 25 neighbours.
        assert_eq!(stack.cells_computed().products, f64::from(136 + 280 + 280 + 136));
    }

    #[test]
    fn gains_are_what_the_number_of_cells_allows() {
        for (clips, counts, kernel, exact, valid) in
            [(16, vec![15], 5, 1.75, 3.7), (64, vec![15, 8, 8], 5, 2.07, 4.5), (64, vec![15, 8, 8], 9, 1.98, 5.3)]
        {
            let gain = |support| {
                let cells = plan(clips, &counts, kernel, 4, Support::Exact).cells_computed().dense as f64;
                cells / plan(clips, &counts, kernel, 4, support).cells_computed().sparse as f64
            };
            assert!((gain(Support::Exact) - exact).abs() < 0.006, "{}", gain(Support::Exact));
            assert!((gain(Support::Valid) - valid).abs() < 0.05, "{}", gain(Support::Valid));
        }
    }

    #[test]
    fn inputs_of_a_layer_are_the_outputs_of_the_one_before() {
        for support in [Support::Exact, Support::Reached, Support::Valid] {
            let stack = plan(16, &[7, 4], 3, 3, support);
            let valid = MapLayout::new(16, &[7, 4]).unwrap().len();
            assert_eq!(stack.layers[0].input_count(), valid);
            for pair in stack.layers.windows(2) {
                assert_eq!(pair[0].outputs(), pair[1].inputs());
            }
            assert_eq!(stack.valid_rows().len(), valid);
            let last = stack.layers.last().unwrap();
            assert_eq!(last.output_count() == valid, support != Support::Reached);
        }
    }

    #[test]
    fn the_inverse_list_is_the_gather_list_read_backwards() {
        let stack = plan(16, &[7, 4], 5, 2, Support::Exact);
        let layer = &stack.layers[0];
        let pairs = |list: &[u32]| -> Vec<(usize, usize, usize)> {
            let filled = list.iter().enumerate().filter(|(_, other)| **other > 0);
            filled.map(|(place, other)| (place / 25, *other as usize - 1, place % 25)).collect()
        };
        let mut forward = pairs(layer.gather());
        let mut backward: Vec<_> = pairs(layer.inverse()).into_iter().map(|(i, o, place)| (o, i, place)).collect();
        forward.sort_unstable();
        backward.sort_unstable();
        assert_eq!(forward, backward);
        assert_eq!(forward.len(), layer.products());
    }

    #[test]
    fn nonsense_is_refused() {
        let layout = MapLayout::new(8, &[7]).unwrap();
        for (kernel, layers) in [(4, 1), (0, 1), (3, 0), (33, 1), (3, 33)] {
            assert!(StackPlan::new(&layout, kernel, layers, Support::Exact).is_err(), "{kernel} {layers}");
        }
    }
}
