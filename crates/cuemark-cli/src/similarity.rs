//! Which similarity a protocol compares sentences by.

use anyhow::Context as _;
use camino::Utf8Path;
use clap::Args;
use cuemark_core::{Truth, VideoId};
use cuemark_encoders::visual::EncoderOptions;
use cuemark_encoders::weights::{self, Cache, Standing};
use cuemark_encoders::{JOINT, VideoMatching, joint_text, text};
use cuemark_features::Features;
use cuemark_formats::Source;
use cuemark_tensor::Device;
use cuemark_text::similarity::{Bm25, Embeddings, MatrixFile, Similarity, Tfidf, Vectors};

use crate::output;
use crate::progress::watched;

/// The encoder that compares sentences when nobody says which.
const USUAL: &str = "minilm";
/// Sentences that are encoded between two looks at the bar.
const STEP: usize = 1024;
/// The stream that `cuemark features extract` writes.
const STREAM: &str = "visual";

/// Where similarities come from.
#[derive(Debug, Args)]
pub(crate) struct SimilarityArgs {
    /// `minilm`, `tfidf`, `bm25`, `encoder:NAME|PATH` (see `weights list`), `matrix:FILE` (.npy or .csv, a row per sentence on
    /// the left) or `vectors:LEFT.npy,RIGHT.npy`. Default: `minilm` where its weights are cached, else `tfidf`.
    #[arg(long, value_name = "PROVIDER")]
    similarity: Option<String>,
}

impl SimilarityArgs {
    /// Compares the sentences of `left` with those of `right`. Which provider it is stands in its name, and on standard error
    /// when nobody chose it.
    pub(crate) fn between(&self, left: &[Truth], right: &[Truth]) -> anyhow::Result<Box<dyn Similarity>> {
        let texts = |truths: &[Truth]| truths.iter().map(|truth| truth.query.text.clone()).collect::<Vec<String>>();
        let vectors = |path: &str| Vectors::read(&Source::new(path));
        let provider = match &self.similarity {
            Some(provider) => provider.as_str(),
            None => usual()?,
        };
        Ok(match provider.split_once(':') {
            None if provider == "tfidf" => Box::new(Tfidf::new(&texts(left), &texts(right))),
            None if provider == "bm25" => Box::new(Bm25::new(&texts(left), &texts(right))),
            None if provider == USUAL => Box::new(encoded(USUAL, &texts(left), &texts(right))?),
            Some(("encoder", what)) => Box::new(encoded(what, &texts(left), &texts(right))?),
            Some(("matrix", path)) => Box::new(MatrixFile::open(&Source::new(path), left.len(), right.len())?),
            Some(("vectors", paths)) => {
                let (l, r) = paths.split_once(',').unwrap_or((paths, paths));
                Box::new(Embeddings::new(format!("vectors {paths}"), vectors(l)?, vectors(r)?)?)
            }
            _ => anyhow::bail!(
                "`--similarity {provider}` is not minilm, tfidf, bm25, encoder:NAME, matrix:FILE or vectors:LEFT,RIGHT"
            ),
        })
    }
}

/// Compares queries with videos. `provider` is a file with a matrix, or `concepts:STORE` (`clip:STORE`): sentences against the
/// clips that `cuemark features extract` put there, as a whole and word by word.
pub(crate) fn with_videos(
    provider: &str,
    queries: &[Truth],
    videos: &[VideoId],
) -> anyhow::Result<Box<dyn Similarity>> {
    match provider.split_once(':') {
        Some((encoder, store)) if JOINT.contains(&encoder) => {
            let texts: Vec<&str> = queries.iter().map(|truth| truth.query.text.as_str()).collect();
            let rows = clip_rows(encoder, store, videos)?;
            let text = joint_text(encoder, &EncoderOptions::default())?;
            Ok(Box::new(VideoMatching::new(text.as_ref(), &texts, &rows)?))
        }
        Some(("matrix", path)) => Ok(Box::new(MatrixFile::open(&Source::new(path), queries.len(), videos.len())?)),
        _ => Ok(Box::new(MatrixFile::open(&Source::new(provider), queries.len(), videos.len())?)),
    }
}

/// The clips of every video, from a store that `encoder` filled.
fn clip_rows(encoder: &str, store: &str, videos: &[VideoId]) -> anyhow::Result<Vec<Features>> {
    let source = cuemark_features::open(Utf8Path::new(store), &cuemark_features::OpenOptions::default())?;
    let extractor = source.origin(STREAM)?.recipe.map(|recipe| recipe.extractor.clone());
    if extractor.as_deref() != Some(encoder) {
        let found = extractor.unwrap_or_else(|| "an unknown extractor".to_owned());
        anyhow::bail!("{store}: its rows are those of {found}, not of {encoder}");
    }
    let there = source.videos(STREAM);
    let rows = videos.iter().map(|video| {
        if there.binary_search(&video).is_err() {
            anyhow::bail!("{store}: video `{video}` of the queries is not in the store");
        }
        Ok(source.get(video, STREAM)?)
    });
    rows.collect()
}

/// MiniLM when its weights are cached, else words alone; either way it is said.
fn usual() -> anyhow::Result<&'static str> {
    let card = weights::find(USUAL)?;
    if Cache::of_user().is_ok_and(|cache| cache.standing(card) == Standing::Here) {
        output::say("similarity by minilm, whose weights are cached; `--similarity tfidf` compares words alone");
        Ok(USUAL)
    } else {
        output::say("similarity by tfidf; `cuemark weights pull minilm` once, and meaning counts too");
        Ok("tfidf")
    }
}

/// Cosine of what the encoder `what` makes of the sentences; equal sentences are encoded once.
fn encoded(what: &str, left: &[String], right: &[String]) -> anyhow::Result<Embeddings> {
    let encoder = text::load(what, &Device::Cpu)?;
    let mut places = std::collections::HashMap::new();
    let mut sentences: Vec<&str> = Vec::new();
    for sentence in left.iter().chain(right) {
        places.entry(sentence.as_str()).or_insert_with(|| {
            sentences.push(sentence);
            sentences.len() - 1
        });
    }
    let vectors = watched("encoding sentences", |progress| {
        progress.announce(sentences.len());
        let mut vectors = Vec::with_capacity(sentences.len());
        for some in sentences.chunks(STEP) {
            vectors.extend(encoder.encode(some)?);
            progress.advance(some.len())?;
        }
        anyhow::Ok(vectors)
    })?;
    let side = |texts: &[String]| -> anyhow::Result<Vectors> {
        let mut values = Vec::with_capacity(texts.len() * encoder.width());
        for text in texts {
            let vector = places.get(text.as_str()).and_then(|place| vectors.get(*place));
            values.extend_from_slice(vector.context("a sentence was not encoded")?);
        }
        Ok(Vectors::new(encoder.width(), values)?)
    };
    Ok(Embeddings::new(encoder.name(), side(left)?, side(right)?)?)
}
