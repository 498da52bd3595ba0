//! The product that a walk does little else than compute.

/// Numbers of a block: as many as make the sums of one worth adding up.
const BLOCK: usize = 128;

/// The product of a vector in sixteen bits with one in eight.
// Whoever is compared with many is widened once; the other is, as it is read. That halves the work, and a block of fixed length
// is what the compiler makes multiplications of pairs of, 32 numbers at a time where the processor has them.
#[inline(always)]
pub(super) fn product(wide: &[i16], eight: &[i8]) -> i32 {
    let (blocks_a, rest_a) = wide.as_chunks::<BLOCK>();
    let (blocks_b, rest_b) = eight.as_chunks::<BLOCK>();
    let mut sum = 0;
    for (a, b) in blocks_a.iter().zip(blocks_b) {
        sum += of_block(a, b);
    }
    for (a, b) in rest_a.iter().zip(rest_b) {
        sum += i32::from(*a) * i32::from(*b);
    }
    sum
}

#[inline(always)]
fn of_block(a: &[i16; BLOCK], b: &[i8; BLOCK]) -> i32 {
    let mut sum = 0;
    for (a, b) in a.iter().zip(b) {
        sum += i32::from(*a) * i32::from(*b);
    }
    sum
}

/// The same numbers in sixteen bits, in `wide`.
#[inline(always)]
pub(super) fn widen_into(wide: &mut Vec<i16>, eight: &[i8]) {
    wide.clear();
    wide.extend(eight.iter().map(|x| i16::from(*x)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_any_length_are_right() {
        for len in [0usize, 1, 31, 127, 128, 129, 256, 300] {
            let a: Vec<i8> = (0..len).map(|n| (n * 37 % 255) as u8 as i8).collect();
            let b: Vec<i8> = (0..len).map(|n| (n * 91 % 251) as u8 as i8).collect();
            let expected: i32 = a.iter().zip(&b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
            let mut wide = vec![7];
            widen_into(&mut wide, &a);
            assert_eq!(product(&wide, &b), expected, "{len}");
        }
    }
}
