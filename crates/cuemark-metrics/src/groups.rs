//! Results for a part of the queries: by length, position, words, verb or kind.

use std::fmt;

use cuemark_core::{Span, Truth};

/// QVHighlights' ranges of moment length, in seconds, lower bound outside, upper inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LengthRange {
    /// Up to 10 s.
    Short,
    /// 10 to 30 s.
    Middle,
    /// 30 to 150 s.
    Long,
}

impl LengthRange {
    /// Every range, the shortest first.
    pub const ALL: [Self; 3] = [Self::Short, Self::Middle, Self::Long];

    /// Whether `span` is of this length.
    pub fn holds(self, span: Span) -> bool {
        let (above, up_to) = match self {
            Self::Short => (0.0, 10.0),
            Self::Middle => (10.0, 30.0),
            Self::Long => (30.0, 150.0),
        };
        span.len() > above && span.len() <= up_to
    }
}

impl fmt::Display for LengthRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "short",
            Self::Middle => "middle",
            Self::Long => "long",
        })
    }
}

/// A part of the queries, written behind a metric's name: `R@1,IoU=0.5/type=v`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Group {
    /// Only moments of this length count, and only queries that have one (QVHighlights: `/short`).
    Moments(LengthRange),
    /// Only queries that fall into one class of a grouping (`/verb=open`).
    Queries(Grouping, String),
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moments(range) => write!(f, "{range}"),
            Self::Queries(grouping, class) => write!(f, "{}={class}", grouping.name()),
        }
    }
}

/// A way to divide queries into classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// By the length of the query's longest right moment, as a share of its video.
    Length,
    /// By where the first right moment's centre lies: first, second or last third of the video.
    Position,
    /// By the number of words.
    Words,
    /// By the query's first verb.
    Verb,
    /// By the dataset's own kind of query.
    Type,
}

impl Grouping {
    /// Every grouping.
    pub const ALL: [Self; 5] = [Self::Length, Self::Position, Self::Words, Self::Verb, Self::Type];

    /// Its name on the command line and in metric names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Position => "position",
            Self::Words => "words",
            Self::Verb => "verb",
            Self::Type => "type",
        }
    }

    /// The grouping called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|grouping| grouping.name() == name)
    }

    /// The class that `truth` falls into; `None` when what decides it is not known.
    pub fn class_of(self, truth: &Truth) -> Option<String> {
        let share = |seconds: f64| truth.duration().filter(|whole| *whole > 0.0).map(|whole| seconds / whole);
        match self {
            Self::Length => {
                let longest = truth.right().map(|moment| moment.span.len()).reduce(f64::max)?;
                Some(bin(share(longest)?, &[(0.1, "0-10%"), (0.3, "10-30%"), (0.5, "30-50%")], "50-100%"))
            }
            Self::Position => {
                let centre = truth.right().next()?.span.centre();
                Some(bin(share(centre)?, &[(1.0 / 3.0, "first-third"), (2.0 / 3.0, "second-third")], "last-third"))
            }
            Self::Words => {
                let words = truth.query.text.split_whitespace().count() as f64;
                Some(bin(words, &[(5.0, "1-5"), (10.0, "6-10"), (20.0, "11-20")], "21+"))
            }
            Self::Verb => cuemark_text::first_verb_lemma(&truth.query.text),
            Self::Type => truth.kind.clone(),
        }
    }
}

/// The name of the first bin whose upper bound (inside) is not exceeded.
fn bin(value: f64, bins: &[(f64, &str)], last: &str) -> String {
    bins.iter().find(|(up_to, _)| value <= *up_to).map_or(last, |(_, name)| name).to_owned()
}
