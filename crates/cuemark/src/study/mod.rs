//! A study: a matrix of runs, filled cell by cell, each in a process of its own.

mod cell;
mod opened;
mod run;

pub use cell::FillCell;
pub use opened::{Study, WrittenStudy};
pub use run::{RanStudy, RunStudy, StudySettings};
