//! The nouns that take part in what each verb says.

use super::tree::Tree;
use super::word::Word;
use crate::{Phrase, Pos, Relation};

/// One phrase per main verb, in order. The understood subject counts: in *sits and reads*, who sits reads.
pub(super) fn collect(words: &[Word], tree: &Tree) -> Vec<Phrase> {
    let verbs = (0..words.len()).filter(|index| words[*index].tag == Pos::Verb);
    let phrase = |verb| {
        let mut nouns = Vec::new();
        if let Some(subject) = subject_of(words, tree, verb) {
            add_with_conjuncts(words, tree, subject, &mut nouns);
        }
        for (token, relation) in tree.dependents(arguments_of(words, tree, verb)).chain(tree.dependents(verb)) {
            if is_argument(relation) {
                add_with_conjuncts(words, tree, token, &mut nouns);
            }
        }
        nouns.sort_unstable();
        nouns.dedup();
        Phrase { verb, nouns }
    };
    verbs.map(phrase).collect()
}

fn is_argument(relation: Relation) -> bool {
    use Relation as R;
    matches!(relation, R::Nsubj | R::Nsubjpass | R::Dobj | R::Iobj | R::Nmod | R::NmodTmod | R::NmodNpmod)
}

/// The verb whose objects this verb shares: in *wash and dry the lettuce*, *dry*; else itself.
fn arguments_of(words: &[Word], tree: &Tree, verb: usize) -> usize {
    let joined = words.get(verb + 1).is_some_and(|next| next.tag == Pos::Cconj)
        || words.get(verb + 1).is_some_and(|next| next.tag == Pos::Verb);
    let conjunct = tree.dependents(verb).find(|(token, relation)| *relation == Relation::Conj && *token <= verb + 2);
    match conjunct {
        Some((token, _))
            if joined && words[token].tag == Pos::Verb && tree.find(token, &[Relation::Dobj]).is_some() =>
        {
            token
        }
        _ => verb,
    }
}

fn add_with_conjuncts(words: &[Word], tree: &Tree, noun: usize, nouns: &mut Vec<usize>) {
    if words[noun].tag.is_noun() {
        nouns.push(noun);
    }
    for (token, relation) in tree.dependents(noun) {
        if relation == Relation::Conj && words[token].tag.is_noun() {
            nouns.push(token);
        }
    }
}

/// Who or what does it: the verb's own subject, the noun it describes, or the subject of the verb it hangs on.
fn subject_of(words: &[Word], tree: &Tree, verb: usize) -> Option<usize> {
    let mut at = verb;
    // Each step goes up the tree, so there are at most as many as tokens.
    loop {
        let own = tree.find(at, &[Relation::Nsubj, Relation::Nsubjpass]);
        let relative = own.is_some_and(|subject| words[subject].is_any(&["who", "which", "that"]));
        if own.is_some() && !relative {
            return own;
        }
        let (head, relation) = tree.head(at)?;
        match relation {
            Relation::Acl | Relation::AclRelcl => return Some(head),
            Relation::Xcomp => {
                if let Some(object) = tree.find(head, &[Relation::Dobj]).filter(|object| *object < at) {
                    return Some(object);
                }
            }
            Relation::Conj | Relation::Advcl | Relation::Ccomp | Relation::Parataxis | Relation::Dep => {}
            _ => return None,
        }
        at = head;
    }
}
