//! Which similarity a protocol compares sentences by.

use clap::Args;
use cuemark_core::Truth;
use cuemark_formats::Source;
use cuemark_text::similarity::{Bm25, Embeddings, MatrixFile, Similarity, Tfidf, Vectors};

/// Where similarities come from.
#[derive(Debug, Args)]
pub(crate) struct SimilarityArgs {
    /// `tfidf`, `bm25`, `matrix:FILE` (.npy or .csv, a row per sentence on the left) or `vectors:LEFT.npy,RIGHT.npy`.
    #[arg(long, value_name = "PROVIDER", default_value = "tfidf")]
    similarity: String,
}

impl SimilarityArgs {
    /// Compares the sentences of `left` with those of `right`.
    pub(crate) fn between(&self, left: &[Truth], right: &[Truth]) -> anyhow::Result<Box<dyn Similarity>> {
        let texts = |truths: &[Truth]| truths.iter().map(|truth| truth.query.text.clone()).collect::<Vec<String>>();
        let vectors = |path: &str| Vectors::read(&Source::new(path));
        Ok(match self.similarity.split_once(':') {
            None if self.similarity == "tfidf" => Box::new(Tfidf::new(&texts(left), &texts(right))),
            None if self.similarity == "bm25" => Box::new(Bm25::new(&texts(left), &texts(right))),
            Some(("matrix", path)) => Box::new(MatrixFile::open(&Source::new(path), left.len(), right.len())?),
            Some(("vectors", paths)) => {
                let (l, r) = paths.split_once(',').unwrap_or((paths, paths));
                Box::new(Embeddings::new(format!("vectors {paths}"), vectors(l)?, vectors(r)?)?)
            }
            _ => anyhow::bail!(
                "`--similarity {}` is not tfidf, bm25, matrix:FILE or vectors:LEFT,RIGHT",
                self.similarity
            ),
        })
    }
}
