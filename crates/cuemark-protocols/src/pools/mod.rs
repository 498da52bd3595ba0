//! Multi-video pools: each query is searched in several videos, some of which answer it although nobody said so.
//!
//! Yang et al., "MVMR: Evaluating Natural Language Video Localization Bias over Multiple Reliable Videos Pool", 2023.
//! A video is *positive* for a query when one of its own queries says nearly the same, *negative* when none says
//! anything like it, and left out when in between; a second filter may compare the query with the video itself.
//!
//! [`make`](fn@make) builds the pools, [`calibration`] finds the thresholds that belong to a provider, [`audit`](mod@audit)
//! shows how similarities are spread, [`sheet`] asks a person, [`quality`] compares with known answers.

pub mod audit;
pub mod calibration;
mod collection;
mod make;
#[cfg(test)]
mod published_tests;
pub mod quality;
pub mod sheet;

pub use calibration::{PoolCalibration, Thresholds};
pub use collection::Collection;
pub(crate) use collection::check_sides;
pub use make::{PoolReport, PoolSettings, Pools, VideoFilter, make};
