//! One network as an encoder of clips.

use std::collections::HashMap;
use std::sync::mpsc::sync_channel;

use camino::Utf8PathBuf;
use cuemark_features::{Recipe, RowTime};
use cuemark_tensor::{Device, Params, Precision, Tensor, set_precision};
use sha2::{Digest as _, Sha256};

use super::{
    AnyNetwork, ClipEncoder, Clips, ENCODERS, EncoderCard, Looks, PICTURES_AT_ONCE, Pool, Sampling, WorldEyes,
};
use crate::concepts::Concepts;
use crate::weights::{self, Cache, WeightsFolder};
use crate::{EncodeError, Result};

/// Pictures that go through a network at once: more would only take memory.
const AT_ONCE: usize = 16;
/// The same on a GPU where a clip is as large as its frames: fewer leave most of it idle in the last layers.
const CLIPS_ON_GPU: usize = 256;
/// The same on a CPU, where what lies between two layers should stay in its cache.
const AT_ONCE_ON_CPU: usize = 4;

/// How to open an encoder.
#[derive(Debug, Clone)]
pub struct EncoderOptions {
    /// What it runs on.
    pub device: Device,
    /// A file or folder with its weights. Default: those that `cuemark weights pull` fetched
    pub weights: Option<Utf8PathBuf>,
    /// Where pulled weights lie. Default: the user's cache
    pub cache: Option<Cache>,
    /// Frames a second. Default: the encoder's own
    pub fps: Option<f64>,
    /// Frames of one clip. Default: the encoder's own
    pub frames: Option<usize>,
    /// Frames from one clip to the next. Default: the encoder's own, or as many as a clip has when that is given
    pub stride: Option<usize>,
    /// How products on a GPU round what they multiply; it holds for the whole process. Default: TF32, as PyTorch's convolutions do,
    /// which most published features were made with
    pub precision: Precision,
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self {
            device: Device::Cpu,
            weights: None,
            cache: None,
            fps: None,
            frames: None,
            stride: None,
            precision: Precision::default(),
        }
    }
}

impl EncoderOptions {
    /// Weights that `cuemark weights pull` fetched.
    pub(crate) fn locate(&self, name: &str) -> Result<WeightsFolder> {
        match &self.cache {
            Some(cache) => cache.open(weights::find(name)?),
            None => weights::locate(name),
        }
    }

    /// The same by the names and sizes of their files: nothing is read.
    pub(crate) fn find(&self, name: &str) -> Result<WeightsFolder> {
        let card = weights::find(name)?;
        match &self.cache {
            Some(cache) => cache.locate(card),
            None => Cache::of_user()?.locate(card),
        }
    }

    /// An encoder's own sampling with what was asked for.
    pub(crate) fn sampling(&self, own: Sampling) -> Result<Sampling> {
        let frames = self.frames.unwrap_or(own.frames);
        let own_stride = if self.frames.is_some() { frames } else { own.stride };
        let sampling = Sampling {
            fps: self.fps.unwrap_or(own.fps),
            frames,
            stride: self.stride.unwrap_or(own_stride),
            framing: own.framing,
        };
        sampling.clip_len().map(|_| sampling)
    }
}

/// The encoder called `name`, with its weights.
///
/// # Errors
/// When there is none of that name, its weights are not here, damaged or those of another network, or the options cannot
/// be.
pub fn open(name: &str, options: &EncoderOptions) -> Result<Box<dyn ClipEncoder>> {
    if !options.device.is_cpu() {
        set_precision(options.precision);
    }
    if name == Concepts::NAME {
        return Ok(Box::new(Concepts::open(options)?));
    }
    if let Some(eyes) = WorldEyes::open(name, options)? {
        return Ok(Box::new(eyes));
    }
    let card = ENCODERS.iter().find(|card| card.name == name).ok_or_else(|| unknown(name))?;
    let folder = match (&options.weights, card.weights) {
        (Some(path), _) => weights::open(path.as_str())?,
        (None, Some(name)) => options.locate(name)?,
        (None, None) => return Err(EncodeError::NeedsWeights { encoder: card.name }),
    };
    Ok(Box::new(NetworkEncoder::load(card, &folder, options)?))
}

fn unknown(name: &str) -> EncodeError {
    let names = ENCODERS.iter().map(|card| card.name).chain([Concepts::NAME]).chain(WorldEyes::NAMES);
    EncodeError::NoEncoder { name: name.to_owned(), present: names.collect::<Vec<_>>().join(", ") }
}

/// A network of a card, with weights.
pub struct NetworkEncoder {
    card: &'static EncoderCard,
    network: AnyNetwork,
    sampling: Sampling,
    fingerprint: String,
    device: Device,
}

impl NetworkEncoder {
    /// Builds the network of `card` from parameters by its published names.
    ///
    /// # Errors
    /// When the file is damaged, a parameter is missing or misshaped, or the options cannot be.
    pub fn load(card: &'static EncoderCard, folder: &WeightsFolder, options: &EncoderOptions) -> Result<Self> {
        let sampling = options.sampling(card.sampling)?;
        let tensors = folder.tensors()?;
        let fingerprint = fingerprint(&tensors)?;
        let params = Params::loaded(tensors, &options.device);
        let network = (card.make)(&params.builder()).map_err(|error| unfit(folder, card.name, &error))?;
        Ok(Self { card, network, sampling, fingerprint, device: options.device.clone() })
    }

    /// Rows of pixels, `[clips, frames, height, width, 3]`.
    fn rows(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        match self.card.looks {
            Looks::Clip => self.network.forward(x),
            Looks::Frames(pool) => {
                let (count, frames, height, width, _) = x.dims5()?;
                let rows = self.network.forward(&x.reshape((count * frames, 1, height, width, 3))?)?;
                let rows = rows.reshape((count, frames, self.network.width()))?;
                match pool {
                    Pool::Mean => rows.mean(1),
                    Pool::Max => rows.max(1),
                }
            }
        }
    }

    /// Rows of all clips, part after part, on a GPU: while it looks at one part, the bytes of the next travel.
    // Each thread has a stream of its own there, so what one copies does not wait for what another computes. Rows are read when all
    // is on its way: reading waits.
    fn rows_while_bytes_travel(&self, clips: &Clips, at_once: usize) -> candle_core::Result<Vec<Tensor>> {
        std::thread::scope(|scope| {
            let (arrived, arrivals) = sync_channel(1);
            scope.spawn(move || {
                for part in clips.parts(at_once) {
                    let pixels = self.card.pixels.tensor(part, &self.device);
                    // Whoever takes them looks at once.
                    let pixels = pixels.and_then(|pixels| self.device.synchronize().map(|()| pixels));
                    let failed = pixels.is_err();
                    if arrived.send(pixels).is_err() || failed {
                        return;
                    }
                }
            });
            arrivals.iter().map(|pixels| self.rows(&pixels?)).collect()
        })
    }
}

impl ClipEncoder for NetworkEncoder {
    fn name(&self) -> &str {
        self.card.name
    }

    fn width(&self) -> usize {
        self.network.width()
    }

    fn sampling(&self) -> Sampling {
        self.sampling
    }

    fn recipe(&self) -> Recipe {
        let mut settings = self.sampling.settings();
        if let Looks::Frames(pool) = self.card.looks {
            settings.insert("pool".to_owned(), if pool == Pool::Mean { "mean" } else { "max" }.to_owned());
        }
        recipe(self.card.name, &self.fingerprint, self.network.width(), &self.sampling, settings)
    }

    fn pictures_at_once(&self) -> usize {
        // Two parts: while the network looks at one, the other travels.
        if self.device.is_cpu() { PICTURES_AT_ONCE } else { 2 * CLIPS_ON_GPU }
    }

    fn encode(&self, clips: &Clips) -> Result<Vec<Vec<f32>>> {
        check(clips, &self.sampling)?;
        let mut rows = Vec::with_capacity(clips.len());
        let pictures = match self.card.looks {
            // A clip is as large as its frames; the CPU spreads one over all its threads.
            Looks::Clip if self.device.is_cpu() => 1,
            Looks::Clip => CLIPS_ON_GPU,
            Looks::Frames(_) if self.device.is_cpu() => AT_ONCE_ON_CPU,
            Looks::Frames(_) => AT_ONCE,
        };
        let at_once = (pictures / self.sampling.frames).max(1);
        if self.device.is_cpu() {
            for part in clips.parts(at_once) {
                rows.extend(self.rows(&self.card.pixels.tensor(part, &self.device)?)?.to_vec2::<f32>()?);
            }
        } else {
            for made in self.rows_while_bytes_travel(clips, at_once)? {
                rows.extend(made.to_vec2::<f32>()?);
            }
        }
        Ok(rows)
    }
}

/// What a store's header says; `settings` are in it as they are.
pub(crate) fn recipe(
    extractor: &str,
    weights: &str,
    width: usize,
    sampling: &Sampling,
    settings: std::collections::BTreeMap<String, String>,
) -> Recipe {
    // The sampling was checked when the encoder was made.
    let row_time = sampling.clip_len().map_or(RowTime::SpanDuration, RowTime::Clip);
    Recipe {
        extractor: extractor.to_owned(),
        weights: Some(weights.to_owned()),
        fps: Some(sampling.fps),
        row_time,
        width,
        resize: Some(sampling.framing.size()),
        settings,
    }
}

/// Whether clips are as an encoder wants them.
pub(crate) fn check(clips: &Clips, sampling: &Sampling) -> Result<()> {
    if clips.frames() == sampling.frames && clips.size() == sampling.framing.size() {
        return Ok(());
    }
    let ([w, h], [wanted_w, wanted_h]) = (clips.size(), sampling.framing.size());
    let (frames, wanted) = (clips.frames(), sampling.frames);
    let problem = format!("clips of {frames} frames of {w} x {h} where {wanted} of {wanted_w} x {wanted_h} are wanted");
    Err(EncodeError::Sampling { problem })
}

/// Weights that a network cannot be built of.
pub(crate) fn unfit(folder: &WeightsFolder, network: &'static str, error: &candle_core::Error) -> EncodeError {
    let path = folder.weight_file().unwrap_or_else(|_| folder.path().to_owned());
    EncodeError::Unfit { path, network, problem: error.to_string() }
}

/// What tells weights apart, whatever file they came in: a hash of names, shapes and values.
///
/// # Errors
/// Those of the tensor operations.
pub fn fingerprint(tensors: &HashMap<String, Tensor>) -> Result<String> {
    let mut names: Vec<&String> = tensors.keys().collect();
    names.sort_unstable();
    let mut hash = Sha256::new();
    for name in names {
        let Some(tensor) = tensors.get(name) else { continue };
        hash.update(format!("{name} {:?}\n", tensor.dims()));
        let values = tensor.to_dtype(candle_core::DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        for part in values.chunks(1 << 14) {
            let bytes: Vec<u8> = part.iter().flat_map(|value| value.to_le_bytes()).collect();
            hash.update(&bytes);
        }
    }
    Ok(format!("sha256:{}", cuemark_core::digest::hex(&hash.finalize()[..16])))
}
