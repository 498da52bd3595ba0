//! Queries rewritten so that a model's dependence on their words can be measured.
//!
//! A model that scores as well with the verb masked, the words shuffled or the query of another video did not need
//! them. Every variant changes the query's text alone: ids, moments and everything else stay.

use std::fmt;

use cuemark_core::{Rng, Truth, VideoId};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{Result, TextError, first_verb};

/// What is done to each query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variant {
    /// The first verb is replaced or dropped.
    MaskVerb(Mask),
    /// Nothing but the first verb is left, as it stands in the query.
    OnlyVerb,
    /// The words are put in random order; a closing mark stays at the end.
    Shuffle,
    /// The text is taken from a query about another video.
    WrongQuery,
}

/// What queries say when a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum QueryText {
    /// What their dataset says. Default.
    #[default]
    #[cfg_attr(feature = "clap", value(skip))]
    Original,
    /// The first verb is masked.
    MaskVerb,
    /// Only the first verb is left.
    OnlyVerb,
    /// The words are put in random order.
    Shuffle,
    /// The text is that of a query about another video.
    WrongQuery,
}

impl QueryText {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::MaskVerb => "mask-verb",
            Self::OnlyVerb => "only-verb",
            Self::Shuffle => "shuffle",
            Self::WrongQuery => "wrong-query",
        }
    }

    /// How queries are rewritten to say so; `None` leaves them as they are.
    pub fn variant(self) -> Option<Variant> {
        match self {
            Self::Original => None,
            Self::MaskVerb => Some(Variant::MaskVerb(Mask::default())),
            Self::OnlyVerb => Some(Variant::OnlyVerb),
            Self::Shuffle => Some(Variant::Shuffle),
            Self::WrongQuery => Some(Variant::WrongQuery),
        }
    }
}

impl fmt::Display for QueryText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What becomes of a masked verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mask {
    /// This token stands in its place.
    Token(String),
    /// It is left out, and the space beside it.
    Drop,
}

impl Default for Mask {
    /// `[MASK]`, which BERT-like encoders know.
    fn default() -> Self {
        Self::Token("[MASK]".to_owned())
    }
}

/// How many queries a variant touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct VariantReport {
    /// All queries.
    pub queries: usize,
    /// Queries whose text is another one now.
    pub changed: usize,
    /// Queries without a verb, left as they are (mask-verb and only-verb; 0 for the others).
    pub without_verb: usize,
}

/// The same truths, in the same order, with rewritten queries, and what was done.
///
/// Queries that cannot be rewritten (no verb, a single word to shuffle) stay as they are and count as unchanged. Only
/// `shuffle` and `wrong-query` use the seed; each query has its own stream of randomness, so that shuffling does not
/// depend on which other queries the file holds.
///
/// # Errors
/// `wrong-query` when a query names no video or all are about the same one.
pub fn apply(variant: &Variant, truths: &[Truth], seed: u64) -> Result<(Vec<Truth>, VariantReport)> {
    let texts: Vec<Option<String>> = match variant {
        Variant::MaskVerb(mask) => truths.par_iter().map(|truth| mask_verb(&truth.query.text, mask)).collect(),
        Variant::OnlyVerb => truths.par_iter().map(|truth| only_verb(&truth.query.text)).collect(),
        Variant::Shuffle => {
            let shuffle = |truth: &Truth| {
                let mut rng = Rng::stream(seed, truth.query.id.as_str());
                Some(shuffle(&truth.query.text, &mut rng))
            };
            truths.par_iter().map(shuffle).collect()
        }
        Variant::WrongQuery => wrong_queries(truths, seed)?.into_iter().map(Some).collect(),
    };
    let mut report = VariantReport { queries: truths.len(), ..VariantReport::default() };
    let mut rewritten = truths.to_vec();
    for (truth, text) in rewritten.iter_mut().zip(texts) {
        match text {
            Some(text) => {
                report.changed += usize::from(text != truth.query.text);
                truth.query.text = text;
            }
            None => report.without_verb += 1,
        }
    }
    Ok((rewritten, report))
}

fn mask_verb(query: &str, mask: &Mask) -> Option<String> {
    let verb = first_verb(query)?;
    let (before, after) = (&query[..verb.bytes.start], &query[verb.bytes.end..]);
    Some(match mask {
        Mask::Token(token) => format!("{before}{token}{after}"),
        Mask::Drop if before.is_empty() || before.ends_with(char::is_whitespace) => {
            let rest = format!("{before}{}", after.trim_start());
            // "the man sits." keeps its full stop at the word before.
            if after.starts_with(char::is_alphanumeric) || after.starts_with(' ') {
                rest
            } else {
                format!("{}{after}", before.trim_end())
            }
        }
        Mask::Drop => format!("{before}{after}"),
    })
}

fn only_verb(query: &str) -> Option<String> {
    first_verb(query).map(|verb| query[verb.bytes].to_owned())
}

/// The words in random order, joined by single spaces. Differs from the query's own order whenever two words differ.
fn shuffle(query: &str, rng: &mut Rng) -> String {
    let mut words: Vec<&str> = query.split_whitespace().collect();
    let Some(last) = words.last_mut() else { return query.to_owned() };
    let bare = last.trim_end_matches(['.', '!', '?', ',']);
    let (bare, end) = if bare.is_empty() { (*last, "") } else { last.split_at(bare.len()) };
    *last = bare;
    let original = words.clone();
    if original.iter().any(|word| *word != original[0]) {
        while words == original {
            rng.shuffle(&mut words);
        }
    }
    words.join(" ") + end
}

/// For each query the text of another, about another video; each text drawn at random among all those.
fn wrong_queries(truths: &[Truth], seed: u64) -> Result<Vec<String>> {
    let mut by_video: FxHashMap<&VideoId, usize> = FxHashMap::default();
    let mut videos = Vec::with_capacity(truths.len());
    for truth in truths {
        let video = video_of(truth).ok_or_else(|| TextError::NoVideo(truth.query.id.clone()))?;
        *by_video.entry(video).or_default() += 1;
        videos.push(video);
    }
    if !truths.is_empty() && by_video.len() < 2 {
        return Err(TextError::OneVideo);
    }
    let draw = |(truth, video): (&Truth, &&VideoId)| {
        let mut rng = Rng::stream(seed, truth.query.id.as_str());
        // At least one query is about another video, so the loop ends; a video that holds nearly all of them is walked.
        for _ in 0..64 {
            let other = rng.below(truths.len());
            if videos[other] != *video {
                return truths[other].query.text.clone();
            }
        }
        let others: Vec<&Truth> =
            truths.iter().zip(&videos).filter(|(_, other)| *other != video).map(|(truth, _)| truth).collect();
        rng.pick(&others).map_or_else(String::new, |other| other.query.text.clone())
    };
    Ok(truths.par_iter().zip(&videos).map(draw).collect())
}

/// The video a query is about: the one it was written for, or that of its first moment.
fn video_of(truth: &Truth) -> Option<&VideoId> {
    let written_for = truth.video.as_ref().map(|video| &video.id);
    written_for.or_else(|| truth.moments.first().map(|graded| &graded.moment.video))
}

#[cfg(test)]
mod tests {
    use cuemark_core::Advise as _;

    use super::*;
    use cuemark_core::{Query, Video};

    fn truths(queries: &[(&str, &str)]) -> Vec<Truth> {
        let truth = |(index, (video, text)): (usize, &(&str, &str))| {
            let query = Query { id: index.to_string().as_str().into(), text: (*text).to_owned() };
            Truth::single(query, Video::new(*video, 10.0), [])
        };
        queries.iter().enumerate().map(truth).collect()
    }

    fn texts(variant: &Variant, queries: &[(&str, &str)]) -> (Vec<String>, VariantReport) {
        let (rewritten, report) = apply(variant, &truths(queries), 7).unwrap();
        (rewritten.into_iter().map(|truth| truth.query.text).collect(), report)
    }

    #[test]
    fn the_first_verb_is_masked_or_dropped_and_nothing_else_moves() {
        let queries = [("a", "person opens the door and leaves."), ("a", "the man sits."), ("b", "a red door")];
        let (masked, report) = texts(&Variant::MaskVerb(Mask::default()), &queries);
        assert_eq!(masked, ["person [MASK] the door and leaves.", "the man [MASK].", "a red door"]);
        assert_eq!(report, VariantReport { queries: 3, changed: 2, without_verb: 1 });
        let (dropped, _) = texts(&Variant::MaskVerb(Mask::Drop), &queries);
        assert_eq!(dropped, ["person the door and leaves.", "the man.", "a red door"]);
    }

    #[test]
    fn only_the_verb_is_left() {
        let (only, report) = texts(&Variant::OnlyVerb, &[("a", "person opens the door."), ("b", "a red door")]);
        assert_eq!(only, ["opens", "a red door"]);
        assert_eq!(report.without_verb, 1);
    }

    #[test]
    fn shuffling_keeps_the_words_and_moves_them() {
        let query = "the man in the hat bends over the machine.";
        let (shuffled, _) = texts(&Variant::Shuffle, &[("a", query), ("b", "jump"), ("b", "")]);
        let sorted = |text: &str| {
            let mut words: Vec<String> = text.trim_end_matches('.').split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_ne!(shuffled[0], query);
        assert!(shuffled[0].ends_with('.'));
        assert_eq!(sorted(&shuffled[0]), sorted(query));
        assert_eq!(shuffled[1..], ["jump", ""]);
    }

    #[test]
    fn a_seed_gives_the_same_order_whatever_else_the_file_holds() {
        let one = texts(&Variant::Shuffle, &[("a", "the man opens the red door")]).0;
        let many = texts(&Variant::Shuffle, &[("a", "the man opens the red door"), ("b", "a dog runs off")]).0;
        assert_eq!(one[0], many[0]);
    }

    #[test]
    fn a_wrong_query_is_always_of_another_video() {
        let queries: Vec<(String, String)> =
            (0..60).map(|n| (format!("v{}", n / 20), format!("v{} query {n}", n / 20))).collect();
        let queries: Vec<(&str, &str)> = queries.iter().map(|(video, text)| (video.as_str(), text.as_str())).collect();
        let (wrong, report) = texts(&Variant::WrongQuery, &queries);
        for ((video, _), text) in queries.iter().zip(&wrong) {
            assert!(!text.starts_with(video), "{video} got {text}");
        }
        assert_eq!(report.changed, 60);
    }

    #[test]
    fn names_are_those_that_files_have() {
        let all = [QueryText::MaskVerb, QueryText::OnlyVerb, QueryText::Shuffle, QueryText::WrongQuery];
        for text in all.into_iter().chain([QueryText::Original]) {
            assert_eq!(serde_json::to_value(text).unwrap(), text.name());
            assert_eq!(text.variant().is_none(), text == QueryText::Original);
        }
    }

    #[test]
    fn a_single_video_has_no_wrong_query() {
        let error = apply(&Variant::WrongQuery, &truths(&[("a", "x"), ("a", "y")]), 1).unwrap_err();
        assert!(matches!(error, TextError::OneVideo));
        assert!(error.advice().is_some());
        let mut unnamed = truths(&[("a", "x"), ("b", "y")]);
        unnamed[1].video = None;
        assert!(matches!(apply(&Variant::WrongQuery, &unnamed, 1), Err(TextError::NoVideo(_))));
        assert!(apply(&Variant::WrongQuery, &[], 1).unwrap().0.is_empty());
    }
}
