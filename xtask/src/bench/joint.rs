//! `bench joint`: a training step and one answer of the networks of moments and highlights at the published size (75 clips,
//! 32 words, batch 32); Moment-DETR and QD-DETR against the same in PyTorch, two threads each.

use anyhow::Result;

use super::arena::{Arena, HEADER, Words};
use super::{Options, Report, Table};
use crate::python;

/// Steps of each kind in one process, after one that does not count.
const STEPS: usize = 3;
/// Pairs of a training step.
const BATCH: usize = 32;
/// Networks that the peer has as well.
const WITH_PEER: [&str; 2] = ["moment-detr", "qd-detr"];
/// The others.
const ALONE: [&str; 6] = ["eatr", "cg-detr", "uvcom", "tr-detr", "taskweave", "univtg"];

pub(crate) fn run(options: &Options) -> Result<Report> {
    let packages = [python::NUMPY, python::SCIPY, python::TORCH];
    let arena = Arena::open("joint_step", "joint_step.py", &packages, STEPS)?;
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for model in WITH_PEER.iter().chain(&ALONE) {
        let (ours, peer) = ([(*model).to_owned(), BATCH.to_string()], [(*model).to_owned()]);
        let words = Words { ours: &ours, peer: &peer, start: &format!("start-{model}.safetensors"), settings: None };
        let (of_model, of_figures) = if WITH_PEER.contains(model) {
            arena.versus(model, &words, options.repeat)?
        } else {
            arena.alone(model, &words)?
        };
        rows.extend(of_model);
        figures.push(of_figures);
    }
    let title = "moments and highlights, 75 clips of 2,816 numbers, 32 words, batch 32: PyTorch eager (fused attention) against \
                 cuemark, two threads each; inference is one query from features in memory to a ranked list"
        .to_owned();
    Ok(Report { tables: vec![Table { title, header: HEADER.to_vec(), rows }], figures: figures.into() })
}
