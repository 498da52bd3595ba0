//! The operation against plain loops in double precision.

use candle_core::{DType, Device, Tensor, Var};
use cuemark_core::Rng;

use super::{Heads, Sizes, attend, composed};
use crate::Pass;
use crate::against::{assert_close, devices, draw};

/// Result and gradients of the loss `sum(y * pull)`; `factor` is what dropout does to the weight at a place.
fn loops(
    sizes: &Sizes,
    [q, k, v]: [&[f32]; 3],
    pull: &[f32],
    bias: &dyn Fn([usize; 4]) -> f64,
    factor: &dyn Fn(usize) -> f64,
) -> [Vec<f64>; 4] {
    let Sizes { batch, heads, queries, keys, width, values } = *sizes;
    let q_at = |b: usize, i: usize, h: usize, c: usize| ((b * queries + i) * heads + h) * width + c;
    let k_at = |b: usize, j: usize, h: usize, c: usize| ((b * keys + j) * heads + h) * width + c;
    let v_at = |b: usize, j: usize, h: usize, c: usize| ((b * keys + j) * heads + h) * values + c;
    let y_at = |b: usize, i: usize, h: usize, c: usize| ((b * queries + i) * heads + h) * values + c;
    let wide = |x: &[f32], n: usize| f64::from(x[n]);
    let scale = 1.0 / (width as f64).sqrt();
    let mut all = [vec![0.0; pull.len()], vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]];
    for (b, h, i) in (0..batch).flat_map(|b| (0..heads).flat_map(move |h| (0..queries).map(move |i| (b, h, i)))) {
        let logit = |j: usize| {
            let product = |c: usize| wide(q, q_at(b, i, h, c)) * wide(k, k_at(b, j, h, c));
            (0..width).map(product).sum::<f64>() * scale + bias([b, h, i, j])
        };
        let logits: Vec<f64> = (0..keys).map(logit).collect();
        let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logits.iter().map(|logit| (logit - most).exp()).sum();
        let weights: Vec<f64> = logits.iter().map(|logit| (logit - most).exp() / total).collect();
        let kept = |j: usize| factor(((b * heads + h) * queries + i) * keys + j);
        let mut of_weights = vec![0.0; keys];
        for j in 0..keys {
            for c in 0..values {
                let g = wide(pull, y_at(b, i, h, c));
                all[0][y_at(b, i, h, c)] += weights[j] * kept(j) * wide(v, v_at(b, j, h, c));
                all[3][v_at(b, j, h, c)] += weights[j] * kept(j) * g;
                of_weights[j] += g * wide(v, v_at(b, j, h, c)) * kept(j);
            }
        }
        let common: f64 = weights.iter().zip(&of_weights).map(|(weight, of)| weight * of).sum();
        for j in 0..keys {
            let of_logit = weights[j] * (of_weights[j] - common) * scale;
            for c in 0..width {
                all[1][q_at(b, i, h, c)] += of_logit * wide(k, k_at(b, j, h, c));
                all[2][k_at(b, j, h, c)] += of_logit * wide(q, q_at(b, i, h, c));
            }
        }
    }
    all
}

fn pass(dropout: f64) -> Pass {
    if dropout > 0.0 { Pass::training(0, 1, Rng::new(9)) } else { Pass::answering() }
}

#[test]
fn values_and_gradients_are_those_of_plain_loops() {
    let rng = &mut Rng::new(7);
    let sizes = |batch, heads, queries, keys, width, values| Sizes { batch, heads, queries, keys, width, values };
    let cases = [
        (sizes(1, 1, 1, 1, 1, 1), [1, 1, 1], 0.0),
        (sizes(2, 3, 5, 7, 4, 6), [2, 1, 1], 0.0),
        (sizes(2, 2, 33, 40, 32, 32), [2, 2, 33], 0.3),
        (sizes(3, 4, 10, 107, 32, 32), [3, 1, 1], 0.1),
        (sizes(1, 2, 140, 35, 64, 32), [1, 1, 140], 0.2),
        (sizes(2, 1, 40, 70, 64, 64), [1, 1, 1], 0.1),
        (sizes(1, 1, 300, 250, 8, 8), [1, 1, 1], 0.0),
        (sizes(1, 2, 6, 300, 80, 5), [1, 2, 1], 0.5), // more than the kernels of a GPU have room for
    ];
    for (sizes, by, dropout) in cases {
        let Sizes { batch, heads, queries, keys, width, values } = sizes;
        let q = draw(rng, batch * queries * heads * width);
        let [k, v] = [draw(rng, batch * keys * heads * width), draw(rng, batch * keys * heads * values)];
        let pull = draw(rng, batch * queries * heads * values);
        let mut bias = draw(rng, by[0] * by[1] * by[2] * keys);
        // Some keys are hidden, never the first.
        bias.iter_mut().enumerate().filter(|(n, _)| n % keys % 5 == 3).for_each(|(_, bias)| *bias = -1e9);
        let at = |[b, h, i, j]: [usize; 4]| {
            let place = |n: usize, of: usize| if of == 1 { 0 } else { n };
            f64::from(bias[((place(b, by[0]) * by[1] + place(h, by[1])) * by[2] + place(i, by[2])) * keys + j])
        };
        let chance = pass(dropout).draw_dropout(dropout);
        let factor = |place: usize| chance.map_or(1.0, |dropout| f64::from(dropout.factor(place as u64)));
        let wanted = loops(&sizes, [&q, &k, &v], &pull, &at, &factor);
        for device in devices() {
            let var = |values: &[f32], shape: &[usize]| {
                Var::from_tensor(&Tensor::from_slice(values, shape, &device).unwrap()).unwrap()
            };
            let vars = [
                var(&q, &[batch, queries, heads * width]),
                var(&k, &[batch, keys, heads * width]),
                var(&v, &[batch, keys, heads * values]),
            ];
            let bias = Tensor::from_slice(&bias, (by[0], by[1], by[2], keys), &device).unwrap();
            let given = Heads { count: heads, bias: Some(&bias), dropout };
            let ours = attend(&vars[0], &vars[1], &vars[2], given, &pass(dropout)).unwrap();
            let general = composed(&vars[0], &vars[1], &vars[2], heads, Some(&bias), chance).unwrap();
            for (y, form) in [(ours, "as one"), (general, "composed")] {
                let pull = Tensor::from_slice(&pull, y.shape(), &device).unwrap();
                let gradients = (&y * pull).unwrap().sum_all().unwrap().backward().unwrap();
                let what = format!("{sizes:?}, {form}, {device:?}");
                assert_close(&y, &wanted[0], 1e-5, &what);
                for (var, wanted) in vars.iter().zip(&wanted[1..]) {
                    assert_close(gradients.get(var).unwrap(), wanted, 2e-5, &what);
                }
            }
        }
    }
}

#[test]
fn a_learned_bias_gets_its_gradient() {
    let rng = &mut Rng::new(8);
    let x = Tensor::from_vec(draw(rng, 2 * 3 * 4), (2, 3, 4), &Device::Cpu).unwrap();
    let bias = Var::zeros((1, 1, 3, 3), DType::F32, &Device::Cpu).unwrap();
    let heads = Heads { count: 2, bias: Some(bias.as_tensor()), dropout: 0.0 };
    let y = attend(&x, &x, &x, heads, &Pass::answering()).unwrap();
    let gradients = y.sqr().unwrap().sum_all().unwrap().backward().unwrap();
    let gradient = gradients.get(&bias).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
    assert!(gradient.iter().any(|g| g.abs() > 1e-3), "{gradient:?}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
    let refused = |q: &[usize], k: &[usize], bias: &[usize], count| {
        let (q, k, bias) = (zeros(q), zeros(k), zeros(bias));
        let heads = Heads { count, bias: Some(&bias), dropout: 0.0 };
        attend(&q, &k, &k, heads, &Pass::answering()).unwrap_err().to_string()
    };
    assert!(refused(&[1, 2, 4], &[2, 3, 4], &[1, 3], 2).contains("do not fit each other"));
    assert!(refused(&[1, 2, 4], &[1, 3, 4], &[1, 3], 3).contains("3 heads cannot share"));
    assert!(refused(&[1, 2, 4], &[1, 3, 4], &[1, 2], 2).contains("a bias of [1, 1, 1, 2]"));
}
