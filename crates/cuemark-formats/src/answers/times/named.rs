//! Units by their names, and smaller ones behind larger ones: `1 minute and 5 seconds`.

use super::super::lex::Kind;
use super::super::number_words::spelt;
use super::{Reader, Unit};

/// A unit and the tokens that name it.
pub(super) struct Named {
    pub(super) unit: Unit,
    pub(super) tokens: usize,
    /// `12-second`: what follows tells whether it is a length.
    pub(super) is_hyphenated: bool,
}

impl Reader<'_> {
    /// A smaller unit behind a larger one: `5 seconds` behind `1 minute`, with the tokens that it takes.
    pub(super) fn smaller(&self, place: usize, scale: f64) -> Option<(f64, f64, usize)> {
        let mut skip = usize::from(self.kind(place) == Some(Kind::Comma));
        skip += usize::from(self.is(place + skip, &["and"]));
        let (value, taken) = match self.kind(place + skip)? {
            Kind::Number(value) => (value, 1),
            Kind::Word => {
                let found = spelt(self.text, self.tokens.get(place + skip..).unwrap_or_default())?;
                (found.value, found.tokens)
            }
            _ => return None,
        };
        let Some(named) = self.unit(place + skip + taken) else {
            // `1 min 30 to 2 min`
            let after = place + taken;
            let ends =
                self.kind(after).is_none_or(|kind| matches!(kind, Kind::Dash | Kind::Stop | Kind::Comma | Kind::Close))
                    || self.is(after, &["to", "until", "till", "and"]);
            let sound = skip == 0 && ends && scale == 60.0 && value < 60.0;
            return sound.then_some((value, 1.0, taken));
        };
        match named.unit {
            Unit::Seconds(smaller) if smaller < scale && smaller >= 1.0 && !named.is_hyphenated => {
                Some((value, smaller, skip + taken + named.tokens))
            }
            _ => None,
        }
    }

    /// `second 10` behind `minute 1`, `"seconds": 10` behind `"minutes": 1`, with the tokens that it takes.
    pub(super) fn minutes_then_seconds(&self, place: usize) -> Option<(f64, usize)> {
        if !self.word_before(&["minute", "minutes", "min", "mins"]) {
            return None;
        }
        let mut at = place + usize::from(self.kind(place) == Some(Kind::Comma));
        if !self.is(at, &["second", "seconds", "sec", "secs"]) {
            return None;
        }
        at += 1 + usize::from(self.kind(at + 1) == Some(Kind::Colon));
        match self.kind(at)? {
            Kind::Number(seconds) => Some((seconds, at + 1 - place)),
            _ => None,
        }
    }

    pub(super) fn rate_words(&self, place: usize) -> Option<usize> {
        if self.is(place, &["fps", "hz"]) {
            return Some(1);
        }
        let per = self.is(place, &["frames", "frame"])
            && (self.is(place + 1, &["per", "a"]) || self.kind(place + 1) == Some(Kind::Slash));
        (per && self.is(place + 2, &["second", "sec", "s"])).then_some(3)
    }

    /// The unit that is named at `place`.
    pub(super) fn unit(&self, place: usize) -> Option<Named> {
        if self.kind(place) == Some(Kind::Percent) {
            return Some(Named { unit: Unit::Percent, tokens: 1, is_hyphenated: false });
        }
        let hyphen = usize::from(
            self.kind(place) == Some(Kind::Dash)
                && self.tokens.get(place).zip(self.tokens.get(place + 1)).is_some_and(|(a, b)| a.at.end == b.at.start),
        );
        let at = place + hyphen;
        let seconds = |scale: f64| Named { unit: Unit::Seconds(scale), tokens: hyphen + 1, is_hyphenated: hyphen == 1 };
        if self.is(at, &["s", "sec", "secs", "second", "seconds"]) {
            return Some(seconds(1.0));
        }
        if self.is(at, &["ms", "msec", "millisecond", "milliseconds"]) {
            return Some(seconds(0.001));
        }
        if self.is(at, &["m", "min", "mins", "minute", "minutes"]) {
            return Some(seconds(60.0));
        }
        if self.is(at, &["h", "hr", "hrs", "hour", "hours"]) {
            return Some(seconds(3600.0));
        }
        if hyphen == 0 && self.is(at, &["percent", "percentage"]) {
            return Some(Named { unit: Unit::Percent, tokens: 1, is_hyphenated: false });
        }
        if hyphen == 0 && self.is(at, &["per"]) && self.is(at + 1, &["cent"]) {
            return Some(Named { unit: Unit::Percent, tokens: 2, is_hyphenated: false });
        }
        self.is(at, &["frame", "frames"]).then_some(Named {
            unit: Unit::Frame,
            tokens: hyphen + 1,
            is_hyphenated: hyphen == 1,
        })
    }
}
