//! Times the kernel density of n points at themselves: our side of `benches/peers/kde_scipy.py`.
//!
//! usage: kde_speed POINTS.f64 exact|binned N...
//!
//! POINTS.f64 holds little-endian doubles, start and end of one point after the other; where N asks for more points than
//! it has, draws from their own density are added. Prints one JSON line per N; `checksum` is the sum of all densities.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use cuemark_core::{NormSpan, Progress, Rng};
use cuemark_protocols::Result;
use cuemark_protocols::kde::{BinnedKde, Kde};

/// Nodes along one side of the binned density's grid.
const CELLS: usize = 2048;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, form, sizes @ ..] = arguments.as_slice() else {
        return Err("usage: kde_speed POINTS.f64 exact|binned N...".into());
    };
    let points = read_points(file)?;
    for size in sizes {
        let points = at_least(&points, size.parse()?)?;
        let mut seconds = f64::INFINITY;
        let (mut densities, mut bound) = (Vec::new(), 0.0);
        for _ in 0..3 {
            let began = Instant::now();
            if form == "binned" {
                let binned = BinnedKde::fit(&points, CELLS)?;
                (densities, bound) = (binned.density(&points), binned.error_bound());
            } else {
                densities = Kde::fit(&points)?.density(&points, &Progress::new())?;
            }
            seconds = seconds.min(began.elapsed().as_secs_f64());
        }
        let (n, checksum) = (points.len(), densities.iter().sum::<f64>());
        let densest = densities.iter().copied().fold(0.0, f64::max);
        let line = serde_json::json!({"n": n, "form": form, "seconds": seconds, "checksum": checksum,
            "error_bound": bound, "densest": densest});
        println!("{line}");
    }
    Ok(())
}

fn read_points(file: &str) -> Result<Vec<NormSpan>, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(file)?;
    let number = |bytes: &[u8]| bytes.try_into().map(f64::from_le_bytes);
    let point = |pair: &[u8]| NormSpan::new(number(&pair[..8]).ok()?, number(&pair[8..]).ok()?);
    bytes.chunks_exact(16).map(|pair| point(pair).ok_or_else(|| "a point is not finite".into())).collect()
}

fn at_least(points: &[NormSpan], n: usize) -> Result<Vec<NormSpan>> {
    let mut enough = points[..n.min(points.len())].to_vec();
    if enough.len() < n {
        let (kde, mut rng) = (Kde::fit(points)?, Rng::new(0));
        enough.resize_with(n, || kde.sample(&mut rng));
    }
    Ok(enough)
}
