//! Which layout a prediction file has, judged by its content and never by its name.
//!
//! An enum, where truth has a slice of layouts that each recognise themselves: prediction files share their keys, so that one pass in
//! one order tells them apart, and a layout that somebody forgets to read, write or name does not compile.

use std::fmt;
use std::str::FromStr;

use crate::fault::shorten;
use crate::{Result, Source};
use cuemark_core::nearest::{nearest, slip};
use cuemark_core::{Advice, Advise};

/// The layouts of prediction files, one module each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PredictionFormat {
    /// Our own JSON Lines.
    Cuemark,
    /// QVHighlights' JSON Lines.
    QvHighlights,
    /// TVR's submission.
    Tvr,
    /// TVR-Ranking's list.
    TvrRanking,
    /// ActivityNet-style results.
    ActivityNet,
    /// A TREC run.
    Trec,
    /// Comma-separated values.
    Csv,
    /// Free-text answers of video language models.
    Answers,
    /// Charades-STA's lines.
    Charades,
}

impl PredictionFormat {
    /// Every layout, in the order that help lists them.
    pub const ALL: [Self; 9] = [
        Self::Cuemark,
        Self::QvHighlights,
        Self::Tvr,
        Self::TvrRanking,
        Self::ActivityNet,
        Self::Trec,
        Self::Csv,
        Self::Answers,
        Self::Charades,
    ];

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
            Self::Answers => "answers",
            Self::Charades => "charades",
        }
    }

    /// The layout that a file's name asks for, compressed or not; `None` where the ending says nothing.
    pub fn of_name(path: &camino::Utf8Path) -> Option<Self> {
        let name = path.file_name()?;
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
        match name.rsplit_once('.')?.1 {
            "csv" => Some(Self::Csv),
            "trec" | "run" => Some(Self::Trec),
            "jsonl" => Some(Self::Cuemark),
            "txt" => Some(Self::Charades),
            _ => None,
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

impl UnknownFormat {
    /// For a name that nothing has.
    pub fn of(name: &str) -> Self {
        Self { name: shorten(name) }
    }
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
        found.ok_or_else(|| UnknownFormat::of(name))
    }
}

/// How much of a file is looked at.
const HEAD: usize = 64 << 10;

/// The layout of a prediction file.
///
/// # Errors
/// When the file cannot be read, or its first record is of no known layout.
pub(crate) fn detect(source: &Source) -> Result<PredictionFormat> {
    let head = source.head(HEAD)?;
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).trim_ascii_start();
    let found = match head.first() {
        Some(b'{') => from_keys(head),
        Some(b'[') => {
            let first = head.get(1..).unwrap_or_default().trim_ascii_start();
            match from_keys(first) {
                // Rankings have `predictions` too, and are arrays; they call a query `query_id`.
                Some(lines @ (PredictionFormat::Cuemark | PredictionFormat::QvHighlights))
                    if !outer_keys(first).contains(&b"query_id".as_slice()) =>
                {
                    return Err(one_array(source, lines));
                }
                _ => Some(PredictionFormat::TvrRanking),
            }
        }
        Some(_) => from_first_line(head),
        None => return Err(source.fault("the file is empty")),
    };
    found.ok_or_else(|| {
        let names = format!(" with one of {}", PredictionFormat::names());
        let advice = Advice::say("pass ").setting("pred_format").and(names);
        source.fault("the content is of no known prediction layout").with_hint(advice)
    })
}

/// Records that belong on lines of their own stand in one JSON array.
fn one_array(source: &Source, lines: PredictionFormat) -> crate::ReadError {
    let problem =
        format!("the file is one JSON array; the layout `{lines}` is one object a line, without brackets or commas");
    source.fault(problem).with_hint(format!("`jq -c '.[]' {}` writes it so", source.path()))
}

/// By the first key of the first object that only one layout has; an object with a `qid` and none of them is ours, unless a
/// key is a slip of the pen for one of QVHighlights'.
fn from_keys(head: &[u8]) -> Option<PredictionFormat> {
    let (mut ours, mut answers) = (None, None);
    for key in outer_keys(head) {
        match key {
            b"predictions" => return Some(PredictionFormat::Cuemark),
            b"pred_relevant_windows" | b"pred_saliency_scores" => return Some(PredictionFormat::QvHighlights),
            b"video2idx" | b"VCMR" | b"SVMR" | b"VR" => return Some(PredictionFormat::Tvr),
            b"results" | b"external_data" => return Some(PredictionFormat::ActivityNet),
            b"text" | b"prediction" | b"response" | b"filtered_resps" | b"resps" | b"model_output" => {
                answers = Some(PredictionFormat::Answers);
            }
            b"qid" => ours = ours.or(Some(PredictionFormat::Cuemark)),
            key => {
                let theirs = ["pred_relevant_windows", "pred_saliency_scores"];
                if std::str::from_utf8(key).is_ok_and(|key| slip(key, theirs).is_some()) {
                    ours = Some(PredictionFormat::QvHighlights);
                }
            }
        }
    }
    answers.or(ours)
}

/// The keys of the object that `head` begins with, as far as it goes. Nothing is decoded, and broken JSON gives few keys.
pub(crate) fn outer_keys(head: &[u8]) -> Vec<&[u8]> {
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

/// A header with a `qid` column, or with `start` and `end`, is CSV; a sentence behind `##` is Charades'; six columns with a number as rank and as score are a run.
fn from_first_line(head: &[u8]) -> Option<PredictionFormat> {
    let line = String::from_utf8_lossy(head.split(|byte| *byte == b'\n').next()?);
    let has = |name: &str| line.split(',').any(|column| column.trim().trim_matches('"') == name);
    if has("qid") || (has("start") && has("end")) {
        return Some(PredictionFormat::Csv);
    }
    if crate::charades_txt::looks_like(&line) {
        return Some(PredictionFormat::Charades);
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
        let slip = br#"{"qid":1,"pred_relevant_window":[[0,1]]}"#;
        assert_eq!(from_keys(slip), Some(PredictionFormat::QvHighlights));
    }

    #[test]
    fn an_array_of_records_is_told_from_a_ranking() {
        let rows = Source::in_memory("rows.json", &br#"[{"qid": 1, "pred_relevant_windows": [[0, 1]]}]"#[..]);
        assert!(detect(&rows).unwrap_err().to_string().contains("is one JSON array"));
        let ranking = Source::in_memory("ranking.json", &b"[[0, 1, 2.0, 3.0, 0.5]]"[..]);
        assert_eq!(detect(&ranking).unwrap(), PredictionFormat::TvrRanking);
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
