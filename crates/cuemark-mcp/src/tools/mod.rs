//! The tools, one file each: what it is called, what it takes, what it does.

mod clip;
mod eval;
mod films;
mod find;
mod index_status;
mod search;

use std::sync::Arc;

use cuemark_core::Progress;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Serialize;
use serde_json::Value;

use crate::McpError;
use crate::allowed::Allowed;
use crate::arguments::Schema;
use crate::clips::Clips;
use crate::error::Result;

/// Every tool, in the order that clients list them.
pub(crate) static TOOLS: &[&ToolCard] =
    &[&films::CARD, &search::CARD, &find::CARD, &clip::CARD, &index_status::CARD, &eval::CARD];

/// One tool.
pub(crate) struct ToolCard {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) leaves: Leaves,
    pub(crate) schema: fn() -> Schema,
    pub(crate) run: fn(&Means, JsonObject, &Progress) -> Result<Value>,
}

/// What a tool leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    Nothing,
    NewFiles,
}

/// What tools have to work with.
pub(crate) struct Means {
    pub(crate) allowed: Allowed,
    pub(crate) clips: Clips,
    pub(crate) device: String,
}

impl ToolCard {
    /// As the protocol describes it.
    pub(crate) fn tool(&self) -> Tool {
        let hints = ToolAnnotations::with_title(self.title)
            .read_only(self.leaves == Leaves::Nothing)
            .destructive(false)
            .open_world(false);
        Tool::new(self.name, self.about, Arc::new((self.schema)().into_object()))
            .with_title(self.title)
            .with_annotations(hints)
    }
}

/// An answer as the protocol carries it.
fn as_json(answer: &impl Serialize) -> Result<Value> {
    serde_json::to_value(answer).map_err(|error| McpError::argument("answer", error.to_string()))
}

/// Refuses more answers than an assistant reads.
fn at_most(field: &str, number: usize, most: usize) -> Result<()> {
    if number <= most { Ok(()) } else { Err(McpError::argument(field, format!("{number} is not in 1 to {most}"))) }
}
