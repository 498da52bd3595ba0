//! What lines mean: a vector for every line and for every two that follow each other, so that a question finds what was said in other
//! words than its own.
//!
//! Vectors are derived from the lines that an engine keeps, by the text alone. [`MeaningFile`] keeps them beside the log under the
//! hash of their text; what is missing there, or damaged, is made again.

use camino::Utf8Path;
use cuemark_core::digest::fnv1a;
use cuemark_core::{Line, Span, Track, VideoId};
use rustc_hash::FxHashMap;

use crate::Embedding;
use crate::engine::disk::{RealDisk, read_small, write_whole};

/// The file's name in the folder of an index.
const FILE: &str = "meanings";
/// The most bytes of it: a million lines.
const MOST_BYTES: u64 = 2 << 30;
/// **Seconds** between two lines that are taken together, at most.
const PAUSE: f64 = 4.0;
/// **Seconds** of two lines that are taken together, at most.
const LONGEST: f64 = 30.0;

/// A line, or two that follow each other: what may have been said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Utterance {
    pub(crate) video: VideoId,
    pub(crate) track: Track,
    pub(crate) span: Span,
    pub(crate) text: String,
    /// How sure the reader is of it, 0 to 1.
    pub(crate) confidence: f64,
}

/// Everything that is said and written in one video, line by line and two by two.
pub(crate) fn utterances(video: &VideoId, lines: &[(Track, Line)]) -> Vec<Utterance> {
    let one = |track: Track, line: &Line| Utterance {
        video: video.clone(),
        track,
        span: line.span,
        text: line.text.split_whitespace().collect::<Vec<_>>().join(" "),
        confidence: f64::from(line.confidence).clamp(0.0, 1.0),
    };
    let mut all: Vec<Utterance> = lines.iter().map(|(track, line)| one(*track, line)).collect();
    for pair in lines.windows(2) {
        let [(track, first), (other, second)] = pair else { continue };
        let pause = second.span.start() - first.span.end();
        let Ok(span) = Span::new(first.span.start(), second.span.end()) else { continue };
        if track == other && pause <= PAUSE && span.len() <= LONGEST {
            let (a, b) = (one(*track, first), one(*track, second));
            let confidence = a.confidence.midpoint(b.confidence);
            all.push(Utterance { span, text: format!("{} {}", a.text, b.text), confidence, ..a });
        }
    }
    all.retain(|utterance| utterance.text.chars().any(char::is_alphabetic));
    all
}

/// Vectors by the hash of the text that they are of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meanings(FxHashMap<u64, Embedding>);

impl Meanings {
    pub(crate) fn get(&self, text: &str) -> Option<&Embedding> {
        self.0.get(&fnv1a(text.as_bytes()))
    }

    pub(crate) fn insert(&mut self, text: &str, meaning: Embedding) {
        self.0.insert(fnv1a(text.as_bytes()), meaning);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Only those of these texts.
    pub(crate) fn keep<'a>(&mut self, texts: impl Iterator<Item = &'a str>) {
        let wanted: rustc_hash::FxHashSet<u64> = texts.map(|text| fnv1a(text.as_bytes())).collect();
        self.0.retain(|key, _| wanted.contains(key));
    }
}

/// The file beside the log: a heading that says whose vectors they are, a checksum, then hash and numbers of each.
pub(crate) struct MeaningFile<'a> {
    /// The folder of the index.
    pub(crate) folder: &'a Utf8Path,
    /// What made the vectors.
    pub(crate) by: &'a str,
    /// Numbers of each.
    pub(crate) width: usize,
}

impl MeaningFile<'_> {
    fn heading(&self) -> String {
        format!("cuemark meanings 1, {} numbers by {}\n", self.width, self.by.replace('\n', " "))
    }

    /// What is there; nothing of another encoder, and nothing that is damaged: it can be made again.
    pub(crate) fn read(&self) -> Meanings {
        let Ok(bytes) = read_small(&RealDisk, &self.folder.join(FILE), MOST_BYTES) else { return Meanings::default() };
        self.parse(&bytes).unwrap_or_default()
    }

    fn parse(&self, bytes: &[u8]) -> Option<Meanings> {
        let (sum, rows) = bytes.strip_prefix(self.heading().as_bytes())?.split_first_chunk::<8>()?;
        let size = 8 + 4 * self.width;
        if self.width == 0 || !rows.len().is_multiple_of(size) || fnv1a(rows) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut all = Meanings::default();
        for row in rows.chunks_exact(size) {
            let (key, numbers) = row.split_first_chunk::<8>()?;
            let numbers = numbers.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
            all.0.insert(u64::from_le_bytes(*key), Embedding::unit(numbers)?);
        }
        Some(all)
    }

    /// Puts them there, whole or not at all.
    pub(crate) fn write(&self, meanings: &Meanings) -> std::io::Result<()> {
        let mut keys: Vec<&u64> = meanings.0.keys().collect();
        keys.sort_unstable();
        let mut rows = Vec::with_capacity(keys.len() * (8 + 4 * self.width));
        for key in keys {
            rows.extend(key.to_le_bytes());
            let numbers = meanings.0.get(key).map(Embedding::numbers).unwrap_or_default();
            rows.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        let mut bytes = self.heading().into_bytes();
        bytes.extend(fnv1a(&rows).to_le_bytes());
        bytes.extend(rows);
        write_whole(&RealDisk, self.folder, "meanings.part", FILE, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    fn line(start: f64, end: f64, text: &str) -> Line {
        Line { span: Span::new(start, end).unwrap(), text: text.to_owned(), words: Vec::new(), confidence: 1.0 }
    }

    #[test]
    fn a_line_stands_alone_and_with_the_next_one_of_its_track() {
        let lines = [
            (Track::Said, line(0.0, 2.0, "we are closing")),
            (Track::Said, line(2.5, 4.0, " the shop\nfor good ")),
            (Track::Said, line(30.0, 31.0, "later")),
            (Track::Written, line(0.0, 4.0, "EXIT")),
            (Track::Written, line(5.0, 6.0, "12:40")),
        ];
        let all = utterances(&"v".into(), &lines);
        let texts: Vec<&str> = all.iter().map(|utterance| utterance.text.as_str()).collect();
        let pairs = ["we are closing the shop for good", "EXIT 12:40"];
        assert_eq!(texts, [["we are closing", "the shop for good", "later", "EXIT"].as_slice(), &pairs].concat());
        assert_eq!((all[4].span.start(), all[4].span.end()), (0.0, 4.0));
    }

    #[test]
    fn vectors_are_read_as_they_were_written_and_what_is_damaged_or_of_another_is_not() {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        let file = MeaningFile { folder: &folder, by: "minilm", width: 2 };
        assert_eq!(file.read().len(), 0);
        let mut all = Meanings::default();
        all.insert("good morning", Embedding::unit(vec![1.0, 0.0]).unwrap());
        all.insert("good night", Embedding::unit(vec![0.6, 0.8]).unwrap());
        file.write(&all).unwrap();
        let read = file.read();
        assert_eq!((read.len(), read.get("good night")), (2, all.get("good night")));
        assert_eq!(MeaningFile { by: "another", ..file }.read().len(), 0);
        let file = MeaningFile { folder: &folder, by: "minilm", width: 2 };
        let mut bytes = std::fs::read(folder.join(FILE)).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(folder.join(FILE), bytes).unwrap();
        assert_eq!(file.read().len(), 0);
        all.keep(std::iter::once("good night"));
        assert_eq!((all.len(), all.get("good morning")), (1, None));
    }
}
