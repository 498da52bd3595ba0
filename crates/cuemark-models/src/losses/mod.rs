//! Losses that three or more models share.

mod assignment;
mod drawn_negatives;
mod generalised_overlap;
mod index_entropy;
mod mutual_matching;
mod saliency;
mod sampling;
mod scaled_iou;
mod set_prediction;
mod smooth_l1;
mod top_cells;

pub use assignment::assign;
pub use drawn_negatives::{DrawnNegatives, RankingLoss};
pub use generalised_overlap::{generalised_overlap, overlap_and_slope, overlap_of, overlap_of_bounds};
pub use index_entropy::index_entropy;
pub use mutual_matching::{Excluded, MatchingTerms, MutualMatching, Pairs, Reliable};
pub use saliency::{PairedSaliency, SaliencyWeights, margin_loss, rank_contrast, twice_as_long, wrong_pairs};
pub use sampling::{Sampling, sampling_probabilities};
pub use scaled_iou::ScaledIou;
pub use set_prediction::{LabelLoss, Matching, SetLayer, SetLosses, SetWeights, distances, match_windows, set_losses};
pub use smooth_l1::smooth_l1;
pub use top_cells::top_cells;
