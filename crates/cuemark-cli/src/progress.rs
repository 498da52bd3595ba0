//! A bar on a terminal, nothing anywhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cuemark_core::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `total` steps, called `what`; indicatif draws it on a terminal only.
pub(crate) fn bar(total: usize, what: impl Into<std::borrow::Cow<'static, str>>) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}");
    let bar = ProgressBar::new(total as u64).with_message(what);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A bar of `total` bytes, called `what`.
pub(crate) fn bytes(total: u64, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    let bar = ProgressBar::new(total).with_message(what);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Does long work under a bar that shows its phases and what it says meanwhile.
pub(crate) fn watched<T>(progress: &Progress, work: impl FnOnce(&Progress) -> T) -> T {
    let bar = bar(0, "");
    let is_done = AtomicBool::new(false);
    let show = || {
        let seen = progress.look();
        bar.set_message(seen.phase);
        bar.set_length(seen.total.max(seen.done) as u64);
        bar.set_position(seen.done as u64);
        progress.heard().iter().for_each(|line| bar.suspend(|| crate::output::say(line)));
    };
    let done = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                show();
                std::thread::park_timeout(Duration::from_millis(100));
            }
        });
        let done = work(progress);
        is_done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        done
    });
    show();
    bar.finish_and_clear();
    done
}

/// As [`watched`]; Ctrl-C stops the work.
pub(crate) fn stoppable<T>(work: impl FnOnce(&Progress) -> T) -> T {
    let progress = Arc::new(Progress::new());
    let asked = Arc::clone(&progress);
    // Without a handler Ctrl-C ends the program at once, which is safe too.
    let _ = ctrlc::set_handler(move || asked.stop());
    watched(&progress, work)
}
