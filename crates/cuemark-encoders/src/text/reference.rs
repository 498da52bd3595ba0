//! Vectors that another implementation made of known sentences, and how close an encoder comes to them.

use camino::Utf8Path;
use cuemark_features::tensor_file;
use cuemark_formats::ReadError;
use serde::Serialize;

use super::TextEncoder;
use crate::Result;

/// Sentences and what a reference implementation makes of them: a safetensors file with `vectors [sentences, width]` and the
/// sentences as a JSON list in its header, as `fixtures/encoders/make.py` writes it.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The sentences.
    pub sentences: Vec<String>,
    /// One vector each.
    pub vectors: Vec<Vec<f32>>,
}

/// How close an encoder comes to a reference.
#[derive(Debug, Clone, Serialize)]
pub struct Agreement {
    /// Sentences that were compared.
    pub sentences: usize,
    /// The smallest cosine between the two vectors of one sentence.
    pub smallest_cosine: f64,
    /// The largest difference of a single number.
    pub largest_difference: f64,
    /// Neighbours that were compared for each sentence: 40, or all others.
    pub neighbours: usize,
    /// Sentences whose neighbours come in another order, not counting those whose similarity differs by less than a millionth.
    pub other_order: usize,
}

/// What sentence-transformers' network makes of a few sentences, in half precision.
const MINILM: &[u8] = include_bytes!("../../reference/minilm.safetensors");
/// The cosine that an encoder has to reach on every sentence.
const SMALLEST_COSINE: f64 = 0.9999;
/// Neighbours whose order is compared.
const NEIGHBOURS: usize = 40;
/// Similarities that single precision cannot tell apart.
const TIE: f64 = 1e-6;

impl Agreement {
    /// Whether every cosine reaches 0.9999 and every order of neighbours is the same.
    pub fn holds(&self) -> bool {
        self.smallest_cosine >= SMALLEST_COSINE && self.other_order == 0
    }
}

impl Reference {
    /// # Errors
    /// When the file cannot be read or does not hold one vector per sentence.
    pub fn read(path: &Utf8Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        let hint = "`fixtures/encoders/make.py` shows how to write such a file";
        Self::parse(&bytes).map_err(|problem| ReadError::file(path, problem).with_hint(hint).into())
    }

    /// The few sentences that come with the program, for the weights of that name: `minilm`.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "minilm" => Self::parse(MINILM).ok(),
            _ => None,
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let vectors = tensor_file::parse(bytes)?.remove("vectors").ok_or("holds no `vectors`")?;
        let sentences = header_sentences(bytes).ok_or("its header holds no `sentences`")?;
        let &[rows, width] = vectors.shape.as_slice() else { return Err("`vectors` has not two axes".to_owned()) };
        if rows != sentences.len() || width == 0 {
            return Err(format!("`vectors` has {rows} rows of {width} for {} sentences", sentences.len()));
        }
        Ok(Self { sentences, vectors: vectors.values.chunks_exact(width).map(<[f32]>::to_vec).collect() })
    }

    /// Encodes the sentences and compares.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn compare(&self, encoder: &dyn TextEncoder) -> Result<Agreement> {
        let sentences: Vec<&str> = self.sentences.iter().map(String::as_str).collect();
        let ours = encoder.encode(&sentences)?;
        let pairs = || ours.iter().zip(&self.vectors);
        let difference = |(a, b): (&Vec<f32>, &Vec<f32>)| {
            let apart = a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max);
            if a.len() == b.len() { apart } else { f64::INFINITY }
        };
        let neighbours = NEIGHBOURS.min(sentences.len().saturating_sub(1));
        let other_order = (0..sentences.len()).filter(|query| !self.same_order(&ours, *query, neighbours)).count();
        Ok(Agreement {
            sentences: sentences.len(),
            smallest_cosine: pairs().map(|(a, b)| cosine(a, b)).fold(1.0, f64::min),
            largest_difference: pairs().map(difference).fold(0.0, f64::max),
            neighbours,
            other_order,
        })
    }

    /// Whether the sentences nearest to `query` come in the same order by both sets of vectors.
    fn same_order(&self, ours: &[Vec<f32>], query: usize, neighbours: usize) -> bool {
        let likeness = |vectors: &[Vec<f32>], other: usize| cosine(&vectors[query], &vectors[other]);
        let nearest = |vectors: &[Vec<f32>]| {
            let mut order: Vec<(usize, f64)> = (0..vectors.len())
                .filter(|other| *other != query)
                .map(|other| (other, likeness(vectors, other)))
                .collect();
            order.sort_by(|a, b| b.1.total_cmp(&a.1));
            order.truncate(neighbours);
            order
        };
        let (mine, theirs) = (nearest(ours), nearest(&self.vectors));
        mine.iter()
            .zip(&theirs)
            .all(|((mine, _), (other, theirs))| mine == other || (likeness(&self.vectors, *mine) - theirs).abs() < TIE)
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if a.len() != b.len() || lengths == 0.0 { 0.0 } else { dot(a, b) / lengths }
}

/// The list under `sentences` in a safetensors header.
fn header_sentences(bytes: &[u8]) -> Option<Vec<String>> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let header: serde_json::Value = serde_json::from_slice(header).ok()?;
    serde_json::from_str(header.get("__metadata__")?.get("sentences")?.as_str()?).ok()
}
