//! The table that benchmark papers print about their datasets.

use cuemark_core::{Split, VideoId};
use indexmap::{IndexMap, IndexSet};
use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashSet};
use serde::Serialize;

use crate::Dataset;

/// Figures of a dataset, per split and over all of them.
#[derive(Debug, Clone, Serialize)]
pub struct Stats {
    /// The dataset's name.
    pub dataset: String,
    /// One row per split that is there.
    pub splits: Vec<SplitStats>,
    /// All splits together, each video and each distinct moment counted once; splits that give the queries of another
    /// one again are left out.
    pub overall: SplitStats,
}

/// Figures of one split. Means of nothing are 0; what no file states is `None`.
#[derive(Debug, Clone, Serialize)]
pub struct SplitStats {
    /// The split's name.
    pub split: String,
    /// Distinct videos.
    pub videos: usize,
    /// Distinct moments: a video with a start and an end. Moments graded 0 count too.
    pub moments: usize,
    /// Queries.
    pub queries: usize,
    /// Query-moment pairs.
    pub pairs: usize,
    /// Distinct moments per video.
    pub annotations_per_video: f64,
    /// Distinct words: lower case, cut at white space, punctuation at either end taken off.
    pub vocabulary: usize,
    /// Distinct verbs, as the caller's tagger names them.
    pub verbs: usize,
    /// Hours of video, of the videos whose duration is known.
    pub video_hours: f64,
    /// Hours of distinct moments; overlapping ones count each for itself.
    pub moment_hours: f64,
    /// Mean over pairs of the moment's length divided by its video's duration, where that is known.
    pub moment_to_video: Option<f64>,
    /// Mean number of moments that answer a query at all.
    pub relevant_moments_per_query: f64,
    /// Duration of a video, in seconds; every video with a known duration counts once.
    pub video_seconds: Option<Range>,
    /// Length of a moment, in seconds; every pair counts once.
    pub moment_seconds: Option<Range>,
    /// Length of a query, in words cut at white space.
    pub query_words: Option<Range>,
}

/// Mean, least and greatest of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// Their mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Range {
    /// Of `values`; `None` of nothing.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (mut count, mut sum, mut min, mut max) = (0usize, 0.0, f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            count += 1;
            sum += value;
            min = min.min(value);
            max = max.max(value);
        }
        (count > 0).then(|| Self { mean: sum / count as f64, min, max })
    }
}

/// Counts `dataset`; `verbs` gives the verbs of a sentence in whatever form they should be told apart.
pub fn stats(dataset: &Dataset, verbs: &(dyn Fn(&str) -> Vec<String> + Sync)) -> Stats {
    let row = |split: &Split| SplitStats::of(&split.name, &[split], verbs);
    Stats {
        dataset: dataset.card.name.to_owned(),
        splits: dataset.splits.iter().map(row).collect(),
        overall: SplitStats::of("all", &dataset.distinct(), verbs),
    }
}

impl SplitStats {
    /// The figures of several splits taken together.
    pub(crate) fn of(name: &str, splits: &[&Split], verbs: &(dyn Fn(&str) -> Vec<String> + Sync)) -> Self {
        // In file order, so that sums come out the same everywhere.
        let durations: IndexMap<&VideoId, Option<f64>, FxBuildHasher> =
            splits.iter().flat_map(|split| &split.videos).map(|video| (&video.id, video.duration)).collect();
        let queries = || splits.iter().flat_map(|split| &split.queries);
        let pairs = || queries().flat_map(|truth| &truth.moments).map(|graded| &graded.moment);
        let moments: IndexSet<(&VideoId, u64, u64), FxBuildHasher> =
            pairs().map(|moment| (&moment.video, moment.span.start().to_bits(), moment.span.end().to_bits())).collect();
        let moment_length = |&(_, start, end): &(_, u64, u64)| f64::from_bits(end) - f64::from_bits(start);
        let shares = pairs().filter_map(|moment| {
            let duration = durations.get(&moment.video).copied().flatten()?;
            Some(moment.span.len() / duration)
        });
        let video_seconds = Range::of(durations.values().copied().flatten());
        let number = queries().count();
        let right: usize = queries().map(|truth| truth.right().count()).sum();
        Self {
            split: name.to_owned(),
            videos: durations.len(),
            moments: moments.len(),
            queries: number,
            pairs: pairs().count(),
            annotations_per_video: ratio(moments.len(), durations.len()),
            vocabulary: distinct(splits, words),
            verbs: distinct(splits, verbs),
            video_hours: durations.values().copied().flatten().sum::<f64>() / 3600.0,
            moment_hours: moments.iter().map(moment_length).sum::<f64>() / 3600.0,
            moment_to_video: Range::of(shares).map(|range| range.mean),
            relevant_moments_per_query: ratio(right, number),
            video_seconds,
            moment_seconds: Range::of(pairs().map(|moment| moment.span.len())),
            query_words: Range::of(queries().map(|truth| truth.query.text.split_whitespace().count() as f64)),
        }
    }
}

/// How many different things `parts` finds in the queries.
fn distinct(splits: &[&Split], parts: impl Fn(&str) -> Vec<String> + Sync) -> usize {
    let texts: Vec<&str> =
        splits.iter().flat_map(|split| &split.queries).map(|truth| truth.query.text.as_str()).collect();
    let merge = |mut a: FxHashSet<String>, b: FxHashSet<String>| {
        a.extend(b);
        a
    };
    texts
        .par_chunks(1024)
        .map(|chunk| chunk.iter().flat_map(|text| parts(text)).collect::<FxHashSet<String>>())
        .reduce(FxHashSet::default, merge)
        .len()
}

/// The words of a sentence as [`SplitStats::vocabulary`] counts them.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::{Query, Span, Truth, Video};

    fn truth(id: &str, text: &str, video: &Video, start: f64, end: f64) -> Truth {
        let query = Query { id: id.into(), text: text.to_owned() };
        Truth::single(query, video.clone(), [Span::new(start, end).unwrap()])
    }

    #[test]
    fn figures_agree_with_a_count_by_hand() {
        let (a, b) = (Video::new("a", 10.0), Video { id: "b".into(), duration: None });
        let queries = vec![
            truth("0", " The dog runs.", &a, 0.0, 5.0),
            truth("1", "the dog, again", &a, 0.0, 5.0),
            truth("2", "A cat", &b, 1.0, 2.0),
        ];
        let split = Split { name: "train".to_owned(), videos: vec![a, b], queries, ..Split::default() };
        let verbs = |text: &str| if text.contains("runs") { vec!["run".to_owned()] } else { vec![] };
        let stats = SplitStats::of("train", &[&split], &verbs);
        assert_eq!((stats.videos, stats.moments, stats.queries, stats.pairs), (2, 2, 3, 3));
        // the dog runs again a cat
        assert_eq!((stats.vocabulary, stats.verbs), (6, 1));
        assert_eq!(stats.annotations_per_video, 1.0);
        assert_eq!(stats.relevant_moments_per_query, 1.0);
        // Only the two pairs in `a` have a duration to be compared with.
        assert_eq!(stats.moment_to_video, Some(0.5));
        assert_eq!(stats.video_seconds, Some(Range { mean: 10.0, min: 10.0, max: 10.0 }));
        assert_eq!(stats.query_words, Some(Range { mean: 8.0 / 3.0, min: 2.0, max: 3.0 }));
        assert!((stats.moment_hours - 6.0 / 3600.0).abs() < 1e-12);
        assert!((stats.video_hours - 10.0 / 3600.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_has_no_lengths() {
        let stats = SplitStats::of("empty", &[], &|_| Vec::new());
        assert_eq!((stats.video_seconds, stats.moment_seconds, stats.query_words), (None, None, None));
        assert_eq!((stats.annotations_per_video, stats.relevant_moments_per_query), (0.0, 0.0));
    }
}
