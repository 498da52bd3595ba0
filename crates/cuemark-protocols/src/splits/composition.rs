//! Compositional splits (`composition`): is a method lost where known words stand together as never before, or where a
//! word is new?
//!
//! After Charades-CG and ActivityNet-CG (Li et al., "Compositional Temporal Grounding with Structured Variational
//! Cross-Graph Correspondence Learning", 2022), whose published lists are not read here: the splits are made from any
//! dataset. Ours differ: no video is shared between training and test, and what was held out is written down.
//!
//! Words are the base forms of a query's main verbs and nouns. A composition is a verb and a noun of one query.

use std::collections::{BTreeMap, BTreeSet};

use cuemark_core::{Rng, Truth};
use cuemark_text::{Pos, Tagger, noun_lemma, tokenize, verb_lemma};
use serde::{Deserialize, Serialize};

use super::by_video::{ByVideo, Part, deal};
use super::{MadeSplits, Options, SplitFindings};
use crate::{ProtocolError, Result};

/// A word in more than this share of all queries is never held out: without it there is little left to train on.
const TOO_COMMON: f64 = 0.05;

/// What `composition` can be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CompositionOptions {
    /// The share of videos that val and the tests each get. Default: 0.2
    pub test_share: f64,
    /// The share of test queries that a held-out word is to stand in. Default: 0.2
    pub word_share: f64,
    /// The share of the other test queries that a held-out composition is to stand in. Default: 0.3
    pub composition_share: f64,
    /// Seed of the cut by video and of what is held out. Default: 0
    pub seed: u64,
}

impl Default for CompositionOptions {
    fn default() -> Self {
        Self { test_share: 0.2, word_share: 0.2, composition_share: 0.3, seed: 0 }
    }
}

/// What `composition` found on the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompositionFound {
    /// Words that training never sees.
    pub held_out_words: Vec<String>,
    /// Compositions that training never sees, `verb noun`, although it sees both words.
    pub held_out_compositions: Vec<String>,
    /// Queries of training and validation that were left out because they hold one of either.
    pub left_out: usize,
    /// Queries left out because they have no moment.
    pub without_moments: usize,
}

/// A verb and a noun of one query.
type Composition = (String, String);

/// What a query is made of.
struct Words {
    words: BTreeSet<String>,
    compositions: BTreeSet<Composition>,
}

impl Words {
    fn of(sentence: &str) -> Self {
        let tokens = tokenize(sentence);
        let tags = Tagger::embedded().tag(&tokens);
        let (mut verbs, mut nouns) = (BTreeSet::new(), BTreeSet::new());
        for (token, tag) in tokens.iter().zip(tags) {
            if tag == Pos::Verb {
                verbs.insert(verb_lemma(token.text));
            } else if tag.is_noun() {
                nouns.insert(noun_lemma(token.text));
            }
        }
        let compositions =
            verbs.iter().flat_map(|verb| nouns.iter().map(|noun| (verb.clone(), noun.clone()))).collect();
        Self { words: verbs.into_iter().chain(nouns).collect(), compositions }
    }
}

/// Parts `truths`, all splits of a dataset together, into train, val, test-seen, test-novel-composition and test-novel-word.
///
/// Videos are dealt first, at random. Among the words of the test videos' queries some are held out, then some
/// compositions of words that remain; training and validation lose the queries that hold one. Every test query is then
/// judged by what training really says: a **novel word** is one that training never has, a **novel composition** a verb
/// and a noun that it has, never together; what has neither is **seen**.
///
/// # Errors
/// When a share is none, a query is about no single video, a duration is not known, or there are too few videos.
pub fn composition(truths: &[Truth], options: &CompositionOptions) -> Result<MadeSplits> {
    for (name, share) in [
        ("test_share", options.test_share),
        ("word_share", options.word_share),
        ("composition_share", options.composition_share),
    ] {
        if !(0.0..1.0).contains(&share) {
            return Err(ProtocolError::Option {
                option: name,
                value: share.to_string(),
                problem: "is not a share below 1".to_owned(),
            });
        }
    }
    let data = ByVideo::of(truths)?;
    let held_out = (options.test_share * data.len() as f64).round() as usize;
    let parts = deal(data.len(), |_| true, held_out, options.seed)?;
    let part = |query: usize| parts[data.moments[query].0];
    let words: Vec<Words> = data.sentences().map(Words::of).collect();
    let tests: Vec<usize> = (0..words.len()).filter(|query| part(*query) == Some(Part::TestIid)).collect();

    let held_words = hold_out(
        &tests.iter().map(|query| &words[*query].words).collect::<Vec<_>>(),
        |word| {
            let holders = words.iter().filter(|of| of.words.contains(word)).count();
            holders as f64 <= (TOO_COMMON * words.len() as f64).max(1.0)
        },
        options.word_share,
        &mut Rng::stream(options.seed, "words to hold out"),
    );
    let kept = |query: usize| words[query].words.is_disjoint(&held_words);
    let in_training = |query: &usize| part(*query) == Some(Part::Train) && kept(*query);
    let known: BTreeSet<&String> = (0..words.len()).filter(in_training).flat_map(|query| &words[query].words).collect();
    let others: Vec<&BTreeSet<Composition>> =
        tests.iter().filter(|query| kept(**query)).map(|query| &words[*query].compositions).collect();
    // A word whose every use in training is in a held-out composition would be new itself.
    let mut left = uses_in_training(&words, in_training);
    let held_compositions = hold_out(
        &others,
        |(verb, noun)| {
            let together = (0..words.len())
                .filter(in_training)
                .filter(|query| words[*query].words.contains(verb) && words[*query].words.contains(noun))
                .count();
            let spare = |word: &String| left.get(word).is_some_and(|uses| *uses > together);
            let sound = known.contains(verb) && known.contains(noun) && spare(verb) && spare(noun);
            if sound {
                for word in [verb, noun] {
                    if let Some(uses) = left.get_mut(word) {
                        *uses -= together;
                    }
                }
            }
            sound
        },
        options.composition_share,
        &mut Rng::stream(options.seed, "compositions to hold out"),
    );
    let is_clean = |query: usize| kept(query) && words[query].compositions.is_disjoint(&held_compositions);
    let trained: Vec<usize> =
        (0..words.len()).filter(|query| part(*query) == Some(Part::Train) && is_clean(*query)).collect();
    let known: BTreeSet<&String> = trained.iter().flat_map(|query| &words[*query].words).collect();
    let together: BTreeSet<&Composition> = trained.iter().flat_map(|query| &words[*query].compositions).collect();
    let novelty = |query: usize| match &words[query] {
        of if of.words.iter().any(|word| !known.contains(word)) => Novelty::Word,
        of if of.compositions.iter().any(|pair| !together.contains(pair)) => Novelty::Composition,
        _ => Novelty::None,
    };
    let rest = |name: &str, wanted: Part| data.split(name, |query, _| part(query) == Some(wanted) && is_clean(query));
    let test = |name: &str, wanted: Novelty| {
        data.split(name, |query, _| part(query) == Some(Part::TestIid) && novelty(query) == wanted)
    };
    let left_out = (0..words.len()).filter(|query| part(*query) != Some(Part::TestIid) && !is_clean(*query)).count();
    Ok(MadeSplits {
        protocol: "composition",
        version: 1,
        seed: options.seed,
        splits: vec![
            rest("train", Part::Train),
            rest("val", Part::Val),
            test("test-seen", Novelty::None),
            test("test-novel-composition", Novelty::Composition),
            test("test-novel-word", Novelty::Word),
        ],
        options: Options::Composition(options.clone()),
        found: SplitFindings::Composition(CompositionFound {
            held_out_words: held_words.into_iter().collect(),
            held_out_compositions: held_compositions.into_iter().map(|(verb, noun)| format!("{verb} {noun}")).collect(),
            left_out,
            without_moments: data.without_moments,
        }),
    })
}

/// What is new about a test query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Novelty {
    None,
    Composition,
    Word,
}

fn uses_in_training(words: &[Words], in_training: impl Fn(&usize) -> bool) -> BTreeMap<String, usize> {
    let mut uses = BTreeMap::new();
    for word in (0..words.len()).filter(in_training).flat_map(|query| &words[query].words) {
        *uses.entry(word.clone()).or_insert(0) += 1;
    }
    uses
}

/// Items of `holders` in random order, as far as `allowed`, until one stands in `share` of the holders.
fn hold_out<T: Ord + Clone>(
    holders: &[&BTreeSet<T>],
    mut allowed: impl FnMut(&T) -> bool,
    share: f64,
    rng: &mut Rng,
) -> BTreeSet<T> {
    let all: BTreeSet<&T> = holders.iter().flat_map(|holder| holder.iter()).collect();
    let mut items: Vec<&T> = all.into_iter().collect();
    rng.shuffle(&mut items);
    let wanted = (share * holders.len() as f64).ceil() as usize;
    let (mut held, mut covered) = (BTreeSet::new(), vec![false; holders.len()]);
    let mut count = 0;
    for item in items {
        if count >= wanted {
            break;
        }
        if !allowed(item) {
            continue;
        }
        for (holder, covered) in holders.iter().zip(&mut covered) {
            if !*covered && holder.contains(item) {
                *covered = true;
                count += 1;
            }
        }
        held.insert(item.clone());
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splits::shared_videos;
    use crate::testing::truth;

    const VERBS: [&str; 6] = ["opens", "closes", "cleans", "holds", "throws", "paints"];
    /// So many that none is too common to be held out.
    const NOUNS: [&str; 24] = [
        "door", "box", "window", "cup", "ball", "chair", "table", "bottle", "lamp", "book", "shirt", "knife", "spoon",
        "plate", "towel", "broom", "mirror", "phone", "bag", "shoe", "hat", "clock", "pan", "pillow",
    ];

    /// One query in each of `videos` videos, every verb with every noun in turn.
    fn scenes(videos: usize) -> Vec<Truth> {
        let each = |n: usize| {
            let text = format!("she {} the {}", VERBS[(n / 24) % 6], NOUNS[n % 24]);
            truth(&n.to_string(), &text, &format!("v{n}"), 10.0, 1.0, 4.0)
        };
        (0..videos).map(each).collect()
    }

    fn words_of(split: &cuemark_core::Split) -> (BTreeSet<String>, BTreeSet<Composition>) {
        let all: Vec<Words> = split.queries.iter().map(|truth| Words::of(&truth.query.text)).collect();
        (
            all.iter().flat_map(|of| of.words.clone()).collect(),
            all.iter().flat_map(|of| of.compositions.clone()).collect(),
        )
    }

    #[test]
    fn a_query_is_its_verbs_and_nouns_and_every_pair_of_them() {
        let of = Words::of("a person opens the door");
        let pair = |noun: &str| ("open".to_owned(), noun.to_owned());
        assert_eq!(of.compositions, BTreeSet::from([pair("door"), pair("person")]));
        assert_eq!(of.words.len(), 3);
    }

    #[test]
    fn tests_are_what_their_names_say_of_training() {
        let made = composition(&scenes(480), &CompositionOptions { seed: 3, ..Default::default() }).unwrap();
        let (known, together) = words_of(&made.splits[0]);
        for (n, split) in made.splits.iter().enumerate().skip(2) {
            assert!(!split.queries.is_empty(), "{} is empty", split.name);
            for truth in &split.queries {
                let of = Words::of(&truth.query.text);
                let new_word = !of.words.is_subset(&known);
                let new_pair = !of.compositions.is_subset(&together);
                let expected = match n {
                    2 => !new_word && !new_pair,
                    3 => !new_word && new_pair,
                    _ => new_word,
                };
                assert!(expected, "{}: {}", split.name, truth.query.text);
            }
        }
        assert!(shared_videos(&made.splits).iter().all(|pair| pair.videos == 0 || pair.left.starts_with("test")));
        let SplitFindings::Composition(found) = &made.found else { panic!() };
        assert!(found.left_out > 0 && !found.held_out_compositions.is_empty());
    }

    #[test]
    fn the_same_seed_gives_the_same_splits_and_another_does_not() {
        let made = |seed: u64| {
            let made = composition(&scenes(480), &CompositionOptions { seed, ..Default::default() }).unwrap();
            made.splits
                .iter()
                .map(|split| split.queries.len())
                .chain([made.splits[0].queries[0].query.id.as_str().parse().unwrap()])
                .collect::<Vec<_>>()
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
    }

    #[test]
    fn a_share_that_is_none_is_refused() {
        let options = CompositionOptions { word_share: 1.5, ..Default::default() };
        assert!(matches!(composition(&scenes(48), &options), Err(ProtocolError::Option { .. })));
    }
}
