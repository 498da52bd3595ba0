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

/// `1 query`, `1,550 queries`.
///
/// ```
/// use cuemark_core::text::counted;
/// assert_eq!(counted(1, "query", "queries"), "1 query");
/// assert_eq!(counted(1_550, "query", "queries"), "1,550 queries");
/// ```
pub fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", thousands(number), if number == 1 { one } else { many })
}

/// A p-value as papers print it: four decimals, and `< 0.0001` below them, because no test gives 0.
///
/// ```
/// use cuemark_core::text::p_value;
/// assert_eq!([0.5, 0.0001, 0.000_03].map(p_value), ["0.5000", "0.0001", "< 0.0001"]);
/// ```
pub fn p_value(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped_from_the_right() {
        assert_eq!([0, 999, 1_000, 12_345_678].map(thousands), ["0", "999", "1,000", "12,345,678"]);
    }
}
