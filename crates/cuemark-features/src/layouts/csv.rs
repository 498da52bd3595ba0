//! `.csv` per video: one row a line, numbers apart by commas, no header (YouCook2's ResNet).

use camino::Utf8Path;
use cuemark_formats::{Limits, ReadError};

use super::files::Files;
use crate::foreign::OpenOptions;
use crate::{Features, Result};

pub(super) fn open(folder: &Utf8Path, options: &OpenOptions) -> Result<Files> {
    Files::open(folder, &["csv"], options, read)
}

fn read(path: &Utf8Path, options: &OpenOptions) -> Result<Features> {
    let source = options.source(path).with_limits(Limits { line: options.largest, ..Limits::default() });
    let (mut width, mut rows, mut data) = (None, 0, Vec::new());
    source.for_each_line(|line, text| {
        let before = data.len();
        // A number takes two bytes of the line at the least; twice, since a list that grows lies in memory twice.
        source.charge(line, text.len().div_ceil(2) * 2 * size_of::<f32>())?;
        for (column, field) in text.split(',').enumerate() {
            let number = field.trim().parse::<f32>();
            let number = number.map_err(|_| {
                source.record(line, format!("column {}", column + 1), format!("`{}` is not a number", shortened(field)))
            })?;
            data.push(number);
        }
        let here = data.len() - before;
        if *width.get_or_insert(here) != here {
            let problem = format!("{here} numbers, the lines before have {}", width.unwrap_or_default());
            return Err(source.record(line, "row", problem));
        }
        if (data.len() * size_of::<f32>()) as u64 > options.largest {
            let what = "all numbers together".to_owned();
            return Err(ReadError::TooLarge { path: path.to_owned(), what, limit: options.largest });
        }
        rows += 1;
        Ok(())
    })?;
    let width = width.ok_or_else(|| ReadError::file(path, "holds no rows"))?;
    Ok(Features::from_parts(rows, width, data))
}

/// Enough of a field to find it again.
fn shortened(field: &str) -> String {
    field.chars().take(40).collect()
}
