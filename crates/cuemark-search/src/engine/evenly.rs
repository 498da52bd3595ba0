//! A few of many, spread evenly and in no step with anything.

/// `count` of `total` places (all when there are fewer), in rising order and the same ones every time.
///
/// One comes from each of `count` stretches of equal length, at a spot that wanders from stretch to stretch: every video has its
/// moments in the same order, and a fixed step that fits their number would take the same moment of each.
pub(crate) fn evenly(count: usize, total: usize) -> impl Iterator<Item = usize> {
    let count = count.min(total);
    let edge = move |number: usize| (number as u128 * total as u128 / count.max(1) as u128) as usize;
    (0..count).map(move |number| {
        let (from, to) = (edge(number), edge(number + 1));
        // Multiples of the golden ratio, modulo 1, as 32 bits.
        let spot = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        from + ((spot as u128 * (to - from) as u128) >> 32) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_rise_and_fill_the_whole() {
        assert_eq!(evenly(5, 3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(evenly(3, 0).count(), 0);
        let places: Vec<usize> = evenly(2000, 272_000).collect();
        assert!(places.len() == 2000 && places.is_sorted() && places.iter().all(|place| *place < 272_000));
        assert!(places.iter().zip(0..).all(|(place, stretch)| place / 136 == stretch));
    }

    #[test]
    fn no_place_of_a_video_is_taken_more_often_than_others() {
        // 2,000 videos of 136 moments: a step of 136 would take the first of each.
        let mut taken = [0usize; 136];
        evenly(2000, 272_000).for_each(|place| taken[place % 136] += 1);
        assert!(taken.iter().all(|count| (10..=20).contains(count)), "{taken:?}");
    }
}
