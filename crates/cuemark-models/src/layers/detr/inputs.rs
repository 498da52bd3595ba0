//! Clips and words as these networks read them.

use candle_core::{Device, Tensor};
use cuemark_tensor::DType;

use super::super::see_only;
use super::encoder::Padded;
use super::head::{Rounding, rank_set};
use crate::losses::SetLayer;
use crate::{Batch, BatchAnswers, ModelError, Result};

/// Clips with their place in the video, words, and how many of either are real.
#[derive(Debug, Clone)]
pub struct JointInputs {
    /// `[batch, clips, width]`: features, two columns of place, audio features where there are any.
    pub video: Tensor,
    /// `[batch, clips]`, 1 where a clip is real.
    pub video_mask: Tensor,
    /// Real clips of each.
    pub clips: Vec<usize>,
    /// `[texts, words, width]`: one for every pair, and in part of a batch the one that follows.
    pub text: Tensor,
    /// `[texts, words]`, 1 where a word is real.
    pub text_mask: Tensor,
    /// Real words of each.
    pub words: Vec<usize>,
}

impl JointInputs {
    /// The pairs of a batch; words after the first `limit` are cut off. `audio` is the width of the audio features that the
    /// network was built for, 0 for none.
    ///
    /// # Errors
    /// When videos and queries are no pairs, a query has no word, or there are no audio features of that width.
    pub fn of(model: &'static str, batch: &Batch, limit: usize, audio: usize) -> Result<Self> {
        let (videos, queries) = (&batch.videos, &batch.queries);
        // Part of a batch may have one query more, the one after its last.
        if ![0, 1].contains(&queries.lengths.len().wrapping_sub(videos.lengths.len())) {
            return Err(ModelError::Missing { model, what: "one video for every query" });
        }
        if let Some(row) = queries.lengths.iter().position(|words| *words == 0) {
            return Err(ModelError::Row { query: queries.ids[row].to_string(), problem: "has no word".to_owned() });
        }
        let steps = videos.visual.dim(1)?;
        let mut parts = vec![videos.visual.clone(), tef(&videos.lengths, steps, videos.visual.device())?];
        if audio > 0 {
            let Some(sound) = videos.audio.as_ref().filter(|sound| sound.dims().last() == Some(&audio)) else {
                return Err(ModelError::Missing { model, what: "the audio features that it was built for" });
            };
            parts.push(sound.clone());
        }
        let words = queries.words.dim(1)?.min(limit);
        Ok(Self {
            video: Tensor::cat(&parts, 2)?,
            video_mask: videos.mask.to_dtype(DType::F32)?,
            clips: videos.lengths.clone(),
            text: queries.words.narrow(1, 0, words)?.contiguous()?,
            text_mask: queries.mask.narrow(1, 0, words)?.to_dtype(DType::F32)?.contiguous()?,
            words: queries.lengths.iter().map(|length| (*length).min(words)).collect(),
        })
    }

    /// Pairs.
    pub fn len(&self) -> usize {
        self.clips.len()
    }

    /// The device that all of it lies on.
    pub fn device(&self) -> &Device {
        self.video.device()
    }

    /// Clips, padding included.
    pub fn steps(&self) -> usize {
        self.video.dims().get(1).copied().unwrap_or_default()
    }

    /// The clips as padded sequences.
    pub fn padded_clips(&self) -> Padded<'_> {
        Padded { lengths: &self.clips, steps: self.steps() }
    }

    /// The words as padded sequences.
    pub fn padded_words(&self) -> Padded<'_> {
        Padded { lengths: &self.words, steps: self.text.dims().get(1).copied().unwrap_or_default() }
    }

    /// What hides padded clips from whoever looks at them, `before` steps that are always seen standing first.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn clip_bias(&self, before: usize) -> Result<Tensor> {
        if before == 0 {
            // A tensor without numbers cannot be made on a GPU.
            return Ok(see_only(&self.video_mask)?);
        }
        let seen = Tensor::ones((self.len(), before), DType::F32, self.device())?;
        Ok(see_only(&Tensor::cat(&[&seen, &self.video_mask], 1)?)?)
    }

    /// What hides padded clips and words from whoever looks at clips followed by words.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn both_bias(&self) -> Result<Tensor> {
        Ok(see_only(&Tensor::cat(&[&self.video_mask, &self.text_mask], 1)?)?)
    }

    /// The scores of the real clips of each, `[batch, clips]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn real_clips(&self, scores: &Tensor) -> Result<Vec<Vec<f32>>> {
        let mut rows = scores.to_vec2::<f32>()?;
        rows.iter_mut().zip(&self.clips).for_each(|(row, clips)| row.truncate(*clips));
        Ok(rows)
    }

    /// What the last decoder layer says: its spans, the surest first, and the scores of the real clips. Nothing where there is no
    /// layer.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn answers(&self, layers: &[SetLayer], saliency: &Tensor, rounding: Rounding) -> Result<BatchAnswers> {
        let Some(last) = layers.last() else { return Ok(BatchAnswers::none(self.len())) };
        let proposals = rank_set(last, &self.clips, rounding)?;
        Ok(BatchAnswers { proposals, saliency: Some(self.real_clips(saliency)?) })
    }

    /// Other numbers of words, in as many slots.
    pub fn words_of<'a>(&self, lengths: &'a [usize]) -> Padded<'a> {
        Padded { lengths, steps: self.padded_words().steps }
    }

    /// Where every sample's own text stands.
    pub fn own_text(&self) -> Vec<usize> {
        (0..self.len()).collect()
    }

    /// Where the text of the next sample stands; the last one's is the first, or the one that follows part of a batch.
    pub fn next_text(&self) -> Vec<usize> {
        (0..self.len()).map(|row| (row + 1) % self.words.len().max(1)).collect()
    }
}

/// Where every clip begins and ends, as fractions of its own video, 0 after its end (temporal endpoint features):
/// `[videos, steps, 2]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn tef(lengths: &[usize], steps: usize, device: &Device) -> Result<Tensor> {
    let place = |length: usize, step: usize| {
        let (start, share) = (step as f32 / length as f32, 1.0 / length as f32);
        if step < length { [start, start + share] } else { [0.0, 0.0] }
    };
    let places = lengths.iter().flat_map(|length| (0..steps).flat_map(move |step| place(*length, step)));
    Ok(Tensor::from_vec(places.collect::<Vec<_>>(), (lengths.len(), steps, 2), device)?)
}
