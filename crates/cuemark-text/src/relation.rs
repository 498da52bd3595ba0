//! How one word depends on another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! relations {
    ($($(#[$doc:meta])* $variant:ident = $id:literal $name:literal,)*) => {
        /// A typed dependency, in the Stanford names that CMIN's graph layers number.
        ///
        /// Files of external parsers may use the newer universal names (`obj`, `obl`, `nsubj:pass` …): they are read as
        /// the Stanford relation they replaced, and a subtype we do not know (`obl:agent`) as its main type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        pub enum Relation {
            $($(#[$doc])* $variant,)*
        }

        impl Relation {
            /// Every relation, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// CMIN's number of the relation, 2 to 40; there 0 is no relation and 1 the word itself.
            pub fn id(self) -> u8 {
                match self { $(Self::$variant => $id,)* }
            }

            /// The relation's Stanford name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

relations! {
    /// Subject: *opens* → *person*.
    Nsubj = 2 "nsubj",
    /// Determiner: *door* → *the*.
    Det = 3 "det",
    /// Auxiliary: *opening* → *is*.
    Aux = 4 "aux",
    /// Conjunction word, hanging on the first conjunct.
    Cc = 5 "cc",
    /// A later conjunct, hanging on the first.
    Conj = 6 "conj",
    /// Prepositional modifier: *puts* → *table* in *puts it on the table*.
    Nmod = 7 "nmod",
    /// The preposition: *table* → *on*; the possessive mark: *Ross* → *'s*.
    Case = 8 "case",
    /// Direct object: *opens* → *door*.
    Dobj = 9 "dobj",
    /// Adjective: *door* → *red*.
    Amod = 10 "amod",
    /// Noun in front of a noun: *board* → *cutting*.
    Compound = 11 "compound",
    /// Clause with its own subject as complement.
    Ccomp = 12 "ccomp",
    /// Adverb: *walks* → *slowly*.
    Advmod = 13 "advmod",
    /// The word that opens a clause: *leaves* → *before*, *open* → *to*.
    Mark = 14 "mark",
    /// Adverbial clause: *spins* → *leaves* in *spins before it leaves*.
    Advcl = 15 "advcl",
    /// Number: *cats* → *two*.
    Nummod = 16 "nummod",
    /// Participle behind its noun: *man* → *wearing*.
    Acl = 17 "acl",
    /// Possessor: *hand* → *his*.
    NmodPoss = 18 "nmod:poss",
    /// Some dependency of unknown kind.
    Dep = 19 "dep",
    /// Subject of a passive.
    Nsubjpass = 20 "nsubjpass",
    /// Auxiliary of a passive.
    Auxpass = 21 "auxpass",
    /// Clause without a subject as complement: *begins* → *eat*.
    Xcomp = 22 "xcomp",
    /// Apposition.
    Appos = 23 "appos",
    /// Relative clause: *man* → *sits* in *the man who sits*.
    AclRelcl = 24 "acl:relcl",
    /// Verb particle: *picks* → *up*.
    CompoundPrt = 25 "compound:prt",
    /// Copula: *red* → *is*.
    Cop = 26 "cop",
    /// Negation: *moves* → *not*.
    Neg = 27 "neg",
    /// Part of a fixed expression: *next* → *to*.
    Mwe = 28 "mwe",
    /// Loosely joined clause.
    Parataxis = 29 "parataxis",
    /// Expletive: *is* → *there*.
    Expl = 30 "expl",
    /// Word before a determiner: *all the men*.
    DetPredet = 31 "det:predet",
    /// Clausal subject of a passive.
    Csubjpass = 32 "csubjpass",
    /// Time noun: *one more time*.
    NmodTmod = 33 "nmod:tmod",
    /// Noun phrase as adverb.
    NmodNpmod = 34 "nmod:npmod",
    /// Indirect object: *hands* → *her*.
    Iobj = 35 "iobj",
    /// The head of the sentence; never between two words, kept for files that write it.
    Root = 36 "root",
    /// *both* in *both … and*.
    CcPreconj = 37 "cc:preconj",
    /// Clausal subject.
    Csubj = 38 "csubj",
    /// Punctuation.
    Punct = 39 "punct",
    /// Interjection.
    Discourse = 40 "discourse",
}

impl Relation {
    /// The relation of that name, Stanford or universal; `None` when neither knows its main type.
    ///
    /// ```
    /// use cuemark_text::Relation;
    /// assert_eq!(Relation::from_name("dobj"), Some(Relation::Dobj));
    /// assert_eq!(Relation::from_name("obl:agent"), Some(Relation::Nmod));
    /// assert_eq!(Relation::from_name("likes"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        let exact = |name: &str| Self::ALL.iter().copied().find(|relation| relation.name() == name);
        let main = name.split(':').next().unwrap_or(name);
        exact(name).or_else(|| newer_name(name)).or_else(|| exact(main)).or_else(|| newer_name(main))
    }
}

/// Names of the second version of the universal dependencies, as the relation each replaced.
fn newer_name(name: &str) -> Option<Relation> {
    Some(match name {
        "obj" => Relation::Dobj,
        "obl" => Relation::Nmod,
        "obl:tmod" => Relation::NmodTmod,
        "obl:npmod" | "obl:unmarked" => Relation::NmodNpmod,
        "nsubj:pass" => Relation::Nsubjpass,
        "csubj:pass" => Relation::Csubjpass,
        "aux:pass" => Relation::Auxpass,
        "flat" | "goeswith" => Relation::Compound,
        "fixed" => Relation::Mwe,
        "advcl:relcl" => Relation::AclRelcl,
        "vocative" => Relation::Discourse,
        "list" => Relation::Parataxis,
        "dislocated" | "orphan" | "reparandum" | "clf" => Relation::Dep,
        _ => return None,
    })
}

impl TryFrom<String> for Relation {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| format!("`{name}` is no dependency relation"))
    }
}

impl From<Relation> for &'static str {
    fn from(relation: Relation) -> &'static str {
        relation.name()
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_from_2_to_40_without_a_gap() {
        let ids: Vec<u8> = Relation::ALL.iter().map(|relation| relation.id()).collect();
        assert_eq!(ids, (2..=40).collect::<Vec<u8>>());
    }

    #[test]
    fn universal_names_are_read_as_the_relation_they_replaced() {
        for (name, relation) in [
            ("obj", Relation::Dobj),
            ("nsubj:pass", Relation::Nsubjpass),
            ("aux:pass", Relation::Auxpass),
            ("obl", Relation::Nmod),
            ("acl:relcl", Relation::AclRelcl),
            ("nmod:unknown", Relation::Nmod),
        ] {
            assert_eq!(Relation::from_name(name), Some(relation), "{name}");
        }
    }
}
