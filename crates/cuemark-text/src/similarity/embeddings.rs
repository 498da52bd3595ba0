//! Vectors that a sentence encoder made, compared by their cosine.

use std::ops::Range;
use std::sync::Arc;

use cuemark_formats::Source;

use super::{Result, Similarity, SimilarityError, matrix::check_rows, npy, product};

/// Vectors of one width, each scaled to length 1 (a vector of zeros stays what it is). Cheap to clone.
#[derive(Debug, Clone)]
pub struct Vectors {
    width: usize,
    values: Arc<[f32]>,
}

impl Vectors {
    /// Vectors of `width` numbers each, one after the other.
    ///
    /// # Errors
    /// When the values do not fill whole vectors or one is not finite.
    pub fn new(width: usize, mut values: Vec<f32>) -> Result<Self> {
        check_rows(width, &values)?;
        for vector in values.chunks_exact_mut(width.max(1)) {
            let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
            if length > 0.0 {
                vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
            }
        }
        Ok(Self { width, values: values.into() })
    }

    /// Reads a NumPy file: one vector of single-precision numbers a row.
    ///
    /// # Errors
    /// When it cannot be read, is not such a file, or holds a number that is not finite.
    pub fn read(source: &Source) -> Result<Self> {
        let (shape, values) = npy::read(source)?;
        Self::new(shape.columns, values).map_err(|error| match error {
            SimilarityError::File(_) => error,
            other => source.fault(other).into(),
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn rows(&self, rows: Range<usize>) -> &[f32] {
        &self.values[rows.start * self.width..rows.end * self.width]
    }
}

/// Cosine of dense vectors, -1 to 1.
#[derive(Debug, Clone)]
pub struct Embeddings {
    name: String,
    left: Vectors,
    right: Vectors,
}

impl Embeddings {
    /// Compares every vector of `left` with every one of `right`; `name` says which encoder made them.
    ///
    /// # Errors
    /// When the two sides differ in width.
    pub fn new(name: impl Into<String>, left: Vectors, right: Vectors) -> Result<Self> {
        if left.width != right.width {
            return Err(SimilarityError::Widths { left: left.width, right: right.width });
        }
        Ok(Self { name: name.into(), left, right })
    }
}

impl Similarity for Embeddings {
    fn name(&self) -> &str {
        &self.name
    }

    fn left(&self) -> usize {
        self.left.len()
    }

    fn right(&self) -> usize {
        self.right.len()
    }

    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) -> Result<()> {
        product(self.left.rows(rows), self.right.rows(columns), self.left.width, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::Advise as _;

    use super::*;
    use crate::similarity::of_pair;

    #[test]
    fn length_does_not_matter_and_direction_does() {
        let vectors = Vectors::new(2, vec![3.0, 0.0, 0.0, 0.5, 1.0, 1.0, 0.0, 0.0]).unwrap();
        let embeddings = Embeddings::new("by hand", vectors.clone(), vectors).unwrap();
        assert_eq!(of_pair(&embeddings, 0, 1).unwrap(), 0.0);
        assert!((of_pair(&embeddings, 0, 2).unwrap() - 0.5f32.sqrt()).abs() < 1e-6);
        assert_eq!(of_pair(&embeddings, 3, 3).unwrap(), 0.0);
    }

    #[test]
    fn vectors_of_two_encoders_are_refused() {
        let (two, three) = (Vectors::new(2, vec![1.0; 4]).unwrap(), Vectors::new(3, vec![1.0; 6]).unwrap());
        let error = Embeddings::new("mixed", two, three).unwrap_err();
        assert_eq!(error.to_string(), "the left vectors have 2 numbers each, the right ones 3");
        assert!(error.advice().is_some());
    }
}
