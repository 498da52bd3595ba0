//! Work that is watched: a bar on a terminal, its lines on standard error, Ctrl-C to stop it.

use std::borrow::Cow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use cuemark_core::{Progress, Seen, Stopped};
use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::say;
use crate::stop;

/// How often the work is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Does `work`, called `what` until it names a phase of its own. Its bars are drawn on a terminal only; its lines are
/// printed everywhere; the first Ctrl-C stops it, the second ends the program.
///
/// # Errors
/// Those of the work; [`Stopped`] when that is all that happened.
pub(crate) fn watched<T, E: Into<anyhow::Error>>(
    what: impl Into<Cow<'static, str>>,
    work: impl FnOnce(&Progress) -> Result<T, E>,
) -> anyhow::Result<T> {
    let progress = Progress::new();
    let _wired = stop::on_ctrl_c(&progress);
    shown(&progress, what, || work(&progress))
}

/// As [`watched`], for a step of something longer that has one progress for all its steps and sees to Ctrl-C itself.
pub(crate) fn shown<T, E: Into<anyhow::Error>>(
    progress: &Progress,
    what: impl Into<Cow<'static, str>>,
    work: impl FnOnce() -> Result<T, E>,
) -> anyhow::Result<T> {
    progress.phase(what, 0);
    let result = std::thread::scope(|scope| {
        // Dropped when the work ends, however it ends.
        let (over, is_over) = channel::<()>();
        scope.spawn(move || draw(progress, &is_over));
        let result = work();
        drop(over);
        result
    });
    result.map_err(|error| {
        let error: anyhow::Error = error.into();
        // Errors that are passed on transparently have lost their type by now, but not their words.
        let stopped = progress.is_stopped() && crate::failure::message(&error).ends_with(&Stopped.to_string());
        if stopped { Stopped.into() } else { error }
    })
}

fn draw(progress: &Progress, is_over: &Receiver<()>) {
    let mut board = Board::default();
    if crate::output::is_quiet() {
        board.bars.set_draw_target(ProgressDrawTarget::hidden());
    }
    loop {
        let goes_on = matches!(is_over.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout));
        for line in progress.heard() {
            board.bars.suspend(|| say(&line));
        }
        if !goes_on {
            return board.close();
        }
        board.show(progress);
    }
}

/// A bar for the whole and one for every part that goes on; indicatif draws them on a terminal only.
#[derive(Default)]
struct Board {
    bars: MultiProgress,
    whole: Option<Bar>,
    parts: Vec<(String, Bar)>,
}

/// A bar and the phase that it stands for.
struct Bar {
    bar: ProgressBar,
    phase: Cow<'static, str>,
}

impl Board {
    fn show(&mut self, progress: &Progress) {
        let seen = progress.look();
        if seen.total > 0 {
            let template = "{msg} {wide_bar} {human_pos}/{human_len} {prefix}";
            let whole = self.whole.get_or_insert_with(|| Bar::new(&self.bars, template));
            let words = seen.phase.clone().into_owned();
            whole.show(seen, words);
        }
        let parts = progress.parts();
        self.parts.retain(|(name, one)| {
            let stays = parts.iter().any(|(part, _)| part == name);
            if !stays {
                one.bar.finish_and_clear();
                self.bars.remove(&one.bar);
            }
            stays
        });
        for (name, seen) in parts {
            let place = self.parts.iter().position(|(part, _)| *part == name).unwrap_or_else(|| {
                let template = "  {msg:64} {wide_bar} {human_pos}/{human_len} {prefix}";
                self.parts.push((name.clone(), Bar::new(&self.bars, template)));
                self.parts.len() - 1
            });
            let words = format!("{name} {}", seen.phase);
            self.parts[place].1.show(seen, words);
        }
    }

    fn close(self) {
        for bar in self.parts.iter().map(|(_, part)| part).chain(&self.whole) {
            bar.bar.finish_and_clear();
        }
    }
}

impl Bar {
    fn new(bars: &MultiProgress, template: &str) -> Self {
        let bar = bars.add(ProgressBar::new(0));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, phase: Cow::Borrowed("") }
    }

    fn show(&mut self, seen: Seen, words: String) {
        let Seen { phase, done, total, remark } = seen;
        let is_new = phase != self.phase;
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        let left = self.bar.eta();
        // Nobody knows what is left before something is done.
        let to_go = if done > 0 && done < total && !left.is_zero() && !is_new {
            format!("about {} to go", HumanDuration(left))
        } else {
            String::new()
        };
        self.bar.set_prefix(if remark.is_empty() { to_go } else { format!("{remark} {to_go}") });
        if is_new {
            self.bar.set_message(words);
            // What is left is guessed from this phase alone, and from the place where it began.
            self.bar.reset_eta();
            self.phase = phase;
        }
    }
}

/// A bar of `total` bytes, called `what`.
pub(crate) fn bytes(total: u64, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    let bar = if crate::output::is_quiet() { ProgressBar::hidden() } else { ProgressBar::new(total) };
    let bar = bar.with_message(what);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_work_says_that_it_was_stopped_and_nothing_else() {
        let stopped = watched("scoring", |progress| {
            progress.stop();
            progress.advance(1).map_err(cuemark_metrics::EvalError::from)
        });
        assert!(stopped.unwrap_err().downcast_ref::<Stopped>().is_some());
        let failed = watched("scoring", |progress| {
            progress.stop();
            Err::<(), _>(anyhow::anyhow!("the disk is full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
    }

    #[test]
    fn bars_follow_phases_and_parts() {
        let progress = Progress::new();
        let mut board = Board::default();
        board.show(&progress);
        assert!(board.whole.is_none(), "nobody knows yet how much there is");
        progress.phase("cells", 7);
        progress.advance(2).unwrap();
        let part = progress.part("a cell");
        part.phase("training", 10);
        board.show(&progress);
        let drawn = |bar: &Bar| (bar.bar.message(), bar.bar.position(), bar.bar.length());
        assert_eq!(drawn(board.whole.as_ref().unwrap()), ("cells".to_owned(), 2, Some(7)));
        assert_eq!(drawn(&board.parts[0].1), ("a cell training".to_owned(), 0, Some(10)));
        drop(part);
        board.show(&progress);
        assert!(board.parts.is_empty());
    }
}
