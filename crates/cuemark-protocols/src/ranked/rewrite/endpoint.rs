//! A language model behind HTTP, asked the way OpenAI's chat completions are.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Agent;

use super::ask::{Asked, Question, Rewriter};
use super::program::{LONGEST_ANSWER, PATIENCE};
use crate::{ProtocolError, Result};

/// The path that questions go to.
const CHAT: &str = "/chat/completions";

/// Tokens that an answer may have: a sentence, and no essay.
const MOST_TOKENS: usize = 200;

/// How often a server that is busy is asked again, and how long is waited at first; twice as long each time.
const BUSY_TRIES: u32 = 3;
const BUSY_WAIT: Duration = Duration::from_millis(500);

/// Where it is and what it is called.
#[derive(Clone)]
pub struct Endpoint {
    url: String,
    model: String,
    key: Option<String>,
    agent: Agent,
}

/// The key is nobody's business.
impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url).field("model", &self.model).finish_non_exhaustive()
    }
}

/// What came of one question.
enum Said {
    /// An answer.
    Text(String),
    /// None that can be used.
    Nothing,
    /// The server is busy or broken for the moment.
    Busy,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

impl Endpoint {
    /// The model called `model` at `url`, such as `https://host/v1`; `key` is what the server knows us by. An answer that takes
    /// longer than `timeout` is none.
    ///
    /// # Errors
    /// When the address is none.
    pub fn new(url: &str, model: &str, key: Option<String>, timeout: Duration) -> Result<Self> {
        let bare = url.trim().trim_end_matches('/');
        if !bare.starts_with("http://") && !bare.starts_with("https://") {
            return Err(wrong(url, "is no address: it begins with neither http:// nor https://"));
        }
        let url = if bare.ends_with(CHAT) { bare.to_owned() } else { format!("{bare}{CHAT}") };
        let config = Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false);
        Ok(Self { url, model: model.to_owned(), key, agent: config.build().new_agent() })
    }

    /// What the model says to `messages`; `None` when that cannot be used, or did not come in time.
    ///
    /// # Errors
    /// When the server knows neither us nor the model: asking again would be no use.
    pub(super) fn say(&self, messages: &[Value], temperature: f64) -> Result<Option<String>> {
        let body = json!({
            "model": self.model,
            "temperature": temperature,
            "max_tokens": MOST_TOKENS,
            "messages": messages,
        });
        for attempt in 0..BUSY_TRIES {
            match self.post(&body)? {
                Said::Text(text) => return Ok(Some(text)),
                Said::Nothing => return Ok(None),
                Said::Busy => std::thread::sleep(BUSY_WAIT * 2u32.pow(attempt)),
            }
        }
        Ok(None)
    }

    fn post(&self, body: &Value) -> Result<Said> {
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("authorization", &format!("Bearer {key}"));
        }
        let Ok(mut response) = request.send(body.to_string()) else { return Ok(Said::Nothing) };
        let status = response.status().as_u16();
        match status {
            200..300 => {}
            408 | 429 | 500.. => return Ok(Said::Busy),
            _ => {
                let said = response.body_mut().with_config().limit(500).lossy_utf8(true).read_to_string();
                let said = said.unwrap_or_default();
                return Err(wrong(&self.url, &format!("answers {status}: {}", said.trim())));
            }
        }
        let Ok(bytes) = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec() else {
            return Ok(Said::Nothing);
        };
        let content = serde_json::from_slice::<Completion>(&bytes).ok();
        let content = content.and_then(|completion| completion.choices.into_iter().next()?.message.content);
        Ok(content.map_or(Said::Nothing, Said::Text))
    }
}

fn wrong(url: &str, problem: &str) -> ProtocolError {
    ProtocolError::Endpoint { url: url.to_owned(), problem: problem.to_owned() }
}

/// One who asks, and who gives up after a few silences in a row.
struct Asking<'a> {
    endpoint: &'a Endpoint,
    silences: usize,
}

impl Rewriter for Endpoint {
    fn name(&self) -> String {
        format!("model {} at {}", self.model, self.url)
    }

    fn connect(&self) -> Result<Box<dyn Asked + '_>> {
        Ok(Box::new(Asking { endpoint: self, silences: 0 }))
    }
}

impl Asked for Asking<'_> {
    fn ask(&mut self, question: &Question<'_>) -> Result<Option<String>> {
        if self.silences >= PATIENCE {
            return Ok(None);
        }
        let user = |text: &str| json!({ "role": "user", "content": text });
        let mut messages = vec![user(&question.opening())];
        if let Some(complaint) = question.complaint() {
            messages.push(json!({ "role": "assistant", "content": question.rewritten }));
            messages.push(user(&complaint));
        }
        let said = self.endpoint.say(&messages, question.temperature)?;
        self.silences = if said.is_some() { 0 } else { self.silences + 1 };
        Ok(said)
    }
}
