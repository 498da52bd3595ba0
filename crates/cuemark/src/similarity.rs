//! Which similarity a request compares sentences by.

use std::collections::HashMap;

use camino::Utf8Path;
use cuemark_core::{Progress, Truth, VideoId};
use cuemark_encoders::visual::EncoderOptions;
use cuemark_encoders::weights::{self, Cache, Standing};
use cuemark_encoders::{JOINT, VideoMatching, joint_text, text};
use cuemark_features::{Features, VISUAL};
use cuemark_formats::{ReadError, Source};
use cuemark_tensor::Device;
use cuemark_text::similarity::{Bm25, Embeddings, MatrixFile, Similarity, Tfidf, Vectors};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The encoder that compares sentences when nobody says which.
const USUAL: &str = "minilm";
/// Sentences that are encoded between two looks at the progress.
const STEP: usize = 1024;

/// Where similarities between sentences come from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SimilarityBy {
    /// `minilm`, `tfidf`, `bm25`, `encoder:NAME|PATH` (see `weights list`), `matrix:FILE` (.npy or .csv, a row per sentence on
    /// the left) or `vectors:LEFT.npy,RIGHT.npy`. Default: `minilm` where its weights are cached, else `tfidf`.
    #[cfg_attr(feature = "clap", arg(id = "similarity", long = "similarity", value_name = "PROVIDER"))]
    pub provider: Option<String>,
}

impl SimilarityBy {
    /// Compares the sentences of `left` with those of `right`. Which provider it is stands in its name, and is said when nobody
    /// chose it.
    ///
    /// # Errors
    /// When there is no such provider, or it cannot be read or computed.
    pub fn between(&self, left: &[Truth], right: &[Truth], progress: &Progress) -> Result<Box<dyn Similarity>> {
        let texts = |truths: &[Truth]| truths.iter().map(|truth| truth.query.text.clone()).collect::<Vec<String>>();
        let vectors = |path: &str| Vectors::read(&Source::new(path));
        let provider = match &self.provider {
            Some(provider) => provider.as_str(),
            None => usual(progress)?,
        };
        Ok(match provider.split_once(':') {
            None if provider == "tfidf" => Box::new(Tfidf::new(&texts(left), &texts(right))),
            None if provider == "bm25" => Box::new(Bm25::new(&texts(left), &texts(right))),
            None if provider == USUAL => Box::new(encoded(USUAL, &texts(left), &texts(right), progress)?),
            Some(("encoder", what)) => Box::new(encoded(what, &texts(left), &texts(right), progress)?),
            Some(("matrix", path)) => Box::new(MatrixFile::open(&Source::new(path), left.len(), right.len())?),
            Some(("vectors", paths)) => {
                let (l, r) = paths.split_once(',').unwrap_or((paths, paths));
                Box::new(Embeddings::new(format!("vectors {paths}"), vectors(l)?, vectors(r)?)?)
            }
            _ => {
                let known = "minilm, tfidf, bm25, encoder:NAME, matrix:FILE or vectors:LEFT,RIGHT";
                return Err(Error::setting("similarity", format!("`{provider}` is not {known}")));
            }
        })
    }
}

/// Compares queries with videos. `provider` is a file with a matrix, or `concepts:STORE` (`clip:STORE`): sentences against the
/// clips that [`Extract`](crate::Extract) put there, as a whole and word by word.
pub(crate) fn with_videos(provider: &str, queries: &[Truth], videos: &[VideoId]) -> Result<Box<dyn Similarity>> {
    match provider.split_once(':') {
        Some((encoder, store)) if JOINT.contains(&encoder) => {
            let texts: Vec<&str> = queries.iter().map(|truth| truth.query.text.as_str()).collect();
            let rows = clip_rows(encoder, Utf8Path::new(store), videos)?;
            let text = joint_text(encoder, &EncoderOptions::default())?;
            Ok(Box::new(VideoMatching::new(text.as_ref(), &texts, &rows)?))
        }
        Some(("matrix", path)) => Ok(Box::new(MatrixFile::open(&Source::new(path), queries.len(), videos.len())?)),
        _ => Ok(Box::new(MatrixFile::open(&Source::new(provider), queries.len(), videos.len())?)),
    }
}

/// The clips of every video, from a store that `encoder` filled.
fn clip_rows(encoder: &str, store: &Utf8Path, videos: &[VideoId]) -> Result<Vec<Features>> {
    let source = cuemark_features::open(store, &cuemark_features::OpenOptions::default())?;
    let extractor = source.origin(VISUAL)?.recipe.map(|recipe| recipe.extractor.clone());
    if extractor.as_deref() != Some(encoder) {
        let found = extractor.unwrap_or_else(|| "an unknown extractor".to_owned());
        return Err(ReadError::file(store, format!("its rows are those of {found}, not of {encoder}")).into());
    }
    let there = source.videos(VISUAL);
    let rows = videos.iter().map(|video| {
        if there.binary_search(&video).is_err() {
            return Err(ReadError::file(store, format!("video `{video}` of the queries is not in the store")).into());
        }
        Ok(source.get(video, VISUAL)?)
    });
    rows.collect()
}

/// MiniLM when its weights are cached, else words alone; either way it is said.
fn usual(progress: &Progress) -> Result<&'static str> {
    let card = weights::find(USUAL)?;
    if Cache::of_user().is_ok_and(|cache| cache.standing(card) == Standing::Here) {
        progress.say("similarity by minilm, whose weights are cached; `tfidf` compares words alone");
        Ok(USUAL)
    } else {
        progress.say("similarity by tfidf; `cuemark weights pull minilm` once, and meaning counts too");
        Ok("tfidf")
    }
}

/// Cosine of what the encoder `what` makes of the sentences; equal sentences are encoded once.
fn encoded(what: &str, left: &[String], right: &[String], progress: &Progress) -> Result<Embeddings> {
    let encoder = text::load(what, &Device::Cpu)?;
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut sentences: Vec<&str> = Vec::new();
    let mut place = |sentence| {
        *places.entry(sentence).or_insert_with(|| {
            sentences.push(sentence);
            sentences.len() - 1
        })
    };
    let [left, right] = [left, right].map(|side| side.iter().map(|text| place(text)).collect::<Vec<usize>>());
    progress.phase("encoding sentences", sentences.len());
    let mut vectors = Vec::with_capacity(sentences.len());
    for some in sentences.chunks(STEP) {
        vectors.extend(encoder.encode(some)?);
        progress.advance(some.len())?;
    }
    let side = |places: &[usize]| {
        let values = places.iter().flat_map(|place| &vectors[*place]).copied().collect();
        Vectors::new(encoder.width(), values)
    };
    Ok(Embeddings::new(encoder.name(), side(&left)?, side(&right)?)?)
}
