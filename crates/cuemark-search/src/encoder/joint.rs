//! Encoders of pictures and sentences whose space was there before the collection: nothing is trained.

use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::{Advice, ClipLen, Progress, VideoId};
use cuemark_encoders::extract::extract_video;
use cuemark_encoders::visual::EncoderOptions;
use cuemark_encoders::{Concepts, JOINT, Joint, joint};
use cuemark_features::{FeatureSource, Features, OpenOptions};
use cuemark_media::Ffmpeg;
use cuemark_tensor::Device;

use super::scales::{check_moments, count_moments, moments_of};
use super::stored::stated_duration;
use super::{EmbeddedVideo, Encoder};
use crate::answer::MatchedConcept;
use crate::{Calibration, Embedding, Result, SearchError};

/// The stream that `cuemark features extract` writes.
const STREAM: &str = "visual";
/// Names that a moment is taken apart into.
const PARTS: usize = 12;
/// A concept that does less than this share for an answer is not named.
const LEAST_SHARE: f64 = 0.05;

/// A word of so many letters without a vowel is a jumble.
const JUMBLE: usize = 4;
/// A longer window must keep this share of a shorter one's height above chance to be taken in its place.
const KEEPS: f64 = 0.85;
/// For `concepts`: below this share of what the question's best name scores, nothing is good enough. Six in seven of 39 questions
/// on 36 films lie above it, half of 50 plausible ones that nothing answers below. The curve itself is still the guess.
const CONCEPTS_CUT: f64 = 0.535;

/// Two published encoders of one space: `concepts` or `clip`. A moment is the mean of its clips.
pub struct JointEncoder {
    name: String,
    joint: Joint,
    clip: ClipLen,
    features: Option<Arc<dyn FeatureSource>>,
}

impl JointEncoder {
    /// Whether `name` is one: `concepts`, `clip`, or `clip:PATH` with the folder of its weights.
    pub fn is_one(name: &str) -> bool {
        JOINT.contains(&name) || name.split_once(':').is_some_and(|(encoder, _)| JOINT.contains(&encoder))
    }

    /// Opens one by name. `features` is a store that `cuemark features extract` made with the same encoder; what is in it is
    /// not computed again.
    ///
    /// # Errors
    /// When weights are not on this machine or damaged, or the store was made in another way.
    pub fn open(name: &str, features: Option<&Utf8Path>, device: &Device) -> Result<Self> {
        let (encoder, weights) = match name.split_once(':') {
            Some((encoder, path)) => {
                let path = Utf8Path::new(path);
                (encoder, Some(path.canonicalize_utf8().map_err(SearchError::io("find", path))?))
            }
            None => (name, None),
        };
        let name = weights.as_ref().map_or_else(|| encoder.to_owned(), |path| format!("{encoder}:{path}"));
        let options = EncoderOptions { device: device.clone(), weights, ..EncoderOptions::default() };
        let features = match features {
            Some(store) => Some(cuemark_features::open(store, &OpenOptions::default())?),
            None => None,
        };
        Self::new(name, joint(encoder, &options)?, features)
    }

    /// Two encoders of one's own, called `name` in the manifest.
    ///
    /// # Errors
    /// When their vectors differ in width, or the store was made in another way.
    pub fn new(name: String, joint: Joint, features: Option<Arc<dyn FeatureSource>>) -> Result<Self> {
        let (text, clips) = (joint.text.width(), joint.clips.width());
        if text != clips {
            return Err(SearchError::Encoder {
                encoder: name,
                problem: format!("sentences have {text} numbers and clips {clips}"),
                advice: "are both sides from one release of the model?".into(),
            });
        }
        if let Some(source) = &features {
            let origin = source.origin(STREAM)?;
            let mine = joint.clips.recipe();
            let same = |stored: &&cuemark_features::Recipe| {
                (&stored.extractor, &stored.weights, stored.width) == (&mine.extractor, &mine.weights, mine.width)
            };
            if origin.recipe.filter(same).is_none() {
                return Err(SearchError::Encoder {
                    problem: format!("`{}` was not made by it", origin.path),
                    encoder: name,
                    advice: Advice::say("make the store with ")
                        .run("features extract")
                        .and(" and the same encoder and weights"),
                });
            }
        }
        let clip = joint.clips.sampling().clip_len()?;
        Ok(Self { name, joint, clip, features })
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

impl Encoder for JointEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn width(&self) -> usize {
        self.joint.text.width()
    }

    fn sentences(&self, sentences: &[&str]) -> Result<Vec<Embedding>> {
        let unit = |(numbers, sentence): (Vec<f32>, &&str)| {
            Embedding::unit(numbers).ok_or_else(|| SearchError::Question {
                problem: format!("the encoder makes nothing of `{sentence}`"),
                advice: "say it in other words".into(),
            })
        };
        self.joint.text.encode(sentences)?.into_iter().zip(sentences).map(unit).collect()
    }

    fn video(&self, id: &VideoId, file: Option<&Utf8Path>, progress: &Progress) -> Result<EmbeddedVideo> {
        let (features, clip, duration, partial) = match (self.stored(id)?, file) {
            (Some((features, clip)), file) => {
                let duration = stated_duration(file, progress)?.unwrap_or(features.rows() as f64 * clip.seconds());
                (features, clip, duration, None)
            }
            (None, Some(file)) => {
                let extracted = extract_video(&Ffmpeg::on_path(), file, self.joint.clips.as_ref(), progress)?;
                (extracted.features, self.clip, extracted.decoded.duration(), extracted.decoded.partial())
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
        let parts = self.joint.names.take_apart(moment.numbers(), PARTS);
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
        let cut = Calibration { cut: Some(CONCEPTS_CUT), ..Calibration::default() };
        Ok((self.name == Concepts::NAME).then_some(cut))
    }

    /// One moment for every name, as if nothing else were recognised in it: what there is to be seen in the world, as far as
    /// the names reach.
    fn background(&self) -> Option<Vec<Embedding>> {
        let all: Vec<Embedding> =
            self.joint.names.vectors().filter_map(|vector| Embedding::unit(vector.to_vec())).collect();
        (!all.is_empty()).then_some(all)
    }
}
