//! Fitting probabilities again, to answers that were judged after the index was made.

use crate::{Calibration, EngineUrl, Index, Manifest, Result, engine};

impl Index {
    /// The z-score of `score`: by how many standard deviations it lies above what the sentence scores by chance. A
    /// [`Calibration`] is a curve over it.
    ///
    /// # Errors
    /// Those of the encoder and the engine.
    pub fn surprise(&self, sentence: &str, score: f32) -> Result<f64> {
        Ok(self.background()?.spread(&self.sentence(sentence)?).surprise(score))
    }

    /// Writes another curve into the manifest of the index at `url`, whole or not at all. Indexes that are open keep theirs.
    ///
    /// # Errors
    /// When somebody is writing the index, it cannot be written, or its engine keeps no manifest that can be changed.
    pub fn recalibrate(url: &EngineUrl, calibration: Calibration) -> Result<Manifest> {
        engine::change_manifest(url, |manifest| manifest.calibration = calibration)
    }
}
