//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{
    JOINT, TOY, assert_joint_learnt, assert_padding_changes_nothing, assert_well_formed, joint_batch, moved_by_padding,
};

fn config() -> EatrConfig {
    EatrConfig {
        clips: 12,
        words: 6,
        network: JOINT,
        encoder_layers: 2,
        decoder_layers: 2,
        proposals: 5,
        ..EatrConfig::default()
    }
}

fn net(config: &EatrConfig) -> (Eatr, Params) {
    let params = Params::seeded(1, &Device::Cpu);
    (Eatr::new(config, &TOY.given(), params.builder()).unwrap(), params)
}

#[test]
fn spans_are_ordered_and_every_real_clip_has_a_score() {
    assert_well_formed(&net(&config()).0, 5);
}

#[test]
fn padding_changes_nothing_unless_it_is_let_through_as_published() {
    assert_padding_changes_nothing(&net(&config()).0);
    let (leaking, params) = net(&EatrConfig { padding: Padding::Leaks, ..config() });
    // Fresh span heads say the same of every slot; moved, they tell what the slots are.
    let head = params.var("moment_span_embed.layers.2.weight").unwrap();
    head.set(&head.ones_like().unwrap()).unwrap();
    assert!(moved_by_padding(&leaking) > 1e-4);
}

#[test]
fn a_fresh_network_proposes_the_middle_half_in_every_layer() {
    let (net, _) = net(&config());
    let forward = net.forward(&net.inputs(&joint_batch()).unwrap(), &Pass::answering()).unwrap();
    for layer in &forward.layers {
        let spans = layer.spans.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert!(spans.iter().all(|value| (value - 0.5).abs() < 1e-6));
    }
}

#[test]
fn moments_teach_the_slots_without_events() {
    let (net, params) = net(&EatrConfig { event_weight: 0.0, ..config() });
    for head in ["moment_span_embed", "event_span_embed"] {
        let head = params.var(&format!("{head}.layers.2.weight")).unwrap();
        head.set(&head.ones_like().unwrap()).unwrap();
    }
    let loss = net.loss(&joint_batch(), &Pass::training(0, 1, cuemark_core::Rng::new(1))).unwrap();
    let gradients = loss.total.backward().unwrap();
    for name in ["transformer.decoder.slot_atten.slots", "event_span_embed.layers.0.weight"] {
        let gradient = gradients.get(params.var(name).unwrap().as_tensor()).unwrap();
        assert!(gradient.abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap() > 0.0, "{name}");
    }
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Eatr::new(&config(), &TOY.given(), vb)?)) };
    assert_joint_learnt(build, 150, 5e-3);
}
