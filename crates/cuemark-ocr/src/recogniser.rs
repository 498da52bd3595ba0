//! What a line says.

use camino::Utf8Path;
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use crate::Result;
use crate::network::Network;
use crate::picture::Picture;

/// The height at which lines are read, in pixels.
const HEIGHT: usize = 48;
/// And the least width of a batch, by height.
const LEAST_RATIO: f64 = 320.0 / 48.0;
/// Longer lines are squeezed. No line of text is a hundred times as long as high; a hair across a picture is.
const MOST_RATIO: f64 = 100.0;
/// Lines in one call. They are padded to the longest of them, which the network sees, so this is part of what it was tuned to.
const BATCH: usize = 6;

/// Between two characters there is a space when the network gave it at least this chance. It was trained on Chinese and rarely lets a
/// space win over nothing. Of 754 spaces in drawn lines all have this chance, of 3,446 places inside words two.
const SPACE: f32 = 0.03;

/// What was read in one line.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    /// The likeliest characters.
    pub(crate) text: String,
    /// The same with every space that the network suspects, for whoever looks for words.
    pub(crate) words: String,
    /// The mean over characters, between 0 and 1; 0 where there are none.
    pub(crate) confidence: f32,
}

/// The network that reads.
#[derive(Debug)]
pub(crate) struct Recogniser {
    network: Network,
    alphabet: Alphabet,
}

impl Recogniser {
    pub(crate) fn open(folder: &Utf8Path) -> Result<Self> {
        let network = Network::open(folder, "recognition.onnx", "PP-OCR's text recogniser")?;
        let Some(characters) = network.remark("character") else {
            return Err(network.unfit("it does not list its characters"));
        };
        let alphabet = Alphabet::new(characters);
        Ok(Self { network, alphabet })
    }

    /// Reads `lines`, in their order. `go_on` is asked before each call of the network.
    pub(crate) fn read(&self, lines: &[Picture], go_on: &dyn Fn() -> Result<()>) -> Result<Vec<Reading>> {
        let ratio = |line: &Picture| (line.width as f64 / line.height as f64).min(MOST_RATIO);
        // Lines of like length in one call.
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by(|a, b| ratio(&lines[*a]).total_cmp(&ratio(&lines[*b])));
        let mut readings = vec![Reading::default(); lines.len()];
        for batch in order.chunks(BATCH) {
            go_on()?;
            let widest = batch.iter().map(|at| ratio(&lines[*at])).fold(LEAST_RATIO, f64::max);
            let width = (HEIGHT as f64 * widest) as usize;
            let plane = 3 * width * HEIGHT;
            let mut planes = vec![0.0; batch.len() * plane];
            for (at, planes) in batch.iter().zip(planes.chunks_exact_mut(plane)) {
                let own = (HEIGHT as f64 * ratio(&lines[*at])).ceil() as usize;
                lines[*at].resized(own.clamp(1, width), HEIGHT).fill_planes(planes, width);
            }
            let output = self.network.run::<3>(&NdTensor::from_data([batch.len(), 3, HEIGHT, width], planes))?;
            let [count, steps, characters] = output.shape();
            if (count, characters) != (batch.len(), self.alphabet.size()) || steps == 0 {
                let wanted = format!("of {} lines in {} characters", batch.len(), self.alphabet.size());
                return Err(self.network.unfit(format!("{wanted} it gives {:?}", output.shape())));
            }
            let likely = output.to_vec();
            for (at, likely) in batch.iter().zip(likely.chunks_exact(steps * characters)) {
                readings[*at] = self.alphabet.decoded(likely);
            }
        }
        Ok(readings)
    }
}

/// The characters that a network tells apart: nothing, those of its list, and the space.
#[derive(Debug)]
struct Alphabet(Vec<Box<str>>);

impl Alphabet {
    /// Of a list with one character a line.
    fn new(list: &str) -> Self {
        Self(std::iter::once("").chain(list.lines()).chain([" "]).map(Box::from).collect())
    }

    fn size(&self) -> usize {
        self.0.len()
    }

    /// The likeliest character of each step; repetitions are one, and what "nothing" stands between is two (CTC).
    fn decoded(&self, likely: &[f32]) -> Reading {
        let mut reading = Reading::default();
        let (mut sum, mut count) = (0.0, 0_usize);
        let (mut last, mut space) = (0, 0.0_f32);
        for step in likely.chunks_exact(self.size()) {
            let mut best = 0;
            for (character, chance) in step.iter().enumerate() {
                if *chance > step[best] {
                    best = character;
                }
            }
            space = space.max(step[self.size() - 1]);
            if best != last && best != 0 {
                let character = &self.0[best];
                let apart = character.as_ref() == " " || reading.words.is_empty() || reading.words.ends_with(' ');
                if space >= SPACE && !apart {
                    reading.words.push(' ');
                }
                reading.text.push_str(character);
                reading.words.push_str(character);
                sum += f64::from(step[best]);
                count += 1;
                space = 0.0;
            }
            last = best;
        }
        reading.confidence = if count == 0 { 0.0 } else { (sum / count as f64) as f32 };
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps in which one character of four is likely.
    fn steps(of: &[(usize, f32)]) -> Vec<f32> {
        let step = |(character, chance): &(usize, f32)| {
            let mut step = [0.001; 4];
            step[*character] = *chance;
            step
        };
        of.iter().flat_map(step).collect()
    }

    #[test]
    fn repetitions_are_one_character_unless_nothing_stands_between() {
        let alphabet = Alphabet::new("a\nb");
        assert_eq!(alphabet.size(), 4);
        let read = alphabet.decoded(&steps(&[(0, 0.9), (1, 0.8), (1, 0.2), (0, 0.9), (1, 0.6), (3, 0.7), (2, 0.5)]));
        assert_eq!(read.text, "aa b");
        // The first of a repetition counts: (0.8 + 0.6 + 0.7 + 0.5) / 4.
        assert!((read.confidence - 0.65).abs() < 1e-6);
    }

    #[test]
    fn a_line_of_nothing_says_nothing() {
        let read = Alphabet::new("a\nb").decoded(&steps(&[(0, 0.9), (0, 0.9)]));
        assert_eq!(read, Reading::default());
        assert_eq!(Alphabet::new("a\nb").decoded(&[f32::NAN; 8]).text, "");
    }

    #[test]
    fn a_space_that_was_only_suspected_parts_words() {
        let alphabet = Alphabet::new("a\nb");
        let mut likely = steps(&[(1, 0.9), (0, 0.9), (2, 0.9), (0, 0.9), (1, 0.9)]);
        likely[4 + 3] = 0.05; // a space between the first two, which loses
        let read = alphabet.decoded(&likely);
        assert_eq!((read.text.as_str(), read.words.as_str()), ("aba", "a ba"));
    }
}
