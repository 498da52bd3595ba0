//! `verify bias`: what guesses reach where the bias is known, and on the published splits of Charades-CD.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::machine::Machine;
use crate::process::{cargo, scratch_folder, shared_folder, target_folder, time, watch, workspace};

/// Settings of the bias knob; at the first there is none.
const BIASES: [&str; 3] = ["0", "0.5", "1"];
/// The published splits: our name for each, and its file.
const CHARADES_CD: [&str; 4] = ["train", "val", "test-iid", "test-ood"];

/// Makes the worlds, audits everything, and writes what was said to `results/notes/bias-DATE.md`.
pub(crate) fn run(_: &[&str]) -> Result<bool> {
    if !watch(&mut cargo(&["build", "--release", "--package", "cuemark-cli"]))?.ok {
        bail!("cuemark does not build");
    }
    let machine = Machine::here();
    let folder = scratch_folder("bias-study")?;
    let mut text = format!("# cargo xtask verify bias\n\n{}\n", machine.describe());
    for bias in BIASES {
        let world = folder.join(format!("world-{bias}"));
        say(
            &folder,
            &["world", "make", "--force", "--videos", "2000", "--seed", "0", "--bias", bias, "--out"],
            &world,
        )?;
        let audit = say(&folder, &["world", "audit"], &world)?;
        text += &format!(
            "\n## The world at bias {bias}\n\n```\n{}\n```\n",
            audit.replace(&world.display().to_string(), "world")
        );
    }
    let published = shared_folder().join("data/charades-cd");
    if published.is_dir() {
        let splits = folder.join("charades-cd");
        for split in CHARADES_CD {
            let root = published.display().to_string();
            let arguments = ["data", "convert", "charades-cd", "--force", "--root", &root, "--file", split, "--out"];
            say(&folder, &arguments, &splits.join(format!("{split}.jsonl")))?;
        }
        let audit = say(&folder, &["split", "audit"], &splits)?;
        text += &format!(
            "\n## Charades-CD as published\n\n```\n{}\n```\n",
            audit.replace(&splits.display().to_string(), "charades-cd")
        );
    }
    let result = workspace().join("results/notes").join(format!("bias-{}.md", machine.date));
    std::fs::write(&result, &text)?;
    println!("{text}\nwritten to {}", result.display());
    Ok(true)
}

/// What `cuemark ARGUMENTS PATH` prints.
fn say(folder: &Path, arguments: &[&str], path: &Path) -> Result<String> {
    let mut command = Command::new(target_folder()?.join("release/cuemark"));
    Ok(time(command.args(arguments).arg(path), folder)?.stdout.trim_end().to_owned())
}
