//! A small procedural film studio in which everything is known.
//!
//! Coloured shapes enter, slide, spin, grow, jump, meet and leave on a stage. A [`Film`] is the log of what happens;
//! from it the studio renders frames, and from the frames alone ([`cuemark_features::sight`]) it computes features. A grammar turns a
//! [`Meaning`] into a sentence with its exact parse, and [`relevance`] says how well any span of any film answers
//! any meaning. So claims about bias, pools and graded relevance can be checked against known truth.
//!
//! [`make`] writes a world, [`audit`] checks one, [`oracle`] answers its queries from the log, [`write_ranked`] makes one corpus of it for
//! ranked retrieval.

mod audit;
mod audit_figure;
mod error;
mod events;
mod films;
mod graded;
mod grammar;
mod hearing;
mod layout;
mod lexicon;
mod log;
mod looks;
mod make;
mod meaning;
mod mp4;
mod options;
mod oracle;
mod pools;
mod prior;
mod quality;
mod queries;
mod ranked;
mod raters;
mod rating_quality;
mod reels;
pub mod relevance;
mod render;
mod script;
mod speech;
mod stage;
mod world_size;

pub use audit::{AuditReport, LocationDistance, OracleGap, audit};
pub use audit_figure::AuditFigure;
pub use error::{Result, WorldError};
pub use events::{Event, Film, Line, Place, Tempo, Verb, Way};
pub use layout::SPLITS;
pub use log::WorldLog;
pub use looks::{Colour, Look, Shape, Size};
pub use make::{RatingCount, SplitCount, WorldReport, make};
pub use meaning::{Also, Meaning, Who};
pub use options::{Reels, WorldOptions};
pub use oracle::oracle;
pub use prior::{Prior, Shares, Side};
pub use quality::{CandidateGrades, GradeAgreement, PoolQuality, grade_agreement, grade_candidates, pool_quality};
pub use ranked::{RankedReport, write_ranked};
pub use rating_quality::RatingQuality;
pub use reels::{film_reels, watch_reels};
pub use render::{Camera, Frame};
pub use speech::Topic;
pub use world_size::WorldSize;
