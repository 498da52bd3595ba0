//! What can be done about an error, in words that no front end owns.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;

/// An error that knows what can be done about it.
pub trait Advise {
    /// What to do; `None` where the message says it all.
    fn advice(&self) -> Option<Advice>;

    /// The same as readers of `dialect` would write it themselves.
    fn advice_in(&self, dialect: Dialect) -> Option<String> {
        self.advice().map(|advice| advice.render(dialect))
    }
}

/// What went wrong, with its causes: every error's message names no more than its own part, and the parts stand one after
/// the other, outermost first.
pub fn whole_message(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}

/// A sentence for whoever met an error. Settings and commands in it are data, so that each front end says them in its own
/// way: a terminal as flags, Python as keyword arguments, HTTP as fields of the request.
///
/// ```
/// use cuemark_core::{Advice, Dialect};
/// let advice = Advice::say("pass ").set_to("bad_rows", "keep").and(" to swap such rows");
/// assert_eq!(advice.render(Dialect::Terminal), "pass `--bad-rows keep` to swap such rows");
/// assert_eq!(advice.render(Dialect::Python), "pass `bad_rows=\"keep\"` to swap such rows");
/// assert_eq!(advice.render(Dialect::Http), "pass `\"bad_rows\": \"keep\"` to swap such rows");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Words(Cow<'static, str>),
    Setting { name: Cow<'static, str>, value: Value },
    Command(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// The setting is a switch.
    On,
    /// This very value.
    Is(String),
    /// Whatever the reader has: `FILE`, `NAME`.
    Any(&'static str),
    /// Nothing: the sentence goes on to say what.
    Unsaid,
}

/// Whose words advice is rendered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `--bad-rows keep`, and commands as they are typed.
    Terminal,
    /// `bad_rows="keep"`, and commands as what to run in a terminal.
    Python,
    /// `"bad_rows": "keep"`.
    Http,
}

impl Advice {
    /// Begins with words.
    pub fn say(words: impl Into<Cow<'static, str>>) -> Self {
        Self { pieces: vec![Piece::Words(words.into())] }
    }

    /// "did you mean `…`?"
    pub fn nearest(name: &str) -> Self {
        Self::say(format!("did you mean `{name}`?"))
    }

    /// Begins with a command of the program, without the program's name: `weights list`.
    pub fn command(arguments: impl Into<String>) -> Self {
        Self { pieces: vec![Piece::Command(arguments.into())] }
    }

    /// More words.
    pub fn and(mut self, words: impl Into<Cow<'static, str>>) -> Self {
        self.pieces.push(Piece::Words(words.into()));
        self
    }

    /// A setting by its name alone, in `snake_case`, where the words say what to set it to.
    pub fn setting(mut self, name: &'static str) -> Self {
        self.pieces.push(Piece::Setting { name: name.into(), value: Value::Unsaid });
        self
    }

    /// A switch, named in `snake_case`. Settings with no words between them are said in one go.
    pub fn set(mut self, name: &'static str) -> Self {
        self.pieces.push(Piece::Setting { name: name.into(), value: Value::On });
        self
    }

    /// A setting with the value that helps, named in `snake_case`.
    pub fn set_to(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.pieces.push(Piece::Setting { name: name.into(), value: Value::Is(value.into()) });
        self
    }

    /// A setting whose value the reader knows: `what` is a placeholder such as `FILE`.
    pub fn set_any(mut self, name: &'static str, what: &'static str) -> Self {
        self.pieces.push(Piece::Setting { name: name.into(), value: Value::Any(what) });
        self
    }

    /// A command of the program, without the program's name.
    pub fn run(mut self, arguments: impl Into<String>) -> Self {
        self.pieces.push(Piece::Command(arguments.into()));
        self
    }

    /// The sentence as readers of `dialect` would write it themselves.
    pub fn render(&self, dialect: Dialect) -> String {
        let mut text = String::new();
        let mut pieces = self.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Words(words) => text.push_str(words),
                Piece::Command(arguments) => text.extend(["`cuemark ", arguments, "`"]),
                Piece::Setting { name, value } => {
                    text.push('`');
                    value.say(name, dialect, &mut text);
                    while let Some(Piece::Setting { name, value }) =
                        pieces.next_if(|next| matches!(next, Piece::Setting { .. }))
                    {
                        text.push_str(if dialect == Dialect::Terminal { " " } else { ", " });
                        value.say(name, dialect, &mut text);
                    }
                    text.push('`');
                }
            }
        }
        text
    }

    /// The settings that it names, with the value that helps where there is one: what a program could act upon.
    pub fn settings(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Setting { name, value: Value::Is(value) } => Some((name.as_ref(), Some(value.as_str()))),
            Piece::Setting { name, value: Value::On } => Some((name.as_ref(), Some("true"))),
            Piece::Setting { name, value: Value::Any(_) | Value::Unsaid } => Some((name.as_ref(), None)),
            Piece::Words(_) | Piece::Command(_) => None,
        })
    }
}

impl Value {
    fn say(&self, name: &str, dialect: Dialect, text: &mut String) {
        let flag = || name.replace('_', "-");
        // Writing to a string does not fail.
        let _ = match (dialect, self) {
            (Dialect::Terminal, Self::On | Self::Unsaid) => write!(text, "--{}", flag()),
            (Dialect::Terminal, Self::Is(value)) => write!(text, "--{} {value}", flag()),
            (Dialect::Terminal, Self::Any(what)) => write!(text, "--{} {what}", flag()),
            (Dialect::Python, Self::On) => write!(text, "{name}=True"),
            (Dialect::Python, Self::Is(value)) => write!(text, "{name}={}", literal(value)),
            (Dialect::Python, Self::Any(_)) => write!(text, "{name}=…"),
            (Dialect::Python, Self::Unsaid) => write!(text, "{name}="),
            (Dialect::Http, Self::On) => write!(text, "\"{name}\": true"),
            (Dialect::Http, Self::Is(value)) => write!(text, "\"{name}\": {}", literal(value)),
            (Dialect::Http, Self::Any(_) | Self::Unsaid) => write!(text, "\"{name}\""),
        };
    }
}

/// A value as Python and JSON write it: numbers as they are, everything else between quotation marks.
fn literal(value: &str) -> Cow<'_, str> {
    if value.parse::<f64>().is_ok_and(f64::is_finite) { value.into() } else { format!("{value:?}").into() }
}

/// Words that name no setting.
impl From<&'static str> for Advice {
    fn from(words: &'static str) -> Self {
        Self::say(words)
    }
}

/// Words that name no setting.
impl From<String> for Advice {
    fn from(words: String) -> Self {
        Self::say(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_said_in_the_words_of_each_front_end() {
        let advice = Advice::say("pass ").set("force").and(" to replace it");
        assert_eq!(advice.render(Dialect::Terminal), "pass `--force` to replace it");
        assert_eq!(advice.render(Dialect::Python), "pass `force=True` to replace it");
        assert_eq!(advice.render(Dialect::Http), "pass `\"force\": true` to replace it");
        assert_eq!(advice.settings().collect::<Vec<_>>(), [("force", Some("true"))]);
    }

    #[test]
    fn commands_are_typed_in_a_terminal_whoever_reads() {
        let advice = Advice::say("run ").run("weights pull minilm");
        assert_eq!(advice.render(Dialect::Python), "run `cuemark weights pull minilm`");
    }

    #[test]
    fn settings_side_by_side_are_written_as_one() {
        let advice = Advice::say("pass ").set("rows_span_duration").set_any("truth", "FILE");
        assert_eq!(advice.render(Dialect::Terminal), "pass `--rows-span-duration --truth FILE`");
        assert_eq!(advice.render(Dialect::Python), "pass `rows_span_duration=True, truth=…`");
        assert_eq!(advice.render(Dialect::Http), "pass `\"rows_span_duration\": true, \"truth\"`");
    }

    #[test]
    fn numbers_are_said_without_quotation_marks() {
        let advice = Advice::say("pass ").set_to("two_stage", "1").set_to("mode", "nan");
        assert_eq!(advice.render(Dialect::Terminal), "pass `--two-stage 1 --mode nan`");
        assert_eq!(advice.render(Dialect::Python), "pass `two_stage=1, mode=\"nan\"`");
        assert_eq!(advice.render(Dialect::Http), "pass `\"two_stage\": 1, \"mode\": \"nan\"`");
    }

    #[test]
    fn a_setting_is_named_alone_where_the_words_say_what_to_set_it_to() {
        let advice = Advice::say("name the layout with ").setting("pred_format").and(": csv, trec");
        assert_eq!(advice.render(Dialect::Terminal), "name the layout with `--pred-format`: csv, trec");
        assert_eq!(advice.render(Dialect::Python), "name the layout with `pred_format=`: csv, trec");
        assert_eq!(advice.settings().collect::<Vec<_>>(), [("pred_format", None)]);
    }

    #[test]
    fn a_message_says_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot read `x`")]
        struct Outer(#[source] std::io::Error);
        let error = Outer(std::io::Error::other("the disk is full"));
        assert_eq!(whole_message(&error), "cannot read `x`: the disk is full");
    }
}
