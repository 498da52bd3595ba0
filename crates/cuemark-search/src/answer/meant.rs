//! What is said or written in other words than the question's: by what lines mean.

use std::sync::{Arc, PoisonError};

use cuemark_core::{Progress, Span, Track};
use rustc_hash::FxHashMap;

use super::fuse::{Because, shares_time};
use super::tracks::{CUES, SPEAKERS, has_cue};
use super::{Answer, Question};
use crate::words::{MeaningFile, Meanings, Utterance, is_filler, lemma, tokens, utterances};
use crate::{Embedding, EngineUrl, Index, Result};

/// The most lines, and pairs of lines, that are compared with a question.
const MOST: usize = 400_000;
/// The most that are encoded while somebody waits for an answer; the rest waits for the next `index add`.
const WHILE_ASKED: usize = 500;
/// Lines that are encoded together.
const TOGETHER: usize = 64;
/// How likely a line is the answer at the best, by its meaning alone.
const SUREST: f64 = 0.9;
/// The cosine at which a line is as likely meant as not, and how fast that changes. Fitted (logistic regression) on the hundred lines
/// of `fixtures/search/said.tsv`, each asked for in other words: the right line against the best wrong one, and against the best for
/// 99 questions about what is seen. By MiniLM the right one is nearest for 87 of them.
const EVEN: f64 = 0.41;
const STEEP: f64 = 22.0;
/// How much nearer a line must be where the question does not say that it is about words: few of those are.
const UNSAID: f64 = 0.08;
/// Below this cosine a line has nothing to do with a question.
const LEAST: f32 = 0.25;
/// Words that stand between who says something and what is said.
const BETWEEN: [&str; 24] = [
    "that", "about", "how", "whether", "to", "of", "where", "when", "which", "in", "can", "be", "heard", "is", "are",
    "part", "moment", "scene", "his", "her", "their", "who", "what", "us",
];

/// The utterances of an index with what each means.
#[derive(Debug, Default)]
pub(crate) struct Meant {
    all: Vec<(Utterance, Embedding)>,
}

/// How many videos and lines there were when utterances were collected.
pub(crate) type Counted = (usize, usize);

impl Index {
    /// Encodes every line that is new, and keeps what each means beside the log.
    ///
    /// # Errors
    /// When the engine cannot be read, a line cannot be encoded, the file cannot be written, or the work was stopped.
    pub(crate) fn settle_meanings(&self, progress: &Progress) -> Result<()> {
        let Some((by, width)) = self.encoder().means() else { return Ok(()) };
        let all = self.utterances()?;
        let EngineUrl::File(folder) = self.engine().url() else { return Ok(()) };
        let file = MeaningFile { folder: &folder, by: &by, width };
        let mut meanings = file.read();
        let before = meanings.len();
        meanings.keep(all.iter().map(|utterance| utterance.text.as_str()));
        let new = missing(&all, &meanings);
        if new.is_empty() && meanings.len() == before {
            return Ok(());
        }
        for texts in new.chunks(TOGETHER) {
            progress.check()?;
            self.encode_into(&mut meanings, texts)?;
        }
        file.write(&meanings).map_err(crate::SearchError::io("write", &folder))
    }

    /// Every utterance of every video that can be found.
    fn utterances(&self) -> Result<Vec<Utterance>> {
        let mut all = Vec::new();
        for entry in self.engine().videos()? {
            if all.len() >= MOST {
                break;
            }
            let lines = self.engine().lines(&entry.id)?.unwrap_or_default();
            all.extend(utterances(&entry.id, &lines));
        }
        all.truncate(MOST);
        Ok(all)
    }

    fn encode_into(&self, meanings: &mut Meanings, texts: &[&str]) -> Result<()> {
        let encoded = self.encoder().meanings(texts)?;
        texts.iter().zip(encoded).for_each(|(text, meaning)| meanings.insert(text, meaning));
        Ok(())
    }

    /// What everything means that is said and written, collected anew when videos or lines have come or gone.
    fn meant(&self) -> Result<Option<Arc<Meant>>> {
        let Some((by, width)) = self.encoder().means().filter(|_| self.engine().keeps_words()) else {
            return Ok(None);
        };
        let status = self.engine().status()?;
        let counted = (status.videos, status.lines);
        let mut known = self.meant_cell().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, meant)) = known.as_ref().filter(|(then, _)| *then == counted) {
            return Ok(Some(Arc::clone(meant)));
        }
        let all = if status.lines == 0 { Vec::new() } else { self.utterances()? };
        let mut meanings = match self.engine().url() {
            EngineUrl::File(folder) => MeaningFile { folder: &folder, by: &by, width }.read(),
            EngineUrl::Milvus { .. } => Meanings::default(),
        };
        let new = missing(&all, &meanings);
        for texts in new.get(..new.len().min(WHILE_ASKED)).unwrap_or_default().chunks(TOGETHER) {
            self.encode_into(&mut meanings, texts)?;
        }
        let with = |utterance: Utterance| Some((meanings.get(&utterance.text)?.clone(), utterance));
        let all = all.into_iter().filter_map(with).map(|(meaning, utterance)| (utterance, meaning)).collect();
        let meant = Arc::new(Meant { all });
        *known = Some((counted, Arc::clone(&meant)));
        Ok(Some(meant))
    }

    /// The lines that mean what the question asks for, the likeliest first.
    pub(super) fn answer_meant(&self, question: &Question) -> Result<Vec<Answer>> {
        let Some(text) = question.text.as_deref().map(what_is_said).filter(|text| !text.is_empty()) else {
            return Ok(Vec::new());
        };
        if question.like.is_some() || !question.phrases.is_empty() {
            return Ok(Vec::new());
        }
        let Some(meant) = self.meant()?.filter(|meant| !meant.all.is_empty()) else { return Ok(Vec::new()) };
        let Some(wanted) = self.encoder().meanings(&[text.as_str()])?.pop() else { return Ok(Vec::new()) };
        let about_words = !question.asks(Track::Seen) || question.text.as_deref().is_some_and(has_cue);
        let even = if about_words { EVEN } else { EVEN + UNSAID };
        let mut near: Vec<(f32, &Utterance)> = Vec::new();
        for (utterance, meaning) in &meant.all {
            let cosine = meaning.cosine(&wanted);
            if cosine >= LEAST && question.asks(utterance.track) && question.filter.admits_span(utterance.span) {
                near.push((cosine, utterance));
            }
        }
        near.sort_by(|a, b| {
            let better = b.0.total_cmp(&a.0).then_with(|| a.1.video.cmp(&b.1.video));
            better.then_with(|| a.1.span.start().total_cmp(&b.1.span.start()))
        });
        let mut admitted: FxHashMap<&cuemark_core::VideoId, bool> = FxHashMap::default();
        let mut answers: Vec<Answer> = Vec::new();
        for (cosine, utterance) in near {
            if answers.len() >= question.limit {
                break;
            }
            let is_admitted = match admitted.get(&utterance.video) {
                Some(known) => *known,
                None => {
                    let entry = self.engine().video(&utterance.video)?;
                    let admits = entry.is_some_and(|entry| question.filter.admits(&entry));
                    admitted.insert(&utterance.video, admits);
                    admits
                }
            };
            let answer = of_meaning(utterance, cosine, even);
            // A line and the same with its neighbour are one answer, the nearer one.
            if is_admitted && !answers.iter().any(|better| is_same(better, &answer)) {
                answers.push(answer);
            }
        }
        Ok(answers)
    }
}

fn missing<'a>(all: &'a [Utterance], meanings: &Meanings) -> Vec<&'a str> {
    let mut new: Vec<&str> = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    for utterance in all.iter().filter(|utterance| meanings.get(&utterance.text).is_none()) {
        if seen.insert(utterance.text.as_str()) {
            new.push(&utterance.text);
        }
    }
    new
}

/// That a line whose meaning is so near to the question's answers it.
fn probability(cosine: f32, confidence: f64, even: f64) -> f64 {
    SUREST * confidence.sqrt() / (1.0 + (-STEEP * (f64::from(cosine) - even)).exp())
}

fn of_meaning(utterance: &Utterance, cosine: f32, even: f64) -> Answer {
    let Utterance { video, track, span, text, confidence } = utterance;
    let because = Because { track: *track, text: text.clone(), start: span.start(), end: span.end() };
    Answer {
        video: video.clone(),
        span: *span,
        score: cosine,
        probability: probability(cosine, *confidence, even),
        words: Vec::new(),
        concepts: Vec::new(),
        because: vec![because],
    }
}

fn track(answer: &Answer) -> Option<Track> {
    answer.because.first().map(|because| because.track)
}

fn is_same(a: &Answer, b: &Answer) -> bool {
    let apart = |a: Span, b: Span| !shares_time(a, b);
    a.video == b.video && track(a) == track(b) && !apart(a.span, b.span)
}

/// Answers by words with those by meaning: where both speak for the same lines, the surer one counts, since they are one witness.
pub(super) fn with_meant(mut by_words: Vec<Answer>, by_meaning: Vec<Answer>) -> Vec<Answer> {
    for answer in by_meaning {
        match by_words.iter_mut().find(|known| is_same(known, &answer)) {
            Some(known) => known.probability = known.probability.max(answer.probability),
            None => by_words.push(answer),
        }
    }
    by_words
}

/// What is said where a question tells who says it: `the shop is closing` of `a man says that the shop is closing`. Questions that
/// do not begin so stay as they are.
pub(super) fn what_is_said(text: &str) -> String {
    let all = tokens(text);
    let mut cues = 0;
    let leads = |word: &&String| {
        let base = lemma(word);
        let is_cue = CUES.contains(&base.as_str());
        cues += usize::from(is_cue);
        let word = word.as_str();
        // `no entry` says something else than `entry`.
        let is_filler = is_filler(word) && word != "no";
        is_cue || SPEAKERS.contains(&base.as_str()) || is_filler || BETWEEN.contains(&word)
    };
    let lead = all.iter().take_while(leads).count();
    match all.get(lead..) {
        Some(rest) if cues > 0 && !rest.is_empty() => rest.join(" "),
        _ => all.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_it_is_no_part_of_what_is_said() {
        assert_eq!(what_is_said("a man says that the shop is closing"), "shop is closing");
        assert_eq!(what_is_said("somebody talks about how to bake bread"), "bake bread");
        assert_eq!(what_is_said("the weather gets worse, she says"), "the weather gets worse she says");
        assert_eq!(what_is_said("a man opens a door"), "a man opens a door", "nobody says anything");
        assert_eq!(what_is_said("a sign that reads no entry"), "no entry");
        assert_eq!(what_is_said("somebody speaks"), "somebody speaks", "nothing would be left");
    }

    #[test]
    fn words_and_meaning_of_one_line_are_one_witness_and_the_surer_counts() {
        let answer = |start: f64, probability: f64| {
            let span = Span::new(start, start + 2.0).unwrap();
            let because = Because { track: Track::Said, text: String::new(), start, end: start + 2.0 };
            let (words, concepts) = (Vec::new(), Vec::new());
            Answer { video: "v".into(), span, score: 0.0, probability, words, concepts, because: vec![because] }
        };
        let both = with_meant(vec![answer(0.0, 0.3)], vec![answer(0.5, 0.6), answer(10.0, 0.2)]);
        let told: Vec<(f64, f64)> = both.iter().map(|one| (one.span.start(), one.probability)).collect();
        assert_eq!(told, [(0.0, 0.6), (10.0, 0.2)]);
    }

    #[test]
    fn a_nearer_meaning_is_likelier_and_none_is_certain() {
        let plain = |cosine| probability(cosine, 1.0, EVEN);
        assert!(plain(0.2) < 0.02 && plain(0.8) > 0.8 && plain(1.0) < 0.95);
        assert!(probability(0.8, 0.3, EVEN) < plain(0.8) && probability(0.4, 1.0, EVEN + UNSAID) < plain(0.4));
    }
}
