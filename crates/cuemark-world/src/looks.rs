//! How actors look, and what some of them are called.

use serde::{Deserialize, Serialize};

/// The colour of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each name is a word that films and sentences are made of
pub enum Colour {
    Red,
    Orange,
    Yellow,
    Green,
    Cyan,
    Blue,
    Purple,
    Pink,
}

impl Colour {
    /// Every colour.
    pub const ALL: [Self; 8] =
        [Self::Red, Self::Orange, Self::Yellow, Self::Green, Self::Cyan, Self::Blue, Self::Purple, Self::Pink];

    /// Red, green and blue, 0 to 255.
    pub fn rgb(self) -> [u8; 3] {
        match self {
            Self::Red => [215, 40, 40],
            Self::Orange => [235, 130, 30],
            Self::Yellow => [225, 215, 45],
            Self::Green => [40, 165, 50],
            Self::Cyan => [40, 195, 200],
            Self::Blue => [50, 60, 215],
            Self::Purple => [125, 45, 200],
            Self::Pink => [235, 80, 165],
        }
    }
}

/// The shape of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each name is a word that films and sentences are made of
pub enum Shape {
    Ball,
    Square,
    Triangle,
    Star,
    Ring,
    Cross,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 6] = [Self::Ball, Self::Square, Self::Triangle, Self::Star, Self::Ring, Self::Cross];
}

/// The size of an actor while it is not growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each name is a word that films and sentences are made of
pub enum Size {
    Small,
    Large,
}

impl Size {
    /// Both sizes.
    pub const ALL: [Self; 2] = [Self::Small, Self::Large];

    /// Distance from the centre to the edge, in stage units.
    pub(crate) fn radius(self) -> f64 {
        match self {
            Self::Small => 4.5,
            Self::Large => 7.0,
        }
    }
}

/// What one actor looks like; no two actors of a film look the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Look {
    /// Its colour.
    pub colour: Colour,
    /// Its shape.
    pub shape: Shape,
    /// Its size.
    pub size: Size,
}

/// The stars of the studio: whoever has this colour and shape has this name, in every film.
const NAMES: [(Colour, Shape, &str); 8] = [
    (Colour::Red, Shape::Ball, "Milo"),
    (Colour::Blue, Shape::Star, "Stella"),
    (Colour::Green, Shape::Triangle, "Trixie"),
    (Colour::Yellow, Shape::Ring, "Oona"),
    (Colour::Purple, Shape::Square, "Victor"),
    (Colour::Cyan, Shape::Cross, "Clara"),
    (Colour::Orange, Shape::Ball, "Otto"),
    (Colour::Pink, Shape::Star, "Rosie"),
];

/// The name of everyone with this colour and shape; most have none.
pub(crate) fn name_of(colour: Colour, shape: Shape) -> Option<&'static str> {
    NAMES.iter().find(|(c, s, _)| (*c, *s) == (colour, shape)).map(|(_, _, name)| *name)
}
