//! Which edges of our own code have been run, where it was compiled to count them (`instrumented-rustc`).

use std::sync::{Mutex, PoisonError};

/// Where the counters begin, and how many there are.
static COUNTERS: Mutex<Option<(usize, usize)>> = Mutex::new(None);

/// Called before `main` by every instrumented piece of code, each time with the counters of all of them.
///
/// The name is the compiler's (LLVM's SanitizerCoverage).
#[allow(unsafe_code)] // a symbol that the compiler asks for
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let length = (stop as usize).saturating_sub(start as usize);
    *COUNTERS.lock().unwrap_or_else(PoisonError::into_inner) = Some((start as usize, length));
}

/// The edges that were ever run in this process.
#[derive(Debug)]
pub struct Coverage {
    start: usize,
    seen: Vec<bool>,
}

impl Coverage {
    /// Counts from now on; `None` where the code does not.
    pub fn begin() -> Option<Self> {
        let (start, length) = (*COUNTERS.lock().unwrap_or_else(PoisonError::into_inner))?;
        let mut coverage = Self { start, seen: vec![false; length] };
        coverage.take();
        coverage.seen.fill(false);
        Some(coverage)
    }

    /// Edges that there are.
    pub fn edges(&self) -> usize {
        self.seen.len()
    }

    /// Edges that were run.
    pub fn reached(&self) -> usize {
        self.seen.iter().filter(|seen| **seen).count()
    }

    /// How many edges were run for the first time since the last call.
    pub fn take(&mut self) -> usize {
        let mut new = 0;
        for (place, seen) in self.seen.chunks_mut(8).enumerate() {
            for (edge, count) in taken(self.start + 8 * place, seen.len()).into_iter().enumerate() {
                if let Some(seen) = seen.get_mut(edge).filter(|seen| count > 0 && !**seen) {
                    *seen = true;
                    new += 1;
                }
            }
        }
        new
    }

    /// The edges that were run, one bit each.
    pub fn bits(&self) -> Vec<u8> {
        let byte = |edges: &[bool]| edges.iter().enumerate().fold(0, |byte, (bit, seen)| byte | u8::from(*seen) << bit);
        self.seen.chunks(8).map(byte).collect()
    }

    /// Takes no other edges for run than these, so that the others can be found again.
    pub fn forget_but(&mut self, bits: &[u8]) {
        self.seen.fill(false);
        self.merge(bits);
    }

    /// Takes edges for run that another process has run.
    pub fn merge(&mut self, bits: &[u8]) {
        for (place, seen) in self.seen.iter_mut().enumerate() {
            *seen |= bits.get(place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1);
        }
    }
}

/// Eight counters at an address, or as many as there are, which begin at zero again.
#[allow(unsafe_code)]
fn taken(address: usize, count: usize) -> [u8; 8] {
    let counters = address as *mut u8;
    // SAFETY: the compiler said that its counters lie there, one byte each, for as long as the process runs, and `Coverage`
    // asks for no more than there are. Other threads may count meanwhile; what is lost so is found another time.
    unsafe {
        if count == 8 {
            let eight = counters.cast::<u64>().read_unaligned();
            // Most are zero, and there are hundreds of thousands.
            if eight != 0 {
                counters.cast::<u64>().write_unaligned(0);
            }
            return eight.to_ne_bytes();
        }
        let mut bytes = [0; 8];
        for (place, byte) in bytes.iter_mut().enumerate().take(count) {
            *byte = counters.add(place).read_volatile();
            counters.add(place).write_volatile(0);
        }
        bytes
    }
}
