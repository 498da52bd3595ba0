//! Makes a searchable index with an encoder of one's own: here one that knows four words and "sees" them in file names.
//!
//! A real one maps sentences and clips into one space with a network; the index does not care.
//!
//! `cargo run --example index_with_your_own_encoder`

#![allow(clippy::print_stdout)] // an example talks to the terminal

use camino::{Utf8Path, Utf8PathBuf};
use cuemark::{Asking, Progress, Shown};
use cuemark_core::{Span, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::{
    EmbeddedVideo, Embedding, Encoder, EngineUrl, Index, IndexedMoment, Result, SearchError, VideoEntry,
};

const WORDS: [&str; 4] = ["red", "blue", "ball", "box"];

/// Each word is an axis of the space.
struct Words;

fn embed(text: &str) -> Option<Embedding> {
    let axis = |word: &&str| if text.contains(*word) { 1.0 } else { 0.05 };
    Embedding::unit(WORDS.iter().map(axis).collect())
}

impl Encoder for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn width(&self) -> usize {
        WORDS.len()
    }

    fn sentences(&self, sentences: &[&str]) -> Result<Vec<Embedding>> {
        Ok(sentences.iter().filter_map(|sentence| embed(sentence)).collect())
    }

    fn video(&self, id: &VideoId, _: Option<&Utf8Path>, _: &Progress) -> Result<EmbeddedVideo> {
        let embedding = embed(id.as_str()).ok_or_else(|| SearchError::UnknownVideo { video: id.clone() })?;
        let moments = vec![IndexedMoment { span: Span::whole(10.0), embedding }];
        Ok(EmbeddedVideo { duration: 10.0, moments, partial: None })
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    index_with_your_own_encoder(Utf8PathBuf::try_from(folder.path().join("index"))?)
}

/// Makes the index in `folder` and asks it.
pub fn index_with_your_own_encoder(folder: Utf8PathBuf) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let index = Index::create(&EngineUrl::File(folder), Box::new(Words), Overwrite::Never)?;
    for name in ["red-ball", "blue-box"] {
        let id = VideoId::new(name);
        let video = Words.video(&id, None, &Progress::new())?;
        let entry = VideoEntry::without_file(id, video.duration);
        // Once `put` returns, the video survives anything that happens to this process.
        index.engine().put(&entry, &video.moments)?;
    }
    let found = Asking { least: 0.0, ..Asking::sentence("a red ball") }.ask(&index, Shown::Likely)?;
    for answer in &found.answers {
        // A probability would be a guess here: this encoder brings no questions to fit one on.
        println!("{} [{}, {}] s, {}", answer.video, answer.start, answer.end, answer.strength());
    }
    Ok(())
}
