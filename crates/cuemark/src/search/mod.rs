//! The verbs of the search engine.

mod add;
mod ask;
mod calibrate;
mod create;
mod cut;
mod find;
mod found;
mod judged;
mod keep;
mod list;
mod place;
mod salvage;
mod transcribe;
mod words;

pub use add::{AddVideos, AddedVideos, Videos};
pub use ask::{Ask, Asking, parse_moment, parse_span};
pub use calibrate::{CalibrateIndex, CalibratedIndex};
pub use create::{CreateIndex, CreatedIndex};
pub use cut::{CutClip, WrittenClip};
pub use find::FindInFilm;
pub use found::{Found, FoundBecause, FoundConcept, FoundMoment, FoundUnseen, FoundWord, Shown};
pub use judged::{JudgedFile, Judgement, Judgements, Verdict};
pub use keep::{
    CompactIndex, CompactedIndex, DescribeIndex, DescribedIndex, RemoveVideos, RemovedVideos, VerifiedIndex,
    VerifyIndex,
};
pub use list::{ListFilms, ListedFilms};
pub use place::IndexPlace;
pub use salvage::SalvageIndex;
pub use transcribe::{Transcribe, Transcript, TranscriptLayout};
