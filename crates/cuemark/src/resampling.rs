//! How far a mean over queries may be trusted: the settings of a bootstrap.

use cuemark_metrics::Bootstrap;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How queries are drawn again to see how far a figure moves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
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

    /// The bootstrap of `percent` confidence.
    ///
    /// # Errors
    /// When `percent` is not above 0 and below 100.
    pub fn bootstrap(self, percent: f64) -> Result<Bootstrap> {
        if !(percent > 0.0 && percent < 100.0) {
            let problem = format!("{percent} is not a percentage above 0 and below 100, such as 95");
            return Err(Error::setting("ci", problem));
        }
        Ok(Bootstrap { level: percent / 100.0, resamples: self.resamples, seed: self.seed })
    }
}
