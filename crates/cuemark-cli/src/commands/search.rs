//! `cuemark search`: a sentence in, ranked moments out.

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use cuemark::{Ask, Found, FoundMoment};
use cuemark_core::{Progress, Span, printable};
use cuemark_formats::export::{Clip, ExportFormat, FrameRate, export};
use cuemark_formats::{Overwrite, WholeFile};
use cuemark_media::{Ffmpeg, OpenedVideo};

use crate::input::Force;
use crate::output::{self, Outcome, Print};
use crate::progress::watched;

/// Characters of a spoken or written line that are printed.
const LONGEST_REASON: usize = 160;

/// Find the moments that a sentence describes.
///
/// What is seen, said and written there counts. Words that begin with `-` are not wanted: `cuemark search films "a ball spins
/// -red"`. Words between quotation marks must be said or written as they are: `cuemark search films '"good morning"'`; `said:`,
/// `written:` and `seen:` say where to look. Answers that are less likely than `--least` are left out; when none is left the
/// command says so and ends with 0 all the same.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    ask: Ask,
    /// Play the best answer with `ffplay`.
    #[arg(long)]
    open: bool,
    /// Cut the best answer into this file.
    #[arg(long, value_name = "OUT.mp4")]
    clip: Option<Utf8PathBuf>,
    /// Write the answers in the best one's video as cues (WebVTT) into this file.
    #[arg(long, value_name = "OUT.vtt")]
    vtt: Option<Utf8PathBuf>,
    /// Write all answers as an edit decision list (CMX 3600, 25 frames a second) into this file.
    #[arg(long, value_name = "OUT.edl")]
    edl: Option<Utf8PathBuf>,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    for out in [&args.clip, &args.vtt, &args.edl].into_iter().flatten() {
        args.force.overwrite().check(out)?;
    }
    let found = watched("searching", |progress| args.ask.run(progress))?;
    say_what_is_not_understood(&found);
    if let Some(best) = found.answers.first() {
        let (play, clip, overwrite) = (args.open, args.clip.as_deref(), args.force.overwrite());
        play_or_cut(best, &Taking { play, clip, overwrite })?;
        write_clips(args, &found, best)?;
    }
    args.print.result(&found, || text(&found))
}

/// Words of the question that answers can have nothing to do with.
pub(super) fn say_what_is_not_understood(found: &Found) {
    if !found.unknown_words.is_empty() {
        output::say(&format!("note: the encoder does not know: {}", found.unknown_words.join(", ")));
    }
    if !found.unseen.is_empty() {
        output::say(&format!("note: cannot see {}", unseen(found)));
    }
}

/// `can (nearest: milk can), yellow (nearest: lemon)`
fn unseen(found: &Found) -> String {
    let word = |unseen: &cuemark::FoundUnseen| format!("{} (nearest: {})", printable(&unseen.word), unseen.nearest);
    found.unseen.iter().map(word).collect::<Vec<_>>().join(", ")
}

pub(super) fn text(found: &Found) -> String {
    match (found.answers.is_empty(), found.best_probability) {
        (true, None) => "nothing there to be found".to_owned(),
        (true, Some(best)) if found.calibrated => {
            format!("nothing good enough: the best of it has probability {best:.2} (`--least 0` shows it)")
        }
        (true, Some(_)) => "nothing good enough (`--least 0` shows what is nearest)".to_owned(),
        (false, _) => {
            let reasons = reasons(&found.answers);
            let table = table(found);
            if reasons.is_empty() { table } else { format!("{}\n{}", table.trim_end(), reasons.join("\n")) }
        }
    }
}

/// What is said and written that speaks for answers, a line each, as they are numbered in the table.
fn reasons(answers: &[FoundMoment]) -> Vec<String> {
    let mut lines = Vec::new();
    for answer in answers {
        for because in answer.because.iter().filter(|because| because.track != "seen") {
            let words: String = because.text.chars().take(LONGEST_REASON).collect();
            let words = if words.len() < because.text.len() { words + "…" } else { words };
            let video = printable(&answer.video);
            lines.push(format!("{video} {}: \"{}\" at {}", because.track, printable(&words), clock(because.start)));
        }
    }
    lines
}

/// Where nobody fitted the probabilities, the table says how strong an answer is and not how likely.
fn table(found: &Found) -> String {
    let answers = &found.answers;
    let part = |name: &str, share: f64| format!("{name} {:.0} %", 100.0 * share);
    let row = |answer: &FoundMoment| {
        let words: Vec<String> = answer.words.iter().take(3).map(|word| part(&word.word, word.share)).collect();
        let seen: Vec<String> = answer.concepts.iter().take(3).map(|seen| part(&seen.concept, seen.share)).collect();
        vec![
            printable(&answer.video).into_owned(),
            format!("{} – {}", clock(answer.start), clock(answer.end)),
            if found.calibrated {
                format!("{:.0} %", 100.0 * answer.probability)
            } else {
                answer.strength().to_owned()
            },
            words.join(", "),
            seen.join(", "),
        ]
    };
    let mut header =
        vec!["video", "moment", if found.calibrated { "likely" } else { "match" }, "because of", "recognised"];
    let mut rows: Vec<Vec<String>> = answers.iter().map(row).collect();
    // Encoders that recognise nothing by name have nothing to say in the last column.
    if answers.iter().all(|answer| answer.concepts.is_empty()) {
        header.pop();
        rows.iter_mut().for_each(|row| row.truncate(header.len()));
    }
    output::text_table(&header, &rows)
}

/// `1:02.5`
fn clock(seconds: f64) -> String {
    let tenths = (10.0 * seconds).round() as u64;
    let (hours, minutes, rest) = (tenths / 36_000, tenths / 600 % 60, tenths % 600);
    let rest = format!("{:02}.{}", rest / 10, rest % 10);
    if hours > 0 { format!("{hours}:{minutes:02}:{rest}") } else { format!("{minutes}:{rest}") }
}

/// Answers for players and cutting programs.
fn write_clips(args: &Args, found: &Found, best: &FoundMoment) -> anyhow::Result<()> {
    let clip = |answer: &FoundMoment| -> anyhow::Result<Clip> {
        Ok(Clip {
            query: "answer".to_owned(),
            text: found.query.clone().unwrap_or_default(),
            video: answer.video.as_str().into(),
            span: Span::new(answer.start, answer.end)?,
            score: found.calibrated.then_some(answer.probability),
        })
    };
    let write = |out: &Utf8PathBuf, format, answers: Vec<&FoundMoment>| -> anyhow::Result<()> {
        let clips = answers.into_iter().map(clip).collect::<anyhow::Result<Vec<Clip>>>()?;
        let mut file = WholeFile::create(out, args.force.overwrite())?;
        export(&clips, format, FrameRate::default(), &mut file)?;
        file.finish()?;
        output::say(&format!("wrote {out}"));
        Ok(())
    };
    if let Some(out) = &args.vtt {
        let same = found.answers.iter().filter(|answer| answer.video == best.video);
        write(out, ExportFormat::WebVtt, same.collect())?;
    }
    if let Some(out) = &args.edl {
        write(out, ExportFormat::Edl, found.answers.iter().collect())?;
    }
    Ok(())
}

/// What to do with the best answer.
pub(super) fn play_or_cut(best: &FoundMoment, what: &Taking<'_>) -> anyhow::Result<()> {
    if !what.play && what.clip.is_none() {
        return Ok(());
    }
    let path = best.path.as_deref();
    let path =
        path.with_context(|| format!("video `{}` is known by its features only: there is no file", best.video))?;
    let span = Span::new(best.start, best.end)?;
    let (ffmpeg, video, progress) = (Ffmpeg::on_path(), OpenedVideo::open(Utf8Path::new(path))?, Progress::new());
    if let Some(out) = what.clip {
        ffmpeg.cut(&video, span, out, what.overwrite, &progress)?;
        output::say(&format!("wrote {out}"));
    }
    if what.play {
        ffmpeg.play(&video, span, &progress)?;
    }
    Ok(())
}

/// Whether the best answer is played, and where it is cut to.
pub(super) struct Taking<'a> {
    pub(super) play: bool,
    pub(super) clip: Option<&'a Utf8Path>,
    pub(super) overwrite: Overwrite,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(calibrated: bool, probabilities: &[f64]) -> Found {
        let answer = |probability: &f64| FoundMoment {
            video: "a".to_owned(),
            start: 2.0,
            end: 4.0,
            span: [2.0, 4.0],
            duration: 9.0,
            probability: *probability,
            score: 0.5,
            words: Vec::new(),
            concepts: Vec::new(),
            because: Vec::new(),
            playable: false,
            path: None,
            partial: None,
        };
        Found {
            query: None,
            answers: probabilities.iter().map(answer).collect(),
            good: probabilities.len(),
            below_least: 1,
            best_probability: Some(0.37),
            encoder: "concepts".to_owned(),
            calibrated,
            unknown_words: Vec::new(),
            unseen: vec![cuemark::FoundUnseen { word: "yellow".to_owned(), nearest: "lemon".to_owned() }],
        }
    }

    #[test]
    fn what_cannot_be_seen_is_named_with_what_comes_nearest() {
        assert_eq!(unseen(&found(false, &[0.3])), "yellow (nearest: lemon)");
    }

    #[test]
    fn a_curve_that_nobody_fitted_says_nothing_in_percent() {
        let (guess, nothing) = (text(&found(false, &[0.73, 0.3, 0.12])), text(&found(false, &[])));
        for said in [&guess, &nothing] {
            let digits = ["%", "likely", "probab", "0.37", "73", "30", "12"];
            assert!(!digits.iter().any(|told| said.contains(told)), "{said}");
        }
        let strong = ["strong", "fair", "weak"].map(|word| guess.find(word).unwrap());
        assert!(strong.is_sorted(), "{guess}");
        let (fitted, nothing) = (text(&found(true, &[0.73])), text(&found(true, &[])));
        assert!(fitted.contains("likely") && fitted.contains("73 %") && nothing.contains("0.37"), "{fitted} {nothing}");
    }

    #[test]
    fn clocks_carry_over() {
        assert_eq!(clock(0.0), "0:00.0");
        assert_eq!(clock(59.96), "1:00.0");
        assert_eq!(clock(3725.5), "1:02:05.5");
    }
}
