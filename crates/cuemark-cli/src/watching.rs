//! Long work on a terminal: a bar from its `Progress`, its lines to standard error, Ctrl-C to stop it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cuemark_core::Progress;

use crate::{output, progress, stop};

/// How often somebody looks.
const LOOK: Duration = Duration::from_millis(100);

/// Does `work` while a bar shows how far `progress` is. The first Ctrl-C stops the work, the second ends the program.
pub(crate) fn watched<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
    // The system has one handler for the whole program.
    static CTRL_C: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let asked = CTRL_C.get_or_init(stop::on_ctrl_c);
    let (bar, over) = (progress::bar(0, ""), AtomicBool::new(false));
    let look = || {
        if asked.load(Ordering::Relaxed) {
            progress.stop();
        }
        let seen = progress.look();
        bar.set_message(seen.phase);
        bar.set_length(seen.total as u64);
        bar.set_position(seen.done as u64);
        let lines = progress.heard();
        if !lines.is_empty() {
            bar.suspend(|| lines.iter().for_each(|line| output::say(line)));
        }
    };
    let done = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                look();
                std::thread::park_timeout(LOOK);
            }
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        looking.thread().unpark();
        done
    });
    look();
    bar.finish_and_clear();
    done
}
