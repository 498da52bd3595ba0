//! The trust card: how far one entry's score can be believed, in checks that each have a number.

use cuemark_core::Truth;
use cuemark_features::FeatureVariant;
use cuemark_text::variants::QueryText;
use cuemark_train::OutOfReach;
use serde::Serialize;

use super::behaviour::{Collapse, Misses};
use super::breakdown::{Division, WeakSpot};
use super::calibration::CalibrationChart;
use super::entry::{Entry, Name, Place};
use super::estimate::{Estimate, paired_difference};
use super::evaluated::Evaluated;

/// Weak spots on a card.
const SPOTS: usize = 5;
/// A model that keeps this share of its score on the query of another video does not read queries.
const DEAF: f64 = 0.8;
/// Answers half as spread out as the truth have collapsed.
const COLLAPSED: f64 = 0.5;

/// How far one entry's score can be believed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrustCard {
    /// Who.
    pub name: Name,
    /// Where its score was measured.
    pub place: Place,
    /// The metric of every check.
    pub metric: String,
    /// Its score.
    pub score: Estimate,
    /// Number of seeds.
    pub seeds: usize,
    /// Standard deviation over them, of which there are at least two.
    pub seed_sd: Option<f64>,
    /// What was checked, always in the same order.
    pub checks: Vec<Check>,
    /// Classes of queries in which it does clearly worse than overall, the worst first.
    pub weak_spots: Vec<WeakSpot>,
    /// How it misses; absent without the truth.
    pub misses: Option<Misses>,
    /// Whether its answers collapse; absent without the truth.
    pub collapse: Option<Collapse>,
    /// Whether its confidence means anything; absent when it states none.
    pub calibration: Option<CalibrationChart>,
    /// Moments that it could not meet; absent when nobody counted.
    pub out_of_reach: Option<OutOfReach>,
    /// Share of queries for which no answer of the whole list overlaps the moment by half.
    pub unreached: Option<f64>,
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// What was found; the interval lies around a difference of scores where there is one.
    pub found: Option<Estimate>,
    /// What it says.
    pub verdict: TrustVerdict,
    /// The finding in words.
    pub words: String,
}

/// What a check says about trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustVerdict {
    /// It speaks for the method.
    Good,
    /// It cannot be told from chance.
    Unclear,
    /// It speaks against the method.
    Bad,
    /// Nothing was measured that would tell.
    Unknown,
}

/// Everything of one dataset and protocol that cards are made from.
pub(super) struct Evidence<'a> {
    /// Every evaluation, rewritten queries and hidden videos included.
    pub(super) evaluated: Vec<&'a Evaluated>,
    /// The place that scores come from.
    pub(super) place: &'a Place,
    /// Its entries.
    pub(super) entries: &'a [Entry<'a>],
    /// Its queries, where they are known.
    pub(super) truths: Option<&'a [Truth]>,
    /// How they divide.
    pub(super) divisions: &'a [Division],
}

impl Evidence<'_> {
    /// The card of one entry; `None` when it has no score.
    pub(super) fn card(&self, entry: &Entry<'_>) -> Option<TrustCard> {
        let run = entry.first();
        let metric = run.headline()?.to_owned();
        let score = entry.measured(&metric)?;
        let scores = entry.scores(&metric, &run.pairing);
        let truths = self.truths.filter(|truths| truths.len() == run.queries);
        let mut weak_spots: Vec<WeakSpot> =
            self.divisions.iter().flat_map(|division| division.weak_spots(&scores, score.value)).collect();
        weak_spots.sort_by(|a, b| a.estimate.value.total_cmp(&b.estimate.value));
        weak_spots.truncate(SPOTS);
        let collapse = truths.and_then(|truths| Collapse::of(run, truths));
        let calibration = CalibrationChart::of(entry.name.label(), run);
        let reach = |iou: &&f32| **iou < 0.5;
        let unreached =
            (run.queries > 0).then(|| run.first.reach.0.iter().filter(reach).count() as f64 / run.queries as f64);
        let mut checks = vec![self.elsewhere(entry, &metric)];
        if !entry.is_baseline() {
            checks.push(self.over_baselines(entry, &metric));
            checks.extend(self.probes(entry, &metric, score));
        }
        checks.push(collapse_check(collapse.as_ref()));
        checks.push(confidence_check(calibration.as_ref()));
        Some(TrustCard {
            name: entry.name.clone(),
            place: self.place.clone(),
            metric: metric.clone(),
            score,
            seeds: entry.runs.len(),
            seed_sd: entry.spread(&metric),
            checks,
            weak_spots,
            misses: truths.map(|truths| Misses::of(run, truths)),
            collapse,
            calibration,
            out_of_reach: run.out_of_reach,
            unreached,
        })
    }

    /// The entry's evaluations on `split` with these queries and videos.
    fn of<'e>(&'e self, entry: &Entry<'_>, split: &str, text: QueryText, footage: FeatureVariant) -> Option<Entry<'e>> {
        let runs: Vec<&Evaluated> = self
            .evaluated
            .iter()
            .copied()
            .filter(|run| Name::of(run) == entry.name && run.about.among == self.place.among)
            .filter(|run| run.about.split == split && run.about.text == text && run.about.footage == footage)
            .collect();
        (!runs.is_empty()).then(|| Entry { name: entry.name.clone(), runs })
    }

    fn elsewhere(&self, entry: &Entry<'_>, metric: &str) -> Check {
        const NAME: &str = "other locations";
        let side = |split| self.of(entry, split, QueryText::Original, FeatureVariant::Seen)?.measured(metric);
        let Some((iid, ood)) = side("test-iid").zip(side("test-ood")) else {
            return unknown(NAME, "no evaluation on both test-iid and test-ood");
        };
        let drop = iid.minus(ood);
        let (iid, ood) = (percent(iid.value), percent(ood.value));
        let (verdict, words) = if drop.is_positive() {
            (TrustVerdict::Bad, format!("falls from {iid} to {ood} where moments lie elsewhere"))
        } else if drop.is_negative() {
            (TrustVerdict::Good, format!("rises from {iid} to {ood} where moments lie elsewhere"))
        } else {
            (TrustVerdict::Good, format!("no drop beyond chance: {iid} against {ood} where moments lie elsewhere"))
        };
        Check { name: NAME, found: Some(drop), verdict, words }
    }

    fn over_baselines(&self, entry: &Entry<'_>, metric: &str) -> Check {
        const NAME: &str = "over blind baselines";
        let value = |entry: &&Entry<'_>| entry.measured(metric).map_or(-1.0, |score| score.value);
        let baselines = self.entries.iter().filter(|entry| entry.is_baseline());
        let Some(best) = baselines.max_by(|a, b| value(a).total_cmp(&value(b))) else {
            return unknown(NAME, "no baseline was evaluated on this split; naming the training file adds them");
        };
        let pairing = &entry.first().pairing;
        let Some(lead) = paired_difference(best.scores(metric, pairing), entry.scores(metric, pairing)) else {
            return unknown(NAME, "the baselines were scored on other queries");
        };
        let (name, score) = (best.name.label(), percent(value(&best)));
        let (verdict, words) = if lead.is_positive() {
            (TrustVerdict::Good, format!("above {name}, which reaches {score} without looking at the video"))
        } else if lead.is_negative() {
            (TrustVerdict::Bad, format!("below {name}, which reaches {score} without looking at the video"))
        } else {
            (TrustVerdict::Bad, format!("not above {name}, which reaches {score} without looking at the video"))
        };
        Check { name: NAME, found: Some(lead), verdict, words }
    }

    /// What rewriting the query or hiding the video costs.
    fn probes(&self, entry: &Entry<'_>, metric: &str, score: Estimate) -> Vec<Check> {
        let probes = [
            ("verb masked", QueryText::MaskVerb, FeatureVariant::Seen),
            ("verb only", QueryText::OnlyVerb, FeatureVariant::Seen),
            ("words shuffled", QueryText::Shuffle, FeatureVariant::Seen),
            ("wrong query", QueryText::WrongQuery, FeatureVariant::Seen),
            ("clips shuffled", QueryText::Original, FeatureVariant::Shuffled),
            ("video hidden", QueryText::Original, FeatureVariant::Zeroed),
        ];
        let check = |(name, text, footage): (&'static str, QueryText, FeatureVariant)| {
            let Some(probed) = self.of(entry, &self.place.split, text, footage) else {
                // Only the two that a card must have are missed when they are not there.
                let expected = matches!(name, "verb masked" | "wrong query");
                return expected.then(|| unknown(name, "not evaluated with such queries"));
            };
            let pairing = &entry.first().pairing;
            let lost = paired_difference(probed.scores(metric, pairing), entry.scores(metric, pairing))?;
            let left = probed.measured(metric)?.value;
            let kept = if score.value > 0.0 { left / score.value } else { 0.0 };
            let decisive = matches!(name, "wrong query" | "video hidden");
            let verdict = match lost {
                lost if !lost.is_positive() => TrustVerdict::Bad,
                _ if decisive && kept > DEAF => TrustVerdict::Bad,
                _ => TrustVerdict::Good,
            };
            let words = format!("{} left, {} of the score", percent(left), share(kept));
            Some(Check { name, found: Some(lost), verdict, words })
        };
        probes.into_iter().filter_map(check).collect()
    }
}

fn collapse_check(collapse: Option<&Collapse>) -> Check {
    const NAME: &str = "variety of answers";
    let Some(found) = collapse else { return unknown(NAME, "durations or the truth are not known") };
    let ratio = found.effective_cells / found.true_effective_cells;
    let verdict = if ratio < COLLAPSED { TrustVerdict::Bad } else { TrustVerdict::Good };
    let same = match (found.same_in_video, found.true_same_in_video) {
        (Some(same), Some(right)) => {
            format!("; two queries about one video get one answer in {}, and have one in {}", share(same), share(right))
        }
        _ => String::new(),
    };
    let words = format!(
        "as spread out as {:.0} equal cells, the truth as {:.0}{same}",
        found.effective_cells, found.true_effective_cells
    );
    Check { name: NAME, found: None, verdict, words }
}

fn confidence_check(calibration: Option<&CalibrationChart>) -> Check {
    const NAME: &str = "confidence";
    let Some((found, auroc)) = calibration.and_then(|found| Some((found, found.auroc?))) else {
        return unknown(NAME, "it states no confidence that differs");
    };
    let verdict = match auroc {
        area if area >= 0.6 => TrustVerdict::Good,
        area if area > 0.52 => TrustVerdict::Unclear,
        _ => TrustVerdict::Bad,
    };
    let off = found.error.map_or(String::new(), |error| format!("; off by {} on average", share(error)));
    let words = format!("a right answer is the surer one in {} of pairs{off}", share(auroc));
    Check { name: NAME, found: None, verdict, words }
}

fn unknown(name: &'static str, why: &str) -> Check {
    Check { name, found: None, verdict: TrustVerdict::Unknown, words: why.to_owned() }
}

/// `53.9`, for scores.
fn percent(fraction: f64) -> String {
    format!("{:.1}", 100.0 * fraction)
}

/// `54 %`, for shares.
fn share(fraction: f64) -> String {
    format!("{:.0} %", 100.0 * fraction)
}
