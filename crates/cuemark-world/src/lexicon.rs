//! The words of the world: for each meaning the plainest first, then its synonyms.

use crate::{Colour, Shape, Size, Tempo, Topic, Verb};

/// What comes after a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing: *spins*.
    None,
    /// A particle: *comes in*.
    Particle(&'static str),
    /// An adverb: *goes away*.
    Adverb(&'static str),
    /// An adjective: *gets bigger*.
    Adjective(&'static str),
    /// A preposition before the object: *bumps into the star*.
    Preposition(&'static str),
}

/// One way of saying a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VerbWords {
    /// *spins*
    pub(crate) present: &'static str,
    /// *spinning*
    pub(crate) participle: &'static str,
    pub(crate) tail: Tail,
}

const fn words(present: &'static str, participle: &'static str, tail: Tail) -> VerbWords {
    VerbWords { present, participle, tail }
}

pub(crate) fn verb(verb: Verb) -> &'static [VerbWords] {
    use Tail::{Adjective, Adverb, None, Particle, Preposition};
    match verb {
        Verb::Enter => {
            &const {
                [
                    words("enters", "entering", None),
                    words("comes", "coming", Particle("in")),
                    words("arrives", "arriving", None),
                    words("appears", "appearing", None),
                ]
            }
        }
        Verb::Slide => {
            &const {
                [
                    words("slides", "sliding", None),
                    words("glides", "gliding", None),
                    words("moves", "moving", None),
                    words("drifts", "drifting", None),
                ]
            }
        }
        Verb::Spin => {
            &const {
                [
                    words("spins", "spinning", None),
                    words("turns", "turning", Particle("around")),
                    words("rotates", "rotating", None),
                    words("whirls", "whirling", None),
                ]
            }
        }
        Verb::Grow => {
            &const {
                [
                    words("grows", "growing", None),
                    words("gets", "getting", Adjective("bigger")),
                    words("swells", "swelling", None),
                    words("expands", "expanding", None),
                ]
            }
        }
        Verb::Jump => {
            &const {
                [
                    words("jumps", "jumping", None),
                    words("hops", "hopping", None),
                    words("bounces", "bouncing", None),
                    words("leaps", "leaping", None),
                ]
            }
        }
        Verb::Meet => {
            &const {
                [
                    words("meets", "meeting", None),
                    words("joins", "joining", None),
                    words("bumps", "bumping", Preposition("into")),
                    words("visits", "visiting", None),
                ]
            }
        }
        Verb::Leave => {
            &const {
                [
                    words("leaves", "leaving", None),
                    words("goes", "going", Adverb("away")),
                    words("exits", "exiting", None),
                    words("disappears", "disappearing", None),
                ]
            }
        }
    }
}

pub(crate) fn colour(colour: Colour) -> &'static [&'static str] {
    match colour {
        Colour::Red => &["red", "crimson", "scarlet"],
        Colour::Orange => &["orange", "amber"],
        Colour::Yellow => &["yellow", "golden"],
        Colour::Green => &["green", "emerald"],
        Colour::Cyan => &["cyan", "turquoise", "teal"],
        Colour::Blue => &["blue", "azure"],
        Colour::Purple => &["purple", "violet"],
        Colour::Pink => &["pink", "rosy"],
    }
}

pub(crate) fn shape(shape: Option<Shape>) -> &'static [&'static str] {
    match shape {
        Some(Shape::Ball) => &["ball", "circle", "disc", "orb"],
        Some(Shape::Square) => &["square", "box", "block"],
        Some(Shape::Triangle) => &["triangle", "wedge"],
        Some(Shape::Star) => &["star"],
        Some(Shape::Ring) => &["ring", "hoop", "loop"],
        Some(Shape::Cross) => &["cross"],
        None => &["thing", "shape", "object", "figure"],
    }
}

pub(crate) fn size(size: Size) -> &'static [&'static str] {
    match size {
        Size::Small => &["small", "little", "tiny"],
        Size::Large => &["large", "big", "huge"],
    }
}

pub(crate) fn tempo(tempo: Tempo) -> &'static [&'static str] {
    match tempo {
        Tempo::Slow => &["slowly", "gently"],
        Tempo::Quick => &["quickly", "rapidly", "fast"],
    }
}

pub(crate) fn topic(topic: Topic) -> &'static [&'static str] {
    match topic {
        Topic::Weather => &["weather"],
        Topic::Music => &["music"],
        Topic::Lunch => &["lunch", "food"],
        Topic::Moon => &["moon"],
        Topic::Holiday => &["holiday", "trip"],
    }
}
