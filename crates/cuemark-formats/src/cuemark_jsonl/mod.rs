//! Our own JSON Lines: one query a line, times in seconds, one JSON Schema each under `docs/schemas/`.
//!
//! ```json
//! {"qid":"42","query":"person opens the fridge","video":"3MSZA","duration":30.96,"spans":[[2.4,9.1]]}
//! {"qid":"7","query":"…","moments":[{"video":"a","span":[1.0,4.5],"relevance":3}],"pool":["a","b"]}
//! ```
//! is truth ([`read_truth`], [`write_truth`]), and
//! ```json
//! {"qid":"42","predictions":[{"video":"3MSZA","span":[2.0,9.0],"score":0.91}]}
//! ```
//! is an answer, best first ([`read_predictions`], [`write_predictions`]).
//!
//! `qid` is text or a whole number and is compared as text; a file that repeats one is refused. `vid` is read as `video`.
//! Fields that are not named in the two files here are kept and written back.

mod predictions;
mod truth;

pub(crate) use predictions::{read_predictions, write_predictions};
pub(crate) use truth::VideoList;
pub use truth::{read_truth, write_truth};
