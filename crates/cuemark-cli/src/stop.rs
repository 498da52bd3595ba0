//! Ctrl-C: once to end in order, twice to end at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::output::say;

/// A flag that the first Ctrl-C sets; the second ends the program. To be called once.
pub(crate) fn on_ctrl_c() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let set = ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    if let Err(error) = set {
        say(&format!("Ctrl-C will not save anything: {error}"));
    }
    stop
}
