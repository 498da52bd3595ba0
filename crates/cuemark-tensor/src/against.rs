//! What tests of operations against plain loops share.

use candle_core::{Device, Tensor};
use cuemark_core::Rng;

/// The CPU, and a GPU where there is one, computing in full.
#[allow(clippy::print_stderr)] // says when it checks less
pub(crate) fn devices() -> Vec<Device> {
    crate::set_precision(crate::Precision::F32);
    let gpu = crate::device("cuda").ok();
    if gpu.is_none() {
        eprintln!("no GPU: only the CPU is checked");
    }
    [Some(Device::Cpu), gpu].into_iter().flatten().collect()
}

pub(crate) fn draw(rng: &mut Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| rng.normal() as f32).collect()
}

/// Every number is as wanted, within `tolerance` of the largest of them or of 1.
pub(crate) fn assert_close(ours: &Tensor, wanted: &[f64], tolerance: f64, what: &str) {
    let ours = ours.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    assert_eq!(ours.len(), wanted.len(), "{what}");
    let most = wanted.iter().map(|x| x.abs()).fold(1.0, f64::max);
    let worst = ours.iter().zip(wanted).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    assert!(worst <= tolerance * most, "{what}: off by {worst} where the largest is {most}");
    assert!(ours.iter().all(|x| x.is_finite()), "{what}: not all are numbers");
}
