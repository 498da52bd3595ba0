//! The head of a log: its width, its identity, and how often it was compacted.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use super::{ALIGN, number};
use crate::engine::limits;

const MAGIC: &[u8; 16] = b"CUEMARKMOMENTS02";
const OLD_MAGIC: &[u8; 16] = b"CUEMARKMOMENTS01";

/// Where the first record begins.
pub(in crate::engine) const FIRST: usize = 2 * ALIGN;
/// Where the first record of a log of the first version begins.
pub(in crate::engine) const FIRST_OF_OLD: usize = ALIGN;

/// 128 random bits that tell a log from every other; all zero for logs of the first version, which have none.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Identity([u8; 16]);

impl Identity {
    /// One that nobody has.
    pub(in crate::engine) fn random() -> Self {
        // Two hashes under keys that the standard library draws from the system's randomness, once for each.
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let half = |side: u8| RandomState::new().hash_one((side, now, std::process::id())).to_le_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half(0));
        bytes[8..].copy_from_slice(&half(1));
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    pub(super) fn read(bytes: &[u8], at: usize) -> Option<Self> {
        Some(Self(bytes.get(at..at + 16)?.try_into().ok()?))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What the head of a log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Numbers per embedding.
    pub(crate) width: usize,
    /// How often the log was compacted.
    pub(crate) generation: u32,
    /// Which log it is.
    pub(crate) identity: Identity,
    /// Whether it is of the first version, without commits.
    pub(crate) old: bool,
}

/// One of the two copies of a head does not fit its checksum; the other was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadFault {
    /// Where the damaged copy begins.
    pub(crate) offset: u64,
}

impl Head {
    /// Both copies, as they stand at the beginning of a file.
    pub(in crate::engine) fn encode(&self) -> Vec<u8> {
        let mut copy = MAGIC.to_vec();
        copy.extend((self.width as u32).to_le_bytes());
        copy.extend(self.generation.to_le_bytes());
        copy.extend(self.identity.bytes());
        copy.resize(ALIGN - 4, 0);
        copy.extend(crc32fast::hash(&copy).to_le_bytes());
        copy.repeat(2)
    }

    /// Where the first record begins.
    pub(in crate::engine) fn first(&self) -> usize {
        if self.old { FIRST_OF_OLD } else { FIRST }
    }

    /// The head at the beginning of `bytes`, of which the first [`FIRST`] are looked at; what is wrong with it otherwise.
    pub(in crate::engine) fn read(bytes: &[u8]) -> Result<(Self, Option<HeadFault>), String> {
        let (first, second) = (Self::read_copy(bytes), Self::read_copy(bytes.get(ALIGN..).unwrap_or_default()));
        let head = match (first, second) {
            (Ok(first), Ok(second)) if first == second => (first, None),
            (Ok(first), _) => (first, Some(HeadFault { offset: ALIGN as u64 })),
            (Err(_), Ok(second)) => (second, Some(HeadFault { offset: 0 })),
            (Err(problem), Err(_)) => (Self::read_old(bytes).map_err(|old| old.unwrap_or(problem))?, None),
        };
        let width = head.0.width;
        if width == 0 || width > limits::WIDTH {
            return Err(format!("a width of {width} numbers cannot be"));
        }
        Ok(head)
    }

    fn read_copy(bytes: &[u8]) -> Result<Self, String> {
        let Some(copy) = bytes.get(..ALIGN) else { return Err("too short for a log".to_owned()) };
        if !copy.starts_with(MAGIC) {
            return Err("not the head of a log of this version".to_owned());
        }
        let sum = crc32fast::hash(&copy[..ALIGN - 4]);
        let (Some(width), Some(generation), Some(identity)) =
            (number(copy, 16), number(copy, 20), Identity::read(copy, 24))
        else {
            return Err("too short for a log".to_owned());
        };
        if number(copy, ALIGN - 4) != Some(sum) {
            return Err("neither copy of the head fits its checksum".to_owned());
        }
        Ok(Self { width: width as usize, generation, identity, old: false })
    }

    /// A head of the first version; `None` as its error when it is not one at all.
    fn read_old(bytes: &[u8]) -> Result<Self, Option<String>> {
        let Some(copy) = bytes.get(..ALIGN).filter(|copy| copy.starts_with(OLD_MAGIC)) else { return Err(None) };
        let at = |place: usize| number(copy, place).unwrap_or(0);
        if crc32fast::hash(&copy[..20]) != at(20) {
            return Err(Some("the head does not fit its checksum".to_owned()));
        }
        let (generation, sum) = (at(24), at(28));
        if (generation, sum) != (0, 0) && crc32fast::hash(&generation.to_le_bytes()) != sum {
            return Err(Some("the generation in the head does not fit its checksum".to_owned()));
        }
        Ok(Self { width: at(16) as usize, generation, identity: Identity::default(), old: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head { width: 7, generation: 12, identity: Identity::random(), old: false }
    }

    #[test]
    fn a_changed_byte_of_a_head_is_noticed_and_costs_nothing() {
        let said = head();
        let bytes = said.encode();
        assert_eq!((bytes.len(), Head::read(&bytes)), (FIRST, Ok((said, None))));
        for place in 0..FIRST {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            let fault = HeadFault { offset: (place / ALIGN * ALIGN) as u64 };
            assert_eq!(Head::read(&changed), Ok((said, Some(fault))), "{place}");
            changed[(place + ALIGN) % FIRST] ^= 1;
            assert!(Head::read(&changed).is_err(), "{place}");
        }
    }

    #[test]
    fn a_width_that_cannot_be_is_refused_however_well_it_is_summed() {
        for width in [0, limits::WIDTH + 1, 1 << 31] {
            assert!(Head::read(&Head { width, ..head() }.encode()).is_err(), "{width}");
        }
    }

    #[test]
    fn no_two_logs_are_the_same() {
        let mut drawn: Vec<String> = (0..1000).map(|_| Identity::random().to_string()).collect();
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn.len(), 1000);
    }
}
