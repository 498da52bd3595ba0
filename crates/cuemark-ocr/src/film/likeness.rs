//! Whether two readings are of the same words.

use crate::boxes::Corners;

/// Readings of one line have this much in common at least.
const ALIKE: f64 = 0.75;
/// Readings that are both this sure are of different words when they differ.
const SURE: f32 = 0.93;
/// Words of fewer letters stand in many places.
const TELLING: usize = 4;
/// Boxes share so much of the smaller one when they are in one place.
const SHARED: f32 = 0.3;
/// Longer readings are compared by their beginnings, so that a wall of text costs no more than a line.
const COMPARED: usize = 120;

/// The letters and digits of a line, in lower case: spaces and points come and go with every reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Likeness {
    letters: Vec<char>,
    digits: Vec<char>,
}

impl Likeness {
    pub(super) fn of(text: &str) -> Self {
        let kept = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
        let (digits, letters) = kept.take(COMPARED).partition(|c| c.is_numeric());
        Self { letters, digits }
    }

    /// Whether these words say where they belong without their place.
    pub(super) fn is_telling(&self) -> bool {
        self.letters.len() + self.digits.len() >= TELLING
    }

    /// Whether two readings, the less sure one of `confidence`, differ as readings of one line do. Numbers are taken at their word:
    /// counters, scores and chapters change by a digit.
    pub(super) fn is_misreading_of(&self, other: &Self, confidence: f32) -> bool {
        if confidence >= SURE || self.digits != other.digits {
            return false;
        }
        let longest = self.letters.len().max(other.letters.len());
        let apart = strsim::generic_levenshtein(&Chars(&self.letters), &Chars(&other.letters));
        longest > 0 && 1.0 - apart as f64 / longest as f64 >= ALIKE
    }
}

/// What `strsim` can go through twice.
struct Chars<'a>(&'a [char]);

impl<'a> IntoIterator for &Chars<'a> {
    type Item = &'a char;
    type IntoIter = std::slice::Iter<'a, char>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Whether the rectangles around two boxes share a good part of the smaller.
pub(super) fn same_place(a: &Corners, b: &Corners) -> bool {
    let bound = |corners: &Corners, axis: usize| {
        let along = corners.map(|corner| corner[axis]);
        [along.into_iter().fold(f32::INFINITY, f32::min), along.into_iter().fold(f32::NEG_INFINITY, f32::max)]
    };
    let (mut shared, mut sizes) = (1.0, [1.0, 1.0]);
    for axis in [0, 1] {
        let (ours, theirs) = (bound(a, axis), bound(b, axis));
        shared *= (ours[1].min(theirs[1]) - ours[0].max(theirs[0])).max(0.0);
        sizes = [sizes[0] * (ours[1] - ours[0]), sizes[1] * (theirs[1] - theirs[0])];
    }
    shared > SHARED * sizes[0].min(sizes[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misread(a: &str, b: &str, confidence: f32) -> bool {
        Likeness::of(a).is_misreading_of(&Likeness::of(b), confidence)
    }

    #[test]
    fn spaces_case_and_points_make_no_difference() {
        assert_eq!(Likeness::of("Hello, World"), Likeness::of("hello world."));
    }

    #[test]
    fn a_letter_is_a_misreading_when_one_reading_was_unsure() {
        assert!(misread("Starbucks", "Starbacks", 0.8));
        assert!(!misread("Starbucks", "Starbacks", 0.95));
        assert!(!misread("Starbucks", "Burger", 0.8));
    }

    #[test]
    fn another_number_is_another_line() {
        assert!(!misread("Chapter 1", "Chapter 2", 0.6));
        assert!(!misread("1", "", 0.6) && !misread("", "", 0.6));
    }

    #[test]
    fn boxes_in_one_place_share_a_good_part() {
        let at = |x: f32, wide: f32| [[x, 0.0], [x + wide, 0.0], [x + wide, 10.0], [x, 10.0]];
        assert!(same_place(&at(0.0, 100.0), &at(60.0, 50.0)));
        assert!(!same_place(&at(0.0, 100.0), &at(90.0, 50.0)));
    }
}
