//! An external rewriter: a program that reads questions and writes answers, one JSON object a line.
//!
//! A question is `{"qid":"7","original":"Ross sighs.","rewritten":"a person sighs.","faults":["meaning-lost"],
//! "attempt":1}`; the answer is `{"qid":"7","query":"a man sighs."}`. Questions come one at a time; what the program
//! writes to its standard error goes where ours does.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Fault, Rewrite};
use crate::{ProtocolError, Result};

/// The longest answer that is read, in bytes.
const LONGEST_ANSWER: u64 = 1 << 20;
/// After so many silences in a row the program is not asked again.
const PATIENCE: usize = 3;

/// How to start the program and how long to wait for each answer.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long one answer may take.
    pub timeout: Duration,
}

#[derive(Serialize)]
struct Question<'a> {
    qid: &'a str,
    original: &'a str,
    rewritten: &'a str,
    faults: &'a [Fault],
    attempt: usize,
}

#[derive(Deserialize)]
struct Answer {
    qid: String,
    query: String,
}

/// A program that has been started; ended when dropped.
pub(super) struct Running<'a> {
    program: &'a Program,
    connection: Option<Connection>,
    silences: usize,
}

struct Connection {
    child: Child,
    questions: Sender<String>,
    answers: Receiver<String>,
}

impl Program {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(&self) -> Result<Running<'_>> {
        Ok(Running { program: self, connection: Some(self.connect()?), silences: 0 })
    }

    fn connect(&self) -> Result<Connection> {
        let wrong = |problem: &dyn ToString| ProtocolError::Program {
            program: self.command.join(" "),
            problem: problem.to_string(),
        };
        let [name, arguments @ ..] = &self.command[..] else {
            return Err(wrong(&"no program is named"));
        };
        let mut child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| wrong(&error))?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(wrong(&"has no standard input or output"));
        };
        // Threads of their own, so that a program that neither reads nor writes cannot hold us up; both end with it.
        let (questions, asked) = channel::<String>();
        std::thread::spawn(move || {
            for question in asked {
                if input.write_all(question.as_bytes()).and_then(|()| input.flush()).is_err() {
                    break;
                }
            }
        });
        let (answered, answers) = sync_channel(1);
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                let read = output.by_ref().take(LONGEST_ANSWER).read_until(b'\n', &mut line);
                let ended = !matches!(read, Ok(1..)) || line.last() != Some(&b'\n');
                let sent = answered.send(String::from_utf8_lossy(&line).into_owned());
                if ended || sent.is_err() {
                    break;
                }
            }
        });
        Ok(Connection { child, questions, answers })
    }
}

impl Running<'_> {
    /// The program's sentence; `None` when it gave no usable answer in time. It is then started afresh, so that a late
    /// answer cannot be taken for the next one, and given up after a few silences in a row.
    pub(super) fn ask(&mut self, rewrite: &Rewrite) -> Result<Option<String>> {
        if self.silences >= PATIENCE {
            return Ok(None);
        }
        let connection = match &self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.program.connect()?),
        };
        let question = Question {
            qid: rewrite.qid.as_str(),
            original: &rewrite.original,
            rewritten: &rewrite.rewritten,
            faults: &rewrite.faults,
            attempt: rewrite.attempts,
        };
        let line = serde_json::to_string(&question).map_err(|error| ProtocolError::Program {
            program: self.program.command.join(" "),
            problem: error.to_string(),
        })?;
        let asked = connection.questions.send(line + "\n").is_ok();
        let answer = connection.answers.recv_timeout(self.program.timeout).ok().filter(|_| asked);
        let usable = answer
            .and_then(|line| serde_json::from_str::<Answer>(&line).ok())
            .filter(|answer| answer.qid == rewrite.qid.as_str() && !answer.query.trim().is_empty());
        match usable {
            Some(answer) => {
                self.silences = 0;
                Ok(Some(answer.query))
            }
            None => {
                self.silences += 1;
                self.connection = None;
                Ok(None)
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left to do about an error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
