//! Whisper: an encoder of sound and a decoder that says what was heard.
//!
//! Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022. Single precision throughout; one window at a
//! time, so nothing is padded but the window itself. The decoder keeps keys and values of what was said and of the sound.

mod decoder;
mod encoder;
mod layers;
mod projection;

use candle_core::Tensor;

pub(crate) use decoder::{Decoder, Said};
pub(crate) use encoder::Encoder;

use crate::Result;
use crate::weights::Tensors;

/// Both halves.
pub(crate) struct Whisper {
    pub(crate) encoder: Encoder,
    pub(crate) decoder: Decoder,
}

impl Whisper {
    /// Built of tensors, each held to its shape.
    pub(crate) fn new(tensors: &mut Tensors) -> Result<Self> {
        Ok(Self { encoder: Encoder::new(tensors)?, decoder: Decoder::new(tensors)? })
    }

    /// What was heard, ready for the decoder.
    pub(crate) fn hear(&self, bands: &Tensor) -> Result<Said> {
        self.decoder.start(&self.encoder.forward(bands)?)
    }
}
