//! Any single truth file, whatever its layout.

use std::fmt;
use std::str::FromStr;

use cuemark_core::Split;
use cuemark_formats::{Source, strange_keys};

use crate::dataset::concatenated;
use crate::peek::Peek;
use crate::readers::{
    activitynet_captions, activitynet_cd, charades_cd, charades_sta, cuemark_jsonl, didemo, label_studio, msr_vtt,
    mvmr, qvhighlights, tacos, tacos_2dtan, tacos_raw, tvr, tvr_ranking, tvsum, youcook2, youtube_highlights,
};
use crate::{DataError, Layout, ReadOptions, Result};

/// A layout of truth files, by the name that `--truth-format` takes.
#[derive(Clone, Copy)]
pub struct TruthFormat(&'static Layout);

impl TruthFormat {
    /// Every layout. The first that a file looks like is taken for it.
    pub const ALL: &'static [Self] = &[
        Self(&cuemark_jsonl::LAYOUT),
        Self(&charades_sta::LAYOUT),
        Self(&mvmr::LAYOUT),
        Self(&tacos_2dtan::LAYOUT),
        Self(&tacos::LAYOUT),
        Self(&tacos_raw::LAYOUT),
        Self(&charades_cd::LAYOUT),
        Self(&activitynet_captions::LAYOUT),
        Self(&activitynet_cd::LAYOUT),
        Self(&didemo::LAYOUT),
        Self(&label_studio::LAYOUT),
        Self(&youcook2::LAYOUT),
        Self(&msr_vtt::LAYOUT),
        Self(&msr_vtt::MOLEF_LAYOUT),
        Self(&msr_vtt::JSFUSION_LAYOUT),
        Self(&youtube_highlights::LAYOUT),
        Self(&tvsum::LAYOUT),
        Self(&qvhighlights::LAYOUT),
        Self(&tvr::LAYOUT),
        Self(&tvr_ranking::LAYOUT),
        Self(&CSV_LAYOUT),
        Self(&QRELS_LAYOUT),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The layout in one line.
    pub fn about(self) -> &'static str {
        self.0.about
    }

    /// The layout that `source` looks like, from how it begins; its name plays no part.
    ///
    /// # Errors
    /// When it cannot be read, or looks like none.
    pub fn of(source: &Source) -> Result<Self> {
        let peek = Peek::at(source)?;
        let known = Self::ALL.iter().copied().find(|format| (format.0.looks_like)(&peek));
        known.ok_or_else(|| {
            let strange = strange_keys(source, TRUTH_FIELDS).unwrap_or_default().into_iter().next();
            DataError::UnknownLayout { path: source.path().to_owned(), strange }
        })
    }
}

/// Fields of truth files in JSON lines: ours and QVHighlights'.
pub const TRUTH_FIELDS: &[&str] = &[
    "qid",
    "query",
    "video",
    "vid",
    "duration",
    "spans",
    "moments",
    "pool",
    "kind",
    "highlights",
    "relevant_windows",
    "relevant_clip_ids",
    "saliency_scores",
];

impl FromStr for TruthFormat {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name).ok_or_else(|| DataError::UnknownName {
            what: "truth format",
            name: name.to_owned(),
            known: Self::ALL.iter().map(|format| format.name().to_owned()).collect(),
        })
    }
}

impl fmt::Debug for TruthFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TruthFormat({})", self.name())
    }
}

impl fmt::Display for TruthFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for TruthFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for TruthFormat {}

/// Reads a truth file in `format`, or in the layout it looks like.
///
/// The split is called after the file. A file that holds several splits gives their queries one split after the other.
///
/// # Errors
/// When the layout is unknown, the file is not in it, a row is refused under `options`, or there is no query at all.
pub fn read_truth(source: &Source, format: Option<TruthFormat>, options: &ReadOptions) -> Result<Split> {
    let format = format.map_or_else(|| TruthFormat::of(source), Ok)?;
    let whole = concatenated((format.0.read)(source, options)?);
    if whole.queries.is_empty() && whole.rows.dropped == 0 {
        return Err(DataError::NoQueries { path: source.path().to_owned() });
    }
    let file = source.path().file_name().unwrap_or_default().to_owned();
    Ok(Split { name: source.stem().to_owned(), file, ..whole })
}

/// A split of a codec that calls it after its file, as a layout that holds one split leaves it.
pub(crate) fn unnamed(split: Split) -> Split {
    Split { name: String::new(), ..split }
}

/// Rows `qid,video,start,end`, of any origin.
static CSV_LAYOUT: Layout = Layout {
    name: "csv",
    about: "qid,video,start,end with a header, one moment a row",
    looks_like: |peek| {
        let columns: Vec<&str> = peek.first_line().split(',').map(str::trim).collect();
        ["qid", "video", "start", "end"].iter().all(|column| columns.contains(column))
    },
    read: |source, options| Ok(vec![unnamed(cuemark_formats::read_truth_csv(source, options.bad_rows)?)]),
};

/// TREC relevance judgements, of any origin.
static QRELS_LAYOUT: Layout = Layout {
    name: "trec-qrels",
    about: "QID 0 VIDEO:START-END GRADE, one judgement a line",
    looks_like: |peek| {
        let words: Vec<&str> = peek.first_line().split_whitespace().collect();
        words.len() == 4 && words[3].parse::<f64>().is_ok() && words[2].contains(':')
    },
    read: |source, _| Ok(vec![unnamed(cuemark_formats::read_qrels(source)?)]),
};
