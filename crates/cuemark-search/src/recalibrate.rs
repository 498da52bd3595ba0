//! Fitting probabilities again, to answers that were judged after the index was made.

use std::sync::{Mutex, PoisonError};

use camino::Utf8PathBuf;
use cuemark_media::Stamp;

use crate::{Calibration, EngineUrl, Index, Manifest, Result, answer, engine, manifest};

/// The curve of an index that is open: read again when the manifest's file is another.
#[derive(Debug)]
pub(crate) struct CurrentCurve {
    /// The folder of the manifest; `None` where it cannot be changed.
    folder: Option<Utf8PathBuf>,
    known: Mutex<(Option<Stamp>, Calibration)>,
}

impl CurrentCurve {
    pub(crate) fn of(url: &EngineUrl, manifest: &Manifest) -> Self {
        let folder = match url {
            EngineUrl::File(folder) => Some(folder.clone()),
            EngineUrl::Milvus { .. } => None,
        };
        // Without a stamp the first question reads the file: it may have changed since the manifest was read.
        Self { folder, known: Mutex::new((None, manifest.calibration)) }
    }

    /// The curve now. A file that is gone or cannot be read leaves the one that is known.
    pub(crate) fn now(&self) -> Calibration {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(folder) = &self.folder else { return known.1 };
        let stamp = Stamp::of(&folder.join(manifest::FILE)).ok();
        if stamp.is_some()
            && stamp != known.0
            && let Ok(manifest) = Manifest::read(folder)
        {
            *known = (stamp, manifest.calibration);
        }
        known.1
    }
}

impl Index {
    /// The z-score of `score`: by how many standard deviations it lies above what the sentence scores by chance. A
    /// [`Calibration`] is a curve over it.
    ///
    /// # Errors
    /// Those of the encoder and the engine.
    pub fn surprise(&self, sentence: &str, score: f32) -> Result<f64> {
        let (background, query) = (self.background()?, self.sentence(sentence)?);
        Ok(answer::spread(&background, &self.calibration(), &query).surprise(score))
    }

    /// Writes another curve into the manifest of the index at `url`, whole or not at all. Indexes that are open
    /// answer by it from their next question on.
    ///
    /// # Errors
    /// When somebody is writing the index, it cannot be written, or its engine keeps no manifest that can be changed.
    pub fn recalibrate(url: &EngineUrl, calibration: Calibration) -> Result<Manifest> {
        engine::change_manifest(url, |manifest| manifest.calibration = calibration)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::engine::disk::RealDisk;

    #[test]
    fn whoever_has_an_index_open_answers_by_the_curve_that_was_written_last() {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        let mut about = Manifest {
            layout: 3,
            cuemark: "test".to_owned(),
            encoder: "none".to_owned(),
            width: 8,
            calibration: Calibration::default(),
            log: None,
            kept: BTreeMap::new(),
        };
        about.write_on(&RealDisk, &folder).unwrap();
        let curve = CurrentCurve::of(&EngineUrl::File(folder.clone()), &about);
        assert_eq!(curve.now(), Calibration::default());
        about.calibration = Calibration { answers: 1000, cut: Some(0.75), ..Calibration::default() };
        about.write_on(&RealDisk, &folder).unwrap();
        assert_eq!(curve.now(), about.calibration);
        std::fs::remove_file(folder.join(manifest::FILE)).unwrap();
        assert_eq!(curve.now(), about.calibration, "what is known stays");
    }
}
