//! What a training logged, for its curves.

use camino::Utf8Path;
use cuemark_formats::Source;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Result;

/// Points that a curve keeps at most; a longer log is thinned evenly.
const POINTS: usize = 400;

/// What a training logged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingLog {
    /// The run folder's name.
    pub run: String,
    /// Step and loss, in order; thinned to `POINTS`, each the mean of the steps it stands for.
    pub loss: Vec<(f64, f64)>,
    /// Step and score on the validation split, a fraction.
    pub score: Vec<(f64, f64)>,
    /// The split that the scores are of.
    pub split: String,
    /// The step of the best score.
    pub best: Option<f64>,
}

impl TrainingLog {
    /// Reads `RUN/metrics.jsonl`; `None` when there is none or it says nothing. Lines that are no log lines are skipped:
    /// a run may have been cut off in the middle of one.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn read(run: &Utf8Path) -> Result<Option<Self>> {
        let path = run.join("metrics.jsonl");
        if !path.is_file() {
            return Ok(None);
        }
        let name = run.file_name().unwrap_or_default().to_owned();
        let mut log = Self { run: name, loss: Vec::new(), score: Vec::new(), split: String::new(), best: None };
        Source::new(path).for_each_line(|_, line| {
            if let Ok(line) = serde_json::from_str::<Value>(line) {
                log.take(&line);
            }
            Ok(())
        })?;
        log.loss = thinned(&log.loss);
        Ok((!log.loss.is_empty() || !log.score.is_empty()).then_some(log))
    }

    fn take(&mut self, line: &Value) {
        let Some(step) = line["step"].as_f64() else { return };
        if let Some(score) = line["score"].as_f64() {
            self.score.push((step, score));
            if let Some(split) = line["split"].as_str() {
                split.clone_into(&mut self.split);
            }
            if line["best"].as_bool() == Some(true) {
                self.best = Some(step);
            }
        } else if let Some(loss) = line["loss"].as_f64().filter(|loss| loss.is_finite()) {
            self.loss.push((step, loss));
        }
    }
}

/// Means of equally many neighbours, at most [`POINTS`] of them.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let each = points.len().div_ceil(POINTS).max(1);
    let mean = |chunk: &[(f64, f64)]| {
        let n = chunk.len() as f64;
        (chunk.iter().map(|point| point.0).sum::<f64>() / n, chunk.iter().map(|point| point.1).sum::<f64>() / n)
    };
    points.chunks(each).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_losses_scores_and_the_best_step_and_survives_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let log = "{\"step\":1,\"loss\":2.0}\n{\"step\":2,\"loss\":1.0}\n\
                   {\"step\":2,\"split\":\"val\",\"score\":0.5,\"best\":true,\"metrics\":{}}\n{\"step\":3,\"lo";
        std::fs::write(path.join("metrics.jsonl"), log).unwrap();
        let log = TrainingLog::read(path).unwrap().unwrap();
        assert_eq!(log.loss, [(1.0, 2.0), (2.0, 1.0)]);
        assert_eq!((log.score, log.split.as_str(), log.best), (vec![(2.0, 0.5)], "val", Some(2.0)));
        assert_eq!(TrainingLog::read(&path.join("nowhere")).unwrap(), None);
    }

    #[test]
    fn long_logs_are_thinned_to_means() {
        let points: Vec<(f64, f64)> = (0..1_000).map(|n| (f64::from(n), 1.0)).collect();
        let thin = thinned(&points);
        assert!(thin.len() <= POINTS && thin.iter().all(|point| point.1 == 1.0));
        assert_eq!(thin[0].0, 1.0, "the mean of steps 0, 1 and 2");
    }
}
