//! The process that fills one cell of a study: it says how far it is on standard output, a JSON object a line, and ends in
//! order when its standard input closes.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use camino::Utf8Path;
use cuemark::FillCell;
use cuemark_bench::matrix::{CellMessage, Ended};
use cuemark_core::{Advise as _, Dialect, Progress, whole_message};

use crate::stop;

/// How often a cell says how far it is: ten lines a second are plenty for a bar.
const TELL: Duration = Duration::from_millis(100);

/// Does the job that a file describes.
pub(crate) fn fill(job: &Utf8Path) -> Ended {
    let progress = Progress::new();
    let _wired = stop::on_ctrl_c(&progress);
    let asked = progress.clone();
    // Whoever started this process closes its input to end it, be it by intent or by dying.
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        asked.stop();
    });
    let ended = std::thread::scope(|scope| {
        // Dropped when the work ends, however it ends.
        let (over, is_over) = channel::<()>();
        let told = progress.clone();
        scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(TELL) {
                tell(&CellMessage::of(told.look()));
            }
        });
        let ended = FillCell::read(job).and_then(|job| job.run(&progress));
        drop(over);
        ended
    });
    let ended = ended
        .unwrap_or_else(|error| Ended::Failed { why: whole_message(&error), hint: error.advice_in(Dialect::Terminal) });
    tell(&CellMessage::Ended(ended.clone()));
    ended
}

fn tell(told: &CellMessage) {
    use std::io::Write as _;
    if let Ok(line) = serde_json::to_string(told) {
        // Without a listener there is nobody to tell.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }
}
