//! Matrix products on the CPU over plain slices.

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
    assert_eq!(left.columns, right.rows);
    assert!(left.extent() <= left.values.len() && right.extent() <= right.values.len());
    assert!(right.columns <= stride && extent(left.rows, right.columns, stride, 1) <= to.len());
    // SAFETY: the assertions above keep every entry of the three matrices inside its slice, rows of `to` do not
    // overlap, and `to` is borrowed exclusively.
    unsafe {
        gemm::gemm(
            left.rows,
            right.columns,
            left.columns,
            to.as_mut_ptr(),
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
            match threads {
                Threads::One => gemm::Parallelism::None,
                Threads::All => gemm::Parallelism::Rayon(0),
            },
        );
    }
}
