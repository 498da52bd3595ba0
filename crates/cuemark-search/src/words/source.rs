//! Where lines come from.

use camino::Utf8Path;
use cuemark_core::{Line, Progress, Track};

/// Why a film's lines could not be read.
pub type LinesError = Box<dyn std::error::Error + Send + Sync>;

/// Reads one track of films: subtitles beside them, their speech, the text in their pictures.
///
/// An index asks its sources in their order; of each track the first that has anything to read a film from is used.
pub trait Lines: Send + Sync {
    /// What its lines are.
    fn track(&self) -> Track;

    /// What it would read a film's lines from, for people and as a mark by which a change is noticed: a subtitle file's name and
    /// size, a recogniser's name. `None` when it has nothing to read this film from.
    fn source(&self, film: &Utf8Path) -> Option<String>;

    /// The lines of a film in the order of time; none when nothing is said or written. `progress` counts **seconds of film** in a
    /// phase of its own, and is asked whether to go on.
    ///
    /// # Errors
    /// When they cannot be read, or the work was stopped.
    fn of(&self, film: &Utf8Path, progress: &Progress) -> Result<Vec<Line>, LinesError>;
}
