//! How well a moment answers a query.

use serde::{Deserialize, Serialize};

/// A grade, 0 (nothing matches) to 4 (everything does) in the published scale; fractions and other scales are allowed.
///
/// Finite, not negative, and at most [`Relevance::MAX`], so that the exponential gain `2^grade - 1` stays finite.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Relevance(f64);

impl Relevance {
    /// The largest grade that is accepted.
    pub const MAX: f64 = 100.0;

    /// `None` when `grade` is outside `0..=MAX` or not a number.
    pub fn new(grade: f64) -> Option<Self> {
        (0.0..=Self::MAX).contains(&grade).then_some(Self(grade))
    }

    /// The grade.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Relevance {
    type Error = String;

    fn try_from(grade: f64) -> Result<Self, String> {
        Self::new(grade).ok_or_else(|| format!("relevance {grade} is not between 0 and {}", Self::MAX))
    }
}

impl From<Relevance> for f64 {
    fn from(relevance: Relevance) -> f64 {
        relevance.0
    }
}
