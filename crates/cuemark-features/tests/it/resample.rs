//! Resampling against what the published scripts gave.

use cuemark_features::{Features, Resample};
use cuemark_testkit::shared;
use safetensors::{SafeTensors, tensor::TensorView};

fn floats(tensor: &TensorView<'_>) -> Features {
    let (numbers, _) = tensor.data().as_chunks::<4>();
    let data = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
    Features::new(tensor.shape()[0], tensor.shape()[1], data).unwrap()
}

#[test]
fn resampled_rows_are_those_of_the_published_scripts() {
    let Some(path) = shared("parity/map2d-and-sampling.safetensors") else { return };
    let bytes = std::fs::read(path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut compared = 0;
    for name in tensors.names() {
        let Some((kind, sizes)) = name.strip_prefix("out.").and_then(|name| name.split_once('_')) else { continue };
        let Some((from, to)) = sizes.split_once("_to_") else { continue };
        let rows = to.parse().unwrap();
        let rule = match kind {
            "avg" => Resample::MeanBins { rows },
            "lin" => Resample::Linspace { rows },
            _ => continue,
        };
        let before = floats(&tensors.tensor(&format!("in.feat_{from}")).unwrap());
        let (found, expected) = (rule.apply(&before), floats(&tensors.tensor(name).unwrap()));
        assert_eq!((found.rows(), found.width()), (expected.rows(), expected.width()), "{name}");
        let apart = found.data().iter().zip(expected.data()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-6, "{name} is {apart} off");
        compared += 1;
    }
    assert_eq!(compared, 12);
}

/// The same rules on rows that say their own number, so that a mean tells which rows went into it.
#[test]
fn resampled_rows_are_means_of_the_rows_the_rules_name() {
    let rows = |n: usize| Features::new(n, 1, (0..n).map(|row| row as f32).collect()).unwrap();
    let bins = Resample::MeanBins { rows: 4 }.apply(&rows(10));
    // 2.5 k = 0, 2.5, 5, 7.5, 10 with halves to even and the last cut to 9: edges 0, 2, 5, 8, 9.
    assert_eq!(bins.data(), [0.5, 3.0, 6.0, 8.0]);
    let line = Resample::Linspace { rows: 4 }.apply(&rows(10));
    // Anchors 0, 3, 6, 9: rows 0..3, 3..6, 6..9, and row 9.
    assert_eq!(line.data(), [1.0, 4.0, 7.0, 9.0]);
    assert_eq!(Resample::Linspace { rows: 5 }.apply(&rows(3)).data(), [0.0, 0.0, 1.0, 1.0, 2.0]);
}
