//! What a frozen encoder makes of sentences, computed once and kept: a folder per encoder and tokenizer, in it a small feature store
//! for every lot of sentences. Runs may add lots at the same time; a sentence that two of them computed is the same in both.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::digest::hex;
use cuemark_core::{ClipLen, Progress, VideoId};
use cuemark_encoders::text::{Pretrained, TokenStates};
use cuemark_features::{FeatureStore, Features, Recipe, RowTime, StoreWriter, VideoFeatures};
use cuemark_formats::{Overwrite, ReadError};
use cuemark_tensor::{Device, Tensor};
use sha2::{Digest as _, Sha256};

use crate::{Markers, Result, TrainError};

/// Sentences that are computed and written at a time.
const AT_ONCE: usize = 1024;

/// What the folder of a lot begins with.
const LOT: &str = "lot-";

/// A lot's only stream.
const STREAM: &str = "tokens";

/// Vectors of the tokens of sentences, by the tokens.
pub(crate) struct TokenCache {
    encoder: TokenStates,
    markers: Markers,
    width: usize,
    folder: Utf8PathBuf,
    recipe: Recipe,
    /// The lots that are on disk.
    lots: RwLock<Vec<Arc<FeatureStore>>>,
}

impl TokenCache {
    /// The vectors that `encoder` makes, kept in a folder of their own below `root`.
    ///
    /// # Errors
    /// When the weights cannot be read, or what is kept is damaged.
    pub(crate) fn open(encoder: &Pretrained, markers: Markers, root: &Utf8Path, device: &Device) -> Result<Self> {
        let (tokenizer, weights) = (encoder.tokenizer_digest()?, encoder.weights_digest()?);
        let drop = matches!(markers, Markers::Dropped);
        let print = Sha256::digest(format!("{tokenizer} {weights} {drop}"));
        let folder = root.join(format!("{}-{}", encoder.name(), hex(&print[..8])));
        let settings = BTreeMap::from([
            ("markers".to_owned(), if drop { "dropped" } else { "kept" }.to_owned()),
            ("tokenizer".to_owned(), tokenizer),
        ]);
        let recipe = Recipe {
            extractor: encoder.name().to_owned(),
            weights: Some(weights),
            fps: None,
            // A row is a token: it has no length in time, and nobody asks for one.
            row_time: RowTime::Clip(ClipLen::new(1.0).unwrap_or_else(|| unreachable!("a second is a length"))),
            width: encoder.width(),
            resize: None,
            settings,
        };
        let cache = Self {
            encoder: encoder.states(device)?,
            markers,
            width: encoder.width(),
            folder,
            recipe,
            lots: RwLock::default(),
        };
        cache.reopen()?;
        Ok(cache)
    }

    /// Computes and keeps what is not there yet.
    ///
    /// # Errors
    /// When it was stopped, a sentence cannot be computed, or the folder cannot be written.
    pub(crate) fn prepare<'a>(&self, sentences: impl Iterator<Item = &'a [u32]>, progress: &Progress) -> Result<()> {
        let mut seen = HashSet::new();
        let absent = |tokens: &&[u32]| {
            let key = key(tokens);
            self.lot_of(&key).is_none() && seen.insert(key)
        };
        let missing: Vec<Vec<u32>> = sentences.filter(absent).map(<[u32]>::to_vec).collect();
        if missing.is_empty() {
            return Ok(());
        }
        progress.say(format!("encoding {} sentences, once for all runs", missing.len()));
        for lot in missing.chunks(AT_ONCE) {
            let sentences = lot.iter().zip(self.compute(lot)?);
            let videos: Vec<VideoFeatures> = sentences
                .map(|(tokens, features)| VideoFeatures {
                    video: key(tokens),
                    streams: vec![(STREAM.to_owned(), features)],
                })
                .collect();
            let recipes = BTreeMap::from([(STREAM.to_owned(), self.recipe.clone())]);
            // A lot is called by what is in it: another run that computes the same one writes the same file.
            let name = format!("{LOT}{}", key(&lot.concat()));
            let writer = StoreWriter::create(&self.folder.join(name), recipes, Overwrite::Never)?;
            match writer.write_shard(0, &videos) {
                Err(_) if writer.has_shard(0) => {}
                written => written?,
            }
            // The count belongs to whoever asked; this is only a place to stop.
            progress.advance(0)?;
        }
        self.reopen()
    }

    /// The vectors of one sentence, `[tokens, width]`; computed now when it was not prepared.
    ///
    /// # Errors
    /// When the store is damaged, or the sentence cannot be computed.
    pub(crate) fn rows(&self, tokens: &[u32]) -> Result<Features> {
        let key = key(tokens);
        if let Some(lot) = self.lot_of(&key) {
            return Ok(lot.get(&key, STREAM)?);
        }
        let computed = self.compute(&[tokens.to_vec()])?.into_iter().next();
        computed.ok_or(TrainError::Query { query: key.to_string(), problem: "gives no vector" })
    }

    fn compute(&self, sentences: &[Vec<u32>]) -> Result<Vec<Features>> {
        let rows = |state: &Tensor| -> Result<Features> {
            let state = state.to_device(&Device::Cpu)?;
            let count = state.dim(0)?;
            // A sentence of nothing but its markers keeps them: there must be a row.
            let state = match self.markers {
                Markers::Dropped if count > 2 => state.narrow(0, 1, count - 2)?,
                _ => state,
            };
            let values = state.flatten_all()?.to_vec1::<f32>()?;
            Features::new(values.len() / self.width.max(1), self.width, values)
                .ok_or(TrainError::Query { query: String::new(), problem: "gives vectors of another width" })
        };
        self.encoder.of(sentences)?.iter().map(rows).collect()
    }

    /// The lot that holds a sentence.
    fn lot_of(&self, key: &VideoId) -> Option<Arc<FeatureStore>> {
        let lots = self.lots.read().unwrap_or_else(PoisonError::into_inner);
        lots.iter().find(|lot| lot.rows(key, STREAM).is_some()).cloned()
    }

    fn reopen(&self) -> Result<()> {
        if !self.folder.is_dir() {
            return Ok(());
        }
        let unlisted = |source| ReadError::Io { path: self.folder.clone(), source };
        let mut lots = Vec::new();
        for entry in self.folder.read_dir_utf8().map_err(unlisted)? {
            let folder = entry.map_err(unlisted)?.into_path();
            let written = || folder.join("shard-00000.safetensors").is_file();
            // A lot without its file is one that another run is about to write, or died before it did.
            if folder.file_name().is_some_and(|name| name.starts_with(LOT)) && written() {
                lots.push(self.open_lot(&folder)?);
            }
        }
        *self.lots.write().unwrap_or_else(PoisonError::into_inner) = lots;
        Ok(())
    }

    fn open_lot(&self, folder: &Utf8Path) -> Result<Arc<FeatureStore>> {
        let lot = FeatureStore::open(folder)?;
        if lot.recipe(STREAM)? != &self.recipe {
            return Err(TrainError::Folder {
                path: folder.to_owned(),
                problem: "holds the vectors of another encoder".to_owned(),
                hint: "remove the folder: it is made again".into(),
            });
        }
        Ok(Arc::new(lot))
    }
}

/// What a sentence is kept under: a hash of its tokens, which are all that the encoder sees of it.
fn key(tokens: &[u32]) -> VideoId {
    let mut hasher = Sha256::new();
    tokens.iter().for_each(|token| hasher.update(token.to_le_bytes()));
    VideoId::from(hex(&hasher.finalize()[..16]).as_str())
}
