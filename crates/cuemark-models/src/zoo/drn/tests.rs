//! What holds for the network on toy batches.

use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};
use cuemark_core::Rng;
use cuemark_tensor::{Device, Params};

use super::*;
use crate::layers::WordSource;
use crate::testing::{TOY, best_overlaps, gap, overfit};

fn config() -> DrnConfig {
    DrnConfig {
        clips: 8,
        lstm: 8,
        lstm_layers: 1,
        first: 8,
        pyramid: 12,
        position: 4,
        tower: 1,
        levels: vec![Level { stride: 1, from: -1.0, to: 3.0 }, Level { stride: 2, from: 2.0, to: 1e8 }],
        alpha: 0.25,
        gamma: 2.0,
        overlap: 0.9,
        clamp: Clamp::All,
        min_score: 0.05,
        top: 32,
        word_vectors: WordSource::Given,
        nms: 0.45,
    }
}

fn build(vb: VarBuilder) -> Result<Box<dyn Model>> {
    Ok(Box::new(Drn::new(&config(), &TOY.given(), vb)?))
}

#[test]
fn a_pyramid_of_two_levels_has_all_its_locations() {
    let net = Drn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
    let forward = net.of_batch(&TOY.batch(1), &Pass::answering()).unwrap();
    let counts: Vec<&[usize]> = forward.levels.iter().map(|level| level.distances.dims()).collect();
    assert_eq!(counts, [[TOY.pairs, 8, 2], [TOY.pairs, 4, 2]]);
    // Nothing scores more than 0.05 before training: the whole video is the answer.
    let ranked = net.propose(&TOY.batch(1)).unwrap();
    assert!(ranked.iter().all(|proposals| proposals.len() == 1 && proposals[0].span.len() >= 1.0));
}

#[test]
fn padded_words_change_nothing() {
    let net = Drn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
    let logits =
        |batch: &Batch| all(&net.of_batch(batch, &Pass::answering()).unwrap().levels, |level| &level.class).unwrap();
    let batch = TOY.batch(1);
    assert!(gap(&logits(&batch), &logits(&batch.with_longer_words(3))) < 1e-6);
}

#[test]
fn a_location_answers_for_the_moments_of_its_level() {
    let net = Drn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
    // Clips 2 to 6 of 8: locations 2.5 to 5.5 lie inside, the larger distance is 3.5, 2.5, 2.5, 3.5.
    let like = Tensor::zeros(1, DType::F32, &Device::Cpu).unwrap();
    let truth = net.truth(&[(0.25, 0.75)], &like).unwrap();
    let positive = |level: usize| truth[level].positive.to_vec2::<f32>().unwrap().remove(0);
    assert_eq!(positive(0), [0., 0., 0., 1., 1., 0., 0., 0.]);
    assert_eq!(positive(1), [0., 1., 1., 0.]);
}

#[test]
fn every_stage_trains_its_own_part() {
    let batch = TOY.batch(1);
    let params = Params::seeded(1, &Device::Cpu);
    let model = build(params.builder()).unwrap();
    for (stage, parts) in
        [(0, vec!["class", "distance"]), (1, vec!["overlap"]), (2, vec!["class", "distance", "overlap"])]
    {
        let pass = Pass::training(stage, 1, Rng::new(1));
        let loss = model.loss(&batch, &pass).unwrap();
        assert_eq!(loss.parts.iter().map(|part| part.0).collect::<Vec<_>>(), parts);
        let rate = |name: &str| model.rate(name, &pass);
        assert_eq!(rate("fcos.head.mix_fc.0.weight"), if stage == 0 { 0.0 } else { 1.0 });
        assert_eq!(rate("prop_fc.weight"), if stage == 1 { 0.0 } else { 1.0 });
    }
}

#[test]
fn the_overlap_head_learns_in_its_stage() {
    let batch = TOY.batch(1);
    let params = Params::seeded(1, &Device::Cpu);
    let net = Drn::new(&DrnConfig { overlap: 0.1, ..config() }, &TOY.given(), params.builder()).unwrap();
    let vars = params.vars().into_iter().filter(|(name, _)| of_overlap_head(name)).map(|(_, var)| var).collect();
    let mut optimiser = AdamW::new(vars, ParamsAdamW { lr: 1e-2, ..ParamsAdamW::default() }).unwrap();
    let mut losses = Vec::new();
    for step in 0..30 {
        let loss = net.loss(&batch, &Pass::training(1, 1, Rng::new(step))).unwrap().total;
        losses.push(loss.to_scalar::<f32>().unwrap());
        optimiser.backward_step(&loss).unwrap();
    }
    assert!(losses[0] > 0.0 && losses[29] < 0.5 * losses[0], "{losses:?}");
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = TOY.batch(1);
    let (model, first, last) = overfit(build, &batch, 150, 1e-2);
    let overlaps = best_overlaps(model.as_ref(), &batch);
    assert!(last < 0.2 * first, "{first} to {last}");
    assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
}
