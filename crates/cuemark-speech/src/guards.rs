//! Whether words may be believed. Silence and music make a network say what subtitles of silence and music say, or one thing again
//! and again; nothing is better than that.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// What a window's words are judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence<'a> {
    pub(crate) text: &'a str,
    /// Mean natural logarithm of the probabilities of its pieces, the end included.
    pub(crate) mean_log_probability: f32,
    /// How likely nobody speaks in the window, by the network itself.
    pub(crate) no_speech: f32,
    /// **Seconds** of the window in which somebody may be speaking.
    pub(crate) voiced: f64,
}

/// Why words are not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// There are none, only marks.
    NoWords,
    /// The network thinks that nobody speaks, and is not sure of its words.
    NoSpeech,
    /// It is not sure of its words at all.
    Unsure,
    /// They say the same again and again.
    Repeats,
    /// More than anybody can say in the time.
    TooMany,
}

/// Whisper's own limits: a mean below -1 with silence likelier than 0.6.
const NO_SPEECH: f32 = 0.6;
const LEAST_LOG_PROBABILITY: f32 = -1.0;
/// Below this no word is believed, whatever it thinks of silence.
const HOPELESS: f32 = -1.5;
/// Text that shrinks by more than this repeats itself; ordinary speech shrinks by half.
const COMPRESSION: f64 = 2.4;
/// Letters a second that nobody says: auctioneers reach some thirty.
const LETTERS_PER_SECOND: f64 = 45.0;

/// What is wrong with a window's words; `None` of those that may be believed.
pub(crate) fn doubt(evidence: Evidence<'_>) -> Option<Doubt> {
    let letters = evidence.text.chars().filter(|letter| letter.is_alphanumeric()).count();
    if letters == 0 {
        return Some(Doubt::NoWords);
    }
    if evidence.mean_log_probability < HOPELESS {
        return Some(Doubt::Unsure);
    }
    if evidence.no_speech > NO_SPEECH && evidence.mean_log_probability < LEAST_LOG_PROBABILITY {
        return Some(Doubt::NoSpeech);
    }
    // Half a line seems certain once the network has decided that this is the credits: when it all but rules out speech, its
    // words have to be much better than usual.
    if evidence.no_speech > 0.9 && evidence.mean_log_probability < -0.35 {
        return Some(Doubt::NoSpeech);
    }
    if compression(evidence.text) > COMPRESSION {
        return Some(Doubt::Repeats);
    }
    let room = 12.0 + LETTERS_PER_SECOND * evidence.voiced;
    (letters as f64 > room).then_some(Doubt::TooMany)
}

/// How many times smaller text gets.
fn compression(text: &str) -> f64 {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail; if it did, nothing would be known about the text.
    let packed = packer.write_all(text.as_bytes()).and_then(|()| packer.finish());
    packed.map_or(1.0, |packed| text.len() as f64 / packed.len().max(1) as f64)
}

/// How long the phrase is that the end of `pieces` says at least four times in a row; `None` of an end that goes on.
pub(crate) fn loop_at_end(pieces: &[u32]) -> Option<usize> {
    (1..=24).find(|period| {
        let times = 4.max(12_usize.div_ceil(*period));
        let Some(end) = pieces.len().checked_sub(period * times).map(|from| &pieces[from..]) else { return false };
        end.iter().zip(&end[*period..]).all(|(one, next)| one == next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str, mean: f32, no_speech: f32) -> Option<Doubt> {
        doubt(Evidence { text, mean_log_probability: mean, no_speech, voiced: 5.0 })
    }

    #[test]
    fn plain_speech_is_believed() {
        assert_eq!(judged("The first snow fell on the roofs of the old town.", -0.3, 0.1), None);
        assert_eq!(judged("Yes.", -0.6, 0.7), None);
    }

    #[test]
    fn what_the_network_itself_doubts_is_not() {
        assert_eq!(judged("Thank you.", -1.1, 0.7), Some(Doubt::NoSpeech));
        assert_eq!(judged("Thank you.", -0.6, 0.95), Some(Doubt::NoSpeech));
        assert_eq!(judged("quite something", -2.0, 0.1), Some(Doubt::Unsure));
        assert_eq!(judged(" ... ", -0.1, 0.0), Some(Doubt::NoWords));
    }

    #[test]
    fn one_thing_again_and_again_is_not() {
        assert_eq!(judged(&"I'm going to be here. ".repeat(12), -0.1, 0.0), Some(Doubt::Repeats));
        let many = "every word of this differs a little from those around and yet nobody says so much in one second";
        let evidence = Evidence { text: many, mean_log_probability: -0.2, no_speech: 0.0, voiced: 0.5 };
        assert_eq!(doubt(evidence), Some(Doubt::TooMany));
    }

    #[test]
    fn a_loop_is_found_by_its_period() {
        let phrase = [3, 1, 4];
        let looped: Vec<u32> = [9, 9, 2].into_iter().chain(phrase.into_iter().cycle().take(12)).collect();
        assert_eq!(loop_at_end(&looped), Some(3));
        assert_eq!(loop_at_end(&looped[..14]), None);
        assert_eq!(loop_at_end(&[7; 12]), Some(1));
        assert_eq!(loop_at_end(&[7; 11]), None);
        assert_eq!(loop_at_end(&[]), None);
    }
}
