//! The few inputs that reach what many do.

use std::path::Path;

use camino::Utf8PathBuf;
use cuemark_fuzz::coverage::Coverage;
use cuemark_fuzz::{Reader, Turn, feed_in};

use crate::Places;
use crate::seeds::files_below;
use crate::worker::keep;

/// Inputs that are kept of one target at most: those that bring most.
const MOST: usize = 40;
/// Longer ones are left out.
const LONGEST: usize = 4 << 10;

/// Copies the inputs of the pool that reach something that neither the corpus, nor the fixtures, nor a smaller one that was
/// copied reaches. Whether that could be told.
pub(crate) fn minimise(name: &str, reader: Reader, places: &Places, into: &Path) -> bool {
    let Ok(folder) = tempfile::tempdir() else { return false };
    let Ok(folder) = Utf8PathBuf::from_path_buf(folder.path().to_owned()) else { return false };
    let feed = |bytes: &[u8]| {
        let _ = std::panic::catch_unwind(|| feed_in(&folder, reader, Turn::Every, bytes));
    };
    feed(&[]);
    let Some(mut coverage) = Coverage::begin() else { return false };
    for path in [places.corpus.join(name), places.fixtures.clone()].iter().flat_map(|folder| files_below(folder)) {
        if let Ok(bytes) = std::fs::read(path) {
            feed(&bytes);
        }
    }
    coverage.take();
    let known = coverage.reached();
    let pool = files_below(&places.out.join("pool").join(name)).into_iter();
    let mut pool: Vec<Vec<u8>> =
        pool.filter_map(|path| std::fs::read(path).ok()).filter(|bytes| bytes.len() <= LONGEST).collect();
    pool.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    let (all, mut kept) = (pool.len(), Vec::new());
    for bytes in pool {
        feed(&bytes);
        let new = coverage.take();
        if new > 0 {
            kept.push((new, bytes));
        }
    }
    let reached = coverage.reached();
    kept.sort_by_key(|one| std::cmp::Reverse(one.0));
    kept.truncate(MOST);
    let brought: usize = kept.iter().map(|(new, _)| new).sum();
    for (place, (new, bytes)) in kept.iter().enumerate() {
        keep(&into.join(name), &format!("reaches-{new}-more-{place}"), bytes);
    }
    println!(
        "{name}: {} of {all} inputs kept; {known} edges without them, {} with them, {reached} with all",
        kept.len(),
        known + brought
    );
    true
}
