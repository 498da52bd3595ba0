//! Reading a fixture: `NAME.safetensors` and the `NAME.json` that explains it.

use std::collections::{BTreeMap, HashMap};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{ReadError, Source};
use cuemark_tensor::{DType, Device, Tensor};
use serde::Deserialize;
use serde_json::Value;

use crate::{Grid, ModelError, Proposal, Result};

/// A reference's weights, inputs, outputs, losses and gradients.
///
/// Every tensor that the description lists is there with the shape and type it states, and there is no other:
/// [`Fixture::open`] rejects anything else by name.
#[derive(Debug)]
pub struct Fixture {
    path: Utf8PathBuf,
    description: Description,
    tensors: BTreeMap<String, Tensor>,
}

#[derive(Debug, Deserialize)]
struct Description {
    model: String,
    #[serde(default)]
    variant: Option<String>,
    #[serde(default)]
    config: Value,
    tolerance: Tolerance,
    tensors: BTreeMap<String, Listed>,
    #[serde(default)]
    grad_of: Option<Value>,
}

/// How close a value must come.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Tolerance {
    /// Largest absolute deviation of an output or loss.
    pub abs: f64,
    /// Largest deviation of an output or loss, relative to the reference value; the larger of the two bounds counts.
    pub rel: f64,
    /// Largest deviation of a gradient, relative to the largest value of its tensor.
    pub grad_rel: f64,
}

#[derive(Debug, Deserialize)]
struct Listed {
    shape: Vec<usize>,
    dtype: String,
}

impl Fixture {
    /// Reads `NAME.safetensors` and the `NAME.json` beside it.
    ///
    /// # Errors
    /// When either cannot be read, and for the first tensor that is missing, extra, misshaped or of another type.
    pub fn open(path: &Utf8Path, device: &Device) -> Result<Self> {
        let beside = path.with_extension("json");
        let text = Source::new(&beside).text()?;
        let description: Description = serde_json::from_str(&text)
            .map_err(|error| ReadError::file(&beside, format!("is no fixture description: {error}")))?;
        let tensors = candle_core::safetensors::load(path, device)
            .map_err(|error| ReadError::file(path, format!("cannot be read as safetensors: {error}")))?;
        let fixture = Self { path: path.to_owned(), description, tensors: tensors.into_iter().collect() };
        fixture.verify()?;
        Ok(fixture)
    }

    fn verify(&self) -> Result<()> {
        for (name, listed) in &self.description.tensors {
            let Some(tensor) = self.tensors.get(name) else {
                return Err(self.fault(name, "is described and not in the file"));
            };
            if tensor.dims() != listed.shape {
                let (found, wanted) = (tensor.dims(), &listed.shape);
                return Err(self.fault(name, format!("has shape {found:?}, its description says {wanted:?}")));
            }
            let wanted = match listed.dtype.as_str() {
                "float32" => DType::F32,
                "int64" => DType::I64,
                "bool" => DType::U8,
                other => return Err(self.fault(name, format!("has the unknown type `{other}`"))),
            };
            if tensor.dtype() != wanted {
                return Err(self.fault(name, format!("is stored as {:?}, expected {wanted:?}", tensor.dtype())));
            }
            if !["param.", "in.", "out.", "loss.", "grad."].iter().any(|prefix| name.starts_with(prefix)) {
                return Err(self.fault(name, "has none of the prefixes param, in, out, loss, grad"));
            }
        }
        match self.tensors.keys().find(|name| !self.description.tensors.contains_key(*name)) {
            Some(extra) => Err(self.fault(extra, "is in the file and not described")),
            None => Ok(()),
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The model it belongs to.
    pub fn model(&self) -> &str {
        &self.description.model
    }

    /// The variant of the model, when it has several.
    pub fn variant(&self) -> Option<&str> {
        self.description.variant.as_deref()
    }

    /// How close values must come.
    pub fn tolerance(&self) -> Tolerance {
        self.description.tolerance
    }

    /// An error about one tensor or key.
    pub fn fault(&self, name: &str, problem: impl Into<String>) -> ModelError {
        ModelError::Fixture { path: self.path.clone(), name: name.to_owned(), problem: problem.into() }
    }

    /// The tensors under a prefix such as `out.`, with their full names.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Tensor)> {
        self.tensors
            .iter()
            .filter(move |(name, _)| name.starts_with(prefix))
            .map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Parameters by the reference's names.
    pub fn parameters(&self) -> HashMap<String, Tensor> {
        self.under("param.").map(|(name, tensor)| (name["param.".len()..].to_owned(), tensor.clone())).collect()
    }

    /// One tensor by its full name.
    ///
    /// # Errors
    /// When it is not there.
    pub fn tensor(&self, name: &str) -> Result<&Tensor> {
        self.tensors.get(name).ok_or_else(|| self.fault(name, "is missing"))
    }

    /// Shape of a parameter, named without its prefix.
    ///
    /// # Errors
    /// When it is not there.
    pub fn shape(&self, parameter: &str) -> Result<&[usize]> {
        Ok(self.tensor(&format!("param.{parameter}"))?.dims())
    }

    /// An input named without its prefix, as floats (masks become 0 and 1).
    ///
    /// # Errors
    /// When it is not there.
    pub fn input(&self, name: &str) -> Result<Tensor> {
        Ok(self.tensor(&format!("in.{name}"))?.to_dtype(DType::F32)?)
    }

    /// An input of ids, as the type that lookups take.
    ///
    /// # Errors
    /// When it is not there or holds something negative.
    pub fn ids(&self, name: &str) -> Result<Tensor> {
        let tensor = self.tensor(&format!("in.{name}"))?;
        Ok(tensor.to_dtype(DType::I64)?.to_dtype(DType::U32)?)
    }

    /// A flat input of counts, lengths or positions.
    ///
    /// # Errors
    /// When it is not there or holds something negative.
    pub fn counts(&self, name: &str) -> Result<Vec<usize>> {
        let full = format!("in.{name}");
        let values = self.tensor(&full)?.to_dtype(DType::I64)?.flatten_all()?.to_vec1::<i64>()?;
        let count = |value: i64| usize::try_from(value).map_err(|_| self.fault(&full, format!("holds {value}")));
        values.into_iter().map(count).collect()
    }

    /// Lengths of a padded input from its mask, `[batch, steps]` or `[batch, steps, 1]`.
    ///
    /// # Errors
    /// When it is not there.
    pub fn lengths(&self, mask: &str) -> Result<Vec<usize>> {
        let mask = self.input(mask)?.flatten_from(1)?;
        Ok(mask.sum(1)?.to_vec1::<f32>()?.into_iter().map(|length| length as usize).collect())
    }

    /// Ranked answers as fixtures store them: the best after suppression at `nms`, in **seconds** by `in.duration`,
    /// `[queries, nms_top, 2]`, rows of -1 where there are fewer.
    ///
    /// # Errors
    /// When the fixture has no durations or does not say how many are kept.
    pub fn top_segments(
        &self,
        ranked: &[Vec<Proposal>],
        durations: &[f64],
        nms: f64,
        grid: Option<Grid>,
    ) -> Result<Tensor> {
        let top = self.number("nms_top")?;
        let mut values = Vec::with_capacity(ranked.len() * top * 2);
        for (proposals, duration) in ranked.iter().zip(durations) {
            let kept = crate::model::suppress(proposals, nms, top, grid);
            let seconds = kept.iter().flat_map(|kept| [kept.span.start() * duration, kept.span.end() * duration]);
            values.extend(seconds.chain(std::iter::repeat(-1.0)).take(top * 2).map(|value| value as f32));
        }
        Ok(Tensor::from_vec(values, (ranked.len(), top, 2), &Device::Cpu)?)
    }

    /// `in.duration`, in **seconds**.
    ///
    /// # Errors
    /// When it is not there.
    pub fn durations(&self) -> Result<Vec<f64>> {
        Ok(self.input("duration")?.to_vec1::<f32>()?.into_iter().map(f64::from).collect())
    }

    /// A value of `config`, by keys joined with dots.
    ///
    /// # Errors
    /// When it is not there.
    pub fn config(&self, key: &str) -> Result<&Value> {
        let found = key.split('.').try_fold(&self.description.config, |value, part| match part.parse::<usize>() {
            Ok(position) if value.is_array() => value.get(position),
            _ => value.get(part),
        });
        found.ok_or_else(|| self.fault(&format!("config.{key}"), "is missing"))
    }

    /// A whole number of `config`.
    ///
    /// # Errors
    /// When it is not there or is none.
    pub fn number(&self, key: &str) -> Result<usize> {
        let value = self.config(key)?;
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| self.fault(&format!("config.{key}"), format!("{value} is no whole number")))
    }

    /// A real number of `config`.
    ///
    /// # Errors
    /// When it is not there or is none.
    pub fn real(&self, key: &str) -> Result<f64> {
        let value = self.config(key)?;
        value.as_f64().ok_or_else(|| self.fault(&format!("config.{key}"), format!("{value} is no number")))
    }

    /// A list of whole numbers of `config`.
    ///
    /// # Errors
    /// When it is not there or is none.
    pub fn numbers(&self, key: &str) -> Result<Vec<usize>> {
        let value = self.config(key)?;
        serde_json::from_value(value.clone())
            .map_err(|_| self.fault(&format!("config.{key}"), format!("{value} is no list of whole numbers")))
    }

    /// The loss that the gradient of `parameter` belongs to.
    ///
    /// # Errors
    /// When the description names none.
    pub fn grad_of(&self, parameter: &str) -> Result<&str> {
        let loss = match &self.description.grad_of {
            Some(Value::String(loss)) => Some(loss.as_str()),
            Some(Value::Object(losses)) => losses.get(parameter).and_then(Value::as_str),
            _ => None,
        };
        loss.ok_or_else(|| self.fault(&format!("grad.{parameter}"), "no `grad_of` says which loss it belongs to"))
    }
}
