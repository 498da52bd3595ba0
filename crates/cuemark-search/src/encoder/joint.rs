//! Encoders of pictures and sentences whose space was there before the collection: nothing is trained.

use std::sync::{Arc, OnceLock};

use camino::Utf8Path;
use cuemark_core::{Advice, ClipLen, Progress, VideoId};
use cuemark_encoders::extract::extract_video;
use cuemark_encoders::visual::EncoderOptions;
use cuemark_encoders::{
    ClipEncoder, Concepts, JOINT, Joint, Names, TextEncoder, check_pulled, joint_clips, joint_names, joint_text,
};
use cuemark_features::{FeatureSource, Features, OpenOptions};
use cuemark_media::Ffmpeg;
use cuemark_tensor::Device;

use super::scales::{check_moments, count_moments, moments_of};
use super::stored::stated_duration;
use super::{EmbeddedVideo, Encoder, NearestName};
use crate::answer::MatchedConcept;
use crate::{Calibration, Embedding, KeptFile, Result, SearchError};

/// The stream that `cuemark features extract` writes.
const STREAM: &str = "visual";
/// Names that a moment is taken apart into.
const PARTS: usize = 12;
/// A concept that does less than this share for an answer is not named.
const LEAST_SHARE: f64 = 0.05;

/// A word of so many letters without a vowel is a jumble.
const JUMBLE: usize = 4;
/// A word whose embedding is so near to that of a name is taken for it.
const COVERS: f32 = 0.6;
/// A longer window must keep this share of a shorter one's height above chance to be taken in its place.
const KEEPS: f64 = 0.85;
/// For `concepts`: an answer that stands lower than this beside the question's best name, both without what all names have in common, is
/// not good enough among some 36 short films: 86 % of 111 questions about them are answered there, and 56 % of 120 that nothing answers
/// are refused (`results/notes/films7-2026-11-18.md`). The curve itself is still the guess.
const CONCEPTS_CUT: f64 = 0.59;
/// And by how much the cut rises with every doubling of the films. The median of 60 plausible questions that nothing answers
/// (`fixtures/search/absent.txt`) was 0.44, 0.54 and 0.62 among 9, 18 and 36 of them, that of the answerable 0.80, 0.82 and 0.83, and what 86 %
/// of these reach 0.47, 0.56 and 0.59: so between 0.03 and 0.09.
const CONCEPTS_RISE: f64 = 0.05;

/// The file that an index keeps of the names' vectors, so that a question need not wait for them to be encoded.
pub(crate) const NAMES_FILE: &str = "names";

/// Two published encoders of one space: `concepts` or `clip`. A moment is the mean of its clips.
///
/// Questions need the side of sentences only: that of clips, whose networks are much larger, is opened with the first film.
pub struct JointEncoder {
    name: String,
    text: Box<dyn TextEncoder>,
    /// What rows of clips are made of; none where they are not made of names.
    names: Names,
    clips: OnceLock<Box<dyn ClipEncoder>>,
    /// Of whom the side of clips is, and how it is opened; `None` where it came with the other.
    unopened: Option<(String, EncoderOptions)>,
    features: Option<Arc<dyn FeatureSource>>,
}

impl JointEncoder {
    /// Whether `name` is one: `concepts`, `clip`, `clip-b16`, or `clip:PATH` with the folder of its weights.
    pub fn is_one(name: &str) -> bool {
        JOINT.contains(&name) || name.split_once(':').is_some_and(|(encoder, _)| JOINT.contains(&encoder))
    }

    /// Opens one by name, its side of sentences: that of clips is only looked for. `features` is a store that `cuemark features
    /// extract` made with the same encoder; what is in it is not computed again.
    ///
    /// # Errors
    /// When weights of either side are not on this machine, those of sentences are damaged, or the store was made in another way.
    pub fn open(name: &str, features: Option<&Utf8Path>, device: &Device) -> Result<Self> {
        let (encoder, options) = understood(name, device)?;
        check_pulled(&encoder, &options)?;
        Self::opened(encoder, options, features, None)
    }

    /// The same for an index that is there already, which may keep the names' vectors; weights of clips need not be here before a
    /// film is added.
    ///
    /// # Errors
    /// When weights of sentences are not on this machine or damaged, or the store was made in another way.
    pub(crate) fn open_kept(
        name: &str,
        features: Option<&Utf8Path>,
        device: &Device,
        names: Option<&[u8]>,
    ) -> Result<Self> {
        let (encoder, options) = understood(name, device)?;
        Self::opened(encoder, options, features, names)
    }

    fn opened(
        encoder: String,
        options: EncoderOptions,
        features: Option<&Utf8Path>,
        names: Option<&[u8]>,
    ) -> Result<Self> {
        let name = options.weights.as_ref().map_or_else(|| encoder.clone(), |path| format!("{encoder}:{path}"));
        let features = match features {
            Some(store) => Some(cuemark_features::open(store, &OpenOptions::default())?),
            None => None,
        };
        let text = joint_text(&encoder, &options)?;
        let names = joint_names(&encoder, text.as_ref(), names, &options)?;
        let unopened = Some((encoder, options));
        Self { name, text, names, clips: OnceLock::new(), unopened, features }.checked()
    }

    /// Two encoders of one's own, called `name` in the manifest.
    ///
    /// # Errors
    /// When their vectors differ in width, or the store was made in another way.
    pub fn new(name: String, joint: Joint, features: Option<Arc<dyn FeatureSource>>) -> Result<Self> {
        let Joint { text, clips, names } = joint;
        let this = Self { name, text, names, clips: clips.into(), unopened: None, features };
        this.clips()?;
        this.checked()
    }

    /// With a store that was made by it, or none.
    fn checked(self) -> Result<Self> {
        let Some(source) = &self.features else { return Ok(self) };
        let origin = source.origin(STREAM)?;
        let mine = self.clips()?.recipe();
        let same = |stored: &&cuemark_features::Recipe| {
            (&stored.extractor, &stored.weights, stored.width) == (&mine.extractor, &mine.weights, mine.width)
        };
        if origin.recipe.filter(same).is_none() {
            return Err(SearchError::Encoder {
                problem: format!("`{}` was not made by it", origin.path),
                encoder: self.name,
                advice: Advice::say("make the store with ")
                    .run("features extract")
                    .and(" and the same encoder and weights"),
            });
        }
        Ok(self)
    }

    /// The side of clips, opened where that was put off.
    fn clips(&self) -> Result<&dyn ClipEncoder> {
        let clips = match (self.clips.get(), &self.unopened) {
            (Some(open), _) => open,
            (None, Some((encoder, options))) => {
                let clips = joint_clips(encoder, self.text.as_ref(), &self.names, options)?;
                self.clips.get_or_init(|| clips)
            }
            (None, None) => return Err(self.unlike(0)),
        };
        if clips.width() == self.text.width() { Ok(clips.as_ref()) } else { Err(self.unlike(clips.width())) }
    }

    fn unlike(&self, clips: usize) -> SearchError {
        SearchError::Encoder {
            encoder: self.name.clone(),
            problem: format!("sentences have {} numbers and clips {clips}", self.text.width()),
            advice: "are both sides from one release of the model?".into(),
        }
    }

    fn stored(&self, id: &VideoId) -> Result<Option<(Features, ClipLen)>> {
        let Some(source) = &self.features else { return Ok(None) };
        if source.videos(STREAM).binary_search(&id).is_err() {
            return Ok(None);
        }
        let features = source.get(id, STREAM)?;
        let clip = source.clip_len(id, STREAM, features.rows())?;
        Ok(Some((features, clip)))
    }
}

/// The encoder that `name` begins with, and how to open it.
fn understood(name: &str, device: &Device) -> Result<(String, EncoderOptions)> {
    let (encoder, weights) = match name.split_once(':') {
        Some((encoder, path)) => {
            let path = Utf8Path::new(path);
            (encoder, Some(path.canonicalize_utf8().map_err(SearchError::io("find", path))?))
        }
        None => (name, None),
    };
    Ok((encoder.to_owned(), EncoderOptions { device: device.clone(), weights, ..EncoderOptions::default() }))
}

impl Encoder for JointEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn width(&self) -> usize {
        self.text.width()
    }

    fn sentences(&self, sentences: &[&str]) -> Result<Vec<Embedding>> {
        let unit = |(numbers, sentence): (Vec<f32>, &&str)| {
            Embedding::unit(numbers).ok_or_else(|| SearchError::Question {
                problem: format!("the encoder makes nothing of `{sentence}`"),
                advice: "say it in other words".into(),
            })
        };
        self.text.encode(sentences)?.into_iter().zip(sentences).map(unit).collect()
    }

    fn prepare(&self) -> Result<()> {
        self.clips().map(|_| ())
    }

    fn means(&self) -> Option<(String, usize)> {
        (self.name == Concepts::NAME).then(|| (self.text.name().to_owned(), self.text.width()))
    }

    fn meanings(&self, sentences: &[&str]) -> Result<Vec<Embedding>> {
        if self.means().is_none() { Ok(Vec::new()) } else { self.sentences(sentences) }
    }

    fn keeps(&self) -> Result<Vec<KeptFile>> {
        if self.names.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![KeptFile { name: NAMES_FILE.to_owned(), bytes: self.names.to_bytes() }])
    }

    fn video(&self, id: &VideoId, file: Option<&Utf8Path>, progress: &Progress) -> Result<EmbeddedVideo> {
        let (features, clip, duration, partial) = match (self.stored(id)?, file) {
            (Some((features, clip)), file) => {
                let duration = stated_duration(file, progress)?.unwrap_or(features.rows() as f64 * clip.seconds());
                (features, clip, duration, None)
            }
            (None, Some(file)) => {
                let clips = self.clips()?;
                let extracted = extract_video(&Ffmpeg::on_path(), file, clips, progress)?;
                let clip = clips.sampling().clip_len()?;
                (extracted.features, clip, extracted.decoded.duration(), extracted.decoded.partial())
            }
            (None, None) => {
                return Err(SearchError::Encoder {
                    encoder: self.name.clone(),
                    problem: format!("video `{id}` has no features in the store"),
                    advice: Advice::say("name the video's file, or in ")
                        .setting("features")
                        .and(" a store that has it"),
                });
            }
        };
        check_moments(count_moments(features.rows()), duration, &self.name, id)?;
        Ok(EmbeddedVideo { duration, moments: moments_of(&features, clip, duration), partial })
    }

    fn concepts(&self, query: &Embedding, moment: &Embedding) -> Vec<MatchedConcept> {
        let parts = self.names.take_apart(moment.numbers(), PARTS);
        let speaks =
            parts.iter().map(|part| f64::from(part.weight * crate::dot(part.vector, query.numbers())).max(0.0));
        let speaks: Vec<f64> = speaks.collect();
        let total: f64 = speaks.iter().sum();
        let named = parts.iter().zip(speaks).map(|(part, speaks)| (part.name, speaks / total.max(f64::MIN_POSITIVE)));
        let mut named: Vec<MatchedConcept> = named
            .filter(|(_, share)| *share >= LEAST_SHARE)
            .map(|(name, share)| MatchedConcept { concept: name.to_owned(), share })
            .collect();
        named.sort_by(|a, b| b.share.total_cmp(&a.share));
        named
    }

    /// A jumble of letters is no word; whatever can be spoken may be one, of any language.
    fn knows(&self, word: &str) -> bool {
        let letters = word.chars().filter(|letter| letter.is_alphabetic()).count();
        letters < JUMBLE || !word.is_ascii() || word.contains(['a', 'e', 'i', 'o', 'u', 'y'])
    }

    /// Measured for `concepts` alone: how scores fall beside a moment is another matter in every space.
    fn keeps_when_joined(&self) -> Option<f64> {
        (self.name == Concepts::NAME).then_some(KEEPS)
    }

    /// A cut for `concepts` alone: it was chosen for its own names.
    fn calibration(&self) -> Result<Option<Calibration>> {
        let cut = Calibration { cut: Some(CONCEPTS_CUT), without_common: true, ..Calibration::default() };
        Ok((self.name == Concepts::NAME).then_some(cut))
    }

    fn rises_per_doubling(&self) -> f64 {
        if self.name == Concepts::NAME { CONCEPTS_RISE } else { 0.0 }
    }

    fn names_nothing(&self) -> bool {
        self.names.is_empty()
    }

    fn nearest_name(&self, word: &Embedding) -> Option<NearestName> {
        let (name, cosine) = self.names.nearest(word.numbers())?;
        Some(NearestName { name: name.to_owned(), covers: cosine >= COVERS })
    }

    /// One moment for every name, as if nothing else were recognised in it: what there is to be seen in the world, as far as
    /// the names reach.
    fn background(&self) -> Option<Vec<Embedding>> {
        let all: Vec<Embedding> = self.names.vectors().filter_map(|vector| Embedding::unit(vector.to_vec())).collect();
        (!all.is_empty()).then_some(all)
    }
}
