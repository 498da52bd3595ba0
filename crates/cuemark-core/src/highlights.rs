//! Which clips of a video several people found worth watching.

use crate::ClipLen;

/// Ratings of clips by several people, as QVHighlights gives them; clips that are not listed were rated 0 by all.
#[derive(Debug, Clone, PartialEq)]
pub struct Highlights {
    /// Seconds per clip.
    pub clip_len: ClipLen,
    /// Index of each rated clip.
    pub clips: Vec<usize>,
    /// For each rated clip, one grade (0 to 4) per person.
    pub ratings: Vec<Vec<u8>>,
}
