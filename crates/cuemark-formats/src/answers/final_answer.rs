//! Which part of an answer is the answer: what follows the thinking, stands in `<answer>`, or follows "Final answer:".

use std::ops::Range;

/// A part of the text, narrowest first.
pub(super) struct Part {
    pub(super) bytes: Range<usize>,
    /// Whether a refusal or a lone time in it settles the matter.
    pub(super) settles: bool,
}

/// What is searched.
pub(super) struct Parts {
    pub(super) parts: Vec<Part>,
    /// Whether the text thinks and never comes to an answer.
    pub(super) unfinished: bool,
}

const THINKING: [&str; 4] = ["</think>", "</thinking>", "◁/think▷", "</thought>"];
const THINKS: [&str; 4] = ["<think>", "<thinking>", "◁think▷", "<thought>"];
/// What stands before a final answer; what follows settles the matter.
const MARKERS: &[&str] = &[
    "final answer",
    "answer is",
    "answer should be",
    "answer would be",
    "answer must be",
    "answer will be",
    "the answer,",
    "answer:",
    "answer\":",
    "answer**",
    "assistant:",
    "####",
    "\\boxed{",
    "\na:",
    "final time range",
    "correct one is",
    "correct option is",
    "correct choice is",
];
/// What may stand before one.
const HINTS: [&str; 11] = [
    "result:",
    "output:",
    "prediction:",
    "conclusion:",
    "final:",
    "summary:",
    "therefore",
    "in conclusion",
    "thus",
    "in summary",
    "to conclude",
];

/// What stands before reasons that follow an answer.
const REASONS: [&str; 12] = [
    "reasoning:",
    "explanation:",
    "rationale:",
    "justification:",
    "reason:",
    "evidence:",
    "reasoning\"",
    "explanation\"",
    "reasoning**",
    "explanation**",
    "reason\"",
    "note:",
];

pub(super) fn parts(text: &str) -> Parts {
    let lower = text.to_ascii_lowercase();
    let from = THINKING.iter().filter_map(|end| lower.rfind(end).map(|at| at + end.len())).max();
    let answered = last_between(&lower, "<answer>", "</answer>");
    let thinks = THINKS.iter().any(|begin| lower.trim_start().starts_with(begin));
    if thinks && from.is_none() && answered.is_none() {
        return Parts { parts: Vec::new(), unfinished: true };
    }
    let whole = answered.unwrap_or(from.unwrap_or(0)..text.len());
    let inside = lower.get(whole.clone()).unwrap_or_default();
    let last = |marks: &[&str]| marks.iter().filter_map(|mark| inside.rfind(mark).map(|at| at + mark.len())).max();
    let reasons = |from: usize| {
        let rest = inside.get(from..).unwrap_or_default();
        REASONS.iter().filter_map(|mark| rest.find(mark)).min().map(|at| from + at)
    };
    let mut parts = Vec::new();
    if let Some(at) = last(MARKERS) {
        if let Some(end) = reasons(at) {
            parts.push(Part { bytes: whole.start + at..whole.start + end, settles: false });
        }
        parts.push(Part { bytes: whole.start + at..whole.end, settles: true });
    }
    if let Some(at) = last(&HINTS) {
        parts.push(Part { bytes: whole.start + at..whole.end, settles: false });
    }
    if let Some(end) = reasons(0).filter(|_| parts.is_empty()) {
        parts.push(Part { bytes: whole.start..whole.start + end, settles: false });
    }
    parts.push(Part { bytes: whole, settles: true });
    Parts { parts, unfinished: false }
}

/// What stands inside the last `open`, up to `close` or the end.
fn last_between(lower: &str, open: &str, close: &str) -> Option<Range<usize>> {
    let from = lower.rfind(open)? + open.len();
    let to = lower.get(from..)?.find(close).map_or(lower.len(), |end| from + end);
    Some(from..to)
}
