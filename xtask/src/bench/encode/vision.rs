//! Clips and videos: I3D and EfficientNet-Lite0 here and in PyTorch, two threads each; memory for a short and a long video.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::super::spread::Spread;
use super::{Options, Table};
use crate::process::{cargo, scratch_folder, target_folder, time, watch};
use crate::python;

/// Threads of each side.
const THREADS: usize = 2;
/// Clips of one process, after one that does not count.
const CLIPS: usize = 4;
/// How far the means of all rows may lie apart, as a share: decoders scale pictures a little differently.
const APART: f64 = 0.05;

/// Frames of a clip and how many times as fast as PyTorch we should be.
const CLIP_CASES: [(usize, f64); 2] = [(16, 0.8), (64, 0.8)];

/// What goes from file to rows: encoder, weights, their file, seconds of film, and how many times as fast as the script we should be.
const PIPELINES: [(&str, &str, u32, Option<f64>); 2] =
    [("efficientnet-lite0", "efficientnet-lite0.pth", 300, Some(1.0)), ("i3d", "i3d-kinetics-400.ckpt", 30, None)];

pub(super) fn run(options: &Options) -> Result<(Vec<Table>, Value)> {
    let build = ["build", "--release", "--package", "cuemark-encoders", "--example", "encode_clips"];
    if !watch(&mut cargo(&build))?.ok {
        bail!("our side does not build");
    }
    let cache = scratch_folder("cache")?;
    for weights in ["i3d", "efficientnet-lite0"] {
        let pull = ["run", "--release", "--quiet", "--package", "cuemark-cli", "--", "weights", "pull", weights];
        if !watch(cargo(&pull).env("CUEMARK_CACHE", &cache))?.ok {
            bail!("the weights `{weights}` cannot be pulled");
        }
    }
    let arena = Arena {
        ours: target_folder()?.join("release/examples/encode_clips"),
        python: python::interpreter(&[python::NUMPY, python::TORCH, python::PYAV])?,
        weights: cache.join("weights"),
        folder: scratch_folder("bench-encode")?,
    };
    let (clips, clip_figures) = arena.clips(options)?;
    let (pipelines, pipeline_figures) = arena.pipelines(options)?;
    let (memory, memory_figures) = arena.memory()?;
    let figures = json!({ "clips": clip_figures, "pipelines": pipeline_figures, "memory": memory_figures });
    Ok((vec![clips, pipelines, memory], figures))
}

/// The two programs, the weights and a folder to work in.
struct Arena {
    ours: PathBuf,
    python: PathBuf,
    weights: PathBuf,
    folder: PathBuf,
}

impl Arena {
    fn clips(&self, options: &Options) -> Result<(Table, Value)> {
        let weights = self.weights.join("i3d/i3d-kinetics-400.ckpt");
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        for (frames, wanted) in CLIP_CASES {
            let (mut mine, mut theirs) = (Spread::default(), Spread::default());
            for _ in 0..options.repeat.min(3) {
                let sizes = [frames, CLIPS].map(|number| number.to_string());
                let mut command = Command::new(&self.ours);
                command.args(["clips", "i3d"]).arg(&weights).args(&sizes).arg("cpu");
                push(&mut mine, &self.line(&mut command)?)?;
                let mut command = Command::new(&self.python);
                command.arg(python::peer("encode_vision.py")).args(["clips", "i3d"]).arg(&weights).args(&sizes);
                push(&mut theirs, &self.line(command.arg("cpu").arg(THREADS.to_string()))?)?;
            }
            let ratio = theirs.median() / mine.median();
            rows.push(vec![
                format!("I3D, {frames} frames"),
                theirs.to_string(),
                mine.to_string(),
                format!("{:.2}", 1.0 / mine.median()),
                format!("{ratio:.2}x"),
                format!("{wanted}x"),
            ]);
            figures.push(
                json!({ "frames": frames, "torch_s": theirs.to_json(), "ours_s": mine.to_json(), "ratio": ratio }),
            );
        }
        let title = "One clip through I3D, normalisation folded on both sides, two threads each".to_owned();
        let header = vec!["what", "PyTorch", "cuemark", "our clips/s", "ratio", "wanted"];
        Ok((Table { title, header, rows }, figures.into()))
    }

    fn pipelines(&self, options: &Options) -> Result<(Table, Value)> {
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        for (encoder, file, seconds, wanted) in PIPELINES {
            let film = self.film(&format!("testsrc2=s=640x360:r=30:d={seconds}"), &format!("film-{seconds}.mp4"))?;
            let weights = self.weights.join(encoder).join(file);
            let (mut mine, mut theirs) = (Spread::default(), Spread::default());
            for _ in 0..options.repeat.min(3) {
                let mut command = Command::new(&self.ours);
                command.args(["pipeline", encoder]).arg(&weights).arg(&film).arg("cpu");
                let ours = self.line(&mut command)?;
                let mut command = Command::new(&self.python);
                command.arg(python::peer("encode_vision.py")).args(["pipeline", encoder]).arg(&weights).arg(&film);
                let peer = self.line(command.arg("cpu").arg(THREADS.to_string()))?;
                agree(&ours, &peer)?;
                push(&mut mine, &ours)?;
                push(&mut theirs, &peer)?;
            }
            let ratio = theirs.median() / mine.median();
            rows.push(vec![
                format!("{encoder}, {seconds} s of 640 x 360 at 30 frames/s"),
                theirs.to_string(),
                mine.to_string(),
                format!("{:.1}", f64::from(seconds) / mine.median()),
                format!("{ratio:.2}x"),
                wanted.map_or_else(|| "reported".to_owned(), |wanted| format!("{wanted}x")),
            ]);
            figures.push(
                json!({ "encoder": encoder, "torch_s": theirs.to_json(), "ours_s": mine.to_json(), "ratio": ratio }),
            );
        }
        let title = "From a file to rows: PyAV and PyTorch against ffmpeg and cuemark, two threads each".to_owned();
        let header = vec!["what", "PyAV + PyTorch", "cuemark", "our hours of video per hour", "ratio", "wanted"];
        Ok((Table { title, header, rows }, figures.into()))
    }

    /// Peak memory of our side for two minutes and for three hours at one frame a second.
    fn memory(&self) -> Result<(Table, Value)> {
        let weights = self.weights.join("efficientnet-lite0/efficientnet-lite0.pth");
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        for (name, seconds) in [("2 minutes", 120), ("3 hours", 10_800)] {
            let film = self.film(&format!("testsrc2=s=320x180:r=1:d={seconds}"), &format!("slow-{seconds}.mp4"))?;
            let mut command = Command::new(&self.ours);
            command.args(["pipeline", "efficientnet-lite0"]).arg(&weights).arg(&film).arg("cpu");
            let timed = time(self.threads(&mut command), &self.folder)?;
            let line: Value = serde_json::from_str(&timed.stdout).context("what it printed is not JSON")?;
            let megabytes = timed.peak_bytes as f64 / 1e6;
            rows.push(vec![name.to_owned(), line["rows"].to_string(), format!("{megabytes:.0} MB")]);
            figures.push(json!({ "seconds": seconds, "rows": line["rows"], "peak_bytes": timed.peak_bytes }));
        }
        let title = "Peak memory of EfficientNet-Lite0 at one frame a second, by length of the video".to_owned();
        Ok((Table { title, header: vec!["video", "rows", "peak memory"], rows }, figures.into()))
    }

    /// A film made by ffmpeg, kept for the next run.
    fn film(&self, source: &str, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        if !path.exists() {
            let unfinished = self.folder.join(format!("unfinished-{name}"));
            let coding = ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p"];
            let mut command = Command::new("ffmpeg");
            command.args(["-v", "error", "-y", "-f", "lavfi", "-i", source]).args(coding).arg(&unfinished);
            if !command.status().context("ffmpeg")?.success() {
                bail!("ffmpeg cannot make {}", path.display());
            }
            std::fs::rename(unfinished, &path)?;
        }
        Ok(path)
    }

    fn line(&self, command: &mut Command) -> Result<Value> {
        line(self.threads(command), &self.folder)
    }

    fn threads<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("RAYON_NUM_THREADS", THREADS.to_string()).env("OMP_NUM_THREADS", THREADS.to_string())
    }
}

fn line(command: &mut Command, folder: &Path) -> Result<Value> {
    serde_json::from_str(&time(command, folder)?.stdout).context("what it printed is not JSON")
}

fn push(spread: &mut Spread, line: &Value) -> Result<()> {
    let seconds = line["seconds"].as_array().with_context(|| format!("no `seconds` in {line}"))?;
    seconds.iter().filter_map(Value::as_f64).for_each(|seconds| spread.push(seconds));
    Ok(())
}

/// An error when the sides do not make as many rows of about the same numbers: a ratio of unequal work says nothing.
fn agree(ours: &Value, peer: &Value) -> Result<()> {
    let mean = |line: &Value| line["mean"].as_f64().with_context(|| format!("no `mean` in {line}"));
    let (mine, theirs) = (mean(ours)?, mean(peer)?);
    let off = (mine - theirs).abs();
    if ours["rows"] != peer["rows"] || off.is_nan() || off > APART * theirs.abs() {
        bail!("the two sides disagree: {} rows of mean {mine} and {} of mean {theirs}", ours["rows"], peer["rows"]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_that_did_unequal_work_are_refused() {
        let of = |rows: usize, mean: f64| json!({ "rows": rows, "mean": mean });
        assert!(agree(&of(300, 0.300), &of(300, 0.301)).is_ok());
        assert!(agree(&of(300, 0.3), &of(299, 0.3)).is_err());
        assert!(agree(&of(300, 0.3), &of(300, 0.4)).is_err());
        assert!(agree(&of(300, f64::NAN), &of(300, 0.4)).is_err());
    }
}
