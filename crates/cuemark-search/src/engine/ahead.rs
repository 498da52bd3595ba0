//! The one place of this crate that speaks to the processor: what it will read soon.

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Has the processor fetch what will be read soon, while it does something else. It changes nothing but the time that the reading takes, and
/// does nothing on processors that stable Rust has no such word for.
#[inline(always)]
pub(super) fn fetch<T>(soon: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of_val(soon)).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address lies within the slice. Nothing is read from it as far as the program can tell: an instruction that every
        // processor of the kind has, and that never faults.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(soon.as_ptr().cast::<i8>().add(line));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (soon, LINE);
}
