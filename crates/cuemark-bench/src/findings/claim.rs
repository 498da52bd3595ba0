//! One claim of the papers, and how it is answered.

use super::rows::Rows;
use super::sources::Sources;

/// What the figures say of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Agree,
    Disagree,
    /// One half of it holds.
    InPart,
    NotRun,
}

impl Verdict {
    /// Agrees where `holds`.
    pub(super) fn of(holds: bool) -> Self {
        if holds { Self::Agree } else { Self::Disagree }
    }

    /// Of a claim with two halves.
    pub(super) fn both(one: bool, other: bool) -> Self {
        match (one, other) {
            (true, true) => Self::Agree,
            (false, false) => Self::Disagree,
            _ => Self::InPart,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Disagree => "**disagree**",
            Self::InPart => "in part",
            Self::NotRun => "not run",
        }
    }
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    /// Our figures, with intervals and seeds.
    pub(super) figures: String,
    pub(super) verdict: Verdict,
}

impl Answer {
    pub(super) fn new(verdict: Verdict, figures: impl Into<String>) -> Self {
        Self { figures: figures.into(), verdict }
    }
}

/// What a claim is answered from.
pub(super) struct Evidence<'a> {
    pub(super) rows: Rows<'a>,
    /// Guesses and people on real annotations.
    pub(super) real: Rows<'a>,
    pub(super) sources: &'a Sources,
}

/// A claim of one or more papers. A: changing distributions (2021), B: debiased grounding and MDD (2022), C: TVR-Ranking (2024),
/// D: MoLEF (2024), E: MVMR and RMMN (2023).
pub(super) struct Claim {
    pub(super) claim: &'static str,
    pub(super) papers: &'static str,
    /// `None`: no committed run tells.
    pub(super) answer: fn(&Evidence<'_>) -> Option<Answer>,
    /// Where it does not agree: the reason that an experiment showed, or that none has.
    pub(super) reason: &'static str,
}

/// What is said where there is no reason yet.
pub(super) const NOT_SHOWN: &str = "not shown";
