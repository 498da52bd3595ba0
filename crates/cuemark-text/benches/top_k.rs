//! Top-40 of 70,000 × 70,000 × 384 beside plain matrix products of the same size, in one run:
//! `cargo bench -p cuemark-text --bench top_k -- [ROWS [WIDTH [K]]]`.
//!
//! The sides alternate, share of rows by share of rows, so that a machine that slows down slows all. The plain side is
//! the product library alone, on all threads, a share of rows by 10,000 columns at a time, of the same shape; the square
//! side multiplies 4,096 × 4,096 × 4,096, which is as fast as the library gets. Peak memory is that of the whole
//! process, the other sides' included.

#![allow(clippy::print_stdout, missing_docs)]

use std::time::{Duration, Instant};

use cuemark_core::Rng;
use cuemark_text::similarity::{Embeddings, Result, Vectors, top_k};
use rayon::prelude::*;

/// The run is cut into this many shares of rows, each measured on both sides.
const SHARES: usize = 10;
/// Columns of one call on the plain side.
const PLAIN_COLUMNS: usize = 10_000;
/// Each side of the square product.
const SQUARE: usize = 4096;

fn main() -> Result<()> {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let or = |place: usize, default: usize| given.get(place).copied().unwrap_or(default);
    let (rows, width, k) = (or(0, 70_000), or(1, 384), or(2, 40));
    let values = draw(rows, width);
    let vectors = Vectors::new(width, values.clone())?;
    let square_values = draw(SQUARE, SQUARE);
    let (mut plain, mut square, mut ours, mut found) = (Duration::ZERO, Duration::ZERO, Duration::ZERO, 0);
    for left in values.chunks(rows.div_ceil(SHARES) * width) {
        let provider = Embeddings::new("drawn", Vectors::new(width, left.to_vec())?, vectors.clone())?;
        let start = Instant::now();
        found += top_k(&provider, k)?.iter().map(Vec::len).sum::<usize>();
        ours += start.elapsed();
        plain += plain_product(left, &values, width);
        square += plain_product(&square_values, &square_values, SQUARE);
    }
    let square_rate = 2.0 * (SQUARE as f64).powi(3) * SHARES as f64 / square.as_secs_f64() / 1e9;
    let rate = |time: Duration| 2.0 * (rows as f64).powi(2) * width as f64 / time.as_secs_f64() / 1e9;
    println!("{rows} × {rows} × {width}, top {k}, {} threads, {found} neighbours", rayon::current_num_threads());
    println!("plain product {:7.2} s {:7.1} GFLOP/s", plain.as_secs_f64(), rate(plain));
    println!("top-k         {:7.2} s {:7.1} GFLOP/s", ours.as_secs_f64(), rate(ours));
    println!("square product {:6.2} s {square_rate:7.1} GFLOP/s", square.as_secs_f64());
    let share = |of: f64| 100.0 * rate(ours) / of;
    println!("{:.1} % of the plain rate, {:.1} % of the square one", share(rate(plain)), share(square_rate));
    println!("peak memory {} MiB", peak_mebibytes());
    Ok(())
}

/// Random directions, length 1.
fn draw(rows: usize, width: usize) -> Vec<f32> {
    let mut values = vec![0.0; rows * width];
    values.par_chunks_mut(width).enumerate().for_each(|(row, vector)| {
        let mut rng = Rng::new(row as u64);
        vector.iter_mut().for_each(|value| *value = rng.uniform() as f32 - 0.5);
    });
    values
}

/// The time that the same multiplications take when nothing is done to the result.
fn plain_product(left: &[f32], right: &[f32], width: usize) -> Duration {
    let lefts = left.len() / width;
    let mut out = vec![0.0f32; lefts * PLAIN_COLUMNS];
    let start = Instant::now();
    for right in right.chunks(PLAIN_COLUMNS * width) {
        let rights = right.len() / width;
        let (step, out_step) = (width as isize, rights as isize);
        let (to, a, b) = (out.as_mut_ptr(), left.as_ptr(), right.as_ptr());
        let threads = gemm::Parallelism::Rayon(0);
        // SAFETY: lefts × rights values fit `out`, and both sides hold whole rows of `width`.
        #[allow(unsafe_code)]
        unsafe {
            gemm::gemm(
                lefts, rights, width, to, 1, out_step, false, a, 1, step, b, step, 1, 0.0, 1.0, false, false, false,
                threads,
            );
        }
    }
    std::hint::black_box(&out);
    start.elapsed()
}

/// The most memory the process has held, as Linux counts it; 0 elsewhere.
fn peak_mebibytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) / 1024
}
