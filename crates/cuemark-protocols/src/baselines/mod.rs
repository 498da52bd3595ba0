//! Blind baselines (prior-only baselines): what can be had without looking at the video, by where moments usually lie.
//!
//! One baseline, one file. [`BASELINES`] lists them; [`find`] gets one by name.

mod bias_density;
mod bias_draw;
mod bias_mode;
mod bias_verb;
mod predict_all;
mod score;

pub(crate) use score::{QueryCredits, credits_of_first};

use cuemark_core::{Extra, NormSpan, Prediction, Predictions, QueryPredictions, Truth};

use crate::kde::Kde;
use crate::pairs::{pairs, video_of};
use crate::{ProtocolError, Result};

/// Every baseline, in the order that tables list them: one line per file of this folder.
pub static BASELINES: &[&BaselineCard] =
    &[&predict_all::CARD, &bias_draw::CARD, &bias_density::CARD, &bias_mode::CARD, &bias_verb::CARD];

/// What a baseline is called and how it is made.
pub struct BaselineCard {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it answers, in one sentence.
    pub summary: &'static str,
    /// What it has to be shown first.
    pub needs: Needs,
    /// Whether two seeds can give two answers.
    pub answers: Answering,
    fit: for<'a> fn(&Training<'a>) -> Result<Box<dyn Baseline + 'a>>,
}

/// What a baseline has to be shown before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing but the durations of the videos asked about.
    Nothing,
    /// Where the moments of a training split lie.
    TrainingMoments,
}

/// How a baseline's answers come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answering {
    /// The same for every seed, and one for each query.
    Fixed,
    /// Drawn anew for every seed, as many as asked for.
    Drawn,
}

/// Finds the first verb of a sentence, in its base form; `None` when there is none.
pub type VerbOf<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// What a baseline may look at.
#[derive(Clone, Copy)]
pub struct Training<'a> {
    /// The training split; only where its moments lie and, for `bias-verb`, the sentences are looked at.
    pub truths: &'a [Truth],
    /// How verbs are found, for those who know them already; [`Training::of`] looks for them.
    pub first_verb: VerbOf<'a>,
}

impl<'a> Training<'a> {
    /// A training split whose sentences are tagged as they are needed.
    pub fn of(truths: &'a [Truth]) -> Self {
        Self { truths, first_verb: &cuemark_text::first_verb_lemma }
    }
}

/// Something that answers queries without seeing a video.
pub trait Baseline: Sync {
    /// One ranked list for each of `queries`, in their order: `answers` spans each where answers are drawn, otherwise one.
    ///
    /// # Errors
    /// When a query is about no single video or its duration is not known.
    fn predict(&self, queries: &[Truth], answers: usize, seed: u64) -> Result<Predictions>;
}

impl BaselineCard {
    /// Makes the baseline. Training moments are clipped to their video first.
    ///
    /// # Errors
    /// When it needs training moments and there are none, or a training video's duration is not known.
    pub fn fit<'a>(&self, training: &Training<'a>) -> Result<Box<dyn Baseline + 'a>> {
        (self.fit)(training)
    }
}

/// The baseline called `name`.
///
/// # Errors
/// When there is none; the hint lists those there are.
pub fn find(name: &str) -> Result<&'static BaselineCard> {
    BASELINES.iter().find(|card| card.name == name).copied().ok_or_else(|| ProtocolError::Unknown {
        kind: "baseline",
        name: name.to_owned(),
        known: BASELINES.iter().map(|card| card.name).collect(),
    })
}

/// The density of the training moments, each clipped to its video.
fn training_density(truths: &[Truth]) -> Result<Kde> {
    let spans: Vec<NormSpan> = pairs(truths)?.iter().map(|pair| pair.span.clipped()).collect();
    if spans.is_empty() {
        return Err(ProtocolError::NoMoments { what: "the training split".to_owned() });
    }
    Kde::fit(&spans)
}

/// Asks `answer` for each query's spans with their scores, best first, and puts them into seconds of its video.
fn answer_each(queries: &[Truth], mut answer: impl FnMut(&Truth) -> Vec<(NormSpan, f64)>) -> Result<Predictions> {
    let lists = queries.iter().map(|truth| {
        let (video, duration) = video_of(truth)?;
        let prediction = |(span, score): (NormSpan, f64)| Prediction {
            video: Some(video.clone()),
            span: span.to_span(duration),
            score: Some(score),
        };
        let ranked = answer(truth).into_iter().map(prediction).collect();
        Ok(QueryPredictions { query: truth.query.id.clone(), ranked, saliency: None, extra: Extra::default() })
    });
    Ok(Predictions::any(lists.collect::<Result<_>>()?))
}

/// Scores that only keep an order: 1, 1/2, 1/3 …
fn in_order(spans: impl IntoIterator<Item = NormSpan>) -> Vec<(NormSpan, f64)> {
    spans.into_iter().enumerate().map(|(rank, span)| (span, 1.0 / (rank + 1) as f64)).collect()
}

#[cfg(test)]
mod tests;
