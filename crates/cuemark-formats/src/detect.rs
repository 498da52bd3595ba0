//! Which layout a prediction file has, judged by its content and never by its name.

use std::fmt;
use std::str::FromStr;

use crate::fault::shorten;
use crate::{Result, Source};
use cuemark_core::nearest::nearest;
use cuemark_core::{Advice, Advise};

/// The layouts of prediction files, one module each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PredictionFormat {
    /// Our own JSON Lines ([`cuemark_jsonl`](crate::cuemark_jsonl)).
    Cuemark,
    /// QVHighlights' JSON Lines ([`qvh_jsonl`](crate::qvh_jsonl)).
    QvHighlights,
    /// TVR's submission ([`tvr_json`](crate::tvr_json)).
    Tvr,
    /// TVR-Ranking's list ([`tvr_ranking_json`](crate::tvr_ranking_json)).
    TvrRanking,
    /// ActivityNet-style results ([`activitynet_json`](crate::activitynet_json)).
    ActivityNet,
    /// A TREC run ([`trec`](crate::trec)).
    Trec,
    /// Comma-separated values ([`csv`](crate::csv)).
    Csv,
}

impl PredictionFormat {
    /// Every layout, in the order that help lists them.
    pub const ALL: [Self; 7] =
        [Self::Cuemark, Self::QvHighlights, Self::Tvr, Self::TvrRanking, Self::ActivityNet, Self::Trec, Self::Csv];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cuemark => "cuemark",
            Self::QvHighlights => "qvhighlights",
            Self::Tvr => "tvr",
            Self::TvrRanking => "tvr-ranking",
            Self::ActivityNet => "activitynet",
            Self::Trec => "trec",
            Self::Csv => "csv",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for PredictionFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no layout has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no prediction format `{name}`")]
pub struct UnknownFormat {
    name: String,
}

impl Advise for UnknownFormat {
    /// The nearest name, where one is near, and all of them otherwise.
    fn advice(&self) -> Option<Advice> {
        Some(match nearest(&self.name, PredictionFormat::ALL.map(PredictionFormat::name)) {
            Some(near) => Advice::nearest(near),
            None => format!("there are {}", PredictionFormat::names()).into(),
        })
    }
}

impl FromStr for PredictionFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat { name: shorten(name) })
    }
}

/// How much of a file is looked at.
const HEAD: usize = 64 << 10;

/// The layout of a prediction file.
///
/// # Errors
/// When the file cannot be read, or its first record is of no known layout.
pub fn detect(source: &Source) -> Result<PredictionFormat> {
    let head = source.head(HEAD)?;
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).trim_ascii_start();
    let found = match head.first() {
        Some(b'{') => from_keys(head),
        Some(b'[') => Some(PredictionFormat::TvrRanking),
        Some(_) => from_first_line(head),
        None => return Err(source.fault("the file is empty")),
    };
    found.ok_or_else(|| {
        let names = format!(" with one of {}", PredictionFormat::names());
        let advice = Advice::say("pass ").setting("pred_format").and(names);
        source.fault("the content is of no known prediction layout").with_hint(advice)
    })
}

/// By the first key of the first object that only one layout has; an object with a `qid` and none of them is ours.
fn from_keys(head: &[u8]) -> Option<PredictionFormat> {
    let mut ours = None;
    for key in outer_keys(head) {
        match key {
            b"predictions" => return Some(PredictionFormat::Cuemark),
            b"pred_relevant_windows" | b"pred_saliency_scores" => return Some(PredictionFormat::QvHighlights),
            b"video2idx" | b"VCMR" | b"SVMR" | b"VR" => return Some(PredictionFormat::Tvr),
            b"results" | b"external_data" => return Some(PredictionFormat::ActivityNet),
            b"qid" => ours = Some(PredictionFormat::Cuemark),
            _ => {}
        }
    }
    ours
}

/// The keys of the object that `head` begins with, as far as it goes. Nothing is decoded, and broken JSON gives few keys.
fn outer_keys(head: &[u8]) -> Vec<&[u8]> {
    let (mut keys, mut depth, mut at) = (Vec::new(), 0usize, 0);
    while let Some(byte) = head.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => break,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let rest = head.get(at + 1..).unwrap_or_default();
                let mut escaped = false;
                let end = rest.iter().position(|byte| {
                    let closes = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    closes
                });
                let Some(end) = end else { break };
                at += end + 1;
                if depth == 1 && head.get(at + 1..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b":")) {
                    keys.extend(rest.get(..end));
                }
            }
            _ => {}
        }
        at += 1;
    }
    keys
}

/// A header with a `qid` column is CSV; six columns with a number as rank and as score are a run.
fn from_first_line(head: &[u8]) -> Option<PredictionFormat> {
    let line = String::from_utf8_lossy(head.split(|byte| *byte == b'\n').next()?);
    if line.split(',').any(|column| column.trim().trim_matches('"') == "qid") {
        return Some(PredictionFormat::Csv);
    }
    match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        [_, _, _, rank, score, _] if rank.parse::<i64>().is_ok() && score.parse::<f64>().is_ok() => {
            Some(PredictionFormat::Trec)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Advise as _, Dialect};

    use super::*;

    #[test]
    fn the_first_telling_key_decides_whatever_stands_inside_values() {
        let cuemark = br#"{"qid":1,"note":"\"VCMR\":","deep":{"results":1},"predictions":[]}"#;
        assert_eq!(from_keys(cuemark), Some(PredictionFormat::Cuemark));
        assert_eq!(from_keys(br#"{"version":"1","results":{"#), Some(PredictionFormat::ActivityNet));
        assert_eq!(from_keys(br#"{"a":1}"#), None);
        assert_eq!(from_keys(br#"{"qid":1}"#), Some(PredictionFormat::Cuemark));
        assert_eq!(from_keys(b"{\"x"), None);
    }

    #[test]
    fn names_lead_to_formats_and_back() {
        for format in PredictionFormat::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let hint = |name: &str| name.parse::<PredictionFormat>().unwrap_err().advice_in(Dialect::Terminal).unwrap();
        assert_eq!(hint("tvr-rankng"), "did you mean `tvr-ranking`?");
        assert!(hint("spreadsheet").starts_with("there are cuemark, "));
    }
}
