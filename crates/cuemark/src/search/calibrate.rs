//! Fitting an index's probabilities to answers that people judged.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Progress, Relevance, Span, Track, Truth, VideoId};
use cuemark_search::{Calibration, Index, Question, fit_calibration, fit_cut};
use serde::{Deserialize, Serialize};

use super::{IndexPlace, JudgedFile};
use crate::{Error, Result, TruthFile};

/// Answers that are looked at for each question: as many as a page shows.
const ANSWERS: usize = 24;
/// An answer that overlaps a judged moment so much is the one that was judged.
const SAME: f64 = 0.5;

/// Fits an index's probabilities, and with them what counts as good enough, to what people said of its answers.
///
/// Asks every judged question again, by sight, and looks at the answers that were judged. Ten right and ten wrong ones are the least;
/// the curve says no more than was seen there. The cut below which nothing is good enough is fitted anew where ten questions have a
/// right answer, and stays what it was otherwise. A server that is running answers by the new curve from its next question on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CalibrateIndex {
    /// Which index.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub place: IndexPlace,
    /// Questions and their answers in any truth layout, instead of what was judged on the page; every answer that the file does
    /// not call right counts as wrong.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub truth: Option<Utf8PathBuf>,
}

/// What a calibration was fitted to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CalibratedIndex {
    /// Questions that were asked again.
    pub questions: usize,
    /// Answers that were right.
    pub right: usize,
    /// Answers that were wrong.
    pub wrong: usize,
    /// The curve that was there.
    pub before: Calibration,
    /// The curve that is there now.
    pub after: Calibration,
}

/// What an answer counts as that nobody judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unlisted {
    /// Nothing.
    Ignored,
    /// Wrong.
    Wrong,
}

impl CalibrateIndex {
    /// Opens the index, asks, fits, and writes the curve into the manifest.
    ///
    /// # Errors
    /// When there are too few judgements of either kind, right answers do not score higher than wrong ones, or the index cannot
    /// be written; it is as it was then.
    pub fn run(&self, progress: &Progress) -> Result<CalibratedIndex> {
        progress.phase("opening", 0);
        let index = self.place.open(None)?;
        let (truths, unlisted) = match &self.truth {
            Some(path) => (TruthFile::new(path.clone()).read(progress)?.queries, Unlisted::Wrong),
            None => (JudgedFile::of(&index)?.read()?.truths(), Unlisted::Ignored),
        };
        let Judged { answers: judged, standings } = judged(&index, &truths, unlisted, progress)?;
        let right = judged.iter().filter(|(_, right)| *right).count();
        let wrong = judged.len() - right;
        let Some(after) = fit_calibration(&judged) else {
            let problem = format!("{right} right and {wrong} wrong answers give no curve");
            return Err(Error::nothing(problem).advise(Advice::say(
                "ten of each are the least, and right ones must score higher; judge more answers on the page",
            )));
        };
        let before = index.calibration();
        let Calibration { above_usual, without_common, .. } = before;
        let after = Calibration { cut: fit_cut(&standings).or(before.cut), above_usual, without_common, ..after };
        Index::recalibrate(&self.place.url()?, after)?;
        Ok(CalibratedIndex { questions: truths.len(), right, wrong, before, after })
    }
}

/// What asking again has shown.
#[derive(Debug, Default)]
struct Judged {
    /// How surprising each judged answer is, and whether it is right.
    answers: Vec<(f64, bool)>,
    /// How the best answer stands of each question that has a right one.
    standings: Vec<f64>,
}

/// Asks again by sight: a curve is one over cosines, and what words score is no cosine.
fn judged(index: &Index, truths: &[Truth], unlisted: Unlisted, progress: &Progress) -> Result<Judged> {
    progress.phase("asking", truths.len());
    let mut judged = Judged::default();
    for truth in truths {
        progress.advance(1)?;
        let question = Question { limit: ANSWERS, ..Question::new(&truth.query.text) };
        let Some(text) = question.text.clone().filter(|_| question.asks(Track::Seen)) else { continue };
        let found = index.answer(&Question { tracks: vec![Track::Seen], ..question })?;
        let mut has_right = false;
        for answer in found.moments {
            if let Some(right) = verdict(truth, &answer.video, answer.span, unlisted) {
                has_right |= right;
                judged.answers.push((index.surprise(&text, answer.score)?, right));
            }
        }
        judged.standings.extend(found.standing.filter(|_| has_right));
    }
    Ok(judged)
}

/// Whether an answer is right, wrong, or was not judged. A right moment that it overlaps counts more than a wrong one.
fn verdict(truth: &Truth, video: &VideoId, span: Span, unlisted: Unlisted) -> Option<bool> {
    let here = truth.moments.iter().filter(|one| one.moment.video == *video && one.moment.span.iou(span) >= SAME);
    let grades: Vec<f64> = here.map(|one| one.relevance.map_or(4.0, Relevance::value)).collect();
    match grades.iter().copied().reduce(f64::max) {
        Some(best) => Some(best >= 3.0),
        None => (unlisted == Unlisted::Wrong).then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::{GradedMoment, Moment, Query, QueryId};

    use super::*;

    #[test]
    fn what_nobody_judged_counts_as_nothing_unless_the_truth_is_whole() {
        let span = |start, end| Span::new(start, end).unwrap();
        let graded = |start: f64, grade: f64| GradedMoment {
            moment: Moment { video: "a".into(), span: span(start, start + 4.0) },
            relevance: Relevance::new(grade),
        };
        let query = Query { id: QueryId::new("q"), text: String::new() };
        let truth = Truth { moments: vec![graded(0.0, 4.0), graded(10.0, 0.0)], ..Truth::bare(query) };
        let ask =
            |video: &str, start: f64, unlisted| verdict(&truth, &video.into(), span(start, start + 4.0), unlisted);
        assert_eq!(ask("a", 0.5, Unlisted::Ignored), Some(true));
        assert_eq!(ask("a", 10.5, Unlisted::Ignored), Some(false));
        assert_eq!((ask("a", 20.0, Unlisted::Ignored), ask("b", 0.0, Unlisted::Ignored)), (None, None));
        assert_eq!(ask("b", 0.0, Unlisted::Wrong), Some(false));
    }
}
