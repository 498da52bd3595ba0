//! What people said about query-moment pairs.

use cuemark_data::{Rating, read_ratings};
use cuemark_formats::Source;
use pyo3::prelude::*;

use super::columns::Columns;
use super::{keys, path, type_name};
use crate::failure::{Failure, Result};

/// A `pair_id,worker,relevance` file, or the same as columns.
///
/// # Errors
/// When it is neither, or a row is no rating.
pub(crate) fn ratings(object: &Bound<'_, PyAny>) -> Result<Vec<Rating>> {
    if let Some(path) = path(object, "ratings")? {
        return Ok(read_ratings(&Source::new(path))?);
    }
    let Some(names) = keys(object)? else {
        let problem = format!("a `{}` holds no ratings", type_name(object));
        return Err(Failure::wrong_type("ratings", problem).with_hint("a path, or columns pair_id, worker, relevance"));
    };
    let mut columns = Columns::of(object, names, "ratings");
    let pairs = columns.needed_numbers("pair_id")?;
    let workers = columns.needed_numbers("worker")?;
    let grades = columns.needed_numbers("relevance")?;
    let rows = pairs.as_array().into_iter().zip(workers.as_array()).zip(grades.as_array()).enumerate();
    let rating = |(row, ((pair, worker), grade)): (usize, ((&f64, &f64), &f64))| {
        let whole = |name: &str, number: f64, most: f64| {
            if number.fract() == 0.0 && (0.0..=most).contains(&number) {
                return Ok(number as u64);
            }
            let problem = format!("`{name}`: {number} is not a whole number from 0 to {most}");
            Err(Failure::argument(format!("ratings[{row}]"), problem))
        };
        const LARGEST: f64 = 9_007_199_254_740_991.0; // beyond this doubles skip whole numbers
        Ok(Rating {
            pair_id: whole("pair_id", *pair, LARGEST)?,
            worker: whole("worker", *worker, LARGEST)?,
            relevance: whole("relevance", *grade, 4.0)? as u8,
        })
    };
    rows.map(rating).collect()
}
