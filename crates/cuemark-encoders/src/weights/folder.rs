//! A folder that holds one set of weights.

use std::collections::HashMap;

use camino::{Utf8Path, Utf8PathBuf};
use candle_core::Tensor;
use cuemark_formats::{ReadError, Source};
use serde::de::DeserializeOwned;

use super::tensors;
use crate::{EncodeError, Result};

/// What a weight file may be called, best first.
const WEIGHT_FILES: &[&str] = &["model.safetensors", "pytorch_model.bin"];
/// And how it may end.
const WEIGHT_ENDINGS: &[&str] = &["safetensors", "bin", "pt", "pth", "ckpt", "onnx"];

/// A folder with weights and what belongs to them, or a weight file by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsFolder {
    path: Utf8PathBuf,
    name: String,
}

impl WeightsFolder {
    /// What a user points at: a folder, or one weight file. Nothing is read yet.
    pub fn at(path: impl Into<Utf8PathBuf>) -> Self {
        let path = path.into();
        Self { name: path.file_name().unwrap_or("weights").to_owned(), path }
    }

    /// The folder of weights that the registry calls `name`.
    pub(super) fn named(name: &str, path: Utf8PathBuf) -> Self {
        Self { path, name: name.to_owned() }
    }

    /// The registry's name, or the last part of the path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it lies.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// One of its files.
    ///
    /// # Errors
    /// When it is not there.
    pub fn file(&self, name: &str) -> Result<Utf8PathBuf> {
        self.find(&[name]).ok_or_else(|| self.lacks(name))
    }

    /// The first of `names` that is there.
    pub fn find(&self, names: &[&str]) -> Option<Utf8PathBuf> {
        let folder = if self.path.is_file() { self.path.parent()? } else { self.path.as_path() };
        names.iter().map(|name| folder.join(name)).find(|path| path.is_file())
    }

    /// A JSON file of it, read whole.
    ///
    /// # Errors
    /// When it is not there or does not say what was expected.
    pub fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let path = self.file(name)?;
        let text = Source::new(&path).text()?;
        let hint = "the file is damaged, or of a model that cuemark does not know";
        let fault = |error: serde_json::Error| ReadError::record(&path, error.line(), name, error).with_hint(hint);
        Ok(serde_json::from_str(&text).map_err(fault)?)
    }

    /// The file with the weights themselves.
    ///
    /// # Errors
    /// When there is none, or several and none with a usual name.
    pub fn weight_file(&self) -> Result<Utf8PathBuf> {
        if self.path.is_file() {
            return Ok(self.path.clone());
        }
        if let Some(usual) = self.find(WEIGHT_FILES) {
            return Ok(usual);
        }
        let io = |source| ReadError::Io { path: self.path.clone(), source };
        let mut found: Vec<Utf8PathBuf> = Vec::new();
        for entry in self.path.read_dir_utf8().map_err(io)? {
            let path = entry.map_err(io)?.into_path();
            if path.extension().is_some_and(|ending| WEIGHT_ENDINGS.contains(&ending)) && path.is_file() {
                found.push(path);
            }
        }
        match found.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(self.lacks("model.safetensors")),
            several => {
                let problem = format!("holds {} weight files and none is called `model.safetensors`", several.len());
                Err(ReadError::file(&self.path, problem).with_hint("name the file instead of the folder").into())
            }
        }
    }

    /// Every floating-point tensor of its weight file, on the CPU.
    ///
    /// # Errors
    /// As [`WeightsFolder::weight_file`] and [`tensors`].
    pub fn tensors(&self) -> Result<HashMap<String, Tensor>> {
        tensors(&self.weight_file()?)
    }

    fn lacks(&self, name: &str) -> EncodeError {
        let hint =
            "a folder of weights holds `config.json`, a tokenizer and `model.safetensors` or `pytorch_model.bin`";
        ReadError::file(&self.path, format!("holds no `{name}`")).with_hint(hint).into()
    }
}
