//! `bench features`: HDF5 files as h5py writes them, read by the library of the default program and by h5py, in turns.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::spread::Spread;
use super::steps::line;
use super::{Options, Report, Table};
use crate::process::{cargo, scratch_folder, target_folder, watch};
use crate::python;

/// Times that each process reads its file, after one that does not count.
const TIMES: usize = 3;
/// The layouts, as `benches/peers/h5_read.py` calls them.
const CASES: [&str; 8] = [
    "f32-contiguous",
    "f16-contiguous",
    "f64-contiguous",
    "f32-gzip-shuffle",
    "f16-gzip-shuffle",
    "f32-lzf",
    "f32-contiguous-latest",
    "f32-gzip-shuffle-latest",
];
/// How many times as fast as h5py it should be.
const WANTED: f64 = 1.0;

pub(crate) fn run(options: &Options) -> Result<Report> {
    let build = ["build", "--release", "--package", "cuemark-features", "--example", "h5_read"];
    if !watch(&mut cargo(&build))?.ok {
        bail!("our side does not build");
    }
    let ours = target_folder()?.join("release/examples/h5_read");
    let python = python::interpreter(&[python::NUMPY, python::H5PY])?;
    let folder = scratch_folder("bench-features")?;
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for case in CASES {
        let file = folder.join(format!("{case}.h5"));
        let script = |word: &str| {
            let mut command = Command::new(&python);
            command.arg(python::peer("h5_read.py")).arg(word);
            command
        };
        python::run(script("make").arg(case).arg(&file))?;
        let (mut peer, mut mine) = (Spread::default(), Spread::default());
        for _ in 0..options.repeat {
            let found = read(Command::new(&ours).arg(&file).arg(TIMES.to_string()), &folder, &mut mine)?;
            let theirs = read(script("read").arg(&file).arg(TIMES.to_string()), &folder, &mut peer)?;
            agree(&theirs, &found).with_context(|| case)?;
        }
        let bytes = std::fs::metadata(&file)?.len();
        std::fs::remove_file(&file)?;
        let ratio = peer.median() / mine.median();
        rows.push(vec![
            case.to_owned(),
            format!("{:.0} MB", bytes as f64 / 1e6),
            peer.to_string(),
            mine.to_string(),
            format!("{ratio:.2}x"),
            format!("{WANTED:.1}x"),
        ]);
        figures.push(json!({ "case": case, "file_bytes": bytes, "h5py_s": peer.to_json(), "cuemark_s": mine.to_json(),
            "ratio": ratio }));
    }
    let title = "HDF5: 200 videos of 100 rows of 1,024 numbers, each its own dataset, from opening the file to all rows in memory as \
                 32-bit numbers that are finite; h5py against the library of the default program, file in the page cache"
        .to_owned();
    let header = vec!["layout", "file", "h5py", "cuemark", "ratio", "wanted"];
    Ok(Report { tables: vec![Table { title, header, rows }], figures: figures.into() })
}

/// One run of a side; what it read.
fn read(command: &mut Command, folder: &Path, spread: &mut Spread) -> Result<Value> {
    let told = line(command, folder)?;
    let seconds = told["read_s"].as_array().with_context(|| format!("no `read_s` in {told}"))?;
    seconds.iter().filter_map(Value::as_f64).for_each(|seconds| spread.push(seconds));
    Ok(told)
}

/// An error when the sides did not read the same numbers.
fn agree(peer: &Value, ours: &Value) -> Result<()> {
    let sum = |told: &Value| told["sum"].as_f64().with_context(|| format!("no `sum` in {told}"));
    let (theirs, mine) = (sum(peer)?, sum(ours)?);
    let same = ["videos", "numbers"].iter().all(|key| peer[*key].is_u64() && peer[*key] == ours[*key]);
    let off = (theirs - mine).abs();
    if !same || off.is_nan() || off > 1e-9 * theirs.abs() {
        bail!("the two sides read different numbers: {peer} and {ours}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_that_read_other_numbers_are_refused() {
        let of = |videos: u64, sum: f64| json!({ "videos": videos, "numbers": 10, "sum": sum });
        assert!(agree(&of(2, 3.0), &of(2, 3.0)).is_ok());
        assert!(agree(&of(2, 3.0), &of(2, 3.001)).is_err());
        assert!(agree(&of(2, 3.0), &of(1, 3.0)).is_err());
        assert!(agree(&json!({}), &json!({})).is_err());
    }
}
