//! Weights and pictures that follow a formula, which `make.py` computes too: nothing has to be stored.

use candle_core::{DType, Device, Result, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use cuemark_encoders::visual::Clips;
use serde_json::Value;

/// Parameters by name and shape.
pub(crate) struct Formula;

impl Formula {
    pub(crate) fn builder() -> VarBuilder<'static> {
        VarBuilder::from_backend(Box::new(Self), DType::F32, Device::Cpu)
    }
}

impl SimpleBackend for Formula {
    fn get(&self, shape: Shape, name: &str, _: Init, _: DType, device: &Device) -> Result<Tensor> {
        let dims = shape.dims();
        let last = name.rsplit(['/', '.']).next().unwrap_or(name);
        let count = shape.elem_count();
        let value: Box<dyn Fn(f64) -> f64> = match (last, dims) {
            ("running_var" | "var", _) | ("weight", [_]) => Box::new(|u| 0.5 + u),
            (_, [_]) => Box::new(|u| 0.2 * (u - 0.5)),
            (_, dims) => {
                let fan = count / if last == "kernel" { dims[dims.len() - 1] } else { dims[0] };
                let scale = (3.0 / fan as f64).sqrt();
                Box::new(move |u| (2.0 * u - 1.0) * scale)
            }
        };
        let values: Vec<f32> = noise(name).take(count).map(|u| value(u) as f32).collect();
        Tensor::from_vec(values, shape, device)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        Err(candle_core::Error::Msg(format!("`{name}` has no shape")))
    }

    /// Networks ask for names that only another port has.
    fn contains_tensor(&self, name: &str) -> bool {
        !name.contains("conv3d")
    }
}

/// Numbers in 0..1: FNV-1a of the name, then the finaliser of MurmurHash3.
pub(crate) fn noise(name: &str) -> impl Iterator<Item = f64> {
    let seed = name.bytes().fold(2_166_136_261u32, |seed, byte| (seed ^ u32::from(byte)).wrapping_mul(16_777_619));
    (0u32..).map(move |place| {
        let mut x = place.wrapping_mul(0x9E37_79B9).wrapping_add(seed);
        x = (x ^ (x >> 16)).wrapping_mul(0x85EB_CA6B);
        x = (x ^ (x >> 13)).wrapping_mul(0xC2B2_AE35);
        f64::from(x ^ (x >> 16)) / 4_294_967_296.0
    })
}

/// One clip of noise.
pub(crate) fn clip(name: &str, frames: usize, side: usize) -> Clips {
    let rgb = noise(name).take(frames * side * side * 3).map(|u| (u * 256.0) as u8).collect();
    Clips::from_rgb(frames, [side, side], rgb).unwrap()
}

/// The reference's figures.
pub(crate) fn reference() -> Value {
    let path = cuemark_testkit::fixture("encoders/visual/reference.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The first numbers of our one row are the reference's, to `tolerance`.
pub(crate) fn assert_agrees(ours: &Tensor, reference: &Value, tolerance: f32, what: &str) {
    let ours = ours.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let reference: Vec<f32> = reference.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect();
    assert!(!reference.is_empty() && ours.len() >= reference.len(), "{what}");
    let spread = reference.iter().fold(f32::INFINITY, |low, x| low.min(*x))
        - reference.iter().fold(f32::NEG_INFINITY, |high, x| high.max(*x));
    assert!(spread.abs() > 10.0 * tolerance, "{what}: the reference hardly differs from place to place");
    let worst = ours.iter().zip(&reference).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= tolerance, "{what}: off by {worst}");
}
