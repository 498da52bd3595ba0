//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{
    JOINT, TOY, assert_joint_learnt, assert_padding_changes_nothing, assert_well_formed, gap, joint_batch,
    moved_by_padding,
};

fn config() -> UvcomConfig {
    UvcomConfig {
        clips: 12,
        words: 6,
        network: JOINT,
        encoder_layers: 1,
        decoder_layers: 2,
        proposals: 5,
        mlp: 20,
        word_centres: 2,
        clip_centres: 3,
        centre_rounds: 2,
        ..UvcomConfig::default()
    }
}

fn net(config: &UvcomConfig) -> Uvcom {
    Uvcom::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn spans_are_ordered_and_every_real_clip_has_a_score() {
    assert_well_formed(&net(&config()), 5);
}

#[test]
fn padding_changes_nothing_unless_it_is_let_through_as_published() {
    assert_padding_changes_nothing(&net(&config()));
    assert!(moved_by_padding(&net(&UvcomConfig { padding: Padding::Leaks, ..config() })) > 1e-4);
}

#[test]
fn all_slots_are_alike() {
    let (net, pass) = (net(&config()), Pass::answering());
    let inputs = net.inputs(&joint_batch()).unwrap();
    let projected = net.project(&inputs, &pass).unwrap();
    let encoded = net.encode(&inputs, &projected, &inputs.own_text(), &pass).unwrap();
    let (slots, ..) = net.decode(&inputs, &projected, &encoded, &pass).unwrap();
    let first = slots.narrow(1, 0, 1).unwrap().broadcast_as(slots.shape()).unwrap();
    assert!(gap(&slots, &first) < 1e-6);
}

#[test]
fn late_in_training_the_wrong_text_is_the_least_like_one() {
    let (net, batch) = (net(&config()), joint_batch());
    let loss = |epoch: usize| {
        let pass = Pass::training(0, epoch, cuemark_core::Rng::new(1));
        let parts = net.loss(&batch, &pass).unwrap().parts;
        parts.iter().find(|(name, _)| *name == "wrong pairs").unwrap().1.to_scalar::<f32>().unwrap()
    };
    assert_eq!(loss(1).to_bits(), loss(80).to_bits());
    assert_ne!(loss(80).to_bits(), loss(81).to_bits());
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Uvcom::new(&config(), &TOY.given(), vb)?)) };
    assert_joint_learnt(build, 200, 5e-3);
}
