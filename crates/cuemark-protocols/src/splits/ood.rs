//! Changing distribution (`cd`): moments in unusual places are held out as test-ood.
//! Yuan et al., "A Closer Look at Temporal Sentence Grounding in Videos: Dataset and Metric", 2021; Lan et al., 2022.
//!
//! All splits together get one density of where moments lie; the least dense pairs are marked; a video goes wholly to
//! the side that holds most of its pairs. What is left is cut by video into train, val and test-iid, the latter two with
//! 5 % of all videos each, as published. With the options `--ties ood --ood-cut preliminary` the merged Charades-CD files
//! give 0.866 of the published test-ood back, at precision 0.868; the rest of the authors' choices is not written down.

use cuemark_core::{NormSpan, Progress, Truth};
use serde::{Deserialize, Serialize};

use super::by_video::{ByVideo, Part, deal};
use super::{MadeSplits, Options, SplitFindings};
use crate::kde::Kde;
use crate::{ProtocolError, Result};

/// The share of all videos that val and test-iid each get.
const HELD_OUT: f64 = 0.05;

/// What `cd` can be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CdOptions {
    /// The share of all pairs that goes to test-ood. Default: 0.2
    pub ood_share: f64,
    /// What `ood_share` is a share of. Default: final
    pub ood_cut: OodCut,
    /// Where a video goes whose pairs are evenly marked and unmarked. Default: ood
    pub ties: Ties,
    /// A video with a moment longer than this share of it is never test-ood. Default: none
    pub max_ood_length: Option<f64>,
    /// Seed of the cut into train, val and test-iid. Default: 0
    pub seed: u64,
}

impl Default for CdOptions {
    fn default() -> Self {
        Self { ood_share: 0.2, ood_cut: OodCut::Final, ties: Ties::Ood, max_ood_length: None, seed: 0 }
    }
}

/// Which share of pairs is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum OodCut {
    // The number of marked pairs is searched for.
    /// The share that test-ood ends up with.
    #[default]
    Final,
    /// The share of pairs that is marked before whole videos move.
    Preliminary,
}

/// Where a video goes whose pairs are evenly marked and unmarked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Ties {
    /// To test-ood.
    #[default]
    Ood,
    /// To the rest.
    Iid,
}

/// What `cd` found on the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CdFound {
    /// Pairs of all splits together.
    pub pairs: usize,
    /// Pairs that were marked as least dense.
    pub marked: usize,
    /// The same as a share of all pairs: the preliminary cut.
    pub marked_share: f64,
    /// The density of the densest marked pair.
    pub density_threshold: f64,
    /// Pairs that test-ood ended up with.
    pub ood_pairs: usize,
    /// The same as a share of all pairs.
    pub ood_share: f64,
    /// Marked pairs that stayed out of test-ood because most of their video is not marked.
    pub marked_but_left: usize,
    /// Unmarked pairs that came into test-ood with the rest of their video.
    pub unmarked_but_taken: usize,
    /// Videos that could not be test-ood because of a long moment.
    pub long_videos: usize,
    /// Queries left out because they have no moment.
    pub without_moments: usize,
}

/// Parts `truths`, all splits of a dataset together, into train, val, test-iid and test-ood.
///
/// Densities are those of the moments as they are, not clipped. Pairs of equal density are marked in the order they come.
/// A video with a long moment stays on the training side, in whichever of train, val and test-iid it falls to, as in the
/// published ActivityNet-CD. `progress` counts the pairs whose density is known.
///
/// # Errors
/// When an option is out of range, a query is about no single video, a duration is not known, there are too few videos to
/// fill four splits, the moments' spread overflows, or it was stopped.
pub fn cd(truths: &[Truth], options: &CdOptions, progress: &Progress) -> Result<MadeSplits> {
    check_share("ood_share", options.ood_share)?;
    options.max_ood_length.map_or(Ok(()), |share| check_share("max_ood_length", share))?;
    let data = ByVideo::of(truths)?;
    let marks = Marks::new(&data, options, progress)?;
    let wanted = (options.ood_share * marks.video_of_pair.len() as f64).round() as usize;
    let marked = match options.ood_cut {
        OodCut::Preliminary => wanted.min(marks.ranked.len()),
        OodCut::Final => marks.cut_for(wanted),
    };
    let is_ood = marks.ood_videos(marked);
    let found = marks.describe(marked, &is_ood, data.without_moments);
    if found.ood_pairs == 0 {
        return Err(ProtocolError::TooFew { what: "test-ood", needed: 1, found: 0 });
    }
    let held_out = (HELD_OUT * data.len() as f64) as usize;
    let parts = deal(data.len(), |video| !is_ood[video], held_out, options.seed)?;
    let part = |name: &str, part: Part| data.split(name, |_, video| parts[video] == Some(part));
    Ok(MadeSplits {
        protocol: "cd",
        version: 1,
        seed: options.seed,
        splits: vec![
            part("train", Part::Train),
            part("val", Part::Val),
            part("test-iid", Part::TestIid),
            data.split("test-ood", |_, video| is_ood[video]),
        ],
        options: Options::Cd(options.clone()),
        found: SplitFindings::Cd(found),
    })
}

/// A share strictly between 0 and 1.
pub(super) fn check_share(option: &'static str, share: f64) -> Result<()> {
    if share > 0.0 && share < 1.0 {
        return Ok(());
    }
    Err(ProtocolError::Option { option, value: share.to_string(), problem: "is not between 0 and 1".to_owned() })
}

/// Pairs that can be marked, and the videos they would take with them.
struct Marks {
    video_of_pair: Vec<usize>,
    density: Vec<f64>,
    pairs_of_video: Vec<usize>,
    long_video: Vec<bool>,
    /// Pairs of videos that may be test-ood, least dense first.
    ranked: Vec<usize>,
    ties: Ties,
}

impl Marks {
    fn new(data: &ByVideo<'_>, options: &CdOptions, progress: &Progress) -> Result<Self> {
        let mut pairs: Vec<(usize, NormSpan)> = Vec::with_capacity(data.pairs());
        for (video, spans) in &data.moments {
            pairs.extend(spans.iter().map(|span| (*video, *span)));
        }
        let spans: Vec<NormSpan> = pairs.iter().map(|(_, span)| *span).collect();
        let density = Kde::fit(&spans)?.density(&spans, progress)?;
        let longest = options.max_ood_length.unwrap_or(f64::INFINITY);
        let (mut pairs_of_video, mut long_video) = (vec![0; data.len()], vec![false; data.len()]);
        for (video, span) in &pairs {
            pairs_of_video[*video] += 1;
            long_video[*video] |= span.len() > longest;
        }
        let mut ranked: Vec<usize> = (0..pairs.len()).filter(|pair| !long_video[pairs[*pair].0]).collect();
        ranked.sort_by(|a, b| density[*a].total_cmp(&density[*b]));
        let video_of_pair = pairs.into_iter().map(|(video, _)| video).collect();
        Ok(Self { video_of_pair, density, pairs_of_video, long_video, ranked, ties: options.ties })
    }

    /// Marked pairs of each video when the `marked` least dense ones are.
    fn marked_of_video(&self, marked: usize) -> Vec<usize> {
        let mut count = vec![0; self.pairs_of_video.len()];
        for pair in &self.ranked[..marked] {
            count[self.video_of_pair[*pair]] += 1;
        }
        count
    }

    /// The videos that go to test-ood when the `marked` least dense pairs are marked.
    fn ood_videos(&self, marked: usize) -> Vec<bool> {
        let goes = |(marked, all): (usize, &usize)| match self.ties {
            Ties::Ood => 2 * marked >= *all,
            Ties::Iid => 2 * marked > *all,
        };
        self.marked_of_video(marked).into_iter().zip(&self.pairs_of_video).map(goes).collect()
    }

    fn ood_pairs(&self, marked: usize) -> usize {
        let is_ood = self.ood_videos(marked);
        self.pairs_of_video.iter().zip(is_ood).filter(|(_, ood)| *ood).map(|(pairs, _)| pairs).sum()
    }

    /// How many pairs to mark so that test-ood ends up with as nearly `wanted` as it can; the smaller of two.
    fn cut_for(&self, wanted: usize) -> usize {
        // More marks never send a video back, so the size of test-ood only grows with them.
        let (mut low, mut high) = (0, self.ranked.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.ood_pairs(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        let off = |marked: usize| self.ood_pairs(marked).abs_diff(wanted);
        if low > 0 && off(low - 1) <= off(low) { low - 1 } else { low }
    }

    fn describe(&self, marked: usize, is_ood: &[bool], without_moments: usize) -> CdFound {
        let pairs = self.video_of_pair.len();
        let ood_pairs = self.ood_pairs(marked);
        let taken = self.ranked[..marked].iter().filter(|pair| is_ood[self.video_of_pair[**pair]]).count();
        CdFound {
            pairs,
            marked,
            marked_share: marked as f64 / pairs as f64,
            density_threshold: self.ranked[..marked].last().map_or(0.0, |pair| self.density[*pair]),
            ood_pairs,
            ood_share: ood_pairs as f64 / pairs as f64,
            marked_but_left: marked - taken,
            unmarked_but_taken: ood_pairs - taken,
            long_videos: self.long_video.iter().filter(|long| **long).count(),
            without_moments,
        }
    }
}

#[cfg(test)]
mod tests;
