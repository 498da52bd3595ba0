//! `cuemark features extract`: from video files to a store of features.

use anyhow::bail;
use camino::Utf8PathBuf;
use cuemark_core::printable;
use cuemark_encoders::extract::{ExtractOptions, ExtractReport, Shard, extract_to_store};
use cuemark_encoders::visual::{self, EncoderOptions};
use cuemark_formats::Overwrite;
use cuemark_media::{Ffmpeg, LeftOut, find_videos};
use serde_json::json;

use crate::input::Force;
use crate::output::{Outcome, Print, thousands};
use crate::progress::watched;

/// Videos with something wrong that are named one by one.
const NAMED: usize = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Video files, or folders of them; a video is called by its file's name without the ending, and by its folder too where two
    /// would be called alike.
    #[arg(required = true, value_name = "VIDEO")]
    videos: Vec<Utf8PathBuf>,
    /// What turns clips into numbers: concepts, clip, i3d, i3d-logits, c3d, vgg16-fc6, vgg16-fc7, resnet50, resnet152,
    /// efficientnet-lite0, world-weak, world-shape, world-motion.
    #[arg(long, value_name = "NAME")]
    encoder: String,
    /// The folder of the store; videos that are in it already are kept.
    #[arg(long, value_name = "STORE")]
    out: Utf8PathBuf,
    /// A file with the encoder's weights. Default: those that `cuemark weights pull` fetched
    #[arg(long, value_name = "FILE")]
    weights: Option<Utf8PathBuf>,
    /// Do one share of the work, for several processes or machines on one store: 1/4, 2/4 …
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: Shard,
    /// What to compute on: cpu, cuda or cuda:N.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Frames a second. Default: the encoder's own
    #[arg(long, value_name = "N")]
    fps: Option<f64>,
    /// Frames of one clip. Default: the encoder's own
    #[arg(long, value_name = "N")]
    frames: Option<usize>,
    /// Frames from the start of a clip to the start of the next. Default: the encoder's own, or `--frames`
    #[arg(long, value_name = "N")]
    stride: Option<usize>,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if args.shard != Shard::WHOLE && args.force.overwrite() == Overwrite::Force {
        bail!("`--force` would remove what the other shares wrote: remove the store yourself, then start all shares");
    }
    let found = watched("looking for films", |progress| find_videos(&args.videos, progress))?;
    if let (true, Some(first)) = (found.videos.is_empty(), found.left_out.first()) {
        bail!("{}: {}", printable(&first.what), printable(&first.problem));
    }
    // What can be wrong with the machine is said before weights are read.
    let ffmpeg = Ffmpeg::on_path();
    ffmpeg.check()?;
    let encoder = visual::open(
        &args.encoder,
        &EncoderOptions {
            device: cuemark_tensor::device(&args.device)?,
            weights: args.weights.clone(),
            cache: None,
            fps: args.fps,
            frames: args.frames,
            stride: args.stride,
        },
    )?;
    let options = ExtractOptions { overwrite: args.force.overwrite(), shard: args.shard, ffmpeg };
    let report = watched("extracting", |progress| {
        extract_to_store(&found.videos, encoder.as_ref(), &args.out, &options, progress)
    })?;
    let told = json!({
        "store": args.out,
        "encoder": encoder.name(),
        "shard": args.shard.to_string(),
        "extracted": report,
        "left_out": found.left_out,
        "hours_of_video_per_hour": report.speed(),
    });
    let outcome = args.print.result(&told, || text(args, &report, &found.left_out))?;
    Ok(if report.failed.is_empty() && found.left_out.is_empty() { outcome } else { outcome.with_problems() })
}

fn text(args: &Args, report: &ExtractReport, left_out: &[LeftOut]) -> String {
    let resumed = match report.resumed {
        0 => String::new(),
        videos => format!(", {} of them there already", thousands(videos)),
    };
    let share = if args.shard == Shard::WHOLE { String::new() } else { format!(" (share {})", args.shard) };
    let mut lines = vec![format!(
        "wrote {} to {}{share}: {} videos{resumed}, {} new rows",
        args.encoder,
        args.out,
        thousands(report.videos),
        thousands(report.rows)
    )];
    if let Some(speed) = report.speed() {
        let new = report.videos - report.resumed - report.failed.len();
        lines.push(format!(
            "{:.1} s of video in {:.1} s: {speed:.1} hours of video per hour, {:.2} videos/s",
            report.video_seconds,
            report.wall_seconds,
            new as f64 / report.wall_seconds
        ));
    }
    lines.extend(report.partial.iter().take(NAMED).map(|partial| {
        let missing = match partial.missing_seconds {
            0.0 => String::new(),
            seconds => format!(", {seconds:.1} s are missing"),
        };
        let complaint = partial.first_complaint.as_deref().map(|words| format!(": {words}")).unwrap_or_default();
        let (video, complaints) = (printable(partial.video.as_str()), thousands(partial.complaints));
        format!("DAMAGED: `{video}`{missing}; the decoder complained {complaints} times{complaint}")
    }));
    let failed = report.failed.iter().map(|failure| (failure.video.as_str(), failure.problem.as_str()));
    let left_out = left_out.iter().map(|one| (one.what.as_str(), one.problem.as_str()));
    let failed: Vec<(&str, &str)> = failed.chain(left_out).collect();
    let named = failed.iter().take(NAMED);
    lines.extend(named.map(|(what, why)| format!("LEFT OUT: `{}`: {}", printable(what), printable(why))));
    let unnamed = report.partial.len().saturating_sub(NAMED) + failed.len().saturating_sub(NAMED);
    if unnamed > 0 {
        lines.push(format!("and {} videos more; `--json` lists them", thousands(unnamed)));
    }
    lines.join("\n")
}
