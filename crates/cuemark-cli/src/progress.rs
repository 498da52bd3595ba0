//! A bar on a terminal, nothing anywhere else.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `total` steps, called `what`; indicatif draws it on a terminal only.
pub(crate) fn bar(total: usize, what: &'static str) -> ProgressBar {
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
