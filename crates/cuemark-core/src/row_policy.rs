//! What to do with annotated spans that cannot be right, and how many there were.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::thousands;
use crate::{RawSpan, Span, SpanError};

/// What a reader does with rows that cannot be right (`bad_rows`). Every policy counts what it met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum RowPolicy {
    /// Drop nothing: swap reversed spans, raise negative starts to 0, leave ends past the duration. Default.
    #[default]
    Keep,
    /// As `Keep`, and clip to the video.
    Clamp,
    /// Leave out reversed, empty and out-of-range rows.
    Skip,
    /// Stop at the first.
    Error,
}

/// One thing that can be wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowFault {
    /// The end comes before the start.
    Reversed,
    /// Start and end are the same.
    Empty,
    /// The start is negative.
    StartsBeforeVideo,
    /// The start lies after the video's end.
    StartsAfterVideo,
    /// The end lies after the video's end.
    EndsAfterVideo,
    /// A row of words and numbers that the published file repeats; counted, never dropped.
    Repeated,
}

impl RowFault {
    /// Every fault, in the order that reports list them.
    pub const ALL: [Self; 6] = [
        Self::Reversed,
        Self::Empty,
        Self::StartsBeforeVideo,
        Self::StartsAfterVideo,
        Self::EndsAfterVideo,
        Self::Repeated,
    ];
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reversed => "reversed",
            Self::Empty => "empty",
            Self::StartsBeforeVideo => "starts before the video",
            Self::StartsAfterVideo => "starts after the video",
            Self::EndsAfterVideo => "ends after the video",
            Self::Repeated => "repeated",
        })
    }
}

/// How often each fault was met, where first, and what was done about it. Equal counts are equal wherever they were met.
#[derive(Debug, Clone, Default, Eq)]
pub struct RowCounts {
    met: [usize; RowFault::ALL.len()],
    /// The line of the first row that had the fault, from 1; 0 where nobody said.
    first: [usize; RowFault::ALL.len()],
    /// Rows that were left out.
    pub dropped: usize,
    /// Rows whose times were changed (swapped, raised or clipped).
    pub changed: usize,
}

impl PartialEq for RowCounts {
    fn eq(&self, other: &Self) -> bool {
        (self.met, self.dropped, self.changed) == (other.met, other.dropped, other.changed)
    }
}

impl RowCounts {
    /// How many rows had `fault`. A row can have several.
    pub fn met(&self, fault: RowFault) -> usize {
        self.met[fault as usize]
    }

    /// Notes that one row had `fault`.
    pub fn count(&mut self, fault: RowFault) {
        self.met[fault as usize] += 1;
    }

    /// Says that the faults without a line yet were met on this one, from 1. Readers call it after every record.
    #[inline]
    pub fn place(&mut self, line: usize) {
        for (first, met) in self.first.iter_mut().zip(self.met) {
            if met > 0 && *first == 0 {
                *first = line;
            }
        }
    }

    /// A fault that was met and has no line yet; looking one up can take long, and is worth it once.
    pub fn unplaced(&self) -> Option<RowFault> {
        RowFault::ALL.into_iter().find(|fault| self.met(*fault) > 0 && self.first[*fault as usize] == 0)
    }

    /// The line of the first row that had `fault`, from 1, where the reader said so.
    pub fn first_line(&self, fault: RowFault) -> Option<usize> {
        Some(self.first[fault as usize]).filter(|line| *line > 0)
    }

    /// Adds what another, later part of the data met.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.met.iter_mut().zip(other.met) {
            *mine += theirs;
        }
        for (mine, theirs) in self.first.iter_mut().zip(other.first) {
            if *mine == 0 {
                *mine = theirs;
            }
        }
        self.dropped += other.dropped;
        self.changed += other.changed;
    }

    /// The faults that were met at all, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (RowFault, usize)> + '_ {
        RowFault::ALL.into_iter().map(|fault| (fault, self.met(fault))).filter(|(_, n)| *n > 0)
    }

    /// The counts as reports print them: the faults that were met, then `changed` and `dropped`.
    pub fn to_json(&self) -> serde_json::Value {
        let mut object: serde_json::Map<_, _> = self.iter().map(|(fault, n)| (fault.to_string(), n.into())).collect();
        object.insert("changed".to_owned(), self.changed.into());
        object.insert("dropped".to_owned(), self.dropped.into());
        object.into()
    }

    /// What was wrong in one line that a person reads; `None` when nothing was.
    pub fn summary(&self) -> Option<String> {
        let met: Vec<String> = self.iter().map(|(fault, n)| format!("{} {fault}", thousands(n))).collect();
        let mut line = (!self.is_clean()).then(|| met.join(", "))?;
        for (n, done) in [(self.changed, "changed"), (self.dropped, "left out")] {
            if n > 0 {
                line = format!("{line}; {} {done}", thousands(n));
            }
        }
        Some(line)
    }

    /// Whether nothing was met.
    pub fn is_clean(&self) -> bool {
        self.met.iter().all(|n| *n == 0)
    }
}

impl RowPolicy {
    /// Turns what a file says into a span, counting what is wrong with it. `None` means: leave the row out.
    ///
    /// `duration` is the video's, in seconds, when it is known.
    ///
    /// # Errors
    /// A bound that is not finite, under every policy; the first fault, under [`RowPolicy::Error`].
    pub fn judge(self, raw: RawSpan, duration: Option<f64>, counts: &mut RowCounts) -> Result<Option<Span>, SpanFault> {
        for bound in [raw.start, raw.end] {
            if !bound.is_finite() {
                return Err(SpanFault::NotASpan(SpanError::NotFinite(bound)));
            }
        }
        let faults = Faults::of(raw, duration);
        for fault in faults.iter() {
            counts.count(fault);
        }
        if let Some(first) = faults.iter().next() {
            match self {
                Self::Error => return Err(SpanFault::Bad { fault: first, raw, duration }),
                Self::Skip => {
                    counts.dropped += 1;
                    return Ok(None);
                }
                Self::Keep | Self::Clamp => {}
            }
        }
        let (low, high) = (raw.start.min(raw.end), raw.start.max(raw.end));
        let mut span = Span::trusted(low.max(0.0), high.max(0.0));
        if let (Self::Clamp, Some(duration)) = (self, duration) {
            span = span.clip_to(duration);
        }
        if (span.start(), span.end()) != (raw.start, raw.end) {
            counts.changed += 1;
        }
        Ok(Some(span))
    }
}

/// Why a row stops the reading.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SpanFault {
    /// It is no span under any policy.
    #[error(transparent)]
    NotASpan(#[from] SpanError),
    /// The policy is to stop at the first bad row.
    #[error("{}", describe(*fault, *raw, *duration))]
    Bad {
        /// What is wrong.
        fault: RowFault,
        /// What the file says.
        raw: RawSpan,
        /// The video's duration in seconds, when known.
        duration: Option<f64>,
    },
}

fn describe(fault: RowFault, raw: RawSpan, duration: Option<f64>) -> String {
    let RawSpan { start, end } = raw;
    let whole = duration.unwrap_or(f64::NAN);
    match fault {
        RowFault::Reversed => format!("{end} s is before start {start} s"),
        RowFault::Empty => format!("the moment has no length ({start} s to {end} s)"),
        RowFault::StartsBeforeVideo => format!("{start} s is before the first frame"),
        RowFault::StartsAfterVideo => format!("start {start} s is after the video's end at {whole} s"),
        RowFault::EndsAfterVideo => format!("end {end} s is after the video's end at {whole} s"),
        RowFault::Repeated => "the row stands in the file twice".to_owned(),
    }
}

/// The faults of one row; all that apply, reversed first.
struct Faults([Option<RowFault>; 3]);

impl Faults {
    fn of(raw: RawSpan, duration: Option<f64>) -> Self {
        let (low, high) = (raw.start.min(raw.end), raw.start.max(raw.end));
        let shape = if raw.end < raw.start {
            Some(RowFault::Reversed)
        } else {
            (raw.start == raw.end).then_some(RowFault::Empty)
        };
        let before = (low < 0.0).then_some(RowFault::StartsBeforeVideo);
        let after = duration.and_then(|duration| {
            if low > duration {
                Some(RowFault::StartsAfterVideo)
            } else {
                (high > duration).then_some(RowFault::EndsAfterVideo)
            }
        });
        Self([shape, before, after])
    }

    fn iter(&self) -> impl Iterator<Item = RowFault> + '_ {
        self.0.iter().copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(policy: RowPolicy, start: f64, end: f64) -> (Result<Option<Span>, SpanFault>, RowCounts) {
        let mut counts = RowCounts::default();
        (policy.judge(RawSpan::new(start, end), Some(10.0), &mut counts), counts)
    }

    #[test]
    fn keep_swaps_reversed_rows_and_leaves_ends_past_the_video() {
        let (span, counts) = judge(RowPolicy::Keep, 8.0, 7.0);
        assert_eq!(span.unwrap(), Some(Span::new(7.0, 8.0).unwrap()));
        assert_eq!((counts.met(RowFault::Reversed), counts.changed, counts.dropped), (1, 1, 0));
        let (span, counts) = judge(RowPolicy::Keep, 8.0, 12.0);
        assert_eq!(span.unwrap(), Some(Span::new(8.0, 12.0).unwrap()));
        assert_eq!((counts.met(RowFault::EndsAfterVideo), counts.changed), (1, 0));
    }

    #[test]
    fn clamp_clips_to_the_video() {
        let (span, counts) = judge(RowPolicy::Clamp, 8.0, 12.0);
        assert_eq!(span.unwrap(), Some(Span::new(8.0, 10.0).unwrap()));
        assert_eq!(counts.changed, 1);
    }

    #[test]
    fn skip_leaves_bad_rows_out_and_counts_them() {
        for (start, end) in [(8.0, 7.0), (3.0, 3.0), (8.0, 12.0), (11.0, 12.0), (-1.0, 4.0)] {
            let (span, counts) = judge(RowPolicy::Skip, start, end);
            assert_eq!(span.unwrap(), None);
            assert_eq!(counts.dropped, 1);
        }
        assert!(judge(RowPolicy::Skip, 1.0, 2.0).0.unwrap().is_some());
    }

    #[test]
    fn error_stops_and_says_why() {
        let message = judge(RowPolicy::Error, 5.0, 3.5).0.unwrap_err().to_string();
        assert_eq!(message, "3.5 s is before start 5 s");
    }

    #[test]
    fn the_first_line_with_a_fault_is_kept_and_later_parts_do_not_move_it() {
        let mut whole = RowCounts::default();
        for line in [12, 40] {
            let mut part = RowCounts::default();
            part.count(RowFault::Reversed);
            part.place(line);
            whole.add(&part);
        }
        assert_eq!((whole.met(RowFault::Reversed), whole.first_line(RowFault::Reversed)), (2, Some(12)));
        assert_eq!(whole.first_line(RowFault::Empty), None);
    }

    #[test]
    fn numbers_that_are_not_finite_stop_under_every_policy() {
        for policy in [RowPolicy::Keep, RowPolicy::Clamp, RowPolicy::Skip, RowPolicy::Error] {
            assert!(judge(policy, f64::NAN, 3.0).0.is_err());
            assert!(judge(policy, 1.0, f64::INFINITY).0.is_err());
        }
    }
}
