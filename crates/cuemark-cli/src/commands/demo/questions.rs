//! What the demo asks its index: three sentences that some film answers, and one that none does.

use cuemark_core::{Moment, Rng, Truth};
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::Source;
use cuemark_search::{Answer, Index, Question};
use cuemark_world::WorldLog;
use serde_json::{Value, json};

use super::collection::split;
use super::{Stage, world};
use crate::output::say;

/// Sentences about what the indexed films show.
const SENTENCES: usize = 3;
/// Answers to each.
const ANSWERS: usize = 3;
/// An answer must be a good deal likelier than not: the curve was fitted, so that means something, and the films were watched from files,
/// which it was not fitted on. A hundred seeds: 61 % of the sentences get one, 89 % of those are right, 65 % of the fourths are refused.
const LIKELY: f64 = 0.6;
/// An answer that overlaps the moment a query was written for by so much is that moment.
const SAME: f64 = 0.5;
/// A moment of this grade or more is right: its action matches, if not every detail.
const RIGHT: u8 = 3;
/// Where sentences come from that the indexed films may have nothing to say to.
const ELSEWHERE: &str = "train";

/// Asks, and says what is answered and which answers are right.
pub(super) fn ask(stage: &mut Stage) -> anyhow::Result<()> {
    let Some(index) = &stage.index else { return Ok(()) };
    let test = split(stage)?;
    let log = WorldLog::open(&world(stage))?;
    let mut rng = Rng::stream(stage.seed, "the demo's questions");
    let mut asked: Vec<&Truth> = test.queries.iter().collect();
    rng.shuffle(&mut asked);
    let mut told = Vec::new();
    for truth in asked.into_iter().take(SENTENCES) {
        told.push(answer(index, &log, truth)?);
    }
    let elsewhere = world(stage).join("splits").join(format!("{ELSEWHERE}.jsonl"));
    let mut others = read_truth(&Source::new(elsewhere), None, &ReadOptions::default())?.queries;
    rng.shuffle(&mut others);
    let shown_by_none = |truth: &&Truth| {
        let shows = |video: &cuemark_core::Video| log.shows(&truth.query.id, &video.id).unwrap_or(true);
        !test.videos.iter().any(shows)
    };
    if let Some(truth) = others.iter().find(shown_by_none) {
        told.push(answer(index, &log, truth)?);
    }
    stage.answers = told;
    Ok(())
}

fn answer(index: &Index, log: &WorldLog, truth: &Truth) -> anyhow::Result<Value> {
    let question = Question { limit: ANSWERS, least: LIKELY, ..Question::sentence(&truth.query.text) };
    say(&format!("  “{}”", truth.query.text));
    let answers = index.answer(&question)?;
    let mut found = Vec::new();
    for (place, answer) in answers.likely().iter().enumerate() {
        let verdict = Verdict::of(truth, answer, log)?;
        let (start, end) = (answer.span.start(), answer.span.end());
        say(&format!(
            "    {}. {} {start:5.1} – {end:5.1} s  {:3.0} % likely{}",
            place + 1,
            answer.video,
            100.0 * answer.probability,
            verdict.words()
        ));
        found.push(json!({
            "video": answer.video,
            "span": [start, end],
            "probability": answer.probability,
            "right": verdict != Verdict::Wrong,
        }));
    }
    if found.is_empty() {
        say("    nothing good enough");
    }
    Ok(json!({ "sentence": truth.query.text, "answers": found }))
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
