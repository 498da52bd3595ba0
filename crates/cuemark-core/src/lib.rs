//! The words of moment retrieval as types.
//!
//! Seconds live in [`Span`], fractions of a duration in [`NormSpan`], clip indices in [`ClipRange`] and
//! `DiDeMo`'s five-second chunks in [`ChunkRange`]; none of them converts into another without saying how.
//! Nothing here reads a file or touches a tensor.

mod advice;
mod answers;
mod chunk;
mod clip;
pub mod digest;
mod extra;
mod highlights;
mod ids;
mod iou;
mod line;
mod moment;
pub mod nearest;
mod nms;
mod norm_span;
mod prediction;
mod printable;
mod progress;
mod relevance;
mod rng;
mod row_policy;
mod span;
mod split;
pub mod stats;
pub mod text;
mod truth;
mod video;

pub use advice::{Advice, Advise, Dialect, whole_message};
pub use answers::{Answer, Answers, Lists, UnreadField, UnreadFields, VideoTable, note_unread};
pub use chunk::{CHUNK_SECONDS, ChunkRange};
pub use clip::{ClipLen, ClipRange};
pub use extra::Extra;
pub use highlights::Highlights;
pub use ids::{QueryId, VideoId};
pub use iou::{Iou, iou_chunks};
pub use line::{Line, Track, Word};
pub use moment::{GradedMoment, Moment};
pub use nms::Nms;
pub use norm_span::NormSpan;
pub use prediction::{Prediction, Predictions, QueryPredictions, Task, TaskPredictions};
pub use printable::printable;
pub use progress::{Progress, Seen, Stopped};
pub use relevance::Relevance;
pub use rng::Rng;
pub use row_policy::{RowCounts, RowFault, RowPolicy, SpanFault};
pub use span::{RawSpan, Span, SpanError};
pub use split::Split;
pub use truth::{Query, Truth};
pub use video::Video;
