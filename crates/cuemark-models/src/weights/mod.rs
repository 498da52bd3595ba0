//! Published checkpoints.

mod fit;

use std::collections::{BTreeMap, HashMap};

use camino::Utf8Path;
use cuemark_features::tensor_file::{self, Tables};
use cuemark_tensor::{Device, Params, Tensor};

use crate::{Given, Model, ModelCard, ModelError, Result};

pub use fit::{Fit, Misshaped, Parameter, Sizes};

/// Names of parameters and their extents.
pub type Shapes = BTreeMap<String, Vec<usize>>;

/// Tables that published files keep their parameters in; averaged ones first, where a file has both.
const TABLES: Tables<'_> = Tables::OutermostOr(&["state_dict_ema", "state_dict", "model_state_dict", "model", "net"]);

/// Where some published networks keep heads a second time.
const AGAIN: &str = "transformer.decoder.";

/// What training wrappers put before every name.
const WRAPPERS: [&str; 3] = ["module.", "model.", "net."];

/// A checkpoint as it was read.
#[derive(Debug)]
pub struct Checkpoint {
    /// Its parameters by the reference's names.
    pub tensors: HashMap<String, Tensor>,
    /// What stood before every name and was dropped, outermost first.
    pub dropped: Vec<&'static str>,
}

impl Checkpoint {
    /// Reads the floating-point parameters of a safetensors or PyTorch file, as [`read`], and drops what stands before every
    /// name where `wanted` has no name that begins so.
    ///
    /// # Errors
    /// As [`read`].
    pub fn read(path: &Utf8Path, wanted: &ModelCard, device: &Device) -> Result<Self> {
        let mut tensors = read_as_named(path, device)?;
        let mut dropped = Vec::new();
        let published = wanted.full_sizes.first().and_then(|size| wanted.shapes(size).ok()).unwrap_or_default();
        let own = |prefix: &str| published.keys().any(|name| name.starts_with(prefix));
        while let Some(prefix) = WRAPPERS
            .into_iter()
            .find(|prefix| !tensors.is_empty() && tensors.keys().all(|name| name.starts_with(prefix)) && !own(prefix))
        {
            let shorter = |(name, tensor): (String, Tensor)| (name[prefix.len()..].to_owned(), tensor);
            tensors = tensors.into_iter().map(shorter).collect();
            dropped.push(prefix);
        }
        Ok(Self { tensors, dropped })
    }

    /// Names and shapes.
    pub fn shapes(&self) -> Shapes {
        fit::shapes_of(self.tensors.iter())
    }
}

/// Reads the floating-point parameters of a safetensors or PyTorch file by the reference's names, in single precision; nothing
/// in it is executed, and a pickle that asks for anything but tensors is refused.
///
/// A leading `module.`, which data-parallel training leaves, is dropped.
///
/// # Errors
/// When the file is neither, is damaged, or would pass the memory budget.
pub fn read(path: &Utf8Path, device: &Device) -> Result<HashMap<String, Tensor>> {
    let unwrapped =
        |(name, tensor): (String, Tensor)| (name.strip_prefix("module.").unwrap_or(&name).to_owned(), tensor);
    Ok(read_as_named(path, device)?.into_iter().map(unwrapped).collect())
}

/// The same with names as they are in the file.
fn read_as_named(path: &Utf8Path, device: &Device) -> Result<HashMap<String, Tensor>> {
    let parameter = |(name, tensor): (String, tensor_file::NamedTensor)| {
        Ok((name, Tensor::from_vec(tensor.values, tensor.shape, device)?))
    };
    tensor_file::read_tables(path, TABLES)?.into_iter().map(parameter).collect()
}

/// The network of a checkpoint that holds all of its parameters and no other. A head that the file keeps a second time inside
/// its decoder is one.
///
/// # Errors
/// For the first parameter that is missing, misshaped or left over, by name.
pub fn strict(
    card: &'static ModelCard,
    settings: &toml::Table,
    given: &Given,
    tensors: HashMap<String, Tensor>,
    device: &Device,
) -> Result<Box<dyn Model>> {
    let params = Params::loaded(tensors, device);
    let model = card.build(settings, given, params.builder())?;
    let twice = |name: &String| name.strip_prefix(AGAIN).is_some_and(|name| params.var(name).is_some());
    match params.unused().into_iter().find(|name| !twice(name)) {
        None => Ok(model),
        Some(name) => {
            let problem = format!("the checkpoint holds `{name}`, and the network has no such parameter");
            Err(ModelError::Settings { model: card.name, problem })
        }
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;
    use crate::registry::find;

    const JOINT: [&str; 8] = ["moment-detr", "qd-detr", "eatr", "cg-detr", "tr-detr", "uvcom", "taskweave", "univtg"];

    fn settings() -> toml::Table {
        "network = { hidden = 16, heads = 2, ffn = 8 }".parse().unwrap()
    }

    /// A checkpoint as data-parallel training leaves it, by the names of our own network.
    fn checkpoint(model: &str, path: &Utf8Path, change: impl FnOnce(&mut HashMap<String, Tensor>)) {
        let params = Params::seeded(1, &Device::Cpu);
        let mut settings = settings();
        if model == "cg-detr" {
            settings.insert("text_heads".to_owned(), 2.into());
        }
        find(model).unwrap().build(&settings, &Given::widths(3, 4, 0), params.builder()).unwrap();
        let named = |(name, var): (String, cuemark_tensor::Var)| (format!("module.{name}"), var.as_tensor().clone());
        let mut tensors: HashMap<String, Tensor> = params.vars().into_iter().map(named).collect();
        change(&mut tensors);
        candle_core::safetensors::save(&tensors, path).unwrap();
    }

    fn load(model: &str, path: &Utf8Path) -> Result<Box<dyn Model>> {
        let mut settings = settings();
        if model == "cg-detr" {
            settings.insert("text_heads".to_owned(), 2.into());
        }
        let tensors = read(path, &Device::Cpu)?;
        strict(find(model)?, &settings, &Given::widths(3, 4, 0), tensors, &Device::Cpu)
    }

    #[test]
    fn a_checkpoint_of_data_parallel_training_loads_and_lacks_and_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("model.safetensors")).unwrap();
        for model in JOINT {
            checkpoint(model, &path, |_| {});
            load(model, &path).map_or_else(|error| panic!("{model}: {error}"), drop);
            checkpoint(model, &path, |tensors| {
                tensors.remove("module.input_vid_proj.0.net.1.weight");
            });
            let error = load(model, &path).map(drop).unwrap_err().to_string();
            assert!(error.contains("`input_vid_proj.0.net.1.weight` is missing"), "{model}: {error}");
            checkpoint(model, &path, |tensors| {
                tensors.insert(
                    "module.more.weight".to_owned(),
                    Tensor::zeros(1, candle_core::DType::F32, &Device::Cpu).unwrap(),
                );
            });
            let error = load(model, &path).map(drop).unwrap_err().to_string();
            assert!(error.contains("holds `more.weight`"), "{model}: {error}");
        }
    }

    #[test]
    fn heads_that_a_checkpoint_keeps_twice_are_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("model.safetensors")).unwrap();
        checkpoint("eatr", &path, |tensors| {
            let head = tensors["module.event_span_embed.layers.0.weight"].clone();
            tensors.insert("module.transformer.decoder.event_span_embed.layers.0.weight".to_owned(), head);
        });
        load("eatr", &path).map(drop).unwrap();
    }
}
