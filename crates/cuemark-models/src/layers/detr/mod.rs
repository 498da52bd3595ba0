//! What detection transformers for moments and highlights are made of: every one of them projects clips and words, lets them
//! look at each other, and decodes a small set of spans.

mod anchored;
mod blocks;
mod encoder;
mod head;
mod inputs;
mod sine;

pub use anchored::{AnchorHeads, AnchorLayer, AnchoredDecoder, Decoded, Memory, logit};
pub use blocks::{
    Activation, DetrSize, Drawn, InputLayers, LayerPlan, Mlp, MlpEnd, Residual, glorot, normal, unused_word_places,
};
pub use encoder::{CrossLayer, CrossTail, Encoder, MaskOrder, Padded, Padding, cross_bias};
pub use head::{Rounding, SetHead, pick_rows, repeat_rows, start_token};
pub use inputs::{JointInputs, tef};
pub use sine::{anchor_code, sine_place};
