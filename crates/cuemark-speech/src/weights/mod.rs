//! A folder with a Whisper in it: its tensors, and what its release says about decoding.
//!
//! Two layouts are read: CTranslate2's (`model.bin`, `config.json`, `tokenizer.json`) and the model hub's (`model.safetensors` or
//! `pytorch_model.bin`, `config.json`, `generation_config.json`, `tokenizer.json`). Tensors get CTranslate2's names either way.

pub(crate) mod ctranslate2;
mod hub;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

use camino::{Utf8Path, Utf8PathBuf};
use candle_core::{Device, Tensor};
use cuemark_features::tensor_file::{self, NamedTensor};
use cuemark_formats::{Limits, Meter, ReadError, Source};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Result, SpeechError};

/// What is built of the files, in messages.
pub(crate) const NETWORK: &str = "a Whisper network";

/// What a release says about decoding.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Pieces that are never said: brackets, notes, marks of speakers.
    pub(crate) never: Vec<u32>,
    /// Pieces that no line begins with.
    pub(crate) never_first: Vec<u32>,
    /// Layer and head of the cross attentions that follow the sound; empty where the release does not say.
    pub(crate) alignment_heads: Vec<(usize, usize)>,
}

/// Tensors by CTranslate2's names, handed out once each.
pub(crate) struct Tensors {
    path: Utf8PathBuf,
    named: BTreeMap<String, NamedTensor>,
    device: Device,
}

/// CTranslate2's `config.json`.
#[derive(Deserialize)]
struct Ct2Config {
    #[serde(default)]
    suppress_ids: Vec<i64>,
    #[serde(default)]
    suppress_ids_begin: Vec<i64>,
    #[serde(default)]
    alignment_heads: Vec<(usize, usize)>,
}

/// The hub's `generation_config.json`.
#[derive(Deserialize, Default)]
struct Generation {
    #[serde(default)]
    suppress_tokens: Option<Vec<i64>>,
    #[serde(default)]
    begin_suppress_tokens: Option<Vec<i64>>,
    #[serde(default)]
    alignment_heads: Option<Vec<(usize, usize)>>,
}

/// Reads tensors and rules of a folder.
pub(crate) fn read(folder: &Utf8Path, device: &Device) -> Result<(Tensors, Rules)> {
    let unfit = |path: &Utf8Path, problem: String| SpeechError::unfit(path, NETWORK, problem);
    let binary = folder.join("model.bin");
    let (path, named, rules) = if binary.is_file() {
        let io = |source| ReadError::Io { path: binary.clone(), source };
        let file = File::open(&binary).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let named = ctranslate2::parse(BufReader::with_capacity(1 << 18, file), length, &Meter::default());
        let config: Ct2Config = json(&folder.join("config.json"))?;
        let rules = Rules {
            never: pieces(&config.suppress_ids),
            never_first: pieces(&config.suppress_ids_begin),
            alignment_heads: config.alignment_heads,
        };
        (binary.clone(), named.map_err(|problem| unfit(&binary, problem))?, rules)
    } else {
        let usual = ["model.safetensors", "pytorch_model.bin"].map(|name| folder.join(name));
        let Some(path) = usual.into_iter().find(|path| path.is_file()) else {
            return Err(unfit(folder, "it has neither `model.bin` nor `model.safetensors`".to_owned()));
        };
        let config = json(&folder.join("config.json"))?;
        let named = hub::renamed(tensor_file::read(&path)?, &config).map_err(|problem| unfit(&path, problem))?;
        let generation = folder.join("generation_config.json");
        let said: Generation = if generation.is_file() { json(&generation)? } else { Generation::default() };
        let rules = Rules {
            never: pieces(&said.suppress_tokens.unwrap_or_default()),
            never_first: pieces(&said.begin_suppress_tokens.unwrap_or_default()),
            alignment_heads: said.alignment_heads.unwrap_or_default(),
        };
        (path, named, rules)
    };
    Ok((Tensors { path, named, device: device.clone() }, rules))
}

/// Numbers of pieces; `-1` stands for "the usual ones" and is not one.
fn pieces(ids: &[i64]) -> Vec<u32> {
    ids.iter().filter_map(|id| u32::try_from(*id).ok()).collect()
}

/// A JSON file of at most 64 MiB.
pub(crate) fn json<T: DeserializeOwned>(path: &Utf8Path) -> Result<T> {
    let text = Source::new(path).with_limits(Limits { document: 64 << 20, ..Limits::default() }).text()?;
    let hint = "the file is damaged, or of a model that cuemark does not know";
    let name = path.file_name().unwrap_or("json").to_owned();
    Ok(serde_json::from_str(&text)
        .map_err(|error| ReadError::record(path, error.line(), name, error).with_hint(hint))?)
}

impl Tensors {
    /// Those of some other small network.
    pub(crate) fn of(path: &Utf8Path, named: BTreeMap<String, NamedTensor>, device: &Device) -> Self {
        Self { path: path.to_owned(), named, device: device.clone() }
    }

    pub(crate) fn fault(&self, problem: impl Into<String>) -> SpeechError {
        SpeechError::unfit(&self.path, NETWORK, problem)
    }

    /// The shape of a tensor that has `axes` axes.
    pub(crate) fn shape<const AXES: usize>(&self, name: &str) -> Result<[usize; AXES]> {
        let tensor = self.named.get(name).ok_or_else(|| self.fault(format!("`{name}` is not there")))?;
        let wrong = || self.fault(format!("`{name}` has {} axes, not {AXES}", tensor.shape.len()));
        tensor.shape.as_slice().try_into().map_err(|_| wrong())
    }

    /// A single number.
    pub(crate) fn number(&self, name: &str) -> Result<usize> {
        let value = self.named.get(name).and_then(|tensor| tensor.values.first()).copied().unwrap_or(0.0);
        if (1.0..=65_536.0).contains(&value) {
            Ok(value as usize)
        } else {
            Err(self.fault(format!("`{name}` is {value}")))
        }
    }

    /// How many layers one side has.
    pub(crate) fn layers(&self, side: &str) -> usize {
        (0..).take_while(|layer| self.named.contains_key(&format!("{side}/layer_{layer}/ffn/linear_0/weight"))).count()
    }

    /// The numbers of a tensor of that shape, taken out.
    pub(crate) fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let tensor = self.named.remove(name).ok_or_else(|| self.fault(format!("`{name}` is not there")))?;
        if tensor.shape != shape {
            return Err(self.fault(format!("`{name}` has the shape {:?}, not {shape:?}", tensor.shape)));
        }
        Ok(tensor.values)
    }

    /// A tensor of that shape, taken out.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Tensor> {
        Ok(Tensor::from_vec(self.values(name, shape)?, shape, &self.device)?)
    }
}
