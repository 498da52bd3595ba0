//! `linspace`: means between anchors at `int(linspace(0, n - 1, m))`, the last row last.

use super::Bin;

/// The `rows` bins over `from` rows; none when there is nothing to sample.
pub(super) fn bins(from: usize, rows: usize) -> Vec<Bin> {
    let anchors = anchors(from, rows);
    let Some(last) = from.checked_sub(1) else { return Vec::new() };
    let mut bins = super::bins(&anchors);
    if rows > 0 {
        bins.push(Bin { first: last, end: from });
    }
    bins
}

/// NumPy's `linspace` cut to whole numbers: a step in `f64`, multiplied, and the last anchor exact.
fn anchors(from: usize, rows: usize) -> Vec<usize> {
    let Some(last) = from.checked_sub(1) else { return Vec::new() };
    let step = last as f64 / rows.saturating_sub(1).max(1) as f64;
    let mut anchors: Vec<usize> = (0..rows).map(|k| ((k as f64 * step) as usize).min(last)).collect();
    if let [_, .., end] = anchors.as_mut_slice() {
        *end = last;
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_run_from_the_first_row_to_the_last() {
        // 20 rows, 8 anchors, 19 / 7 = 2.714 apart.
        assert_eq!(anchors(20, 8), [0, 2, 5, 8, 10, 13, 16, 19]);
        assert_eq!(anchors(3, 6), [0, 0, 0, 1, 1, 2]);
        assert_eq!(anchors(9, 1), [0]);
    }

    #[test]
    fn one_row_is_the_last() {
        assert_eq!(bins(9, 1), [Bin { first: 8, end: 9 }]);
    }
}
