//! What a video is called.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::VideoId;
use rustc_hash::{FxHashMap, FxHashSet};

/// One video file and what it is called.
///
/// It is called by its file's name without the ending. Where several of the files found together would be called alike, each of
/// those is called by its folder too (`FOLDER-NAME`), then by its ending too (`FOLDER-NAME.mkv`), and what is still alike is
/// numbered in the order of the paths. So no name hangs on which file came first, as long as folders differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoFile {
    /// What it is called.
    pub video: VideoId,
    /// Where it lies, from the root and without links.
    pub path: Utf8PathBuf,
}

/// Names for files that were found together; sorted by name.
pub(crate) fn name_all(mut paths: Vec<Utf8PathBuf>) -> Vec<VideoFile> {
    paths.sort_unstable();
    paths.dedup();
    let mut taken: FxHashSet<String> = FxHashSet::default();
    let mut named = Vec::with_capacity(paths.len());
    for level in [stem, with_folder, with_ending] {
        let mut alike: FxHashMap<String, usize> = FxHashMap::default();
        paths.iter().for_each(|path| *alike.entry(level(path)).or_default() += 1);
        let mut left = Vec::new();
        for path in paths {
            let name = level(&path);
            if alike.get(&name) == Some(&1) && taken.insert(name.clone()) {
                named.push(VideoFile { video: VideoId::new(name), path });
            } else {
                left.push(path);
            }
        }
        paths = left;
    }
    for path in paths {
        let name = free_name(&with_ending(&path), |name| taken.contains(name));
        taken.insert(name.clone());
        named.push(VideoFile { video: VideoId::new(name), path });
    }
    named.sort_unstable_by(|a, b| a.video.cmp(&b.video));
    named
}

/// `name`, with the first number behind it that makes it free: `name-2`, `name-3` …
pub fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_taken(name));
    free.unwrap_or_else(|| name.to_owned())
}

fn stem(path: &Utf8Path) -> String {
    path.file_stem().unwrap_or("video").to_owned()
}

fn with_folder(path: &Utf8Path) -> String {
    format!("{}-{}", path.parent().and_then(Utf8Path::file_name).unwrap_or("root"), stem(path))
}

fn with_ending(path: &Utf8Path) -> String {
    format!("{}.{}", with_folder(path), path.extension().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<(String, String)> {
        let named = name_all(paths.iter().map(Utf8PathBuf::from).collect());
        let mut named: Vec<_> =
            named.into_iter().map(|file| (file.path.into_string(), file.video.to_string())).collect();
        named.sort();
        named
    }

    #[test]
    fn a_name_says_as_much_as_it_takes_to_be_alone() {
        let paths =
            ["/f/a/film.mp4", "/f/b/film.mp4", "/f/c/film.mkv", "/f/c/film.mp4", "/f/other.mp4", "/g/a/film.mp4"];
        let called: Vec<String> = names(&paths).into_iter().map(|(_, name)| name).collect();
        assert_eq!(called, ["a-film.mp4", "b-film", "c-film.mkv", "c-film.mp4", "other", "a-film.mp4-2"]);
    }

    #[test]
    fn a_later_file_of_the_same_name_takes_no_name_from_another() {
        let before = names(&["/f/b/film.mp4", "/f/c/film.mp4"]);
        let after = names(&["/f/a/film.mp4", "/f/b/film.mp4", "/f/c/film.mp4"]);
        assert!(before.iter().all(|one| after.contains(one)), "{before:?} {after:?}");
    }
}
