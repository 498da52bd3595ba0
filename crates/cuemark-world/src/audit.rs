//! Checking a world: is it what its manifest says, and does it hold what it promises?

use camino::Utf8Path;
use cuemark_core::{NormSpan, Prediction, Rng, RowPolicy, Split, Truth};
use cuemark_formats::json::Document;
use cuemark_formats::{Source, read_truth, world_folder};
use serde::{Deserialize, Serialize};

use crate::make::WorldReport;
use crate::{
    AuditFigure, GradeAgreement, PoolQuality, RatingQuality, Result, SPLITS, WorldLog, layout, oracle, quality,
    rating_quality, relevance,
};

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditReport {
    /// What the world says about itself.
    pub manifest: WorldReport,
    /// What is wrong, in words; empty when all is well.
    pub faults: Vec<String>,
    /// How differently moments lie in two splits.
    pub locations: Vec<LocationDistance>,
    /// The oracle on test-iid and test-ood, by metric.
    pub oracle: Vec<OracleGap>,
    /// The world's own pools, measured as anybody else's would be.
    pub pools: PoolQuality,
    /// The world's own grades, measured as anybody else's would be.
    pub graded: GradeAgreement,
    /// Its clip ratings against the log; worlds of before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratings: Option<RatingQuality>,
}

/// How far apart the normalised moments of two splits lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocationDistance {
    /// The two splits.
    pub splits: [String; 2],
    /// Queries in each.
    pub queries: [usize; 2],
    /// Total variation between the two histograms of (start, end) on a grid of tenths, 0 to 1.
    pub distance: f64,
    /// Its mean when the queries are dealt to the two splits at random.
    pub by_chance: f64,
    /// How often chance does as much.
    pub p_value: f64,
}

/// One metric of the oracle on both test splits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OracleGap {
    /// The metric.
    pub metric: String,
    /// On test-iid.
    pub iid: AuditFigure,
    /// On test-ood.
    pub ood: AuditFigure,
    /// Test-iid minus test-ood.
    pub gap: AuditFigure,
}

/// Audits the world in folder `world`.
///
/// # Errors
/// When its files cannot be read; what they say wrongly is reported, not an error.
pub fn audit(world: &Utf8Path) -> Result<AuditReport> {
    let manifest: WorldReport = Document::read(&Source::new(world.join(layout::MANIFEST)))?.root().decode()?;
    let log = WorldLog::open(world)?;
    let read = |path| read_truth(&Source::new(path), RowPolicy::Keep);
    let splits = SPLITS.iter().map(|name| read(world_folder::split(world, name))).collect::<Result<Vec<_>, _>>()?;
    let [train, _, iid, ood] = splits.as_slice() else { unreachable!("four splits were read") };

    let mut faults = count_faults(&manifest, &splits);
    faults.extend(truth_faults(&log, &splits)?);
    let seed = manifest.options.seed;
    let locations = vec![location_distance(train, iid, seed), location_distance(iid, ood, seed)];
    faults.extend(location_faults(&locations, manifest.options.bias));
    let oracle = oracle_gaps(&log, iid, ood, seed)?;
    faults.extend(oracle.iter().filter(|gap| !gap.gap.holds_zero()).map(|gap| {
        format!("the oracle's {} differs between test-iid and test-ood by {:.4}", gap.metric, gap.gap.value)
    }));
    let pools = quality::pool_quality(&log, &read(world.join(layout::POOLS))?.queries)?;
    let graded = quality::grade_agreement(&log, &read(world.join(layout::GRADED))?.queries)?;
    let (ratings, wrong) = rating_quality::rating_quality(world, &log)?;
    faults.extend(wrong);
    Ok(AuditReport { manifest, faults, locations, oracle, pools, graded, ratings })
}

fn count_faults(manifest: &WorldReport, splits: &[Split]) -> Vec<String> {
    let mut faults = Vec::new();
    for split in splits {
        let Some(count) = manifest.splits.iter().find(|count| count.name == split.name) else {
            faults.push(format!("the manifest does not mention split `{}`", split.name));
            continue;
        };
        let found = (split.videos.len(), split.queries.len());
        if found != (count.videos, count.queries) {
            let (videos, queries) = found;
            faults.push(format!(
                "split `{}` holds {videos} videos and {queries} queries, the manifest says {} and {}",
                split.name, count.videos, count.queries
            ));
        }
    }
    let mut videos: Vec<_> = splits.iter().flat_map(|split| &split.videos).map(|video| &video.id).collect();
    videos.sort_unstable();
    let all = videos.len();
    videos.dedup();
    if videos.len() < all {
        faults.push(format!("{} videos are in two splits", all - videos.len()));
    }
    faults
}

/// Queries whose truth is not the one answer that the log knows.
fn truth_faults(log: &WorldLog, splits: &[Split]) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for truth in splits.iter().flat_map(|split| &split.queries) {
        let query = &truth.query.id;
        let Some(video) = &truth.video else {
            faults.push(format!("query `{query}` names no video"));
            continue;
        };
        let known = relevance::answers(log.meaning(query)?, log.film(query, &video.id)?);
        let given: Vec<_> = truth.right().map(|moment| moment.span).collect();
        if known != given {
            faults
                .push(format!("query `{query}` has {} answers in the log, or another one than its truth", known.len()));
        }
    }
    Ok(faults)
}

fn location_faults(locations: &[LocationDistance], bias: f64) -> Vec<String> {
    let mut faults = Vec::new();
    for LocationDistance { splits: [first, second], queries, distance, p_value, .. } in locations {
        let same = second != "test-ood" || bias == 0.0;
        if same && *p_value < 0.001 {
            faults.push(format!(
                "{first} and {second} should lie alike and do not: distance {distance:.3}, p {p_value:.4}"
            ));
        }
        // A weak bias may hide, and any bias in a small world; half of it among hundreds may not.
        if !same && bias >= 0.5 && queries.iter().all(|queries| *queries >= 200) && *p_value > 0.05 {
            faults.push(format!(
                "{first} and {second} should lie apart and do not: distance {distance:.3}, p {p_value:.4}"
            ));
        }
    }
    faults
}

/// Cells of the grid along each side.
const GRID: usize = 10;
const PERMUTATIONS: usize = 999;

fn location_distance(first: &Split, second: &Split, seed: u64) -> LocationDistance {
    let cells = |split: &Split| split.queries.iter().filter_map(cell).collect::<Vec<usize>>();
    let (a, b) = (cells(first), cells(second));
    let distance = total_variation(&a, &b);
    let mut rng = Rng::stream(seed, "permutations of locations");
    let mut all: Vec<usize> = a.iter().chain(&b).copied().collect();
    let (mut reached, mut sum) = (0, 0.0);
    for _ in 0..PERMUTATIONS {
        rng.shuffle(&mut all);
        let (left, right) = all.split_at(a.len());
        let by_chance = total_variation(left, right);
        sum += by_chance;
        reached += usize::from(by_chance >= distance);
    }
    LocationDistance {
        splits: [first.name.clone(), second.name.clone()],
        queries: [a.len(), b.len()],
        distance,
        by_chance: sum / PERMUTATIONS as f64,
        p_value: (1 + reached) as f64 / (1 + PERMUTATIONS) as f64,
    }
}

/// The grid cell of a query's moment.
fn cell(truth: &Truth) -> Option<usize> {
    let norm = NormSpan::of(truth.right().next()?.span, truth.duration()?)?.clipped();
    let tenth = |fraction: f64| ((fraction * GRID as f64) as usize).min(GRID - 1);
    Some(tenth(norm.start()) * GRID + tenth(norm.end()))
}

/// Half the summed difference between two histograms of cells; 0 when one is empty.
fn total_variation(a: &[usize], b: &[usize]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let mut difference = [0.0; GRID * GRID];
    for (cells, weight) in [(a, 1.0 / a.len() as f64), (b, -1.0 / b.len() as f64)] {
        for cell in cells {
            if let Some(sum) = difference.get_mut(*cell) {
                *sum += weight;
            }
        }
    }
    difference.iter().map(|sum: &f64| sum.abs()).sum::<f64>() / 2.0
}

fn oracle_gaps(log: &WorldLog, iid: &Split, ood: &Split, seed: u64) -> Result<Vec<OracleGap>> {
    let (of_iid, of_ood) = (overlaps(log, iid)?, overlaps(log, ood)?);
    let hits = |overlaps: &[f64], m: f64| overlaps.iter().map(|iou| f64::from(u8::from(*iou >= m))).collect::<Vec<_>>();
    let gap = |metric: &str, iid: &[f64], ood: &[f64]| OracleGap {
        metric: metric.to_owned(),
        iid: AuditFigure::of_mean(iid, seed),
        ood: AuditFigure::of_mean(ood, seed),
        gap: AuditFigure::of_difference(iid, ood, seed),
    };
    Ok(vec![
        gap("R@1,IoU=0.5", &hits(&of_iid, 0.5), &hits(&of_ood, 0.5)),
        gap("R@1,IoU=0.7", &hits(&of_iid, 0.7), &hits(&of_ood, 0.7)),
        gap("mIoU", &of_iid, &of_ood),
    ])
}

/// The overlap of the oracle's first answer with the truth, for each query.
fn overlaps(log: &WorldLog, split: &Split) -> Result<Vec<f64>> {
    let answers = oracle::answer(log, &split.queries)?;
    let lists = answers.tasks.iter().flat_map(|task| &task.queries);
    let best = |ranked: &[Prediction], truth: &Truth| {
        let answer = ranked.first().map(|first| first.span);
        let overlap =
            |answer: cuemark_core::Span| truth.right().map(|moment| moment.span.iou(answer)).fold(0.0, f64::max);
        answer.map_or(0.0, overlap)
    };
    Ok(lists.zip(&split.queries).map(|(list, truth)| best(&list.ranked, truth)).collect())
}
