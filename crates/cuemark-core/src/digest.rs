//! Hashes and how they are written; the hash functions that defend against somebody are the caller's.

use std::fmt::Write as _;

/// Two lower-case hexadecimal digits for each byte.
///
/// ```
/// assert_eq!(cuemark_core::digest::hex(&[0, 171, 255]), "00abff");
/// ```
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The FNV-1a hash of some bytes: the same on every machine and in every version, and no defence against anybody.
///
/// ```
/// assert_eq!(cuemark_core::digest::fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
/// ```
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
