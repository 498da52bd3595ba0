//! Who says whether a name is left in a sentence.

use std::sync::Mutex;
use std::sync::PoisonError;

use cuemark_text::names::NameList;
use serde::Deserialize;
use serde_json::json;

use super::ask::PLACE;
use super::endpoint::Endpoint;
use super::program::{Program, Running};
use crate::Result;

/// What a language model is told; `{sentence}` is where the sentence stands.
const PROMPT: &str = include_str!("../../../data/names-prompt.txt");

/// A recogniser of people's names.
pub trait NameRecogniser: Sync {
    /// Who it is, for the record.
    fn name(&self) -> String;

    /// The highest score of any word in the sentence, 0 to 1; `None` when there was no usable answer.
    ///
    /// # Errors
    /// When asking again would be no use.
    fn highest(&self, sentence: &str) -> Result<Option<f64>>;
}

impl NameRecogniser for NameList {
    fn name(&self) -> String {
        "list".to_owned()
    }

    fn highest(&self, sentence: &str) -> Result<Option<f64>> {
        Ok(Some(Self::highest(self, sentence)))
    }
}

/// A program that is asked about one sentence at a time.
pub struct ProgramNames<'a> {
    program: &'a Program,
    running: Mutex<Running<'a>>,
}

impl<'a> ProgramNames<'a> {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &'a Program) -> Result<Self> {
        Ok(Self { program, running: Mutex::new(program.start()?) })
    }
}

impl NameRecogniser for ProgramNames<'_> {
    fn name(&self) -> String {
        format!("program {}", self.program.command.join(" "))
    }

    fn highest(&self, sentence: &str) -> Result<Option<f64>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.exchange(&json!({ "sentence": sentence }), score_in)
    }
}

/// A language model that lists names.
pub struct EndpointNames<'a>(pub &'a Endpoint);

impl NameRecogniser for EndpointNames<'_> {
    fn name(&self) -> String {
        super::ask::Rewriter::name(self.0)
    }

    fn highest(&self, sentence: &str) -> Result<Option<f64>> {
        let message = json!({ "role": "user", "content": PROMPT.replace(PLACE, sentence) });
        Ok(self.0.say(&[message], 0.0)?.as_deref().and_then(score_in))
    }
}

#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    names: Option<Vec<String>>,
    #[serde(default)]
    score: Option<f64>,
}

/// The score in an answer: its own, or 1 where it lists a name and 0 where it lists none. Words around the JSON are passed over.
fn score_in(answer: &str) -> Option<f64> {
    let object = answer.get(answer.find('{')?..=answer.rfind('}')?)?;
    let told: Told = serde_json::from_str(object).ok()?;
    let score = told.score.or_else(|| told.names.map(|names| f64::from(u8::from(!names.is_empty()))))?;
    (0.0..=1.0).contains(&score).then_some(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_or_a_list_of_names_is_understood_and_nothing_else_is() {
        for (answer, score) in [
            (r#"{"names": ["Ross"]}"#, Some(1.0)),
            (r#"Here: {"names": []} as asked"#, Some(0.0)),
            (r#"{"score": 0.85}"#, Some(0.85)),
            (r#"{"score": 7}"#, None),
            (r#"{"people": 1}"#, None),
            ("} none {", None),
            ("no names", None),
        ] {
            assert_eq!(score_in(answer), score, "{answer}");
        }
    }
}
