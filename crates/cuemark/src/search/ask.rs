//! Asking an index.

use cuemark_core::{Advice, Moment, Progress, Span, VideoId};
use cuemark_search::{Effort, Filter, Index, Question, Stages};
use serde::{Deserialize, Serialize};

use super::{Found, IndexPlace, Shown};
use crate::{Error, Result};

/// Finds the moments that a sentence describes.
///
/// ```no_run
/// use cuemark::{Ask, Progress};
/// # fn main() -> cuemark::Result<()> {
/// let found = Ask::new("films", "two men arm wrestling").run(&Progress::new())?;
/// for answer in &found.answers {
///     println!("{} {:.1}-{:.1} s: {}", answer.video, answer.start, answer.end, answer.strength());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Ask {
    /// Which index.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub place: IndexPlace,
    /// What to look for.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub asking: Asking,
}

/// What to look for, and where: the one form of a question that the program, Python and the server fill in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Asking {
    /// What to look for: what is seen, said or written there. `"these words"` must be said or written, `-word` and `-"these
    /// words"` must not; `said:`, `written:` and `seen:` say where to look.
    #[cfg_attr(feature = "clap", arg(required_unless_present = "like"))]
    pub sentence: Option<String>,
    /// More like this moment: `VIDEO:START-END`, in seconds.
    #[cfg_attr(feature = "clap", arg(long, value_name = "MOMENT"))]
    pub like: Option<String>,
    /// Nothing of this, in a word or a sentence; may be repeated.
    #[cfg_attr(feature = "clap", arg(long = "not", value_name = "SENTENCE"))]
    pub unwanted: Vec<String>,
    /// Look in this video only; may be repeated.
    #[cfg_attr(feature = "clap", arg(long = "video", value_name = "VIDEO"))]
    pub videos: Vec<String>,
    /// Look only in videos with this tag; may be repeated, and then all must be there.
    #[cfg_attr(feature = "clap", arg(long = "tag", value_name = "TAG"))]
    pub tags: Vec<String>,
    /// Only moments inside this stretch of their video: `START-END`, in seconds.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SPAN"))]
    pub within: Option<String>,
    /// Answers, at most.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = Self::LIMIT))]
    pub limit: usize,
    /// Leave out answers that are less likely than this.
    #[cfg_attr(feature = "clap", arg(long, value_name = "P", default_value_t = Self::LEAST))]
    pub least: f64,
    /// The overlap above which the worse of two answers of one video is dropped.
    #[cfg_attr(feature = "clap", arg(long, value_name = "IOU", default_value_t = Self::NMS))]
    pub nms: f64,
    /// Look at every moment instead of walking the graph.
    #[cfg_attr(feature = "clap", arg(long))]
    pub exact: bool,
    /// Choose so many videos first, then look for moments in them.
    #[cfg_attr(feature = "clap", arg(long, value_name = "VIDEOS"))]
    pub two_stage: Option<usize>,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            sentence: None,
            like: None,
            unwanted: Vec::new(),
            videos: Vec::new(),
            tags: Vec::new(),
            within: None,
            limit: Self::LIMIT,
            least: Self::LEAST,
            nms: Self::NMS,
            exact: false,
            two_stage: None,
        }
    }
}

impl Ask {
    /// `sentence` asked of the index at `address`, everything else as usual.
    pub fn new(address: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { place: IndexPlace::new(address), asking: Asking::sentence(sentence) }
    }

    /// Opens the index and asks it; answers that are too unlikely are left out.
    ///
    /// # Errors
    /// When the question cannot be understood (before anything is opened), and those of the index.
    pub fn run(&self, progress: &Progress) -> Result<Found> {
        self.asking.question()?;
        progress.phase("opening", 0);
        let index = self.place.open(None)?;
        progress.check()?;
        progress.phase("searching", 0);
        self.asking.ask(&index, Shown::Likely)
    }
}

impl Asking {
    /// Answers unless somebody says otherwise.
    pub const LIMIT: usize = 10;
    /// The most answers to one question.
    pub const MOST: usize = 1000;
    /// The least probability of an answer unless somebody says otherwise.
    pub const LEAST: f64 = 0.1;
    /// The overlap of answers unless somebody says otherwise.
    pub const NMS: f64 = 0.5;
    /// Characters of a sentence at most.
    pub const LONGEST: usize = 1000;

    /// A sentence, everything else as usual.
    pub fn sentence(sentence: impl Into<String>) -> Self {
        Self { sentence: Some(sentence.into()), ..Self::default() }
    }

    /// The question, understood: words of the sentence that begin with `-` are not wanted, words between quotation marks must be
    /// said or written as they are, `said:`, `written:` and `seen:` say where to look.
    ///
    /// # Errors
    /// The first field that says what cannot be.
    pub fn question(&self) -> Result<Question> {
        let sentence = self.sentence.as_deref();
        if sentence.is_some_and(|sentence| sentence.chars().count() > Self::LONGEST) {
            return Err(Error::setting("sentence", format!("it is longer than {} characters", Self::LONGEST)));
        }
        let mut question = sentence.map_or_else(Question::default, Question::new);
        question.not.extend(self.unwanted.iter().cloned());
        question.like = self.like.as_deref().map(parse_moment).transpose()?;
        question.filter = Filter {
            videos: (!self.videos.is_empty()).then(|| self.videos.iter().map(|id| VideoId::new(id.as_str())).collect()),
            tags: self.tags.clone(),
            within: self.within.as_deref().map(|text| parse_span("within", text)).transpose()?,
        };
        question.limit = among("limit", self.limit, Self::MOST)?;
        question.least = fraction("least", self.least)?;
        question.nms = fraction("nms", self.nms)?;
        question.effort = if self.exact { Effort::Exact } else { Effort::Approximate };
        question.stages = match self.two_stage {
            None => Stages::One,
            Some(videos) => Stages::Two { videos: among("two_stage", videos, Self::MOST)? },
        };
        Ok(question)
    }

    /// Asks an index that is open already.
    ///
    /// # Errors
    /// As [`Ask::run`].
    pub fn ask(&self, index: &Index, shown: Shown) -> Result<Found> {
        Found::of(index, self.sentence.clone(), index.answer(&self.question()?)?, shown)
    }
}

fn among(setting: &'static str, number: usize, most: usize) -> Result<usize> {
    let wrong = || {
        let (bound, nearest) = if number == 0 { ("least", 1) } else { ("most", most) };
        Error::setting(setting, format!("{number} is not in 1 to {most}"))
            .advise(Advice::say(format!("pass at {bound} ")).set_to(setting, nearest.to_string()))
    };
    (1..=most).contains(&number).then_some(number).ok_or_else(wrong)
}

fn fraction(setting: &'static str, number: f64) -> Result<f64> {
    let wrong = || Error::setting(setting, format!("{number} is not in 0 to 1"));
    (0.0..=1.0).contains(&number).then_some(number).ok_or_else(wrong)
}

/// A moment as people write it: `VIDEO:START-END`, in seconds. A video's name may have colons of its own.
///
/// # Errors
/// When it is none.
pub fn parse_moment(text: &str) -> Result<Moment> {
    let wrong = || Error::setting("like", format!("`{text}` is not VIDEO:START-END"));
    let (video, place) = text.rsplit_once(':').filter(|(video, _)| !video.is_empty()).ok_or_else(wrong)?;
    Ok(Moment { video: VideoId::new(video), span: parse_span("like", place)? })
}

/// A stretch as people write it: `START-END`, in seconds; `setting` is the field that says it.
///
/// # Errors
/// When it is none.
pub fn parse_span(setting: &'static str, text: &str) -> Result<Span> {
    let wrong = || {
        Error::setting(setting, format!("`{text}` is not START-END in seconds"))
            .advise(Advice::say("such as `12.5-30`"))
    };
    let (start, end) = text.split_once('-').ok_or_else(wrong)?;
    let seconds = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong());
    Span::new(seconds(start)?, seconds(end)?).map_err(|error| Error::setting(setting, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_spans_are_read_and_nonsense_is_refused() {
        let read = parse_moment("a:b:1.5-4").unwrap();
        assert_eq!((read.video.as_str(), read.span), ("a:b", Span::new(1.5, 4.0).unwrap()));
        for text in ["a", "a:5", "a:5-2", "a:x-2", ":", ":1-2"] {
            assert!(parse_moment(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_defaults_of_files_and_of_the_library_are_the_same() {
        let read: Asking = serde_json::from_str("{}").unwrap();
        assert_eq!(read, Asking::default());
        let question = read.question().unwrap();
        let usual = Question::default();
        assert_eq!((question.limit, question.least, question.nms), (usual.limit, usual.least, usual.nms));
    }

    #[test]
    fn a_request_survives_being_written_down() {
        let ask =
            Ask { asking: Asking { like: Some("a:1-2".to_owned()), ..Asking::sentence("x -y") }, ..Ask::new("i", "") };
        let text = serde_json::to_string(&ask).unwrap();
        assert_eq!(serde_json::from_str::<Ask>(&text).unwrap(), ask);
        assert!(serde_json::from_str::<Ask>(&text.replace("limit", "limitt")).is_err());
    }

    #[test]
    fn numbers_that_cannot_be_are_named() {
        let problem = |asking: Asking| asking.question().unwrap_err().to_string();
        assert_eq!(problem(Asking { limit: 0, ..Asking::default() }), "`limit`: 0 is not in 1 to 1000");
        assert_eq!(problem(Asking { least: f64::NAN, ..Asking::default() }), "`least`: NaN is not in 0 to 1");
        assert_eq!(problem(Asking { nms: 1.5, ..Asking::default() }), "`nms`: 1.5 is not in 0 to 1");
        assert!(problem(Asking { within: Some("5".to_owned()), ..Asking::default() }).starts_with("`within`: `5`"));
    }
}
