//! Losses that three or more models share.

mod drawn_negatives;
mod index_entropy;
mod mutual_matching;
mod scaled_iou;
mod smooth_l1;
mod top_cells;

pub use drawn_negatives::{Comparison, DrawnNegatives};
pub use index_entropy::index_entropy;
pub use mutual_matching::{Excluded, MatchingTerms, MutualMatching, Pairs, Reliable};
pub use scaled_iou::ScaledIou;
pub use smooth_l1::smooth_l1;
pub use top_cells::top_cells;
