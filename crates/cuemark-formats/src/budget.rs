//! How much memory one reading of a file from outside may take, counted where values are made.
//!
//! Kilobytes of a hostile file can ask for gigabytes: compressed text, values that are larger than what they are written
//! with, one text copied a thousand times. Readers therefore ask a [`Meter`] before they make something, and stop with an
//! error that names the place. The count is an estimate from above of what is alive, not of what the allocator holds.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable that sets the budget of every reading.
pub(crate) const MEMORY: &str = "CUEMARK_MEMORY";

/// The most bytes that one reading of one file may keep (a memory budget).
///
/// Written as a number of bytes, or with `K`, `M` or `G` (powers of 1024) after it.
///
/// ```
/// use cuemark_formats::Budget;
/// assert_eq!("512M".parse::<Budget>().unwrap().bytes(), 512 << 20);
/// assert_eq!("2G".parse::<Budget>().unwrap().to_string(), "2 GiB");
/// assert!("lots".parse::<Budget>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(u64);

/// What is no budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{MEMORY}`: `{value}` is no number of bytes such as 512M, 2G or 1000000000")]
pub struct BadBudget {
    value: String,
}

impl Budget {
    /// What is allowed when nobody says otherwise: 2 GiB.
    pub const DEFAULT: Self = Self(2 << 30);

    /// A budget of so many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// What the environment variable `CUEMARK_MEMORY` says, or [`Budget::DEFAULT`] where it is not set.
    ///
    /// # Errors
    /// When the variable is set to what is no budget.
    pub fn from_environment() -> Result<Self, BadBudget> {
        match std::env::var_os(MEMORY) {
            None => Ok(Self::DEFAULT),
            Some(value) => value.to_string_lossy().parse(),
        }
    }

    /// The budget of this process: the environment's, looked up once. A front end refuses a variable that makes no sense
    /// ([`Budget::from_environment`]); whoever does not gets the default.
    pub fn of_process() -> Self {
        static OURS: LazyLock<Budget> = LazyLock::new(|| Budget::from_environment().unwrap_or(Budget::DEFAULT));
        *OURS
    }

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::of_process()
    }
}

impl FromStr for Budget {
    type Err = BadBudget;

    fn from_str(text: &str) -> Result<Self, BadBudget> {
        let bad = || BadBudget { value: text.chars().take(40).collect() };
        let trimmed = text.trim();
        let (digits, shift) = match trimmed.as_bytes().last() {
            Some(b'K' | b'k') => (&trimmed[..trimmed.len() - 1], 10),
            Some(b'M' | b'm') => (&trimmed[..trimmed.len() - 1], 20),
            Some(b'G' | b'g') => (&trimmed[..trimmed.len() - 1], 30),
            _ => (trimmed, 0),
        };
        let number: u64 = digits.parse().map_err(|_| bad())?;
        let bytes = number.checked_mul(1 << shift).filter(|bytes| *bytes > 0);
        bytes.map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Size(self.0))
    }
}

/// Bytes as a person reads them.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 >> shift > 0 {
                return if self.0.trailing_zeros() >= shift {
                    write!(f, "{} {unit}", self.0 >> shift)
                } else {
                    write!(f, "{:.1} {unit}", self.0 as f64 / f64::from(1u32 << shift))
                };
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

/// Something would have taken more than the budget; it was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("needs {} of memory beside {} that is taken, the budget is {budget}", Size(*wanted), Size(*kept))]
pub struct Exceeded {
    /// Bytes that were asked for.
    pub wanted: u64,
    /// Bytes that were taken already.
    pub kept: u64,
    /// What they may come to together.
    pub budget: Budget,
}

/// Why bytes could not be had.
#[derive(Debug)]
pub enum Unread {
    /// The system, or the decompressor.
    Io(io::Error),
    /// There are more than may be kept.
    Exceeded(Exceeded),
}

/// Bytes that are read at once, at the least and, before any were seen, at the most: what a file says of its own size is
/// not to be trusted.
const FIRST_STEP: u64 = 64 << 10;
const LARGEST_STEP: u64 = 64 << 20;

/// Counts what one reading keeps against its budget. Shared by all threads that take part in it.
///
/// ```
/// use cuemark_formats::{Budget, Meter};
/// let meter = Meter::new(Budget::new(100));
/// assert!(meter.charge(80).is_ok());
/// assert_eq!(meter.charge(30).unwrap_err().kept, 80); // and nothing was counted
/// meter.release(60);
/// assert!(meter.charge(30).is_ok());
/// ```
#[derive(Debug, Default)]
pub struct Meter {
    budget: Budget,
    kept: AtomicU64,
}

impl Meter {
    /// Nothing kept so far.
    pub fn new(budget: Budget) -> Self {
        Self { budget, kept: AtomicU64::new(0) }
    }

    /// What may be kept.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// What is kept, in bytes.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Counts `bytes` that are about to be made.
    ///
    /// # Errors
    /// When they would pass the budget; they are not counted then, and must not be made.
    pub fn charge(&self, bytes: u64) -> Result<(), Exceeded> {
        let kept = self.kept.fetch_add(bytes, Ordering::Relaxed);
        if kept.saturating_add(bytes) <= self.budget.0 {
            return Ok(());
        }
        self.release(bytes);
        Err(Exceeded { wanted: bytes, kept, budget: self.budget })
    }

    /// Takes back what [`Meter::charge`] counted, when it is dropped.
    pub fn release(&self, bytes: u64) {
        // Saturating: a reading that began anew has forgotten what the one before it took.
        let _ = self.kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kept| Some(kept.saturating_sub(bytes)));
    }

    /// All bytes of `stream`, which stay counted. Room is taken in steps that are counted first, so that no more of a bomb is
    /// unpacked than may be kept; `expected` is how many bytes there probably are.
    ///
    /// # Errors
    /// When the stream cannot be read or its bytes would pass the budget.
    pub fn read_all(&self, mut stream: impl Read, expected: u64) -> Result<Vec<u8>, Unread> {
        let mut bytes = Vec::new();
        // One more, so that a stream that keeps its promise ends in the first step.
        let mut room = expected.clamp(FIRST_STEP, LARGEST_STEP).saturating_add(1);
        loop {
            // Bytes that move to a larger place lie in memory twice meanwhile.
            let moving = bytes.len() as u64;
            self.charge(room.saturating_add(moving)).map_err(Unread::Exceeded)?;
            bytes.reserve_exact(room as usize);
            self.release(moving);
            let read = stream.by_ref().take(room).read_to_end(&mut bytes).map_err(Unread::Io)? as u64;
            if read < room {
                self.release(room - read);
                return Ok(bytes);
            }
            room = bytes.len() as u64;
        }
    }

    /// Room for one more in `list`, counted by its capacity, both places while it moves.
    ///
    /// # Errors
    /// When it would pass the budget.
    pub fn room<T>(&self, list: &mut Vec<T>) -> Result<(), Exceeded> {
        if list.len() < list.capacity() {
            return Ok(());
        }
        let (before, more) = (list.capacity(), list.capacity().max(4));
        let bytes = |count: usize| (count as u64).saturating_mul(size_of::<T>() as u64);
        self.charge(bytes(before + more))?;
        list.reserve_exact(more);
        self.release(bytes(before));
        Ok(())
    }

    /// Forgets everything: a new reading begins.
    pub(crate) fn begin(&self) {
        self.kept.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_read_as_people_write_them() {
        for (text, bytes) in [("512M", 512 << 20), ("2g", 2 << 30), ("7", 7), ("3 K", 0), ("1K", 1024)] {
            assert_eq!(text.parse::<Budget>().map_or(0, Budget::bytes), bytes, "{text}");
        }
        for text in ["", "M", "-1", "0", "1.5G", "99999999999G", "2GB", "é"] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_said_in_the_unit_that_fits() {
        let said = [0, 1023, 1024, 1536, 512 << 20, 2 << 30].map(|bytes| Budget::new(bytes).to_string());
        assert_eq!(said, ["0 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "512 MiB", "2 GiB"]);
    }

    #[test]
    fn what_is_refused_is_not_counted() {
        let meter = Meter::new(Budget::new(10));
        assert_eq!(meter.charge(u64::MAX).unwrap_err().wanted, u64::MAX);
        assert_eq!(meter.kept(), 0);
    }
}
