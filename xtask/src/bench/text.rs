//! `bench text`: a training step and one answer of MMN with DistilBERT, fine-tuned, at the published size for Charades-STA,
//! against the same in PyTorch, two threads each.

use anyhow::Result;

use super::arena::{Arena, HEADER, Words};
use super::{Options, Report, Table};
use crate::python;

/// Steps of each kind in one process, after one that does not count: a step of either side takes many seconds.
const STEPS: usize = 1;
/// Videos of a step: the part of the published 48 that each of the published four GPUs had.
const VIDEOS: usize = 12;

pub(crate) fn run(options: &Options) -> Result<Report> {
    let arena = Arena::open("text_step", "mmn_step.py", &[python::NUMPY, python::TORCH], STEPS)?;
    let words = Words { ours: &[VIDEOS.to_string()], peer: &[], start: "start.safetensors", settings: None };
    let (rows, figures) = arena.versus("mmn with DistilBERT", &words, options.repeat)?;
    let title = "MMN with DistilBERT fine-tuned, 12 videos (a quarter of the published batch, as each of its four GPUs had), 16 \
                 clips of 4,096 numbers, two sentences a video of up to 14 tokens: dense PyTorch eager (fused attention) \
                 against cuemark, two threads each; inference is one query from features in memory to a ranked list"
        .to_owned();
    Ok(Report { tables: vec![Table { title, header: HEADER.to_vec(), rows }], figures })
}
