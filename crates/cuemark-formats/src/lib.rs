//! Truth and prediction files in every layout that people use, read safely and written whole.
//!
//! [`source`] opens files (compressed or not, within limits and a memory [`budget`]), [`json`] takes documents apart without losing track of
//! the line, [`sink`] writes a file whole or not at all. One layout, one file; [`read_predictions`] picks it by the content.

mod counted;
mod cursor;
mod fault;
mod feed;
mod join;
mod keys;
mod names;
mod number;
mod numbered;
mod predicted;
mod predictions;
mod records;
mod row_extras;
mod video_index;

pub mod activitynet_json;
pub mod answers;
pub mod budget;
pub mod charades_txt;
pub mod csv;
pub mod cuemark_jsonl;
pub mod detect;
pub mod error;
pub mod export;
pub mod files;
pub mod json;
pub mod npy;
pub mod python_literal;
pub mod qvh_jsonl;
pub mod sink;
pub mod source;
pub mod trec;
pub mod tvr_json;
pub mod tvr_ranking_json;
pub mod world_folder;

pub use answers::{AnswerParser, AnswerReading, UnknownParser};
pub use budget::{BadBudget, Budget, Exceeded, Meter, Unread};
pub use csv::read_truth as read_truth_csv;
pub use cuemark_jsonl::{read_truth, write_truth};
pub use detect::{PredictionFormat, UnknownFormat};
pub use error::{ReadError, Result};
pub use files::{Files, OpenFile, RealFiles};
pub use join::match_sentences;
pub use keys::{StrangeKey, line_of, query_on, strange_keys};
pub use numbered::NumberedAnswers;
pub use predictions::{FileAnswers, PredictionOptions, read_answers, read_predictions, write_predictions};
pub use sink::{Overwrite, WholeFile};
pub use source::{Limits, Source};
pub use trec::read_qrels;
pub use video_index::VideoIndex;
