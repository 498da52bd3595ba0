//! What is known about the words of a sentence and how they hang together.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Pos, Relation};

/// One sentence taken apart: tokens, verb-centred phrases and typed dependencies.
///
/// All positions are token indices from 0. In a file it is one line of JSON, with the query's id beside it:
///
/// ```json
/// {"qid":"42","tokens":[{"text":"person","tag":"NOUN"},{"text":"opens","tag":"VERB"},{"text":"it","tag":"PRON"}],
///  "phrases":[{"verb":1,"nouns":[0]}],
///  "dependencies":[{"head":1,"dependent":0,"relation":"nsubj"},{"head":1,"dependent":2,"relation":"dobj"}]}
/// ```
///
/// The schema is `docs/schemas/parse.schema.json`. [`Parse::check`] tells whether the positions make sense; everything
/// this crate returns has passed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parse {
    /// The tokens, in order; punctuation included.
    pub tokens: Vec<TaggedToken>,
    /// One phrase per main verb, in the order of the verbs. Empty for a sentence without a verb.
    #[serde(default)]
    pub phrases: Vec<Phrase>,
    /// Typed dependencies, ordered by dependent. A token without a head is a root; there may be several.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
}

/// One token with its part of speech.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaggedToken {
    /// As written in the sentence.
    pub text: String,
    /// Its part of speech.
    pub tag: Pos,
    /// Where it stands in the sentence, in **bytes**: start and end. External parsers may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<(usize, usize)>,
}

/// A verb and the nouns that take part in what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phrase {
    /// The verb.
    pub verb: usize,
    /// Head nouns of its subject, objects and prepositional arguments, in sentence order. May be empty.
    pub nouns: Vec<usize>,
}

/// One word hanging on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// The word it hangs on.
    pub head: usize,
    /// The word that hangs.
    pub dependent: usize,
    /// How.
    pub relation: Relation,
}

/// A stretch of the sentence that plays one part for one verb: the phrases of TRM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// The verb it belongs to.
    pub verb: usize,
    /// What it is to the verb; `None` for the verb itself.
    pub relation: Option<Relation>,
    /// The tokens from its first to its last word.
    pub tokens: Range<usize>,
}

/// A position in a parse that cannot be: the field (`phrases[2].nouns[0]`) and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {problem}")]
pub struct ParseFault {
    /// The way to the field.
    pub field: String,
    /// What is wrong.
    pub problem: String,
}

impl Parse {
    /// Checks that every position names a token, that no token has two heads, and that no token hangs on itself,
    /// directly or in a ring.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), ParseFault> {
        for (index, phrase) in self.phrases.iter().enumerate() {
            self.check_index(phrase.verb, || format!("phrases[{index}].verb"))?;
            for (place, noun) in phrase.nouns.iter().enumerate() {
                self.check_index(*noun, || format!("phrases[{index}].nouns[{place}]"))?;
            }
        }
        let mut head_of = vec![None; self.tokens.len()];
        for (index, dependency) in self.dependencies.iter().enumerate() {
            self.check_index(dependency.head, || format!("dependencies[{index}].head"))?;
            self.check_index(dependency.dependent, || format!("dependencies[{index}].dependent"))?;
            let head = &mut head_of[dependency.dependent];
            if head.is_some() {
                let problem = format!("token {} has a head already", dependency.dependent);
                return Err(ParseFault { field: format!("dependencies[{index}].dependent"), problem });
            }
            *head = Some((dependency.head, index));
        }
        no_ring(&head_of)
    }

    fn check_index(&self, index: usize, field: impl FnOnce() -> String) -> Result<(), ParseFault> {
        if index < self.tokens.len() {
            return Ok(());
        }
        let problem = format!("{index} is no token: there are {}", self.tokens.len());
        Err(ParseFault { field: field(), problem })
    }

    /// The first main verb, as a token index. Auxiliaries do not count.
    pub fn first_verb(&self) -> Option<usize> {
        self.tokens.iter().position(|token| token.tag == Pos::Verb)
    }

    /// The head of each token; `None` for roots.
    pub fn heads(&self) -> Vec<Option<(usize, Relation)>> {
        let mut heads = vec![None; self.tokens.len()];
        for dependency in &self.dependencies {
            if let Some(head) = heads.get_mut(dependency.dependent) {
                *head = Some((dependency.head, dependency.relation));
            }
        }
        heads
    }

    /// The stretches that play a part for each verb: the verb itself, then its subject, objects, modifiers and
    /// adverbial clauses, each with everything that hangs below it; verbs in order, parts in sentence order.
    ///
    /// A stand-in for the semantic roles that TRM takes its phrases from. Empty for a sentence without a verb.
    pub fn roles(&self) -> Vec<Role> {
        let extents = self.extents();
        let mut roles = Vec::new();
        for phrase in &self.phrases {
            roles.push(Role { verb: phrase.verb, relation: None, tokens: phrase.verb..phrase.verb + 1 });
            let parts = self.dependencies.iter().filter(|d| d.head == phrase.verb && is_role(d.relation));
            let parts = parts.filter_map(|d| Some((d.relation, extents.get(d.dependent)?.clone())));
            roles.extend(parts.map(|(relation, tokens)| Role { verb: phrase.verb, relation: Some(relation), tokens }));
        }
        roles
    }

    /// For each token, the tokens from the first to the last that hang below it, itself included.
    fn extents(&self) -> Vec<Range<usize>> {
        let heads = self.heads();
        let mut extents: Vec<Range<usize>> = (0..heads.len()).map(|index| index..index + 1).collect();
        for index in 0..heads.len() {
            let mut above = index;
            // A walk of more steps than there are tokens would be a ring, which `check` refuses.
            for _ in 0..heads.len() {
                let Some(Some((head, _))) = heads.get(above) else { break };
                above = *head;
                if let Some(extent) = extents.get_mut(above) {
                    *extent = extent.start.min(index)..extent.end.max(index + 1);
                }
            }
        }
        extents
    }
}

/// Whether what hangs on a verb by this relation is a stretch with a part of its own in what the verb says.
fn is_role(relation: Relation) -> bool {
    use Relation as R;
    matches!(
        relation,
        R::Nsubj | R::Nsubjpass | R::Dobj | R::Iobj | R::Nmod | R::NmodTmod | R::NmodNpmod | R::Advmod | R::Advcl
    )
}

/// Walks up from every token once; tokens known to lead to a root are not walked again, so the whole is linear.
fn no_ring(head_of: &[Option<(usize, usize)>]) -> Result<(), ParseFault> {
    let mut walked_by = vec![usize::MAX; head_of.len()];
    for start in 0..head_of.len() {
        let mut at = start;
        while let Some((head, index)) = head_of[at] {
            if walked_by[at] != usize::MAX && walked_by[at] != start {
                break;
            }
            walked_by[at] = start;
            if walked_by[head] == start {
                let problem = format!("token {at} hangs on itself through token {head}");
                return Err(ParseFault { field: format!("dependencies[{index}].head"), problem });
            }
            at = head;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str], dependencies: &[(usize, usize, Relation)]) -> Parse {
        let token = |word: &&str| TaggedToken { text: (*word).to_owned(), tag: Pos::X, bytes: None };
        let dependency = |&(head, dependent, relation)| Dependency { head, dependent, relation };
        Parse {
            tokens: words.iter().map(token).collect(),
            phrases: Vec::new(),
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn positions_outside_the_sentence_are_named() {
        let mut bad = parse(&["person", "opens"], &[(1, 2, Relation::Dobj)]);
        assert_eq!(bad.check().unwrap_err().to_string(), "`dependencies[0].dependent`: 2 is no token: there are 2");
        bad.dependencies.clear();
        bad.phrases.push(Phrase { verb: 1, nouns: vec![0, 9] });
        assert_eq!(bad.check().unwrap_err().field, "phrases[0].nouns[1]");
    }

    #[test]
    fn two_heads_and_rings_are_refused() {
        let twice = parse(&["a", "b", "c"], &[(1, 0, Relation::Dep), (2, 0, Relation::Dep)]);
        assert_eq!(twice.check().unwrap_err().problem, "token 0 has a head already");
        let ring = parse(&["a", "b", "c"], &[(1, 0, Relation::Dep), (2, 1, Relation::Dep), (0, 2, Relation::Dep)]);
        assert!(ring.check().unwrap_err().problem.contains("hangs on itself"));
        assert!(parse(&["a"], &[(0, 0, Relation::Dep)]).check().is_err());
        assert!(parse(&["a", "b", "c"], &[(1, 0, Relation::Dep), (2, 1, Relation::Dep)]).check().is_ok());
    }

    #[test]
    fn roles_cover_everything_below_their_head_word() {
        let words = ["the", "man", "puts", "it", "on", "the", "table"];
        let mut put = parse(
            &words,
            &[
                (1, 0, Relation::Det),
                (2, 1, Relation::Nsubj),
                (2, 3, Relation::Dobj),
                (6, 4, Relation::Case),
                (6, 5, Relation::Det),
                (2, 6, Relation::Nmod),
            ],
        );
        put.phrases.push(Phrase { verb: 2, nouns: vec![1, 6] });
        let roles: Vec<_> = put.roles().into_iter().map(|role| (role.relation, role.tokens)).collect();
        let expected =
            [(None, 2..3), (Some(Relation::Nsubj), 0..2), (Some(Relation::Dobj), 3..4), (Some(Relation::Nmod), 4..7)];
        assert_eq!(roles, expected);
    }
}
