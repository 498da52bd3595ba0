//! What is known about a dataset before a byte of it is read.

use cuemark_formats::{ReadError, Source};

use crate::Layout;

/// One dataset: its name, where it comes from, its files and what was published about them.
#[derive(Debug)]
pub struct DatasetCard {
    /// The name that commands take: `charades-sta`.
    pub name: &'static str,
    /// One line about it.
    pub title: &'static str,
    /// The public repository its files come from, `owner/name`.
    pub origin: &'static str,
    /// The licence that the origin states.
    pub licence: &'static str,
    /// Where its query ids come from.
    pub ids: QueryIds,
    /// Its split files, in the order that tables list them; several may name the same file.
    pub files: &'static [FileCard],
    /// Files beside the splits, with numbers that can be checked.
    pub sides: &'static [SideCard],
    /// What was published about all splits together.
    pub overall: Expected,
}

/// Where a dataset's query ids come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryIds {
    /// The files state them.
    Published,
    /// The running number of the pair in its file, from 0, counted before any row is dropped.
    Running,
}

/// One split of a dataset and the file it lies in.
#[derive(Debug)]
pub struct FileCard {
    /// The split's name in our words.
    pub split: &'static str,
    /// The file below the dataset's folder, without `.gz` or `.zst`.
    pub path: &'static str,
    /// Other names under which the same file goes round.
    pub also: &'static [&'static str],
    /// How it is laid out.
    pub layout: &'static Layout,
    /// The split whose queries this file gives again; figures over all splits leave it out when that one is there.
    pub repeats: Option<&'static str>,
    /// What was published about it.
    pub expected: Expected,
}

impl FileCard {
    /// A file about which no figure was published.
    pub(crate) const fn new(split: &'static str, path: &'static str, layout: &'static Layout) -> Self {
        Self { split, path, also: &[], layout, repeats: None, expected: Expected::NOTHING }
    }

    /// The same with other names it goes by.
    pub(crate) const fn also(mut self, names: &'static [&'static str]) -> Self {
        self.also = names;
        self
    }

    /// The same, saying that `split` holds the same queries.
    pub(crate) const fn repeating(mut self, split: &'static str) -> Self {
        self.repeats = Some(split);
        self
    }

    /// The same with its published figures.
    pub(crate) const fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }
}

/// Published figures of one file; `None` where nobody published one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Distinct videos.
    pub videos: Option<usize>,
    /// Queries.
    pub queries: Option<usize>,
    /// Query-moment pairs.
    pub pairs: Option<usize>,
    /// Mean duration of a video, in seconds; every video counts once.
    pub video_seconds: Option<f64>,
    /// Mean length of a moment, in seconds; every pair counts once.
    pub moment_seconds: Option<f64>,
    /// Mean number of whitespace-separated words of a query.
    pub words: Option<f64>,
}

impl Expected {
    /// No figure at all.
    pub const NOTHING: Self =
        Self { videos: None, queries: None, pairs: None, video_seconds: None, moment_seconds: None, words: None };

    /// A file in which every query has one moment.
    pub(crate) const fn pairs(videos: usize, pairs: usize) -> Self {
        Self { videos: Some(videos), queries: Some(pairs), pairs: Some(pairs), ..Self::NOTHING }
    }

    /// A file of which the queries are counted.
    pub(crate) const fn queries(queries: usize) -> Self {
        Self { queries: Some(queries), ..Self::NOTHING }
    }

    /// The same with its number of videos.
    pub(crate) const fn videos(mut self, videos: usize) -> Self {
        self.videos = Some(videos);
        self
    }

    /// The same with its number of query-moment pairs.
    pub(crate) const fn moments(mut self, pairs: usize) -> Self {
        self.pairs = Some(pairs);
        self
    }

    /// The same with the mean video, in seconds.
    pub(crate) const fn video_seconds(mut self, seconds: f64) -> Self {
        self.video_seconds = Some(seconds);
        self
    }

    /// The same with the mean moment, in seconds.
    pub(crate) const fn moment_seconds(mut self, seconds: f64) -> Self {
        self.moment_seconds = Some(seconds);
        self
    }

    /// The same with the mean number of words of a query.
    pub(crate) const fn words(mut self, words: f64) -> Self {
        self.words = Some(words);
        self
    }

    /// Whether nothing was published.
    pub fn is_nothing(&self) -> bool {
        *self == Self::NOTHING
    }
}

/// Files that hold no split, but numbers that can be checked: durations, ratings, predictions.
#[derive(Debug)]
pub struct SideCard {
    /// The files that are counted together, below the dataset's folder, without `.gz` or `.zst`.
    pub paths: &'static [&'static str],
    /// What they hold.
    pub about: &'static str,
    /// Published counts, by what is counted.
    pub expected: &'static [(&'static str, usize)],
    /// Counts what the files hold, by what is counted.
    pub(crate) count: fn(&[Source]) -> Result<Counts, ReadError>,
}

/// How many there are of what.
pub(crate) type Counts = Vec<(String, usize)>;
