//! What the numbers that a decoder says stand for: pieces of words, marks of time, and commands.

use std::collections::BTreeMap;

use camino::Utf8Path;
use serde::Deserialize;

use crate::weights::json;
use crate::{Result, SpeechError};

/// The most pieces; Whisper has 51,866 at the most.
const MOST_PIECES: usize = 1 << 18;

/// Pieces by number, and the numbers of commands.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    /// Bytes of every piece, empty for commands and times.
    pieces: Vec<Vec<u8>>,
    /// The end of a window.
    pub(crate) end: u32,
    /// The command to begin.
    pub(crate) begin: u32,
    /// The command to transcribe, of networks that know several languages.
    pub(crate) transcribe: Option<u32>,
    /// "nobody speaks".
    pub(crate) no_speech: Option<u32>,
    /// The command to leave times out.
    pub(crate) no_times: u32,
    /// `<|0.00|>`; the next is 0.02 s later.
    pub(crate) first_time: u32,
    /// The languages, by number and code; empty for a network that knows English alone.
    pub(crate) languages: Vec<(u32, String)>,
}

#[derive(Deserialize)]
struct TokenizerFile {
    model: Model,
    #[serde(default)]
    added_tokens: Vec<Added>,
}

#[derive(Deserialize)]
struct Model {
    vocab: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
}

impl Vocabulary {
    /// Reads `tokenizer.json` of a folder; `size` is how many pieces the network knows.
    pub(crate) fn read(folder: &Utf8Path, size: usize) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        let unfit = |problem: String| SpeechError::unfit(&path, "the pieces of a Whisper", problem);
        Self::of(&json(&path)?, size).map_err(unfit)
    }

    fn of(file: &TokenizerFile, size: usize) -> Result<Self, String> {
        if size > MOST_PIECES {
            return Err(format!("the network speaks of {size} pieces"));
        }
        let bytes = bytes_of_letters();
        let mut pieces = vec![Vec::new(); size];
        for (text, id) in &file.model.vocab {
            // Numbers beyond the network's can never be said.
            if let Some(piece) = pieces.get_mut(*id as usize) {
                *piece = text.chars().filter_map(|letter| bytes.get(&letter).copied()).collect();
            }
        }
        let mut commands: BTreeMap<&str, u32> = BTreeMap::new();
        for (text, id) in file.added_tokens.iter().map(|added| (added.content.as_str(), added.id)) {
            commands.insert(text, id);
        }
        for (text, id) in file.model.vocab.iter().filter(|(text, _)| text.starts_with("<|")) {
            commands.entry(text).or_insert(*id);
        }
        let known = |name: &str| commands.get(name).copied().filter(|id| (*id as usize) < size);
        let command = |name: &str| known(name).ok_or_else(|| format!("it has no `{name}`"));
        let (end, begin, no_times) =
            (command("<|endoftext|>")?, command("<|startoftranscript|>")?, command("<|notimestamps|>")?);
        for id in commands.values() {
            if let Some(piece) = pieces.get_mut(*id as usize) {
                piece.clear();
            }
        }
        // Networks that know English alone have the commands of languages too, but were never told to use them; their end is one
        // number earlier.
        let speaks_many = end == 50_257;
        let is_language =
            |name: &str| (2..=3).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_lowercase());
        let languages = commands.iter().filter_map(|(text, id)| {
            let name = text.strip_prefix("<|")?.strip_suffix("|>").filter(|name| is_language(name))?;
            (speaks_many && (*id as usize) < size).then(|| (*id, name.to_owned()))
        });
        Ok(Self {
            end,
            begin,
            transcribe: known("<|transcribe|>").filter(|_| speaks_many),
            no_speech: known("<|nospeech|>").or_else(|| known("<|nocaptions|>")),
            no_times,
            first_time: no_times + 1,
            languages: languages.collect(),
            pieces,
        })
    }

    pub(crate) fn is_text(&self, piece: u32) -> bool {
        piece < self.end
    }

    pub(crate) fn is_time(&self, piece: u32) -> bool {
        piece >= self.first_time
    }

    /// **Seconds** that a mark of time stands for.
    pub(crate) fn seconds(&self, piece: u32) -> f64 {
        f64::from(piece.saturating_sub(self.first_time)) * 0.02
    }

    /// The bytes of one piece.
    pub(crate) fn bytes(&self, piece: u32) -> &[u8] {
        self.pieces.get(piece as usize).map_or(&[], Vec::as_slice)
    }

    /// The text of pieces; bytes that are no UTF-8 become `�`.
    pub(crate) fn text(&self, pieces: &[u32]) -> String {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| self.bytes(*piece)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// GPT-2's spelling of bytes: printable ones stand for themselves, the rest are shifted behind them.
fn bytes_of_letters() -> BTreeMap<char, u8> {
    let plain = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut shifted = 256u32;
    let letter = |byte: u8| {
        if plain(byte) {
            return (char::from(byte), byte);
        }
        let letter = char::from_u32(shifted).unwrap_or(char::REPLACEMENT_CHARACTER);
        shifted += 1;
        (letter, byte)
    };
    (0..=255).map(letter).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// ` hello`, ` you`, `.`, `'s`, and the commands of a network that knows English alone.
    pub(crate) fn small() -> Vocabulary {
        let file = r#"{"model": {"vocab": {"Ġhello": 0, "Ġyou": 1, ".": 2, "'s": 3, "Ã": 4, "©": 5}},
            "added_tokens": [{"id": 6, "content": "<|endoftext|>"}, {"id": 7, "content": "<|startoftranscript|>"},
            {"id": 8, "content": "<|nocaptions|>"}, {"id": 9, "content": "<|notimestamps|>"}, {"id": 99, "content": "<|en|>"}]}"#;
        Vocabulary::of(&serde_json::from_str(file).unwrap(), 20).unwrap()
    }

    #[test]
    fn pieces_are_bytes_and_times_follow_the_commands() {
        let vocabulary = small();
        assert_eq!(vocabulary.text(&[0, 1, 2, 7]), " hello you.");
        assert_eq!(vocabulary.text(&[4, 5]), "é");
        assert_eq!(vocabulary.text(&[4]), "\u{fffd}");
        assert_eq!((vocabulary.end, vocabulary.no_speech, vocabulary.first_time), (6, Some(8), 10));
        assert!((vocabulary.seconds(15) - 0.1).abs() < 1e-9);
        assert!(vocabulary.languages.is_empty());
        assert_eq!(vocabulary.text(&[1_000_000]), "");
    }

    #[test]
    fn a_vocabulary_without_its_commands_is_refused() {
        let file = r#"{"model": {"vocab": {"a": 0}}}"#;
        let problem = Vocabulary::of(&serde_json::from_str(file).unwrap(), 20).unwrap_err();
        assert_eq!(problem, "it has no `<|endoftext|>`");
    }
}
