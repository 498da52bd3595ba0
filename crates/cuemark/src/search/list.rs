//! What there is to ask: indexes and films below folders.

use std::collections::VecDeque;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Progress;
use cuemark_media::ENDINGS;
use cuemark_search::{EngineUrl, Index};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The most files and folders that are looked at.
const ENTRIES: usize = 200_000;

/// Lists the indexes and films below folders, those nearest to the top first. Links are not followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ListFilms {
    /// The folders.
    #[cfg_attr(feature = "schemars", schemars(with = "Vec<String>"))]
    pub folders: Vec<Utf8PathBuf>,
    /// Indexes and films, at most so many of each; the rest is counted.
    #[serde(default = "some")]
    pub limit: usize,
}

fn some() -> usize {
    ListFilms::LIMIT
}

/// What was found below folders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ListedFilms {
    /// Folders that are an index.
    pub indexes: Vec<Utf8PathBuf>,
    /// Indexes beyond the limit.
    pub more_indexes: usize,
    /// Files that are named like films.
    pub films: Vec<Utf8PathBuf>,
    /// Films beyond the limit.
    pub more_films: usize,
    /// Whether there was more to look at than is looked at in one go.
    pub cut_short: bool,
}

impl ListFilms {
    /// So many of each unless somebody says otherwise.
    pub const LIMIT: usize = 100;
    /// The most of each.
    pub const MOST: usize = 1000;

    /// What is below `folders`.
    pub fn new(folders: Vec<Utf8PathBuf>) -> Self {
        Self { folders, limit: Self::LIMIT }
    }

    /// Walks the folders, breadth first. One that cannot be read is passed over.
    ///
    /// # Errors
    /// When the limit cannot be, or the work was stopped.
    pub fn run(&self, progress: &Progress) -> Result<ListedFilms> {
        if !(1..=Self::MOST).contains(&self.limit) {
            return Err(Error::setting("limit", format!("{} is not in 1 to {}", self.limit, Self::MOST)));
        }
        progress.phase("looking around", 0);
        let mut listed = ListedFilms::default();
        let mut waiting: VecDeque<Utf8PathBuf> = self.folders.iter().cloned().collect();
        let mut looked_at = 0;
        while let Some(folder) = waiting.pop_front() {
            if Index::manifest_of(&EngineUrl::File(folder.clone())).is_ok() {
                take(&mut listed.indexes, &mut listed.more_indexes, folder, self.limit);
                continue;
            }
            let Ok(entries) = folder.read_dir_utf8() else { continue };
            let mut entries: Vec<_> = entries.flatten().take(ENTRIES - looked_at + 1).collect();
            entries.sort_by(|a, b| a.file_name().cmp(b.file_name()));
            for entry in entries {
                progress.advance(1)?;
                looked_at += 1;
                if looked_at > ENTRIES {
                    listed.cut_short = true;
                    return Ok(listed);
                }
                // Of the entry itself: a link is neither a folder nor a file.
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && !entry.file_name().starts_with('.') {
                    waiting.push_back(entry.into_path());
                } else if kind.is_file() && is_film(entry.path()) {
                    take(&mut listed.films, &mut listed.more_films, entry.into_path(), self.limit);
                }
            }
        }
        Ok(listed)
    }
}

fn take(list: &mut Vec<Utf8PathBuf>, more: &mut usize, path: Utf8PathBuf, limit: usize) {
    if list.len() < limit {
        list.push(path);
    } else {
        *more += 1;
    }
}

fn is_film(path: &Utf8Path) -> bool {
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn films_are_listed_from_the_top_and_counted_beyond_the_limit() {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        std::fs::create_dir_all(folder.join("a/deep")).unwrap();
        std::fs::create_dir(folder.join(".hidden")).unwrap();
        for name in ["a/deep/d.mp4", "a/b.MKV", "z.mp4", "notes.txt", ".hidden/h.mp4"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        let request = ListFilms { limit: 2, ..ListFilms::new(vec![folder.clone()]) };
        let listed = request.run(&Progress::new()).unwrap();
        assert_eq!(listed.films, [folder.join("z.mp4"), folder.join("a/b.MKV")]);
        assert_eq!((listed.more_films, listed.indexes.len(), listed.cut_short), (1, 0, false));
        assert!(ListFilms { limit: 0, ..request }.run(&Progress::new()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        std::fs::create_dir_all(folder.join("inside")).unwrap();
        std::fs::write(folder.join("secret.mp4"), "x").unwrap();
        std::os::unix::fs::symlink(folder.join("secret.mp4"), folder.join("inside/link.mp4")).unwrap();
        std::os::unix::fs::symlink(&folder, folder.join("inside/up")).unwrap();
        let listed = ListFilms::new(vec![folder.join("inside")]).run(&Progress::new()).unwrap();
        assert_eq!(listed, ListedFilms::default());
    }
}
