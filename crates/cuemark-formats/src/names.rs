//! One name in memory per video, however many predictions mention it.

use cuemark_core::VideoId;
use rustc_hash::FxHashSet;

/// The names that one worker meets: looked up among those that earlier parts of the file brought, else noted as new.
///
/// Workers share nothing that they write to. A name that several of them meet for the first time in the same moment is
/// held once by each; names are compared by their text, so nobody can tell.
pub(crate) struct Names<'k> {
    known: &'k FxHashSet<VideoId>,
    fresh: FxHashSet<VideoId>,
    last: Option<VideoId>,
}

impl<'k> Names<'k> {
    pub(crate) fn new(known: &'k FxHashSet<VideoId>) -> Self {
        Self { known, fresh: FxHashSet::default(), last: None }
    }

    /// The one `VideoId` that is called `name`.
    pub(crate) fn video(&mut self, name: &str) -> VideoId {
        if let Some(last) = self.last.as_ref().filter(|last| last.as_str() == name) {
            return last.clone();
        }
        let id = match self.known.get(name).or_else(|| self.fresh.get(name)) {
            Some(id) => id.clone(),
            None => {
                let id = VideoId::from(name);
                self.fresh.insert(id.clone());
                id
            }
        };
        self.last = Some(id.clone());
        id
    }

    /// The names that were not known before.
    pub(crate) fn into_fresh(self) -> FxHashSet<VideoId> {
        self.fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_held_once() {
        let known = FxHashSet::from_iter([VideoId::from("a")]);
        let mut names = Names::new(&known);
        let ids = ["a", "b", "b", "a", "b"].map(|name| names.video(name));
        assert_eq!(ids[0].as_str().as_ptr(), known.get("a").unwrap().as_str().as_ptr());
        assert_eq!(ids[1].as_str().as_ptr(), ids[4].as_str().as_ptr());
        assert_eq!(names.into_fresh().len(), 1);
    }
}
