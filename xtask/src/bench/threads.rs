//! `bench threads`: a training step with 1, 2, 4, … threads, ours and PyTorch's in turns, at the world's size and the published one.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::arena::{Arena, Words};
use super::steps::{Side, agree};
use super::{Options, Report, Table};
use crate::python;

/// Steps in one process, after one that does not count.
const STEPS: usize = 2;

/// One network at one size.
struct Case {
    name: &'static str,
    size: &'static str,
    /// Our example and the peer's script.
    sides: (&'static str, &'static str),
    /// Words of ours before the number of steps; `SETTINGS` stands for the file of settings.
    ours: &'static [&'static str],
    peer: &'static [&'static str],
    /// The `[model]` table.
    settings: &'static str,
    /// How many times as fast as PyTorch a step should be with any number of threads.
    wanted: f64,
}

const TAN: (&str, &str) = ("train_step", "train_step.py");
const TMLGA: (&str, &str) = ("train_step", "tmlga_step.py");
const MMN: (&str, &str) = ("text_step", "mmn_step.py");
const DETR: (&str, &str) = ("joint_step", "joint_step.py");

const CASES: [Case; 8] = [
    Case {
        name: "2d-tan",
        size: "world: 16 clips, width 64, 4 layers of 3 x 3, batch 16",
        sides: TAN,
        ours: &["2d-tan", "SETTINGS", "16"],
        peer: &["16", "15", "3", "4", "16"],
        settings: "map = { pre_clips = 32, clips = 16, counts = [15] }\nhidden = 64\nlstm_layers = 1\nkernel = 3\nlayers = 4",
        wanted: 1.5,
    },
    Case {
        name: "2d-tan",
        size: "published: 16 clips, width 512, 8 layers of 5 x 5, batch 8 (of 32)",
        sides: TAN,
        ours: &["2d-tan", "SETTINGS", "8"],
        peer: &["16", "15", "5", "8", "8"],
        settings: "map = { pre_clips = 256, clips = 16, counts = [15] }\nkernel = 5\nlayers = 8",
        wanted: 1.5,
    },
    Case {
        name: "mmn",
        size: "world: 16 clips, width 64, 3 layers of 3 x 3, 16 videos",
        sides: MMN,
        ours: &["16"],
        peer: &[],
        settings: "text = { rate = 1.0 }\nmatching = { margin = 0.3, weight = 0.05 }\n[network]\nhidden = 64\njoint = 64\nkernel = 3\n\
                   layers = 3\nmap = { pre_clips = 32, clips = 16, counts = [15] }\n\
                   text = { dim = 64, layers = 2, heads = 4, ffn = 128, positions = 64 }",
        wanted: 1.5,
    },
    Case {
        name: "mmn",
        size: "published: 16 clips, width 512, 8 layers of 5 x 5, DistilBERT, 4 videos (of 48)",
        sides: MMN,
        ours: &["4"],
        peer: &[],
        settings: "network = { map = { pre_clips = 32, clips = 16, counts = [15] }, kernel = 5, layers = 8 }\n\
                   matching = { margin = 0.4, weight = 0.05, switch_epoch = 7 }\ntext = { frozen_epochs = 4 }",
        wanted: 1.5,
    },
    Case {
        name: "tmlga",
        size: "world: 128 clips, width 48, batch 32",
        sides: TMLGA,
        ours: &["tmlga", "SETTINGS", "32"],
        peer: &[],
        settings: "clips = 128\nquery_hidden = 48\nwidth = 96\nhidden = 48\ndropout = 0.2",
        wanted: 1.0,
    },
    Case {
        name: "tmlga",
        size: "published: 200 clips, width 256, batch 32 (of 64)",
        sides: TMLGA,
        ours: &["tmlga", "SETTINGS", "32"],
        peer: &[],
        settings: "clips = 200",
        wanted: 1.0,
    },
    Case {
        name: "qd-detr",
        size: "world: 75 clips, width 128, batch 64",
        sides: DETR,
        ours: &["qd-detr", "64"],
        peer: &["qd-detr"],
        settings: "clips = 75\nwords = 32\nnetwork = { hidden = 128, heads = 4, ffn = 256, input_dropout = 0.1 }",
        wanted: 1.0,
    },
    Case {
        name: "qd-detr",
        size: "published: 75 clips, width 256, batch 32",
        sides: DETR,
        ours: &["qd-detr", "32"],
        peer: &["qd-detr"],
        settings: "",
        wanted: 1.0,
    },
];

pub(crate) fn run(options: &Options) -> Result<Report> {
    let cores = std::thread::available_parallelism()?.get();
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for case in &CASES {
        let packages = [python::NUMPY, python::SCIPY, python::TORCH];
        let mut arena = Arena::open(case.sides.0, case.sides.1, &packages, STEPS)?;
        let file = arena.folder.join("settings.toml");
        std::fs::write(&file, case.settings)?;
        let mut alone: Option<[f64; 2]> = None;
        let mut bits: Option<Value> = None;
        for threads in [1, 2, 4, 8, 16].into_iter().filter(|threads| *threads <= cores) {
            arena.threads = threads;
            let (mut ours, mut peer) = (Side::default(), Side::default());
            for _ in 0..options.repeat.min(3) {
                let (mine, theirs) = case.measure(&arena, &file)?;
                agree(&theirs, &mine).with_context(|| case.name)?;
                // What no number of threads may change.
                if bits.get_or_insert_with(|| mine["weights"].clone()) != &mine["weights"] {
                    bail!("{} has other weights after {STEPS} steps with {threads} threads than with one", case.name);
                }
                ours.add(&mine)?;
                peer.add(&theirs)?;
            }
            let seconds = [&ours, &peer].map(|side| side.wall[0].median());
            let first = *alone.get_or_insert(seconds);
            rows.push(vec![
                format!("{}, {}", case.name, case.size),
                threads.to_string(),
                peer.wall[0].to_string(),
                ours.wall[0].to_string(),
                format!("{:.2}x", seconds[1] / seconds[0]),
                format!("{:.1}x", case.wanted),
                format!("{:.2}x", first[0] / seconds[0]),
                format!("{:.2}x", first[1] / seconds[1]),
            ]);
            figures.push(json!({
                "model": case.name, "size": case.size, "threads": threads, "torch": peer.to_json(), "cuemark": ours.to_json(),
            }));
        }
    }
    let title = "a training step by the number of threads, PyTorch eager against cuemark; the last two columns say how many times as \
                 fast as with one thread each side is. Our weights after the steps are the same to the last bit in every row of a \
                 network, or the bench fails"
        .to_owned();
    let header =
        vec!["network", "threads", "PyTorch", "cuemark", "ratio", "wanted", "cuemark's gain", "PyTorch's gain"];
    Ok(Report { tables: vec![Table { title, header, rows }], figures: figures.into() })
}

impl Case {
    /// One run of each side.
    fn measure(&self, arena: &Arena, settings: &Path) -> Result<(Value, Value)> {
        let word = |word: &&str| if *word == "SETTINGS" { settings.display().to_string() } else { (*word).to_owned() };
        let (ours, peer): (Vec<String>, Vec<String>) =
            (self.ours.iter().map(word).collect(), self.peer.iter().map(word).collect());
        let after = (!self.ours.contains(&"SETTINGS")).then_some(settings);
        let words = Words { ours: &ours, peer: &peer, start: "start.safetensors", settings: after };
        let mine = arena.ours(&words)?;
        Ok((mine, arena.peer(&words)?))
    }
}
