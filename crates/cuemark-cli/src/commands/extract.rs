//! `cuemark features extract`: from video files to a store of features.

use cuemark::{Extract, ExtractedFeatures, Shard};
use cuemark_core::printable;

use crate::output::{Outcome, Print, thousands};
use crate::progress::watched;

/// Videos with something wrong that are named one by one.
const NAMED: usize = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    extract: Extract,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let extracted = watched("looking for videos", |progress| args.extract.run(progress))?;
    let outcome = args.print.result(&extracted, || text(&extracted))?;
    Ok(if extracted.is_whole() { outcome } else { outcome.with_problems() })
}

fn text(features: &ExtractedFeatures) -> String {
    let ExtractedFeatures { store, encoder, shard, extracted: report, left_out, .. } = features;
    let resumed = match report.resumed {
        0 => String::new(),
        videos => format!(", {} of them there already", thousands(videos)),
    };
    let share = if *shard == Shard::WHOLE { String::new() } else { format!(" (share {shard})") };
    let mut lines = vec![format!(
        "wrote {encoder} to {store}{share}: {} videos{resumed}, {} new rows",
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
