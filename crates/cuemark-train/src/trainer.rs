//! A run from outside: how it is asked for and how it ended. `session.rs` opens and saves it, `stage.rs` is the training loop,
//! `score.rs` judges it on the way.

use std::sync::Arc;

use cuemark_core::Progress;
use cuemark_formats::Overwrite;
use cuemark_tensor::{Device, set_precision};

use crate::log::Begun;
use crate::nearness::Nearness;
use crate::session::{Beginning, Session};
use crate::{Result, RunFile, RunFolder};

/// Where and how a run happens.
#[derive(Debug)]
pub struct TrainOptions {
    /// What it computes on.
    pub device: Device,
    /// The folder it leaves.
    pub folder: RunFolder,
    /// Whether it begins or goes on.
    pub start: Start,
    /// What `data.similarity` names, where that is more than the words of the training queries.
    pub nearness: Option<Arc<dyn Nearness>>,
}

/// Whether a run begins or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// From the beginning; what is in the folder may be replaced or not.
    Fresh(Overwrite),
    /// From the last checkpoint; from the beginning when there is none.
    Resume,
}

impl TrainOptions {
    fn overwrite(&self) -> Overwrite {
        match self.start {
            Start::Fresh(overwrite) => overwrite,
            // A folder without a checkpoint has nothing to lose.
            Start::Resume => Overwrite::Force,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was trained.
    pub begun: Begun,
    /// Steps made in all, earlier sessions included.
    pub steps: usize,
    /// Best score on the validation split, a fraction.
    pub best: Option<f64>,
    /// The step of the best score.
    pub best_step: usize,
    /// Whether it was stopped from outside.
    pub stopped: bool,
    /// Whether `train.minutes` ended it before its last epoch.
    pub out_of_time: bool,
    /// **Seconds** of this session.
    pub seconds: f64,
    /// Share of the steps' time that was spent waiting for data.
    pub waiting: f64,
}

/// Trains what a run file describes.
///
/// The same run file on the same device gives the same numbers, however often it is stopped and resumed: every draw comes from the
/// seed and the number of the step. `progress` counts steps, those of earlier sessions included, remarks on the loss, and
/// says a line for every evaluation; stopped, the run ends in order after the step it is at, which is no error.
///
/// # Errors
/// When something the run needs is missing or broken, named; when the loss is no longer finite; when the folder cannot be written.
pub fn train(run: &RunFile, options: &TrainOptions, progress: &Progress) -> Result<Outcome> {
    set_precision(run.train.precision);
    let beginning = match options.start {
        Start::Resume if options.folder.last().is_file() => Beginning::Resumed,
        _ => Beginning::Fresh,
    };
    // Before anything is opened: a resumed run with another run file would end in weights that neither of the two describes.
    match beginning {
        Beginning::Resumed => options.folder.check_same(run)?,
        Beginning::Fresh => options.folder.check_free(options.overwrite())?,
    }
    let session = Session::begin(run, options, beginning, progress)?;
    // Nothing is written before everything that the run needs was found to be there.
    if beginning == Beginning::Fresh {
        options.folder.create(run)?;
        session.trained.write_words(&options.folder)?;
    }
    session.run(progress)
}
