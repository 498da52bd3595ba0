//! Verbs: with their auxiliaries, their subject, and the clause they hang on.

use super::chunks::What;
use super::clauses::Builder;
use super::word::{CAUSING, Form, PERCEIVING};
use crate::{Pos, Relation};

impl Builder<'_> {
    pub(super) fn verb_group(&mut self, index: usize) {
        let verb = self.items[index].head;
        let auxes = std::mem::take(&mut self.auxes);
        let form = self.words[verb].form;
        let passive = form == Form::Past && auxes.last().is_some_and(|aux| self.words[*aux].is_be());
        if form == Form::Ing && auxes.is_empty() && self.cc.is_none() && self.mark.is_none() && self.relative.is_none()
        {
            self.participle(index, verb);
        } else if self.relative.is_none() && self.mark.is_none() && self.to.is_none() && self.cc.is_none() {
            // With an auxiliary before it a past form is a tense, whatever it looks like.
            let bare = if auxes.is_empty() { form } else { Form::Finite };
            self.finite(index, verb, bare);
        } else {
            self.clause_head(verb);
        }
        self.hang_auxes(&auxes, verb, if passive { Relation::Auxpass } else { Relation::Aux });
        if form != Form::Ing || !auxes.is_empty() || self.mark.is_some() {
            let relation = if passive { Relation::Nsubjpass } else { Relation::Nsubj };
            if let Some(subject) = self.subject.take() {
                self.tree.attach(subject, verb, relation);
            }
        }
        self.verbs.push(verb);
        self.enter_clause(verb);
    }

    /// A verb in *-ing* without an auxiliary or a conjunction.
    fn participle(&mut self, index: usize, verb: usize) {
        if !self.cases.is_empty() {
            // *by opening*: the preposition opens a clause.
            for case in std::mem::take(&mut self.cases) {
                self.tree.attach(case, verb, Relation::Mark);
            }
            match self.verb.or(self.noun) {
                Some(head) => self.tree.attach(verb, head, Relation::Advcl),
                None => self.waiting = Some(verb),
            }
            return;
        }
        let previous = self.previous(index);
        match (self.verb, self.noun) {
            (Some(head), _) if previous.is_some_and(|before| matches!(before.what, What::Verb | What::Adv)) => {
                self.tree.attach(verb, head, Relation::Xcomp);
            }
            (Some(head), Some(noun)) if self.subject.is_none() => {
                let there_is = self.words[head].tag != Pos::Verb;
                let object =
                    self.tree.head(noun).is_some_and(|(above, relation)| above == head && relation == Relation::Dobj);
                let with = self.tree.find(noun, &[Relation::Case]).is_some_and(|case| self.words[case].is("with"));
                let follows = previous.is_some_and(|before| before.head == noun);
                let wears = self.words[verb].is_any(&["wearing", "containing"]);
                let describes = there_is || object && self.lemma_is(head, &PERCEIVING) || with || wears;
                let (head, relation) =
                    if follows && describes { (noun, Relation::Acl) } else { (head, Relation::Advcl) };
                self.tree.attach(verb, head, relation);
            }
            (_, Some(noun)) => {
                // *a man wearing a hat (sits)*: describes its subject, which may still wait for its own verb.
                let described = self.subject.unwrap_or(noun);
                let described = if self.tree.head(noun).is_some_and(|(_, relation)| relation == Relation::Nmod) {
                    described
                } else {
                    noun
                };
                self.tree.attach(verb, self.first_conjunct(described), Relation::Acl);
                let waits = self.finite_ahead(index);
                self.outer = self.outer.or(self.subject.take().filter(|_| waits));
                if !waits {
                    self.root = self.root.or(Some(described));
                }
            }
            (Some(head), None) => self.tree.attach(verb, head, Relation::Advcl),
            (None, None) => self.root = self.root.or(Some(verb)),
        }
    }

    fn first_conjunct(&self, noun: usize) -> usize {
        match self.tree.head(noun) {
            Some((head, Relation::Conj)) => head,
            _ => noun,
        }
    }

    /// A verb with a tense (or a bare one) that no conjunction joins to what came before; in the past form it may be a participle.
    fn finite(&mut self, index: usize, verb: usize, form: Form) {
        let may_be_participle = form == Form::Past;
        if let Some(outer) = self.outer.take() {
            // The clause that described the subject is over; here is the subject's own verb.
            self.subject = self.subject.or(Some(outer));
            self.root = Some(verb);
            return;
        }
        match (self.verb, self.subject) {
            (None, Some(subject)) if may_be_participle && self.finite_ahead(index) => {
                // *a man dressed in black sits*
                self.tree.attach(verb, subject, Relation::Acl);
                self.outer = self.subject.take();
            }
            (None, _) => self.root = self.root.or(Some(verb)),
            (Some(head), Some(_)) => {
                let clause = self.words[head].tag == Pos::Verb && self.tree.find(head, &[Relation::Dobj]).is_none();
                let clause = clause || self.wh;
                self.tree.attach(verb, head, if clause { Relation::Ccomp } else { Relation::Parataxis });
            }
            (Some(head), None) => {
                let relation = match self.previous(index) {
                    Some(before) if before.what == What::Noun && self.lemma_is(head, &CAUSING) => Relation::Xcomp,
                    Some(before) if before.head == head && self.lemma_is(head, &CAUSING) => Relation::Xcomp,
                    Some(before) if before.what == What::Noun && may_be_participle => {
                        self.tree.attach(verb, before.head, Relation::Acl);
                        return;
                    }
                    _ if may_be_participle => Relation::Advcl,
                    _ => Relation::Conj,
                };
                self.tree.attach(verb, head, relation);
            }
        }
    }

    /// Hangs the head of a clause that a conjunction, a relative pronoun or *to* opens on what came before.
    pub(super) fn clause_head(&mut self, head: usize) {
        if let Some((relative, noun)) = self.relative.take() {
            self.tree.attach(head, noun, Relation::AclRelcl);
            let relation = if self.subject.is_some() { Relation::Dobj } else { Relation::Nsubj };
            self.tree.attach(relative, head, relation);
            self.to = None;
        } else if let Some(mark) = self.mark.take() {
            self.tree.attach(mark, head, Relation::Mark);
            let complement = self.words[mark].is_any(&["that", "if", "whether"]);
            match self.verb.or(self.root) {
                Some(above) => {
                    let relation = if complement { Relation::Ccomp } else { Relation::Advcl };
                    self.tree.attach(head, above, relation);
                }
                None => self.waiting = Some(head),
            }
            // An *-ing* clause has no subject of its own: the one that waits is the main clause's.
            if self.words[head].form == Form::Ing && self.auxes.is_empty() && self.verb.is_none() {
                self.outer = self.outer.or(self.subject.take());
            }
        } else if let Some(to) = self.to.take() {
            self.tree.attach(to, head, Relation::Mark);
            let apart = self.verb.is_some_and(|verb| self.tree.find(verb, &[Relation::Dobj, Relation::Nmod]).is_some());
            match (self.verb, self.noun) {
                (Some(verb), _) if self.wh => self.tree.attach(head, verb, Relation::Ccomp),
                (Some(verb), _)
                    if apart && !self.lemma_is(verb, &["ask", "tell", "want", "help", "force", "allow", "teach"]) =>
                {
                    self.tree.attach(head, verb, Relation::Advcl);
                }
                (Some(verb), _) => self.tree.attach(head, verb, Relation::Xcomp),
                (None, Some(noun)) => self.tree.attach(head, noun, Relation::Acl),
                (None, None) => {}
            }
        } else if let Some(cc) = self.cc.take() {
            let above = self.conjoined_with(head);
            if let Some(above) = above {
                self.tree.attach(head, above, Relation::Conj);
                self.tree.attach(cc, above, Relation::Cc);
            }
        }
    }

    /// The verb that a verb behind *and* is joined to: the last of the same form, or the main verb when it has a subject of its own.
    fn conjoined_with(&self, head: usize) -> Option<usize> {
        if self.subject.is_some() {
            return self.root.or(self.verb);
        }
        let ing = |verb: usize| self.words[verb].form == Form::Ing;
        let alike = self.verbs.iter().rev().copied().find(|verb| ing(*verb) == ing(head));
        let first = |verb: usize| match self.tree.head(verb) {
            Some((above, Relation::Conj)) if ing(above) == ing(head) => above,
            _ => verb,
        };
        alike.map(first).or(self.verb)
    }
}
