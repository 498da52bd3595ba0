//! A run without its data: what an index keeps of it, so that it can be searched anywhere and for ever.

use camino::Utf8PathBuf;
use cuemark_features::Recipe;
use cuemark_text::Relation;
use serde::{Deserialize, Serialize};

use crate::footage::Widths;
use crate::{Result, RunFile, RunFolder, TrainError};

/// What a search needs to know of the data that a run learned from: `search.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    /// How wide features are.
    pub(crate) widths: Widths,
    /// **Seconds** of the stretches that the model was trained on.
    pub(crate) window: f64,
    /// How clip features must have been made.
    pub(crate) recipe: Option<Recipe>,
    /// The roles whose words are phrases.
    pub(crate) roles: Vec<Option<Relation>>,
}

impl Known {
    /// What the folder says; `None` for the folder of a run that still has its data.
    pub(crate) fn read(folder: &RunFolder) -> Result<Option<Self>> {
        let fault = |problem: String| TrainError::Folder {
            path: folder.known(),
            problem,
            hint: "make the index again from its run".into(),
        };
        let text = match std::fs::read(folder.known()) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault(format!("cannot be read: {error}"))),
        };
        let known: Self = serde_json::from_slice(&text).map_err(|error| fault(format!("is damaged: {error}")))?;
        if !(known.window > 0.0 && known.window.is_finite()) {
            return Err(fault(format!("is damaged: a window of {} s cannot be", known.window)));
        }
        Ok(Some(known))
    }

    /// The files of a folder in which a run lies as this knows it, by their names there.
    pub(crate) fn files(&self, folder: &RunFolder, run: &RunFile) -> Result<Vec<(String, Vec<u8>)>> {
        let weights = if folder.best().is_file() { folder.best() } else { folder.last() };
        let read = |path: Utf8PathBuf| {
            std::fs::read(&path).map_err(|error| TrainError::Folder {
                path,
                problem: format!("cannot be read: {error}"),
                hint: "name the folder of a whole run".into(),
            })
        };
        let mut run = run.clone();
        // While the data are where they were, they can be found from any working folder.
        for path in [&mut run.data.root, &mut run.data.features].into_iter().flatten() {
            if let Ok(whole) = path.canonicalize_utf8() {
                *path = whole;
            }
        }
        let kept = RunFolder::new("");
        let known = serde_json::to_vec_pretty(self).map_err(|error| TrainError::Folder {
            path: folder.path().to_owned(),
            problem: format!("cannot be kept: {error}"),
            hint: "train it again".into(),
        })?;
        let mut files = vec![
            (kept.run_file(), run.to_toml()?.into_bytes()),
            (kept.vocabulary(), read(folder.vocabulary())?),
            (kept.verbs(), read(folder.verbs())?),
            (kept.best(), read(weights)?),
            (kept.known(), known),
        ];
        if run.data.text.is_some() {
            files.push((kept.text(), read(folder.text())?));
        }
        Ok(files.into_iter().map(|(path, bytes)| (path.into_string(), bytes)).collect())
    }
}
