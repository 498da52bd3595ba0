//! What holds for the network on toy batches.

use candle_core::DType;
use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};
use cuemark_core::Rng;
use cuemark_tensor::{Device, Params};

use super::*;
use crate::Negatives;
use crate::losses::{Sampling, sampling_probabilities};
use crate::testing::{TOY, assert_learnt_by_heart, best_overlaps};

fn config() -> RmmnConfig {
    let settings = "network = { map = { pre_clips = 8, clips = 8, counts = [7] }, hidden = 16, joint = 12, kernel = 3,\n\
                    layers = 2, text = { dim = 8, layers = 1, heads = 2, ffn = 16, positions = 8, dropout = 0.0 } }\n\
                    matching = { margin = 0.1 }";
    toml::from_str(settings).unwrap()
}

fn model(config: &RmmnConfig) -> Rmmn {
    Rmmn::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

fn batch() -> Batch {
    let mut batch = TOY.batch(1);
    batch.similarity = Some(Tensor::zeros((4, 4), DType::F32, &Device::Cpu).unwrap());
    batch.negatives = Some(vec![
        Negatives { query: 0, videos: vec![1, 2], queries: vec![3] },
        Negatives { query: 2, videos: vec![3], queries: vec![0, 1] },
    ]);
    batch
}

fn loss(model: &Rmmn, batch: &Batch, stage: usize) -> Vec<f32> {
    let loss = model.loss(batch, &Pass::training(stage, 1, Rng::new(1))).unwrap();
    loss.parts.iter().map(|(_, part)| part.to_scalar().unwrap()).collect()
}

#[test]
fn every_query_ranks_the_cells_of_its_video_and_padded_words_change_nothing() {
    let (model, batch) = (model(&config()), batch());
    let (short, long) = (model.propose(&batch).unwrap(), model.propose(&batch.with_longer_words(2)).unwrap());
    for (short, long) in short.iter().zip(&long) {
        assert_eq!(short.len(), 36);
        assert!(short.iter().zip(long).all(|(a, b)| (a.score - b.score).abs() < 1e-6));
    }
}

#[test]
fn a_false_negative_leaves_the_loss_unless_the_form_is_the_released_one() {
    let mut batch = batch();
    let plain = loss(&model(&config()), &batch, 0);
    let mut similar = vec![0f32; 16];
    similar[1] = 0.95; // query 0 may describe something in video 1
    batch.similarity = Some(Tensor::from_vec(similar, (4, 4), &Device::Cpu).unwrap());
    let filtered = loss(&model(&config()), &batch, 0);
    assert!(filtered[1] < plain[1] && filtered[2] < plain[2], "{plain:?} {filtered:?}");
    assert_eq!(filtered[0], plain[0]);
    let released = loss(&model(&RmmnConfig { form: Form::Released, ..config() }), &batch, 0);
    assert!(released[2] > filtered[2]);
}

#[test]
fn the_own_video_is_never_filtered() {
    let mut batch = batch();
    let plain = loss(&model(&config()), &batch, 0);
    batch.similarity = Some(Tensor::eye(4, DType::F32, &Device::Cpu).unwrap());
    assert_eq!(loss(&model(&config()), &batch, 0), plain);
}

#[test]
fn the_second_stage_reads_only_what_was_sampled() {
    let (model, mut batch) = (model(&config()), batch());
    let before = loss(&model, &batch, 1);
    batch.similarity = None; // the filter belongs to the first stage
    assert_eq!(loss(&model, &batch, 1), before);
    batch.negatives = Some(vec![Negatives { query: 0, videos: vec![1, 2], queries: vec![3] }]);
    assert_ne!(loss(&model, &batch, 1), before);
    batch.negatives = None;
    let error = model.loss(&batch, &Pass::training(1, 1, Rng::new(1))).unwrap_err();
    assert!(error.to_string().contains("sampled negatives"));
}

#[test]
fn candidates_as_relevant_as_the_positives_are_drawn_most_often() {
    let probabilities = sampling_probabilities(&[0.2, 0.7, 1.2], 0.7, 4.0, 0.0);
    assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!((probabilities[0] - probabilities[2]).abs() < 1e-12);
    assert!((probabilities[1] / probabilities[0] - 1f64.exp()).abs() < 1e-9); // exp(4 * 0.25)
    assert_eq!(sampling_probabilities(&[0.0, 0.0], 100.0, 1.0, 0.0), [0.5, 0.5]);
    let sampling = Sampling { a: 400.0, ..Sampling::default() };
    let drawn = sampling.draw(&[0.2, 0.7, 1.2], 0.7, 5, &mut Rng::new(1));
    assert_eq!(drawn[0], 1);
    assert_eq!(
        {
            let mut all = drawn.clone();
            all.sort_unstable();
            all
        },
        [0, 1, 2]
    );
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    assert_learnt_by_heart(|vb| Rmmn::new(&config(), &TOY.given(), vb), &batch(), 120, 1e-2, 0.4);
}

#[test]
fn sampled_negatives_can_be_learnt_by_heart() {
    let (params, mut batch) = (Params::seeded(1, &Device::Cpu), batch());
    let item = |query| Negatives { query, videos: vec![(query + 1) % 4], queries: vec![(query + 2) % 4] };
    batch.negatives = Some((0..4).map(item).collect());
    let model = Rmmn::new(&config(), &TOY.given(), params.builder()).unwrap();
    let vars = params.vars().into_iter().map(|(_, var)| var).collect();
    let mut optimiser = AdamW::new(vars, ParamsAdamW { lr: 1e-2, ..ParamsAdamW::default() }).unwrap();
    let first = loss(&model, &batch, 1).iter().sum::<f32>();
    for step in 0..120 {
        let loss = model.loss(&batch, &Pass::training(1, 1, Rng::new(step))).unwrap();
        optimiser.backward_step(&loss.total).unwrap();
    }
    let last = loss(&model, &batch, 1).iter().sum::<f32>();
    assert!(last < 0.5 * first, "{first} to {last}");
    assert!(best_overlaps(&model, &batch).iter().all(|overlap| *overlap >= 0.7));
}
