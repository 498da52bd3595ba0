//! Truth and prediction files in every layout that people use, read safely and written whole.
//!
//! [`Source`] opens files (compressed or not, within limits and a memory [`Budget`]), [`json`] takes documents apart without losing track of
//! the line, [`WholeFile`] writes a file whole or not at all. One layout, one file; [`read_predictions`] picks it by the content.

mod activitynet_json;
mod budget;
mod charades_txt;
mod counted;
mod csv;
mod cuemark_jsonl;
mod cursor;
mod detect;
mod error;
mod fault;
mod feed;
mod files;
mod join;
mod keys;
mod names;
mod number;
mod numbered;
mod predicted;
mod predictions;
mod qvh_jsonl;
mod records;
mod row_extras;
mod sink;
mod trec;
mod tvr_json;
mod tvr_ranking_json;
mod video_index;

pub mod answers;
pub mod export;
pub mod json;
pub mod npy;
pub mod python_literal;
pub mod source;
pub mod world_folder;

pub use answers::{AnswerParser, AnswerReading, UnknownParser};
pub use budget::{BadBudget, Budget, Exceeded, Meter, Unread};
pub use csv::{read_truth as read_truth_csv, write_truth as write_truth_csv};
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
pub use trec::{read_qrels, write_qrels};
pub use video_index::VideoIndex;
