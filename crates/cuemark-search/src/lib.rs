//! Moment search: a collection of videos in, ranked moments out.
//!
//! An [`Encoder`] maps sentences and moments into one space; an [`Engine`] keeps the moments and finds those nearest to a
//! sentence; an [`Index`] is both together with the catalogue of videos. [`Index::answer`] turns a [`Question`] into ranked
//! moments with a probability and an explanation each.
//!
//! Everything that [`Engine::put`] has acknowledged is on disk and is found again after the program was killed at any
//! point: vectors lie in an append-only log with checksums, and what makes search fast is derived from it.

mod adding;
mod answer;
mod embedding;
pub mod encoder;
pub mod engine;
mod error;
mod films_quality;
mod filter;
mod index;
mod kept;
mod manifest;
mod one_film;
mod quality;
mod recalibrate;
mod together;
mod video;
mod words;

pub use adding::{AddOptions, Added, AddedVideo, Became};
pub use answer::{
    Answer, Answers, Because, Calibration, MatchedConcept, MatchedWord, Question, Reliability, ReliabilityBin,
    RightMoments, STRIP, SizedAnswer, Stages, UnseenWord, fit_at_sizes, fit_calibration,
};
pub use cuemark_media::Partial;
pub use embedding::{Embedding, dot};
pub use encoder::{EmbeddedVideo, Encoder, NearestName};
pub use engine::{
    CollectionLayout, Compacted, Effort, Engine, EngineUrl, Fault, Hit, IndexedMoment, Lost, Nearest, Salvaged,
    Settling, Status, VectorIndex, salvage,
};
pub use error::{Result, SearchError};
pub use films_quality::{FilmShares, FilmsQuality, HalfRefusing, Refusing, fit_cut};
pub use filter::Filter;
pub use index::{Index, Marking, Verified};
pub use kept::KeptFile;
pub use manifest::Manifest;
pub use quality::{Quality, QualityOptions, WayQuality};
pub use video::{TrackRead, VideoEntry, VideoState};
pub use words::{AskedWord, Forms, Lines, LinesError, Passage, Passages, Phrase, WordsAsked};
