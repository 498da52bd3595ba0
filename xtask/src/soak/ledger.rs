//! What was acknowledged, and whether it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What is known of a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Adding it was acknowledged.
    There,
    /// Removing it was acknowledged, or it was never added.
    Gone,
    /// Somebody was killed in the middle.
    Nothing,
}

/// Every film and what is known of it.
pub(super) struct Ledger {
    films: Mutex<BTreeMap<String, Known>>,
    /// Held for reading by whoever writes the index, so that a look at everything meets nothing half done.
    quiet: RwLock<()>,
}

impl Ledger {
    /// These are there.
    pub(super) fn of(films: &[String]) -> Self {
        let films = films.iter().map(|film| (film.clone(), Known::There)).collect();
        Self { films: Mutex::new(films), quiet: RwLock::default() }
    }

    pub(super) fn note(&self, film: &str, known: Known) {
        self.films.lock().unwrap_or_else(PoisonError::into_inner).insert(film.to_owned(), known);
    }

    pub(super) fn known(&self, film: &str) -> Known {
        let films = self.films.lock().unwrap_or_else(PoisonError::into_inner);
        films.get(film).copied().unwrap_or(Known::Gone)
    }

    /// For whoever changes the index.
    pub(super) fn writing(&self) -> RwLockReadGuard<'_, ()> {
        self.quiet.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For whoever compares it with what is known.
    pub(super) fn comparing(&self) -> RwLockWriteGuard<'_, ()> {
        self.quiet.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is not as it was acknowledged.
    pub(super) fn compare(&self, listed: &BTreeSet<String>) -> Vec<String> {
        let films = self.films.lock().unwrap_or_else(PoisonError::into_inner);
        let wrong = films.iter().filter_map(|(film, known)| match (known, listed.contains(film)) {
            (Known::There, false) => Some(format!("`{film}` is lost")),
            (Known::Gone, true) => Some(format!("`{film}` is back")),
            _ => None,
        });
        wrong.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_film_and_one_that_came_back_are_told_of_and_unknown_ones_are_not() {
        let ledger = Ledger::of(&["stays".to_owned(), "lost".to_owned()]);
        ledger.note("removed", Known::Gone);
        ledger.note("killed", Known::Nothing);
        let listed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(ledger.compare(&listed(&["stays", "lost"])), Vec::<String>::new());
        assert_eq!(ledger.compare(&listed(&["stays", "removed", "killed"])), ["`lost` is lost", "`removed` is back"]);
    }
}
