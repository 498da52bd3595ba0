//! Our own parser: noun phrases, then clauses, then the nouns that belong to each verb.
//!
//! Shallow on purpose. It knows no verb frames and reads from left to right once: a noun phrase goes to a preposition
//! waiting for it, to the verb before it as its object, or waits to be the subject of the verb after it. Prepositional
//! phrases behind a verb go to the verb (those with *of* to the noun before them). That is what short descriptions of
//! actions need; how well it does is measured on the 300 sentences of `fixtures/text` and, where the shared files are,
//! against the dependencies of a full parser.

mod chunks;
mod clauses;
mod phrases;
mod tree;
mod verb_groups;
mod word;

use crate::{Parse, TaggedToken, Tagger, Token, tokenize};

/// Takes a sentence apart: tags, dependencies, and a phrase per verb. An empty sentence gives an empty parse.
///
/// ```
/// let parse = cuemark_text::shallow_parse("the man puts a cup on the table");
/// assert_eq!(parse.phrases[0].verb, 2);
/// assert_eq!(parse.phrases[0].nouns, [1, 4, 7]); // man, cup, table
/// ```
pub fn shallow_parse(sentence: &str) -> Parse {
    let tokens = tokenize(sentence);
    let tags = Tagger::embedded().tag(&tokens);
    parse_tagged(&tokens, &tags)
}

/// The parse of tokens whose tags are known; `tags` must be as long as `tokens`.
pub(crate) fn parse_tagged(tokens: &[Token<'_>], tags: &[crate::Pos]) -> Parse {
    let words: Vec<word::Word> =
        tokens.iter().zip(tags).map(|(token, tag)| word::Word::new(token.text, *tag)).collect();
    let mut tree = tree::Tree::new(words.len());
    let items = chunks::items(&words, &mut tree);
    clauses::attach(&words, &items, &mut tree);
    let phrases = phrases::collect(&words, &tree);
    let tagged = |(token, tag): (&Token<'_>, &crate::Pos)| TaggedToken {
        text: token.text.to_owned(),
        tag: *tag,
        bytes: Some((token.start, token.start + token.text.len())),
    };
    Parse { tokens: tokens.iter().zip(tags).map(tagged).collect(), phrases, dependencies: tree.into_dependencies() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Relation;
    use proptest::prelude::*;

    /// `head-relation-dependent` for every dependency.
    fn dependencies(sentence: &str) -> Vec<String> {
        let parse = shallow_parse(sentence);
        let text = |index: usize| parse.tokens[index].text.as_str();
        let all = parse.dependencies.iter();
        all.map(|d| format!("{} {} {}", text(d.head), d.relation, text(d.dependent))).collect()
    }

    #[track_caller]
    fn assert_has(sentence: &str, wanted: &[&str]) {
        let found = dependencies(sentence);
        for dependency in wanted {
            assert!(found.iter().any(|has| has == dependency), "{sentence}: no `{dependency}` in {found:?}");
        }
    }

    #[test]
    fn simple_clauses_have_subject_object_and_modifiers() {
        assert_has(
            "the tall man slowly opens his red door with a key",
            &[
                "man det the",
                "man amod tall",
                "opens nsubj man",
                "opens advmod slowly",
                "opens dobj door",
                "door nmod:poss his",
                "door amod red",
                "opens nmod key",
                "key case with",
            ],
        );
    }

    #[test]
    fn passives_and_copulas_are_told_apart() {
        assert_has("the door is opened by a man", &["opened nsubjpass door", "opened auxpass is", "opened nmod man"]);
        assert_has("the door is red", &["red nsubj door", "red cop is"]);
        assert_has("the man is opening the door", &["opening aux is", "opening nsubj man"]);
    }

    #[test]
    fn later_verbs_hang_on_the_first() {
        assert_has("the man sits down and reads a book", &["sits conj reads", "sits cc and", "sits compound:prt down"]);
        assert_has("the girl begins to eat", &["begins xcomp eat", "eat mark to"]);
        assert_has("the ball spins before it leaves", &["spins advcl leaves", "leaves mark before", "leaves nsubj it"]);
        assert_has("the man who wears a hat sits", &["man acl:relcl wears", "wears nsubj who", "sits nsubj man"]);
    }

    #[test]
    fn nothing_gives_an_empty_parse() {
        assert_eq!(shallow_parse(""), Parse::default());
        assert!(shallow_parse("a red door").phrases.is_empty());
    }

    #[test]
    fn relations_name_known_words_in_any_order_of_words() {
        let parse = shallow_parse("of of and and to to who who is is the the");
        assert!(parse.check().is_ok());
        assert!(parse.dependencies.iter().all(|d| d.relation != Relation::Root));
    }

    proptest! {
        #[test]
        fn every_parse_is_a_forest(words in prop::collection::vec(
            prop::sample::select(vec![
                "the", "man", "opens", "opening", "door", "and", "who", "is", "to", "of", "in", "front", "while", ",", ".",
                "red", "he", "'s", "then", "not", "there", "two", "up", "seen", "Ross", "how", "that",
            ]), 0..14)) {
            let parse = shallow_parse(&words.join(" "));
            prop_assert!(parse.check().is_ok(), "{:?}", parse.check());
            for phrase in &parse.phrases {
                prop_assert!(phrase.nouns.is_sorted());
            }
        }
    }
}
