//! Matrix products on the CPU over plain slices.

use rayon::prelude::*;

/// Numbers seen as a matrix. Rows may overlap, as they do in a convolution that reads its input in place.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    pub(crate) fn new(values: &'a [f32], rows: usize, columns: usize, row_stride: usize, column_stride: usize) -> Self {
        Self { values, rows, columns, row_stride, column_stride }
    }

    /// So many columns from `first` on.
    fn cut(self, first: usize, count: usize) -> Self {
        Self { values: &self.values[first * self.column_stride..], columns: count, ..self }
    }

    /// Numbers from the first to the last entry.
    fn extent(&self) -> usize {
        extent(self.rows, self.columns, self.row_stride, self.column_stride)
    }
}

fn extent(rows: usize, columns: usize, row_stride: usize, column_stride: usize) -> usize {
    if rows == 0 || columns == 0 { 0 } else { (rows - 1) * row_stride + (columns - 1) * column_stride + 1 }
}

/// What becomes of the numbers that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    Add,
    Replace,
}

/// Who works on one product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The caller alone: it runs on many threads itself.
    One,
    /// As many as there are, when the product is large enough to pay.
    All,
}

/// `to = left * right`, or added to it; rows of `to` lie `stride` apart.
#[allow(unsafe_code)] // the matrix product takes pointers
pub(crate) fn product_into(left: Matrix, right: Matrix, to: &mut [f32], stride: usize, into: Into, threads: Threads) {
    assert!(right.columns <= stride && extent(left.rows, right.columns, stride, 1) <= to.len());
    let threads = match threads {
        Threads::One => gemm::Parallelism::None,
        Threads::All => gemm::Parallelism::Rayon(0),
    };
    // SAFETY: the assertion keeps every entry of the product inside of `to`, which is borrowed exclusively.
    unsafe { multiply(left, right, to.as_mut_ptr(), stride, into, threads) }
}

/// Columns that one task of [`product_by_columns`] computes.
const BLOCK_COLUMNS: usize = 64;

/// As [`product_into`] with all threads, for a left matrix of few rows: they share the columns of `right`.
///
/// The matrix product copies `right` into an order of its own first, on the thread that calls it, which with few rows takes as
/// long as the product itself. Here each task copies its own columns. Blocks do not depend on the number of threads, so no bit
/// of the result does.
#[allow(unsafe_code)] // tasks write to different columns of the same rows
pub(crate) fn product_by_columns(left: Matrix, right: Matrix, to: &mut [f32], stride: usize, into: Into) {
    struct Start(*mut f32);
    // SAFETY: tasks write where no other does, see below.
    unsafe impl Sync for Start {}

    assert!(right.columns <= stride && extent(left.rows, right.columns, stride, 1) <= to.len());
    let start = &Start(to.as_mut_ptr());
    (0..right.columns.div_ceil(BLOCK_COLUMNS)).into_par_iter().with_max_len(1).for_each(|block| {
        let first = block * BLOCK_COLUMNS;
        let columns = right.cut(first, BLOCK_COLUMNS.min(right.columns - first));
        // SAFETY: the assertion keeps all columns of the product inside of `to`, which is borrowed exclusively until every
        // task is done, and no two tasks have a column in common.
        unsafe { multiply(left, columns, start.0.add(first), stride, into, gemm::Parallelism::None) }
    });
}

/// # Safety
/// Every entry of the product, rows `stride` apart and columns side by side, can be written from `to` on by this call alone.
#[allow(unsafe_code)]
unsafe fn multiply(left: Matrix, right: Matrix, to: *mut f32, stride: usize, into: Into, threads: gemm::Parallelism) {
    assert_eq!(left.columns, right.rows);
    assert!(left.extent() <= left.values.len() && right.extent() <= right.values.len());
    // SAFETY: the assertions keep every entry that is read inside of its slice; the caller answers for what is written.
    unsafe {
        gemm::gemm(
            left.rows,
            right.columns,
            left.columns,
            to,
            1,
            stride as isize,
            into == Into::Add,
            left.values.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.values.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            threads,
        );
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;
    use crate::against::draw;

    #[test]
    fn columns_that_threads_share_are_those_of_plain_loops_to_the_same_bit_for_any_number_of_threads() {
        let rng = &mut Rng::new(3);
        for (rows, inner, columns) in [(1, 5, 3), (10, 256, 200), (107, 300, 129), (75, 700, 64)] {
            let stride = columns + 2;
            let (left, right) = (draw(rng, rows * inner), draw(rng, columns * inner));
            let there = draw(rng, rows * stride);
            let product = |threads: usize| {
                let mut to = there.clone();
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let (left, right) =
                    (Matrix::new(&left, rows, inner, inner, 1), Matrix::new(&right, inner, columns, 1, inner));
                pool.install(|| product_by_columns(left, right, &mut to, stride, Into::Add));
                to
            };
            let (one, three) = (product(1), product(3));
            assert!(one.iter().zip(&three).all(|(a, b)| a.to_bits() == b.to_bits()), "{rows} x {inner} x {columns}");
            for (place, found) in one.iter().enumerate() {
                let (row, column) = (place / stride, place % stride);
                let entry = |n: usize| f64::from(left[row * inner + n]) * f64::from(right[column * inner + n]);
                let sum = if column < columns { (0..inner).map(entry).sum() } else { 0.0 };
                let wanted = f64::from(there[place]) + sum;
                assert!(
                    (f64::from(*found) - wanted).abs() < 1e-4,
                    "{place} of {rows} x {columns}: {found}, not {wanted}"
                );
            }
        }
    }
}
