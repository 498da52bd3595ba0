//! Base noun phrases: a determiner, what describes the noun, the noun.

use super::tree::Tree;
use super::word::Word;
use crate::{Pos, Relation};

/// What the clause builder reads: noun phrases as one item each, everything else token by token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// The token that stands for the item: of a noun phrase its head.
    pub(super) head: usize,
    /// The first token.
    pub(super) first: usize,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A noun phrase or a personal pronoun.
    Noun,
    /// *who*, *which*, and *that* in their place.
    Relative,
    /// An adjective that is no part of a noun phrase.
    Adj,
    Verb,
    Aux,
    Adp,
    Adv,
    Sconj,
    Cconj,
    Part,
    Other,
}

/// Groups tokens into items and hangs what lies inside a noun phrase on its head.
pub(super) fn items(words: &[Word], tree: &mut Tree) -> Vec<Item> {
    let mut items = Vec::with_capacity(words.len());
    let mut first = 0;
    while first < words.len() {
        let end = chunk_end(words, first);
        let item = match head_of(words, first, end) {
            Some(head) => {
                hang_inside(words, first, head, tree);
                // What follows the head (*'s* with nothing after it) is left to the clause builder.
                Item { head, first, what: What::Noun }
            }
            None => Item { head: first, first, what: alone(words, first) },
        };
        first = item.head.max(first) + 1;
        items.push(item);
    }
    items
}

fn alone(words: &[Word], index: usize) -> What {
    let word = &words[index];
    let after_noun = index > 0 && words.get(index - 1).is_some_and(|before| before.tag.is_noun() || before.is(","));
    match word.tag {
        Pos::Pron if word.is_any(&["who", "which", "whom", "whose"]) => What::Relative,
        Pos::Pron if word.is("that") && after_noun => What::Relative,
        Pos::Pron | Pos::Noun | Pos::Propn | Pos::Det | Pos::Num => What::Noun,
        Pos::Adj => What::Adj,
        Pos::Verb => What::Verb,
        Pos::Aux => What::Aux,
        Pos::Adp => What::Adp,
        Pos::Adv => What::Adv,
        Pos::Sconj => What::Sconj,
        Pos::Cconj => What::Cconj,
        Pos::Part => What::Part,
        _ => What::Other,
    }
}

const POSSESSIVE: [&str; 7] = ["his", "her", "their", "its", "my", "your", "our"];

/// One past the last token of the noun phrase that begins at `first`; `first` itself when none does.
fn chunk_end(words: &[Word], first: usize) -> usize {
    let mut seen_noun = false;
    let mut index = first;
    while let Some(word) = words.get(index) {
        let next = words.get(index + 1);
        let goes_on = match word.tag {
            Pos::Noun | Pos::Propn => {
                seen_noun = true;
                true
            }
            // *Ross 's* opens a longer phrase: what follows is described by what came before.
            Pos::Part if word.is_possessive_mark() => {
                let inside = seen_noun && next.is_some_and(|next| opens_rest(next.tag));
                seen_noun = false;
                inside
            }
            Pos::Det | Pos::Num | Pos::Adj => !seen_noun,
            Pos::Pron => !seen_noun && word.is_any(&POSSESSIVE) && next.is_some_and(|next| opens_rest(next.tag)),
            Pos::Adv => !seen_noun && next.is_some_and(|next| next.tag == Pos::Adj) && index > first,
            Pos::Cconj => {
                let between = |at: Option<&Word>| at.is_some_and(|word| word.tag == Pos::Adj);
                !seen_noun
                    && index > first
                    && between(words.get(index - 1))
                    && between(next)
                    && noun_follows(words, index + 2)
            }
            _ => false,
        };
        if !goes_on {
            break;
        }
        index += 1;
    }
    index
}

fn opens_rest(tag: Pos) -> bool {
    matches!(tag, Pos::Noun | Pos::Propn | Pos::Adj | Pos::Num)
}

fn noun_follows(words: &[Word], from: usize) -> bool {
    let rest = words.iter().skip(from).find(|word| word.tag != Pos::Adj);
    rest.is_some_and(|word| word.tag.is_noun())
}

/// The head of the tokens `first..end`: the last noun, or a number or determiner that stands for one.
fn head_of(words: &[Word], first: usize, end: usize) -> Option<usize> {
    let last = end.checked_sub(1).filter(|last| *last >= first)?;
    match words.get(last)?.tag {
        Pos::Noun | Pos::Propn | Pos::Num | Pos::Det => Some(last),
        // *the other*, *the first*: an adjective behind a determiner stands for its noun.
        Pos::Adj if last > first && words.get(first)?.tag == Pos::Det => Some(last),
        _ => (first..last).rev().find(|index| words.get(*index).is_some_and(|word| word.tag.is_noun())),
    }
}

fn hang_inside(words: &[Word], first: usize, head: usize, tree: &mut Tree) {
    // Possessors first: everything before a possessive mark hangs on the noun before it.
    let mut start = first;
    for mark in first..head {
        if words[mark].is_possessive_mark() && mark > start {
            let possessor = mark - 1;
            tree.attach(mark, possessor, Relation::Case);
            hang_inside_simple(words, start, possessor, tree);
            tree.attach(possessor, next_head(words, mark, head), Relation::NmodPoss);
            start = mark + 1;
        }
    }
    hang_inside_simple(words, start, head, tree);
}

/// The noun that a possessor before `mark` belongs to: the one before the next mark, or the head of the whole.
fn next_head(words: &[Word], mark: usize, head: usize) -> usize {
    (mark + 1..head).find(|index| words[*index].is_possessive_mark()).map_or(head, |next| next - 1)
}

fn hang_inside_simple(words: &[Word], first: usize, head: usize, tree: &mut Tree) {
    for index in first..head {
        let relation = match words[index].tag {
            Pos::Det if index + 1 < head && words[index + 1].tag == Pos::Det => Relation::DetPredet,
            Pos::Det => Relation::Det,
            Pos::Adj => Relation::Amod,
            Pos::Num => Relation::Nummod,
            Pos::Pron => Relation::NmodPoss,
            Pos::Noun | Pos::Propn => Relation::Compound,
            Pos::Cconj => Relation::Cc,
            _ => Relation::Advmod,
        };
        // An adverb in front of an adjective describes the adjective.
        let described = if relation == Relation::Advmod { index + 1 } else { head };
        tree.attach(index, described, relation);
    }
}
