//! Similarities that are already known and small enough to hold.

use std::ops::Range;

use super::{Result, Similarity, SimilarityError};

/// Known similarities in memory, row after row.
#[derive(Debug, Clone)]
pub struct Matrix {
    name: String,
    columns: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// Rows of `columns` values each.
    ///
    /// # Errors
    /// When the values do not fill whole rows or one is not finite.
    pub fn new(name: impl Into<String>, columns: usize, values: Vec<f32>) -> Result<Self> {
        check_rows(columns, &values)?;
        Ok(Self { name: name.into(), columns, values })
    }
}

/// Whether `values` are finite and fill rows of `width`.
pub(super) fn check_rows(width: usize, values: &[f32]) -> Result<()> {
    if !values.len().is_multiple_of(width) {
        return Err(SimilarityError::Ragged { values: values.len(), width });
    }
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(place) => {
            Err(SimilarityError::NotFinite { row: place / width, column: place % width, value: values[place] })
        }
    }
}

impl Similarity for Matrix {
    fn name(&self) -> &str {
        &self.name
    }

    fn left(&self) -> usize {
        self.values.len().checked_div(self.columns).unwrap_or(0)
    }

    fn right(&self) -> usize {
        self.columns
    }

    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) -> Result<()> {
        for (row, out) in rows.zip(out.chunks_exact_mut(columns.len().max(1))) {
            let start = row * self.columns;
            out.copy_from_slice(&self.values[start + columns.start..start + columns.end]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::of_pair;

    #[test]
    fn a_pair_is_found_where_it_was_put() {
        let matrix = Matrix::new("known", 3, vec![0.0, 0.1, 0.2, 1.0, 1.1, 1.2]).unwrap();
        assert_eq!((matrix.left(), matrix.right()), (2, 3));
        assert_eq!(of_pair(&matrix, 1, 2).unwrap(), 1.2);
        assert!(matches!(of_pair(&matrix, 2, 0), Err(SimilarityError::Outside { .. })));
    }

    #[test]
    fn ragged_and_undefined_values_are_refused() {
        assert!(matches!(Matrix::new("m", 2, vec![0.0; 3]), Err(SimilarityError::Ragged { .. })));
        assert!(matches!(Matrix::new("m", 0, vec![0.0; 3]), Err(SimilarityError::Ragged { .. })));
        let message = Matrix::new("m", 2, vec![0.0, 1.0, f32::NAN, 0.0]).unwrap_err().to_string();
        assert_eq!(message, "row 1, column 0: NaN is not a finite number");
    }
}
