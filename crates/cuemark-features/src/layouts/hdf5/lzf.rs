//! The fast compression that h5py offers under the name `lzf` (filter 32000): bytes as they are, or copies of what came shortly
//! before.

use hdf5_reader::error::{Error, Result};

/// The filter's number in HDF5's registry.
pub(super) const ID: u16 = 32_000;

/// Control bytes below this one announce bytes as they are.
const LONGEST_PLAIN: u8 = 32;
/// A copy whose length does not fit into three bits.
const LONG_COPY: usize = 7;

/// The bytes that `packed` stands for, `largest` at the most.
pub(super) fn unpack(packed: &[u8], largest: usize) -> Result<Vec<u8>> {
    let damaged = || Error::DecompressionError("LZF data is damaged".to_owned());
    let mut out = Vec::new();
    let mut rest = packed;
    let next = |rest: &mut &[u8]| -> Result<u8> {
        let (&first, after) = rest.split_first().ok_or_else(damaged)?;
        *rest = after;
        Ok(first)
    };
    while !rest.is_empty() {
        let control = next(&mut rest)?;
        let length = if control < LONGEST_PLAIN {
            usize::from(control) + 1
        } else {
            let short = usize::from(control >> 5);
            2 + short + if short == LONG_COPY { usize::from(next(&mut rest)?) } else { 0 }
        };
        if length > largest.saturating_sub(out.len()) {
            return Err(Error::DecompressionError(format!("LZF data is longer than {largest} bytes")));
        }
        if control < LONGEST_PLAIN {
            let (plain, after) = rest.split_at_checked(length).ok_or_else(damaged)?;
            out.extend_from_slice(plain);
            rest = after;
        } else {
            let back = (usize::from(control & 0x1f) << 8 | usize::from(next(&mut rest)?)) + 1;
            let from = out.len().checked_sub(back).ok_or_else(damaged)?;
            // A copy may reach into what it is making: three bytes back, ten bytes long repeats them.
            for place in from..from + length {
                out.push(out[place]);
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_bytes_and_copies_that_reach_into_themselves_are_unpacked() {
        // "abc", then ten bytes from three back, then a long copy from one back.
        let packed = [2, b'a', b'b', b'c', 7 << 5, 1, 2, 7 << 5, 3, 0];
        let unpacked = unpack(&packed, 100).unwrap();
        assert_eq!(unpacked, b"abcabcabcabcaaaaaaaaaaaaa");
    }

    #[test]
    fn damaged_and_endless_data_is_refused() {
        for damaged in [&[5, 1, 2][..], &[1 << 5, 9], &[7 << 5], &[1 << 5], &[0, 1, 1 << 5, 1]] {
            assert!(unpack(damaged, 100).is_err(), "{damaged:?}");
        }
        let endless: Vec<u8> = [0, 1].into_iter().chain([7 << 5, 255, 0].into_iter().cycle().take(3_000)).collect();
        assert!(unpack(&endless, 10_000).unwrap_err().to_string().contains("longer than 10000"));
    }
}
