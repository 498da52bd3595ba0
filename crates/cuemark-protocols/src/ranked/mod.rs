//! Ranked retrieval with imprecise queries: how well does each of many moments answer a vague sentence, 0 to 4?
//!
//! Liang et al., "TVR-Ranking: A Dataset for Ranked Video Moment Retrieval with Imprecise Queries", 2024.
//! The way from descriptions of moments to a graded set, one step per file:
//! names are taken out of descriptions ([`rewrite`]), which become queries; the moments whose own descriptions are
//! likest become [`candidates`]; people who passed an [`exam`] rate them, here or in Label Studio ([`label_studio`]);
//! [`consensus`] turns ratings into grades and [`agreement`] says how far to trust them; queries that nobody rated get
//! their likest moments as a [`pseudo_train`] set; [`proxy`] measures how far likeness stands in for relevance.
//!
//! The five grades: 4, all actions and details match and the span covers the action without excess; 3, the action
//! matches, a detail does not; 2, part of the action, or a large gap in time or content; 1, actors or objects match, the
//! main action does not; 0, nothing does.

pub mod agreement;
pub mod candidates;
pub mod consensus;
pub mod exam;
pub mod frames;
pub mod label_studio;
#[cfg(test)]
mod outside_tests;
pub mod proxy;
pub mod pseudo_train;
pub mod rewrite;
pub mod statistics;

/// Grades that a person can give: 0 to 4.
pub const GRADES: usize = 5;
