//! What a side of a ratio prints about its inference and training steps.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::spread::Spread;
use crate::process::time;

/// What is timed, and the keys under which both sides give seconds and processor seconds.
pub(crate) const PARTS: [(&str, &str, &str); 2] =
    [("training step", "training_s", "training_cpu_s"), ("inference", "inference_s", "inference_cpu_s")];

/// Seconds of one side by part.
#[derive(Default)]
pub(crate) struct Side {
    /// Seconds.
    pub(crate) wall: [Spread; 2],
    /// Processor seconds.
    pub(crate) cpu: [Spread; 2],
}

impl Side {
    /// Adds the runs of one line.
    pub(crate) fn add(&mut self, line: &Value) -> Result<()> {
        for (part, (_, wall, cpu)) in PARTS.iter().enumerate() {
            for (key, spread) in [(wall, &mut self.wall[part]), (cpu, &mut self.cpu[part])] {
                let seconds = line[*key].as_array().with_context(|| format!("no `{key}` in {line}"))?;
                seconds.iter().filter_map(Value::as_f64).for_each(|seconds| spread.push(seconds));
            }
        }
        Ok(())
    }

    /// Every run.
    pub(crate) fn to_json(&self) -> Value {
        let parts = PARTS
            .iter()
            .enumerate()
            .map(|(part, (_, wall, cpu))| json!({ *wall: self.wall[part].to_json(), *cpu: self.cpu[part].to_json() }));
        parts.collect()
    }
}

/// The line of JSON that a side prints.
pub(crate) fn line(command: &mut Command, folder: &Path) -> Result<Value> {
    serde_json::from_str(&time(command, folder)?.stdout).context("what it printed is not JSON")
}

/// An error when the sides do not compute the same loss: a ratio of unequal work says nothing.
pub(crate) fn agree(peer: &Value, ours: &Value) -> Result<()> {
    let loss = |line: &Value| line["loss"].as_f64().with_context(|| format!("no `loss` in {line}"));
    let (theirs, mine) = (loss(peer)?, loss(ours)?);
    let off = (theirs - mine).abs();
    if off.is_nan() || off > 1e-4 * theirs.abs() {
        bail!("the two sides disagree on the first loss: {theirs} and {mine}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_with_other_losses_are_refused() {
        let of = |loss: f64| json!({ "loss": loss });
        assert!(agree(&of(0.6821), &of(0.68211)).is_ok());
        assert!(agree(&of(0.6821), &of(0.6831)).is_err());
        assert!(agree(&of(0.6821), &of(f64::NAN)).is_err());
    }
}
