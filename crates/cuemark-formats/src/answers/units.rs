//! What the numbers of a pair are counted in, and where that is in seconds.

use super::Failure;
use super::spans::{Bound, Linker, Pair};
use super::times::{Time, Unit};

impl Linker<'_> {
    /// Numbers up to 1 that the answer calls parts of the video.
    pub(super) fn name_fractions(&self, pairs: &mut [Pair]) {
        for pair in pairs.iter_mut() {
            // `0.2 to 0.4 of the video`
            let after = pair.elements.1;
            let said = self.is(after + 1, &["of"])
                && (2..=4).any(|ahead| self.is(after + ahead, &["video", "clip", "duration", "length"]));
            if said && self.told.bare == Unit::Bare {
                for time in [&mut pair.start.time, &mut pair.end.time] {
                    if time.unit == Unit::Bare && time.value <= 1.0 {
                        time.unit = Unit::Fraction;
                    }
                }
            }
        }
    }

    /// A bound without a unit takes its partner's; pairs without take the one that all others have, if they are frames or
    /// percent.
    pub(super) fn share_units(&self, pairs: &mut [Pair]) {
        for pair in pairs.iter_mut() {
            let shared = |own: Time, other: Time| match (own.unit, other.unit) {
                (Unit::Bare, unit @ (Unit::Seconds(_) | Unit::Percent | Unit::Frame)) => Time { unit, ..own },
                _ => own,
            };
            let (start, end) = (pair.start.time, pair.end.time);
            if pair.end.plus.is_none() {
                pair.start.time = shared(start, end);
                pair.end.time = shared(end, start);
            }
        }
        let mut units = pairs.iter().map(|pair| pair.start.time.unit).filter(|unit| *unit != Unit::Bare);
        if let Some(unit @ (Unit::Frame | Unit::Percent)) = units.next()
            && units.all(|other| other == unit)
        {
            for time in pairs.iter_mut().flat_map(|pair| [&mut pair.start.time, &mut pair.end.time]) {
                if time.unit == Unit::Bare {
                    time.unit = unit;
                }
            }
        }
    }

    /// A time in seconds.
    pub(super) fn seconds(&self, time: Time) -> Result<f64, Failure> {
        let unit = if time.unit == Unit::Bare { self.told.bare } else { time.unit };
        let duration = || self.told.duration.filter(|duration| *duration > 0.0).ok_or(Failure::NoDuration);
        Ok(match unit {
            Unit::Bare | Unit::Clock => time.value,
            Unit::Seconds(scale) => time.value * scale,
            Unit::Percent => time.value * duration()? / 100.0,
            Unit::Fraction => time.value * duration()?,
            Unit::Frame => time.value / self.told.rate.filter(|rate| *rate > 0.0).ok_or(Failure::NoFrameRate)?,
            Unit::VideoStart => 0.0,
            Unit::VideoEnd => duration()?,
        })
    }

    /// A bound in seconds.
    pub(super) fn place(&self, bound: &Bound) -> Result<f64, Failure> {
        let mut seconds = self.seconds(bound.time)?;
        if let Some((length, _)) = &bound.plus {
            seconds += self.seconds(*length)?;
        }
        if bound.from_end {
            let duration = self.told.duration.filter(|duration| *duration > 0.0).ok_or(Failure::NoDuration)?;
            seconds = (duration - seconds).max(0.0);
        }
        Ok(seconds)
    }
}
