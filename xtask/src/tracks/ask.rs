//! A server of one index, and questions to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use cuemark_core::Span;
use serde_json::Value;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Answers to each question.
const LIMIT: usize = 10;

/// A server that ends with this value.
pub(super) struct Server {
    child: Child,
    address: String,
}

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
        let mut child = command.stderr(Stdio::piped()).spawn().context("cuemark serve")?;
        let mut lines = BufReader::new(child.stderr.take().context("the server says nothing")?).lines();
        let mut said = Vec::new();
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some((_, address)) = line.split_once("http://") {
                let address = address.trim().to_owned();
                // Kept from filling the pipe.
                std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
                return Ok(Self { child, address });
            }
            said.push(line);
        }
        let _ = child.wait();
        bail!("the server does not start: {}", said.join("; "))
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
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let (head, body) = reply.split_once("\r\n\r\n").context("no head")?;
        ensure!(head.split(' ').nth(1) == Some("200"), "{path}: {body}");
        Ok(serde_json::from_str(body)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
