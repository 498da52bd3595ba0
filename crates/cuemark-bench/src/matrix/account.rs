//! What became of every cell.

use std::fmt;

use camino::Utf8Path;
use serde::Serialize;

use super::expand::Absent;
use super::notes;
use crate::Result;

/// What became of a matrix: `account.json`, brought up to date whenever a cell ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// The matrix.
    pub matrix: String,
    /// Every cell, in the matrix's order.
    pub cells: Vec<CellAccount>,
    /// What was left out because this machine lacks something.
    pub absent: Vec<Absent>,
    /// Cells that ran side by side at the most.
    pub jobs: usize,
    /// Threads of each.
    pub threads: usize,
    /// **Seconds** from the first cell's start to the last one's end.
    pub wall_seconds: f64,
    /// **Seconds** that cells worked, by their own clocks, added up.
    pub work_seconds: f64,
    /// **Seconds** from starting processes to their ends, added up.
    pub process_seconds: f64,
}

/// What became of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellAccount {
    /// Its name.
    pub cell: String,
    /// How it stands.
    pub state: State,
    /// **Seconds** of this session.
    pub seconds: f64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// How a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It was done before and nothing had to be done.
    Before,
    /// It is done now.
    Done,
    /// Something was wrong.
    Failed,
    /// It was stopped on the way and can be resumed.
    Stopped,
    /// It never began.
    Waiting,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "done before",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Waiting => "not begun",
        })
    }
}

impl Account {
    /// Cells in a state.
    pub fn count(&self, state: State) -> usize {
        self.cells.iter().filter(|cell| cell.state == state).count()
    }

    /// Whether every cell is done.
    pub fn is_complete(&self) -> bool {
        self.cells.iter().all(|cell| matches!(cell.state, State::Before | State::Done))
    }

    /// The matrix's own share of the time its cells took; `None` when no cell ran.
    ///
    /// It holds starting and ending processes, reading cells and waiting for a place; not making data beforehand.
    pub fn overhead(&self) -> Option<f64> {
        (self.work_seconds > 0.0).then(|| (self.process_seconds - self.work_seconds).max(0.0) / self.work_seconds)
    }

    /// Cells by state, in a line: `3 done, 1 failed, 2 not begun`.
    pub fn summary(&self) -> String {
        let states = [State::Done, State::Before, State::Failed, State::Stopped, State::Waiting];
        let counts = states.into_iter().map(|state| (self.count(state), state)).filter(|(count, _)| *count > 0);
        let mut parts: Vec<String> = counts.map(|(count, state)| format!("{count} {state}")).collect();
        if !self.absent.is_empty() {
            parts.push(format!("{} left out", self.absent.len()));
        }
        if parts.is_empty() { "no cells".to_owned() } else { parts.join(", ") }
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, path: &Utf8Path) -> Result<()> {
        notes::write(path, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(states: &[State]) -> Account {
        let cell = |(number, state): (usize, &State)| CellAccount {
            cell: number.to_string(),
            state: *state,
            seconds: 0.0,
            why: None,
            hint: None,
        };
        Account {
            matrix: "m".to_owned(),
            cells: states.iter().enumerate().map(cell).collect(),
            absent: Vec::new(),
            jobs: 1,
            threads: 1,
            wall_seconds: 103.0,
            work_seconds: 100.0,
            process_seconds: 102.0,
        }
    }

    #[test]
    fn the_summary_counts_every_cell_once() {
        let account = account(&[State::Done, State::Before, State::Done, State::Failed, State::Waiting]);
        assert_eq!(account.summary(), "2 done, 1 done before, 1 failed, 1 not begun");
        assert!(!account.is_complete());
        assert!((account.overhead().unwrap() - 0.02).abs() < 1e-12);
    }

    #[test]
    fn only_done_is_complete() {
        assert!(account(&[State::Done, State::Before]).is_complete());
        for state in [State::Failed, State::Stopped, State::Waiting] {
            assert!(!account(&[State::Done, state]).is_complete(), "{state}");
        }
    }
}
