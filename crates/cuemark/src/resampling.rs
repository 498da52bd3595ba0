//! How far a mean over queries may be trusted: the settings of a bootstrap.

use cuemark_metrics::Bootstrap;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How queries are drawn again to see how far a figure moves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Resampling {
    /// Resamples of the bootstrap (and of the randomisation test, where there is one).
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = Self::RESAMPLES))]
    pub resamples: usize,
    /// Seed of the draws.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 0))]
    pub seed: u64,
}

impl Default for Resampling {
    fn default() -> Self {
        Self { resamples: Self::RESAMPLES, seed: 0 }
    }
}

impl Resampling {
    /// Resamples unless somebody says otherwise.
    pub const RESAMPLES: usize = 10_000;

    /// The bootstrap of `percent` confidence; a fraction is understood as well: 0.95 is 95.
    ///
    /// # Errors
    /// When `percent` is not above 0 and below 100.
    pub fn bootstrap(self, percent: f64) -> Result<Bootstrap> {
        let level = confidence(percent).map_err(|problem| Error::setting("ci", problem))?;
        Ok(Bootstrap { level, resamples: self.resamples, seed: self.seed })
    }
}

/// A confidence level as a fraction, from a percentage (95) or a fraction (0.95): nobody asks for an interval of less than
/// one percent.
///
/// # Errors
/// Why it is no confidence level.
pub fn confidence(percent: f64) -> Result<f64, String> {
    match percent {
        fraction if fraction > 0.0 && fraction < 1.0 => Ok(fraction),
        percent if (1.0..100.0).contains(&percent) => Ok(percent / 100.0),
        other => Err(format!("{other} is not a percentage above 0 and below 100, such as 95")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_percentage_or_a_fraction() {
        assert_eq!(confidence(95.0), Ok(0.95));
        assert_eq!(confidence(0.95), Ok(0.95));
        assert!([0.0, 100.0, -5.0, 950.0, f64::NAN].iter().all(|wrong| confidence(*wrong).is_err()));
    }
}
