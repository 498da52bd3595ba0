//! Free-text answers of video language models, one text per query, and the spans that they name.
//!
//! ```json
//! {"qid": 2579, "text": "The person opens the fridge from 1:05 to 1:12."}
//! ```
//! What is understood: seconds in many wordings, `mm:ss`, `hh:mm:ss.mmm`, ranges with dashes of all kinds, `from … to …`,
//! `between … and …`, `starts at … ends at …`, `at 12 s for 3 seconds`, `the first 10 seconds`, `until the end`, tags with
//! numbers in or around them, JSON and Python lists inside prose, percent of the video, frame numbers, minutes and seconds
//! in words, numbers in words, decimal commas, several spans. Of an answer that thinks aloud the final answer counts.
//!
//! Rules for what is not plain:
//! - **One time only** is an empty span at that time: where the moment ends was not said, and nothing is made up. Two times
//!   that nothing links are a span from the one to the other; more are as many empty spans.
//! - **Swapped ends** are put in order. A span that is named twice counts once.
//! - **Numbers without a unit** are seconds, unless the parser is told otherwise; parts of the video only where the answer
//!   says so (`normalized`, `fraction`). A frame needs a rate, from the answer (`at 30 fps`) or from whoever asks.
//! - **Not times**: list numbers, labels (`player 23`), counts (`2 people`), years, dates, confidences, lengths of the video.
//! - **Refusals** name no span, whatever numbers they hold: `there is no such moment between 0 and 30 seconds`. A hedge
//!   does: `I cannot be sure, but roughly between 5 and 9`.
//! - **Questions** that the answer repeats do not count where anything else does.
//!
//! Every span keeps the bytes that it was read from, the numbers among them, and the [`Rule`] that fired.

mod cue;
mod final_answer;
mod labels;
mod layout;
mod lex;
mod number_words;
mod parse;
mod refusal;
mod spans;
mod times;
mod units;
mod words;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use cuemark_core::nearest::nearest;
use cuemark_core::{Advice, Advise};
use regex::Regex;

pub use layout::{AnswerCounts, AnswerReading, ID_FIELDS, TEXT_FIELDS, counts, read, with_durations, write};

/// How the spans of an answer are found.
#[derive(Debug, Clone)]
pub struct AnswerParser {
    how: How,
    frame_rate: Option<f64>,
}

#[derive(Debug, Clone)]
enum How {
    Auto,
    Seconds,
    Percent,
    Frames,
    Fractions,
    FirstTwo,
    Pattern(Regex),
}

/// One span that an answer names, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedSpan {
    /// Its start.
    pub start: f64,
    /// Its end, never before the start.
    pub end: f64,
    /// The bytes of the answer from its first number to its last.
    pub bytes: Range<usize>,
    /// The numbers, with their units; empty where words alone say it (`the whole video`).
    pub numbers: Vec<Range<usize>>,
    /// What made a span of it.
    pub rule: Rule,
}

/// What became of one answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// Its spans, in the order of the text.
    pub spans: Vec<ParsedSpan>,
    /// Why there are none.
    pub failure: Option<Failure>,
}

impl Parsed {
    fn failed(failure: Failure) -> Self {
        Self { spans: Vec::new(), failure: Some(failure) }
    }

    fn one(span: ParsedSpan) -> Self {
        Self { spans: vec![span], failure: None }
    }
}

macro_rules! named {
    ($(#[$about:meta])* $kind:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $kind { $($(#[$doc])* $variant,)+ }

        impl $kind {
            /// Every one, in the order that reports list them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name in reports and files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// What made a span of some numbers.
    Rule {
        /// `5 - 9 s`, `from 5 to 9`, `between 5 and 9`.
        Range = "range",
        /// `starts at 5, ends at 9`, `{"start": 5, "end": 9}`.
        StartEnd = "start-end",
        /// `[5, 9]`
        Brackets = "brackets",
        /// `<5> <9>`
        Tags = "tags",
        /// `at 12 s for 3 seconds`
        Lasting = "lasting",
        /// `the first 10 seconds`, `until 12 s`
        Edge = "edge",
        /// `the whole video`
        Words = "words",
        /// Two times that nothing links.
        TwoTimes = "two-times",
        /// Two numbers and hardly anything else.
        TwoNumbers = "two-numbers",
        /// One time: an empty span.
        OneTime = "one-time",
        /// The pattern that was asked for.
        Pattern = "pattern",
    }
}

named! {
    /// Why an answer names no span.
    Failure {
        /// There is no text.
        Empty = "empty",
        /// It says that there is nothing, or that nothing is known.
        Refusal = "refusal",
        /// It says something and no time.
        NoTime = "no time",
        /// It counts from the end, in percent or in parts, and nobody knows how long the video is.
        NoDuration = "needs the duration",
        /// It names frames and nobody knows their rate.
        NoFrameRate = "needs the frame rate",
        /// It thinks and never comes to an answer.
        Unfinished = "unfinished",
    }
}

impl Default for AnswerParser {
    fn default() -> Self {
        Self { how: How::Auto, frame_rate: None }
    }
}

impl AnswerParser {
    /// The names of parsers, in the order that help lists them.
    pub const NAMES: [&'static str; 6] = ["auto", "seconds", "percent", "frames", "fractions", "first-two"];

    /// The same with a frame rate, for answers that name frames.
    #[must_use]
    pub fn with_frame_rate(mut self, rate: Option<f64>) -> Self {
        self.frame_rate = rate;
        self
    }

    /// The spans that `text` names; `duration` is the video's in seconds.
    ///
    /// Takes time and memory in proportion to the text, whatever it is; of a text beyond 256 KiB only the end is read.
    pub fn parse(&self, text: &str, duration: Option<f64>) -> Parsed {
        let mut from = text.len().saturating_sub(LONGEST);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        let mut parsed = parse::parse(&self.how, self.frame_rate, text.get(from..).unwrap_or_default(), duration);
        for span in &mut parsed.spans {
            let numbers = span.numbers.iter_mut();
            for bytes in numbers.chain([&mut span.bytes]).filter(|_| from > 0) {
                *bytes = bytes.start + from..bytes.end + from;
            }
        }
        parsed
    }
}

/// A parser that is neither a name nor a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is neither a parser nor a pattern: {problem}")]
pub struct UnknownParser {
    name: String,
    problem: String,
}

impl Advise for UnknownParser {
    fn advice(&self) -> Option<Advice> {
        Some(match nearest(&self.name, AnswerParser::NAMES) {
            Some(near) => Advice::nearest(near),
            None => format!(
                "parsers are {}; a pattern is like `(?<start>[0-9.]+) - (?<end>[0-9.]+)`",
                AnswerParser::NAMES.join(", ")
            )
            .into(),
        })
    }
}

/// The longest text that is read, in bytes; of a longer one the end, where answers stand.
const LONGEST: usize = 256 << 10;

/// What a pattern may grow to in memory, in bytes.
const PATTERN: usize = 1 << 20;

impl FromStr for AnswerParser {
    type Err = UnknownParser;

    /// A name, or a regular expression with the groups `start` and `end` or with two groups.
    fn from_str(name: &str) -> Result<Self, UnknownParser> {
        let how = match name {
            "auto" => How::Auto,
            "seconds" => How::Seconds,
            "percent" => How::Percent,
            "frames" => How::Frames,
            "fractions" => How::Fractions,
            "first-two" => How::FirstTwo,
            pattern => {
                let fault = |problem: String| UnknownParser { name: crate::fault::shorten(name), problem };
                let built = regex::RegexBuilder::new(pattern).size_limit(PATTERN).build();
                let regex = built.map_err(|error| {
                    fault(error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
                })?;
                if regex.captures_len() < 3 {
                    return Err(fault("a pattern has two groups, the start and the end".to_owned()));
                }
                How::Pattern(regex)
            }
        };
        Ok(Self { how, frame_rate: None })
    }
}
