//! Answers as everybody reads them: one form for the terminal's JSON, the page and Python.

use cuemark_media::Partial;
use cuemark_search::{Answer, Answers, Index, UnseenWord};
use serde::Serialize;

use crate::Result;

/// From here on an answer is called strong, or fair, where its probability is a guess.
const STRONG: f64 = 0.5;
const FAIR: f64 = 0.2;

/// Whether answers below the question's least probability are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// They are counted only.
    Likely,
    /// They follow the good ones.
    All,
}

/// Answers to a question, best first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct Found {
    /// The sentence that was asked.
    pub query: Option<String>,
    /// The moments.
    pub answers: Vec<FoundMoment>,
    /// How many moments are good enough; 0 means that nothing is.
    pub good: usize,
    /// How many were found that are not.
    pub below_least: usize,
    /// The probability of the best, good enough or not.
    pub best_probability: Option<f64>,
    /// What looked at the films: an encoder's name, or the folder of a trained run.
    pub encoder: String,
    /// Whether probabilities were fitted to answers with known truth. Where they were not, they put answers in order and say how
    /// strong one is beside the others, and nobody should call them likely by so many percent.
    pub calibrated: bool,
    /// Words that mean nothing to the encoder.
    pub unknown_words: Vec<String>,
    /// Words that nothing the encoder recognises comes near: by sight it cannot be asked for them.
    pub unseen: Vec<FoundUnseen>,
}

/// A moment that answers a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct FoundMoment {
    /// The video's name.
    pub video: String,
    /// Where it begins, in **seconds**.
    pub start: f64,
    /// Where it ends, in **seconds**.
    pub end: f64,
    /// The same as a pair.
    pub span: [f64; 2],
    /// Length of the video in **seconds**.
    pub duration: f64,
    /// That it answers the question, 0 to 1.
    pub probability: f64,
    /// The cosine between question and moment, less what is not wanted; of words, the share of the question that is there.
    pub score: f32,
    /// Words that speak for it, with their shares.
    pub words: Vec<FoundWord>,
    /// What was recognised in it and speaks for it, with shares; none for encoders that recognise nothing by name.
    pub concepts: Vec<FoundConcept>,
    /// What is seen, said or written there that speaks for it, the weightiest first.
    pub because: Vec<FoundBecause>,
    /// Whether there is a file to play.
    pub playable: bool,
    /// The video's file; `null` without one, and over HTTP, where it is nobody's business.
    pub path: Option<String>,
    /// What of the video's file could not be read; `null` of a whole film.
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<Object>))]
    pub partial: Option<Partial>,
}

/// A word that the encoder cannot see, and what comes nearest to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct FoundUnseen {
    /// As it was asked, in lower case.
    pub word: String,
    /// What comes nearest of all that is recognised.
    pub nearest: String,
}

/// A word and its share in an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct FoundWord {
    /// As the encoder reads it.
    pub word: String,
    /// 0 to 1.
    pub share: f64,
}

/// Something recognised and its share in an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct FoundConcept {
    /// Its name.
    pub concept: String,
    /// 0 to 1.
    pub share: f64,
}

/// What one track has to say for an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct FoundBecause {
    /// `seen`, `said` or `written`.
    pub track: &'static str,
    /// The words that are there, or what was recognised; empty where the encoder recognises nothing by name.
    pub text: String,
    /// Where it begins, in **seconds**.
    pub start: f64,
    /// Where it ends, in **seconds**.
    pub end: f64,
}

impl Found {
    /// `answers` of `index` as everybody reads them.
    ///
    /// # Errors
    /// When the engine cannot be read.
    pub fn of(index: &Index, query: Option<String>, answers: Answers, shown: Shown) -> Result<Self> {
        let (good, all) = (answers.good, answers.moments.len());
        let best_probability = answers.moments.first().map(|best| best.probability);
        let listed = match shown {
            Shown::Likely => good,
            Shown::All => all,
        };
        let moments = answers.moments.into_iter().take(listed).map(|answer| FoundMoment::of(index, answer));
        Ok(Self {
            query,
            answers: moments.collect::<Result<_>>()?,
            good,
            below_least: all.saturating_sub(good),
            best_probability,
            encoder: index.manifest().encoder.clone(),
            calibrated: index.calibration().is_fitted(),
            unknown_words: answers.unknown_words,
            unseen: answers.unseen.into_iter().map(FoundUnseen::of).collect(),
        })
    }

    /// The same without the places of files, for readers on other machines.
    #[must_use]
    pub fn without_paths(mut self) -> Self {
        self.answers.iter_mut().for_each(|answer| answer.path = None);
        self
    }
}

impl FoundUnseen {
    fn of(unseen: UnseenWord) -> Self {
        Self { word: unseen.word, nearest: unseen.nearest }
    }
}

impl FoundMoment {
    /// How strong it is, in a word: all that may be said where probabilities are a guess.
    pub fn strength(&self) -> &'static str {
        match self.probability {
            p if p >= STRONG => "strong",
            p if p >= FAIR => "fair",
            _ => "weak",
        }
    }

    fn of(index: &Index, answer: Answer) -> Result<Self> {
        let entry = index.engine().video(&answer.video)?;
        let duration = entry.as_ref().map_or(0.0, |entry| entry.duration);
        let partial = entry.as_ref().and_then(|entry| entry.partial.clone());
        let path = entry.and_then(|entry| entry.path).map(camino::Utf8PathBuf::into_string);
        let (start, end) = (answer.span.start(), answer.span.end());
        let words = answer.words.into_iter().map(|word| FoundWord { word: word.word, share: word.share });
        let concepts =
            answer.concepts.into_iter().map(|seen| FoundConcept { concept: seen.concept, share: seen.share });
        let because = answer.because.into_iter().map(|because| FoundBecause {
            track: because.track.name(),
            text: because.text,
            start: because.start,
            end: because.end,
        });
        Ok(Self {
            video: answer.video.to_string(),
            start,
            end,
            span: [start, end],
            duration,
            probability: answer.probability,
            score: answer.score,
            words: words.collect(),
            concepts: concepts.collect(),
            because: because.collect(),
            playable: path.is_some(),
            path,
            partial,
        })
    }
}
