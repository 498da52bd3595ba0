//! One JSON number, read exactly.

/// The powers of ten that a double holds without rounding.
const EXACT_TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The number that `text` begins with, to the last bit, and how many bytes it takes.
///
/// `None` when no number of the JSON grammar stands there (`NaN`, `+1`, `.5` and `01` are none). A number too large for
/// a double comes back infinite.
pub(crate) fn scan(text: &str) -> Option<(f64, usize)> {
    let bytes = text.as_bytes();
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
        _ => text.get(..at)?.parse().ok()?,
    };
    Some((value, at))
}

/// Appends the digits from `at` on to `mantissa` (wrapping; the caller counts them) and says where they end.
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
            assert_eq!(scan(text), None, "{text}");
        }
        for (text, value, length) in [("0", 0.0, 1), ("-0.5,", -0.5, 4), ("12]", 12.0, 2), ("1e3}", 1000.0, 3)] {
            assert_eq!(scan(text), Some((value, length)), "{text}");
        }
    }

    #[test]
    fn hard_numbers_are_rounded_once() {
        for text in
            ["9007199254740993", "0.1", "2.2250738585072011e-308", "1e23", "123456789012345678901234567890", "1e308"]
        {
            assert_eq!(scan(text).unwrap().0.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        assert_eq!(scan("1e999").unwrap().0, f64::INFINITY);
        assert!(scan("-0").unwrap().0.is_sign_negative());
    }

    proptest! {
        #[test]
        fn every_decimal_is_what_the_standard_library_says(text in "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?") {
            let (value, length) = scan(&text).unwrap();
            prop_assert_eq!(length, text.len());
            prop_assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits());
        }

        #[test]
        fn numbers_with_just_too_many_digits_are_rounded_once(text in "[1-9][0-9]{6,8}\\.[0-9]{8,10}") {
            prop_assert_eq!(scan(&text).unwrap().0.to_bits(), text.parse::<f64>().unwrap().to_bits());
        }
    }
}
