//! What turns sentences and videos into embeddings of one space.

mod absent;
#[cfg(feature = "models")]
mod joint;
#[cfg(feature = "models")]
mod run;
#[cfg(feature = "models")]
mod scales;
#[cfg(feature = "models")]
mod stored;

pub(crate) use absent::AbsentEncoder;
use camino::Utf8Path;
#[cfg(feature = "models")]
use cuemark_core::Advice;
use cuemark_core::{Progress, VideoId};
use cuemark_media::Partial;
#[cfg(feature = "models")]
use cuemark_tensor::Device;
#[cfg(feature = "models")]
pub use joint::JointEncoder;
#[cfg(feature = "models")]
pub use run::RunEncoder;

#[cfg(feature = "models")]
use crate::SearchError;
#[cfg(feature = "models")]
use crate::engine::disk::RealDisk;
use crate::{Calibration, Embedding, IndexedMoment, KeptFile, MatchedConcept, Result};
#[cfg(feature = "models")]
use crate::{EngineUrl, Manifest, kept};

/// Turns sentences and videos into embeddings of one space. Safe to share between threads.
pub trait Encoder: Send + Sync {
    /// What it is called in an index's manifest; [`open_kept`] opens it again.
    fn name(&self) -> &str;

    /// Numbers per embedding.
    fn width(&self) -> usize;

    /// One embedding per sentence, in order; a sentence's embedding does not depend on the others.
    ///
    /// # Errors
    /// Those of the model.
    fn sentences(&self, sentences: &[&str]) -> Result<Vec<Embedding>>;

    /// The moments of one video at every scale. Without a file, features stored under the video's name are used. `progress`
    /// counts **seconds of film** where a file is decoded, in a phase of its own, and is asked whether to go on.
    ///
    /// # Errors
    /// When the video cannot be decoded or has no features, those of the model, and when the work was stopped.
    fn video(&self, id: &VideoId, file: Option<&Utf8Path>, progress: &Progress) -> Result<EmbeddedVideo>;

    /// Opens what looking at films takes, where that was put off: questions need less. Does nothing the second time.
    ///
    /// # Errors
    /// When it is not on this machine or damaged.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// Whether a word (lower case) means anything to it.
    fn knows(&self, _word: &str) -> bool {
        true
    }

    /// What is recognised in a moment and speaks for it as an answer to a question, the weightiest first; none where the
    /// encoder recognises nothing by name.
    fn concepts(&self, _query: &Embedding, _moment: &Embedding) -> Vec<MatchedConcept> {
        Vec::new()
    }

    /// What tells by which vectors it compares sentences with each other, and how many numbers those have; `None` where it compares
    /// none.
    fn means(&self) -> Option<(String, usize)> {
        None
    }

    /// What sentences mean, one vector each, to be compared with each other; none where [`Encoder::means`] has none.
    ///
    /// # Errors
    /// Those of the model.
    fn meanings(&self, _sentences: &[&str]) -> Result<Vec<Embedding>> {
        Ok(Vec::new())
    }

    /// Whether it recognises nothing by name.
    fn names_nothing(&self) -> bool {
        true
    }

    /// What comes nearest to the embedding of a word of all that it recognises; `None` where it recognises nothing by name.
    fn nearest_name(&self, _word: &Embedding) -> Option<NearestName> {
        None
    }

    /// Moments that stand for all there is, to tell what a question scores by chance; `None` when a sample of the index has
    /// to do. They do not depend on the index, so that a probability does not either.
    fn background(&self) -> Option<Vec<Embedding>> {
        None
    }

    /// The share of a window's height above chance that a longer one around it must keep to be taken in its place; `None` where
    /// windows are answers as they are, because the encoder was trained to tell them apart.
    fn keeps_when_joined(&self) -> Option<f64> {
        None
    }

    /// By how much the best answer of chance stands higher with every doubling of what is searched: what no film shows is found more
    /// nearly among more films. 0 where that is not known.
    fn rises_per_doubling(&self) -> f64 {
        0.0
    }

    /// The files it is made of, for an index to keep, so that [`open_kept`] opens it when the place it came from is gone; none of
    /// an encoder that is found by its name.
    ///
    /// # Errors
    /// When they cannot be read any more.
    fn keeps(&self) -> Result<Vec<KeptFile>> {
        Ok(Vec::new())
    }

    /// How its scores become probabilities, from validation queries whose answers are known; `None` when it has none.
    ///
    /// # Errors
    /// When those cannot be read.
    fn calibration(&self) -> Result<Option<Calibration>> {
        Ok(None)
    }
}

/// Something that an encoder recognises, beside a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestName {
    /// Its name.
    pub name: String,
    /// Whether it is near enough to be what the word says.
    pub covers: bool,
}

/// A video as an index keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedVideo {
    /// **Seconds**.
    pub duration: f64,
    /// In the order of their starts, then ends.
    pub moments: Vec<IndexedMoment>,
    /// What of its file could not be read; `None` of a whole film.
    pub partial: Option<Partial>,
}

/// The encoder that `name` stands for on this machine: `auto` is the best one for anybody's films whose weights are here, everything
/// else is itself.
#[cfg(feature = "models")]
pub fn chosen(name: &str) -> &str {
    if name == cuemark_encoders::AUTO {
        cuemark_encoders::best_joint(&cuemark_encoders::visual::EncoderOptions::default())
    } else {
        name
    }
}

/// Opens an encoder by name: `concepts`, `clip`, `clip:PATH` (a folder with its weights), or the folder of a trained
/// bi-encoder's run. `features` is a feature store to look videos up in.
///
/// # Errors
/// When there is none of that name, or it cannot be read.
#[cfg(feature = "models")]
pub fn open(name: &str, features: Option<&Utf8Path>, device: &Device) -> Result<Box<dyn Encoder>> {
    if JointEncoder::is_one(name) {
        return Ok(Box::new(JointEncoder::open(name, features, device)?));
    }
    let folder = Utf8Path::new(name);
    if folder.join("run.toml").is_file() {
        return Ok(Box::new(RunEncoder::open(folder, features, device)?));
    }
    Err(SearchError::Encoder {
        encoder: name.to_owned(),
        problem: "no run folder and no encoder of that name".to_owned(),
        advice: Advice::say("`concepts` works on any video; or name `clip`, or the folder that ")
            .run("train")
            .and(" made of a bi-encoder"),
    })
}

/// Opens the encoder of an index: what the index keeps of it, checked, or else by its name, as [`open`]. `features` is a store to
/// look videos up in. Of an encoder whose sides can be had apart only that of sentences is opened; [`Encoder::prepare`] opens the
/// other.
///
/// # Errors
/// As [`open`], and when a file that the index keeps is not what it was.
#[cfg(feature = "models")]
pub fn open_kept(
    url: &EngineUrl,
    about: &Manifest,
    features: Option<&Utf8Path>,
    device: &Device,
) -> Result<Box<dyn Encoder>> {
    if JointEncoder::is_one(&about.encoder) {
        let names = match url {
            // What is damaged there is encoded again; `verify` tells of it.
            EngineUrl::File(index) => kept::read(&RealDisk, index, &about.kept).unwrap_or_default(),
            EngineUrl::Milvus { .. } => Vec::new(),
        };
        let names = names.iter().find(|file| file.name == joint::NAMES_FILE).map(|file| file.bytes.as_slice());
        return Ok(Box::new(JointEncoder::open_kept(&about.encoder, features, device, names)?));
    }
    match url {
        EngineUrl::File(index) if !about.kept.is_empty() => {
            kept::check(&RealDisk, index, &about.kept)?;
            let folder = index.join(kept::FOLDER);
            Ok(Box::new(RunEncoder::open_as(about.encoder.clone(), &folder, features, device)?))
        }
        _ => open(&about.encoder, features, device),
    }
}
