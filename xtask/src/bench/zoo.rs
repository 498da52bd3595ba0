//! `bench zoo`: parameters, training step, inference of one query and memory of every model at its published size.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::spread::Spread;
use super::{Options, Report, Table};
use crate::process::{cargo, scratch_folder, target_folder, time, watch};

/// Milliseconds per query that the field reports, on an A100.
const PUBLISHED: [(&str, f64); 9] = [
    ("cmin", 29.5),
    ("csmgan", 33.6),
    ("ia-net", 23.1),
    ("2d-tan", 31.8),
    ("ranet", 26.9),
    ("drn", 1019.4),
    ("lgi", 59.0),
    ("vslnet", 15.7),
    ("tmlga", 20.8),
];

/// Main memory that a training step of a full-size map network may take, in GiB.
const ROOM: f64 = 24.0;

pub(crate) fn run(options: &Options) -> Result<Report> {
    let mut sides = vec![("cpu", measure(&[], "all", "cpu", options)?)];
    if has_gpu() {
        sides.push(("cuda", measure(&["--features", "cuda"], "all", "cuda", options)?));
    }
    let maps = measure(&[], "maps", "cpu", &Options { repeat: 1, ..*options })?;
    let figures = json!({ "sides": sides.iter().cloned().collect::<BTreeMap<_, _>>(), "maps": maps });
    let mut tables: Vec<Table> = sides.iter().map(|(device, lines)| zoo_table(device, lines)).collect();
    tables.push(maps_table(&maps));
    Ok(Report { tables, figures })
}

fn has_gpu() -> bool {
    Command::new("nvidia-smi").output().is_ok_and(|output| output.status.success())
}

/// What the example prints, a line per model.
fn measure(features: &[&str], which: &str, device: &str, options: &Options) -> Result<Vec<Value>> {
    let mut build = vec!["build", "--release", "--package", "cuemark-models", "--example", "zoo_step"];
    build.extend(features);
    if !watch(&mut cargo(&build))?.ok {
        bail!("our side does not build");
    }
    let mut command = Command::new(target_folder()?.join("release/examples/zoo_step"));
    command.args([which, device, &options.repeat.to_string()]);
    let printed = time(&mut command, &scratch_folder("bench-zoo")?)?.stdout;
    printed.lines().map(|line| serde_json::from_str(line).with_context(|| format!("no JSON: {line}"))).collect()
}

fn text(line: &Value, key: &str) -> String {
    line[key].as_str().unwrap_or("-").to_owned()
}

fn spread(line: &Value, key: &str) -> Spread {
    let mut spread = Spread::default();
    line[key].as_array().into_iter().flatten().filter_map(Value::as_f64).for_each(|seconds| spread.push(seconds));
    spread
}

fn gib(line: &Value, key: &str) -> Option<f64> {
    Some(line[key].as_f64()? / f64::from(1u32 << 30))
}

fn in_gib(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |gib| format!("{gib:.2} GiB"))
}

fn zoo_table(device: &str, lines: &[Value]) -> Table {
    let row = |line: &Value| {
        let published = PUBLISHED.iter().find(|(model, _)| line["model"] == *model).map(|(_, millis)| *millis);
        let inference = spread(line, "inference_s");
        let ratio = published.map(|millis| millis / 1e3 / inference.median()).filter(|ratio| ratio.is_finite());
        let millions = line["parameters"].as_f64().map(|count| format!("{:.1} M", count / 1e6));
        vec![
            text(line, "model"),
            text(line, "dataset"),
            millions.unwrap_or_else(|| text(line, "error")),
            spread(line, "training_s").to_string(),
            inference.to_string(),
            published.map_or_else(|| "-".to_owned(), |millis| format!("{millis} ms")),
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x")),
            in_gib(gib(line, if device == "cpu" { "peak_bytes" } else { "peak_gpu_bytes" })),
        ]
    };
    let title = format!(
        "every model at its published size on {device}: a training step of 2 pairs (or 2 videos with 3 queries each), one \
         query answered from features in memory, and what the field reports per query on an A100"
    );
    let header =
        vec!["model", "configuration", "parameters", "training step", "query", "published", "ratio", "peak memory"];
    Table { title, header, rows: lines.iter().map(row).collect() }
}

fn maps_table(lines: &[Value]) -> Table {
    let row = |line: &Value| {
        let peak = gib(line, "peak_bytes");
        let verdict = match peak {
            Some(peak) if peak <= ROOM => "fits".to_owned(),
            Some(_) => "TOO MUCH".to_owned(),
            None => text(line, "error"),
        };
        let step = spread(line, "training_s").to_string();
        vec![text(line, "model"), text(line, "dataset"), step, in_gib(peak), verdict]
    };
    Table {
        title: format!("a training step of every published 2D-map configuration within {ROOM} GiB of main memory"),
        header: vec!["model", "configuration", "training step", "peak memory", ""],
        rows: lines.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_stand_beside_ours_and_failures_are_told() {
        let lines = [
            json!({ "model": "cmin", "dataset": "d", "parameters": 8_200_000, "inference_s": [0.0295], "training_s": [1.5] }),
            json!({ "model": "trm", "dataset": "d", "error": "out of memory" }),
        ];
        let table = zoo_table("cpu", &lines);
        assert_eq!(table.rows[0][2..7], ["8.2 M", "1.50 s", "29.5 ms", "29.5 ms", "1.00x"]);
        assert_eq!(table.rows[1][2..4], ["out of memory", "not measured"]);
    }

    #[test]
    fn what_takes_too_much_memory_is_marked() {
        let gib = |gib: u64| json!({ "model": "mmn", "dataset": "d", "training_s": [2.0], "peak_bytes": gib << 30 });
        let verdicts: Vec<String> = maps_table(&[gib(3), gib(30)]).rows.into_iter().map(|row| row[4].clone()).collect();
        assert_eq!(verdicts, ["fits", "TOO MUCH"]);
    }
}
