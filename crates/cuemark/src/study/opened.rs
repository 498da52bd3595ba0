//! A study that was read and whose cells are known: its steps one by one.

use std::cell::RefCell;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_bench::leaderboard::{AboutDataset, RunResult, RunsFile};
use cuemark_bench::matrix::{Account, Cell, Expanded, MatrixFile, RunOptions, State, prepare, run};
use cuemark_bench::merge;
use cuemark_bench::report::{Report, ReportOptions, TrustCard, read_runs};
use cuemark_core::text::thousands;
use cuemark_core::{Progress, whole_message};
use cuemark_formats::Overwrite;
use cuemark_world::WorldOptions;

use super::cell::FillCell;
use super::run::StudySettings;
use crate::{Result, Shard};

/// A matrix, and what it comes to on this machine. [`RunStudy::run`](super::RunStudy::run) takes its steps in order.
#[derive(Debug, Clone)]
pub struct Study {
    /// The matrix, made small where that was asked for.
    pub matrix: MatrixFile,
    /// Its cells, what has to be made for them, and what is left out.
    pub expanded: Expanded,
    /// Its folder.
    pub out: Utf8PathBuf,
    pub(super) settings: StudySettings,
    pub(super) program: Vec<String>,
}

/// What a study leaves beside its cells.
#[derive(Debug, Clone)]
pub struct WrittenStudy {
    /// The figures of every finished cell: `results.json`.
    pub figures: RunsFile,
    /// The report, when it could be written.
    pub report: Option<Utf8PathBuf>,
    /// Its trust cards.
    pub cards: Vec<TrustCard>,
    /// Whether everything could be written.
    pub whole: bool,
}

impl Study {
    /// Makes the data that the matrix brings itself; what is there already is kept.
    ///
    /// # Errors
    /// When it cannot be made, or it was stopped.
    pub fn prepare(&self, progress: &Progress) -> Result<()> {
        let shard = self.settings.shard;
        let aside = (shard != Shard::WHOLE).then(|| format!("share-{}", shard.to_string().replace('/', "-of-")));
        Ok(prepare(&self.expanded.made, aside.as_deref(), progress)?)
    }

    /// Fills the cells that are not done, each in a process of its own; what became of every one.
    ///
    /// # Errors
    /// When the matrix's folder cannot be written or holds notes that are not ours.
    pub fn fill(&self, progress: &Progress) -> Result<Account> {
        #[expect(clippy::result_large_err, reason = "the matrix's own error; a cell is launched seldom")]
        let launch = |folder: &Utf8Path, threads: usize| {
            let job =
                FillCell { device: self.settings.device.clone(), force: self.settings.force, ..FillCell::new(folder) };
            let mut words = self.program.iter();
            let mut command = Command::new(words.next().map_or("cuemark", String::as_str));
            command.args(words).args(["bench", "--cell", job.write()?.as_str()]);
            command.env("RAYON_NUM_THREADS", threads.to_string());
            Ok(command)
        };
        // A machine that is taken away must not take the figures of finished cells with it.
        let figures = RefCell::new(self.figures(progress));
        let done = |cell: &Cell| {
            let mut figures = figures.borrow_mut();
            // What an earlier training of the cell had come to gives way.
            figures.results.retain(|run| !run.is_of(cell));
            figures.results.extend(self.of_cell(cell, progress));
            if let Err(error) = figures.write(&self.results(), Overwrite::Force) {
                progress.say(format!("figures could not be written: {}", whole_message(&error)));
            }
        };
        let account = self.file_name("account");
        let options = RunOptions {
            name: &self.matrix.name,
            out: &self.out,
            account: &account,
            done: &done,
            jobs: self.settings.jobs.map(usize::from).or(self.matrix.jobs),
            memory: self.settings.memory,
            launch: &launch,
        };
        Ok(run(&self.expanded, &options, progress)?)
    }

    /// Every finished cell's figures; a cell whose files were damaged is said and left out.
    pub fn figures(&self, progress: &Progress) -> RunsFile {
        let results = self.expanded.cells.iter().filter_map(|cell| self.of_cell(cell, progress)).collect();
        let mut file = RunsFile::new(&self.matrix.name, today(), results);
        file.shard = (self.settings.shard != Shard::WHOLE).then(|| self.settings.shard.to_string());
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        file.machine = format!("{cores} cores, {} {}", std::env::consts::OS, std::env::consts::ARCH);
        for (entry, world) in self.matrix.dataset.iter().filter_map(|entry| Some((entry, entry.filmed()?))) {
            file.datasets.insert(entry.label(), AboutDataset { about: about_world(&world) });
        }
        file
    }

    /// What a cell came to, when it is done; a cell whose files were damaged is said and left out.
    fn of_cell(&self, cell: &Cell, progress: &Progress) -> Option<RunResult> {
        RunResult::of_cell(cell, &self.out.join("cells").join(&cell.name)).unwrap_or_else(|error| {
            progress.say(format!("{}: its results cannot be read: {}", cell.name, whole_message(&error)));
            None
        })
    }

    /// `account.json`, or `account-2-of-4.json` of a share.
    fn file_name(&self, stem: &str) -> String {
        match self.settings.shard {
            Shard::WHOLE => format!("{stem}.json"),
            shard => merge::file_of(stem, &shard.to_string()),
        }
    }

    /// Where the figures of this study, or of its share, stand.
    fn results(&self) -> Utf8PathBuf {
        self.out.join(self.file_name("results"))
    }

    /// Puts the shares that are there together; those that cannot be are said.
    fn merged(&self, figures: RunsFile, progress: &Progress) -> Result<RunsFile> {
        if self.settings.shard == Shard::WHOLE {
            return Ok(figures);
        }
        let merged = merge::merge_into_results(&self.out)?;
        merged.left_out.into_iter().for_each(|line| progress.say(line));
        Ok(merged.file)
    }

    /// Writes `results.json` and the report. On a full disk that fails, is said, and is no reason to keep the account back.
    pub fn write(&self, account: &Account, progress: &Progress) -> WrittenStudy {
        let mut figures = self.figures(progress);
        let mut whole = true;
        let mut failed = |what: &str, error: &dyn std::error::Error| {
            progress.say(format!("{what} could not be written: {}", whole_message(error)));
            whole = false;
        };
        if let Err(error) = figures.write(&self.results(), Overwrite::Force) {
            failed("the figures", &error);
        }
        match self.merged(figures.clone(), progress) {
            Ok(merged) => figures = merged,
            Err(error) => failed("results.json of all shares", &error),
        }
        let (report, cards) = self.write_report(account).unwrap_or_else(|error| {
            failed("the report", &error);
            (None, Vec::new())
        });
        WrittenStudy { figures, report, cards, whole }
    }

    /// Writes the report over all finished cells; where it is, or `None` when no cell is finished, and its trust cards.
    fn write_report(&self, account: &Account) -> Result<(Option<Utf8PathBuf>, Vec<TrustCard>)> {
        let done = |state: State| matches!(state, State::Done | State::Before);
        let finished = account.cells.iter().filter(|cell| done(cell.state));
        let folders: Vec<Utf8PathBuf> = finished.map(|cell| self.out.join("cells").join(&cell.cell)).collect();
        if folders.is_empty() {
            return Ok((None, Vec::new()));
        }
        let mut notes = vec![format!("{}: {}", self.matrix.name, account.summary())];
        let failed = account.cells.iter().filter(|cell| cell.state == State::Failed);
        notes.extend(failed.map(|cell| format!("{} failed: {}", cell.cell, cell.why.as_deref().unwrap_or_default())));
        let absent = self.expanded.absent.iter();
        notes.extend(absent.map(|absent| format!("{} was left out: {}", absent.what, absent.why)));
        let options = ReportOptions { title: self.matrix.about.clone(), notes, ..ReportOptions::default() };
        let folder = self.out.join(self.file_name("report").trim_end_matches(".json"));
        let report = Report::of(read_runs(&folders)?, options)?;
        report.write(&folder, Overwrite::Force)?;
        Ok((Some(folder.join("report.html")), report.cards))
    }
}

/// The day in UTC, `2026-11-15`.
fn today() -> String {
    time::OffsetDateTime::now_utc().date().to_string()
}

/// What kind of world it is: its size, and whatever of it is not as usual.
fn about_world(world: &WorldOptions) -> String {
    let usual = WorldOptions::default();
    let mut about = format!("built-in world, {} videos", thousands(world.videos));
    if (world.length, world.events) != (usual.length, usual.events) {
        about += &format!(" of about {} s with {} events", world.length, world.events);
    }
    about += &format!(", bias {}", world.bias);
    let knobs = [
        ("verb share", world.verb_share, usual.verb_share),
        ("actor share", world.actor_share, usual.actor_share),
        ("overlong", world.overlong, usual.overlong),
        ("vocabulary", world.vocabulary as f64, usual.vocabulary as f64),
        ("noise", world.noise, usual.noise),
        ("disagreement", world.disagreement, usual.disagreement),
    ];
    for (knob, value, _) in knobs.into_iter().filter(|(_, value, usual)| value != usual) {
        about += &format!(", {knob} {value}");
    }
    about + &format!(", seed {}", world.seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_is_told_by_its_size_and_what_is_not_as_usual() {
        assert_eq!(about_world(&WorldOptions::default()), "built-in world, 2,000 videos, bias 0.8, seed 0");
        let dense = WorldOptions { length: 20.0, events: 8, actor_share: 0.5, seed: 3, ..WorldOptions::default() };
        let wanted = "built-in world, 2,000 videos of about 20 s with 8 events, bias 0.8, actor share 0.5, seed 3";
        assert_eq!(about_world(&dense), wanted);
    }

    #[test]
    fn today_is_a_day() {
        let today = today();
        assert_eq!(today.len(), 10);
        assert!(today.as_str() > "2026-01-01", "{today}");
    }
}
