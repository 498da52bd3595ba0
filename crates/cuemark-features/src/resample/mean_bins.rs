//! `mean-bins`: edges at `round(k / m * n)`, never past the last row.

/// The `rows + 1` edges of `rows` bins over `from` rows; none when there is nothing to sample.
///
/// In `f32` with halves rounded to even, dividing before multiplying, because 2D-TAN's script does so and other orders
/// round some edges differently. No edge passes the last row, so that row is used only when the last bin is empty.
pub(super) fn edges(from: usize, rows: usize) -> Vec<usize> {
    let Some(last) = from.checked_sub(1) else { return Vec::new() };
    let edge = |k: usize| ((k as f32 / rows as f32 * from as f32).round_ties_even() as usize).min(last);
    (0..=rows).map(edge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_the_even_row() {
        // 12 rows into 8 bins: 1.5 k = 0, 1.5, 3, 4.5, 6, 7.5, 9, 10.5, 12.
        assert_eq!(edges(12, 8), [0, 2, 3, 4, 6, 8, 9, 10, 11]);
    }

    #[test]
    fn short_videos_repeat_rows_and_never_reach_past_the_last() {
        assert_eq!(edges(2, 4), [0, 0, 1, 1, 1]);
        assert_eq!(edges(1, 3), [0, 0, 0, 0]);
    }
}
