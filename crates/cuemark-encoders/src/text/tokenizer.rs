//! Sentences as token ids.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{ReadError, Source, json};
use serde_json::{Map, Value, json};
use tokenizers::{Tokenizer as Inner, TruncationParams};

use crate::weights::WeightsFolder;
use crate::{EncodeError, Result};

/// Files that hold a tokenizer, best first: a whole one, or BERT's bare list of words.
const FILES: &[&str] = &["tokenizer.json", "vocab.txt"];

/// Fewer tokens than this hold no word beside the special ones.
const SHORTEST: usize = 3;

/// What a network expects of its tokenizer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Tokens that have an embedding.
    pub(super) words: usize,
    /// The most tokens of a sentence, the special ones among them; longer sentences are cut.
    pub(super) longest: usize,
    /// The token that every sentence begins with.
    pub(super) first_token: &'static str,
}

/// Splits sentences as the network was trained to read them.
#[derive(Clone)]
pub(super) struct Tokenizer {
    inner: Inner,
    path: Utf8PathBuf,
    words: usize,
}

impl Tokenizer {
    /// # Errors
    /// When there is none, it cannot be read, or it is another network's.
    pub(super) fn load(folder: &WeightsFolder, expected: Expected) -> Result<Self> {
        let path = folder.find(FILES).map_or_else(|| folder.file(FILES[0]), Ok)?;
        let fault = |problem: String| EncodeError::Tokenizer { path: path.clone(), problem };
        let source = Source::new(&path);
        let text = source.text()?;
        // Words by number, numbers by word, and what finds words inside others.
        let needs = json::weight(&text).saturating_mul(4);
        source.meter().charge(needs).map_err(|exceeded| ReadError::memory(&path, "its words", exceeded))?;
        let mut inner = if path.extension() == Some("txt") {
            from_words(&text).map_err(fault)?
        } else {
            from_document(&text).map_err(fault)?
        };
        if expected.longest < SHORTEST {
            return Err(fault(format!("sentences of at most {} tokens hold no word", expected.longest)));
        }
        inner.with_padding(None);
        let truncation = TruncationParams { max_length: expected.longest, ..TruncationParams::default() };
        inner.with_truncation(Some(truncation)).map_err(|error| fault(error.to_string()))?;
        let known = inner.get_vocab_size(true);
        if known > expected.words {
            return Err(fault(format!("it knows {known} tokens, the network {}", expected.words)));
        }
        let nothing = unharmed(|| inner.encode_fast("", true).map_err(|error| error.to_string())).map_err(fault)?;
        let first = nothing.get_tokens().first().map(String::as_str).unwrap_or_default();
        if first != expected.first_token {
            let wanted = expected.first_token;
            return Err(fault(format!("sentences begin with `{first}`, the network expects `{wanted}`")));
        }
        Ok(Self { inner, path, words: expected.words })
    }

    /// The file it was read from.
    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The ids of every sentence, special tokens among them; none is empty.
    pub(super) fn ids(&self, sentences: &[&str]) -> Result<Vec<Vec<u32>>> {
        let fault = |problem: String| EncodeError::Tokenizer { path: self.path.clone(), problem };
        let encode = || self.inner.encode_batch_fast(sentences.to_vec(), true).map_err(|error| error.to_string());
        let encoded = unharmed(encode).map_err(fault)?;
        let ids = |encoding: &tokenizers::Encoding| {
            let ids = encoding.get_ids().to_vec();
            match ids.iter().find(|id| **id as usize >= self.words) {
                Some(id) => Err(fault(format!("it gives token {id}, the network knows {}", self.words))),
                None if ids.is_empty() => Err(fault("it gives no token for a sentence".to_owned())),
                None => Ok(ids),
            }
        };
        encoded.iter().map(ids).collect()
    }
}

/// A whole tokenizer. What is no JSON is refused here, by line: a download that broke off is the usual damage.
fn from_document(text: &str) -> Result<Inner, String> {
    serde_json::from_str::<&serde_json::value::RawValue>(text).map_err(|error| format!("it is damaged: {error}"))?;
    unharmed(|| text.parse::<Inner>().map_err(|error| error.to_string()))
}

/// What `work` of the `tokenizers` crate gives. That crate panics at some files that are JSON and no tokenizer (an unwrap in the
/// reading of its decoders is one); a file must never end the program, so such a panic becomes the error that it should have been.
fn unharmed<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // Nothing is used again after a panic: a tokenizer that panics while it is read or asked is dropped by the caller.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(done) => done,
        Err(_) => Err("the file is damaged: the library that reads tokenizers gave up on it".to_owned()),
    }
}

/// Whether `text` is a tokenizer; for tests that feed damaged ones. The error says what is wrong.
///
/// # Errors
/// When it is none.
pub fn check_tokenizer(text: &str) -> Result<(), String> {
    let inner = from_document(text)?;
    unharmed(|| inner.encode_fast("a red ball", true).map_err(|error| error.to_string())).map(drop)
}

/// BERT's uncased tokenizer from its bare list of words, one a line: the document that a whole one would be.
fn from_words(text: &str) -> Result<Inner, String> {
    let words: Vec<&str> = text.lines().map(str::trim_end).collect();
    let place = |word: &str| words.iter().position(|known| *known == word);
    let vocabulary: Map<String, Value> =
        words.iter().zip(0u32..).map(|(word, id)| ((*word).to_owned(), id.into())).collect();
    let special = |word: &&str| {
        let id = place(word)?;
        Some(json!({ "id": id, "content": word, "single_word": false, "lstrip": false, "rstrip": false,
                     "normalized": false, "special": true }))
    };
    let added: Vec<Value> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].iter().filter_map(special).collect();
    let id = |word: &str| place(word).ok_or_else(|| format!("it lacks `{word}`"));
    let document = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                        "strip_accents": null, "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": { "type": "BertProcessing", "sep": ["[SEP]", id("[SEP]")?], "cls": ["[CLS]", id("[CLS]")?] },
        "decoder": null,
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                   "max_input_chars_per_word": 100, "vocab": vocabulary },
    });
    unharmed(|| document.to_string().parse::<Inner>().map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokenizer_that_was_cut_short_anywhere_is_refused_and_never_panics() {
        let path = cuemark_testkit::fixture("encoders/tiny-roberta/tokenizer.json");
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(check_tokenizer(&text), Ok(()));
        for end in (0..text.trim_end().len()).filter(|end| text.is_char_boundary(*end)) {
            let problem = check_tokenizer(&text[..end]).unwrap_err();
            assert!(problem.contains("damaged"), "{end}: {problem}");
        }
    }

    #[test]
    fn a_panic_of_the_library_becomes_an_error() {
        let problem = unharmed::<()>(|| panic!("as the library does")).unwrap_err();
        assert!(problem.contains("damaged"), "{problem}");
        // JSON, and no decoder: the library's own unwrap.
        let document =
            r#"{"version":"1.0","added_tokens":[],"model":{"type":"BPE","vocab":{},"merges":[]},"decoder":{"type":7}}"#;
        assert!(check_tokenizer(document).is_err());
    }
}
