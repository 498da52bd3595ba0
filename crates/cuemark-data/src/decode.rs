//! Records of JSON and CSV files, decoded in parallel, in file order, with the line each stands on.

use cuemark_formats::json::{Member, line_of};
use cuemark_formats::{ReadError, Result, Source};
use rayon::prelude::*;
use serde::de::DeserializeOwned;

/// Records that are decoded before somebody looks whether one of them was bad: a file of nothing but bad ones must not
/// become as many errors.
const AT_ONCE: usize = 16 << 10;

/// Members of a JSON object or array with their values. The error is that of the first bad member in the file.
pub(crate) fn members<T: DeserializeOwned + Send>(members: &[Member<'_>]) -> Result<Vec<T>> {
    in_order(members, |member| member_of(member))
}

/// The records of a JSON Lines file with their line numbers, blank lines left out.
pub(crate) fn json_lines<T: DeserializeOwned + Send>(source: &Source) -> Result<Vec<(usize, T)>> {
    let text = source.text()?;
    let limit = source.limits().line;
    let mut lines: Vec<(usize, &str)> = Vec::new();
    for (number, line) in (1..).zip(text.split('\n')).filter(|(_, line)| !line.trim().is_empty()) {
        source.charge(number, 2 * size_of::<(usize, &str)>())?;
        lines.push((number, line));
    }
    in_order(&lines, |&(number, line)| {
        if line.len() as u64 > limit {
            let (path, what) = (source.path().to_owned(), format!("line {number}"));
            return Err(ReadError::TooLarge { path, what, limit });
        }
        Ok((number, member_of(&line_of(source, number, line))?))
    })
}

fn member_of<T: DeserializeOwned>(member: &Member<'_>) -> Result<T> {
    member.charge::<T>()?;
    // The plain decoder is twice as fast; only a fault pays for the one that knows the way to it.
    serde_json::from_str(member.text()).or_else(|_| member.decode())
}

/// What `decode` makes of `items`, on all cores, or the error of the first bad one.
fn in_order<I: Sync, T: Send>(items: &[I], decode: impl Fn(&I) -> Result<T> + Sync) -> Result<Vec<T>> {
    let mut done = Vec::with_capacity(items.len().min(AT_ONCE));
    for some in items.chunks(AT_ONCE) {
        let decoded: Vec<Result<T>> = some.par_iter().map(&decode).collect();
        for record in decoded {
            done.push(record?);
        }
    }
    Ok(done)
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
        source.charge(line, 2 * size_of::<(usize, T)>() + 2 * record.as_slice().len())?;
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
