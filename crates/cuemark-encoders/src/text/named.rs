//! A checkpoint's tensors, handed out by name and shape.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use candle_core::{Device, Tensor};

use crate::weights::WeightsFolder;
use crate::{EncodeError, Result};

/// The tensors of one weight file, for one network.
pub(super) struct Named<'a> {
    folder: &'a WeightsFolder,
    tensors: HashMap<String, Tensor>,
    network: &'static str,
    device: Device,
    /// What stands before every name: `bert.` where a head was trained on top.
    prefix: String,
    used: RefCell<HashSet<String>>,
}

impl<'a> Named<'a> {
    /// `anchor` is a parameter that every such network has; what stands before it in the file stands before all.
    pub(super) fn open(
        folder: &'a WeightsFolder,
        network: &'static str,
        anchor: &str,
        device: &Device,
    ) -> Result<Self> {
        let tensors = folder.tensors()?;
        let mut prefixes: Vec<&str> = tensors.keys().filter_map(|name| name.strip_suffix(anchor)).collect();
        prefixes.sort_unstable_by_key(|prefix| prefix.len());
        let prefix = prefixes.first().map(|prefix| (*prefix).to_owned());
        let device = device.clone();
        let this = Self { folder, tensors, network, device, prefix: String::new(), used: RefCell::default() };
        match prefix {
            Some(prefix) => Ok(Self { prefix, ..this }),
            None => Err(this.fault(format!("parameter `{anchor}` is missing"))),
        }
    }

    /// A parameter; one of the same meaning may carry the name that TensorFlow gave it.
    pub(super) fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor> {
        let full = format!("{}{name}", self.prefix);
        let older = full.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
        let found = [full, older].into_iter().find_map(|name| self.tensors.get_key_value(&name));
        let Some((key, tensor)) = found else {
            return Err(self.fault(format!("parameter `{name}` is missing")));
        };
        if tensor.dims() != shape {
            let found = tensor.dims();
            return Err(self.fault(format!("parameter `{name}` has shape {found:?}, the network wants {shape:?}")));
        }
        self.used.borrow_mut().insert(key.clone());
        Ok(tensor.to_device(&self.device)?)
    }

    /// The weight of a linear layer, `[input, output]` without gaps, and its bias.
    pub(super) fn linear(&self, name: &str, input: usize, output: usize) -> Result<(Tensor, Tensor)> {
        let weight = self.get(&format!("{name}.weight"), &[output, input])?.t()?.contiguous()?;
        Ok((weight, self.get(&format!("{name}.bias"), &[output])?))
    }

    /// Every parameter by its name after the prefix, with the names that PyTorch's code has.
    pub(super) fn by_name(self) -> HashMap<String, Tensor> {
        let prefix = self.prefix.as_str();
        let rename = |name: &str| {
            name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        };
        let own = |(name, tensor): (String, Tensor)| Some((rename(name.strip_prefix(prefix)?), tensor));
        self.tensors.into_iter().filter_map(own).collect()
    }

    /// Refuses a file that holds layers the network was not told of.
    pub(super) fn finish(self, layers: &str) -> Result<()> {
        let begin = format!("{}{layers}", self.prefix);
        let used = self.used.borrow();
        let unused = self.tensors.keys().filter(|name| name.starts_with(&begin) && !used.contains(*name)).min();
        match unused {
            Some(name) => {
                Err(self.fault(format!("parameter `{name}` is in the file and `config.json` knows nothing of it")))
            }
            None => Ok(()),
        }
    }

    fn fault(&self, problem: String) -> EncodeError {
        let path = self.folder.weight_file().unwrap_or_else(|_| self.folder.path().to_owned());
        EncodeError::Unfit { path, network: self.network, problem }
    }
}
