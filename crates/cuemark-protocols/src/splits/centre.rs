//! Centre split (`centre`): the moments that come last in their videos are held out as test-ood.
//! "Towards a Complete Benchmark on Video Moment Localization" (MoLEF), 2024.
//!
//! The last 10 % by centre are test-ood, the rest is cut by video into train, val and test-iid, 7 : 1 : 1. By the mean
//! centre of each video, thresholds are 0.83 for Charades and 0.61 for YouCook2, as published; ActivityNet gives 0.586
//! where 0.55 was published.

use cuemark_core::Truth;
use serde::{Deserialize, Serialize};

use super::by_video::{ByVideo, Part, deal};
use super::{MadeSplits, Options, SplitFindings};
use crate::{ProtocolError, Result};

/// The share of videos, or of queries, that goes to test-ood.
const OOD_SHARE: f64 = 0.1;
/// The share of the rest's videos that val and test-iid each get.
const HELD_OUT: f64 = 1.0 / 9.0;

/// What `centre` can be told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CentreOptions {
    /// Whose centre decides. Default: video
    pub centre: Centre,
    /// Seed of the cut into train, val and test-iid. Default: 0
    pub seed: u64,
}

/// Whose centre decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Centre {
    /// The mean centre of a video's moments; no video is shared.
    #[default]
    Video,
    /// Each pair's own; test-ood shares videos with the rest.
    Pair,
}

/// What `centre` found on the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CentreFound {
    /// The smallest centre in test-ood, as a fraction of the video.
    pub threshold: f64,
    /// Videos, or queries, in test-ood: the unit that was ranked.
    pub held_out: usize,
    /// Queries left out because they have no moment.
    pub without_moments: usize,
}

/// Parts `truths`, all splits of a dataset together, into train, val, test-iid and test-ood.
///
/// Centres are those of the moments as they are, not clipped; a query with several moments counts their mean centre.
/// Equal centres are told apart by order: what came later is held out first.
///
/// # Errors
/// When a query is about no single video, a duration is not known, or there are too few videos to fill four splits.
pub fn centre(truths: &[Truth], options: &CentreOptions) -> Result<MadeSplits> {
    let data = ByVideo::of(truths)?;
    let mut centres: Vec<(f64, f64)> = vec![(0.0, 0.0); data.len()];
    let mut query_centres = Vec::with_capacity(data.moments.len());
    for (video, spans) in &data.moments {
        let sum: f64 = spans.iter().map(|span| span.centre()).sum();
        query_centres.push(sum / spans.len() as f64);
        centres[*video].0 += sum;
        centres[*video].1 += spans.len() as f64;
    }
    let ranked = match options.centre {
        Centre::Video => centres.into_iter().map(|(sum, moments)| sum / moments).collect(),
        Centre::Pair => query_centres,
    };
    let (last, threshold) = last_share(&ranked)?;
    let held_out = last.iter().filter(|is_last| **is_last).count();
    let is_ood = |query: usize, video: usize| match options.centre {
        Centre::Video => last[video],
        Centre::Pair => last[query],
    };
    let mut in_rest = vec![false; data.len()];
    for (query, (video, _)) in data.moments.iter().enumerate() {
        in_rest[*video] |= !is_ood(query, *video);
    }
    let rest = in_rest.iter().filter(|rest| **rest).count();
    let parts = deal(data.len(), |video| in_rest[video], (HELD_OUT * rest as f64) as usize, options.seed)?;
    let part =
        |name: &str, part: Part| data.split(name, |query, video| !is_ood(query, video) && parts[video] == Some(part));
    Ok(MadeSplits {
        protocol: "centre",
        version: 1,
        seed: options.seed,
        splits: vec![
            part("train", Part::Train),
            part("val", Part::Val),
            part("test-iid", Part::TestIid),
            data.split("test-ood", is_ood),
        ],
        options: Options::Centre(options.clone()),
        found: SplitFindings::Centre(CentreFound { threshold, held_out, without_moments: data.without_moments }),
    })
}

/// Which of `centres` belong to the last tenth, and the smallest of those.
fn last_share(centres: &[f64]) -> Result<(Vec<bool>, f64)> {
    let mut order: Vec<usize> = (0..centres.len()).collect();
    order.sort_by(|a, b| centres[*a].total_cmp(&centres[*b]));
    let held_out = (OOD_SHARE * centres.len() as f64).round() as usize;
    let tail = &order[centres.len() - held_out..];
    let Some(first) = tail.first() else {
        return Err(ProtocolError::TooFew { what: "test-ood", needed: 5, found: centres.len() });
    };
    let mut last = vec![false; centres.len()];
    tail.iter().for_each(|index| last[*index] = true);
    Ok((last, centres[*first]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splits::shared_videos;
    use crate::testing::truth;

    /// Two moments in each of `videos` videos of ten seconds, later in each next video.
    fn ladder(videos: usize) -> Vec<Truth> {
        let at = |video: usize, offset: f64| 10.0 * video as f64 / videos as f64 * 0.8 + offset;
        (0..videos)
            .flat_map(|v| {
                [0.0, 1.0].map(|offset| {
                    truth(
                        &format!("{v}-{offset}"),
                        "someone waits",
                        &format!("v{v}"),
                        10.0,
                        at(v, offset),
                        at(v, offset) + 0.5,
                    )
                })
            })
            .collect()
    }

    #[test]
    fn the_last_tenth_of_the_videos_is_held_out_and_none_is_shared() {
        let made = centre(&ladder(40), &CentreOptions::default()).unwrap();
        let ood: Vec<&str> = made.splits[3].videos.iter().map(|video| video.id.as_str()).collect();
        assert_eq!(ood, ["v36", "v37", "v38", "v39"]);
        let sizes: Vec<usize> = made.splits.iter().map(|split| split.videos.len()).collect();
        assert_eq!(sizes, [28, 4, 4, 4], "7 : 1 : 1 of the rest");
        assert!(shared_videos(&made.splits).iter().all(|pair| pair.videos == 0));
        // v36's moments lie at 7.2..7.7 and 8.2..8.7 of ten seconds.
        let SplitFindings::Centre(found) = made.found else { panic!() };
        assert!((found.threshold - 0.795).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn by_pair_a_video_may_stand_on_both_sides() {
        let made = centre(&ladder(40), &CentreOptions { centre: Centre::Pair, seed: 0 }).unwrap();
        let SplitFindings::Centre(found) = &made.found else { panic!() };
        assert_eq!((found.held_out, made.splits[3].queries.len()), (8, 8));
        let inside_rest: usize = shared_videos(&made.splits[..3]).iter().map(|pair| pair.videos).sum();
        assert_eq!(inside_rest, 0);
        assert!(shared_videos(&made.splits).iter().any(|pair| pair.videos > 0));
        assert_eq!(made.splits.iter().map(|split| split.queries.len()).sum::<usize>(), 80);
    }

    #[test]
    fn too_few_videos_are_refused() {
        assert!(matches!(centre(&ladder(4), &CentreOptions::default()), Err(ProtocolError::TooFew { .. })));
        assert!(matches!(centre(&[], &CentreOptions::default()), Err(ProtocolError::NoMoments { .. })));
    }
}
