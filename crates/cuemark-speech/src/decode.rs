//! What the network says of one window: the likeliest piece each time, within the rules that times keep.

use crate::Result;
use crate::guards::loop_at_end;
use crate::network::{Decoder, Said};
use crate::numeric::log_sum_exp;
use crate::vocabulary::Vocabulary;
use crate::weights::Rules;

/// The latest time that the first line of a window may begin at, in steps of 0.02 s: one second.
const FIRST_TIME: u32 = 50;
/// How often it is looked whether the network goes round in circles, in pieces.
const LOOK: usize = 8;

/// What was said, and how sure the network is.
#[derive(Debug, Default)]
pub(crate) struct Spoken {
    /// Pieces and times, each with the logarithm of its probability.
    pub(crate) pieces: Vec<(u32, f32)>,
    /// Mean of the logarithms, the end included.
    pub(crate) mean_log_probability: f32,
    /// How likely nobody speaks.
    pub(crate) no_speech: f32,
}

/// What decoding needs beside the network.
pub(crate) struct Speaker<'a> {
    pub(crate) decoder: &'a Decoder,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) rules: &'a Rules,
}

impl Speaker<'_> {
    /// The commands that a window begins with: for several languages the one it is in, by the network's own judgement.
    pub(crate) fn opening(&self, said: &Said) -> Result<Vec<u32>> {
        let mut opening = vec![self.vocabulary.begin];
        if let (Some(transcribe), false) = (self.vocabulary.transcribe, self.vocabulary.languages.is_empty()) {
            let scores = self.decoder.next(&mut said.again(), &opening)?;
            let score = |language: u32| scores.get(language as usize).copied().unwrap_or(f32::NEG_INFINITY);
            let numbers = self.vocabulary.languages.iter().map(|(number, _)| *number);
            opening.extend(numbers.max_by(|a, b| score(*a).total_cmp(&score(*b))));
            opening.push(transcribe);
        }
        Ok(opening)
    }

    /// Everything that the network says of the sound, until its end or half of what it can hold.
    pub(crate) fn speak(&self, said: &Said, opening: &[u32]) -> Result<Spoken> {
        let mut said = said.again();
        let mut spoken = Spoken::default();
        let most = (self.decoder.longest() / 2).min(self.decoder.longest().saturating_sub(opening.len() + 1));
        // What it thinks of silence it says before any other command.
        let mut scores = self.decoder.next(&mut said, &opening[..1])?;
        if let Some(score) = self.vocabulary.no_speech.and_then(|piece| scores.get(piece as usize)) {
            spoken.no_speech = (score - log_sum_exp(&scores)).exp();
        }
        if opening.len() > 1 {
            scores = self.decoder.next(&mut said, &opening[1..])?;
        }
        let mut sum = 0f32;
        loop {
            self.forbid(&mut scores, &spoken.pieces);
            let Some((piece, score)) = likeliest(&scores) else { break };
            let log_probability = score - log_sum_exp(&scores);
            sum += log_probability;
            if piece == self.vocabulary.end {
                break;
            }
            spoken.pieces.push((piece, log_probability));
            if spoken.pieces.len() >= most || self.goes_round(&mut spoken) {
                break;
            }
            scores = self.decoder.next(&mut said, &[piece])?;
        }
        spoken.mean_log_probability = sum / (spoken.pieces.len() + 1) as f32;
        Ok(spoken)
    }

    /// Leaves one of the phrases that the network says again and again.
    fn goes_round(&self, spoken: &mut Spoken) -> bool {
        if !spoken.pieces.len().is_multiple_of(LOOK) {
            return false;
        }
        let is_text = |(piece, _): &(u32, f32)| self.vocabulary.is_text(*piece);
        let text: Vec<u32> = spoken.pieces.iter().filter(|piece| is_text(piece)).map(|(piece, _)| *piece).collect();
        let Some(period) = loop_at_end(&text) else { return false };
        let mut first = text.len() - period;
        while first >= period && text[first - period..first] == text[first..first + period] {
            first -= period;
        }
        // The first time it was said stays, its times with it.
        let mut kept = first + period;
        let cut = spoken.pieces.iter().position(|piece| {
            let over = kept == 0 && is_text(piece);
            kept -= usize::from(kept > 0 && is_text(piece));
            over
        });
        spoken.pieces.truncate(cut.unwrap_or(spoken.pieces.len()));
        true
    }

    /// Rules out what may not come next.
    fn forbid(&self, scores: &mut [f32], before: &[(u32, f32)]) {
        let Vocabulary { end, first_time, no_times, .. } = *self.vocabulary;
        let first = (first_time as usize).min(scores.len());
        for piece in self.rules.never.iter().chain([&no_times]) {
            forbid(scores, *piece as usize..*piece as usize + 1);
        }
        let is_time = |back: usize| before.len().checked_sub(back).map(|at| self.vocabulary.is_time(before[at].0));
        // Times come in pairs, the end of one line and the start of the next, but at the start and before the end.
        let (last, before_last) = (is_time(1) == Some(true), is_time(2) != Some(false));
        if last && before_last {
            forbid(scores, first..usize::MAX);
        } else if last {
            forbid(scores, 0..end as usize);
        }
        // They never go back, and a line lasts.
        if let Some((time, _)) = before.iter().rev().find(|(piece, _)| self.vocabulary.is_time(*piece)) {
            let earliest = if last && !before_last { *time } else { *time + 1 };
            forbid(scores, first..earliest as usize);
        }
        if before.is_empty() {
            for piece in &self.rules.never_first {
                forbid(scores, *piece as usize..*piece as usize + 1);
            }
            forbid(scores, 0..first);
            forbid(scores, (first_time + FIRST_TIME + 1) as usize..usize::MAX);
        }
        // Where some time is likelier than any one piece of text, it is a time.
        let (text, times) = scores.split_at(first);
        let best = text.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if log_sum_exp(times) > best {
            forbid(scores, 0..first);
        }
    }
}

fn forbid(scores: &mut [f32], pieces: std::ops::Range<usize>) {
    let (start, end) = (pieces.start.min(scores.len()), pieces.end.min(scores.len()));
    if start < end {
        scores[start..end].fill(f32::NEG_INFINITY);
    }
}

/// The piece with the largest score, the first of several; `None` when all are ruled out.
fn likeliest(scores: &[f32]) -> Option<(u32, f32)> {
    let mut best = None;
    for (piece, score) in scores.iter().enumerate() {
        if *score > best.map_or(f32::NEG_INFINITY, |(_, score)| score) {
            best = Some((piece as u32, *score));
        }
    }
    best
}
