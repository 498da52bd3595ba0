//! Layers that three or more models share. Parameters carry PyTorch's names, initialisers its defaults.

mod anchor_network;
mod anchors;
mod attention;
mod batch_norm;
mod bert;
mod boundaries;
mod boundary_pairs;
mod cell_filling;
mod clip_windows;
mod conv1d;
pub mod detr;
mod dual_encoder;
mod dual_transformer;
mod frame_encoder;
mod largest;
mod layer_norm;
mod linear;
mod masked_words;
mod matching_encoder;
mod matching_fixture;
mod moment_map;
mod padded_words;
mod pair;
mod query_words;
mod real_steps;
mod recurrent;
mod similarity_curve;
mod token_encoder;
mod transformer;
mod word_table;

#[cfg(test)]
pub(crate) use anchor_network::trial as anchor_trial;
pub use anchor_network::{AnchorForward, AnchorInputs, AnchorLayers, AnchorQuery, AnchorRules, Movers};
pub use anchors::{AnchorHead, AnchorSettings, Anchored, FrameRange, Positives, best_anchors, ranges_of_fixture};
pub use attention::{MultiHead, see_only};
pub use batch_norm::{BatchNorm, ConstantRows, Shares};
pub use bert::{Bert, BertFamily, BertSize};
pub use boundaries::{ScoredClips, best_clips, clip_span, nearest_clips, rank_boundaries};
pub use boundary_pairs::{EndClip, PairLimits, as_proposals, best_pairs, probabilities};
pub use cell_filling::{CellFill, CellFilling, FillNames};
pub use clip_windows::{sliding_windows, stream_moments, window_means, window_span};
pub use conv1d::{Conv1d, Steps, pointwise};
pub use dual_encoder::{
    Heads, InputProjection, NOT_THERE, Positions, SelfAttention, WordPooling, bert_linear, bert_linear_no_bias,
    bert_table, clip_endpoints, fit_steps, pair_bias,
};
pub use dual_transformer::{Decoded, DualTransformer, Sequence};
pub use frame_encoder::{FrameEncoder, FrameSettings, FrameToWords};
pub use largest::largest;
pub use layer_norm::LayerNorm;
pub use linear::{Linear, linear, linear_no_bias};
pub use masked_words::{Guessed, MaskedWords, guessing_loss, place, sentence_mask};
pub use matching_encoder::{
    MatchingEncoder, MatchingEncoderSize, TextTraining, TwoSpaces, cells_of, cosines, one_video_each,
};
pub use matching_fixture::{spans_of, video_of_sentences};
pub use moment_map::{ClipProjection, MapSize, MapStack, MapSupport, MomentMap};
pub use padded_words::PaddedWords;
pub use pair::Pair;
pub use query_words::{QueryWords, WordSource};
pub use real_steps::real_steps;
pub use recurrent::{Recurrent, Running, Ways, final_states, last_step};
pub use similarity_curve::{CurveRules, SimilarityCurve, StreamQuery, of_stream, unit_queries};
pub use token_encoder::{TokenEncoder, TokenVectors};
pub use transformer::{DecoderLayer, EncoderLayer, TransformerSize};
pub use word_table::WordTable;

use candle_nn::Init;

/// PyTorch's default for weights and biases of linear layers, convolutions and recurrences: uniform within `± 1 / sqrt(fan)`.
pub fn uniform(fan: usize) -> Init {
    let bound = 1.0 / (fan.max(1) as f64).sqrt();
    Init::Uniform { lo: -bound, up: bound }
}

/// Glorot's: uniform within `± sqrt(6 / (inputs + outputs))`.
pub fn xavier(inputs: usize, outputs: usize) -> Init {
    let bound = (6.0 / (inputs + outputs).max(1) as f64).sqrt();
    Init::Uniform { lo: -bound, up: bound }
}
