//! The folders that were allowed, and nothing else.
//!
//! Who asks is an assistant that may have read anything: a film's subtitles may tell it to open a key file. It cannot change
//! the folders through us, so a path that was looked at is still the same when it is opened, and resolving links once is enough.

use camino::{Utf8Path, Utf8PathBuf};

use crate::McpError;
use crate::error::Result;

/// Whether clips may be written into the allowed folders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Writing {
    /// They may not. Default.
    #[default]
    Never,
    /// They may, as new files.
    New,
}

/// Folders that may be read, all links resolved.
#[derive(Debug, Clone)]
pub(crate) struct Allowed {
    roots: Vec<Utf8PathBuf>,
    writing: Writing,
}

impl Allowed {
    /// Allows `roots`.
    pub(crate) fn new(roots: &[Utf8PathBuf], writing: Writing) -> Result<Self> {
        let whole = |path: &Utf8PathBuf| {
            let refused = |problem: String| McpError::Root { path: path.clone(), problem };
            let whole = path.canonicalize_utf8().map_err(|error| refused(error.to_string()))?;
            if whole.is_dir() { Ok(whole) } else { Err(refused("it is no folder".to_owned())) }
        };
        Ok(Self { roots: roots.iter().map(whole).collect::<Result<_>>()?, writing })
    }

    pub(crate) fn roots(&self) -> &[Utf8PathBuf] {
        &self.roots
    }

    /// What the argument `field` names, links resolved, when it is there and inside. A path that does not begin at the top is
    /// looked for in each folder.
    pub(crate) fn existing(&self, field: &'static str, path: &str) -> Result<Utf8PathBuf> {
        let inside = |path: &Utf8PathBuf| self.roots.iter().any(|root| path.starts_with(root));
        self.meant(path)
            .into_iter()
            .find_map(|path| path.canonicalize_utf8().ok().filter(inside))
            .ok_or_else(|| self.outside(field, path))
    }

    /// Whether a path that something of ours names lies inside, links resolved.
    pub(crate) fn holds(&self, path: &Utf8Path) -> bool {
        self.existing("path", path.as_str()).is_ok()
    }

    /// Where the new file that `field` names is to be written, when it may be.
    pub(crate) fn new_file(&self, field: &'static str, path: &str) -> Result<Utf8PathBuf> {
        if self.writing == Writing::Never {
            return Err(McpError::ReadOnly);
        }
        let given = Utf8Path::new(path);
        let name = given.file_name().ok_or_else(|| self.outside(field, path))?;
        let folder = given.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
        let folder = self.existing(field, folder.as_str()).map_err(|_| self.outside(field, path))?;
        let whole = folder.join(name);
        // Of the name itself: a link that leads nowhere yet would be written through.
        if whole.symlink_metadata().is_ok() {
            return Err(McpError::Exists { path: whole });
        }
        Ok(whole)
    }

    fn meant(&self, path: &str) -> Vec<Utf8PathBuf> {
        let path = Utf8Path::new(path);
        if path.as_str().is_empty() {
            Vec::new()
        } else if path.is_absolute() {
            vec![path.to_owned()]
        } else {
            self.roots.iter().map(|root| root.join(path)).collect()
        }
    }

    fn outside(&self, field: &'static str, path: &str) -> McpError {
        let path: String = path.chars().take(300).collect();
        McpError::Outside { field, path, roots: self.roots.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder `in` with a film, and a secret beside it.
    fn folders() -> (tempfile::TempDir, Utf8PathBuf, Utf8PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let home = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir(home.join("in")).unwrap();
        std::fs::create_dir(home.join("inner")).unwrap();
        std::fs::write(home.join("in/film.mp4"), "film").unwrap();
        std::fs::write(home.join("secret"), "key").unwrap();
        std::fs::write(home.join("inner/secret"), "key").unwrap();
        (guard, home.clone(), home.join("in"))
    }

    #[test]
    fn what_lies_inside_is_found_by_its_whole_name_and_from_the_folder() {
        let (_guard, _, root) = folders();
        let allowed = Allowed::new(std::slice::from_ref(&root), Writing::Never).unwrap();
        for path in ["film.mp4", "./film.mp4", "../in/film.mp4", root.join("film.mp4").as_str()] {
            assert_eq!(allowed.existing("film", path).unwrap(), root.join("film.mp4"), "{path}");
        }
    }

    #[test]
    fn nothing_outside_is_opened_and_nobody_learns_whether_it_is_there() {
        let (_guard, home, root) = folders();
        let allowed = Allowed::new(&[root], Writing::New).unwrap();
        let said = |path: &str| allowed.existing("film", path).unwrap_err().to_string().replace(path, "X");
        let absent = said("no such film.mp4");
        // `inner` begins like `in` and is another folder.
        let inner = home.join("inner/secret");
        for path in ["../secret", "/etc/passwd", inner.as_str(), "../inner/secret", "", "..", "a\0b", "/no/such"] {
            assert!(allowed.existing("film", path).is_err(), "{path:?}");
            if !path.is_empty() {
                assert_eq!(said(path), absent, "{path:?}");
            }
        }
        assert!(said(&"x".repeat(1_000_000)).len() < 1000);
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_out_are_refused_and_links_that_stay_are_not() {
        use std::os::unix::fs::symlink;
        let (_guard, home, root) = folders();
        symlink(home.join("secret"), root.join("out.mp4")).unwrap();
        symlink(&home, root.join("up")).unwrap();
        symlink(home.join("nowhere"), root.join("dangling.mp4")).unwrap();
        symlink(root.join("film.mp4"), root.join("again.mp4")).unwrap();
        let allowed = Allowed::new(std::slice::from_ref(&root), Writing::New).unwrap();
        for path in ["out.mp4", "up/secret", "up", "dangling.mp4"] {
            assert!(allowed.existing("film", path).is_err(), "{path}");
        }
        assert_eq!(allowed.existing("film", "again.mp4").unwrap(), root.join("film.mp4"));
        for path in ["up/new.mp4", "dangling.mp4", "out.mp4", "../new.mp4", "..", "/tmp/new.mp4", "no folder/new.mp4"] {
            assert!(allowed.new_file("out", path).is_err(), "{path}");
        }
    }

    #[test]
    fn new_files_are_named_only_where_that_was_allowed_and_nothing_is_replaced() {
        let (_guard, _, root) = folders();
        let allowed = Allowed::new(std::slice::from_ref(&root), Writing::New).unwrap();
        assert_eq!(allowed.new_file("out", "new.mp4").unwrap(), root.join("new.mp4"));
        assert!(matches!(allowed.new_file("out", "film.mp4"), Err(McpError::Exists { .. })));
        let reading = Allowed::new(&[root], Writing::Never).unwrap();
        assert!(matches!(reading.new_file("out", "new.mp4"), Err(McpError::ReadOnly)));
    }

    #[test]
    fn a_root_must_be_a_folder() {
        let (_guard, home, root) = folders();
        assert!(Allowed::new(&[home.join("nothing")], Writing::Never).is_err());
        assert!(Allowed::new(&[root.join("film.mp4")], Writing::Never).is_err());
    }
}
