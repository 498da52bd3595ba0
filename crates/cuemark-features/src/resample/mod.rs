//! Bringing a video's rows to the number that a model wants. Each published rule is one file.
//!
//! After `mean-bins` and `linspace` a row no longer stands for a fixed clip: `m` rows share the time that the `n` rows
//! before them covered, so row `k` stands for `[k * t / m, (k + 1) * t / m)`.

mod cut;
mod linspace;
mod mean_bins;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Features;
pub use crate::normalise::Normalise;

/// A rule that brings features to at most, or exactly, `rows` rows. In run files: `{ rule = "mean-bins", rows = 64 }`; on the
/// command line: `mean-bins:64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Resample {
    /// The first `rows` rows; what lies after them is lost (XML, CONQUER, QVHighlights).
    Cut {
        /// The most rows that are left.
        rows: usize,
    },
    /// Means of rounded bins, always exactly `rows` (2D-TAN, MMN, the clips of MS-SL). The last row is dropped unless the
    /// last bin is empty.
    MeanBins {
        /// The rows that are left.
        rows: usize,
    },
    /// As `mean-bins` for longer videos; shorter ones stay as they are (ReLoCLNet, the frames of MS-SL).
    MeanBinsIfLonger {
        /// The most rows that are left.
        rows: usize,
    },
    /// Means between evenly spread anchors, always exactly `rows`; repeats rows of short videos (CMIN, MoLEF).
    Linspace {
        /// The rows that are left.
        rows: usize,
    },
}

impl Resample {
    /// The resampled features. Features without rows have nothing to sample and stay as they are.
    ///
    /// ```
    /// use cuemark_features::{Features, resample::Resample};
    /// let features = Features::new(6, 1, vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]).unwrap();
    /// assert_eq!(Resample::Cut { rows: 2 }.apply(&features).data(), [0.0, 2.0]);
    /// // Bins of rows 0..2, 2..4 and 4..5: the rule never reaches the last row here.
    /// assert_eq!(Resample::MeanBins { rows: 3 }.apply(&features).data(), [1.0, 5.0, 8.0]);
    /// // Anchors 0, 2 and 5: means of rows 0..2 and 2..5, then the last row.
    /// assert_eq!(Resample::Linspace { rows: 3 }.apply(&features).data(), [1.0, 6.0, 10.0]);
    /// ```
    #[must_use]
    pub fn apply(self, features: &Features) -> Features {
        match self {
            Self::Cut { rows } => cut::cut(features, rows),
            Self::MeanBinsIfLonger { rows } if features.rows() <= rows => features.clone(),
            Self::MeanBins { rows } | Self::MeanBinsIfLonger { rows } => {
                means(features, &bins(&mean_bins::edges(features.rows(), rows)))
            }
            Self::Linspace { rows } => means(features, &linspace::bins(features.rows(), rows)),
        }
    }

    /// The rows it aims at.
    pub fn rows(self) -> usize {
        match self {
            Self::Cut { rows }
            | Self::MeanBins { rows }
            | Self::MeanBinsIfLonger { rows }
            | Self::Linspace { rows } => rows,
        }
    }

    /// Whether rows keep the length of a clip that they had.
    pub fn keeps_clip_len(self) -> bool {
        matches!(self, Self::Cut { .. })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::MeanBins { .. } => "mean-bins",
            Self::MeanBinsIfLonger { .. } => "mean-bins-if-longer",
            Self::Linspace { .. } => "linspace",
        }
    }
}

impl fmt::Display for Resample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name(), self.rows())
    }
}

impl FromStr for Resample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || format!("`{text}` is not RULE:ROWS, with cut, mean-bins, mean-bins-if-longer or linspace");
        let (name, rows) = text.split_once(':').ok_or_else(usage)?;
        let rows = rows.parse().ok().filter(|rows| *rows > 0).ok_or_else(usage)?;
        let rules =
            [Self::Cut { rows }, Self::MeanBins { rows }, Self::MeanBinsIfLonger { rows }, Self::Linspace { rows }];
        rules.into_iter().find(|rule| rule.name() == name).ok_or_else(usage)
    }
}

/// Rows `first..end` that one new row is the mean of; an empty bin stands for row `first` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bin {
    first: usize,
    end: usize,
}

/// The bins between consecutive edges.
fn bins(edges: &[usize]) -> Vec<Bin> {
    edges.windows(2).filter_map(|pair| Some(Bin { first: *pair.first()?, end: *pair.last()? })).collect()
}

/// The mean of every bin, in `f32` as the published scripts take it.
fn means(features: &Features, bins: &[Bin]) -> Features {
    let width = features.width();
    let mut data = vec![0.0; bins.len() * width];
    for (bin, mean) in bins.iter().zip(data.chunks_exact_mut(width.max(1))) {
        let end = bin.end.max(bin.first + 1);
        for row in (bin.first..end).filter_map(|row| features.row(row)) {
            mean.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
        }
        let count = (end - bin.first) as f32;
        mean.iter_mut().for_each(|sum| *sum /= count);
    }
    Features::from_parts(bins.len(), width, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [fn(usize) -> Resample; 4] = [
        |rows| Resample::Cut { rows },
        |rows| Resample::MeanBins { rows },
        |rows| Resample::MeanBinsIfLonger { rows },
        |rows| Resample::Linspace { rows },
    ];

    fn ramp(rows: usize) -> Features {
        Features::new(rows, 2, (0..2 * rows).map(|n| n as f32).collect()).unwrap()
    }

    #[test]
    fn every_rule_gives_the_rows_it_promises() {
        for (from, to) in [(1, 4), (3, 8), (8, 8), (9, 8), (1000, 7), (5, 1)] {
            let rows = RULES.map(|rule| rule(to).apply(&ramp(from)).rows());
            assert_eq!(rows, [from.min(to), to, from.min(to), to], "{from} to {to}");
        }
    }

    #[test]
    fn features_without_rows_stay_so() {
        for rule in RULES {
            assert_eq!(rule(8).apply(&ramp(0)), ramp(0));
        }
    }

    #[test]
    fn rows_that_are_all_alike_stay_what_they_are() {
        let alike = Features::new(13, 1, vec![0.5; 13]).unwrap();
        for rule in RULES {
            assert!(rule(5).apply(&alike).data().iter().all(|number| *number == 0.5));
        }
    }

    #[test]
    fn a_rule_reads_as_it_is_written() {
        for rule in RULES.map(|rule| rule(64)) {
            assert_eq!(rule.to_string().parse::<Resample>().unwrap(), rule);
            let json = serde_json::to_string(&rule).unwrap();
            assert_eq!(serde_json::from_str::<Resample>(&json).unwrap(), rule, "{json}");
        }
        let written: Resample = serde_json::from_str(r#"{"rule":"mean-bins","rows":64}"#).unwrap();
        assert_eq!(written, Resample::MeanBins { rows: 64 });
        for wrong in ["cut", "cut:0", "cut:-1", "cut:x", "mean:4", ":4", ""] {
            assert!(wrong.parse::<Resample>().is_err(), "{wrong}");
        }
    }
}
