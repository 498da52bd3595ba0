//! The density against SciPy's figures, against its own definition, and against itself.

use super::*;
use cuemark_core::{Progress, Rng};
use cuemark_testkit::shared;
use proptest::prelude::*;

/// The definition, one kernel at a time.
fn by_definition(kde: &Kde, [x, y]: [f64; 2]) -> f64 {
    let n = kde.points.len() as f64;
    let mean = |of: fn(NormSpan) -> f64| kde.points.iter().map(|p| of(*p)).sum::<f64>() / n;
    let (mx, my) = (mean(NormSpan::start), mean(NormSpan::end));
    let cov = |f: fn(NormSpan) -> f64, mf: f64, g: fn(NormSpan) -> f64, mg: f64| {
        kde.points.iter().map(|p| (f(*p) - mf) * (g(*p) - mg)).sum::<f64>() / (n - 1.0) * n.powf(-1.0 / 6.0).powi(2)
    };
    let (a, b, d) = (
        cov(NormSpan::start, mx, NormSpan::start, mx),
        cov(NormSpan::start, mx, NormSpan::end, my),
        cov(NormSpan::end, my, NormSpan::end, my),
    );
    let det = a * d - b * b;
    let kernel = |p: &NormSpan| {
        let (dx, dy) = (x - p.start(), y - p.end());
        (-0.5 * (d * dx * dx - 2.0 * b * dx * dy + a * dy * dy) / det).exp() / (std::f64::consts::TAU * det.sqrt())
    };
    kde.points.iter().map(kernel).sum::<f64>() / n
}

fn random_points(n: usize, seed: u64) -> Vec<NormSpan> {
    let mut rng = Rng::new(seed);
    (0..n)
        .map(|_| {
            let start = rng.uniform() * 0.8;
            NormSpan::new(start, start + 0.05 + 0.3 * rng.uniform() * rng.uniform()).unwrap()
        })
        .collect()
}

#[test]
fn densities_are_scipys_to_ten_digits_on_the_stored_values() {
    let Some(path) = shared("parity/bias-kde.f64.json") else { return };
    let bytes = std::fs::read(path).unwrap();
    let stored: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let pairs = |key: &str| serde_json::from_value::<Vec<[f64; 2]>>(stored[key].clone()).unwrap();
    let numbers = |key: &str| serde_json::from_value::<Vec<f64>>(stored[key].clone()).unwrap();
    let points: Vec<NormSpan> = pairs("points").iter().map(|p| NormSpan::new(p[0], p[1]).unwrap()).collect();
    let kde = Kde::fit(&points).unwrap();
    let check = |ours: Vec<f64>, theirs: Vec<f64>| {
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((ours - theirs).abs() <= 1e-10 * theirs.abs(), "{ours:e} {theirs:e}");
        }
    };
    check(kde.density(&points, &Progress::new()).unwrap(), numbers("density_at_points"));
    // Some of these lie below the diagonal and far out, down to 1e-61.
    check(kde.density_in_plane(pairs("queries").into_iter()), numbers("density_at_queries"));
}

#[test]
fn densities_and_samples_are_those_of_the_parity_fixture() {
    let Some(path) = shared("parity/bias-kde.safetensors") else { return };
    let bytes = std::fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let floats = |key: &str| -> Vec<f64> {
        let data = file.tensor(key).unwrap().data().to_vec();
        data.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
    };
    let rows = |key: &str| -> Vec<[f64; 2]> { floats(key).chunks_exact(2).map(|p| [p[0], p[1]]).collect() };
    let chosen: Vec<usize> = (file.tensor("in.kernel_index").unwrap().data().chunks_exact(8))
        .map(|b| i64::from_le_bytes(b.try_into().unwrap()) as usize)
        .collect();
    let close =
        |ours: f64, theirs: f64| assert!((ours - theirs).abs() <= 2e-5 + 2e-4 * theirs.abs(), "{ours} {theirs}");

    let points: Vec<NormSpan> = rows("in.train_spans").iter().map(|p| NormSpan::new(p[0], p[1]).unwrap()).collect();
    let kde = Kde::fit(&points).unwrap();
    let density = kde.density_in_plane(rows("in.query_points").into_iter());
    density.iter().zip(floats("out.density")).for_each(|(ours, theirs)| close(*ours, theirs));
    for (axis, column) in [[1.0, 0.0], [0.0, 1.0]].into_iter().enumerate() {
        let ours = kde.kernel.colour(column);
        let theirs = floats("out.cholesky");
        close(ours[0], theirs[axis]);
        close(ours[1], theirs[2 + axis]);
    }
    let expected = rows("out.samples_raw").into_iter().zip(rows("out.samples_clipped_sorted"));
    for ((index, normal), (raw, clipped)) in chosen.into_iter().zip(rows("in.normal_draws")).zip(expected) {
        let ours = kde.displaced(index, normal);
        (0..2).for_each(|axis| close(ours[axis], raw[axis]));
        let span = NormSpan::new(ours[0], ours[1]).unwrap().clipped();
        close(span.start(), clipped[0]);
        close(span.end(), clipped[1]);
    }
}

#[test]
fn densities_follow_their_definition_near_and_far() {
    // Enough points, close enough together, that most pairs of tiles are skipped.
    let kde = Kde::fit(&random_points(3000, 5)).unwrap();
    let places: Vec<[f64; 2]> =
        vec![[0.1, 0.2], [0.5, 0.6], [0.8, 0.3], [0.0, 1.0], [-0.5, 1.5], [0.4, 0.41], [1.6, 1.7]];
    for (ours, place) in kde.density_in_plane(places.iter().copied()).into_iter().zip(&places) {
        let theirs = by_definition(&kde, *place);
        assert!((ours - theirs).abs() <= 1e-10 * theirs, "{place:?}: {ours:e} {theirs:e}");
    }
    let at_points = kde.density(&kde.points, &Progress::new()).unwrap();
    for index in [0, 17, 1234, 2999] {
        let point = kde.points[index];
        let theirs = by_definition(&kde, [point.start(), point.end()]);
        assert!((at_points[index] - theirs).abs() <= 1e-11 * theirs);
    }
}

#[test]
fn one_repeated_point_with_a_little_noise_is_its_own_mode() {
    let mut rng = Rng::new(1);
    let noisy = |at: f64, rng: &mut Rng| at + 1e-4 * rng.normal();
    let points: Vec<NormSpan> =
        (0..200).map(|_| NormSpan::new(noisy(0.30, &mut rng), noisy(0.70, &mut rng)).unwrap()).collect();
    let mode = Kde::fit(&points).unwrap().mode();
    assert_eq!((mode.start(), mode.end()), (0.30, 0.70));
}

#[test]
fn seeds_reproduce_and_draws_stay_inside_the_video() {
    let kde = Kde::fit(&random_points(50, 9)).unwrap();
    let draw = |seed: u64| {
        let mut rng = Rng::new(seed);
        (0..500).map(|_| kde.sample(&mut rng)).collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert!(draw(3).iter().all(|span| span.start() >= 0.0 && span.end() <= 1.0 && span.len() >= SHORTEST_DRAW));
}

#[test]
fn the_grid_errs_less_than_it_says_and_sixteen_times_less_with_half_the_cell() {
    let points = random_points(4000, 11);
    let exact = Kde::fit(&points).unwrap();
    let places = random_points(2000, 12);
    let truth = exact.density(&places, &Progress::new()).unwrap();
    let worst = |cells: usize| {
        let binned = BinnedKde::fit(&points, cells).unwrap();
        let errors = binned.density(&places).into_iter().zip(&truth).map(|(ours, theirs)| (ours - theirs).abs());
        let worst = errors.fold(0.0, f64::max);
        assert!(worst <= binned.error_bound(), "{cells}: {worst:e} {:e}", binned.error_bound());
        worst
    };
    let (coarse, fine) = (worst(128), worst(256));
    assert!(coarse / fine > 10.0 && coarse / fine < 24.0, "{coarse:e} {fine:e}");
}

#[test]
fn outliers_make_the_grid_coarse_and_its_bound_honest() {
    let mut points = random_points(300, 3);
    points.push(NormSpan::new(0.0, 1e9).unwrap());
    let binned = BinnedKde::fit(&points, 64).unwrap();
    let exact = Kde::fit(&points).unwrap();
    for (ours, theirs) in binned.density(&points).into_iter().zip(exact.density(&points, &Progress::new()).unwrap()) {
        assert!((ours - theirs).abs() <= binned.error_bound());
    }
}

proptest! {
    #[test]
    fn equal_places_have_equal_densities(seed in 0u64..50, copies in 2usize..40) {
        let points = random_points(700, seed);
        let kde = Kde::fit(&points).unwrap();
        let mut places = points.clone();
        for copy in 0..copies {
            places.insert((copy * 37) % places.len(), points[5]);
        }
        let densities = kde.density(&places, &Progress::new()).unwrap();
        let of_five: Vec<f64> = places.iter().zip(&densities).filter(|(p, _)| **p == points[5]).map(|(_, d)| *d).collect();
        prop_assert!(of_five.len() > copies);
        prop_assert!(of_five.iter().all(|d| *d == of_five[0]));
    }
}
