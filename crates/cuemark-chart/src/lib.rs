#![doc = include_str!("../README.md")]

mod axis;
mod frame;
mod lines;
mod picture;
mod ramp;

pub use axis::Axis;
pub use frame::{Frame, Room};
pub use lines::{Series, Style, chart, drawn};
pub use picture::picture;
pub use ramp::tone;

/// A number with one decimal at most: a tenth of a pixel is nothing.
///
/// ```
/// assert_eq!(cuemark_chart::short(2.04), "2");
/// assert_eq!(cuemark_chart::short(2.25), "2.2");
/// ```
pub fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
