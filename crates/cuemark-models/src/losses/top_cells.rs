//! The cells that overlap a span most, and among equal ones those that the references take.
//!
//! Neighbouring cells often overlap a span equally, and which of them count as positive moves a loss by a percent. The
//! references leave it to PyTorch's `topk` on the CPU, which leaves it to the selection algorithms of the C++ library it is
//! built with (libstdc++): introselect, or a heap when few of many are wanted. Both are deterministic and repeated here.

/// The positions of the `count` largest values, largest first; all of them when there are fewer.
pub fn top_cells(values: &[f32], count: usize) -> Vec<usize> {
    let count = count.min(values.len());
    if count == 0 {
        return Vec::new();
    }
    // Adding 0 makes one zero of the two.
    let mut items: Vec<(f32, usize)> = values.iter().enumerate().map(|(place, value)| (value + 0.0, place)).collect();
    if count * 64 <= items.len() {
        heap_select(&mut items, count);
    } else {
        introselect(&mut items, count - 1);
    }
    items.truncate(count);
    items.sort_by(|a, b| b.0.total_cmp(&a.0));
    items.into_iter().map(|(_, place)| place).collect()
}

type Item = (f32, usize);

fn before(a: Item, b: Item) -> bool {
    a.0.total_cmp(&b.0).is_gt()
}

/// Moves what belongs at `nth` there, and nothing smaller before it.
fn introselect(items: &mut [Item], nth: usize) {
    let (mut first, mut last) = (0, items.len());
    let mut depth = 2 * items.len().ilog2();
    while last - first > 3 {
        if depth == 0 {
            heap_select(&mut items[first..last], nth + 1 - first);
            items.swap(first, nth);
            return;
        }
        depth -= 1;
        let cut = first + partition(&mut items[first..last]);
        if cut <= nth {
            first = cut;
        } else {
            last = cut;
        }
    }
    items[first..last].sort_by(|a, b| b.0.total_cmp(&a.0)); // stable, as the insertion sort it stands for
}

/// Partitions by the median of the second, the middle and the last item; returns where the later part begins.
fn partition(items: &mut [Item]) -> usize {
    let (a, b, c) = (1, items.len() / 2, items.len() - 1);
    let less = |x: usize, y: usize| before(items[x], items[y]);
    let median = match (less(a, b), less(b, c), less(a, c)) {
        (true, true, _) | (false, false, false) => b,
        (true, false, true) | (false, true, false) => c,
        (true, false, false) | (false, _, true) => a,
    };
    items.swap(0, median);
    let (pivot, mut left, mut right) = (items[0], 1, items.len());
    loop {
        while before(items[left], pivot) {
            left += 1;
        }
        right -= 1;
        while before(pivot, items[right]) {
            right -= 1;
        }
        if left >= right {
            return left;
        }
        items.swap(left, right);
        left += 1;
    }
}

/// Moves the `count` largest to the front: a heap of the first ones, smallest on top, which a larger later one replaces.
fn heap_select(items: &mut [Item], count: usize) {
    for hole in (0..count / 2).rev() {
        let item = items[hole];
        sift(&mut items[..count], hole, item);
    }
    for later in count..items.len() {
        if before(items[later], items[0]) {
            let item = items[later];
            items[later] = items[0];
            sift(&mut items[..count], 0, item);
        }
    }
}

/// Lets the hole sink to a leaf, then `item` rise from there to its place.
fn sift(heap: &mut [Item], top: usize, item: Item) {
    let mut hole = top;
    while 2 * hole + 1 < heap.len() {
        let mut child = 2 * hole + 2;
        if child == heap.len() || before(heap[child], heap[child - 1]) {
            child -= 1;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    while hole > top && before(heap[(hole - 1) / 2], item) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = item;
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;

    /// Only which of several equal ones is taken differs from sorting.
    #[test]
    fn the_largest_values_are_found() {
        let mut rng = Rng::new(1);
        for case in 0..500 {
            let count = 1 + rng.below(200);
            let kinds = 1 + rng.below(40);
            let values: Vec<f32> = (0..count).map(|_| rng.below(kinds) as f32).collect();
            let wanted = 1 + case % count.min(5);
            let found = top_cells(&values, wanted);
            let mut sorted = values.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let at: Vec<f32> = found.iter().map(|place| values[*place]).collect();
            assert_eq!(at, sorted[..wanted]);
            let mut places = found.clone();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), wanted);
        }
    }

    #[test]
    fn few_values_are_all_taken() {
        assert_eq!(top_cells(&[0.5, 0.9], 3), [1, 0]);
        assert!(top_cells(&[], 1).is_empty());
    }

    /// The places that `std::nth_element` and `std::partial_sort` of libstdc++ 12 leave in front.
    #[test]
    fn equal_values_are_taken_as_the_references_take_them() {
        for (values, count, places) in [
            (7, 2, vec![3, 4]),
            (40, 3, vec![8, 19, 36]),
            (100, 2, vec![52, 58]),
            (200, 3, vec![3, 8, 14]),
            (400, 5, vec![3, 8, 14, 19, 25]),
        ] {
            let values: Vec<f32> = (0..values).map(|n| (n * n % 11) as f32).collect();
            let mut found = top_cells(&values, count);
            found.sort_unstable();
            assert_eq!(found, places);
        }
    }
}
