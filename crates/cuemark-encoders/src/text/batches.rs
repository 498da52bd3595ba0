//! Which sentences are computed together.

/// The places of sentences with such lengths, in groups that are computed together: shortest first, equal lengths in the given
/// order, and at most `tokens` tokens a group (one longer sentence is a group by itself).
pub(super) fn batches(lengths: &[usize], tokens: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|place| lengths[*place]);
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut held = usize::MAX;
    for place in order {
        let length = lengths[place];
        match batches.last_mut() {
            Some(batch) if held.saturating_add(length) <= tokens => {
                batch.push(place);
                held += length;
            }
            _ => {
                batches.push(vec![place]);
                held = length;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_is_in_one_batch_shortest_first_and_batches_are_bounded() {
        assert_eq!(batches(&[3, 1, 2, 3, 9], 6), [vec![1, 2, 0], vec![3], vec![4]]);
        assert_eq!(batches(&[], 6), Vec::<Vec<usize>>::new());
        assert_eq!(batches(&[7, 7], 6), [[0], [1]]);
    }
}
