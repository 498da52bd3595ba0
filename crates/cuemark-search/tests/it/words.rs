//! An encoder whose space can be worked out by hand, one axis per word, and four videos for it.

use std::collections::BTreeMap;

use camino::Utf8Path;
use cuemark_core::{Progress, Span, VideoId};
use cuemark_search::{EmbeddedVideo, Embedding, Encoder, IndexedMoment, Result, SearchError};

const WORDS: [&str; 8] = ["red", "blue", "ball", "box", "spins", "jumps", "leaves", "stage"];

/// Each word is an axis; every moment also shows the stage.
pub(crate) struct Words(BTreeMap<&'static str, Vec<(f64, f64, &'static str)>>);

fn embed(text: &str) -> Vec<f32> {
    let mut numbers = vec![0f32; WORDS.len()];
    for word in text.split_whitespace() {
        if let Some(place) = WORDS.iter().position(|known| *known == word) {
            numbers[place] += 1.0;
        }
    }
    numbers
}

impl Encoder for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn width(&self) -> usize {
        WORDS.len()
    }

    fn sentences(&self, sentences: &[&str]) -> Result<Vec<Embedding>> {
        let whole = |text: &&str| Embedding::unit(embed(text)).or_else(|| Embedding::unit(vec![1.0; WORDS.len()]));
        Ok(sentences.iter().filter_map(whole).collect())
    }

    fn video(&self, id: &VideoId, _: Option<&Utf8Path>, _: &Progress) -> Result<EmbeddedVideo> {
        let unknown = || SearchError::UnknownVideo { video: id.clone() };
        let events = self.0.get(id.as_str()).ok_or_else(unknown)?;
        let moment = |(start, end, text): &(f64, f64, &'static str)| IndexedMoment {
            span: Span::new(*start, *end).unwrap(),
            embedding: Embedding::unit(embed(&format!("{text} stage"))).unwrap(),
        };
        Ok(EmbeddedVideo { duration: 40.0, moments: events.iter().map(moment).collect(), partial: None })
    }

    fn knows(&self, word: &str) -> bool {
        WORDS.contains(&word) || ["a", "the"].contains(&word)
    }
}

/// Four videos.
pub(crate) fn films() -> Words {
    Words(BTreeMap::from([
        ("one", vec![(0.0, 8.0, "red ball spins"), (1.0, 8.0, "red ball spins"), (20.0, 30.0, "blue box jumps")]),
        ("two", vec![(5.0, 9.0, "blue ball spins"), (30.0, 35.0, "box leaves")]),
        ("three", vec![(0.0, 40.0, "red box leaves"), (10.0, 12.0, "red box jumps")]),
        ("four", (0..30).map(|n| (f64::from(n), f64::from(n) + 1.0, "")).collect()),
    ]))
}

/// Their names.
pub(crate) fn names() -> Vec<VideoId> {
    films().0.keys().map(|name| VideoId::new(*name)).collect()
}
