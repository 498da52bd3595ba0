//! Weights, optimiser and place in one file, so that they can never disagree.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::Advice;
use cuemark_formats::{Files, Overwrite, WholeFile};
use cuemark_tensor::{DType, Device, Tensor};
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Result, TrainError};

/// Where the state stands in the file's header.
const STATE: &str = "cuemark";

/// How far a run has come. Everything random is drawn from the seed and these numbers, so they are all there is to keep.
// Unknown fields are refused, so that a checksum whose name was damaged is not taken for none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// **Seconds** that this stage has taken so far, all sessions together, of runs that have a limit; of others nothing is
    /// counted, so that the same run always leaves the same bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stage_seconds: Option<f64>,
    /// Sum and number of losses since the last line of the log.
    pub(crate) loss_sum: f64,
    /// See `loss_sum`.
    pub(crate) loss_count: usize,
    /// SHA-256 of the file, computed with zeros in its own place; empty in files older than it, and in memory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) sha256: String,
}

/// What is known about a checkpoint's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seal {
    /// They are those that were written.
    Whole,
    /// It was written before checkpoints had checksums.
    Missing,
}

/// Writes everything at once; a file that is there is replaced only by a whole one.
pub(crate) fn save(files: &Arc<dyn Files>, path: &Utf8Path, tensors: &[(String, Tensor)], state: &State) -> Result<()> {
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
    // Zeros first: the checksum covers the header that it stands in, and putting it there must not move a byte.
    let state = State { sha256: UNSEALED.to_owned(), ..state.clone() };
    let state = serde_json::to_string(&state).map_err(|error| fault(error.to_string()))?;
    let header = HashMap::from([(STATE.to_owned(), state)]);
    let mut file = safetensors::serialize(views, Some(header)).map_err(|error| fault(error.to_string()))?;
    seal(&mut file).ok_or_else(|| fault("has no place for its checksum".to_owned()))?;
    Ok(WholeFile::write_all_on(files, path, Overwrite::Force, &file)?)
}

/// Puts the checksum of `file` in the place of zeros that was kept for it.
fn seal(file: &mut [u8]) -> Option<()> {
    let place = place_of(file, UNSEALED)?;
    let sum = sum(file);
    file.get_mut(place)?.copy_from_slice(sum.as_bytes());
    Some(())
}

/// Where the checksum stands in the header of `file`.
fn place_of(file: &[u8], sum: &str) -> Option<Range<usize>> {
    let (length, rest) = file.split_first_chunk::<8>()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    // By its digits, not by the JSON around it, in which keys have no order; so many in a row stand nowhere else.
    let start = 8 + header.windows(sum.len()).position(|piece| piece == sum.as_bytes())?;
    Some(start..start + sum.len())
}

fn sum(file: &[u8]) -> String {
    cuemark_core::digest::hex(&Sha256::digest(file))
}

/// Whether `file` is what was sealed with `sum`: the checksum of all its bytes, with zeros where the checksum stands.
fn is_sealed(mut file: Vec<u8>, claimed: &str) -> bool {
    let place = place_of(&file, claimed).filter(|_| claimed.len() == UNSEALED.len());
    let Some(slot) = place.and_then(|place| file.get_mut(place)) else { return false };
    slot.copy_from_slice(UNSEALED.as_bytes());
    sum(&file) == claimed
}

/// What stands where the checksum will: as many digits as it has.
const UNSEALED: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Reads what [`save`] wrote, and whether a checksum says that nothing of it has changed.
pub(crate) fn load(path: &Utf8Path, device: &Device) -> Result<(HashMap<String, Tensor>, State, Seal)> {
    let io = |error: std::io::Error| TrainError::Folder {
        path: path.to_owned(),
        problem: format!("cannot be read: {error}"),
        hint: Advice::say("name a run folder that ").run("train").and(" wrote"),
    };
    let bytes = std::fs::read(path).map_err(io)?;
    parse(path, bytes, device)
}

/// Whether the file at `path` is a whole checkpoint, and how many steps it has behind it.
///
/// # Errors
/// When it cannot be read, is none, or its checksum is another than when it was written. One from before checksums passes.
pub fn check_checkpoint(path: &Utf8Path) -> Result<usize> {
    let (_, state, _) = load(path, &Device::Cpu)?;
    Ok(state.step)
}

/// As [`load`], from memory. `path` is named in errors only.
pub(crate) fn parse(
    path: &Utf8Path,
    bytes: Vec<u8>,
    device: &Device,
) -> Result<(HashMap<String, Tensor>, State, Seal)> {
    let fault = |problem: String| TrainError::Folder {
        path: path.to_owned(),
        problem,
        hint: Advice::say("train again, or resume from another copy: one changed bit can spoil every answer"),
    };
    let (_, header) =
        safetensors::SafeTensors::read_metadata(&bytes).map_err(|error| fault(format!("is damaged: {error}")))?;
    let state = header.metadata().as_ref().and_then(|metadata| metadata.get(STATE));
    let state = state.ok_or_else(|| fault("is no checkpoint of ours".to_owned()))?;
    let mut state: State = serde_json::from_str(state).map_err(|error| fault(format!("is damaged: {error}")))?;
    let tensors = candle_core::safetensors::load_buffer(&bytes, device)?;
    // Out of the state, which would otherwise differ from the one that was saved.
    let claimed = std::mem::take(&mut state.sha256);
    if claimed.is_empty() {
        return Ok((tensors, state, Seal::Missing));
    }
    if !is_sealed(bytes, &claimed) {
        return Err(fault("is damaged: its checksum is another than when it was written".to_owned()));
    }
    Ok((tensors, state, Seal::Whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Arc<dyn Files> {
        Arc::new(cuemark_formats::RealFiles)
    }

    #[test]
    fn what_is_saved_comes_back_and_damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("last.safetensors")).unwrap();
        let tensor = Tensor::new(&[[1f32, 2.0, 3.0]], &Device::Cpu).unwrap();
        let state = State { model: "2d-tan".to_owned(), step: 7, best: Some(0.25), ..State::default() };
        save(&files(), &path, &[("a.weight".to_owned(), tensor)], &state).unwrap();
        let (tensors, again, seal) = load(&path, &Device::Cpu).unwrap();
        assert_eq!((again, seal), (state, Seal::Whole));
        assert_eq!(tensors["a.weight"].to_vec2::<f32>().unwrap(), [[1.0, 2.0, 3.0]]);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(load(&path, &Device::Cpu).unwrap_err().to_string().contains("is damaged"));
    }

    #[test]
    fn one_flipped_bit_anywhere_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("best.safetensors")).unwrap();
        let tensor = Tensor::new(&[1f32, 2.0], &Device::Cpu).unwrap();
        save(&files(), &path, &[("a".to_owned(), tensor)], &State { model: "2d-tan".to_owned(), ..State::default() })
            .unwrap();
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&path, flipped, &Device::Cpu).is_err(), "bit {bit} of {}", whole.len() * 8);
        }
    }

    #[test]
    fn a_checkpoint_from_before_checksums_still_opens() {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("last.safetensors")).unwrap();
        let state = serde_json::to_string(&State { step: 3, ..State::default() }).unwrap();
        let view = TensorView::new(Dtype::F32, vec![1], &[0; 4]).unwrap();
        let header = HashMap::from([(STATE.to_owned(), state)]);
        std::fs::write(&path, safetensors::serialize([("a", view)], Some(header)).unwrap()).unwrap();
        let (_, state, seal) = load(&path, &Device::Cpu).unwrap();
        assert_eq!((state.step, seal), (3, Seal::Missing));
    }
}
