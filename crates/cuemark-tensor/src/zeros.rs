//! Zeros by the million.

use rayon::prelude::*;

/// Numbers that one task writes.
const BLOCK: usize = 1 << 16;
/// Numbers that are worth waking other threads for.
const MANY: usize = 1 << 20;

/// So many zeros, written by all threads where there are many: memory that was used before is cleared by whoever asks for it, and
/// memory that was not is cleared page by page when it is first touched.
#[allow(unsafe_code)]
pub(crate) fn zeros(count: usize) -> Vec<f32> {
    if count < MANY {
        return vec![0.0; count];
    }
    let mut numbers: Vec<f32> = Vec::with_capacity(count);
    let room = &mut numbers.spare_capacity_mut()[..count];
    room.par_chunks_mut(BLOCK).for_each(|room| {
        room.iter_mut().for_each(|number| {
            number.write(0.0);
        });
    });
    // SAFETY: all of the first `count` numbers were just written.
    unsafe { numbers.set_len(count) };
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_zeros_as_asked_for() {
        for count in [0, 1, MANY - 1, MANY, MANY + BLOCK + 7] {
            assert_eq!(zeros(count), vec![0.0; count]);
        }
    }
}
