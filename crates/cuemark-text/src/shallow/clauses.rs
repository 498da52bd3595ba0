//! Clauses: which noun phrase is whose subject or object; `verb_groups` says how one verb hangs on another.

use super::chunks::{Item, What};
use super::tree::Tree;
use super::word::{Form, PHRASAL, TIMES, Word};
use crate::lemma::verb_lemma;
use crate::{Pos, Relation};

/// Hangs the items of a sentence on each other.
pub(super) fn attach(words: &[Word], items: &[Item], tree: &mut Tree) {
    let mut builder = Builder::new(words, items, tree);
    let mut index = 0;
    while index < items.len() {
        index += builder.step(index);
    }
    builder.finish();
}

/// Reads items from left to right; holds what still waits for its head.
pub(super) struct Builder<'a> {
    pub(super) words: &'a [Word],
    pub(super) items: &'a [Item],
    pub(super) tree: &'a mut Tree,
    /// Head of the first main clause.
    pub(super) root: Option<usize>,
    /// The verb (or predicate) that takes objects and modifiers now.
    pub(super) verb: Option<usize>,
    /// Every verb so far.
    pub(super) verbs: Vec<usize>,
    /// The last noun phrase.
    pub(super) noun: Option<usize>,
    /// A noun phrase waiting for its verb.
    pub(super) subject: Option<usize>,
    /// The subject of the main clause while a clause that describes it is read.
    pub(super) outer: Option<usize>,
    /// Prepositions waiting for their noun.
    pub(super) cases: Vec<usize>,
    pub(super) auxes: Vec<usize>,
    /// Adverbs, negations and early modifiers waiting for the verb.
    pub(super) early: Vec<(usize, Relation)>,
    pub(super) mark: Option<usize>,
    pub(super) to: Option<usize>,
    pub(super) cc: Option<usize>,
    /// A relative pronoun and the noun it stands for.
    pub(super) relative: Option<(usize, usize)>,
    /// *how*, *why* … before a clause.
    pub(super) wh: bool,
    /// A clause that stood before the main one.
    pub(super) waiting: Option<usize>,
}

impl<'a> Builder<'a> {
    fn new(words: &'a [Word], items: &'a [Item], tree: &'a mut Tree) -> Self {
        Self {
            words,
            items,
            tree,
            root: None,
            verb: None,
            verbs: Vec::new(),
            noun: None,
            subject: None,
            outer: None,
            cases: Vec::new(),
            auxes: Vec::new(),
            early: Vec::new(),
            mark: None,
            to: None,
            cc: None,
            relative: None,
            wh: false,
            waiting: None,
        }
    }

    /// Reads one item and returns how many it used up.
    fn step(&mut self, index: usize) -> usize {
        let item = self.items[index];
        match item.what {
            What::Noun => self.noun_phrase(index),
            What::Verb => self.verb_group(index),
            What::Adp => return self.adposition(index),
            What::Adj => self.adjective(item.head),
            What::Aux => self.auxes.push(item.head),
            What::Adv => self.adverb(index),
            What::Sconj => {
                self.mark = Some(item.head);
                self.close_clause();
            }
            What::Cconj => self.cc = Some(item.head),
            What::Relative => {
                self.relative = self.noun.map(|noun| (item.head, noun));
                self.outer = self.outer.or(self.subject.take());
                if self.relative.is_none() {
                    self.subject = Some(item.head);
                }
            }
            What::Part => self.particle(item.head),
            What::Other => {}
        }
        1
    }

    /// A subordinate clause begins: what waited for a verb of the clause before waits no longer.
    fn close_clause(&mut self) {
        self.auxes.clear();
        self.cc = None;
    }

    fn what(&self, index: usize) -> Option<What> {
        self.items.get(index).map(|item| item.what)
    }

    pub(super) fn previous(&self, index: usize) -> Option<Item> {
        index.checked_sub(1).and_then(|before| self.items.get(before)).copied()
    }

    /// Whether a verb with a tense follows the noun phrase at `index`, over adverbs and prepositional phrases.
    fn finite_follows(&self, index: usize) -> bool {
        let mut at = index + 1;
        loop {
            match (self.what(at), self.what(at + 1)) {
                (Some(What::Aux), _) => return true,
                (Some(What::Verb), _) => return self.words[self.items[at].head].form != Form::Ing,
                (Some(What::Adv), _) => at += 1,
                (Some(What::Adp), Some(What::Noun)) => at += 2,
                _ => return false,
            }
        }
    }

    /// Whether a verb with a tense comes after `index` before a conjunction ends the clause.
    pub(super) fn finite_ahead(&self, index: usize) -> bool {
        let mut to = false;
        for item in &self.items[index + 1..] {
            match item.what {
                What::Cconj | What::Sconj | What::Relative => return false,
                What::Aux => return true,
                What::Verb if !to && self.words[item.head].form == Form::Finite => return true,
                _ => {}
            }
            to = item.what == What::Part;
        }
        false
    }

    fn noun_phrase(&mut self, index: usize) {
        let noun = self.items[index].head;
        let comma = self.previous(index).is_some_and(|before| self.words[before.head].is(","));
        if !self.cases.is_empty() {
            self.prepositional(index, noun);
        } else if self.relative.is_some() || self.mark.is_some() {
            self.subject = Some(noun);
        } else if self.cc.is_some() || comma && self.noun.is_some() && !self.finite_follows(index) {
            self.conjunct(index, noun);
        } else if !self.auxes.is_empty() {
            self.predicate(noun);
        } else if let (Some(verb), None) = (self.verb, self.subject) {
            self.object(index, verb, noun);
        } else {
            // *the first time the baby waves*: the noun phrase before was no subject after all.
            if let Some(time) = self.subject.replace(noun) {
                self.early.push((time, Relation::NmodTmod));
            }
        }
        self.noun = Some(noun);
    }

    fn prepositional(&mut self, index: usize, noun: usize) {
        let preposition = self.cases[0];
        let close = self.items[..index].iter().rev().find(|item| item.what == What::Noun && item.head < preposition);
        let of = self.words[preposition].is("of") && close.is_some_and(|item| item.head + 1 == preposition);
        let governor = match (self.verb, self.subject) {
            _ if of => close.map(|item| item.head),
            (_, Some(_)) => self.noun,
            (Some(verb), None) => Some(verb),
            (None, None) => self.noun,
        };
        match governor {
            Some(governor) => self.tree.attach(noun, governor, Relation::Nmod),
            None => self.early.push((noun, Relation::Nmod)),
        }
        for case in std::mem::take(&mut self.cases) {
            self.tree.attach(case, noun, Relation::Case);
        }
    }

    fn conjunct(&mut self, index: usize, noun: usize) {
        let new_clause = self.subject.is_none() && self.verb.is_some() && self.finite_follows(index);
        match self.noun {
            Some(before) if !new_clause => {
                let first = match self.tree.head(before) {
                    Some((head, Relation::Conj)) => head,
                    _ => before,
                };
                self.tree.attach(noun, first, Relation::Conj);
                if let Some(cc) = self.cc.take() {
                    self.tree.attach(cc, first, Relation::Cc);
                }
            }
            _ => self.subject = Some(noun),
        }
    }

    /// A noun phrase behind *is*: what the subject is, or what there is.
    fn predicate(&mut self, noun: usize) {
        let auxes = std::mem::take(&mut self.auxes);
        let there = self.subject.filter(|subject| self.words[*subject].is("there"));
        if let (Some(there), Some(be)) = (there, auxes.last()) {
            self.tree.attach(there, *be, Relation::Expl);
            self.tree.attach(noun, *be, Relation::Nsubj);
            self.subject = None;
            self.enter_clause(*be);
            return;
        }
        self.clause_head(noun);
        self.hang_auxes(&auxes, noun, Relation::Cop);
        if let Some(subject) = self.subject.take().or(self.outer.take()) {
            self.tree.attach(subject, noun, Relation::Nsubj);
        }
        self.enter_clause(noun);
    }

    fn object(&mut self, index: usize, verb: usize, noun: usize) {
        let object = self.tree.find(verb, &[Relation::Dobj]);
        let next_is_clear = self.items.get(index + 1).is_some_and(|next| {
            next.what == What::Aux || next.what == What::Verb && self.words[next.head].lower.ends_with('s')
        });
        // While a subject waits outside (*a man wearing a hat sits*), the verb that follows is that subject's.
        if self.outer.is_none() && self.finite_follows(index) && (object.is_some() || next_is_clear) {
            self.subject = Some(noun);
            return;
        }
        let time = self.words[noun].is_any(&TIMES);
        match object {
            _ if self.words[verb].tag != Pos::Verb => self.tree.attach(noun, verb, Relation::Dep),
            None if time => self.tree.attach(noun, verb, Relation::NmodTmod),
            None => self.tree.attach(noun, verb, Relation::Dobj),
            Some(_) if time => self.tree.attach(noun, verb, Relation::NmodTmod),
            // *hands Ross a cup*: two noun phrases side by side, the first a person.
            Some(first) if self.previous(index).is_some_and(|before| before.head == first) => {
                self.tree.rename(first, Relation::Iobj);
                self.tree.attach(noun, verb, Relation::Dobj);
            }
            Some(first) => self.tree.attach(noun, first, Relation::Dep),
        }
    }

    fn adjective(&mut self, adjective: usize) {
        let auxes = std::mem::take(&mut self.auxes);
        if auxes.is_empty() {
            match (self.cc, self.verb, self.noun) {
                (None, Some(verb), _) => self.tree.attach(adjective, verb, Relation::Xcomp),
                (_, _, Some(noun)) => self.tree.attach(adjective, noun, Relation::Amod),
                _ => {}
            }
            return;
        }
        self.clause_head(adjective);
        self.hang_auxes(&auxes, adjective, Relation::Cop);
        if let Some(subject) = self.subject.take().or(self.outer.take()) {
            self.tree.attach(subject, adjective, Relation::Nsubj);
        }
        self.enter_clause(adjective);
    }

    fn adverb(&mut self, index: usize) {
        let adverb = self.items[index].head;
        let word = &self.words[adverb];
        // *next to the door*: the adverb is part of the preposition.
        if word.is("next") && self.what(index + 1) == Some(What::Adp) {
            self.cases.push(adverb);
            return;
        }
        let before_clause = word.is_any(&["how", "why", "where", "when"]);
        self.wh |= before_clause;
        let verb_next = matches!(self.what(index + 1), Some(What::Verb | What::Aux));
        match self.verb {
            Some(verb)
                if !before_clause
                    && !verb_next
                    && self.cc.is_none()
                    && self.subject.is_none()
                    && self.auxes.is_empty() =>
            {
                self.tree.attach(adverb, verb, Relation::Advmod);
            }
            _ => self.early.push((adverb, Relation::Advmod)),
        }
    }

    fn particle(&mut self, particle: usize) {
        let word = &self.words[particle];
        if word.is("to") {
            self.to = Some(particle);
        } else if word.is_possessive_mark() {
            if let Some(noun) = self.noun {
                self.tree.attach(particle, noun, Relation::Case);
            }
        } else {
            self.early.push((particle, Relation::Neg));
        }
    }

    fn adposition(&mut self, index: usize) -> usize {
        let adposition = self.items[index].head;
        if let Some(used) = self.compound_preposition(index, adposition) {
            return used;
        }
        let after_verb =
            self.previous(index).filter(|before| Some(before.head) == self.verb && before.what == What::Verb);
        match (self.what(index + 1), self.verb) {
            (Some(What::Noun), Some(verb)) if after_verb.is_some() && self.is_phrasal(verb, adposition) => {
                self.tree.attach(adposition, verb, Relation::CompoundPrt);
            }
            (Some(What::Noun), _) => self.cases.push(adposition),
            (Some(What::Verb), _)
                if self.items.get(index + 1).is_some_and(|next| self.words[next.head].form == Form::Ing) =>
            {
                self.cases.push(adposition);
            }
            (_, Some(verb)) if self.subject.is_none() => self.tree.attach(adposition, verb, Relation::CompoundPrt),
            _ => self.cases.push(adposition),
        }
        1
    }

    /// *out of the box*, *in front of the box*: several words, one preposition, headed by its first word.
    fn compound_preposition(&mut self, index: usize, first: usize) -> Option<usize> {
        let is = |offset: usize, words: &[&str]| {
            self.items
                .get(index + offset)
                .is_some_and(|item| item.first == item.head && self.words[item.head].is_any(words))
        };
        let used = if is(1, &["of", "to"]) && self.what(index + 2) == Some(What::Noun) {
            2
        } else if is(1, &["front", "top", "back"]) && is(2, &["of"]) {
            3
        } else {
            return None;
        };
        for offset in 1..used {
            self.tree.attach(self.items[index + offset].head, first, Relation::Mwe);
        }
        self.cases.push(first);
        Some(used)
    }

    fn is_phrasal(&self, verb: usize, particle: usize) -> bool {
        let lemma = verb_lemma(&self.words[verb].lower);
        PHRASAL.iter().any(|(verb, particles)| *verb == lemma && self.words[particle].is_any(particles))
    }

    pub(super) fn lemma_is(&self, verb: usize, lemmas: &[&str]) -> bool {
        lemmas.contains(&verb_lemma(&self.words[verb].lower).as_str())
    }

    pub(super) fn hang_auxes(&mut self, auxes: &[usize], head: usize, last: Relation) {
        for (place, aux) in auxes.iter().enumerate() {
            let relation = if place + 1 == auxes.len() { last } else { Relation::Aux };
            self.tree.attach(*aux, head, relation);
        }
    }

    /// `head` takes objects and modifiers from here on.
    pub(super) fn enter_clause(&mut self, head: usize) {
        for (token, relation) in std::mem::take(&mut self.early) {
            self.tree.attach(token, head, relation);
        }
        let unattached = self.tree.head(head).is_none();
        if unattached && self.waiting != Some(head) && self.root.is_none() {
            self.root = Some(head);
        }
        if let (Some(waiting), true) = (self.waiting, self.root == Some(head)) {
            self.tree.attach(waiting, head, Relation::Advcl);
            self.waiting = None;
        }
        self.verb = Some(head);
        self.wh = false;
    }

    /// What is left over hangs on the head of the sentence.
    fn finish(mut self) {
        let Some(root) = self.root.or(self.verb).or(self.subject).or(self.noun) else { return };
        for (token, relation) in std::mem::take(&mut self.early) {
            self.tree.attach(token, root, relation);
        }
        if let Some(waiting) = self.waiting {
            self.tree.attach(waiting, root, Relation::Advcl);
        }
        for item in self.items.iter().filter(|item| item.what == What::Other) {
            let relation = match self.words[item.head].tag {
                Pos::Punct => Relation::Punct,
                Pos::Intj => Relation::Discourse,
                _ => Relation::Dep,
            };
            self.tree.attach(item.head, root, relation);
        }
    }
}
