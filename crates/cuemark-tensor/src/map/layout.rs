//! Which cells of a start × end map are candidates, and in which order the map is filled.

use super::MapError;

/// Most clips of a map: more is a mistake in a run file rather than a map.
const MOST_CLIPS: usize = 1024;

/// The valid cells of a map of `clips` × `clips` spans.
///
/// Cell `(start, end)`, both **clip indices** and both inside the span, stands for clips `start..=end`, so
/// `start <= end`. All spans of a length are valid while they are short; longer lengths come at wider steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapLayout {
    clips: usize,
    cells: Vec<(u32, u32)>,
    /// Per square of the map, row by row: number of the cell plus one, 0 where there is none.
    numbers: Vec<u32>,
    steps: Vec<FillStep>,
}

/// One step of filling a map: a 1-D operator over the columns of the step before, whose columns go to the valid cells of one length.
///
/// Column `s` belongs to the cell `(s * stride, s * stride + offset)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillStep {
    /// `end - start` of its cells, in clips.
    pub offset: usize,
    /// Clips between the starts of neighbouring cells.
    pub stride: usize,
    /// Width of the operator in columns of the step before: 1 for the diagonal, then 2, and 3 where the stride doubles.
    pub kernel: usize,
    /// Columns that the operator advances by: 1, and 2 where the stride doubles.
    pub advance: usize,
    /// Columns that come out.
    pub columns: usize,
}

impl MapLayout {
    /// The layout with the diagonal and `counts[n]` more lengths at stride `2^n`.
    ///
    /// # Errors
    /// When there is no clip, there are too many, or the counts ask for spans longer than the map.
    pub fn new(clips: usize, counts: &[usize]) -> Result<Self, MapError> {
        if clips == 0 || clips > MOST_CLIPS {
            return Err(MapError::Clips { clips, most: MOST_CLIPS });
        }
        let steps = fill_steps(clips, counts)?;
        let mut numbers = vec![0; clips * clips];
        for step in &steps {
            for start in (0..step.columns).map(|column| column * step.stride) {
                numbers[start * clips + start + step.offset] = 1;
            }
        }
        let mut cells = Vec::new();
        for (square, number) in numbers.iter_mut().enumerate().filter(|(_, number)| **number > 0) {
            cells.push(((square / clips) as u32, (square % clips) as u32));
            *number = cells.len() as u32;
        }
        Ok(Self { clips, cells, numbers, steps })
    }

    /// Clips along each side of the map.
    pub fn clips(&self) -> usize {
        self.clips
    }

    /// The valid cells by start, then by end: the order of every tensor that holds one row per cell.
    pub fn cells(&self) -> &[(u32, u32)] {
        &self.cells
    }

    /// Number of valid cells; the diagonal is always valid, so never 0.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Number of the cell `(start, end)` among [`MapLayout::cells`], `None` when it is not valid or off the map.
    pub fn number(&self, start: usize, end: usize) -> Option<usize> {
        let inside = start < self.clips && end < self.clips;
        let number = inside.then(|| self.numbers[start * self.clips + end])?;
        (number > 0).then(|| number as usize - 1)
    }

    /// Which squares of the whole map are valid, `clips * clips` of them, row by row.
    pub fn mask(&self) -> Vec<bool> {
        self.numbers.iter().map(|number| *number > 0).collect()
    }

    /// How the map is filled, diagonal first.
    pub fn steps(&self) -> &[FillStep] {
        &self.steps
    }

    /// For each valid cell, where its column lies when the columns of all steps are put one after the other.
    pub fn fill_order(&self) -> Vec<u32> {
        let mut order = vec![0; self.len()];
        let mut place = 0;
        for step in &self.steps {
            for start in (0..step.columns).map(|column| column * step.stride) {
                if let Some(number) = self.number(start, start + step.offset) {
                    order[number] = place;
                }
                place += 1;
            }
        }
        order
    }
}

fn fill_steps(clips: usize, counts: &[usize]) -> Result<Vec<FillStep>, MapError> {
    let mut steps = vec![FillStep { offset: 0, stride: 1, kernel: 1, advance: 1, columns: clips }];
    let (mut offset, mut stride) = (0usize, 1usize);
    for (scale, count) in counts.iter().enumerate() {
        for first in (0..*count).map(|n| n == 0) {
            offset += stride;
            if offset >= clips {
                return Err(MapError::TooLong { offset, clips, counts: counts.to_vec() });
            }
            let doubles = first && scale > 0;
            let (kernel, advance) = if doubles { (3, 2) } else { (2, 1) };
            steps.push(FillStep { offset, stride, kernel, advance, columns: (clips - offset).div_ceil(stride) });
        }
        // A scale that leaves the map is caught above before the shift can overflow: offset would pass 1024 first,
        // unless the counts are 0, which is refused here.
        if *count == 0 {
            return Err(MapError::EmptyScale { scale });
        }
        stride *= 2;
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_layouts_have_as_many_cells_as_their_papers_say() {
        let published: [(usize, &[usize], usize); 4] =
            [(16, &[15], 136), (32, &[15, 8], 428), (64, &[15, 8, 8], 1104), (128, &[15, 8, 8, 8], 2548)];
        for (clips, counts, cells) in published {
            assert_eq!(MapLayout::new(clips, counts).unwrap().len(), cells);
        }
    }

    #[test]
    fn masks_are_those_of_the_reference() {
        let Some(path) = cuemark_testkit::shared("parity/map2d-and-sampling.safetensors") else { return };
        let bytes = std::fs::read(path).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let mut checked = 0;
        for name in file.names().into_iter().filter(|name| name.starts_with("out.mask_")) {
            let sizes: Vec<usize> = name.split('_').skip(1).map(|size| size.parse().unwrap()).collect();
            let layout = MapLayout::new(sizes[0], &sizes[1..]).unwrap();
            let wanted: Vec<bool> = file.tensor(name).unwrap().data().iter().map(|byte| *byte != 0).collect();
            assert_eq!(layout.mask(), wanted, "{name}");
            checked += 1;
        }
        assert_eq!(checked, 6);
    }

    #[test]
    fn lengths_grow_by_the_stride_and_starts_step_by_it() {
        let layout = MapLayout::new(8, &[3, 2]).unwrap();
        let of_length = |length: u32| -> Vec<u32> {
            let cells = layout.cells().iter().filter(|(start, end)| end - start + 1 == length);
            cells.map(|(start, _)| *start).collect()
        };
        assert_eq!(of_length(4), [0, 1, 2, 3, 4]);
        assert_eq!(of_length(5), [0u32; 0]);
        assert_eq!(of_length(6), [0, 2]);
        assert_eq!(of_length(8), [0]);
    }

    #[test]
    fn cells_are_ordered_by_start_then_end_and_found_by_both() {
        let layout = MapLayout::new(16, &[7, 4]).unwrap();
        assert!(layout.cells().is_sorted());
        for (number, (start, end)) in layout.cells().iter().enumerate() {
            assert_eq!(layout.number(*start as usize, *end as usize), Some(number));
            assert!(layout.mask()[*start as usize * 16 + *end as usize]);
        }
        assert_eq!(layout.mask().iter().filter(|valid| **valid).count(), layout.len());
        assert_eq!(layout.number(3, 2), None);
        assert_eq!(layout.number(0, 16), None);
    }

    #[test]
    fn operators_give_exactly_the_columns_of_their_cells() {
        for (clips, counts) in [(64, vec![15, 8, 8]), (16, vec![7, 4]), (15, vec![4, 3]), (1, vec![])] {
            let layout = MapLayout::new(clips, &counts).unwrap();
            for pair in layout.steps().windows(2) {
                let [before, after] = pair else { unreachable!() };
                assert_eq!((before.columns - after.kernel) / after.advance + 1, after.columns, "{after:?}");
            }
            let columns: usize = layout.steps().iter().map(|step| step.columns).sum();
            assert_eq!(columns, layout.len());
            let mut order = layout.fill_order();
            assert_eq!(order[0], 0);
            order.sort_unstable();
            assert!(order.iter().enumerate().all(|(place, taken)| place == *taken as usize));
        }
    }

    #[test]
    fn impossible_layouts_are_refused_by_name() {
        assert!(MapLayout::new(0, &[]).is_err());
        assert!(MapLayout::new(1 << 20, &[15]).is_err());
        assert!(MapLayout::new(16, &[15, 0, 0]).is_err());
        let error = MapLayout::new(16, &[16]).unwrap_err();
        assert_eq!(error.to_string(), "pooling counts [16] reach spans of 17 clips, but the map has 16");
    }
}
