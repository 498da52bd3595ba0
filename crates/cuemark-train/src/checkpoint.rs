//! Weights, optimiser and place in one file, so that they can never disagree.

use std::collections::HashMap;

use camino::Utf8Path;
use cuemark_core::Advice;
use cuemark_formats::{Overwrite, WholeFile};
use cuemark_tensor::{DType, Device, Tensor};
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use crate::{Result, TrainError};

/// Where the state stands in the file's header.
const STATE: &str = "cuemark";

/// How far a run has come. Everything random is drawn from the seed and these numbers, so they are all there is to keep.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The model, so that no other takes up its weights.
    pub(crate) model: String,
    /// The stage, from 0.
    pub(crate) stage: usize,
    /// Steps done in this stage.
    pub(crate) stage_step: usize,
    /// Steps done in all.
    pub(crate) step: usize,
    /// Best score so far, of this stage.
    pub(crate) best: Option<f64>,
    /// The step of the best score.
    pub(crate) best_step: usize,
    /// Evaluations in a row that brought nothing better.
    pub(crate) stale: usize,
    /// How often a plateau has lowered the rate.
    pub(crate) plateaus: usize,
    /// Whether nothing is left to do.
    pub(crate) done: bool,
    /// Sum and number of losses since the last line of the log.
    pub(crate) loss_sum: f64,
    /// See `loss_sum`.
    pub(crate) loss_count: usize,
}

/// Writes everything at once; a file that is there is replaced only by a whole one.
pub(crate) fn save(path: &Utf8Path, tensors: &[(String, Tensor)], state: &State) -> Result<()> {
    let mut bytes: Vec<(&str, Vec<usize>, Vec<u8>)> = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors {
        let values = tensor.to_device(&Device::Cpu)?.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        bytes.push((name, tensor.dims().to_vec(), values.iter().flat_map(|value| value.to_le_bytes()).collect()));
    }
    let fault = |problem: String| TrainError::Folder {
        path: path.to_owned(),
        problem,
        hint: "free some space and resume".into(),
    };
    let views = bytes.iter().map(|(name, shape, bytes)| {
        TensorView::new(Dtype::F32, shape.clone(), bytes)
            .map(|view| (*name, view))
            .map_err(|error| fault(error.to_string()))
    });
    let views = views.collect::<Result<Vec<_>>>()?;
    let state = serde_json::to_string(state).map_err(|error| fault(error.to_string()))?;
    let header = HashMap::from([(STATE.to_owned(), state)]);
    let file = safetensors::serialize(views, Some(header)).map_err(|error| fault(error.to_string()))?;
    Ok(WholeFile::write_all_to(path, Overwrite::Force, &file)?)
}

/// Reads what [`save`] wrote.
pub(crate) fn load(path: &Utf8Path, device: &Device) -> Result<(HashMap<String, Tensor>, State)> {
    let fault = |problem: String| TrainError::Folder {
        path: path.to_owned(),
        problem,
        hint: Advice::say("name a run folder that ").run("train").and(" wrote"),
    };
    let bytes = std::fs::read(path).map_err(|error| fault(format!("cannot be read: {error}")))?;
    let (_, header) =
        safetensors::SafeTensors::read_metadata(&bytes).map_err(|error| fault(format!("is damaged: {error}")))?;
    let state = header.metadata().as_ref().and_then(|metadata| metadata.get(STATE));
    let state = state.ok_or_else(|| fault("is no checkpoint of ours".to_owned()))?;
    let state = serde_json::from_str(state).map_err(|error| fault(format!("is damaged: {error}")))?;
    let tensors = candle_core::safetensors::load_buffer(&bytes, device)?;
    Ok((tensors, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_comes_back_and_damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("last.safetensors")).unwrap();
        let tensor = Tensor::new(&[[1f32, 2.0, 3.0]], &Device::Cpu).unwrap();
        let state = State { model: "2d-tan".to_owned(), step: 7, best: Some(0.25), ..State::default() };
        save(&path, &[("a.weight".to_owned(), tensor)], &state).unwrap();
        let (tensors, again) = load(&path, &Device::Cpu).unwrap();
        assert_eq!(again, state);
        assert_eq!(tensors["a.weight"].to_vec2::<f32>().unwrap(), [[1.0, 2.0, 3.0]]);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(load(&path, &Device::Cpu).unwrap_err().to_string().contains("is damaged"));
    }
}
