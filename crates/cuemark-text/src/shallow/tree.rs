//! A forest under construction.

use crate::{Dependency, Relation};

/// The head of each token so far. Never holds a ring, whatever is asked of it.
pub(super) struct Tree {
    heads: Vec<Option<(usize, Relation)>>,
}

impl Tree {
    pub(super) fn new(tokens: usize) -> Self {
        Self { heads: vec![None; tokens] }
    }

    /// Hangs `dependent` on `head`, unless it has a head already or stands above `head`.
    pub(super) fn attach(&mut self, dependent: usize, head: usize, relation: Relation) {
        if self.heads.get(dependent).is_some_and(Option::is_none) && !self.is_above(dependent, head) {
            self.heads[dependent] = Some((head, relation));
        }
    }

    /// Gives `dependent` another relation to the head it has.
    pub(super) fn rename(&mut self, dependent: usize, relation: Relation) {
        if let Some(Some((_, held))) = self.heads.get_mut(dependent) {
            *held = relation;
        }
    }

    pub(super) fn head(&self, token: usize) -> Option<(usize, Relation)> {
        self.heads.get(token).copied().flatten()
    }

    /// The tokens that hang on `head`, in sentence order, with their relations.
    pub(super) fn dependents(&self, head: usize) -> impl Iterator<Item = (usize, Relation)> + '_ {
        let all = self.heads.iter().enumerate();
        all.filter_map(move |(token, held)| {
            held.filter(|(above, _)| *above == head).map(|(_, relation)| (token, relation))
        })
    }

    /// The first dependent by one of these relations.
    pub(super) fn find(&self, head: usize, relations: &[Relation]) -> Option<usize> {
        self.dependents(head).find(|(_, relation)| relations.contains(relation)).map(|(token, _)| token)
    }

    /// Whether `token` is `below` or stands somewhere above it.
    fn is_above(&self, token: usize, below: usize) -> bool {
        let mut at = below;
        loop {
            if at == token {
                return true;
            }
            match self.head(at) {
                Some((above, _)) => at = above,
                None => return false,
            }
        }
    }

    pub(super) fn into_dependencies(self) -> Vec<Dependency> {
        let all = self.heads.into_iter().enumerate();
        all.filter_map(|(dependent, held)| held.map(|(head, relation)| Dependency { head, dependent, relation }))
            .collect()
    }
}
