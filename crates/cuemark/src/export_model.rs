//! A trained model as a file that other programs open.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_features::tensor_file::{self, NamedTensor};
use cuemark_formats::Overwrite;
use cuemark_train::{RunFolder, TrainError, Trained};
use serde::{Deserialize, Serialize};

use crate::Result;

/// Writes the weights of a run under the names of the authors' code, so that their program, or a few lines of PyTorch, can load
/// them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ExportModel {
    /// A run's folder.
    #[cfg_attr(feature = "clap", arg(id = "run", value_name = "RUN"))]
    pub run_folder: Utf8PathBuf,
    /// The kind of file.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub to: WeightFile,
    /// Where to. Default: RUN/export.pt or RUN/export.safetensors
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub out: Option<Utf8PathBuf>,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

/// A kind of weight file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum WeightFile {
    /// What `torch.load` opens.
    Pytorch,
    /// What every library of the field opens, and nothing in it can be run.
    #[default]
    Safetensors,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportedModel {
    /// The file.
    pub path: Utf8PathBuf,
    /// Tensors in it.
    pub tensors: usize,
    /// Numbers in all of them.
    pub numbers: usize,
}

impl ExportModel {
    /// Of the run in a folder, as safetensors.
    pub fn new(run_folder: impl Into<Utf8PathBuf>) -> Self {
        Self { run_folder: run_folder.into(), to: WeightFile::default(), out: None, force: false }
    }

    /// Reads the best checkpoint and writes it anew.
    ///
    /// # Errors
    /// When the folder holds no run, its checkpoint is damaged, or the file cannot be written.
    pub fn run(&self, _: &Progress) -> Result<ExportedModel> {
        let weights = Trained::weights(&RunFolder::new(self.run_folder.clone()))?;
        let mut tensors = BTreeMap::new();
        for (name, tensor) in weights {
            let values = tensor.flatten_all().and_then(|flat| flat.to_vec1::<f32>()).map_err(TrainError::from)?;
            tensors.insert(name, NamedTensor { shape: tensor.dims().to_vec(), values });
        }
        let ending = match self.to {
            WeightFile::Pytorch => "export.pt",
            WeightFile::Safetensors => "export.safetensors",
        };
        let path = self.out.clone().unwrap_or_else(|| self.run_folder.join(ending));
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        match self.to {
            WeightFile::Pytorch => tensor_file::write_torch(&path, overwrite, &tensors)?,
            WeightFile::Safetensors => tensor_file::write_safetensors(&path, overwrite, &tensors)?,
        }
        let numbers = tensors.values().map(|tensor| tensor.values.len()).sum();
        Ok(ExportedModel { path, tensors: tensors.len(), numbers })
    }
}
