//! A space that clips and sentences share, without a network that was trained to share one.
//!
//! Two classifiers say what they recognise in a clip: I3D which of 400 actions, EfficientNet-Lite0 which of 1000 objects. The names
//! of these classes are sentences of a kind, so a sentence encoder gives each a vector, objects with their kind and what WordNet says
//! of them; a clip becomes the mean of these vectors, weighted by the probabilities. Any sentence can then be compared with any clip by cosine, as far as the class names reach.

use cuemark_features::Recipe;
use cuemark_formats::{Overwrite, WholeFile};
use cuemark_media::{Filter, Framing};
use cuemark_tensor::{Device, Params, Tensor};

use crate::classes;
use crate::names::Described;
use crate::text::{self, TextEncoder};
use crate::visual::{
    ClipEncoder, Clips, ENCODERS, EfficientNetLite, EncoderOptions, I3d, Pixels, Sampling, fingerprint,
};
use crate::visual::{check, recipe, unfit};
use crate::{EncodeError, Names, Result};

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

/// Where the names' vectors lie once they were encoded, beside the weights that encoded them.
const NAMES_FILE: &str = ".names";

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
        let names = Self::names(text.as_ref(), None, options)?;
        Self::new(text.as_ref(), &names, options)
    }

    /// The same with another sentence encoder and the names as it encodes them; sentences must be encoded by the same one.
    ///
    /// # Errors
    /// When the weights of a classifier are not here or damaged, or a name has no vector.
    pub fn new(text: &dyn TextEncoder, names: &Names, options: &EncoderOptions) -> Result<Self> {
        let device = options.device.clone();
        let (i3d, lite) = (options.locate("i3d")?, options.locate("efficientnet-lite0")?);
        let (actions, objects) = (i3d.tensors()?, lite.tensors()?);
        let weights = format!("i3d {}, efficientnet-lite0 {}", fingerprint(&actions)?, fingerprint(&objects)?);
        let actions = Params::loaded(actions, &device);
        let actions = I3d::new(400, &actions.builder()).map_err(|error| unfit(&i3d, "i3d", &error))?;
        let objects = Params::loaded(objects, &device);
        let objects = EfficientNetLite::new(&objects.builder());
        let objects = objects.map_err(|error| unfit(&lite, "efficientnet-lite0", &error))?;
        let [of_actions, of_objects] = [classes::kinetics_400().len(), classes::imagenet().len()];
        let names = names.vectors().collect::<Vec<_>>().concat();
        let names = Tensor::from_vec(names, (of_actions + of_objects, text.width()), &device)?;
        let names = [names.narrow(0, 0, of_actions)?, names.narrow(0, of_actions, of_objects)?];
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

    /// The names that its rows are made of, as `text` encodes them: `kept`, where they are the same, or those that lie beside the
    /// weights of sentences.
    pub(crate) fn names(text: &dyn TextEncoder, kept: Option<&[u8]>, options: &EncoderOptions) -> Result<Names> {
        let (names, texts) = (Self::classes(), Self::described());
        let described = |(name, text): (&&'static str, &&'static str)| Described { name, text };
        let all: Vec<Described> = names.iter().zip(&texts).map(described).collect();
        let known = |bytes: &[u8]| Names::from_bytes(&all, text.width(), bytes);
        if let Some(kept) = kept.and_then(known) {
            return Ok(kept);
        }
        // The file goes with the weights: whoever pulls others has none.
        let folder = options.find("minilm").ok().filter(|folder| folder.name() == text.name());
        let beside = folder.map(|folder| folder.path().join(NAMES_FILE));
        if let Some(kept) = beside.as_ref().and_then(|file| std::fs::read(file).ok()).as_deref().and_then(known) {
            return Ok(kept);
        }
        let vectors = text.encode(&texts)?.into_iter().zip(text.encode(&names)?).map(|(vector, plain)| [vector, plain]);
        let names = Names::new(all.iter().copied().zip(vectors));
        if let Some(file) = beside {
            // Whoever may not write here encodes them again the next time.
            let _ = WholeFile::write_all_to(file, Overwrite::Force, &names.to_bytes());
        }
        Ok(names)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use camino::Utf8PathBuf;

    use super::*;
    use crate::weights::{self, Cache, WeightsSource};

    /// Counts how often it is asked.
    struct Letters {
        name: &'static str,
        asked: AtomicUsize,
    }

    impl TextEncoder for Letters {
        fn name(&self) -> &str {
            self.name
        }

        fn width(&self) -> usize {
            2
        }

        fn encode(&self, sentences: &[&str]) -> Result<Vec<Vec<f32>>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Ok(sentences.iter().map(|sentence| vec![sentence.len() as f32, self.name.len() as f32]).collect())
        }
    }

    /// A cache in which the weights of sentences lie, by their names and sizes.
    fn cache() -> (tempfile::TempDir, Cache, Utf8PathBuf) {
        let keep = tempfile::tempdir().unwrap();
        let cache = Cache::at(Utf8PathBuf::from_path_buf(keep.path().to_owned()).unwrap());
        let folder = cache.folder().join("minilm");
        let WeightsSource::Pip { files, .. } = weights::find("minilm").unwrap().source else { panic!("not of pip") };
        for file in files {
            let path = folder.join(file.name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create(path).unwrap().set_len(file.bytes).unwrap();
        }
        (keep, cache, folder)
    }

    #[test]
    fn names_are_encoded_once_and_lie_beside_the_weights_until_they_are_damaged() {
        let (_keep, cache, folder) = cache();
        let options = EncoderOptions { cache: Some(cache), ..EncoderOptions::default() };
        let text = Letters { name: "minilm", asked: AtomicUsize::new(0) };
        let made = Concepts::names(&text, None, &options).unwrap();
        assert_eq!((made.len(), text.asked.load(Ordering::Relaxed)), (1400, 2), "described, and by themselves");
        let again = Concepts::names(&text, None, &options).unwrap();
        assert_eq!((again.to_bytes(), text.asked.load(Ordering::Relaxed)), (made.to_bytes(), 2));
        // Those of an index come first.
        Concepts::names(&text, Some(&made.to_bytes()), &options).unwrap();
        // Cut short by a full disk, or by somebody.
        let bytes = std::fs::read(folder.join(NAMES_FILE)).unwrap();
        std::fs::write(folder.join(NAMES_FILE), &bytes[..bytes.len() - 1]).unwrap();
        let mended = Concepts::names(&text, None, &options).unwrap();
        assert_eq!((mended.to_bytes(), text.asked.load(Ordering::Relaxed)), (made.to_bytes(), 4));
        assert_eq!(std::fs::read(folder.join(NAMES_FILE)).unwrap(), bytes);
    }

    #[test]
    fn names_of_another_encoder_are_neither_taken_nor_replaced() {
        let (_keep, cache, folder) = cache();
        let options = EncoderOptions { cache: Some(cache), ..EncoderOptions::default() };
        let of = |name| Letters { name, asked: AtomicUsize::new(0) };
        let ours = Concepts::names(&of("minilm"), None, &options).unwrap();
        let other = of("another");
        let theirs = Concepts::names(&other, None, &options).unwrap();
        assert_eq!(other.asked.load(Ordering::Relaxed), 2);
        assert_ne!(theirs.to_bytes(), ours.to_bytes());
        assert_eq!(std::fs::read(folder.join(NAMES_FILE)).unwrap(), ours.to_bytes());
    }
}
