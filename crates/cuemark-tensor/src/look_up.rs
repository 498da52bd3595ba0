//! Rows of a table that learns, as the vectors of words.
//!
//! candle's own goes back by copying a gradient as large as the table, of half a billion bytes for a usual vocabulary, on one thread.

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};

use crate::gradients::keep;
use crate::map::numbers;
use crate::zeros::zeros;

/// The rows of `table` that `rows` names.
///
/// # Shapes
/// - table `[count, width]`, rows of any shape; returns `[rows, width]`
///
/// # Errors
/// When the table has no such row.
pub fn look_up(table: &Tensor, rows: &Tensor) -> Result<Tensor> {
    let rows = rows.flatten_all()?;
    if table.device().is_cpu() && table.dtype() == DType::F32 && rows.dtype() == DType::U32 {
        table.contiguous()?.apply_op2(&rows.contiguous()?, LookUp)
    } else {
        table.index_select(&rows, 0)
    }
}

struct LookUp;

impl CustomOp2 for LookUp {
    fn name(&self) -> &'static str {
        "look-up"
    }

    fn cpu_fwd(
        &self,
        table: &CpuStorage,
        layout: &Layout,
        rows: &CpuStorage,
        of: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ((count, width), table, rows) = (layout.shape().dims2()?, numbers(table, layout)?, named(rows, of)?);
        let mut found = Vec::with_capacity(rows.len() * width);
        for row in rows {
            let row = *row as usize;
            if row >= count {
                bail!("row {row} of a table of {count}");
            }
            found.extend_from_slice(&table[row * width..(row + 1) * width]);
        }
        Ok((CpuStorage::F32(found), Shape::from((rows.len(), width))))
    }

    fn bwd(
        &self,
        table: &Tensor,
        rows: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.contiguous()?.apply_op2_no_bwd(rows, &LookUpGradient { count: table.dim(0)? })?;
        Ok((keep(table, gradient)?, None))
    }
}

/// What each row of a table of `count` rows is pulled by.
struct LookUpGradient {
    count: usize,
}

impl CustomOp2 for LookUpGradient {
    fn name(&self) -> &'static str {
        "look-up-gradient"
    }

    fn cpu_fwd(
        &self,
        pull: &CpuStorage,
        layout: &Layout,
        rows: &CpuStorage,
        of: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ((_, width), pull, rows) = (layout.shape().dims2()?, numbers(pull, layout)?, named(rows, of)?);
        let mut table = zeros(self.count * width);
        for (row, pull) in rows.iter().zip(pull.chunks_exact(width.max(1))) {
            table[*row as usize * width..][..width].iter_mut().zip(pull).for_each(|(sum, pull)| *sum += pull);
        }
        Ok((CpuStorage::F32(table), Shape::from((self.count, width))))
    }
}

/// The numbers of rows.
fn named<'a>(rows: &'a CpuStorage, layout: &Layout) -> Result<&'a [u32]> {
    let Some((start, end)) = layout.contiguous_offsets() else { bail!("a tensor with gaps") };
    Ok(&rows.as_slice::<u32>()?[start..end])
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};
    use cuemark_core::Rng;

    use super::*;
    use crate::against::draw;
    use crate::gradients;

    #[test]
    fn rows_and_gradients_are_candles_own_also_of_rows_that_come_twice() {
        let table =
            Var::from_tensor(&Tensor::from_vec(draw(&mut Rng::new(1), 35), (7, 5), &Device::Cpu).unwrap()).unwrap();
        let rows = Tensor::new(&[[3u32, 0, 3], [6, 1, 3]], &Device::Cpu).unwrap();
        let through = |found: Tensor| {
            let loss = found.sqr().unwrap().sum_all().unwrap();
            let gradient =
                |store: candle_core::backprop::GradStore| store.get(&table).unwrap().to_vec2::<f32>().unwrap();
            (found.to_vec2::<f32>().unwrap(), gradient(loss.backward().unwrap()), gradient(gradients(&loss).unwrap()))
        };
        let ours = through(look_up(&table, &rows).unwrap());
        assert_eq!(ours, through(table.index_select(&rows.flatten_all().unwrap(), 0).unwrap()));
        assert_eq!(ours.1, ours.2);
        assert!(ours.1[3].iter().any(|pull| *pull != 0.0) && ours.1[2].iter().all(|pull| *pull == 0.0));
        let outside = Tensor::new(&[7u32], &Device::Cpu).unwrap();
        assert!(look_up(&table, &outside).unwrap_err().to_string().contains("row 7 of a table of 7"));
    }
}
