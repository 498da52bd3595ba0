//! From the rows of a sentence's tokens to one vector.

use candle_core::Tensor;
use serde::Deserialize;

use super::named::Named;
use crate::weights::WeightsFolder;
use crate::{EncodeError, Result};

/// How a sentence's rows become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean, special tokens included.
    Mean,
    /// The row of the first token.
    First,
    /// The first token's row through the dense layer and tanh that were trained with the network.
    Pooler,
}

/// Pooling, and whether the result is brought to length 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// How rows become one.
    pub pooling: Pooling,
    /// What is done to its length.
    pub length: Length,
    /// The most tokens of a sentence, when the recipe states it.
    pub longest: Option<usize>,
}

/// What is done to a vector's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Nothing.
    Kept,
    /// It becomes 1; a vector of zeros stays what it is.
    One,
}

#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct PoolingFile {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
}

#[derive(Deserialize)]
struct SentenceFile {
    max_seq_length: Option<usize>,
}

impl Recipe {
    /// What a folder says of itself.
    ///
    /// A folder in the layout of sentence-transformers states its modules. Supervised SimCSE takes the pooler's output and
    /// unsupervised SimCSE the first token's, both of length 1, as its authors' tool does. Anything else is a bare network: the
    /// mean of the rows as it is.
    ///
    /// # Errors
    /// When it states modules that we do not have.
    pub(super) fn of(folder: &WeightsFolder) -> Result<Self> {
        if folder.find(&["modules.json"]).is_some() {
            return Self::of_modules(folder);
        }
        let name = format!("{} {}", folder.name(), folder.path());
        let (pooling, length) = match name.as_str() {
            name if name.contains("unsup-simcse") => (Pooling::First, Length::One),
            name if name.contains("simcse") => (Pooling::Pooler, Length::One),
            _ => (Pooling::Mean, Length::Kept),
        };
        Ok(Self { pooling, length, longest: None })
    }

    fn of_modules(folder: &WeightsFolder) -> Result<Self> {
        let fault = |problem: String| EncodeError::Unfit {
            path: folder.path().join("modules.json"),
            network: "a sentence encoder that cuemark knows",
            problem,
        };
        let modules: Vec<Module> = folder.json("modules.json")?;
        let mut recipe = Self { pooling: Pooling::Mean, length: Length::Kept, longest: None };
        for module in &modules {
            match module.kind.rsplit('.').next().unwrap_or_default() {
                "Transformer" => {}
                "Pooling" => {
                    // The path is a folder beside the file, and nothing else.
                    if module.path.contains(['/', '\\']) || module.path.starts_with('.') {
                        return Err(fault(format!("`{}` is no folder of this model", module.path)));
                    }
                    let file: PoolingFile = folder.json(&format!("{}/config.json", module.path))?;
                    recipe.pooling = match (file.pooling_mode_mean_tokens, file.pooling_mode_cls_token) {
                        (true, false) => Pooling::Mean,
                        (false, true) => Pooling::First,
                        _ => return Err(fault("it pools by neither the mean nor the first token alone".to_owned())),
                    };
                }
                "Normalize" => recipe.length = Length::One,
                other => return Err(fault(format!("module `{other}` is not supported"))),
            }
        }
        if folder.find(&["sentence_bert_config.json"]).is_some() {
            recipe.longest = folder.json::<SentenceFile>("sentence_bert_config.json")?.max_seq_length;
        }
        Ok(recipe)
    }
}

/// A recipe with the parameters it needs.
pub(super) struct Pool {
    pooling: Pooling,
    length: Length,
    /// Weight `[width, width]` and bias of the pooler.
    dense: Option<(Tensor, Tensor)>,
}

impl Pool {
    pub(super) fn load(recipe: Recipe, named: &Named, width: usize) -> Result<Self> {
        let wanted = recipe.pooling == Pooling::Pooler;
        let dense = if wanted { Some(named.linear("pooler.dense", width, width)?) } else { None };
        Ok(Self { pooling: recipe.pooling, length: recipe.length, dense })
    }

    /// One vector per sentence of `rows [tokens, width]`, where sentence after sentence has `lengths` tokens.
    pub(super) fn apply(&self, rows: &Tensor, lengths: &[usize]) -> Result<Vec<Vec<f32>>> {
        let width = rows.dim(1)?;
        let mut vectors = match (self.pooling, &self.dense) {
            (Pooling::Mean, _) => {
                let values = rows.flatten_all()?.to_vec1::<f32>()?;
                let mut rest = values.as_slice();
                let mut means = Vec::with_capacity(lengths.len());
                for length in lengths {
                    let (sentence, after) = rest.split_at_checked(length * width).unwrap_or((rest, &[]));
                    means.push(mean(sentence, width));
                    rest = after;
                }
                means
            }
            (Pooling::First, _) | (Pooling::Pooler, None) => first_rows(rows, lengths)?.to_vec2::<f32>()?,
            (Pooling::Pooler, Some((weight, bias))) => {
                first_rows(rows, lengths)?.matmul(weight)?.broadcast_add(bias)?.tanh()?.to_vec2::<f32>()?
            }
        };
        if self.length == Length::One {
            vectors.iter_mut().for_each(|vector| to_length_one(vector));
        }
        Ok(vectors)
    }
}

fn first_rows(rows: &Tensor, lengths: &[usize]) -> Result<Tensor> {
    let mut start = 0u32;
    let starts: Vec<u32> = lengths
        .iter()
        .map(|length| {
            let first = start;
            start += *length as u32;
            first
        })
        .collect();
    Ok(rows.index_select(&Tensor::new(starts, rows.device())?, 0)?)
}

fn mean(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sum = vec![0f32; width];
    for row in rows.chunks_exact(width) {
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let count = (rows.len() / width).max(1) as f32;
    sum.iter_mut().for_each(|sum| *sum /= count);
    sum
}

/// Divides by the length; a vector of zeros stays what it is.
pub(super) fn to_length_one(vector: &mut [f32]) {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt().max(1e-12);
    vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
}
