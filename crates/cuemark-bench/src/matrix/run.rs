//! Filling cells side by side, each in a process of its own.
//!
//! A process that crashes or runs out of memory takes one cell with it and nothing else. Cells are told to stop by closing
//! their standard input, so that they also end in order when the matrix itself is killed.

use std::collections::{HashMap, VecDeque};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise, Dialect, Progress, whole_message};
use cuemark_formats::{ReadError, Source};

use super::account::{Account, CellAccount, State};
use super::cell::Cell;
use super::expand::Expanded;
use super::memory;
use super::notes::{self, DoneNote};
use super::work::{CellMessage, Ended};
use crate::Result;

/// Makes the command that fills the cell in a folder with so many threads. Its standard input stays open until it shall stop;
/// its standard output says [`CellMessage`], a line each.
pub type Launch<'a> = &'a dyn Fn(&Utf8Path, usize) -> Result<Command>;

/// How a matrix is run.
pub struct RunOptions<'a> {
    /// The matrix's name.
    pub name: &'a str,
    /// Its folder.
    pub out: &'a Utf8Path,
    /// What the file of the account is called there.
    pub account: &'a str,
    /// Cells side by side at the most; `None` for one per core.
    pub jobs: Option<usize>,
    /// Bytes that all cells together may have; `None` for four fifths of what is available.
    pub memory: Option<u64>,
    /// How a cell's process is made.
    pub launch: Launch<'a>,
    /// Told whenever a cell is done, so that its figures can be kept at once.
    pub done: &'a dyn Fn(&Cell),
}

/// What a cell is expected to need before anybody has seen one like it.
const UNKNOWN_CELL: u64 = 1 << 30;

/// How long a cell may take to save its state when asked to stop.
const GRACE: Duration = Duration::from_secs(30);

/// How often memory and the wish to stop are looked at.
const TICK: Duration = Duration::from_millis(100);

/// Fills every cell that is not done, and says what became of each.
///
/// A cell that fails is counted and the others go on. `progress` counts cells, has a part for each that runs, and says a
/// line when one ends; once it is stopped, running cells save their state and the rest does not begin, which is no error.
/// Running the same matrix again does what is left.
///
/// # Errors
/// When the matrix's folder cannot be written or holds notes that are not ours.
pub fn run(expanded: &Expanded, options: &RunOptions<'_>, progress: &Progress) -> Result<Account> {
    let cells = &expanded.cells;
    let mut states = Vec::with_capacity(cells.len());
    let mut waiting = VecDeque::new();
    let mut needs: HashMap<(String, String), u64> = HashMap::new();
    for (position, cell) in cells.iter().enumerate() {
        let folder = folder(options.out, cell);
        let done = notes::is_done(cell, &folder)?;
        if done {
            learn_need(&mut needs, cell, &folder);
        } else {
            waiting.push_back(position);
        }
        let state = if done { State::Before } else { State::Waiting };
        states.push(CellAccount { cell: cell.name.clone(), state, seconds: 0.0, why: None, hint: None });
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let jobs = options.jobs.unwrap_or(cores).clamp(1, waiting.len().max(1));
    let account = Account {
        matrix: options.name.to_owned(),
        cells: states,
        absent: expanded.absent.clone(),
        jobs,
        threads: (cores / jobs).max(1),
        wall_seconds: 0.0,
        work_seconds: 0.0,
        process_seconds: 0.0,
    };
    let budget = options.memory.or_else(|| memory::available().map(|bytes| bytes / 5 * 4)).unwrap_or(u64::MAX);
    let (sender, receiver) = channel();
    progress.phase("cells", cells.len());
    // Stopped or not, what was done before is done.
    let _ = progress.advance(cells.len() - waiting.len());
    let running = Vec::new();
    let runner = Runner { cells, options, progress, account, waiting, running, needs, budget, sender, stopping: false };
    runner.run(&receiver)
}

fn folder(out: &Utf8Path, cell: &Cell) -> Utf8PathBuf {
    out.join("cells").join(&cell.name)
}

/// Remembers what a finished cell needed, for others like it.
fn learn_need(needs: &mut HashMap<(String, String), u64>, cell: &Cell, folder: &Utf8Path) {
    if let Ok(Some(DoneNote { peak_mib: Some(peak), .. })) = DoneNote::read(folder) {
        let need = needs.entry((cell.dataset.clone(), cell.model.clone())).or_default();
        *need = (*need).max(peak << 20);
    }
}

/// A line or the end of a cell's standard output.
enum Heard {
    Line(usize, String),
    Closed(usize),
}

struct Running {
    position: usize,
    child: Child,
    /// Dropped to ask the process to stop.
    stdin: Option<ChildStdin>,
    began: Instant,
    ended: Option<Ended>,
    /// How far it is, as it says itself.
    part: Progress,
    expected: u64,
    asked: Option<Instant>,
    set_back: bool,
}

struct Runner<'a> {
    cells: &'a [Cell],
    options: &'a RunOptions<'a>,
    progress: &'a Progress,
    account: Account,
    waiting: VecDeque<usize>,
    running: Vec<Running>,
    needs: HashMap<(String, String), u64>,
    budget: u64,
    sender: Sender<Heard>,
    stopping: bool,
}

impl Runner<'_> {
    fn run(mut self, receiver: &Receiver<Heard>) -> Result<Account> {
        let began = Instant::now();
        loop {
            self.look_around();
            while !self.stopping && self.begin_one() {}
            self.account.wall_seconds = began.elapsed().as_secs_f64();
            if self.running.is_empty() {
                break;
            }
            match receiver.recv_timeout(TICK) {
                Ok(Heard::Line(position, line)) => self.hear(position, &line),
                Ok(Heard::Closed(position)) => self.end(position),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        self.write();
        Ok(self.account)
    }

    /// Passes on the wish to stop, and keeps all cells together within the memory.
    fn look_around(&mut self) {
        if !self.stopping && self.progress.is_stopped() {
            self.stopping = true;
            self.running.iter_mut().for_each(Running::ask_to_stop);
        }
        for running in &mut self.running {
            if running.asked.is_some_and(|asked| asked.elapsed() > GRACE) {
                // Whatever it wrote is whole or not there; its end is noticed when its output closes.
                let _ = running.child.kill();
            }
        }
        let now: Vec<u64> = self.running.iter().map(|one| memory::of_process(one.child.id()).unwrap_or(0)).collect();
        for (running, bytes) in self.running.iter_mut().zip(&now) {
            running.expected = running.expected.max(*bytes);
        }
        let total: u64 = now.iter().sum();
        let too_much = total > self.budget && self.running.len() > 1;
        if too_much
            && self.running.iter().all(|one| one.asked.is_none())
            && let Some(youngest) = self.running.iter_mut().max_by_key(|one| one.began)
        {
            youngest.set_back = true;
            youngest.ask_to_stop();
            let cell = &self.cells[youngest.position].name;
            self.progress.say(format!("{cell}: set back for want of memory, goes on later"));
        }
    }

    /// Begins the first cell that may begin; `false` when none may.
    fn begin_one(&mut self) -> bool {
        self.fail_what_cannot_begin();
        if self.running.len() >= self.account.jobs {
            return false;
        }
        let taken: u64 = self.running.iter().map(|one| one.expected).fold(0, u64::saturating_add);
        let fits =
            |position: &usize| self.running.is_empty() || taken.saturating_add(self.need(*position)) <= self.budget;
        let ready = |position: &usize| self.cells[*position].needs.iter().all(|need| self.is_done(need));
        let Some(place) = self.waiting.iter().position(|position| ready(position) && fits(position)) else {
            return false;
        };
        let Some(position) = self.waiting.remove(place) else { return false };
        match self.begin(position) {
            Ok(running) => self.running.push(running),
            Err(error) => {
                let why = (whole_message(&error), error.advice_in(Dialect::Terminal));
                self.note(position, State::Failed, 0.0, Some(why));
            }
        }
        true
    }

    fn need(&self, position: usize) -> u64 {
        let cell = &self.cells[position];
        self.needs.get(&(cell.dataset.clone(), cell.model.clone())).copied().unwrap_or(UNKNOWN_CELL)
    }

    fn state_of(&self, name: &str) -> Option<State> {
        self.account.cells.iter().find(|cell| cell.cell == name).map(|cell| cell.state)
    }

    fn is_done(&self, name: &str) -> bool {
        matches!(self.state_of(name), Some(State::Done | State::Before))
    }

    /// A cell that stands on a failed one fails with it.
    fn fail_what_cannot_begin(&mut self) {
        let failed = |need: &&String| self.state_of(need) == Some(State::Failed);
        let lost: Vec<(usize, String)> = self
            .waiting
            .iter()
            .filter_map(|position| Some((*position, self.cells[*position].needs.iter().find(failed)?.clone())))
            .collect();
        for (position, need) in lost {
            self.waiting.retain(|other| *other != position);
            self.note(position, State::Failed, 0.0, Some((format!("it stands on {need}, which failed"), None)));
        }
    }

    fn begin(&self, position: usize) -> Result<Running> {
        let cell = &self.cells[position];
        let folder = folder(self.options.out, cell);
        notes::write_cell(cell, &folder)?;
        let log = folder.join("log.txt");
        let refused = |source| ReadError::Write { path: log.clone(), source };
        let stderr = OpenOptions::new().create(true).append(true).open(&log).map_err(refused)?;
        let mut command = (self.options.launch)(&folder, self.account.threads)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let began = Instant::now();
        let mut child = command.spawn().map_err(refused)?;
        let stdin = child.stdin.take();
        if let Some(stdout) = child.stdout.take() {
            let sender = self.sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
                    // The runner listens until every cell has closed.
                    let _ = sender.send(Heard::Line(position, line));
                }
                let _ = sender.send(Heard::Closed(position));
            });
        }
        let expected = self.need(position);
        let part = self.progress.part(&cell.name);
        Ok(Running { position, child, stdin, began, ended: None, part, expected, asked: None, set_back: false })
    }

    fn hear(&mut self, position: usize, line: &str) {
        // A line that is not ours (a library that prints) is nobody's business.
        let Ok(told) = serde_json::from_str::<CellMessage>(line) else { return };
        let Some(running) = self.running.iter_mut().find(|one| one.position == position) else { return };
        match told {
            CellMessage::Working { phase, done, of } => {
                if running.part.look().phase != phase {
                    running.part.phase(phase, 0);
                }
                running.part.set(done, of);
            }
            CellMessage::Ended(ended) => running.ended = Some(ended),
        }
    }

    /// The process has closed its output: sees how it ended.
    fn end(&mut self, position: usize) {
        let Some(place) = self.running.iter().position(|one| one.position == position) else { return };
        let mut running = self.running.remove(place);
        drop(running.stdin.take());
        let status = running.child.wait();
        let seconds = running.began.elapsed().as_secs_f64();
        self.account.process_seconds += seconds;
        let cell = &self.cells[position];
        let folder = folder(self.options.out, cell);
        let (state, why) = match (&running.ended, status) {
            (Some(Ended::Done { seconds: worked }), _) => {
                self.account.work_seconds += worked;
                learn_need(&mut self.needs, cell, &folder);
                (State::Done, None)
            }
            (Some(Ended::Failed { why, hint }), _) => (State::Failed, Some((why.clone(), hint.clone()))),
            (ended, _) if running.asked.is_some() => {
                if let Some(Ended::Stopped { seconds: worked }) = ended {
                    self.account.work_seconds += worked;
                }
                (State::Stopped, None)
            }
            (Some(Ended::Stopped { .. }), _) => (State::Stopped, None),
            (None, Ok(status)) => (State::Failed, Some((how_it_died(status, &folder), None))),
            (None, Err(error)) => (State::Failed, Some((error.to_string(), None))),
        };
        if state == State::Stopped && running.set_back && !self.stopping {
            let need = self.needs.entry((cell.dataset.clone(), cell.model.clone())).or_default();
            *need = (*need).max(running.expected);
            self.waiting.push_back(position);
            return;
        }
        if state == State::Failed {
            // Its time is work that was lost, not the matrix's own.
            self.account.work_seconds += seconds;
        }
        self.note(position, state, seconds, why);
    }

    fn note(&mut self, position: usize, state: State, seconds: f64, why: Option<(String, Option<String>)>) {
        let (why, hint) = why.map_or((None, None), |(why, hint)| (Some(why), hint));
        let account = CellAccount { cell: self.cells[position].name.clone(), state, seconds, why, hint };
        let because = account.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        self.progress.say(format!("{} in {seconds:.0} s: {state}{because}", account.cell));
        self.account.cells[position] = account;
        if state == State::Done {
            (self.options.done)(&self.cells[position]);
        }
        // A matrix that was stopped goes on until its cells have saved their state.
        let _ = self.progress.advance(1);
        self.write();
    }

    /// On a full disk the account is still printed, so this is no reason to stop.
    fn write(&self) {
        if let Err(error) = self.account.write(&self.options.out.join(self.options.account)) {
            self.progress.say(format!("the account could not be written: {}", whole_message(&error)));
        }
    }
}

impl Running {
    fn ask_to_stop(&mut self) {
        self.asked.get_or_insert_with(Instant::now);
        self.stdin = None;
    }
}

/// A process that ended without a word.
fn how_it_died(status: ExitStatus, folder: &Utf8Path) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let guess = if signal == 9 { " (out of memory?)" } else { "" };
        return format!("its process was ended by signal {signal}{guess}");
    }
    let log = Source::new(folder.join("log.txt")).text().unwrap_or_default();
    let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned();
    format!("its process ended with {status}: {last}")
}
