//! A dataset's folder, read.

use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, QueryId, Split, VideoId};
use cuemark_formats::Source;
use indexmap::IndexMap;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::{DataError, DatasetCard, FileCard, Layout, QueryIds, ReadOptions, Result};

/// The splits of one dataset that were found in a folder.
#[derive(Debug)]
pub struct Dataset {
    /// What is known about it.
    pub card: &'static DatasetCard,
    /// The folder.
    pub root: Utf8PathBuf,
    /// The splits that are there, in the card's order.
    pub splits: Vec<Split>,
    /// The splits that are not.
    pub absent: Vec<&'static FileCard>,
}

/// Reads the files of `card` that lie in `root`, its own folder; what is not there is listed, not an error. `progress`
/// counts the bytes of the splits' files.
///
/// # Errors
/// When a file cannot be read, nothing that belongs to the dataset is there, or the reading was stopped.
pub fn load(
    card: &'static DatasetCard,
    root: &Utf8Path,
    options: &ReadOptions,
    progress: &Progress,
) -> Result<Dataset> {
    let located = card.files.iter().map(|file| (file, locate(root, file)));
    let watched = located.map(|(file, source)| (file, source.map(|source| source.watched(progress))));
    let found: Vec<(&FileCard, Option<Source>)> = watched.collect();
    let has_side = || card.sides.iter().flat_map(|side| side.paths).any(|path| Source::find(root, path).is_some());
    if found.iter().all(|(_, source)| source.is_none()) && !has_side() {
        let paths =
            card.files.iter().map(|file| file.path).chain(card.sides.iter().flat_map(|side| side.paths).copied());
        let example = paths.into_iter().next().unwrap_or_default();
        return Err(DataError::NothingThere { root: root.to_owned(), dataset: card.name, example });
    }
    // Several splits can lie in one file, which is read once.
    let sources: IndexMap<&Utf8Path, (&Source, &Layout)> = found
        .iter()
        .filter_map(|(file, source)| source.as_ref().map(|source| (source.path(), (source, file.layout))))
        .collect();
    let files: Vec<&(&Source, &Layout)> = sources.values().collect();
    progress.announce(files.iter().filter_map(|(source, _)| source.size()).sum::<u64>() as usize);
    let read: Vec<_> = files.par_iter().map(|(source, layout)| (layout.read)(source, options)).collect();
    let mut parts: Vec<(&Utf8Path, Split)> = Vec::new();
    for (path, splits) in sources.keys().zip(read) {
        parts.extend(splits?.into_iter().map(|split| (*path, split)));
    }
    let (mut splits, mut absent) = (Vec::new(), Vec::new());
    for (file, source) in &found {
        let path = source.as_ref().map(Source::path);
        let wanted =
            |(at, split): &(&Utf8Path, Split)| Some(*at) == path && (split.name.is_empty() || split.name == file.split);
        let Some(position) = parts.iter().position(wanted) else {
            absent.push(*file);
            continue;
        };
        let (path, split) = parts.swap_remove(position);
        let below = path.strip_prefix(root).unwrap_or(path);
        splits.push(Split { name: file.split.to_owned(), file: below.to_string(), ..split });
    }
    Ok(Dataset { card, root: root.to_owned(), splits, absent })
}

fn locate(root: &Utf8Path, file: &FileCard) -> Option<Source> {
    std::iter::once(&file.path).chain(file.also).find_map(|path| Source::find(root, path))
}

impl Dataset {
    /// The split called `name`, or several joined by `+`: `val_1+val_2` holds the queries of both.
    ///
    /// # Errors
    /// When there is no such split, or its file is not there.
    pub fn split(&self, name: &str) -> Result<Cow<'_, Split>> {
        let one = |name: &str| {
            self.splits.iter().find(|split| split.name == name).ok_or_else(|| DataError::UnknownName {
                what: "split",
                name: name.to_owned(),
                known: self.splits.iter().map(|split| split.name.clone()).collect(),
            })
        };
        if !name.contains('+') {
            return Ok(Cow::Borrowed(one(name)?));
        }
        let splits = name.split('+').map(one).collect::<Result<Vec<_>>>()?;
        Ok(Cow::Owned(self.join(name, &splits)))
    }

    /// Every split in one, those left out whose queries another one of them holds already.
    pub fn all(&self) -> Split {
        self.join("all", &self.distinct())
    }

    /// The splits, without those whose queries another one of them holds already.
    pub(crate) fn distinct(&self) -> Vec<&Split> {
        let is_there = |name: &str| self.splits.iter().any(|split| split.name == name);
        self.splits
            .iter()
            .filter(|split| {
                let card = self.card.files.iter().find(|file| file.split == split.name);
                !card.and_then(|file| file.repeats).is_some_and(is_there)
            })
            .collect()
    }

    /// Joins splits in the given order; each video stands once, as the first split has it.
    ///
    /// Query ids become `FILE_STEM:id` where they would not be unique: running numbers of several files, or
    /// published ids of which two are the same.
    pub fn join(&self, name: &str, splits: &[&Split]) -> Split {
        let files: FxHashSet<&str> = splits.iter().map(|split| split.file.as_str()).collect();
        let prefixed = match self.card.ids {
            QueryIds::Running => files.len() > 1,
            QueryIds::Published => {
                let ids: FxHashSet<&QueryId> =
                    splits.iter().flat_map(|split| &split.queries).map(|truth| &truth.query.id).collect();
                ids.len() < splits.iter().map(|split| split.queries.len()).sum()
            }
        };
        let parts = splits.iter().map(|&split| {
            let mut part = split.clone();
            if prefixed {
                let source = Source::new(split.file.as_str());
                for truth in &mut part.queries {
                    truth.query.id = QueryId::new(format!("{}:{}", source.stem(), truth.query.id));
                }
            }
            part
        });
        let joined = concatenated(parts);
        let mut files: Vec<&str> = splits.iter().map(|split| split.file.as_str()).collect();
        files.dedup();
        Split { name: name.to_owned(), file: files.join("+"), ..joined }
    }
}

/// Splits in one, without a name; each video stands once, as it stands first.
pub(crate) fn concatenated(parts: impl IntoIterator<Item = Split>) -> Split {
    let mut whole = Split::default();
    let mut seen: FxHashSet<VideoId> = FxHashSet::default();
    for part in parts {
        whole.videos.extend(part.videos.into_iter().filter(|video| seen.insert(video.id.clone())));
        whole.queries.extend(part.queries);
        whole.rows.add(&part.rows);
    }
    whole
}
