//! Numbers as people read them.

/// `54.21`: a fraction in percent, with two decimals and without the sign.
///
/// ```
/// assert_eq!(cuemark_core::text::percent(0.5421), "54.21");
/// ```
pub fn percent(fraction: f64) -> String {
    format!("{:.2}", 100.0 * fraction)
}

/// `12,408`: digits in groups of three.
///
/// ```
/// assert_eq!(cuemark_core::text::thousands(12_345_678), "12,345,678");
/// ```
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped_from_the_right() {
        assert_eq!([0, 999, 1_000, 12_345_678].map(thousands), ["0", "999", "1,000", "12,345,678"]);
    }
}
