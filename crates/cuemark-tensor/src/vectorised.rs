//! Loops compiled once per instruction set and chosen at run time: AVX-512, AVX2 with FMA, or the plain one.

use pulp::{Arch, Simd, WithSimd};

/// Runs `work`, whose closure must say `#[inline(always)]`, with the widest instructions of this machine.
///
/// pulp takes closures too, but calls them through `FnOnce`: the compiler then puts a function of its own between, which is not
/// always inlined, and a loop that is not inlined is compiled for the oldest processors. Called through `FnMut` there is none.
#[inline(always)]
pub fn vectorised<R>(work: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Loop(work))
}

struct Loop<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Loop<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}
