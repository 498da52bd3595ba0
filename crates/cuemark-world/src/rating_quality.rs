//! How far the raters of a world are from what its clips show, and from each other.

use camino::Utf8Path;
use cuemark_core::{QueryId, VideoId};
use cuemark_formats::json::decode_line;
use cuemark_formats::{Source, world_folder};
use serde::{Deserialize, Serialize};

use crate::{Result, SPLITS, WorldLog, raters};

/// How good clip ratings are, against the log.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RatingQuality {
    /// Clips that were rated.
    pub clips: usize,
    /// Mean distance of a rating from what a rater who is never wrong would say, in grades.
    pub off: f64,
    /// Mean distance of two raters of a clip, in grades.
    pub apart: f64,
}

/// What the audit reads of a line of `highlights/SPLIT.jsonl`.
#[derive(Deserialize)]
struct RatedLine {
    qid: QueryId,
    vid: VideoId,
    relevant_clip_ids: Vec<usize>,
    saliency_scores: Vec<Vec<u8>>,
}

/// Compares every rating of the world in folder `world` with its log; ratings of clips that show nothing are faults, in words.
/// `None` for a world without ratings.
///
/// # Errors
/// When a file cannot be read or is about unknown queries.
pub(crate) fn rating_quality(world: &Utf8Path, log: &WorldLog) -> Result<(Option<RatingQuality>, Vec<String>)> {
    let (mut quality, mut faults) = (RatingQuality::default(), Vec::new());
    let (mut ratings, mut pairs) = (0usize, 0usize);
    for split in SPLITS {
        let path = world_folder::ratings(world, split);
        if !path.is_file() {
            return Ok((None, faults));
        }
        let source = Source::new(path);
        let mut lines: Vec<RatedLine> = Vec::new();
        source.for_each_line(|line, text| {
            lines.push(decode_line(&source, line, text)?);
            Ok(())
        })?;
        for line in lines {
            let shown = raters::visible(log.meaning(&line.qid)?, log.film(&line.qid, &line.vid)?);
            let expected: Vec<usize> = (0..shown.len()).filter(|clip| shown[*clip] > 0.0).collect();
            if line.relevant_clip_ids != expected || line.saliency_scores.len() != expected.len() {
                faults.push(format!("query `{}` has ratings of other clips than those that show its event", line.qid));
                continue;
            }
            for (clip, grades) in expected.iter().zip(&line.saliency_scores) {
                let right = raters::grade(shown[*clip], 0.0);
                quality.clips += 1;
                ratings += grades.len();
                quality.off += grades.iter().map(|grade| f64::from(grade.abs_diff(right))).sum::<f64>();
                for (n, one) in grades.iter().enumerate() {
                    let others = &grades[n + 1..];
                    pairs += others.len();
                    quality.apart += others.iter().map(|other| f64::from(one.abs_diff(*other))).sum::<f64>();
                }
            }
        }
    }
    quality.off /= ratings.max(1) as f64;
    quality.apart /= pairs.max(1) as f64;
    Ok((Some(quality), faults))
}
