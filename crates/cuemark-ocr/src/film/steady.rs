//! Words that stand still on a ground that does not.
//!
//! On a ground of small restless shapes the detector loses letters, more of them the brighter it is. Two looks a quarter of a second apart
//! show the same words on another ground: their mean keeps the words and makes the ground grey.

use super::likeness::same_place;
use crate::FoundText;
use crate::picture::Picture;

/// A picture is restless when this share of its squares is another than at the look before. In a film of sixteen ordinary ones an eighth
/// of the looks is; a second reading of more would cost more than it finds.
pub(super) const RESTLESS: f64 = 0.7;

/// The mean of two pictures of one size.
pub(super) fn mean(a: &Picture, b: &Picture) -> Picture {
    let rgb = a.rgb.iter().zip(&b.rgb).map(|(a, b)| a.midpoint(*b)).collect();
    Picture { width: a.width, height: a.height, rgb }
}

/// What was read in a picture and in its mean with the one before. What the mean says takes the place of all that stands there in the
/// picture, unless that says more: words that have only just come are clearer in the picture itself.
pub(super) fn joined(mut at_once: Vec<FoundText>, in_mean: Vec<FoundText>) -> Vec<FoundText> {
    for line in in_mean {
        let is_there = |other: &FoundText| same_place(&other.corners, &line.corners);
        let there: f32 = at_once.iter().filter(|other| is_there(other)).map(says).sum();
        if says(&line) >= there {
            at_once.retain(|other| !is_there(other));
            at_once.push(line);
        }
    }
    at_once
}

/// How many letters and digits of a line are right, as far as its reader knows.
fn says(line: &FoundText) -> f32 {
    line.confidence * line.text.chars().filter(|c| c.is_alphanumeric()).count() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, [left, right]: [f32; 2], confidence: f32) -> FoundText {
        let corners = [[left, 10.0], [right, 10.0], [right, 30.0], [left, 30.0]];
        FoundText { text: text.to_owned(), words: text.to_owned(), corners, confidence }
    }

    fn texts(found: &[FoundText]) -> Vec<&str> {
        found.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn a_whole_line_takes_the_place_of_its_pieces_and_of_nothing_else() {
        let pieces = vec![
            found("Platform", [0.0, 80.0], 0.95),
            found("sed today", [200.0, 290.0], 0.99),
            found("NEWS", [400.0, 450.0], 0.9),
        ];
        let whole = found("Platform seven is closed today", [0.0, 300.0], 0.95);
        assert_eq!(texts(&joined(pieces, vec![whole])), ["NEWS", "Platform seven is closed today"]);
    }

    #[test]
    fn words_that_have_only_just_come_are_read_in_the_picture_itself() {
        let line = vec![found("We should have left", [0.0, 200.0], 0.98)];
        let half = found("shou d ha", [20.0, 110.0], 0.6);
        assert_eq!(texts(&joined(line, vec![half])), ["We should have left"]);
        assert!(joined(Vec::new(), Vec::new()).is_empty());
    }

    #[test]
    fn the_mean_lies_between() {
        let picture = |level: u8| Picture { width: 1, height: 1, rgb: vec![level; 3] };
        assert_eq!(mean(&picture(0), &picture(255)).rgb, [127; 3]);
        assert_eq!(mean(&picture(40), &picture(40)), picture(40));
    }
}
