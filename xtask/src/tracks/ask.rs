//! A server of one index, and questions to it.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cuemark_core::Span;
use serde_json::Value;

use crate::client::{self, Served};

/// Answers to each question.
const LIMIT: usize = 10;

/// The server of one index.
pub(super) struct Server(Served);

/// Which answers are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Least {
    /// All, however improbable.
    Nothing,
    /// Those that people get to see.
    AsShown,
}

/// One answer of the ranking.
pub(super) struct Answer {
    pub(super) video: String,
    pub(super) span: Span,
    pub(super) probability: f64,
    /// Why, as the program says it.
    pub(super) because: String,
}

impl Server {
    /// Starts `command`, a `cuemark serve` on any port, and waits until it listens.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        Served::start(command).map(Self)
    }

    /// The answers to `question`, best first.
    pub(super) fn ask(&self, question: &str, least: Least) -> Result<Vec<Answer>> {
        let least = if least == Least::Nothing { "&least=0" } else { "" };
        let found = self.get(&format!("/api/v1/search?q={}&limit={LIMIT}{least}", escaped(question)))?;
        let answers = found["answers"].as_array().context("no answers")?;
        // Without `least` all are given, those that are good enough first.
        let shown = if least.is_empty() { found["good"].as_u64().context("`good`")? as usize } else { answers.len() };
        answers.iter().take(shown).map(Answer::parse).collect()
    }

    /// What was heard and read in a film.
    pub(super) fn lines(&self, video: &str) -> Result<Vec<String>> {
        let found = self.get(&format!("/api/v1/videos/{}/lines", escaped(video)))?;
        let lines = found["lines"].as_array().context("no lines")?;
        Ok(lines.iter().filter_map(|line| line["text"].as_str()).map(str::to_owned).collect())
    }

    fn get(&self, path: &str) -> Result<Value> {
        let reply = client::get(&self.0.address, path)?;
        ensure!(reply.status == 200, "{path}: {}", String::from_utf8_lossy(&reply.body));
        reply.json()
    }
}

impl Answer {
    fn parse(value: &Value) -> Result<Self> {
        let number = |name: &str| value[name].as_f64().with_context(|| format!("an answer without `{name}`"));
        let because = value["because"].as_array().into_iter().flatten();
        let because = because.filter_map(|why| Some(format!("{}: {}", why["track"].as_str()?, why["text"].as_str()?)));
        Ok(Self {
            video: value["video"].as_str().context("an answer without `video`")?.to_owned(),
            span: Span::new(number("start")?, number("end")?)?,
            probability: number("probability")?,
            because: because.collect::<Vec<_>>().join("; "),
        })
    }
}

/// For the query of an address.
fn escaped(text: &str) -> String {
    let one =
        |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_survive_in_an_address() {
        assert_eq!(escaped("seen: now, Zoë"), "seen%3A%20now%2C%20Zo%C3%AB");
    }
}
