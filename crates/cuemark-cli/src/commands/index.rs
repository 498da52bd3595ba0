//! `cuemark index`: make a collection of videos searchable and keep it so.

use clap::Subcommand;
use cuemark::{
    AddVideos, AddedVideos, CalibrateIndex, CalibratedIndex, CompactIndex, CreateIndex, DescribeIndex, DescribedIndex,
    RemoveVideos, SalvageIndex, Salvaged, VerifiedIndex, VerifyIndex,
};
use cuemark_core::printable;
use cuemark_core::text::thousands;
use cuemark_search::{Calibration, VideoEntry, VideoState};

use crate::commands::index_eval;
use crate::output::{self, Outcome, Print};
use crate::progress::watched;

/// Make a collection of videos searchable and keep it so.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Make an empty index, and add what is named.
    Create(Asked<CreateIndex>),
    /// Add videos; those that are there already are embedded again only when their file has changed.
    ///
    /// Every video is safe once it is counted: Ctrl-C, or worse, loses only the one being embedded, and the same command
    /// goes on where it was.
    Add(Asked<AddVideos>),
    /// Take videos out.
    Remove(Asked<RemoveVideos>),
    /// What is in an index.
    Status(Asked<DescribeIndex>),
    /// Read everything, compare it with its checksums, look for the files; exit 1 when something is damaged.
    ///
    /// Nothing is written, so this works on a read-only or full disk and beside a writer.
    Verify(Asked<VerifyIndex>),
    /// Give back the room of removed and replaced videos; `status` says how much that is.
    ///
    /// Searching goes on meanwhile. A compaction that is killed leaves the index as it was or as it should be, never between.
    Compact(Asked<CompactIndex>),
    /// Write a sound index from everything that is left of a damaged one, which is only read.
    ///
    /// Says what is kept, what is lost and why, and what had to be assumed where the head of the log or the manifest cannot
    /// be read.
    Salvage(Asked<SalvageIndex>),
    Eval(index_eval::Args),
    /// Fit an index's probabilities, and with them what counts as good enough, to what people said of its answers.
    ///
    /// Asks every question that was judged on the page again and looks at the answers that were judged. Ten right and ten wrong
    /// ones are the least. A server that is running takes up the new curve at once.
    Calibrate(Asked<CalibrateIndex>),
}

/// A request and how its answer is printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Asked<R: clap::Args> {
    #[command(flatten)]
    request: R,
    #[command(flatten)]
    print: Print,
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::Create(asked) => create(asked),
        Action::Add(asked) => {
            let added = watched("embedding", |progress| asked.request.run(progress))?;
            let outcome = asked.print.result(&added, || added_text(&added))?;
            Ok(ended(&added, outcome))
        }
        Action::Remove(asked) => remove(asked),
        Action::Status(asked) => {
            let described = watched("opening", |progress| asked.request.run(progress))?;
            asked.print.result(&described, || described_text(&described))
        }
        Action::Verify(asked) => {
            let verified = watched("reading", |progress| asked.request.run(progress))?;
            let outcome = asked.print.result(&verified, || verified_text(&verified))?;
            Ok(if verified.sound { outcome } else { outcome.with_problems() })
        }
        Action::Compact(asked) => compact(asked),
        Action::Salvage(asked) => {
            let salvaged = watched("salvaging", |progress| asked.request.run(progress))?;
            let outcome = asked.print.result(&salvaged, || salvaged_text(&asked.request.out, &salvaged))?;
            Ok(if salvaged.lost.is_empty() { outcome } else { outcome.with_problems() })
        }
        Action::Eval(args) => index_eval::run(args),
        Action::Calibrate(asked) => {
            let fitted = watched("asking", |progress| asked.request.run(progress))?;
            asked.print.result(&fitted, || calibrated_text(&fitted))
        }
    }
}

fn create(asked: &Asked<CreateIndex>) -> anyhow::Result<Outcome> {
    let created = watched("embedding", |progress| asked.request.run(progress))?;
    let outcome = asked.print.result(&created, || match &created.added {
        Some(added) => added_text(added),
        None => {
            let manifest = &created.manifest;
            let fitted = match manifest.calibration.answers {
                0 => "probabilities are a guess: the encoder brings no validation queries".to_owned(),
                answers => format!("probabilities fitted on {} answers", thousands(answers)),
            };
            format!("made {}: {} numbers per moment; {fitted}", asked.request.place.index, manifest.width)
        }
    })?;
    Ok(match &created.added {
        Some(added) => ended(added, outcome),
        None => outcome,
    })
}

/// With the exit code of films that were added: whoever started this in a script must not take a part for the whole.
fn ended(added: &AddedVideos, outcome: Outcome) -> Outcome {
    if added.stopped {
        outcome.interrupted()
    } else if added.added.failed > 0 {
        outcome.with_problems()
    } else {
        outcome
    }
}

fn added_text(answer: &AddedVideos) -> String {
    let AddedVideos { added, status, stopped } = answer;
    let mut text = format!(
        "{} new, {} changed, {} unchanged, {} left out; {} moments of {} videos in the index",
        thousands(added.new),
        thousands(added.changed),
        thousands(added.unchanged),
        thousands(added.failed),
        thousands(status.moments),
        thousands(status.videos)
    );
    if added.moved > 0 {
        text += &format!("\n{} were moved or renamed and keep their names in the index", thousands(added.moved));
    }
    if added.lines > 0 {
        text += &format!("\n{} lines of what is said and written were added", thousands(added.lines));
    }
    if added.partial > 0 {
        text += &format!("\n{} of them could be read only in part", thousands(added.partial));
    }
    if *stopped {
        text += "\nstopped; the same command goes on";
    }
    text
}

fn remove(asked: &Asked<RemoveVideos>) -> anyhow::Result<Outcome> {
    let removed = watched("removing", |progress| asked.request.run(progress))?;
    let outcome = asked.print.result(&removed, || {
        let mut text = format!("removed {}", thousands(removed.removed));
        if !removed.missing.is_empty() {
            text += &format!("; not in the index: {}", printable(&removed.missing.join(", ")));
        }
        text
    })?;
    Ok(if removed.missing.is_empty() { outcome } else { outcome.with_problems() })
}

fn described_text(described: &DescribedIndex) -> String {
    let status = &described.status;
    let mut rows = vec![
        vec!["encoder".to_owned(), described.manifest.encoder.clone()],
        vec!["videos".to_owned(), thousands(status.videos)],
        vec!["vanished".to_owned(), thousands(status.vanished)],
        vec!["moments".to_owned(), thousands(status.moments)],
        vec!["in the graph".to_owned(), thousands(status.in_graph)],
        vec!["lines said and written".to_owned(), thousands(status.lines)],
    ];
    if status.damaged > 0 {
        rows.push(vec!["damaged places".to_owned(), thousands(status.damaged)]);
    }
    // A server does not say what removed videos still take.
    if status.waste.is_some() {
        rows.push(vec!["dead".to_owned(), thousands(status.dead)]);
    }
    for (what, bytes) in [("on disk", status.bytes), ("of that wasted", status.waste)] {
        rows.extend(bytes.map(|bytes| vec![what.to_owned(), megabytes(bytes)]));
    }
    let row = |entry: &VideoEntry| {
        let state = if entry.state == VideoState::Vanished { " (vanished)" } else { "" };
        let tags = if entry.tags.is_empty() { String::new() } else { format!(" [{}]", entry.tags.join(", ")) };
        let partial = entry.partial.as_ref().map_or_else(String::new, |partial| format!(" ({partial})"));
        let failed = entry.tracks.iter().filter_map(|read| Some((read.track.name(), read.problem.as_ref()?)));
        let failed: String = failed.map(|(track, problem)| format!(" (not {track}: {problem})")).collect();
        let told = format!("{:.1} s{tags}{state}{partial}{failed}", entry.duration);
        vec![printable(entry.id.as_str()).into_owned(), printable(&told).into_owned()]
    };
    rows.extend(described.videos.iter().flatten().map(row));
    output::text_table(&["", ""], &rows)
}

fn calibrated_text(fitted: &CalibratedIndex) -> String {
    let row = |name: &str, curve: &Calibration| {
        // From where on an answer is as likely as not, in deviations above what a question scores by chance.
        let even = -curve.offset / curve.slope;
        vec![name.to_owned(), format!("{even:.2}"), format!("{:.2}", curve.slope), thousands(curve.answers)]
    };
    let rows = [row("before", &fitted.before), row("now", &fitted.after)];
    format!(
        "{} questions, {} right and {} wrong answers\n\n{}",
        thousands(fitted.questions),
        thousands(fitted.right),
        thousands(fitted.wrong),
        output::table(&["", "even odds at", "slope", "fitted on"], &rows)
    )
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn compact(asked: &Asked<CompactIndex>) -> anyhow::Result<Outcome> {
    let compacted = watched("compacting", |progress| asked.request.run(progress))?;
    asked.print.result(&compacted, || {
        let mut text = match compacted.compacted.freed {
            0 => "nothing is wasted".to_owned(),
            freed => format!("gave back {} of the log", megabytes(freed)),
        };
        if let Some(graph) = compacted.compacted.graph {
            text += &format!(", made a graph of {}", megabytes(graph));
        }
        format!("{text}; {} are on disk", megabytes(compacted.status.bytes.unwrap_or(0)))
    })
}

fn salvaged_text(to: &str, salvaged: &Salvaged) -> String {
    let mut lines: Vec<String> = salvaged.assumed.iter().map(|assumed| format!("assumed {assumed}")).collect();
    for lost in &salvaged.lost {
        let video = lost.video.as_ref().map_or_else(|| "a record".to_owned(), |video| format!("`{video}`"));
        lines.push(format!("lost {} at byte {}: {}", printable(&video), lost.offset, lost.why));
    }
    lines.push(format!(
        "kept {} moments of {} videos in {to}, lost {} records",
        thousands(salvaged.moments),
        thousands(salvaged.videos),
        thousands(salvaged.lost.len())
    ));
    lines.join("\n")
}

fn verified_text(answer: &VerifiedIndex) -> String {
    let VerifiedIndex { sound, verified, status } = answer;
    let mut lines: Vec<String> =
        verified.faults.iter().map(|fault| format!("{}: {}", fault.place, fault.problem)).collect();
    for (what, videos) in
        [("vanished", &verified.vanished), ("back again", &verified.returned), ("changed since", &verified.changed)]
    {
        if !videos.is_empty() {
            let names: Vec<_> = videos.iter().map(|video| printable(video.as_str())).collect();
            lines.push(format!("{what}: {}", names.join(", ")));
        }
    }
    let verdict = if *sound { "sound" } else { "damaged" };
    lines.push(format!("{verdict}: {} moments of {} videos", thousands(status.moments), thousands(status.videos)));
    lines.join("\n")
}
