//! Two sources clip by clip: do two extractors see the same?

use std::collections::HashSet;

use cuemark_core::{Progress, VideoId};
use rayon::prelude::*;
use serde::Serialize;

use crate::{FeatureError, FeatureSource, Features, Result};

/// One stream of two sources, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The stream.
    pub stream: String,
    /// Clips that were compared.
    pub clips: usize,
    /// Mean cosine over those clips; `None` when there were none.
    pub mean: Option<f64>,
    /// The least cosine; `None` when there were none.
    pub min: Option<f64>,
    /// Clips that are zero in both sources, and left out: they have no direction.
    pub zero_in_both: usize,
    /// Clips that only one of the sources has, because its video has more rows, and that are left out.
    pub beyond: usize,
    /// Videos that only the first source has.
    pub only_first: usize,
    /// Videos that only the second source has.
    pub only_second: usize,
    /// Every video that both have, sorted by name.
    pub videos: Vec<VideoComparison>,
}

/// One video of two sources, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VideoComparison {
    /// The video.
    pub video: VideoId,
    /// Its rows in the first and in the second source.
    pub rows: [usize; 2],
    /// Clips that were compared.
    pub clips: usize,
    /// Mean cosine; `None` when no clip could be compared.
    pub mean: Option<f64>,
    /// The least cosine.
    pub min: Option<f64>,
    /// The clip that has it, by index.
    pub min_clip: Option<usize>,
    /// Clips that are zero in both.
    pub zero_in_both: usize,
}

/// Compares `stream` of two sources, row `i` with row `i`. A clip that is zero in one source only has cosine 0. `progress`
/// counts videos.
///
/// # Errors
/// When a source lacks the stream, a video cannot be read or has numbers that are not finite, widths differ, or it was
/// stopped.
pub fn compare(
    first: &dyn FeatureSource,
    second: &dyn FeatureSource,
    stream: &str,
    progress: &Progress,
) -> Result<Comparison> {
    first.origin(stream)?;
    second.origin(stream)?;
    let (left, right) = (first.videos(stream), second.videos(stream));
    let there: HashSet<&VideoId> = right.iter().copied().collect();
    let both: Vec<&VideoId> = left.iter().copied().filter(|video| there.contains(video)).collect();
    progress.announce(both.len());
    let videos = both
        .par_iter()
        .map(|video| {
            let compared = compare_video(video, &first.get(video, stream)?, &second.get(video, stream)?);
            progress.advance(1)?;
            compared
        })
        .collect::<Result<Vec<VideoComparison>>>()?;
    let clips = videos.iter().map(|video| video.clips).sum();
    let sum: f64 = videos.iter().filter_map(|video| Some(video.mean? * video.clips as f64)).sum();
    Ok(Comparison {
        stream: stream.to_owned(),
        clips,
        mean: (clips > 0).then(|| sum / clips as f64),
        min: videos.iter().filter_map(|video| video.min).min_by(f64::total_cmp),
        zero_in_both: videos.iter().map(|video| video.zero_in_both).sum(),
        beyond: videos.iter().map(|VideoComparison { rows: [a, b], .. }| a.abs_diff(*b)).sum(),
        only_first: left.len() - both.len(),
        only_second: right.len() - both.len(),
        videos,
    })
}

fn compare_video(video: &VideoId, first: &Features, second: &Features) -> Result<VideoComparison> {
    if first.width() != second.width() {
        let problem = format!("{} numbers a row in one source, {} in the other", first.width(), second.width());
        return Err(FeatureError::Unfit { video: video.clone(), problem });
    }
    let shared = first.rows().min(second.rows());
    let rows = (0..shared).filter_map(|clip| Some((clip, cosine(first.row(clip)?, second.row(clip)?))));
    let found: Vec<(usize, f64)> = rows.filter_map(|(clip, cosine)| Some((clip, cosine?))).collect();
    let least = found.iter().copied().min_by(|(_, a), (_, b)| a.total_cmp(b));
    let sum: f64 = found.iter().map(|(_, cosine)| cosine).sum();
    Ok(VideoComparison {
        video: video.clone(),
        rows: [first.rows(), second.rows()],
        clips: found.len(),
        mean: (!found.is_empty()).then(|| sum / found.len() as f64),
        min: least.map(|(_, cosine)| cosine),
        min_clip: least.map(|(clip, _)| clip),
        zero_in_both: shared - found.len(),
    })
}

/// `None` when both are zero, 0 when one is.
fn cosine(a: &[f32], b: &[f32]) -> Option<f64> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let (aa, bb) = (dot(a, a), dot(b, b));
    match (aa > 0.0, bb > 0.0) {
        (false, false) => None,
        (true, true) => Some((dot(a, b) / (aa * bb).sqrt()).clamp(-1.0, 1.0)),
        _ => Some(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_are_those_of_the_angle() {
        assert_eq!(cosine(&[1.0, 0.0], &[2.0, 0.0]), Some(1.0));
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 3.0]), Some(0.0));
        assert_eq!(cosine(&[3.0, 4.0], &[-6.0, -8.0]), Some(-1.0));
        assert_eq!(cosine(&[0.0, 0.0], &[1.0, 0.0]), Some(0.0));
        assert_eq!(cosine(&[0.0, 0.0], &[0.0, 0.0]), None);
    }

    #[test]
    fn a_video_tells_its_worst_clip_and_leaves_out_what_has_no_direction() {
        let features = |data: Vec<f32>| Features::new(data.len() / 2, 2, data).unwrap();
        let first = features(vec![1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 9.0, 9.0]);
        let second = features(vec![1.0, 0.0, 0.0, 0.0, 1.0, -1.0]);
        let found = compare_video(&"v".into(), &first, &second).unwrap();
        assert_eq!((found.rows, found.clips, found.zero_in_both), ([4, 3], 2, 1));
        assert_eq!((found.min, found.min_clip, found.mean), (Some(0.0), Some(2), Some(0.5)));
        assert!(compare_video(&"v".into(), &first, &Features::new(1, 3, vec![0.0; 3]).unwrap()).is_err());
    }
}
