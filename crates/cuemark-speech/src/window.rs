//! One window of sound, half a minute at the most, as lines with times.

use candle_core::Tensor;
use cuemark_core::{Line, Span, Word};

use crate::Result;
use crate::align::{self, Attention};
use crate::decode::{Speaker, Spoken};
use crate::guards::{self, Evidence};
use crate::mel::{HOP, MelBands};
use crate::network::{Said, Whisper};
use crate::vocabulary::Vocabulary;
use crate::weights::Rules;

/// Samples of one step of the encoder: 0.02 s.
const STEP: usize = 2 * HOP;
/// Words longer than this, or than twice the usual, have a pause in them, in seconds.
const LONG_WORD: f64 = 0.7;

/// Everything that a window is heard with.
pub(crate) struct Ear {
    pub(crate) whisper: Whisper,
    pub(crate) bands: MelBands,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) rules: Rules,
}

/// What came of one window.
#[derive(Debug, Default)]
pub(crate) struct HeardWindow {
    /// Lines with times in **seconds** from the window's start.
    pub(crate) lines: Vec<Line>,
    /// **Seconds** up to which it was understood.
    pub(crate) until: f64,
}

/// A line in pieces.
#[derive(Debug, Clone, PartialEq)]
struct Stretch {
    start: f64,
    end: f64,
    pieces: Vec<(u32, f32)>,
}

impl Ear {
    /// Samples that one window may have.
    pub(crate) fn most(&self) -> usize {
        self.whisper.encoder.frames() * HOP
    }

    /// Hears `samples`, in which somebody may be speaking for `voiced` seconds.
    pub(crate) fn hear(&self, samples: &[f32], voiced: f64) -> Result<HeardWindow> {
        let length = samples.len() as f64 / 16_000.0;
        let bands = self.bands.of(samples, self.whisper.encoder.frames())?;
        let said = self.whisper.hear(&bands)?;
        let speaker = Speaker { decoder: &self.whisper.decoder, vocabulary: &self.vocabulary, rules: &self.rules };
        let opening = speaker.opening(&said)?;
        let spoken = speaker.speak(&said, &opening)?;
        let (stretches, until) = self.stretches(&spoken, length);
        let text: Vec<u32> = stretches.iter().flat_map(|line| line.pieces.iter().map(|(piece, _)| *piece)).collect();
        let doubt = guards::doubt(Evidence {
            text: self.vocabulary.text(&text).trim(),
            mean_log_probability: spoken.mean_log_probability,
            no_speech: spoken.no_speech,
            voiced,
        });
        if doubt.is_some() {
            return Ok(HeardWindow { lines: Vec::new(), until: length });
        }
        let steps = samples.len().div_ceil(STEP).clamp(1, self.whisper.encoder.frames() / 2);
        let begins = self.begins(&said, &opening, &text, steps)?;
        let mut lines = Vec::with_capacity(stretches.len());
        let mut at = 0;
        for stretch in stretches {
            let own = &begins[at..=at + stretch.pieces.len()];
            at += stretch.pieces.len();
            lines.extend(self.line(&stretch, own, length));
        }
        Ok(HeardWindow { lines, until })
    }

    /// Lines between marks of time, and where the last mark stands.
    fn stretches(&self, spoken: &Spoken, length: f64) -> (Vec<Stretch>, f64) {
        let (mut stretches, mut pieces) = (Vec::new(), Vec::new());
        let (mut start, mut until) = (0.0, 0.0f64);
        for (piece, log_probability) in &spoken.pieces {
            if !self.vocabulary.is_time(*piece) {
                if self.vocabulary.is_text(*piece) {
                    pieces.push((*piece, *log_probability));
                }
                continue;
            }
            let time = self.vocabulary.seconds(*piece).min(length);
            if !pieces.is_empty() {
                stretches.push(Stretch { start, end: time, pieces: std::mem::take(&mut pieces) });
                until = until.max(time);
            }
            start = time;
        }
        if !pieces.is_empty() {
            stretches.push(Stretch { start, end: length, pieces });
            until = length;
        }
        (stretches, until)
    }

    /// The step at which each piece begins, and one more: where the last ends.
    fn begins(&self, said: &Said, opening: &[u32], text: &[u32], steps: usize) -> Result<Vec<usize>> {
        let mut pieces = opening.to_vec();
        pieces.push(self.vocabulary.no_times);
        let commands = pieces.len();
        pieces.extend(text);
        pieces.push(self.vocabulary.end);
        pieces.truncate(self.whisper.decoder.longest());
        let looked = self.whisper.decoder.attention(&mut said.again(), &pieces, &self.heads())?;
        let looked: Tensor = looked.narrow(2, 0, steps)?;
        let (heads, count, _) = looked.dims3()?;
        // Weights of the silence behind the window are left out, so the rest are scaled to one again.
        let sum = looked.sum_keepdim(2)?.maximum(1e-9)?;
        let weights = looked.broadcast_div(&sum)?.flatten_all()?.to_vec1::<f32>()?;
        let mut attention = Attention { weights, heads, pieces: count, steps };
        let map = align::map(&mut attention);
        // A row says where the decoder looked while it chose the piece *after* its own: the last command's row is the first
        // piece's, and the last piece's says where it ends.
        let rows = count - commands;
        let mut begins = align::begins(&map[(commands - 1) * steps..(commands - 1 + rows) * steps], rows, steps);
        begins.resize(text.len() + 1, steps);
        Ok(begins)
    }

    /// The heads that follow the sound: the release's, else all of the upper half.
    fn heads(&self) -> Vec<(usize, usize)> {
        let (layers, heads) = self.whisper.decoder.size();
        let known = self.rules.alignment_heads.iter().copied().filter(|(layer, head)| *layer < layers && *head < heads);
        let mut known: Vec<(usize, usize)> = known.collect();
        // In the order in which layers come.
        known.sort_unstable();
        if known.is_empty() {
            known = (layers / 2..layers).flat_map(|layer| (0..heads).map(move |head| (layer, head))).collect();
        }
        known
    }

    /// A line with its words; `None` of one without letters.
    fn line(&self, stretch: &Stretch, begins: &[usize], length: f64) -> Option<Line> {
        let seconds = |step: usize| (step as f64 * 0.02).min(length);
        let mut words: Vec<(Vec<u8>, f64, f64)> = Vec::new();
        for (index, (piece, _)) in stretch.pieces.iter().enumerate() {
            let bytes = self.vocabulary.bytes(*piece);
            let (start, end) = (seconds(begins[index]), seconds(begins[index + 1]));
            match words.last_mut() {
                Some(word) if !bytes.starts_with(b" ") => {
                    word.0.extend(bytes);
                    word.2 = end;
                }
                _ => words.push((bytes.to_vec(), start, end)),
            }
        }
        without_pauses(&mut words);
        let word = |(bytes, start, end): (Vec<u8>, f64, f64)| {
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            let span = Span::new(start, end.max(start)).ok()?;
            (!text.is_empty()).then_some(Word { span, text })
        };
        let words: Vec<Word> = words.into_iter().filter_map(word).collect();
        let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        if !text.chars().any(char::is_alphanumeric) {
            return None;
        }
        let (start, end) = match (words.first(), words.last()) {
            (Some(first), Some(last)) => (first.span.start(), last.span.end()),
            _ => (stretch.start, stretch.end),
        };
        let mean = stretch.pieces.iter().map(|(_, log)| *log).sum::<f32>() / stretch.pieces.len() as f32;
        Some(Line { span: Span::new(start, end.max(start)).ok()?, text, words, confidence: mean.exp().clamp(0.0, 1.0) })
    }
}

/// The path through the map gives silence to the word before or after it: a word far longer than usual at the start of a line begins
/// late, and elsewhere ends early.
fn without_pauses(words: &mut [(Vec<u8>, f64, f64)]) {
    let mut lengths: Vec<f64> = words.iter().map(|(_, start, end)| end - start).collect();
    lengths.sort_unstable_by(f64::total_cmp);
    let Some(median) = lengths.get(lengths.len() / 2) else { return };
    let most = LONG_WORD.max(2.0 * median.min(LONG_WORD));
    for (index, (_, start, end)) in words.iter_mut().enumerate() {
        if *end - *start > most {
            if index == 0 { *start = *end - most } else { *end = *start + most }
        }
    }
}
