//! What a sentence says, apart from its words.

use serde::{Deserialize, Serialize};

use crate::{Colour, Look, Shape, Size, Tempo, Topic, Verb, Way};

/// Someone, as far as a sentence describes them. Nothing stated means anybody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Who {
    /// The colour, when stated (a name states colour and shape).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
    /// The shape, when stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// The size, when stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
}

impl Who {
    /// Everything there is to say about a look.
    pub fn exactly(look: Look) -> Self {
        Self { colour: Some(look.colour), shape: Some(look.shape), size: Some(look.size) }
    }

    /// Stated attributes, and how many of them `look` lacks.
    pub(crate) fn compare(self, look: Look) -> Compared {
        let mut compared = Compared::default();
        compared.note(self.colour, Some(look.colour));
        compared.note(self.shape, Some(look.shape));
        compared.note(self.size, Some(look.size));
        compared
    }
}

/// How many things were stated, and how many of them are otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) stated: usize,
    pub(crate) wrong: usize,
}

impl Compared {
    /// Compares one thing, when it was stated.
    pub(crate) fn note<T: Copy + PartialEq>(&mut self, stated: Option<T>, is: Option<T>) {
        if stated.is_some() {
            self.stated += 1;
            self.wrong += usize::from(stated != is);
        }
    }
}

/// What else the same actor does; never a meeting, which would need a partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Also {
    /// The main action comes before this one: *spins before it leaves*.
    Before(Verb),
    /// The main action comes after this one: *spins after it jumps*.
    After(Verb),
    /// Both are asked for, one right after the other: *jumps and then spins*.
    Then(Verb),
}

/// What a query asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meaning {
    /// Who does it.
    pub who: Who,
    /// The main action.
    pub verb: Verb,
    /// Who is met; meetings only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Who>,
    /// Which way, when stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// How fast, when stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tempo: Option<Tempo>,
    /// What is talked about meanwhile, when stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<Topic>,
    /// What else the actor does, when stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also: Option<Also>,
}
