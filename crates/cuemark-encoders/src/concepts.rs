//! A space that clips and sentences share, without a network that was trained to share one.
//!
//! Two classifiers say what they recognise in a clip: I3D which of 400 actions, EfficientNet-Lite0 which of 1000 objects. The names
//! of these classes are sentences of a kind, so a sentence encoder gives each a vector, objects with their kind and what WordNet says
//! of them; a clip becomes the mean of these vectors, weighted by the probabilities. Any sentence can then be compared with any clip by cosine, as far as the class names reach.

use cuemark_features::Recipe;
use cuemark_media::{Filter, Framing};
use cuemark_tensor::{Device, Params, Tensor};

use crate::classes;
use crate::text::{self, TextEncoder};
use crate::visual::{
    ClipEncoder, Clips, ENCODERS, EfficientNetLite, EncoderOptions, I3d, Pixels, Sampling, fingerprint,
};
use crate::visual::{check, recipe, unfit};
use crate::{EncodeError, Result};

/// Which frames make a clip: two seconds. I3D was trained on 25 frames a second; a third of them do for the space of names and
/// cost a third.
const SAMPLING: Sampling = Sampling {
    fps: 8.0,
    frames: 16,
    stride: 16,
    framing: Framing::CentreCrop { short_side: 256, crop: 224, filter: Filter::Bilinear },
};

/// How much of a row comes from actions; the rest comes from objects. Between 0.2 and 0.4, which find about as much on 36 small films
/// with 39 questions; 0.6 finds less, on both halves of them.
const ACTIONS: f64 = 0.3;

/// Pictures of a clip in which objects are looked for, evenly over it: what is hidden in one shows in another, and each costs
/// little beside the actions.
const LOOKS: usize = 4;

/// One class and how sure its network is of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recognised {
    /// The class, as its dataset names it.
    pub name: &'static str,
    /// 0 to 1.
    pub probability: f32,
}

/// What is recognised in one clip, likeliest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// All 400 actions.
    pub actions: Vec<Recognised>,
    /// All 1000 objects, the mean over a few of the clip's pictures.
    pub objects: Vec<Recognised>,
}

/// The encoder called `concepts`.
pub struct Concepts {
    actions: I3d,
    objects: EfficientNetLite,
    /// Vectors of the names: actions, then objects, `[classes, width]`.
    names: [Tensor; 2],
    width: usize,
    sampling: Sampling,
    weights: String,
    device: Device,
}

impl Concepts {
    /// What one types.
    pub const NAME: &'static str = "concepts";

    /// With the weights that `cuemark weights pull` fetched: `i3d`, `efficientnet-lite0`, `minilm`.
    ///
    /// # Errors
    /// When one of them is not here or damaged, or a path is given: there is no one file with all of them.
    pub fn open(options: &EncoderOptions) -> Result<Self> {
        if let Some(path) = &options.weights {
            let problem = "it takes the pulled weights `i3d`, `efficientnet-lite0` and `minilm`, no file".to_owned();
            return Err(EncodeError::Unfit { path: path.clone(), network: Self::NAME, problem });
        }
        let text = text::from_folder(&options.locate("minilm")?, &options.device)?;
        Self::new(text.as_ref(), options)
    }

    /// The same with another sentence encoder; sentences must be encoded by the same one.
    ///
    /// # Errors
    /// When the weights of a classifier are not here or damaged.
    pub fn new(text: &dyn TextEncoder, options: &EncoderOptions) -> Result<Self> {
        let device = options.device.clone();
        let (i3d, lite) = (options.locate("i3d")?, options.locate("efficientnet-lite0")?);
        let (actions, objects) = (i3d.tensors()?, lite.tensors()?);
        let weights = format!("i3d {}, efficientnet-lite0 {}", fingerprint(&actions)?, fingerprint(&objects)?);
        let actions = Params::loaded(actions, &device);
        let actions = I3d::new(400, &actions.builder()).map_err(|error| unfit(&i3d, "i3d", &error))?;
        let objects = Params::loaded(objects, &device);
        let objects = EfficientNetLite::new(&objects.builder());
        let objects = objects.map_err(|error| unfit(&lite, "efficientnet-lite0", &error))?;
        let vectors = |names: &[&str]| -> Result<Tensor> {
            let vectors = text.encode(names)?.concat();
            Ok(Tensor::from_vec(vectors, (names.len(), text.width()), &device)?)
        };
        let names = [vectors(&classes::kinetics_400())?, vectors(&classes::imagenet_described())?];
        let sampling = options.sampling(SAMPLING)?;
        let weights = format!("{weights}, names and what they mean {}", text.name());
        Ok(Self { actions, objects, names, width: text.width(), sampling, weights, device })
    }

    /// Probabilities of actions and objects, `[clips, classes]` each.
    fn probabilities(&self, clips: &Clips) -> Result<[Tensor; 2]> {
        check(clips, &self.sampling)?;
        let objects = ENCODERS.iter().find(|card| card.name == "efficientnet-lite0");
        let pixels = objects.map_or(Pixels::SIGNED, |card| card.pixels);
        let looks = LOOKS.min(clips.frames());
        let mut objects = Vec::new();
        for pictures in clips.spread(looks).parts(1) {
            let [width, height] = pictures.size;
            let x = pixels.tensor(pictures, &self.device)?.reshape((looks, 1, height, width, 3))?;
            objects.push(self.objects.probabilities(&x)?.mean_keepdim(0)?);
        }
        let objects = Tensor::cat(&objects, 0)?;
        let mut actions = Vec::new();
        for clip in clips.parts(if self.device.is_cpu() { 1 } else { 8 }) {
            actions.push(self.actions.probabilities(&Pixels::SIGNED.tensor(clip, &self.device)?)?);
        }
        Ok([Tensor::cat(&actions, 0)?, objects])
    }

    /// What is recognised in each clip.
    ///
    /// # Errors
    /// When the clips are not as [`ClipEncoder::sampling`] says, or a tensor operation fails.
    pub fn recognise(&self, clips: &Clips) -> Result<Vec<Seen>> {
        if clips.is_empty() {
            return Ok(Vec::new());
        }
        let [actions, objects] = self.probabilities(clips)?;
        let (action_names, object_names) = (classes::kinetics_400(), classes::imagenet());
        let sorted = |names: &[&'static str], row: Vec<f32>| {
            let mut all: Vec<Recognised> =
                names.iter().zip(row).map(|(name, probability)| Recognised { name, probability }).collect();
            all.sort_by(|a, b| b.probability.total_cmp(&a.probability));
            all
        };
        let rows = actions.to_vec2::<f32>()?.into_iter().zip(objects.to_vec2::<f32>()?);
        let seen = rows.map(|(actions, objects)| Seen {
            actions: sorted(&action_names, actions),
            objects: sorted(&object_names, objects),
        });
        Ok(seen.collect())
    }

    /// How sure each network is of each of its classes, one row per clip: 400 actions, then 1000 objects.
    ///
    /// # Errors
    /// As [`Concepts::recognise`].
    pub fn probabilities_of_classes(&self, clips: &Clips) -> Result<Vec<Vec<f32>>> {
        if clips.is_empty() {
            return Ok(Vec::new());
        }
        let [actions, objects] = self.probabilities(clips)?;
        Ok(Tensor::cat(&[actions, objects], 1)?.to_vec2::<f32>()?)
    }

    /// The names that its rows are made of: actions, then objects.
    pub(crate) fn classes() -> Vec<&'static str> {
        classes::kinetics_400().into_iter().chain(classes::imagenet()).collect()
    }

    /// The same as its rows are made of them: objects with what each is.
    pub(crate) fn described() -> Vec<&'static str> {
        classes::kinetics_400().into_iter().chain(classes::imagenet_described()).collect()
    }
}

impl ClipEncoder for Concepts {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn width(&self) -> usize {
        self.width
    }

    fn sampling(&self) -> Sampling {
        self.sampling
    }

    fn recipe(&self) -> Recipe {
        let mut settings = self.sampling.settings();
        settings.insert("actions".to_owned(), format!("{ACTIONS} of the row, Kinetics-400 by I3D"));
        let objects = format!("the rest, ImageNet by EfficientNet-Lite0, mean of {LOOKS} frames");
        settings.insert("objects".to_owned(), objects);
        recipe(Self::NAME, &self.weights, self.width, &self.sampling, settings)
    }

    fn encode(&self, clips: &Clips) -> Result<Vec<Vec<f32>>> {
        if clips.is_empty() {
            return Ok(Vec::new());
        }
        let [actions, objects] = self.probabilities(clips)?;
        let [action_names, object_names] = &self.names;
        let (actions, objects) = (actions.matmul(action_names)?, objects.matmul(object_names)?);
        Ok(((actions * ACTIONS)? + (objects * (1.0 - ACTIONS))?)?.to_vec2::<f32>()?)
    }
}
