//! An external program that reads questions and writes answers, one JSON object a line, one question at a time.
//!
//! A rewriter is asked `{"qid":"7","original":"Ross sighs.","rewritten":"Ross sighs.","faults":[],"attempt":1,"temperature":0.0,
//! "prompt":"…"}` and answers `{"qid":"7","query":"a man sighs."}`; a recogniser of names is asked `{"sentence":"…"}` and answers
//! `{"names":["Ross"]}` or `{"score":0.9}`. What the program writes to its standard error goes where ours does.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::RewriteFault;
use super::ask::{Asked, Question, Rewriter};
use crate::{ProtocolError, Result};

/// The longest answer that is read, in bytes.
pub(super) const LONGEST_ANSWER: u64 = 1 << 20;
/// After so many silences in a row nobody is asked again.
pub(super) const PATIENCE: usize = 3;

/// How to start the program and how long to wait for each answer.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long one answer may take.
    pub timeout: Duration,
}

#[derive(Serialize)]
struct Line<'a> {
    qid: &'a str,
    original: &'a str,
    rewritten: &'a str,
    faults: &'a [RewriteFault],
    attempt: usize,
    temperature: f64,
    prompt: &'a str,
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

impl Rewriter for Program {
    fn name(&self) -> String {
        format!("program {}", self.command.join(" "))
    }

    fn connect(&self) -> Result<Box<dyn Asked + '_>> {
        Ok(Box::new(self.start()?))
    }
}

impl Asked for Running<'_> {
    fn ask(&mut self, question: &Question<'_>) -> Result<Option<String>> {
        let line = Line {
            qid: question.qid,
            original: question.original,
            rewritten: question.rewritten,
            faults: question.faults,
            attempt: question.attempt,
            temperature: question.temperature,
            prompt: &question.opening(),
        };
        self.exchange(&line, |answer| {
            let answer: Answer = serde_json::from_str(answer).ok()?;
            (answer.qid == question.qid).then_some(answer.query)
        })
    }
}

impl Program {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(&self) -> Result<Running<'_>> {
        Ok(Running { program: self, connection: Some(self.connection()?), silences: 0 })
    }

    fn wrong(&self, problem: &dyn ToString) -> ProtocolError {
        ProtocolError::Program { program: self.command.join(" "), problem: problem.to_string() }
    }

    fn connection(&self) -> Result<Connection> {
        let [name, arguments @ ..] = &self.command[..] else {
            return Err(self.wrong(&"no program is named"));
        };
        let mut child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| self.wrong(&error))?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(self.wrong(&"has no standard input or output"));
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
    /// What `usable` makes of the program's answer; `None` when there was none in time. The program is then started afresh, so
    /// that a late answer cannot be taken for the next one, and given up after a few silences in a row.
    pub(super) fn exchange<T>(
        &mut self,
        question: &impl Serialize,
        usable: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        if self.silences >= PATIENCE {
            return Ok(None);
        }
        let connection = match &self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.program.connection()?),
        };
        let line = serde_json::to_string(question).map_err(|error| self.program.wrong(&error))?;
        let asked = connection.questions.send(line + "\n").is_ok();
        let answer = connection.answers.recv_timeout(self.program.timeout).ok().filter(|_| asked);
        let found = answer.and_then(|line| usable(&line));
        if found.is_some() {
            self.silences = 0;
        } else {
            self.silences += 1;
            self.connection = None;
        }
        Ok(found)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left to do about an error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
