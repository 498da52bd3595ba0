//! One JSON number, read exactly.

/// The powers of ten that a double holds without rounding.
const EXACT_TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The number that `bytes` begin with, to the last bit, and how many of them it takes.
///
/// `None` when no number of the JSON grammar stands there (`NaN`, `+1`, `.5` and `01` are none). A number too large for
/// a double comes back infinite.
#[inline]
pub(crate) fn scan(bytes: &[u8]) -> Option<(f64, usize)> {
    match short(bytes) {
        (_, 0) => digit_by_digit(bytes),
        found => Some(found),
    }
}

/// A number as nearly all are: up to seven digits, perhaps a point and up to seven more, and text behind it.
///
/// Eight bytes are looked at at once. Numbers differ in length, which a processor that goes digit by digit guesses wrong.
/// Length 0 where there is no such number: a pair travels in registers, an option of one through memory, which is slow enough
/// to be felt thirteen million times.
#[inline]
fn short(bytes: &[u8]) -> (f64, usize) {
    const NONE: (f64, usize) = (0.0, 0);
    let (whole, length) = few_digits(bytes);
    if length == 0 || (length > 1 && bytes.first() == Some(&b'0')) {
        return NONE;
    }
    match bytes.get(length) {
        Some(b'.') => {
            let (fraction, digits) = few_digits(bytes.get(length + 1..).unwrap_or_default());
            let end = length + 1 + digits;
            match (EXACT_TENS.get(digits), bytes.get(end)) {
                (_, None | Some(b'e' | b'E')) | (None, _) => NONE,
                _ if digits == 0 => NONE,
                (Some(tens), _) => {
                    let mantissa = whole as f64 * tens + fraction as f64; // below 10^14: exact
                    (mantissa / tens, end)
                }
            }
        }
        None | Some(b'e' | b'E') => NONE,
        _ => (whole as f64, length),
    }
}

/// The one to seven digits that at least eight bytes begin with, and how many they are; none where there are not eight bytes,
/// or more digits.
#[inline]
fn few_digits(bytes: &[u8]) -> (u64, usize) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let Some(word) = bytes.first_chunk::<8>() else { return (0, 0) };
    let word = u64::from_le_bytes(*word);
    let digits = word ^ (0x30 * ONES);
    // The high bit of every byte that is no digit: 0 to 9 stay below 0x80 when 0x76 is added, nothing else does.
    let others = (((digits & (0x7f * ONES)) + 0x76 * ONES) | digits) & (0x80 * ONES);
    let count = others.trailing_zeros() as usize / 8;
    if count == 0 || count == 8 {
        return (0, 0);
    }
    // The last digit goes to the highest byte, noughts before the first; then pairs, fours and all eight are put together.
    let aligned = digits << (64 - 8 * count);
    let pairs = aligned.wrapping_mul(10).wrapping_add(aligned >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    let eight = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff;
    (eight, count)
}

/// Any number.
fn digit_by_digit(bytes: &[u8]) -> Option<(f64, usize)> {
    let negative = bytes.first() == Some(&b'-');
    let whole_from = usize::from(negative);
    let (mut mantissa, whole_to) = digits(bytes, whole_from, 0);
    let whole = whole_to - whole_from;
    if whole == 0 || (whole > 1 && bytes.get(whole_from) == Some(&b'0')) {
        return None;
    }
    let (mut at, mut fraction) = (whole_to, 0);
    if bytes.get(at) == Some(&b'.') {
        (mantissa, at) = digits(bytes, whole_to + 1, mantissa);
        fraction = at - whole_to - 1;
        if fraction == 0 {
            return None;
        }
    }
    let plain = !matches!(bytes.get(at), Some(b'e' | b'E'));
    if !plain {
        at = exponent(bytes, at)?;
    }
    // Few digits and a small power of ten: both are doubles exactly, so one division rounds once, which is correct.
    let exact = plain && whole + fraction <= 19 && mantissa < 1 << 53;
    let value = match EXACT_TENS.get(fraction) {
        Some(tens) if exact => {
            let size = mantissa as f64 / tens;
            if negative { -size } else { size }
        }
        _ => std::str::from_utf8(bytes.get(..at)?).ok()?.parse().ok()?,
    };
    Some((value, at))
}

/// Appends the digits from `at` on to `mantissa` (wrapping; the caller counts them) and says where they end.
#[inline]
fn digits(bytes: &[u8], mut at: usize, mut mantissa: u64) -> (u64, usize) {
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (mantissa, at)
}

/// Where the exponent that begins at `at` ends; `None` when it has no digits.
fn exponent(bytes: &[u8], at: usize) -> Option<usize> {
    let signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
    let from = at + 1 + usize::from(signed);
    let (_, to) = digits(bytes, from, 0);
    (to > from).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_numbers_of_the_json_grammar_are_numbers() {
        for text in ["", "-", "+1", ".5", "1.", "01", "-01", "1e", "1e+", "NaN", "Infinity", "-Infinity", "x1", "1.e3"]
        {
            assert_eq!(scan(text.as_bytes()), None, "{text}");
        }
        for (text, value, length) in [("0", 0.0, 1), ("-0.5,", -0.5, 4), ("12]", 12.0, 2), ("1e3}", 1000.0, 3)] {
            assert_eq!(scan(text.as_bytes()), Some((value, length)), "{text}");
        }
    }

    #[test]
    fn short_numbers_are_the_same_whatever_follows_them() {
        for text in [
            "0",
            "7",
            "19614",
            "1234567",
            "0.5",
            "34.5",
            "19.9",
            "1234567.1234567",
            "12345678",
            "0.12345678",
            "00",
            "01.5",
        ] {
            for behind in [",", "]", ", 12.5, 3", "e2,      ", "E+1,     ", ".", ".x", ":", "/", "\u{0}", "é      "] {
                let text = format!("{text}{behind}");
                assert_eq!(scan(format!("{text}        ").as_bytes()), digit_by_digit(text.as_bytes()), "{text}");
            }
        }
    }

    #[test]
    fn hard_numbers_are_rounded_once() {
        for text in
            ["9007199254740993", "0.1", "2.2250738585072011e-308", "1e23", "123456789012345678901234567890", "1e308"]
        {
            assert_eq!(scan(text.as_bytes()).unwrap().0.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        assert_eq!(scan(b"1e999").unwrap().0, f64::INFINITY);
        assert!(scan(b"-0").unwrap().0.is_sign_negative());
    }

    proptest! {
        #[test]
        fn every_decimal_is_what_the_standard_library_says(text in "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?") {
            let (value, length) = scan(text.as_bytes()).unwrap();
            prop_assert_eq!(length, text.len());
            prop_assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits());
        }

        #[test]
        fn numbers_with_just_too_many_digits_are_rounded_once(text in "[1-9][0-9]{6,8}\\.[0-9]{8,10}") {
            prop_assert_eq!(scan(text.as_bytes()).unwrap().0.to_bits(), text.parse::<f64>().unwrap().to_bits());
        }
    }
}
