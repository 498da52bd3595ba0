//! The result tables of the field's papers, as printed, to put *published* beside *ours*.
//!
//! The tables lie in `published/`, one file per paper, and are compiled in. Two papers that print different numbers
//! for the same thing (2D-TAN on Charades-CD, for one) both answer a lookup: which to believe is the reader's choice.

use serde::Deserialize;

use crate::{BenchError, Result};

/// A paper whose tables are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paper {
    /// Short key: `mdd-2022`.
    pub key: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The year it appeared.
    pub year: u16,
    table: &'static str,
}

macro_rules! paper {
    ($key:literal, $year:literal, $title:literal) => {
        Paper { key: $key, title: $title, year: $year, table: include_str!(concat!("../published/", $key, ".csv")) }
    };
}

/// Every paper, oldest first: one line per file in `published/`.
pub static PAPERS: &[Paper] = &[
    paper!("bias-2021", 2021, "A Closer Look at Temporal Sentence Grounding in Videos: Dataset and Metric"),
    paper!(
        "mdd-2022",
        2022,
        "A Closer Look at Debiased Temporal Sentence Grounding in Videos: Dataset, Metric, and Approach"
    ),
    paper!(
        "mvmr-2023",
        2023,
        "MVMR: Evaluating Natural Language Video Localization Bias over Multiple Reliable Videos Pool"
    ),
    paper!("molef-2024", 2024, "Towards a Complete Benchmark on Video Moment Localization"),
    paper!("tvr-ranking-2024", 2024, "TVR-Ranking: A Dataset for Ranked Video Moment Retrieval with Imprecise Queries"),
];

/// What a printed number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// 0 to 100.
    Percent,
    /// 0 to 1.
    Fraction,
    /// Millions (of parameters).
    Millions,
    /// Milliseconds.
    Ms,
    /// A plain number of things.
    Count,
    /// Seconds.
    Seconds,
    /// Hours.
    Hours,
    /// Words.
    Words,
    /// US dollars.
    Usd,
    /// Singapore dollars.
    Sgd,
    /// No number at all, but a word (`YouTube`).
    Text,
}

/// One number as a paper prints it. Text fields are empty where the paper says nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The paper that prints it.
    pub paper: &'static Paper,
    /// Table number in that paper, or `text` (the section is then in `note`).
    pub table: String,
    /// Our name of the dataset.
    pub dataset: String,
    /// Split, in our words; `test` of ActivityNet Captions is both validation lists merged, `val_2` the second alone.
    pub split: String,
    /// How the split was made and what is searched: `standard`, `cd`, `centre`, `query-text`, `ranked`, `vcmr`, `mvmr`,
    /// or `statistics` for facts about the data.
    pub protocol: String,
    /// Our name of the method; empty for statistics.
    pub model: String,
    /// Ablation, training-set size or query text; empty for the plain model.
    pub variant: String,
    /// Video features that the paper names.
    pub features: String,
    /// Our metric name, sometimes with `std:`, `gain:` or `gap:` before it, or a statistic in snake case.
    pub metric: String,
    /// The digits as printed, trailing zeros kept, thousands separators removed. `None` where the paper prints a dash.
    pub printed: Option<String>,
    /// `printed` as a number, in `unit`; `None` for dashes and for [`Unit::Text`].
    pub value: Option<f64>,
    /// What `value` counts.
    pub unit: Unit,
    /// A remark on the cell.
    pub note: String,
    /// Why the printed number cannot be right or contradicts another one; `None` when nothing speaks against it.
    pub doubt: Option<String>,
}

impl Figure {
    /// The value on the scale that our own results use: percent and fractions in 0..1. `None` for every other unit.
    pub fn fraction(&self) -> Option<f64> {
        match self.unit {
            Unit::Percent => self.value.map(|percent| percent / 100.0),
            Unit::Fraction => self.value,
            _ => None,
        }
    }
}

/// What to look for; a field that is `None` matches everything, `Some("")` only what the paper leaves open.
///
/// ```
/// use cuemark_bench::{Key, Published};
/// let published = Published::load().unwrap();
/// let key = Key { model: Some("2d-tan"), dataset: Some("charades-cd"), split: Some("test-iid"),
///                 metric: Some("dR@1,IoU=0.7"), ..Key::default() };
/// let both: Vec<_> = published.find(&key).iter().map(|figure| (figure.paper.key, figure.value)).collect();
/// assert_eq!(both, [("bias-2021", Some(24.99)), ("mdd-2022", Some(28.76))]);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Key<'a> {
    /// Paper key.
    pub paper: Option<&'a str>,
    /// Table number.
    pub table: Option<&'a str>,
    /// Dataset.
    pub dataset: Option<&'a str>,
    /// Split.
    pub split: Option<&'a str>,
    /// Protocol.
    pub protocol: Option<&'a str>,
    /// Method.
    pub model: Option<&'a str>,
    /// Variant; `Some("")` is the plain model.
    pub variant: Option<&'a str>,
    /// Video features.
    pub features: Option<&'a str>,
    /// Metric.
    pub metric: Option<&'a str>,
}

impl Key<'_> {
    fn matches(&self, figure: &Figure) -> bool {
        let asked_and_printed = [
            (self.paper, figure.paper.key),
            (self.table, &figure.table),
            (self.dataset, &figure.dataset),
            (self.split, &figure.split),
            (self.protocol, &figure.protocol),
            (self.model, &figure.model),
            (self.variant, &figure.variant),
            (self.features, &figure.features),
            (self.metric, &figure.metric),
        ];
        asked_and_printed.iter().all(|(asked, printed)| asked.is_none_or(|asked| asked == *printed))
    }
}

/// Every stored figure: papers in the order of [`PAPERS`], rows in the order of their tables.
#[derive(Debug, Clone)]
pub struct Published {
    figures: Vec<Figure>,
}

impl Published {
    /// Parses the tables that are compiled in.
    ///
    /// # Errors
    /// When a stored table is broken, which a test rules out.
    pub fn load() -> Result<Self> {
        let mut figures = Vec::new();
        for paper in PAPERS {
            read_table(paper, &mut figures)?;
        }
        Ok(Self { figures })
    }

    /// All of them.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// Those that fit `key`, in stored order; none when nobody printed it.
    pub fn find(&self, key: &Key<'_>) -> Vec<&Figure> {
        self.figures.iter().filter(|figure| key.matches(figure)).collect()
    }
}

/// One line of a stored table.
#[derive(Deserialize)]
struct Row {
    table: String,
    dataset: String,
    split: String,
    protocol: String,
    model: String,
    variant: String,
    features: String,
    metric: String,
    value: Option<String>,
    unit: Unit,
    note: String,
    doubt: Option<String>,
}

fn read_table(paper: &'static Paper, figures: &mut Vec<Figure>) -> Result<()> {
    let broken = |source| BenchError::Table { paper: paper.key, source };
    let mut reader = csv::Reader::from_reader(paper.table.as_bytes());
    let headers = reader.headers().map_err(broken)?.clone();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(broken)? {
        let row: Row = record.deserialize(Some(&headers)).map_err(broken)?;
        let line = record.position().map_or(0, csv::Position::line);
        let value = number(row.value.as_deref(), row.unit).map_err(|value| {
            let value = value.to_owned();
            BenchError::Value { paper: paper.key, line, value, unit: row.unit }
        })?;
        figures.push(Figure {
            paper,
            table: row.table,
            dataset: row.dataset,
            split: row.split,
            protocol: row.protocol,
            model: row.model,
            variant: row.variant,
            features: row.features,
            metric: row.metric,
            printed: row.value,
            value,
            unit: row.unit,
            note: row.note,
            doubt: row.doubt,
        });
    }
    Ok(())
}

/// The number that was printed; dashes and words have none. `Err` gives back what is no number although it should be.
fn number(printed: Option<&str>, unit: Unit) -> Result<Option<f64>, &str> {
    match (printed, unit) {
        (None, _) | (_, Unit::Text) => Ok(None),
        (Some(digits), _) => digits.parse::<f64>().ok().filter(|value| value.is_finite()).map(Some).ok_or(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> Published {
        Published::load().unwrap()
    }

    /// The only figure under `key`.
    fn only(published: &Published, key: &Key<'_>) -> Figure {
        let found = published.find(key);
        assert_eq!(found.len(), 1, "{key:?}: {found:?}");
        found[0].clone()
    }

    #[test]
    fn every_stored_table_parses() {
        let published = published();
        assert_eq!(published.figures().len(), 2443);
        let rows = |paper| published.find(&Key { paper: Some(paper), ..Key::default() }).len();
        let counts = ["bias-2021", "mdd-2022", "mvmr-2023", "molef-2024", "tvr-ranking-2024"].map(rows);
        assert_eq!(counts, [237, 231, 310, 1209, 456]);
    }

    #[test]
    fn every_file_of_published_is_compiled_in() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/published")).unwrap();
        for entry in folder {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if let Some(key) = name.strip_suffix(".csv") {
                assert!(PAPERS.iter().any(|paper| paper.key == key), "{name} has no line in PAPERS");
            }
        }
    }

    #[test]
    fn figures_keep_the_digits_as_printed() {
        let key = Key {
            model: Some("tgn"),
            dataset: Some("activitynet-captions"),
            metric: Some("R@1,IoU=0.7"),
            ..Key::default()
        };
        let figure = only(&published(), &key);
        assert_eq!(figure.printed.as_deref(), Some("17.90"));
        assert_eq!((figure.value, figure.unit), (Some(17.9), Unit::Percent));
        assert!((figure.fraction().unwrap() - 0.179).abs() < 1e-12);
        assert_eq!((figure.paper.key, figure.table.as_str(), figure.features.as_str()), ("molef-2024", "3", "c3d"));
    }

    #[test]
    fn dashes_and_words_have_no_number() {
        let published = published();
        let dash = Key {
            model: Some("mmn"),
            variant: Some(""),
            dataset: Some("mvmr-tacos"),
            metric: Some("R@50,IoU=0.3"),
            ..Key::default()
        };
        let dash = only(&published, &dash);
        assert_eq!((dash.printed.as_deref(), dash.value, dash.fraction()), (None, None, None));
        let word = Key { dataset: Some("didemo"), metric: Some("video_source"), ..Key::default() };
        let word = only(&published, &word);
        assert_eq!((word.printed.as_deref(), word.value), (Some("Flickr"), None));
    }

    #[test]
    fn doubts_are_kept_apart_from_remarks() {
        let published = published();
        let doubtful: Vec<_> = published.figures().iter().filter(|figure| figure.doubt.is_some()).collect();
        assert_eq!(doubtful.len(), 13);
        let tmlga = doubtful.iter().filter(|figure| figure.model == "tmlga" && figure.split == "test-ood");
        assert_eq!(tmlga.count(), 6, "the three values stand under two datasets");
        assert!(published.figures().iter().all(|figure| !figure.note.contains("DOUBTFUL")));
    }

    #[test]
    fn an_open_field_matches_everything_and_an_empty_one_only_the_plain_model() {
        let published = published();
        let every = Key { model: Some("mmn"), table: Some("2"), paper: Some("mvmr-2023"), ..Key::default() };
        assert!(!published.find(&every).is_empty());
        assert!(published.find(&Key { variant: Some(""), ..every }).is_empty(), "table 2 cuts the pool");
        assert!(published.find(&Key { model: Some("no such model"), ..Key::default() }).is_empty());
    }

    #[test]
    fn what_is_no_number_is_given_back() {
        for nonsense in ["12,5", "", "n.a.", "NaN", "inf"] {
            assert_eq!(number(Some(nonsense), Unit::Percent), Err(nonsense));
        }
        assert_eq!(number(Some("-3.50"), Unit::Percent), Ok(Some(-3.5)));
    }
}
