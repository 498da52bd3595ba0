//! A network's parameters, by the names of its published code.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{DType, Device, Error, Result, Shape, Tensor, Var};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use cuemark_core::Rng;

/// Parameters and buffers of a network, made as the network asks for them while it is built.
///
/// Where they come from is chosen once: drawn from a seed ([`Params::seeded`]), taken from a checkpoint
/// ([`Params::loaded`]), or only counted, without memory for a single weight ([`Params::counted`]).
#[derive(Clone)]
pub struct Params(Arc<Inner>);

struct Inner {
    device: Device,
    source: Source,
    made: Mutex<BTreeMap<String, Made>>,
}

enum Source {
    Seed(u64),
    Tensors(HashMap<String, Tensor>),
    Count,
}

#[derive(Clone)]
enum Made {
    Var(Var),
    Shape(Shape),
}

impl Params {
    /// Every parameter drawn by its initialiser from a stream of its own, named like the parameter: adding one to a
    /// network changes no other.
    pub fn seeded(seed: u64, device: &Device) -> Self {
        Self::from_source(Source::Seed(seed), device)
    }

    /// Every parameter taken from `tensors`; building fails with the name of the first that is missing or misshaped.
    pub fn loaded(tensors: HashMap<String, Tensor>, device: &Device) -> Self {
        Self::from_source(Source::Tensors(tensors), device)
    }

    /// Shapes alone: a network of any size can be built and counted, but not run.
    pub fn counted() -> Self {
        Self::from_source(Source::Count, &Device::Cpu)
    }

    fn from_source(source: Source, device: &Device) -> Self {
        Self(Arc::new(Inner { device: device.clone(), source, made: Mutex::default() }))
    }

    /// What a network is built from.
    pub fn builder(&self) -> VarBuilder<'static> {
        VarBuilder::from_backend(Box::new(self.clone()), DType::F32, self.0.device.clone())
    }

    /// The device they live on.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// All variables by name, buffers included, in the order of their names.
    pub fn vars(&self) -> Vec<(String, Var)> {
        let made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().filter_map(|(name, made)| Some((name.clone(), made.var()?.clone()))).collect()
    }

    /// The variables that training changes: all but the buffers.
    pub fn trainable(&self) -> Vec<(String, Var)> {
        self.vars().into_iter().filter(|(name, _)| !is_buffer(name)).collect()
    }

    /// One variable.
    pub fn var(&self, name: &str) -> Option<Var> {
        self.0.made.lock().unwrap_or_else(PoisonError::into_inner).get(name)?.var().cloned()
    }

    /// The shape of everything that the network asked for, by name, buffers included.
    pub fn shapes(&self) -> BTreeMap<String, Vec<usize>> {
        let made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().map(|(name, made)| (name.clone(), made.shape().dims().to_vec())).collect()
    }

    /// Names that the checkpoint holds and the network never asked for.
    pub fn unused(&self) -> Vec<String> {
        let Source::Tensors(tensors) = &self.0.source else { return Vec::new() };
        let made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = tensors.keys().filter(|name| !made.contains_key(*name)).cloned().collect();
        names.sort();
        names
    }

    /// Number of trainable values; batch-norm statistics and fixed tables are buffers and do not count.
    pub fn count(&self) -> usize {
        let made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().filter(|(name, _)| !is_buffer(name)).map(|(_, made)| made.shape().elem_count()).sum()
    }

    fn make(&self, shape: &Shape, name: &str, init: Init) -> Result<Made> {
        match &self.0.source {
            Source::Count => Ok(Made::Shape(shape.clone())),
            Source::Seed(seed) => {
                let mut rng = Rng::stream(*seed, name);
                Ok(Made::Var(Var::from_tensor(&draw(shape, init, &mut rng, &self.0.device)?)?))
            }
            Source::Tensors(tensors) => {
                let Some(tensor) = tensors.get(name) else {
                    return Err(Error::Msg(format!("parameter `{name}` is missing")));
                };
                if tensor.shape() != shape {
                    let (found, wanted) = (tensor.dims(), shape.dims());
                    return Err(Error::Msg(format!(
                        "parameter `{name}` has shape {found:?}, the network wants {wanted:?}"
                    )));
                }
                Ok(Made::Var(Var::from_tensor(&tensor.to_dtype(DType::F32)?.to_device(&self.0.device)?)?))
            }
        }
    }
}

/// Whether a name belongs to something that is stored with the weights but not trained.
fn is_buffer(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    matches!(last, "running_mean" | "running_var" | "num_batches_tracked") || last.starts_with("fixed_")
}

impl Made {
    fn var(&self) -> Option<&Var> {
        match self {
            Self::Var(var) => Some(var),
            Self::Shape(_) => None,
        }
    }

    fn shape(&self) -> &Shape {
        match self {
            Self::Var(var) => var.shape(),
            Self::Shape(shape) => shape,
        }
    }

    /// What a layer holds; a counted parameter is one zero seen through its shape.
    fn tensor(&self, device: &Device) -> Result<Tensor> {
        match self {
            Self::Var(var) => Ok(var.as_tensor().clone()),
            Self::Shape(shape) => Tensor::zeros(1, DType::F32, device)?.broadcast_as(shape.clone()),
        }
    }
}

/// Candle's own initialisers draw from a generator that cannot be seeded; these are the same distributions from ours.
fn draw(shape: &Shape, init: Init, rng: &mut Rng, device: &Device) -> Result<Tensor> {
    let values: Vec<f32> = match init {
        Init::Const(value) => vec![value as f32; shape.elem_count()],
        Init::Uniform { lo, up } => (0..shape.elem_count()).map(|_| rng.between(lo, up) as f32).collect(),
        Init::Randn { mean, stdev } => (0..shape.elem_count()).map(|_| (mean + stdev * rng.normal()) as f32).collect(),
        Init::Kaiming { dist, fan, non_linearity } => {
            let deviation = non_linearity.gain() / (fan.for_shape(shape) as f64).sqrt();
            let init = match dist {
                candle_nn::init::NormalOrUniform::Normal => Init::Randn { mean: 0.0, stdev: deviation },
                candle_nn::init::NormalOrUniform::Uniform => {
                    let bound = 3f64.sqrt() * deviation;
                    Init::Uniform { lo: -bound, up: bound }
                }
            };
            return draw(shape, init, rng, device);
        }
    };
    Tensor::from_vec(values, shape.clone(), device)
}

impl SimpleBackend for Params {
    fn get(&self, shape: Shape, name: &str, init: Init, _: DType, device: &Device) -> Result<Tensor> {
        if let Some(made) = self.0.made.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            if *made.shape() != shape {
                return Err(Error::Msg(format!("parameter `{name}` is asked for in two shapes")));
            }
            return made.tensor(device);
        }
        let made = self.make(&shape, name, init)?;
        let tensor = made.tensor(device)?;
        self.0.made.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), made);
        Ok(tensor)
    }

    fn get_unchecked(&self, name: &str, _: DType, device: &Device) -> Result<Tensor> {
        let Source::Tensors(tensors) = &self.0.source else {
            return Err(Error::Msg(format!("parameter `{name}` needs a shape")));
        };
        let shape = tensors.get(name).map(|tensor| tensor.shape().clone());
        let shape = shape.ok_or_else(|| Error::Msg(format!("parameter `{name}` is missing")))?;
        self.get(shape, name, Init::Const(0.0), DType::F32, device)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        match &self.0.source {
            Source::Tensors(tensors) => tensors.contains_key(name),
            Source::Seed(_) | Source::Count => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(params: &Params, name: &str) -> Vec<f32> {
        let init = Init::Uniform { lo: -0.5, up: 0.5 };
        params.builder().get_with_hints((3, 4), name, init).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    }

    #[test]
    fn a_parameter_depends_on_its_seed_and_name_and_not_on_the_order_of_asking() {
        let (first, second) = (Params::seeded(1, &Device::Cpu), Params::seeded(1, &Device::Cpu));
        let weight = values(&first, "weight");
        values(&second, "bias");
        assert_eq!(weight, values(&second, "weight"));
        assert_ne!(weight, values(&first, "bias"));
        assert_ne!(weight, values(&Params::seeded(2, &Device::Cpu), "weight"));
    }

    #[test]
    fn counting_needs_no_memory_and_leaves_out_buffers() {
        let params = Params::counted();
        let builder = params.builder();
        builder.get((1_000_000, 1_000_000), "weight").unwrap();
        builder.get(16, "bn.running_mean").unwrap();
        assert_eq!(params.count(), 1_000_000_000_000);
    }

    #[test]
    fn a_checkpoint_names_what_is_missing_misshaped_or_left_over() {
        let tensor = |n: usize| Tensor::zeros(n, DType::F32, &Device::Cpu).unwrap();
        let tensors = HashMap::from([("a".to_owned(), tensor(3)), ("b".to_owned(), tensor(4))]);
        let params = Params::loaded(tensors, &Device::Cpu);
        let builder = params.builder();
        builder.get(3, "a").unwrap();
        assert_eq!(params.unused(), ["b"]);
        assert!(builder.get(5, "b").unwrap_err().to_string().contains("`b` has shape [4], the network wants [5]"));
        assert!(builder.pp("c").get(5, "d").unwrap_err().to_string().contains("`c.d` is missing"));
    }
}
