//! Bringing rows to length 1.

use serde::{Deserialize, Serialize};

use crate::Features;

/// How each row is divided by its L2 norm. A row of zeros stays zeros under all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Normalise {
    /// Rows stay as they are (MoLEF, the bias benchmark).
    #[default]
    None,
    /// By `max(norm, 1e-12)` (2D-TAN and what follows it).
    L2,
    /// By `norm + 1e-5` (the TVR family, MS-SL, QVHighlights), which leaves rows a little short of 1.
    L2Eps,
}

impl Normalise {
    /// The normalised features.
    ///
    /// ```
    /// use cuemark_features::{Features, Normalise};
    /// let features = Features::new(2, 2, vec![3.0, 4.0, 0.0, 0.0]).unwrap();
    /// assert_eq!(Normalise::L2.apply(features.clone()).data(), [0.6, 0.8, 0.0, 0.0]);
    /// let short = Normalise::L2Eps.apply(features);
    /// assert!(short.data()[0] < 0.6 && (short.data()[0] - 3.0 / 5.00001).abs() < 1e-7);
    /// ```
    #[must_use]
    pub fn apply(self, features: Features) -> Features {
        let divisor = match self {
            Self::None => return features,
            Self::L2 => |norm: f32| norm.max(1e-12),
            Self::L2Eps => |norm: f32| norm + 1e-5,
        };
        let (rows, width) = (features.rows(), features.width());
        let mut data = features.into_data();
        for row in data.chunks_exact_mut(width.max(1)) {
            // In f64, so that wide rows of small numbers keep their digits.
            let squares: f64 = row.iter().map(|number| f64::from(*number) * f64::from(*number)).sum();
            let by = divisor(squares.sqrt() as f32);
            row.iter_mut().for_each(|number| *number /= by);
        }
        Features::from_parts(rows, width, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_length_one_and_zero_rows_stay_finite() {
        let features = Features::new(3, 3, vec![1.0, -2.0, 2.0, 0.0, 0.0, 0.0, 1e-3, 0.0, 0.0]).unwrap();
        let norms = |rule: Normalise| {
            let normalised = rule.apply(features.clone());
            (0..3).map(|row| normalised.row(row).unwrap().iter().map(|x| x * x).sum::<f32>().sqrt()).collect::<Vec<_>>()
        };
        assert_eq!(norms(Normalise::None)[0], 3.0);
        let exact = norms(Normalise::L2);
        assert!((exact[0] - 1.0).abs() < 1e-6 && exact[1] == 0.0 && (exact[2] - 1.0).abs() < 1e-6, "{exact:?}");
        let short = norms(Normalise::L2Eps);
        assert!(short[1] == 0.0 && (short[2] - 1e-3 / 1.01e-3).abs() < 1e-6, "{short:?}");
    }

    #[test]
    fn run_files_name_them_in_kebab_case() {
        assert_eq!(serde_json::to_string(&Normalise::L2Eps).unwrap(), r#""l2-eps""#);
        assert_eq!(serde_json::from_str::<Normalise>(r#""l2""#).unwrap(), Normalise::L2);
    }
}
