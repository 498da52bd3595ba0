//! `bench train`: 2D-TAN's inference and training step against the same in plain PyTorch, two threads each.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::arena::{Arena, Words};
use super::steps::{PARTS, Side, agree};
use super::{Options, Report, Table};
use crate::python;

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
    let arena = Arena::open("train_step", "train_step.py", &[python::NUMPY, python::TORCH], STEPS)?;
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for case in &CASES {
        let (mut theirs, mut mine) = (Side::default(), [Side::default(), Side::default()]);
        let mut bounds = [(0.0, 0.0); 2];
        for _ in 0..options.repeat.min(3) {
            let exact = ours(&arena, case, SUPPORTS[0])?;
            let dense = peer(&arena, case)?;
            let valid = ours(&arena, case, SUPPORTS[1])?;
            agree(&dense, &exact).with_context(|| case.name)?;
            theirs.add(&dense)?;
            for (side, line) in [&exact, &valid].into_iter().enumerate() {
                mine[side].add(line)?;
                bounds[side] = bound(line)?;
            }
        }
        for (side, support) in SUPPORTS.iter().enumerate() {
            for (part, (name, ..)) in PARTS.iter().enumerate() {
                let (dense, sparse) = (&theirs.wall[part], &mine[side].wall[part]);
                let (cells, products) = bounds[side];
                rows.push(vec![
                    format!("{}, {support}", case.name),
                    (*name).to_owned(),
                    dense.to_string(),
                    sparse.to_string(),
                    format!("{:.2}x", dense.median() / sparse.median()),
                    format!("{:.2}x", theirs.cpu[part].median() / mine[side].cpu[part].median()),
                    format!("{}x", case.wanted[side]),
                    format!("{cells:.2}x"),
                    format!("{products:.2}x"),
                ]);
            }
        }
        figures.push(json!({
            "case": case.name, "torch": theirs.to_json(), "exact": mine[0].to_json(), "valid": mine[1].to_json(),
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

/// Our side on the cells of `support`.
fn ours(arena: &Arena, case: &Case, support: &str) -> Result<Value> {
    let Case { clips, counts, kernel, batch, .. } = case;
    let settings = arena.folder.join("settings.toml");
    let text = format!(
        "map = {{ pre_clips = 256, clips = {clips}, counts = {counts:?} }}\nkernel = {kernel}\nlayers = {LAYERS}\nsupport = \"{support}\"\n"
    );
    std::fs::write(&settings, text)?;
    let words = ["2d-tan".to_owned(), settings.display().to_string(), batch.to_string()];
    arena.ours(&Words { ours: &words, peer: &[], start: &start(support), settings: None })
}

/// The peer; starts from what our exact side wrote.
fn peer(arena: &Arena, case: &Case) -> Result<Value> {
    let counts: Vec<String> = case.counts.iter().map(usize::to_string).collect();
    let words = [case.clips, case.kernel, LAYERS, case.batch].map(|number| number.to_string());
    let [clips, kernel, layers, batch] = words;
    let words = [clips, counts.join(","), kernel, layers, batch];
    arena.peer(&Words { ours: &[], peer: &words, start: &start(SUPPORTS[0]), settings: None })
}

fn start(support: &str) -> String {
    format!("start-{support}.safetensors")
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
