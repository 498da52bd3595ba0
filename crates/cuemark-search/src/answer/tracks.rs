//! A question asked of every track that it is for: what is seen, what is said, what is written.

use cuemark_core::{Line, Track, VideoId};

use super::fuse::{fused, of_seen, of_words, probability};
use super::meant::with_meant;
use super::{Answer, Answers, Calibration, Question, STRIP};
use crate::engine::no_words;
use crate::words::{AskedWord, Forms, Phrase, WordsAsked, is_filler, lemma, tokens};
use crate::{Index, Passages, Result, SearchError};

/// What a word counts that only says how the rest is told.
const CUE_WEIGHT: f64 = 0.2;
/// What a picture counts for a question that says that it is about words.
const SEEN_BESIDE_CUES: f64 = 0.5;
/// What an answer below the encoder's cut keeps of the least probability that is asked for: no answer by itself, nearly one.
const BELOW_CUT: f64 = 0.99;
/// Words, in their base form, that say that the rest is said or written.
pub(super) const CUES: [&str; 26] = [
    "say", "tell", "talk", "speak", "mention", "ask", "explain", "discuss", "announce", "describe", "quote", "shout",
    "whisper", "read", "write", "written", "text", "caption", "subtitle", "title", "sign", "label", "screen", "word",
    "slide", "voice",
];
/// Who says so, mostly.
pub(super) const SPEAKERS: [&str; 14] = [
    "somebody",
    "someone",
    "person",
    "people",
    "man",
    "woman",
    "speaker",
    "narrator",
    "host",
    "presenter",
    "guy",
    "girl",
    "boy",
    "character",
];

impl Index {
    /// Answers a question: every track that it asks gives its stretches, which become one ranking.
    ///
    /// # Errors
    /// When the question asks nothing, names a video that is not there, asks for words where the engine keeps none, and those of
    /// the encoder and the engine.
    pub fn answer(&self, question: &Question) -> Result<Answers> {
        self.answer_by(question, &self.calibration())
    }

    /// The same by another curve than the index's own.
    ///
    /// # Errors
    /// As [`Index::answer`].
    pub fn answer_by(&self, question: &Question, curve: &Calibration) -> Result<Answers> {
        let words = self.answer_words(question)?;
        let mut answers = match self.seen(question, curve) {
            Ok(seen) => seen,
            // What means nothing to the encoder may have been said all the same.
            Err(SearchError::Question { .. }) if !words.passages.is_empty() => Answers::none(),
            Err(error) => return Err(error),
        };
        // Where something is said, what every sentence needs is no loss.
        let is_known = |word: &String| words.known.contains(word) || (!words.known.is_empty() && is_filler(word));
        answers.unknown_words.retain(|word| !tokens(word).iter().all(is_known));
        answers.unseen.retain(|unseen| !tokens(&unseen.word).iter().all(is_known));
        let asks_for_words = question.asks(Track::Said) || question.asks(Track::Written);
        let meant = if asks_for_words { self.answer_meant(question)? } else { Vec::new() };
        let spoken = with_meant(words.passages.into_iter().map(of_words).collect(), meant);
        let about_words = question.text.as_deref().is_some_and(has_cue) && !spoken.is_empty();
        // Who asks for everything gets it in the order in which others get what is good enough.
        let held = if question.least > 0.0 { question.least } else { Question::LEAST };
        let least = if curve.leaves_it_to_the_cut(question.least) { held } else { question.least };
        let mut seen = Vec::new();
        for (place, answer) in std::mem::take(&mut answers.moments).into_iter().enumerate() {
            let mut answer = of_seen(answer);
            if about_words {
                answer.probability *= SEEN_BESIDE_CUES;
            }
            if place < answers.good {
                // Above the cut it is good enough, whatever a curve that nobody fitted says.
                answer.probability = answer.probability.max(least);
            } else if answer.probability >= held {
                // Below the cut the pictures alone do not carry an answer: it takes a second witness.
                answer.probability = BELOW_CUT * held;
            }
            if !self.is_unsaid(question, &answer)? {
                seen.push(answer);
            }
        }
        if !question.phrases.is_empty() {
            // Pictures have no words: they only add to what has them.
            let is_beside = |seen: &Answer| spoken.iter().any(|said| said.video == seen.video);
            seen.retain(is_beside);
        }
        let mut moments = fused(spoken.into_iter().chain(seen).collect());
        if !question.phrases.is_empty() {
            moments.retain(|answer| answer.because.iter().any(|because| because.track != Track::Seen));
        }
        moments.truncate(question.limit);
        let good = moments.iter().filter(|answer| answer.probability >= question.least).count();
        Ok(Answers { moments, good, ..answers })
    }

    /// Where along a video a question scores high: [`STRIP`] probabilities, evenly over the video.
    ///
    /// # Errors
    /// As [`Index::answer`].
    pub fn strip(&self, question: &Question, video: &VideoId) -> Result<Vec<f64>> {
        let Some(entry) = self.engine().video(video)? else {
            return Err(SearchError::UnknownVideo { video: video.clone() });
        };
        let filter =
            crate::Filter { videos: Some(std::iter::once(video.clone()).collect()), ..question.filter.clone() };
        let inside = Question { filter, ..question.clone() };
        let words = self.answer_words(&inside)?;
        let shows = question.asks(Track::Seen) && (question.text.is_some() || question.like.is_some());
        let mut strip = match if shows { self.strip_seen(question, video) } else { Ok(Vec::new()) } {
            Err(SearchError::Question { .. }) if !words.passages.is_empty() => Vec::new(),
            strip => strip?,
        };
        strip.resize(STRIP, 0.0);
        let cell = (entry.duration / STRIP as f64).max(f64::MIN_POSITIVE);
        for passage in &words.passages {
            let first = (passage.span.start() / cell).floor() as usize;
            let end = ((passage.span.end() / cell).ceil() as usize).min(STRIP);
            for known in strip.iter_mut().take(end).skip(first) {
                *known = 1.0 - (1.0 - *known) * (1.0 - probability(passage));
            }
        }
        Ok(strip)
    }

    /// The lines that are said and written in a video, those that are said first, each track in the order of time.
    ///
    /// # Errors
    /// When the video is not there, or the engine cannot be read.
    pub fn lines(&self, video: &VideoId) -> Result<Vec<(Track, Line)>> {
        self.engine().lines(video)?.ok_or_else(|| SearchError::UnknownVideo { video: video.clone() })
    }

    /// What the pictures answer; nothing where they are not asked.
    fn seen(&self, question: &Question, curve: &Calibration) -> Result<Answers> {
        let asks_nothing = question.text.is_none() && question.like.is_none();
        if !question.asks(Track::Seen) || (asks_nothing && !question.phrases.is_empty()) {
            return Ok(Answers::none());
        }
        self.answer_seen(question, curve)
    }

    /// What words answer; nothing where they are not asked.
    fn answer_words(&self, question: &Question) -> Result<Passages> {
        let tracks: Vec<Track> =
            [Track::Said, Track::Written].into_iter().filter(|track| question.asks(*track)).collect();
        if tracks.is_empty() || question.like.is_some() || (question.text.is_none() && question.phrases.is_empty()) {
            return Ok(Passages::default());
        }
        let needs_words = !question.phrases.is_empty() || !question.asks(Track::Seen);
        if !self.engine().keeps_words() {
            return if needs_words { Err(no_words(&self.engine().url())) } else { Ok(Passages::default()) };
        }
        for video in question.filter.videos.iter().flatten() {
            if self.engine().video(video)?.is_none() {
                return Err(SearchError::UnknownVideo { video: video.clone() });
            }
        }
        self.engine().passages(&words_asked(question, tracks), &question.filter)
    }

    /// Whether something is said or written during an answer that must not be.
    fn is_unsaid(&self, question: &Question, answer: &Answer) -> Result<bool> {
        if question.unsaid.is_empty() {
            return Ok(false);
        }
        let lines = self.engine().lines(&answer.video)?.unwrap_or_default();
        let heard = lines
            .iter()
            .filter(|(_, line)| line.span.start() < answer.span.end() && answer.span.start() < line.span.end());
        let heard: Vec<Vec<String>> = heard.map(|(_, line)| tokens(&line.text)).collect();
        let has = |phrase: &String| {
            let phrase = tokens(phrase);
            !phrase.is_empty() && heard.iter().any(|line| line.windows(phrase.len()).any(|words| words == phrase))
        };
        Ok(question.unsaid.iter().any(has))
    }
}

pub(super) fn has_cue(text: &str) -> bool {
    tokens(text).iter().any(|word| CUES.contains(&lemma(word).as_str()))
}

/// A question as words to look for.
fn words_asked(question: &Question, tracks: Vec<Track>) -> WordsAsked {
    let text = question.text.as_deref().unwrap_or_default();
    let all = tokens(text);
    let about_words = all.iter().any(|word| CUES.contains(&lemma(word).as_str()));
    let mut telling: Vec<String> = all.iter().filter(|word| !is_filler(word)).cloned().collect();
    if telling.is_empty() {
        telling = all;
    }
    let weigh = |word: String| {
        let base = lemma(&word);
        let only_tells = about_words && (CUES.contains(&base.as_str()) || SPEAKERS.contains(&base.as_str()));
        AskedWord { word, weight: if only_tells { CUE_WEIGHT } else { 1.0 } }
    };
    let phrase = |forms| move |text: &String| Phrase { words: tokens(text), forms };
    let mut without: Vec<Phrase> = question.unsaid.iter().map(phrase(Forms::AsTheyAre)).collect();
    without.extend(question.not.iter().map(phrase(Forms::Any)));
    without.retain(|phrase| !phrase.words.is_empty());
    let mut seen = rustc_hash::FxHashSet::default();
    let words = telling.into_iter().filter(|word| seen.insert(lemma(word))).map(weigh).collect();
    let phrases =
        question.phrases.iter().map(phrase(Forms::AsTheyAre)).filter(|phrase| !phrase.words.is_empty()).collect();
    WordsAsked { words, phrases, without, tracks, limit: question.limit }
}
