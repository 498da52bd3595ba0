//! One network of the three, read from an ONNX file and run by `rten`.
//!
//! `rten` before `tract`: both run these files as they are. `rten` takes pictures of any size with one model (`tract` wants to be
//! told each size beforehand and plans anew for it), uses both cores, and adds ten small crates to the build.

use std::panic::{AssertUnwindSafe, catch_unwind};

use camino::{Utf8Path, Utf8PathBuf};
use rten::{Model, ModelOptions, op_registry};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};

use crate::{OcrError, Result};

/// The published files have 11 MB at most.
const MOST_BYTES: u64 = 64 << 20;

/// A network with one input and one output.
pub(crate) struct Network {
    model: Model,
    path: Utf8PathBuf,
    what: &'static str,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Network {
    /// Reads `file` in `folder`.
    pub(crate) fn open(folder: &Utf8Path, file: &str, what: &'static str) -> Result<Self> {
        let path = folder.join(file);
        let io = |source| OcrError::Weights { path: path.clone(), source };
        let bytes = std::fs::metadata(&path).map_err(io)?.len();
        let unfit = |problem: String| OcrError::Unfit { path: path.clone(), network: what, problem };
        if bytes > MOST_BYTES {
            return Err(unfit(format!("it has {bytes} bytes, and such a network has fewer than {MOST_BYTES}")));
        }
        let data = std::fs::read(&path).map_err(io)?;
        // No other operator is known, so that no file can ask for one.
        let mut options = ModelOptions::with_ops(op_registry!(
            Add,
            AveragePool,
            BatchNormalization,
            Cast,
            Clip,
            Concat,
            Conv,
            ConvTranspose,
            Div,
            GlobalAveragePool,
            HardSigmoid,
            Identity,
            MatMul,
            MaxPool,
            Mul,
            Pow,
            ReduceMean,
            Relu,
            Reshape,
            Resize,
            Shape,
            Sigmoid,
            Slice,
            Softmax,
            Sqrt,
            Squeeze,
            Sub,
            Transpose
        ));
        options.prepack_weights(true);
        let model = guarded(|| options.load(data).map_err(|error| error.to_string())).map_err(unfit)?;
        if (model.input_ids().len(), model.output_ids().len()) != (1, 1) {
            return Err(unfit("it has not one input and one output".to_owned()));
        }
        Ok(Self { model, path, what })
    }

    /// What the file says of itself under `name`.
    pub(crate) fn remark(&self, name: &str) -> Option<&str> {
        self.model.metadata().get(name)
    }

    /// What comes out when `input` goes in, of the dimensions that the caller expects.
    pub(crate) fn run<const DIMENSIONS: usize>(&self, input: &NdTensor<f32, 4>) -> Result<NdTensor<f32, DIMENSIONS>> {
        let run = || {
            let output = self.model.run_one(input.view().into(), None).map_err(|error| error.to_string())?;
            let output: Tensor<f32> = output.try_into().map_err(|_| "it does not give numbers".to_owned())?;
            let shape = output.shape().to_vec();
            output.try_into().map_err(|_| format!("it gives {shape:?}, which has not {DIMENSIONS} dimensions"))
        };
        guarded(run).map_err(|problem| self.unfit(problem))
    }

    pub(crate) fn unfit(&self, problem: impl Into<String>) -> OcrError {
        OcrError::Unfit { path: self.path.clone(), network: self.what, problem: problem.into() }
    }
}

/// A file that makes the runtime panic is a bad file, and no reason for the program to end.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("the runtime gave up on it".to_owned()))
}
