//! Records of JSON and CSV files, decoded in parallel, in file order, with the line each stands on.

use cuemark_formats::json::{Member, decode_line};
use cuemark_formats::{ReadError, Result, Source};
use rayon::prelude::*;
use serde::de::DeserializeOwned;

/// Members of a JSON object or array with their values. The error is that of the first bad member in the file.
pub(crate) fn members<T: DeserializeOwned + Send>(members: &[Member<'_>]) -> Result<Vec<T>> {
    // The plain decoder is twice as fast; only a fault pays for the one that knows the way to it.
    let decoded: Vec<Result<T>> =
        members.par_iter().map(|member| serde_json::from_str(member.text()).or_else(|_| member.decode())).collect();
    decoded.into_iter().collect()
}

/// The records of a JSON Lines file with their line numbers, blank lines left out.
pub(crate) fn json_lines<T: DeserializeOwned + Send>(source: &Source) -> Result<Vec<(usize, T)>> {
    let text = source.text()?;
    let limit = source.limits().line;
    let lines: Vec<(usize, &str)> = (1..).zip(text.split('\n')).filter(|(_, line)| !line.trim().is_empty()).collect();
    let decoded: Vec<Result<(usize, T)>> = lines
        .par_iter()
        .map(|&(number, line)| {
            if line.len() as u64 > limit {
                let (path, what) = (source.path().to_owned(), format!("line {number}"));
                return Err(ReadError::TooLarge { path, what, limit });
            }
            let record = serde_json::from_str(line).or_else(|_| decode_line(source, number, line))?;
            Ok((number, record))
        })
        .collect();
    decoded.into_iter().collect()
}

/// The records of a CSV file with a header, with the line each begins on; columns that `T` does not name are ignored.
pub(crate) fn csv_records<T: DeserializeOwned>(source: &Source) -> Result<Vec<(usize, T)>> {
    let text = source.text()?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| csv_fault(source, None, &error))?.clone();
    let mut record = csv::StringRecord::new();
    let mut records = Vec::new();
    while reader.read_record(&mut record).map_err(|error| csv_fault(source, Some(&header), &error))? {
        let line = record.position().map_or(0, |position| position.line() as usize);
        let value = record.deserialize(Some(&header)).map_err(|error| csv_fault(source, Some(&header), &error))?;
        records.push((line, value));
    }
    Ok(records)
}

/// Says what the CSV reader found wrong, with the line and, where there is one, the column's name.
fn csv_fault(source: &Source, header: Option<&csv::StringRecord>, error: &csv::Error) -> ReadError {
    let line = error.position().map_or(1, |position| position.line() as usize);
    let column = |index: u64| header.and_then(|header| header.get(usize::try_from(index).ok()?)).unwrap_or("record");
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => {
            source.record(line, err.field().map_or("record", column), err.kind())
        }
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            source.record(line, "record", format!("has {len} columns where the header has {expected_len}"))
        }
        _ => source.record(line, "record", error),
    }
}
