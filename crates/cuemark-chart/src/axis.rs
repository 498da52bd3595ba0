//! One axis of a chart.

/// One axis: its range, the places that are named, and what it shows.
#[derive(Debug, Clone)]
pub struct Axis {
    /// The lowest and the highest value.
    pub range: (f64, f64),
    /// Places and their names.
    pub ticks: Vec<(f64, String)>,
    /// What it shows.
    pub title: String,
}

impl Axis {
    /// From `low` to `high`, with four to seven round ticks.
    pub fn even(low: f64, high: f64, title: impl Into<String>, label: impl Fn(f64) -> String) -> Self {
        let width = if high > low { high - low } else { 1.0 };
        let magnitude = 10f64.powf((width / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * magnitude).find(|step| width / step <= 6.0);
        let step = step.unwrap_or(width);
        let first = (low / step).ceil() as i64;
        let last = ((low + width) / step + 1e-9).floor() as i64;
        let ticks = (first..=last).map(|n| n as f64 * step).map(|at| (at, label(at))).collect();
        Self { range: (low, low + width), ticks, title: title.into() }
    }

    /// Shares from 0 to 1.
    pub fn unit(title: impl Into<String>) -> Self {
        Self::even(0.0, 1.0, title, |at| format!("{at:.1}"))
    }

    /// One place for each of `names`.
    pub fn named(names: &[String], title: impl Into<String>) -> Self {
        let ticks = names.iter().enumerate().map(|(n, name)| (n as f64, name.clone())).collect();
        Self { range: (-0.5, names.len() as f64 - 0.5), ticks, title: title.into() }
    }

    /// Where a value lies between the two ends, 0 to 1 inside.
    pub(crate) fn place(&self, value: f64) -> f64 {
        (value - self.range.0) / (self.range.1 - self.range.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::unit("");
        let names: Vec<&str> = axis.ticks.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let steps = Axis::even(0.0, 1_234.0, "", |at| format!("{at}"));
        assert!(steps.ticks.len() >= 3 && steps.ticks.iter().all(|(at, _)| *at <= 1_234.0));
        assert!(Axis::even(5.0, 5.0, "", |at| format!("{at}")).range.1 > 5.0, "an empty range is widened");
    }
}
