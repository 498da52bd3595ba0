//! The three products of a convolution over listed cells, on a GPU.
//!
//! A convolution multiplies either the gathered neighbours of the cells it computes, or the cells it reads by the weights
//! of all places, whose products are then gathered and added: whichever side has fewer cells. Either way the buffer is
//! made for a part of the items and of the places at a time.

use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, CudaView, CudaViewMut, LaunchConfig};
use candle_core::{Result, bail};

use crate::kernels::{Form, PlanLists, Product, counted, launch, per_row, room};
use crate::map::plan::LayerPlan;
use crate::map::product::{Sizes, Way};

/// Numbers of the buffer for gathered rows: 256 MiB.
const BUFFER: usize = 1 << 26;
/// Rows that keep the GPU busy; more items at once would only take memory from places.
const ENOUGH_ROWS: usize = 8192;

/// One way through one layer.
pub(super) struct Pass<'a> {
    device: &'a CudaDevice,
    plan: &'a LayerPlan,
    sizes: Sizes,
    way: Way,
    area: usize,
    from_cells: usize,
    to_cells: usize,
    c_from: usize,
    c_to: usize,
}

/// What is worked on at once: some items, some places of the kernel.
#[derive(Debug, Clone, Copy)]
struct Portion {
    items: usize,
    /// The first place.
    first: usize,
    places: usize,
}

/// Which form weights are brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Into {
    Placed,
    Published,
}

/// How weights lie when places come apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placed {
    /// `[groups, c_to, area, c_from]`, channels of a group: the factor of gathered neighbours.
    ByChannel,
    /// `[area, c_to, c_from]`: the factor of rows as they are; one group only.
    ByPlace,
}

impl<'a> Pass<'a> {
    pub(super) fn new(device: &'a CudaDevice, plan: &'a LayerPlan, sizes: Sizes, way: Way) -> Self {
        let (inputs, outputs) = ((plan.input_count(), sizes.c_in), (plan.output_count(), sizes.c_out));
        let ((from_cells, c_from), (to_cells, c_to)) =
            if way == Way::Forward { (inputs, outputs) } else { (outputs, inputs) };
        Self { device, plan, sizes, way, area: plan.kernel() * plan.kernel(), from_cells, to_cells, c_from, c_to }
    }

    fn list<'b>(&self, lists: &'b PlanLists) -> &'b CudaSlice<u32> {
        if self.way == Way::Forward { &lists.gather } else { &lists.inverse }
    }

    /// Items and places that are worked on at once when a row of the buffer takes `width` numbers per place.
    fn share(&self, cells: usize, width: usize) -> (usize, usize) {
        let items = (ENOUGH_ROWS / cells.max(1)).clamp(1, self.sizes.batch.max(1));
        (items, (BUFFER / (items * cells * width).max(1)).clamp(1, self.area))
    }

    /// `[batch, from_cells, c_from]` to `[batch, to_cells, c_to]`.
    pub(super) fn multiply(&self, from: &CudaView<f32>, weight: &CudaView<f32>) -> Result<CudaSlice<f32>> {
        let total = self.sizes.batch * self.to_cells * self.c_to;
        let mut to = room(self.device, total)?;
        if total == 0 {
            return Ok(to);
        }
        let by_place = self.sizes.groups == 1 && self.from_cells < self.to_cells;
        let weights =
            self.move_weights(weight, if by_place { Placed::ByPlace } else { Placed::ByChannel }, Into::Placed)?;
        let lists = self.plan.on_gpu.on(self.device, self.plan)?;
        let list = self.list(&lists);
        let (cells, width) = if by_place { (self.from_cells, self.c_to) } else { (self.to_cells, self.c_from) };
        let (items, places) = self.share(cells, width);
        let mut buffer = room(self.device, items * places * cells * width)?;
        for first_item in (0..self.sizes.batch).step_by(items) {
            let items = items.min(self.sizes.batch - first_item);
            let (f, t) = (self.from_cells * self.c_from, self.to_cells * self.c_to);
            let from = from.slice(first_item * f..(first_item + items) * f);
            let mut to = to.slice_mut(first_item * t..(first_item + items) * t);
            for first in (0..self.area).step_by(places) {
                let portion = Portion { items, first, places: places.min(self.area - first) };
                if by_place {
                    self.multiply_then_gather(&from, &weights, list, &mut buffer, &mut to, portion)?;
                } else {
                    self.gather_then_multiply(&from, &weights, list, &mut buffer, &mut to, portion)?;
                }
            }
        }
        Ok(to)
    }

    fn gather_then_multiply(
        &self,
        from: &CudaView<f32>,
        weights: &CudaSlice<f32>,
        list: &CudaSlice<u32>,
        buffer: &mut CudaSlice<f32>,
        to: &mut CudaViewMut<f32>,
        portion: Portion,
    ) -> Result<()> {
        let Portion { items, first, places } = portion;
        self.gather(from, list, buffer, portion)?;
        let groups = self.sizes.groups;
        let (rows, in_group, out_group) = (items * self.to_cells, self.c_from / groups, self.c_to / groups);
        let product = Product {
            rows,
            inner: places * in_group,
            columns: out_group,
            groups,
            apart: [rows * places * in_group, out_group * self.area * in_group, out_group],
        };
        product.run(
            self.device,
            (&buffer.slice(..), Form::Plain { stride: places * in_group }),
            (&weights.slice(first * in_group..), Form::Turned { stride: self.area * in_group }),
            (to, self.c_to),
            if first == 0 { 0.0 } else { 1.0 },
        )
    }

    fn multiply_then_gather(
        &self,
        from: &CudaView<f32>,
        weights: &CudaSlice<f32>,
        list: &CudaSlice<u32>,
        buffer: &mut CudaSlice<f32>,
        to: &mut CudaViewMut<f32>,
        portion: Portion,
    ) -> Result<()> {
        let Portion { items, first, places } = portion;
        let product = Product {
            rows: items * self.from_cells,
            inner: self.c_from,
            columns: places * self.c_to,
            groups: 1,
            apart: [0; 3],
        };
        product.run(
            self.device,
            (from, Form::Plain { stride: self.c_from }),
            (&weights.slice(first * self.c_to * self.c_from..), Form::Turned { stride: self.c_from }),
            (&mut buffer.slice_mut(..), places * self.c_to),
            0.0,
        )?;
        let wide = self.c_to.is_multiple_of(4);
        let width = if wide { self.c_to / 4 } else { self.c_to };
        let config = per_row(items * self.to_cells, width)?;
        let [to_cells, from_cells, area, first, places, width] =
            counted([self.to_cells, self.from_cells, self.area, first, places, width])?;
        let more = u32::from(first > 0);
        let device = self.device;
        let kernel = if wide { "gather_sum_4" } else { "gather_sum" };
        launch!(
            device,
            kernel,
            config,
            &*buffer,
            list,
            to,
            &to_cells,
            &from_cells,
            &area,
            &first,
            &places,
            &width,
            &more
        );
        Ok(())
    }

    /// Neighbours of `items` maps at some places, `[groups, rows, places, channels of a group]`.
    fn gather(
        &self,
        from: &CudaView<f32>,
        list: &CudaSlice<u32>,
        buffer: &mut CudaSlice<f32>,
        portion: Portion,
    ) -> Result<()> {
        let Portion { items, first, places } = portion;
        let groups = self.sizes.groups;
        let wide = (self.c_from / groups).is_multiple_of(4);
        let width = if wide { self.c_from / 4 } else { self.c_from };
        let config = per_row(items * self.to_cells, width)?;
        let [to_cells, from_cells, area, first, places, width, groups] =
            counted([self.to_cells, self.from_cells, self.area, first, places, width, groups])?;
        let device = self.device;
        let kernel = if wide { "gather_rows_4" } else { "gather_rows" };
        launch!(
            device,
            kernel,
            config,
            from,
            list,
            buffer,
            &to_cells,
            &from_cells,
            &area,
            &first,
            &places,
            &width,
            &groups
        );
        Ok(())
    }

    /// Gradient of the weight in its published form, from the rows that are gathered and the rows they are gathered for.
    pub(super) fn weights(&self, from: &CudaView<f32>, to: &CudaView<f32>) -> Result<CudaSlice<f32>> {
        let groups = self.sizes.groups;
        let (in_group, out_group) = (self.c_from / groups, self.c_to / groups);
        // Of no items the gradient is 0, and nothing below would write it.
        let count = self.area * self.c_to * in_group;
        let mut placed =
            if self.sizes.batch == 0 { self.device.alloc_zeros(count)? } else { room(self.device, count)? };
        let lists = self.plan.on_gpu.on(self.device, self.plan)?;
        let list = self.list(&lists);
        let (items, places) = self.share(self.to_cells, self.c_from);
        let mut buffer = room(self.device, items * places * self.to_cells * self.c_from)?;
        for first in (0..self.area).step_by(places) {
            let places = places.min(self.area - first);
            for first_item in (0..self.sizes.batch).step_by(items) {
                let items = items.min(self.sizes.batch - first_item);
                let (f, t) = (self.from_cells * self.c_from, self.to_cells * self.c_to);
                let from = from.slice(first_item * f..(first_item + items) * f);
                let to = to.slice(first_item * t..(first_item + items) * t);
                self.gather(&from, list, &mut buffer, Portion { items, first, places })?;
                let rows = items * self.to_cells;
                let product = Product {
                    rows: out_group,
                    inner: rows,
                    columns: places * in_group,
                    groups,
                    apart: [out_group, rows * places * in_group, out_group * self.area * in_group],
                };
                product.run(
                    self.device,
                    (&to, Form::Turned { stride: self.c_to }),
                    (&buffer.slice(..), Form::Plain { stride: places * in_group }),
                    (&mut placed.slice_mut(first * in_group..), self.area * in_group),
                    if first_item == 0 { 0.0 } else { 1.0 },
                )?;
            }
        }
        self.move_weights(&placed.slice(..), Placed::ByChannel, Into::Published)
    }

    /// Weights between `[c_out, c_in / groups, area]` and a placed form, either way.
    fn move_weights(&self, from: &CudaView<f32>, form: Placed, into: Into) -> Result<CudaSlice<f32>> {
        let groups = self.sizes.groups;
        let (in_group, out_group) = (self.c_from / groups, self.c_to / groups);
        let mut to = room(self.device, from.len())?;
        let area = self.area;
        // Published: [groups, output, input, area]. Lanes are the channels that products add over.
        let input = self.sizes.c_in / groups;
        let (published_lane, published_row) =
            if self.way == Way::Forward { (area, input * area) } else { (input * area, area) };
        let (placed_place, placed_row) = match form {
            Placed::ByChannel => (in_group, area * in_group),
            Placed::ByPlace => (out_group * in_group, in_group),
        };
        let group = in_group * out_group * area;
        let threads = if area > 128 { 32 } else { 64 };
        let [across, down, deep] = counted([in_group.div_ceil(threads), out_group, groups])?;
        let [block, shared] = counted([threads, threads * area * size_of::<f32>()])?;
        let config =
            LaunchConfig { grid_dim: (across, down, deep), block_dim: (block, 1, 1), shared_mem_bytes: shared };
        if config.shared_mem_bytes > 48 << 10 || out_group > 65_535 {
            bail!("a kernel of {area} places and {out_group} channels is too large for the GPU");
        }
        let [area, lanes, lane, row] = counted([area, in_group, published_lane, published_row])?;
        let device = self.device;
        let kernel = if into == Into::Placed { "place_weights" } else { "publish_weights" };
        launch!(
            device,
            kernel,
            config,
            from,
            &mut to,
            &area,
            &lanes,
            &lane,
            &row,
            &group,
            &placed_place,
            &placed_row,
            &group
        );
        Ok(to)
    }
}
