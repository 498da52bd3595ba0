//! `bench train`: 2D-TAN's inference and training step against the same in plain PyTorch, two threads each.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::steps::{PARTS, Side, agree, line};
use super::{Options, Report, Table};
use crate::process::{cargo, scratch_folder, target_folder, watch};
use crate::python;

/// Threads of each side.
const THREADS: usize = 2;
/// Steps of each kind in one process, after one that does not count.
const STEPS: usize = 2;
/// Layers of the convolution stack; the width of everything is the published 512.
const LAYERS: usize = 4;

/// One size of the network.
struct Case {
    name: &'static str,
    clips: usize,
    counts: &'static [usize],
    kernel: usize,
    batch: usize,
    /// How many times faster than PyTorch the published network should be, and the one on valid cells alone.
    wanted: [f64; 2],
}

const CASES: [Case; 2] = [
    Case { name: "N=16, k=5, batch 16", clips: 16, counts: &[15], kernel: 5, batch: 16, wanted: [1.2, 2.0] },
    Case { name: "N=64, k=5, batch 4", clips: 64, counts: &[15, 8, 8], kernel: 5, batch: 4, wanted: [1.5, 3.5] },
];
const SUPPORTS: [&str; 2] = ["exact", "valid"];
pub(crate) fn run(options: &Options) -> Result<Report> {
    let build = ["build", "--release", "--package", "cuemark-models", "--example", "train_step"];
    if !watch(&mut cargo(&build))?.ok {
        bail!("our side does not build");
    }
    let arena = Arena {
        ours: target_folder()?.join("release/examples/train_step"),
        python: python::interpreter(&[python::NUMPY, python::TORCH])?,
        folder: scratch_folder("bench-train")?,
    };
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for case in &CASES {
        let (mut peer, mut ours) = (Side::default(), [Side::default(), Side::default()]);
        let mut bounds = [(0.0, 0.0); 2];
        for _ in 0..options.repeat.min(3) {
            let exact = arena.ours(case, SUPPORTS[0])?;
            let dense = arena.peer(case)?;
            let valid = arena.ours(case, SUPPORTS[1])?;
            agree(&dense, &exact).with_context(|| case.name)?;
            peer.add(&dense)?;
            for (side, line) in [&exact, &valid].into_iter().enumerate() {
                ours[side].add(line)?;
                bounds[side] = bound(line)?;
            }
        }
        for (side, support) in SUPPORTS.iter().enumerate() {
            for (part, (name, ..)) in PARTS.iter().enumerate() {
                let (theirs, mine) = (&peer.wall[part], &ours[side].wall[part]);
                let (cells, products) = bounds[side];
                rows.push(vec![
                    format!("{}, {support}", case.name),
                    (*name).to_owned(),
                    theirs.to_string(),
                    mine.to_string(),
                    format!("{:.2}x", theirs.median() / mine.median()),
                    format!("{:.2}x", peer.cpu[part].median() / ours[side].cpu[part].median()),
                    format!("{}x", case.wanted[side]),
                    format!("{cells:.2}x"),
                    format!("{products:.2}x"),
                ]);
            }
        }
        figures.push(json!({
            "case": case.name, "torch": peer.to_json(), "exact": ours[0].to_json(), "valid": ours[1].to_json(),
            "bounds": bounds.map(|(cells, products)| json!({ "cells": cells, "products": products })),
        }));
    }
    let title =
        "2D-TAN, H=512, 4 layers: dense PyTorch against sparse maps, two threads each. `bound` is what the number of \
                 cells allows; neighbours that are zero are left out too, which moves it to `products`"
            .to_owned();
    let header = vec!["what", "part", "PyTorch", "cuemark", "ratio", "processor time", "wanted", "bound", "products"];
    Ok(Report { tables: vec![Table { title, header, rows }], figures: figures.into() })
}

/// The two programs and a folder to work in.
struct Arena {
    ours: PathBuf,
    python: PathBuf,
    folder: PathBuf,
}

impl Arena {
    fn ours(&self, case: &Case, support: &str) -> Result<Value> {
        let Case { clips, counts, kernel, batch, .. } = case;
        let settings = self.folder.join("settings.toml");
        let text = format!(
            "map = {{ pre_clips = 256, clips = {clips}, counts = {counts:?} }}\nkernel = {kernel}\nlayers = {LAYERS}\nsupport = \"{support}\"\n"
        );
        std::fs::write(&settings, text)?;
        let mut command = Command::new(&self.ours);
        command.arg(settings).args([batch.to_string(), STEPS.to_string(), "cpu".to_owned()]).arg(self.start(support));
        line(command.env("RAYON_NUM_THREADS", THREADS.to_string()), &self.folder)
    }

    /// Starts from what our exact side wrote.
    fn peer(&self, case: &Case) -> Result<Value> {
        let counts: Vec<String> = case.counts.iter().map(usize::to_string).collect();
        let mut command = Command::new(&self.python);
        command.arg(python::peer("train_step.py")).arg(case.clips.to_string()).arg(counts.join(","));
        command.args([case.kernel, LAYERS, case.batch, STEPS].map(|number| number.to_string()));
        command.arg("cpu").arg(THREADS.to_string()).arg(self.start(SUPPORTS[0]));
        line(command.env("OMP_NUM_THREADS", THREADS.to_string()), &self.folder)
    }

    fn start(&self, support: &str) -> PathBuf {
        self.folder.join(format!("start-{support}.safetensors"))
    }
}

/// Dense cells over ours, and over what our products amount to.
fn bound(line: &Value) -> Result<(f64, f64)> {
    let cells = |key: &str| line["cells"][key].as_f64().with_context(|| format!("no `cells.{key}` in {line}"));
    Ok((cells("dense")? / cells("sparse")?, cells("dense")? / cells("products")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_dense_cells_over_computed_ones() {
        let line = json!({ "cells": { "dense": 2016, "sparse": 1152, "products": 832.0 } });
        let (cells, products) = bound(&line).unwrap();
        assert_eq!(cells, 1.75);
        assert!((products - 2.423).abs() < 1e-3);
    }
}
