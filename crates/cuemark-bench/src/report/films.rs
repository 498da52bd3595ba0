//! Where the files of videos are, as links from a report.

use std::collections::BTreeMap;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// Files of videos by the name that a truth gives them.
///
/// Nothing is copied: the page links to the files where they lie, relative to its own folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Films {
    links: BTreeMap<String, String>,
}

impl Films {
    /// Links from the folder `from` to `files`, given as name and path. Both are best absolute: a relative path is taken to
    /// start where `from` does.
    pub fn new(from: &Utf8Path, files: impl IntoIterator<Item = (String, Utf8PathBuf)>) -> Self {
        Self { links: files.into_iter().map(|(name, path)| (name, link(from, &path))).collect() }
    }

    /// The link to a video's file.
    pub fn link(&self, video: &str) -> Option<&str> {
        self.links.get(video).map(String::as_str)
    }

    /// How many videos have a file.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }
}

/// The way from the folder `from` to `path`, as a relative link.
fn link(from: &Utf8Path, path: &Utf8Path) -> String {
    let parts = |path: &Utf8Path| -> Vec<String> {
        let named =
            path.components().filter(|part| matches!(part, Utf8Component::Normal(_) | Utf8Component::ParentDir));
        named.map(|part| part.as_str().to_owned()).collect()
    };
    let (from, to) = (parts(from), parts(path));
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - shared);
    let down = to.iter().skip(shared).map(|part| encoded(part));
    up.chain(down).collect::<Vec<_>>().join("/")
}

/// A part of a path with everything but letters, digits and a few marks as `%XX`: a `#` in a name is no fragment.
fn encoded(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_goes_up_to_what_is_shared_and_down_from_there() {
        let from = Utf8Path::new("/home/me/out/report");
        let link = |path: &str| link(from, Utf8Path::new(path));
        assert_eq!(link("/home/me/videos/a b#1.mp4"), "../../videos/a%20b%231.mp4");
        assert_eq!(link("/home/me/out/report/c.mp4"), "c.mp4");
        assert_eq!(link("/data/\"quoted\".mp4"), "../../../../data/%22quoted%22.mp4");
    }
}
