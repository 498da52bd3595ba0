//! Scores a prediction file against the truth and prints a table for a paper.
//!
//! `cargo run --example score_a_file -- TRUTH PREDICTIONS`

#![allow(clippy::print_stdout)] // an example talks to the terminal

use camino::Utf8PathBuf;
use cuemark::{PredictionFile, Progress, Score, TruthFile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [truth, predictions] = arguments.as_slice() else {
        return Err("usage: score_a_file TRUTH PREDICTIONS".into());
    };
    score_a_file(truth.into(), predictions.into())
}

/// Scores `predictions` against `truth`.
pub fn score_a_file(truth: Utf8PathBuf, predictions: Utf8PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    let mut score = Score::new(TruthFile::new(truth), PredictionFile::new(predictions));
    // Without an interval a figure is only half a figure: 95 % by bootstrap over queries.
    score.ci = Some(95.0);
    let scored = score.run(&Progress::new())?;
    println!("{}", scored.report().to_markdown());
    // Files from outside are rarely clean; what was met is counted, never hidden.
    println!("{} of {} queries have no prediction", scored.evaluation.missing, scored.evaluation.queries);
    Ok(())
}
