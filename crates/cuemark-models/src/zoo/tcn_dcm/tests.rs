//! What holds for the network on toy batches.
#![allow(clippy::unwrap_used)] // a test may panic

use crate::layers::MapSize;
use crate::losses::ScaledIou;
use cuemark_core::Rng;
use cuemark_tensor::{Params, Var};

use super::distance_correlation::{correlate_on_cpu, correlate_with_tensors};
use super::*;
use crate::VideoBatch;
use crate::testing::{TOY, assert_learnt_by_heart, gap};

fn config() -> TcnDcmConfig {
    TcnDcmConfig {
        map: MapSize { pre_clips: 8, clips: 8, counts: vec![7] },
        hidden: 16,
        lstm_layers: 1,
        heads: 2,
        dropout: 0.1,
        eta: 1.0,
        kernel: 3,
        layers: 2,
        gamma: 1.0,
        sigma: 1.0,
        lambda: 0.001,
        frobenius: 1e-5,
        targets: ScaledIou::default(),
        nms: 0.45,
    }
}

fn net() -> TcnDcm {
    TcnDcm::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

/// The toy batch with noise, in which nothing is to be found, as the other video of each query.
fn batch() -> Batch {
    let mut batch = TOY.batch(1);
    let mut rng = Rng::new(2);
    let noise = (0..batch.videos.visual.elem_count()).map(|_| (0.5 * rng.normal()) as f32).collect();
    let visual = Tensor::from_vec(noise, batch.videos.visual.shape(), &Device::Cpu).unwrap();
    batch.other_videos = Some(VideoBatch { visual, ..batch.videos.clone() });
    batch
}

#[test]
fn every_valid_cell_is_proposed_once_with_a_probability() {
    let ranked = net().propose(&batch()).unwrap();
    assert_eq!(ranked.len(), TOY.pairs);
    for proposals in ranked {
        assert_eq!(proposals.len(), 36);
        assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn padded_words_change_nothing() {
    let (net, batch) = (net(), batch());
    let logits = |batch: &Batch| {
        let queries = &batch.queries;
        net.forward(&batch.videos.visual, &queries.words, &queries.lengths, &Pass::answering()).unwrap().logits
    };
    assert!(gap(&logits(&batch), &logits(&batch.with_longer_words(3))) < 1e-6);
}

#[test]
fn without_another_video_only_a_zero_gamma_trains() {
    let with = |gamma: f64| {
        let config = TcnDcmConfig { gamma, ..config() };
        TcnDcm::new(&config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    };
    let error = with(1.0).loss(&TOY.batch(1), &Pass::answering()).unwrap_err();
    assert_eq!(error.to_string(), "`tcn-dcm` needs another video for each of its training queries");
    let loss = with(0.0).loss(&TOY.batch(1), &Pass::answering()).unwrap();
    assert!(loss.parts.iter().all(|(name, _)| *name != "bce_negative"));
}

#[test]
fn distances_of_a_thing_correlate_fully_with_themselves_and_with_their_multiples() {
    let x = Tensor::arange(0f32, 24.0, &Device::Cpu).unwrap().reshape((8, 3)).unwrap().sin().unwrap();
    for y in [x.clone(), (&x * 3.0).unwrap()] {
        let value = distance_correlation(&x, &y).unwrap().to_scalar::<f32>().unwrap();
        assert!((value - 1.0).abs() < 1e-3, "{value}");
    }
}

/// The definition in plain loops.
fn correlation_by_definition(x: &[Vec<f64>], y: &[Vec<f64>]) -> f64 {
    let rows = x.len();
    let centred = |x: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let plain: Vec<Vec<f64>> = x.iter().map(|a| x.iter().map(|b| distance(a, b)).collect()).collect();
        let means: Vec<f64> = plain.iter().map(|row| row.iter().sum::<f64>() / rows as f64).collect();
        let mean = means.iter().sum::<f64>() / rows as f64;
        let centre = |i: usize, j: usize| plain[i][j] - means[i] - means[j] + mean;
        (0..rows).map(|i| (0..rows).map(|j| centre(i, j)).collect()).collect()
    };
    let (a, b) = (centred(x), centred(y));
    let covariance = |a: &[Vec<f64>], b: &[Vec<f64>]| -> f64 {
        a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum::<f64>()
    };
    (covariance(&a, &b) / (covariance(&a, &a) * covariance(&b, &b)).sqrt()).sqrt()
}

#[test]
fn distance_correlation_is_its_definition_with_and_without_tensors() {
    let mut rng = Rng::new(3);
    let rows = 60;
    let x: Vec<Vec<f64>> = (0..rows).map(|_| vec![rng.normal(), rng.normal()]).collect();
    let y: Vec<Vec<f64>> = x.iter().map(|row| vec![row[0] + rng.normal(), row[1] * row[0], rng.normal()]).collect();
    let tensor = |x: &[Vec<f64>]| {
        let values: Vec<f32> = x.iter().flatten().map(|value| *value as f32).collect();
        Tensor::from_vec(values, (rows, x[0].len()), &Device::Cpu).unwrap()
    };
    let wanted = correlation_by_definition(&x, &y);
    let (on_cpu, x_cpu, y_cpu) = correlate_on_cpu(&tensor(&x), &tensor(&y)).unwrap();
    let (with_tensors, x_tensors, y_tensors) = correlate_with_tensors(&tensor(&x), &tensor(&y)).unwrap();
    assert!((on_cpu - wanted).abs() < 1e-4 && (with_tensors - wanted).abs() < 1e-4, "{on_cpu} {with_tensors} {wanted}");
    // Slopes at a distance of 0 are large and cancel: they are compared as they are used.
    for (rows, a, b) in [(tensor(&x), x_cpu, x_tensors), (tensor(&y), y_cpu, y_tensors)] {
        let pull = |slopes: &Tensor| {
            let own = rows.broadcast_mul(&slopes.sum_keepdim(1).unwrap()).unwrap();
            (own - slopes.times(&rows).unwrap()).unwrap()
        };
        assert!(gap(&pull(&a), &pull(&b)) < 1e-4);
    }
}

#[test]
fn the_gradient_of_the_distance_correlation_is_that_of_small_steps() {
    let values = |phase: f32| (0..24).map(|n| (n as f32 * 0.9 + phase).sin() * 2.0).collect::<Vec<f32>>();
    let var = |values: &[f32]| Var::from_slice(values, (8, 3), &Device::Cpu).unwrap();
    let value = |x: &[f32], y: &[f32]| {
        distance_correlation(var(x).as_tensor(), var(y).as_tensor()).unwrap().to_scalar::<f32>().unwrap()
    };
    let (x, y) = (values(0.0), values(1.3));
    let (of_x, of_y) = (var(&x), var(&y));
    let grads = distance_correlation(of_x.as_tensor(), of_y.as_tensor()).unwrap().backward().unwrap();
    let grad = |of: &Var| grads.get(of.as_tensor()).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
    for place in [0, 7, 16, 23] {
        let moved = |values: &[f32], by: f32| {
            let mut moved = values.to_vec();
            moved[place] += by;
            moved
        };
        let in_x = (value(&moved(&x, 1e-2), &y) - value(&moved(&x, -1e-2), &y)) / 2e-2;
        let in_y = (value(&x, &moved(&y, 1e-2)) - value(&x, &moved(&y, -1e-2))) / 2e-2;
        assert!((in_x - grad(&of_x)[place]).abs() < 1e-3, "{in_x} {}", grad(&of_x)[place]);
        assert!((in_y - grad(&of_y)[place]).abs() < 1e-3, "{in_y} {}", grad(&of_y)[place]);
    }
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = batch();
    // Without the location loss, whose floor is far above 0 at this width.
    let config = TcnDcmConfig { sigma: 0.0, dropout: 0.0, ..config() };
    assert_learnt_by_heart(|vb| TcnDcm::new(&config, &TOY.given(), vb), &batch, 150, 1e-2, 0.3);
}
