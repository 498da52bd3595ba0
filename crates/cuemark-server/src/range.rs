//! Which bytes of a file a request wants (RFC 9110, 14.1).

use std::ops::Range;

/// What a `Range` header asks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All of it: nothing was said, or nothing that has to be understood (several ranges, another unit, nonsense).
    Whole,
    /// These bytes, never none and all inside the file.
    Part(Range<u64>),
    /// Bytes that it does not have.
    Outside,
}

impl Wanted {
    /// Reads the value of a `Range` header for a file of `length` bytes. Whatever the header says, the answer lies inside
    /// the file.
    ///
    /// ```
    /// use cuemark_server::Wanted;
    /// assert_eq!(Wanted::read("bytes=100-299", 1000), Wanted::Part(100..300));
    /// assert_eq!(Wanted::read("bytes=-10", 1000), Wanted::Part(990..1000));
    /// assert_eq!(Wanted::read("bytes=2000-", 1000), Wanted::Outside);
    /// assert_eq!(Wanted::read("bytes=0-1,5-6", 1000), Wanted::Whole);
    /// ```
    pub fn read(header: &str, length: u64) -> Self {
        let Some((unit, range)) = header.split_once('=') else { return Self::Whole };
        if !unit.trim().eq_ignore_ascii_case("bytes") || range.contains(',') {
            return Self::Whole;
        }
        let Some((first, last)) = range.trim().split_once('-') else { return Self::Whole };
        match (number(first), number(last)) {
            (Number::Absent, Number::Is(count)) => match count.min(length) {
                0 => Self::Outside,
                count => Self::Part(length - count..length),
            },
            (Number::Is(first), Number::Absent) => Self::within(first, length, length),
            (Number::Is(first), Number::Is(last)) if last < first => Self::Whole,
            (Number::Is(first), Number::Is(last)) => Self::within(first, last.saturating_add(1), length),
            _ => Self::Whole,
        }
    }

    fn within(first: u64, end: u64, length: u64) -> Self {
        if first < length { Self::Part(first..end.min(length)) } else { Self::Outside }
    }
}

enum Number {
    Absent,
    /// Numbers too large for 64 bits are beyond every file and count as the largest.
    Is(u64),
    Nonsense,
}

fn number(text: &str) -> Number {
    if text.is_empty() {
        return Number::Absent;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Number::Is(text.parse().unwrap_or(u64::MAX));
    }
    Number::Nonsense
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_at_the_edges_stay_inside_the_file() {
        for (header, wanted) in [
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=999-", Wanted::Part(999..1000)),
            ("bytes=0-99999999999999999999", Wanted::Part(0..1000)),
            ("bytes=-99999999999999999999", Wanted::Part(0..1000)),
            ("Bytes = 5-9", Wanted::Part(5..10)),
            ("bytes=1000-", Wanted::Outside),
            ("bytes=-0", Wanted::Outside),
            ("bytes=99999999999999999999-", Wanted::Outside),
        ] {
            assert_eq!(Wanted::read(header, 1000), wanted, "{header}");
        }
        for header in ["bytes=0-", "bytes=-5", "bytes=0-5"] {
            assert_eq!(Wanted::read(header, 0), Wanted::Outside, "{header}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_left_alone() {
        for header in
            ["", "bytes", "bytes=", "bytes=-", "bytes=9-3", "bytes=+1-2", "bytes=a-b", "frames=0-1", "bytes=1-2-3"]
        {
            assert_eq!(Wanted::read(header, 1000), Wanted::Whole, "{header}");
        }
    }
}
