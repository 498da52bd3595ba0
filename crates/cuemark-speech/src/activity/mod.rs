//! Where somebody may be speaking: what is not, the network never hears, and cannot invent words for.

mod energy;
mod regions;
mod silero;

pub(crate) use energy::Energy;
pub(crate) use regions::{Region, Regions};
pub(crate) use silero::{Silero, SileroState};

/// Samples of one judgement: 32 ms.
pub(crate) const FRAME: usize = 512;

/// Whatever judges frames, and what it remembers of those before.
pub(crate) enum Detector<'a> {
    /// Silero's small network.
    Silero(&'a Silero, Box<SileroState>),
    /// Loudness above the noise.
    Energy(Energy),
}

impl Detector<'_> {
    /// How likely somebody speaks in the next frame, between 0 and 1.
    pub(crate) fn judge(&mut self, frame: &[f32; FRAME]) -> f32 {
        match self {
            Self::Silero(network, state) => network.judge(frame, state),
            Self::Energy(energy) => energy.judge(frame),
        }
    }
}
