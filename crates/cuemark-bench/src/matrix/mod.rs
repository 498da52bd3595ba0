//! A matrix of runs: datasets × protocols × models × features × seeds, each cell a run folder.
//!
//! [`MatrixFile`] says what is run on what; [`expand`] lists the cells and what this machine lacks; [`prepare`] makes the
//! data that the matrix brings itself; [`run`] fills the cells, each in a process of its own that calls [`work`]; the
//! [`Account`] says what became of every one.

mod account;
mod cell;
mod check;
mod command;
mod corpus_guess;
mod expand;
mod file;
mod memory;
mod notes;
mod place;
mod prepare;
mod ready;
mod run;
mod share;
mod work;

pub use account::{Account, CellAccount, State};
pub use cell::{Cell, CellTest, Method};
pub use command::Program;
pub use corpus_guess::CorpusGuess;
pub use expand::{Absent, Expanded, Made, expand};
pub use file::{DatasetEntry, FirstStageEntry, MatrixFile, ModelEntry, Protocol, Quick, TestEntry};
pub use memory::{available, parse_bytes};
pub(crate) use notes::{DoneNote, TrainedNote, evaluation};
pub use prepare::prepare;
pub(crate) use ready::results;
pub use ready::{matrices, run_files};
pub use run::{Launch, RunOptions, run};
pub use work::{CellMessage, Ended, OpenedNearness, WorkOptions, work};
