//! `cuemark search`: a sentence in, ranked moments out.

use anyhow::Context as _;
use camino::Utf8PathBuf;
use cuemark_core::{Moment, Progress, Span, VideoId, printable};
use cuemark_media::{Ffmpeg, OpenedVideo};
use cuemark_search::{Answer, Effort, Filter, Index, Question, Stages};

use crate::commands::index::IndexArg;
use crate::input::Force;
use crate::output::{self, Outcome, Print};

/// Find the moments that a sentence describes.
///
/// Words that begin with `-` are not wanted: `cuemark search films "a ball spins -red"`. Answers that are less likely than
/// `--least` are left out; when none is left the command says so and ends with 0 all the same.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    index: IndexArg,
    /// What to look for.
    #[arg(required_unless_present = "like")]
    sentence: Option<String>,
    /// More like this moment: `VIDEO:START-END`, in seconds.
    #[arg(long, value_name = "MOMENT")]
    like: Option<String>,
    /// Nothing of this, in a word or a sentence; may be repeated.
    #[arg(long = "not", value_name = "SENTENCE")]
    unwanted: Vec<String>,
    /// Look in this video only; may be repeated.
    #[arg(long = "video", value_name = "VIDEO")]
    videos: Vec<String>,
    /// Look only in videos with this tag; may be repeated, and then all must be there.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only moments inside this stretch of their video: `START-END`, in seconds.
    #[arg(long, value_name = "SPAN")]
    within: Option<String>,
    /// Answers, at most.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Leave out answers that are less likely than this.
    #[arg(long, value_name = "P", default_value_t = 0.1)]
    least: f64,
    /// The overlap above which the worse of two answers of one video is dropped.
    #[arg(long, value_name = "IOU", default_value_t = 0.5)]
    nms: f64,
    /// Look at every moment instead of walking the graph.
    #[arg(long)]
    exact: bool,
    /// Choose so many videos first, then look for moments in them.
    #[arg(long, value_name = "VIDEOS")]
    two_stage: Option<usize>,
    /// Play the best answer with `ffplay`.
    #[arg(long)]
    open: bool,
    /// Cut the best answer into this file.
    #[arg(long, value_name = "OUT.mp4")]
    clip: Option<Utf8PathBuf>,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if let Some(out) = &args.clip {
        args.force.overwrite().check(out)?;
    }
    let question = question(args)?;
    let index = args.index.open(None)?;
    let answers = index.answer(&question)?;
    let shown = answers.likely();
    if !answers.unknown_words.is_empty() {
        output::say(&format!("note: the encoder does not know: {}", answers.unknown_words.join(", ")));
    }
    if let Some(best) = shown.first() {
        play_or_cut(args, &index, best)?;
    }
    let value = index.json(args.sentence.as_deref(), &answers)?;
    args.print.result(&value, || match (shown.is_empty(), answers.moments.first()) {
        (true, None) => "nothing there to be found".to_owned(),
        (true, Some(best)) => format!(
            "nothing good enough: the best of it has probability {:.2} (`--least 0` shows it)",
            best.probability
        ),
        (false, _) => table(shown),
    })
}

fn question(args: &Args) -> anyhow::Result<Question> {
    let mut question = args.sentence.as_deref().map_or_else(Question::default, Question::new);
    question.like = args.like.as_deref().map(moment).transpose()?;
    question.not.extend(args.unwanted.iter().cloned());
    question.filter = Filter {
        videos: (!args.videos.is_empty()).then(|| args.videos.iter().map(|id| VideoId::new(id.as_str())).collect()),
        tags: args.tags.clone(),
        within: args.within.as_deref().map(span).transpose()?,
    };
    (question.limit, question.least, question.nms) = (args.limit.clamp(1, 1000), args.least, args.nms);
    question.effort = if args.exact { Effort::Exact } else { Effort::Approximate };
    question.stages = args.two_stage.map_or(Stages::One, |videos| Stages::Two { videos });
    Ok(question)
}

fn moment(text: &str) -> anyhow::Result<Moment> {
    let (video, place) = text.rsplit_once(':').with_context(|| format!("`{text}` is not VIDEO:START-END"))?;
    Ok(Moment { video: VideoId::new(video), span: span(place)? })
}

fn span(text: &str) -> anyhow::Result<Span> {
    let (start, end) = text.split_once('-').with_context(|| format!("`{text}` is not START-END in seconds"))?;
    let seconds = |text: &str| text.trim().parse::<f64>().with_context(|| format!("`{text}` is no number of seconds"));
    Ok(Span::new(seconds(start)?, seconds(end)?)?)
}

fn table(answers: &[Answer]) -> String {
    let part = |name: &str, share: f64| format!("{name} {:.0} %", 100.0 * share);
    let row = |answer: &Answer| {
        let words: Vec<String> = answer.words.iter().take(3).map(|word| part(&word.word, word.share)).collect();
        let seen: Vec<String> = answer.concepts.iter().take(3).map(|seen| part(&seen.concept, seen.share)).collect();
        vec![
            printable(answer.video.as_str()).into_owned(),
            format!("{} – {}", clock(answer.span.start()), clock(answer.span.end())),
            format!("{:.0} %", 100.0 * answer.probability),
            words.join(", "),
            seen.join(", "),
        ]
    };
    let mut header = vec!["video", "moment", "likely", "because of", "recognised"];
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

fn play_or_cut(args: &Args, index: &Index, best: &Answer) -> anyhow::Result<()> {
    if !args.open && args.clip.is_none() {
        return Ok(());
    }
    let path = index.engine().video(&best.video)?.and_then(|entry| entry.path);
    let path =
        path.with_context(|| format!("video `{}` is known by its features only: there is no file", best.video))?;
    let (ffmpeg, video, progress) = (Ffmpeg::on_path(), OpenedVideo::open(&path)?, Progress::new());
    if let Some(out) = &args.clip {
        ffmpeg.cut(&video, best.span, out, args.force.overwrite(), &progress)?;
        output::say(&format!("wrote {out}"));
    }
    if args.open {
        ffmpeg.play(&video, best.span, &progress)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_spans_are_read_and_nonsense_is_refused() {
        let read = moment("a:b:1.5-4").unwrap();
        assert_eq!((read.video.as_str(), read.span), ("a:b", Span::new(1.5, 4.0).unwrap()));
        for text in ["a", "a:5", "a:5-2", "a:x-2", ":"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }

    #[test]
    fn clocks_carry_over() {
        assert_eq!(clock(0.0), "0:00.0");
        assert_eq!(clock(59.96), "1:00.0");
        assert_eq!(clock(3725.5), "1:02:05.5");
    }
}
