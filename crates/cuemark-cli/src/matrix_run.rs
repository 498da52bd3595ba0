//! Running a matrix from the command line: bars, processes, results, report.

use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_bench::leaderboard::{AboutDataset, RunResult, RunsFile};
use cuemark_bench::matrix::{
    Account, Ended, Expanded, MatrixFile, RunOptions, State, Told, WorkOptions, prepare, run, work,
};
use cuemark_bench::report::{Report, ReportOptions, read_runs};
use cuemark_core::Progress;
use cuemark_core::text::thousands;
use cuemark_formats::Overwrite;

use crate::output::say;
use crate::stop;

/// How a matrix is run.
pub(crate) struct Settings<'a> {
    pub(crate) out: &'a Utf8Path,
    pub(crate) jobs: Option<usize>,
    pub(crate) memory: Option<u64>,
    pub(crate) device: &'a str,
    pub(crate) overwrite: Overwrite,
}

/// Makes the data and fills the cells; what became of every one.
pub(crate) fn fill(
    matrix: &MatrixFile,
    expanded: &Expanded,
    settings: &Settings<'_>,
    progress: &Progress,
) -> anyhow::Result<Account> {
    prepare(&expanded.made, progress)?;
    let program = std::env::current_exe()?;
    let launch = |folder: &Utf8Path, threads: usize| {
        let mut command = Command::new(&program);
        command.args(["bench", "--cell", folder.as_str(), "--device", settings.device]);
        if settings.overwrite == Overwrite::Force {
            command.arg("--force");
        }
        command.env("RAYON_NUM_THREADS", threads.to_string());
        command
    };
    let options = RunOptions {
        name: &matrix.name,
        out: settings.out,
        jobs: settings.jobs,
        memory: settings.memory,
        launch: &launch,
    };
    Ok(run(expanded, &options, progress)?)
}

/// Every finished cell's figures, in one file that can be committed; a cell whose files were damaged is told and left out.
pub(crate) fn results(matrix: &MatrixFile, expanded: &Expanded, out: &Utf8Path) -> RunsFile {
    let mut results = Vec::new();
    for cell in &expanded.cells {
        match RunResult::of_cell(cell, &out.join("cells").join(&cell.name)) {
            Ok(result) => results.extend(result),
            Err(error) => {
                say(&format!("{}: its results cannot be read: {}", cell.name, cuemark_core::whole_message(&error)));
            }
        }
    }
    let mut file = RunsFile::new(&matrix.name, today(), results);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    file.machine = format!("{cores} cores, {} {}", std::env::consts::OS, std::env::consts::ARCH);
    for entry in &matrix.dataset {
        if entry.name == "world" && entry.root.is_none() {
            let options = entry.world.unwrap_or_default().options();
            let about = format!(
                "built-in world, {} videos, bias {}, seed {}",
                thousands(options.videos),
                options.bias,
                options.seed
            );
            file.datasets.insert(entry.label(), AboutDataset { about });
        }
    }
    file
}

/// What a matrix leaves beside its cells.
pub(crate) struct Left {
    /// Every finished cell's figures.
    pub(crate) results: RunsFile,
    /// The report, when it could be written.
    pub(crate) report: Option<Utf8PathBuf>,
    /// Whether everything could be written.
    pub(crate) whole: bool,
}

/// Writes `results.json` and the report. On a full disk that fails, is said, and is no reason to keep the account back.
pub(crate) fn write_all(matrix: &MatrixFile, expanded: &Expanded, account: &Account, out: &Utf8Path) -> Left {
    let results = results(matrix, expanded, out);
    let mut whole = true;
    let mut told = |what: &str, error: &anyhow::Error| {
        say(&format!("{what} could not be written: {}", crate::failure::message(error)));
        whole = false;
    };
    if let Err(error) = results.write(&out.join("results.json"), Overwrite::Force) {
        told("results.json", &error.into());
    }
    let report = write_report(matrix, expanded, account, out).unwrap_or_else(|error| {
        told("the report", &error);
        None
    });
    Left { results, report, whole }
}

/// Writes the report over all finished cells; where it is, or `None` when no cell is finished.
fn write_report(
    matrix: &MatrixFile,
    expanded: &Expanded,
    account: &Account,
    out: &Utf8Path,
) -> anyhow::Result<Option<Utf8PathBuf>> {
    let done = |state: State| matches!(state, State::Done | State::Before);
    let finished = account.cells.iter().filter(|cell| done(cell.state));
    let folders: Vec<Utf8PathBuf> = finished.map(|cell| out.join("cells").join(&cell.cell)).collect();
    if folders.is_empty() {
        return Ok(None);
    }
    let mut notes = vec![format!("{}: {}", matrix.name, account.summary())];
    let failed = account.cells.iter().filter(|cell| cell.state == State::Failed);
    notes.extend(failed.map(|cell| format!("{} failed: {}", cell.cell, cell.why.as_deref().unwrap_or_default())));
    notes.extend(expanded.absent.iter().map(|absent| format!("{} was left out: {}", absent.what, absent.why)));
    let options = ReportOptions { title: matrix.about.clone(), notes, ..ReportOptions::default() };
    let report = Report::of(read_runs(&folders)?, options)?;
    let folder = out.join("report");
    report.write(&folder, Overwrite::Force)?;
    Ok(Some(folder.join("report.html")))
}

/// The day in UTC, `2026-11-15`.
fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let days = i64::try_from(since.as_secs() / 86_400).unwrap_or_default();
    // Counting from 1 March of the year 0 puts the leap day last and makes months regular.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// How often a cell says how far it is: ten lines a second are plenty for a bar.
const TELL: Duration = Duration::from_millis(100);

/// Fills one cell: what every process of a matrix does. Says how far it is on standard output, a JSON object a line.
pub(crate) fn fill_cell(folder: &Utf8Path, device: &str, overwrite: Overwrite) -> Ended {
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
                say_told(&Told::of(told.look()));
            }
        });
        let ended = cuemark_tensor::device(device)
            .map_err(anyhow::Error::from)
            .and_then(|device| Ok(work(folder, &WorkOptions { device, overwrite }, &progress)?));
        drop(over);
        ended
    });
    let ended = ended.unwrap_or_else(|error| Ended::Failed {
        why: crate::failure::message(&error),
        hint: crate::failure::hint(&error),
    });
    say_told(&Told::Ended(ended.clone()));
    ended
}

fn say_told(told: &Told) {
    use std::io::Write as _;
    if let Ok(line) = serde_json::to_string(told) {
        // Without a listener there is nobody to tell.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn today_is_a_day() {
        let today = super::today();
        assert_eq!(today.len(), 10);
        assert!(today.as_str() > "2026-01-01", "{today}");
    }
}
