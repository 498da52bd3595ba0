//! Queries without the names of characters: what imprecise queries are made by.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Progress};
use cuemark_formats::{Overwrite, Source};
use cuemark_protocols::ranked::rewrite::{
    Asking, Endpoint, EndpointNames, KeptAnswers, NameRecogniser, PROMPT, Program, ProgramNames, RewriteReport,
    RewriteSettings, Rewriter, Rewrites, StandIns, compare_by_words, read_queue, rewrite, rewrite_by,
};
use cuemark_text::names::NameList;
use serde::{Deserialize, Serialize};

use crate::{Error, Queries, Result};

/// Takes the names of characters out of queries, with two checks and queues for what fails them.
///
/// A language model is asked about every query, through a program or an endpoint; where neither is named, the rules do what they can.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct TakeNamesOut {
    /// The queries.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub queries: Queries,
    /// For the rules, `name,noun` lines: who is replaced by what.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE.csv", conflicts_with_all = ["program", "endpoint"]))]
    pub names: Option<Utf8PathBuf>,
    /// A program that is asked about every query, in JSON lines.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "COMMAND", conflicts_with = "endpoint"))]
    pub program: Option<String>,
    /// A server that is asked about every query the way OpenAI's is, such as https://host/v1.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "URL", requires = "model"))]
    pub endpoint: Option<String>,
    /// The server's model.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", requires = "endpoint"))]
    pub model: Option<String>,
    /// The variable of the environment that holds the server's key; a server that wants none needs none.
    #[serde(default = "key_variable")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "VARIABLE", default_value_t = key_variable()))]
    pub key_variable: String,
    /// What the model is told, with `{sentence}` where the sentence goes. Default: a prompt of ours
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub prompt: Option<Utf8PathBuf>,
    /// Who looks for names that are left: list, endpoint (the same model), or program:COMMAND.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHO", default_value_t))]
    pub names_by: NamesBy,
    /// How often one query is asked about.
    #[serde(default = "attempts")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = attempts()))]
    pub attempts: usize,
    /// Questions that are open at a time, at most.
    #[serde(default = "parallel")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = parallel()))]
    pub parallel: usize,
    /// Seconds that one answer may take.
    #[serde(default = "timeout")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS", default_value_t = timeout()))]
    pub timeout: f64,
    /// A reviewed queue whose approved sentences are taken.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE.jsonl"))]
    pub reviewed: Option<Utf8PathBuf>,
    /// The folder for queries.jsonl, retry.jsonl, review.jsonl and answers.jsonl, which is what a stopped run goes on from.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    pub out: Utf8PathBuf,
    /// Replace what is there already; answers are kept.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

fn key_variable() -> String {
    "OPENAI_API_KEY".to_owned()
}

fn attempts() -> usize {
    RewriteSettings::default().attempts
}

fn parallel() -> usize {
    4
}

fn timeout() -> f64 {
    60.0
}

/// Who looks for names that are left in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum NamesBy {
    /// A list, and rules for names that are on none.
    #[default]
    List,
    /// The language model that rewrites.
    Endpoint,
    /// A program.
    Program(String),
}

impl FromStr for NamesBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "list" => Ok(Self::List),
            None if text == "endpoint" => Ok(Self::Endpoint),
            Some(("program", command)) if !command.trim().is_empty() => Ok(Self::Program(command.trim().to_owned())),
            _ => Err(format!("`{text}` is none of list, endpoint, program:COMMAND")),
        }
    }
}

impl fmt::Display for NamesBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List => f.write_str("list"),
            Self::Endpoint => f.write_str("endpoint"),
            Self::Program(command) => write!(f, "program:{command}"),
        }
    }
}

impl TryFrom<String> for NamesBy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<NamesBy> for String {
    fn from(by: NamesBy) -> Self {
        by.to_string()
    }
}

/// What came of it, and where it lies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamesTakenOut {
    /// The counts.
    #[serde(flatten)]
    pub report: RewriteReport,
    /// Who rewrote: `rules`, a program, or a model and its address.
    pub by: String,
    /// The folder.
    pub out: Utf8PathBuf,
}

impl TakeNamesOut {
    /// The queries of a file, by rule, into a folder.
    pub fn new(queries: Queries, out: impl Into<Utf8PathBuf>) -> Self {
        Self {
            queries,
            names: None,
            program: None,
            endpoint: None,
            model: None,
            key_variable: key_variable(),
            prompt: None,
            names_by: NamesBy::default(),
            attempts: attempts(),
            parallel: parallel(),
            timeout: timeout(),
            reviewed: None,
            out: out.into(),
            force: false,
        }
    }

    /// Rewrites and writes. Stopped, it keeps every answer: the same request goes on from there.
    ///
    /// # Errors
    /// When settings contradict each other, the files are there and may not be replaced, nobody answers at all, and those of the
    /// readers.
    pub fn run(&self, progress: &Progress) -> Result<NamesTakenOut> {
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        overwrite.check(&self.out.join("queries.jsonl"))?;
        let settings = RewriteSettings { attempts: self.attempts, ..RewriteSettings::default() };
        let endpoint = self.open_endpoint()?;
        let program = self.program.as_deref().map(|command| self.program(command)).transpose()?;
        let rewriter: Option<&dyn Rewriter> = match (&program, &endpoint) {
            (Some(_), Some(_)) => {
                return Err(Error::setting("program", "an endpoint is asked already: one or the other"));
            }
            (Some(program), None) => Some(program),
            (None, Some(endpoint)) => Some(endpoint),
            (None, None) => None,
        };
        let queries = self.queries.read()?;
        let mut found = match rewriter {
            Some(rewriter) => self.ask(&queries, rewriter, endpoint.as_ref(), &settings, progress)?,
            None if self.names_by != NamesBy::List => {
                let advice = Advice::say("name a ").setting("program").and(" or an ").setting("endpoint");
                return Err(Error::setting("names_by", "the rules look names up in their own list").advise(advice));
            }
            None => {
                let stand_ins = match &self.names {
                    Some(path) => StandIns::read(&Source::new(path))?,
                    None => StandIns::new([]),
                };
                rewrite(&queries, &stand_ins, NameList::embedded(), &compare_by_words, &settings)?
            }
        };
        if let Some(path) = &self.reviewed {
            found.approve(&read_queue(&Source::new(path))?);
        }
        found.write(&queries, &settings, &self.out, overwrite)?;
        let by = found.asked.as_ref().map_or_else(|| "rules".to_owned(), |asked| asked.rewriter.clone());
        Ok(NamesTakenOut { report: found.report(), by, out: self.out.clone() })
    }

    fn ask(
        &self,
        queries: &[cuemark_core::Truth],
        rewriter: &dyn Rewriter,
        endpoint: Option<&Endpoint>,
        settings: &RewriteSettings,
        progress: &Progress,
    ) -> Result<Rewrites> {
        let recogniser = match &self.names_by {
            NamesBy::Program(command) => Some(self.program(command)?),
            NamesBy::List | NamesBy::Endpoint => None,
        };
        let started = recogniser.as_ref().map(ProgramNames::start).transpose()?;
        let by_model = endpoint.map(EndpointNames);
        let names: &dyn NameRecogniser = match (&self.names_by, &started, &by_model) {
            (NamesBy::Program(_), Some(program), _) => program,
            (NamesBy::Endpoint, _, Some(model)) => model,
            (NamesBy::Endpoint, _, None) => {
                return Err(Error::setting("names_by", "no endpoint is named that could look for names"));
            }
            _ => NameList::embedded(),
        };
        let prompt = match &self.prompt {
            Some(path) => Source::new(path).text()?,
            None => PROMPT.to_owned(),
        };
        let kept = KeptAnswers::open(&self.out.join("answers.jsonl"))?;
        if !kept.is_empty() {
            progress.say(format!("note: {} answers are there already", kept.len()));
        }
        if kept.damaged() > 0 {
            progress.say(format!("note: {} lines of answers.jsonl cannot be read and are asked again", kept.damaged()));
        }
        let asking = Asking { rewriter, prompt: &prompt, parallel: self.parallel, kept: &kept };
        Ok(rewrite_by(queries, names, &compare_by_words, settings, &asking, progress)?)
    }

    fn open_endpoint(&self) -> Result<Option<Endpoint>> {
        let (url, model) = match (&self.endpoint, &self.model) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err(Error::setting("model", "no endpoint is named that has it")),
            (Some(_), None) => return Err(Error::setting("endpoint", "which model of it shall be asked?")),
            (Some(url), Some(model)) => (url, model),
        };
        let key = std::env::var(&self.key_variable).ok().filter(|key| !key.is_empty());
        Ok(Some(Endpoint::new(url, model, key, self.wait()?)?))
    }

    fn program(&self, command: &str) -> Result<Program> {
        let command = command.split_whitespace().map(str::to_owned).collect();
        Ok(Program { command, timeout: self.wait()? })
    }

    fn wait(&self) -> Result<Duration> {
        Duration::try_from_secs_f64(self.timeout)
            .ok()
            .filter(|wait| !wait.is_zero())
            .ok_or_else(|| Error::setting("timeout", format!("{} s is no time to wait", self.timeout)))
    }
}
