//! The demo's collection: test videos in an index, asked in sentences.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_bench::leaderboard::RunResult;
use cuemark_bench::matrix::State;
use cuemark_bench::report::Answerer;
use cuemark_core::text::thousands;
use cuemark_core::{Moment, Progress, Split, Truth, VideoId};
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::{Overwrite, Source};
use cuemark_models::registry;
use cuemark_search::{AddOptions, Added, Answer, EngineUrl, Index, Question, Settling, encoder};
use cuemark_tensor::Device;
use cuemark_world::{WorldError, WorldLog, film_reels};
use serde_json::{Value, json};

use super::{METRIC, Stage, world};
use crate::output::say;
use crate::progress::shown;

/// The split whose videos are indexed and whose queries are asked.
const SPLIT: &str = "test-iid";
/// Sentences that are asked: queries of the split, evenly spaced, without the video that they were written for.
const SENTENCES: usize = 3;
/// Answers to each.
const ANSWERS: usize = 3;
/// An answer that overlaps the moment a query was written for by so much is that moment.
const SAME: f64 = 0.5;
/// A moment of this grade or more is right: its action matches, if not every detail.
const RIGHT: u8 = 3;

/// Indexes the test videos with the best bi-encoder: as files where `ffmpeg` can film them, by their features where not.
pub(super) fn index(stage: &mut Stage) -> anyhow::Result<()> {
    let Some(cell) = best_bi_encoder(stage) else {
        say("  no model whose moments can be indexed was trained");
        return Ok(());
    };
    let run = stage.study.out.join("cells").join(&cell).canonicalize_utf8()?;
    let index = open_or_create(stage, &cell, &run)?;
    let videos: Vec<VideoId> = split(stage)?.videos.iter().map(|video| video.id.clone()).collect();
    let stop = || stage.progress.is_stopped();
    let filmed = shown(&stage.progress, "filming", || match film_reels(&world(stage), &videos, &stage.progress) {
        Err(WorldError::Ffmpeg { problem, .. }) => {
            let instead = "the index is made of stored features, and nothing can be played";
            stage.progress.say(format!("  {problem}: {instead}"));
            Ok(Vec::new())
        }
        filmed => filmed,
    });
    let files = filmed?;
    let added = add(&index, &files, &videos, &stage.progress)?;
    let status = index.engine().status()?;
    say(&format!(
        "  {cell} indexed {} moments of {} videos{}",
        thousands(status.moments),
        thousands(status.videos),
        if added.unchanged > 0 { ", some of them before" } else { "" }
    ));
    stage.index = (!stop()).then_some(index);
    stage.stopped = stop();
    Ok(())
}

/// The index of an earlier run of the demo, unless the model was trained again since.
fn open_or_create(stage: &Stage, cell: &str, run: &Utf8Path) -> anyhow::Result<Index> {
    let url = EngineUrl::File(stage.study.out.join("index"));
    let encoder = encoder::open(run.as_str(), None, &Device::Cpu)?;
    let is_old = stage
        .account
        .iter()
        .flat_map(|account| &account.cells)
        .any(|one| one.cell == cell && one.state == State::Before);
    let is_ours = is_old && Index::manifest_of(&url).is_ok_and(|manifest| manifest.encoder == run.as_str());
    Ok(if is_ours { Index::open(&url, encoder)? } else { Index::create(&url, encoder, Overwrite::Force)? })
}

fn add(index: &Index, files: &[Utf8PathBuf], videos: &[VideoId], progress: &Progress) -> anyhow::Result<Added> {
    let options = AddOptions { tags: vec![SPLIT.to_owned()] };
    let added = shown(progress, "embedding", || {
        if files.is_empty() {
            index.add_stored(videos, &options, progress)
        } else {
            index.add_files(files, &options, progress)
        }
    })?;
    shown(progress, "making it fast", || index.settle(Settling::WhenWorthIt, progress))?;
    Ok(added)
}

/// Asks the index in three sentences and says what it answers, and which answers are right.
pub(super) fn answer_sentences(stage: &mut Stage) -> anyhow::Result<()> {
    let Some(index) = &stage.index else { return Ok(()) };
    let test = split(stage)?;
    let log = WorldLog::open(&world(stage))?;
    let step = (test.queries.len() / SENTENCES).max(1);
    let mut told = Vec::new();
    for truth in test.queries.iter().step_by(step).take(SENTENCES) {
        let question = Question { limit: ANSWERS, least: 0.0, ..Question::sentence(&truth.query.text) };
        say(&format!("  “{}”", truth.query.text));
        let mut found = Vec::new();
        let is_fitted = index.manifest().calibration.is_fitted();
        for (place, answer) in index.answer(&question)?.moments.iter().enumerate() {
            let verdict = Verdict::of(truth, answer, &log)?;
            let (start, end) = (answer.span.start(), answer.span.end());
            // A curve that was not fitted puts answers in order and says nothing in percent.
            let likely =
                if is_fitted { format!("  {:3.0} % likely", 100.0 * answer.probability) } else { String::new() };
            let rank = place + 1;
            say(&format!("    {rank}. {} {start:5.1} – {end:5.1} s{likely}{}", answer.video, verdict.words()));
            found.push(json!({
                "video": answer.video,
                "span": [start, end],
                "probability": answer.probability,
                "right": verdict != Verdict::Wrong,
            }));
        }
        told.push(json!({ "sentence": truth.query.text, "answers": found }));
    }
    if stage.quick {
        say("  (one epoch teaches little; without `--quick` the answers are better)");
    }
    stage.answers = told;
    Ok(())
}

/// What the event log says about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The moment that the query was written for.
    Written,
    /// Another one that shows what the query says.
    Right,
    Wrong,
}

impl Verdict {
    fn of(truth: &Truth, answer: &Answer, log: &WorldLog) -> anyhow::Result<Self> {
        let is_same = |moment: &Moment| moment.video == answer.video && moment.span.iou(answer.span) >= SAME;
        if truth.right().any(is_same) {
            return Ok(Self::Written);
        }
        let moment = Moment { video: answer.video.clone(), span: answer.span };
        Ok(if log.grade(&truth.query.id, &moment)? >= RIGHT { Self::Right } else { Self::Wrong })
    }

    fn words(self) -> &'static str {
        match self {
            Self::Written => "  ← the moment it was written for",
            Self::Right => "  ← shows it too",
            Self::Wrong => "",
        }
    }
}

fn split(stage: &Stage) -> anyhow::Result<Split> {
    let file = world(stage).join("splits").join(format!("{SPLIT}.jsonl"));
    Ok(read_truth(&Source::new(file), None, &ReadOptions::default())?)
}

/// The trained bi-encoder that is best on the split, as the name of its cell.
fn best_bi_encoder(stage: &Stage) -> Option<String> {
    let results = stage.results.as_ref()?;
    let is_bi_encoder =
        |run: &&RunResult| run.kind == Answerer::Model && registry::find(&run.model).is_ok_and(|card| card.bi_encoder);
    let score = |run: &&RunResult| run.plain(SPLIT, METRIC).map_or(-1.0, |measure| measure.value);
    let best = results.results.iter().filter(is_bi_encoder).max_by(|a, b| score(a).total_cmp(&score(b)))?;
    let same = |cell: &&cuemark_bench::matrix::Cell| cell.model == best.model && cell.variant == best.variant;
    stage.study.expanded.cells.iter().find(same).map(|cell| cell.name.clone())
}

/// The index as JSON.
pub(super) fn as_json(stage: &Stage) -> anyhow::Result<Value> {
    let Some(index) = &stage.index else { return Ok(Value::Null) };
    let url = index.engine().url().to_string();
    Ok(json!({ "index": url, "encoder": index.manifest().encoder, "status": index.engine().status()? }))
}
