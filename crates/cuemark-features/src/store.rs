//! Reading a folder of shards.

use std::collections::{BTreeMap, HashMap};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{ClipLen, VideoId};
use cuemark_formats::ReadError;

use crate::missing::near;
use crate::shard::{Entry, Shard};
use crate::source::{FeatureSource, Origin, no_stream};
use crate::{FeatureError, Features, Layout, Recipe, Result, RowTime};

/// A folder of shards, open for random access by video and stream.
///
/// Headers are read and checked when it is opened; rows are read from the mapped files when they are asked for, so a
/// store may be far larger than memory. Reading is safe from many threads at once.
#[derive(Debug)]
pub struct FeatureStore {
    folder: Utf8PathBuf,
    shards: Vec<Shard>,
    recipes: BTreeMap<String, Recipe>,
    places: Places,
}

/// By stream, then by video: number of the shard and of the entry in it.
type Places = HashMap<String, HashMap<VideoId, (usize, usize)>>;

/// What is in a store, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreCheck {
    /// Tensors read.
    pub tensors: usize,
    /// Rows read.
    pub rows: usize,
    /// Rows that hold NaN or an infinity.
    pub bad_rows: usize,
    /// Rows that are all zero: clips without speech, or padding.
    pub zero_rows: usize,
}

impl FeatureStore {
    /// Opens every `*.safetensors` file of `folder`.
    ///
    /// # Errors
    /// When there is none, one is damaged, two were made by different recipes, or a video stands in two of them.
    pub fn open(folder: &Utf8Path) -> Result<Self> {
        let paths = shard_paths(folder)?;
        let shards = paths.iter().map(|path| Shard::open(path)).collect::<Result<Vec<_>>>()?;
        let Some(first) = shards.first() else {
            let fault = ReadError::file(folder, "holds no `.safetensors` shard");
            return Err(fault.with_hint("name the folder that features were written to").into());
        };
        if let Some(other) = shards.iter().find(|shard| shard.recipes != first.recipes) {
            return Err(FeatureError::MixedRecipes { first: first.path.clone(), second: other.path.clone() });
        }
        let recipes = first.recipes.clone();
        let places = index(&shards)?;
        Ok(Self { folder: folder.to_owned(), recipes, shards, places })
    }

    /// Where it lies.
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// How each stream was made, by stream name.
    pub fn recipes(&self) -> &BTreeMap<String, Recipe> {
        &self.recipes
    }

    /// How one stream was made.
    ///
    /// # Errors
    /// When there is no such stream; the message lists those there are.
    pub fn recipe(&self, stream: &str) -> Result<&Recipe> {
        self.recipes.get(stream).ok_or_else(|| no_stream(&self.folder, stream, &self.streams()))
    }

    /// The length of one clip of a stream, as its header says.
    ///
    /// # Errors
    /// When there is no such stream, or its rows span durations, so that clips differ from video to video
    /// ([`FeatureStore::clip_len_of`]).
    pub fn clip_len(&self, stream: &str) -> Result<ClipLen> {
        match self.recipe(stream)?.row_time {
            RowTime::Clip(clip_len) => Ok(clip_len),
            RowTime::SpanDuration => {
                Err(FeatureError::ClipLenByVideo { path: self.folder.clone(), stream: stream.to_owned() })
            }
        }
    }

    /// The length of one clip of one video, as the header says.
    ///
    /// # Errors
    /// When the store lacks the stream or the video, or its rows span a duration and there are none.
    pub fn clip_len_of(&self, video: &VideoId, stream: &str) -> Result<ClipLen> {
        let (_, entry) = self.find(video, stream)?;
        entry.clip_len.ok_or_else(|| FeatureError::NoClipLen { path: self.folder.clone(), stream: stream.to_owned() })
    }

    /// The videos that have a stream, sorted by name; none when there is no such stream.
    pub fn videos(&self, stream: &str) -> Vec<&VideoId> {
        let mut videos: Vec<_> = self.places.get(stream).into_iter().flat_map(HashMap::keys).collect();
        videos.sort_unstable();
        videos
    }

    /// Number of clips of one video, without reading them. `None` when the video lacks the stream.
    pub fn rows(&self, video: &VideoId, stream: &str) -> Option<usize> {
        self.place(video, stream).map(|(_, entry)| entry.rows)
    }

    /// The features of one video.
    ///
    /// # Errors
    /// When the store lacks the stream or the video, or a number is NaN or infinite.
    pub fn get(&self, video: &VideoId, stream: &str) -> Result<Features> {
        let (shard, entry) = self.find(video, stream)?;
        shard.read_finite(entry)
    }

    fn find(&self, video: &VideoId, stream: &str) -> Result<(&Shard, &Entry)> {
        self.recipe(stream)?;
        self.place(video, stream).ok_or_else(|| FeatureError::Missing {
            folder: self.folder.clone(),
            video: video.clone(),
            stream: stream.to_owned(),
            near: near(video, &self.videos(stream)),
        })
    }

    /// Reads everything and counts; rows that are not finite are counted here, not refused.
    ///
    /// # Errors
    /// When a shard cannot be read.
    pub fn check(&self) -> Result<StoreCheck> {
        let mut check = StoreCheck::default();
        for shard in &self.shards {
            for entry in &shard.entries {
                let features = shard.read(entry)?;
                let rows = (0..features.rows()).filter_map(|row| features.row(row));
                check.tensors += 1;
                check.rows += features.rows();
                check.bad_rows += rows.clone().filter(|row| row.iter().any(|number| !number.is_finite())).count();
                check.zero_rows += rows.filter(|row| row.iter().all(|number| *number == 0.0)).count();
            }
        }
        Ok(check)
    }

    fn place(&self, video: &VideoId, stream: &str) -> Option<(&Shard, &Entry)> {
        let &(shard, entry) = self.places.get(stream)?.get(video)?;
        let shard = self.shards.get(shard)?;
        Some((shard, shard.entries.get(entry)?))
    }
}

impl FeatureSource for FeatureStore {
    fn streams(&self) -> Vec<&str> {
        self.recipes.keys().map(String::as_str).collect()
    }

    fn origin(&self, stream: &str) -> Result<Origin<'_>> {
        let recipe = self.recipe(stream)?;
        let row_time = Some(recipe.row_time);
        Ok(Origin { path: &self.folder, layout: Layout::Safetensors, recipe: Some(recipe), row_time })
    }

    fn videos(&self, stream: &str) -> Vec<&VideoId> {
        FeatureStore::videos(self, stream)
    }

    fn read(&self, video: &VideoId, stream: &str) -> Result<Features> {
        let (shard, entry) = self.find(video, stream)?;
        shard.read(entry)
    }

    fn clip_len(&self, video: &VideoId, stream: &str, _rows: usize) -> Result<ClipLen> {
        self.clip_len_of(video, stream)
    }
}

/// The shards of a folder, sorted by name.
pub(crate) fn shard_paths(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>> {
    let io = |source| ReadError::Io { path: folder.to_owned(), source };
    let mut paths = Vec::new();
    for entry in folder.read_dir_utf8().map_err(io)? {
        let path = entry.map_err(io)?.into_path();
        if path.extension() == Some("safetensors") {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

fn index(shards: &[Shard]) -> Result<Places> {
    let mut places = Places::new();
    for (at, shard) in shards.iter().enumerate() {
        for (position, entry) in shard.entries.iter().enumerate() {
            let videos = places.entry(entry.stream.clone()).or_default();
            if let Some((earlier, _)) = videos.insert(entry.video.clone(), (at, position)) {
                let first = shards.get(earlier).map_or_else(String::new, |shard| shard.path.to_string());
                return Err(FeatureError::Tensor {
                    path: shard.path.clone(),
                    tensor: format!("{}/{}", entry.stream, entry.video),
                    problem: format!("stands in {first} too"),
                });
            }
        }
    }
    Ok(places)
}
