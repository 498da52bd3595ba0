//! Several measurements of one thing.

use std::fmt;

use serde_json::{Value, json};

/// Seconds that repeated runs took.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    /// Adds one run.
    pub(crate) fn push(&mut self, seconds: f64) {
        self.0.push(seconds);
        self.0.sort_by(f64::total_cmp);
    }

    /// The middle run, or the mean of the two middle ones. NaN of nothing.
    pub(crate) fn median(&self) -> f64 {
        let at = |place: usize| self.0.get(place).copied().unwrap_or(f64::NAN);
        f64::midpoint(at(self.0.len().saturating_sub(1) / 2), at(self.0.len() / 2))
    }

    /// Every run, shortest first.
    pub(crate) fn to_json(&self) -> Value {
        json!(self.0)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("not measured"),
            [low, .., high] => write!(f, "{} ({} to {})", seconds(self.median()), seconds(*low), seconds(*high)),
            [one] => f.write_str(&seconds(*one)),
        }
    }
}

/// Seconds with the digits that matter.
pub(crate) fn seconds(value: f64) -> String {
    if value < 1.0 { format!("{:.1} ms", value * 1e3) } else { format!("{value:.2} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        let mut spread = Spread::default();
        assert!(spread.median().is_nan());
        for run in [3.0, 1.0, 10.0] {
            spread.push(run);
        }
        assert_eq!(spread.median(), 3.0);
        spread.push(4.0);
        assert_eq!(spread.median(), 3.5);
        assert_eq!(spread.to_string(), "3.50 s (1.00 s to 10.00 s)");
    }
}
