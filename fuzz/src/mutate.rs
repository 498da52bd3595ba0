//! Changes to stored inputs: blind ones, and ones that know what the bytes are.

use cuemark_core::Rng;

/// Pieces that have broken parsers before.
const NASTY: &[&[u8]] = &[
    b"NaN",
    b"1e308",
    b"-1e308",
    b"1e999",
    b"-0",
    b"null",
    b"[[[[[[[[",
    b"{\"a\":",
    b"\"\\ud800\"",
    b"\xff\xfe",
    b"\0",
    b"\n\n",
    b"\r",
    b"18446744073709551616",
    b"-1",
    b"\"\"",
    b"[]",
    b"{}",
    b",,",
    b"-->",
    b"##",
    b"\xef\xbb\xbf",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x00\x00\x00\x80",
];

/// `bytes` with one to five changes: cut off, something nasty put in, a piece left out or doubled, a byte or a bit changed.
pub fn mutated(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=rng.below(4) {
        let place = rng.below(bytes.len() + 1);
        match rng.below(6) {
            0 => bytes.truncate(place),
            1 => {
                let piece = rng.pick(NASTY).copied().unwrap_or_default();
                bytes.splice(place..place, piece.iter().copied());
            }
            2 => {
                let end = (place + 1 + rng.below(16)).min(bytes.len());
                bytes.drain(place.min(end)..end);
            }
            3 => {
                let end = (place + 64).min(bytes.len());
                let piece = bytes.get(place..end).unwrap_or_default().to_vec();
                bytes.splice(place..place, piece);
            }
            4 => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << rng.below(8);
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = rng.bits() as u8;
                }
            }
        }
    }
    bytes
}

/// A pickle that means something to the machine that takes it apart: instructions that tensors need, with arguments that are
/// often right, so that values are made, remembered, recalled and called.
pub fn pickle(rng: &mut Rng) -> Vec<u8> {
    const NAMES: &[&[u8]] = &[
        b"ctorch._utils\n_rebuild_tensor_v2\n",
        b"cnumpy.core.multiarray\n_reconstruct\n",
        b"ccollections\nOrderedDict\n",
        b"ctorch\nFloatStorage\n",
        b"cnumpy\ndtype\n",
        b"cos\nsystem\n",
    ];
    const PLAIN: &[u8] = b"N}])(\x88\x89.tuse0aRbQ\x85\x86\x87\x81\x93\x94";
    let mut bytes = b"\x80\x02".to_vec();
    for _ in 0..rng.below(200) {
        match rng.below(9) {
            0 => bytes.extend(rng.pick(NAMES).copied().unwrap_or_default()),
            1 => {
                let length = rng.below(6) as u8;
                bytes.extend([b'X', length, 0, 0, 0]);
                bytes.extend(b"storage".iter().take(length.into()));
            }
            2 => bytes.extend([b'K', rng.bits() as u8]),
            3 => bytes.extend([&b"J"[..], &(rng.bits() as u32).to_le_bytes()].concat()),
            4 => bytes.extend([b'q', rng.below(8) as u8]),
            5 => bytes.extend([b'h', rng.below(8) as u8]),
            6 => {
                let length = rng.below(40) as u8;
                bytes.extend([b'C', length]);
                bytes.extend(std::iter::repeat_n(1, length.into()));
            }
            _ => bytes.extend(rng.pick(PLAIN)),
        }
    }
    bytes.push(b'.');
    bytes
}
