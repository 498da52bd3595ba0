//! One video.

use crate::VideoId;

/// One file or id, with its duration where the annotations state one.
#[derive(Debug, Clone, PartialEq)]
pub struct Video {
    /// Its name.
    pub id: VideoId,
    /// How long it lasts, in **seconds**. `None` when no file says so; never a guess.
    pub duration: Option<f64>,
}

impl Video {
    /// A video whose duration, in seconds, is stated.
    pub fn new(id: impl Into<VideoId>, duration: f64) -> Self {
        Self { id: id.into(), duration: Some(duration) }
    }
}
