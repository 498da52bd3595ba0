//! Moments of every length out of rows per clip.

use cuemark_core::{ClipLen, ClipRange, Span, VideoId};
use cuemark_features::Features;

use crate::{Embedding, IndexedMoment, Result, SearchError};

/// Windows of one length begin a quarter of it apart.
const STEPS: usize = 4;

/// The moments of a video at every scale, in the order of their starts, then ends: means of the clips they cover.
///
/// Lengths are 1, 2, 3, 4, 6, 8, 12, 16 … clips and the whole video; windows of one length begin a quarter of it apart, and
/// the last ends with the video. That is some seven moments per clip. Rows are averaged as they are, so what a row is sure of
/// counts more than what it is not. A moment whose rows cancel out is left out.
pub(super) fn moments_of(features: &Features, clip: ClipLen, duration: f64) -> Vec<IndexedMoment> {
    let (clips, width) = (features.rows(), features.width());
    // Sums from the first clip on: any window's mean is a difference of two.
    let mut sums = vec![vec![0f64; width]];
    for row in (0..clips).filter_map(|row| features.row(row)) {
        let next = sums.last().map(|sum| sum.iter().zip(row).map(|(sum, value)| sum + f64::from(*value)).collect());
        sums.extend(next);
    }
    let mut moments = Vec::new();
    for (start, end) in windows(clips) {
        let (Some(before), Some(after)) = (sums.get(start), sums.get(end)) else { continue };
        let mean = before.iter().zip(after).map(|(before, after)| ((after - before) / (end - start) as f64) as f32);
        let Some(range) = ClipRange::new(start, end) else { continue };
        let span: Span = range.to_span(clip).clip_to(duration);
        // The last clip may stand for less than a clip, so a moment there may have nothing left.
        let Some(embedding) = Embedding::unit(mean.collect()).filter(|_| !span.is_empty()) else { continue };
        moments.push(IndexedMoment { span, embedding });
    }
    moments
}

/// The most moments of one video: ten hours at a clip a second.
const MOST: usize = 250_000;
/// The most moments per second of video: clips of a tenth of a second make 70.
const PER_SECOND: f64 = 100.0;

/// Refuses a video of which there would be more moments than anybody looks for.
///
/// # Errors
/// When there are more than 250,000, or more than 100 a second.
pub(super) fn check_moments(moments: usize, duration: f64, encoder: &str, video: &VideoId) -> Result<()> {
    // A short film may have a few more: every scale begins with one moment.
    let most = MOST.min(1_000 + (PER_SECOND * duration.max(0.0)) as usize);
    if moments <= most {
        return Ok(());
    }
    Err(SearchError::Encoder {
        encoder: encoder.to_owned(),
        problem: format!("makes {moments} moments of `{video}`, which lasts {duration:.1} s: {most} are the most"),
        advice: "cut the film into parts, or use features of longer clips".into(),
    })
}

/// How many moments [`moments_of`] makes of so many clips, at most.
pub(super) fn count_moments(clips: usize) -> usize {
    let lengths = std::iter::successors(Some((1usize, 2)), |(length, next)| {
        Some((*next, if *length == 1 { 3 } else { 2 * length }))
    });
    let of_length = |length: usize| (clips - length) / (length / STEPS).max(1) + 2;
    lengths.map(|(length, _)| length).take_while(|length| *length < clips).map(of_length).sum::<usize>() + 1
}

/// First clip and the one after the last of every window, sorted.
fn windows(clips: usize) -> Vec<(usize, usize)> {
    let lengths =
        std::iter::successors(Some((1, 2)), |(length, next)| Some((*next, if *length == 1 { 3 } else { 2 * length })));
    let mut windows: Vec<(usize, usize)> = Vec::new();
    for length in lengths.map(|(length, _)| length).take_while(|length| *length < clips) {
        let step = (length / STEPS).max(1);
        windows.extend((0..=clips - length).step_by(step).map(|start| (start, start + length)));
        windows.push((clips - length, clips));
    }
    windows.push((0, clips));
    windows.sort_unstable();
    windows.dedup();
    windows.retain(|(start, end)| start < end);
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_every_length_cover_the_video_once_each() {
        assert!(windows(0).is_empty());
        assert_eq!(windows(1), [(0, 1)]);
        assert_eq!(windows(3), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
        let many = windows(1000);
        let mut lengths: Vec<usize> = many.iter().map(|(start, end)| end - start).collect();
        lengths.sort_unstable();
        lengths.dedup();
        assert_eq!(lengths, [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1000]);
        assert!(many.len() < 7500, "{}", many.len());
        assert!((many.len()..many.len() + 40).contains(&count_moments(1000)), "{}", count_moments(1000));
        for length in lengths {
            assert!(many.contains(&(1000 - length, 1000)), "nothing of {length} clips reaches the end");
        }
    }

    #[test]
    fn every_stretch_of_a_film_has_a_moment_that_mostly_is_it() {
        let windows = windows(60);
        for start in 0..60 {
            for end in start + 1..=60 {
                let iou = |(a, b): &(usize, usize)| {
                    let both = (*b).min(end).saturating_sub((*a).max(start)) as f64;
                    both / ((b - a) + (end - start)) as f64 / (1.0 - both / ((b - a) + (end - start)) as f64)
                };
                let best = windows.iter().map(iou).fold(0.0, f64::max);
                assert!(best >= 0.7, "{start} – {end}: {best}");
            }
        }
    }

    #[test]
    fn a_film_has_so_many_moments_and_no_more() {
        let check = |clips, seconds| check_moments(count_moments(clips), seconds, "x", &VideoId::new("film"));
        assert!(check(10 * 3600 / 2, 10.0 * 3600.0).is_ok());
        assert!(check(86_400, 86_400.0).is_err(), "too many");
        let refused = check(10_000, 10.0).unwrap_err().to_string();
        assert!(refused.contains("2000 are the most"), "{refused}");
    }

    #[test]
    fn a_moment_is_the_mean_of_its_clips_and_ends_with_the_video() {
        let features = Features::new(3, 2, vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0]).unwrap();
        let moments = moments_of(&features, ClipLen::new(2.0).unwrap(), 5.0);
        let at = |start: f64, end: f64| {
            let same = |moment: &&IndexedMoment| (moment.span.start(), moment.span.end()) == (start, end);
            moments.iter().find(same).map(|moment| moment.embedding.numbers().to_vec())
        };
        assert_eq!(at(0.0, 2.0).unwrap(), [1.0, 0.0]);
        let diagonal = at(0.0, 4.0).unwrap();
        assert!((diagonal[0] - diagonal[1]).abs() < 1e-6 && (diagonal[0] - 0.5f32.sqrt()).abs() < 1e-6);
        assert_eq!(at(2.0, 5.0).unwrap(), [0.0, 1.0], "the last clip has one second");
        assert_eq!(at(4.0, 5.0), None, "a row of zeros has no direction");
    }
}
