//! What holds for the network on toy batches.
#![allow(clippy::unwrap_used)] // a test may panic

use cuemark_tensor::{Device, Params};

use super::*;
use crate::layers::detr::MaskOrder;
use crate::testing::{
    JOINT, TOY, assert_joint_learnt, assert_padding_changes_nothing, assert_well_formed, joint_batch, moved_by_padding,
};

fn config() -> QdDetrConfig {
    QdDetrConfig { clips: 12, words: 6, network: JOINT, proposals: 5, ..QdDetrConfig::default() }
}

fn net(config: &QdDetrConfig) -> QdDetr {
    QdDetr::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn spans_are_ordered_and_every_real_clip_has_a_score() {
    assert_well_formed(&net(&config()), 5);
}

#[test]
fn padding_changes_nothing_unless_samples_are_mixed_as_published() {
    assert_padding_changes_nothing(&net(&config()));
    let tiled = QdDetrConfig { mask_order: MaskOrder::Tiled, ..config() };
    assert!(moved_by_padding(&net(&tiled)) > 1e-4);
}

#[test]
fn with_one_decoder_layer_the_anchors_are_the_same_for_all() {
    let one = net(&QdDetrConfig { decoder_layers: 1, ..config() });
    let (batch, pass) = (joint_batch(), Pass::answering());
    let inputs = one.inputs(&batch).unwrap();
    let projected = one.project(&inputs, &pass).unwrap();
    let encoded = one.encode(&inputs, &projected, &inputs.own_text(), &pass).unwrap();
    let (decoded, _) = one.decode(&inputs, &projected, &encoded.memory, &pass).unwrap();
    let anchors = decoded.before[0].to_vec3::<f32>().unwrap();
    let learned = sigmoid(&one.anchors).unwrap().to_vec2::<f32>().unwrap();
    assert!(anchors.iter().all(|sample| *sample == learned));
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(QdDetr::new(&config(), &TOY.given(), vb)?)) };
    assert_joint_learnt(build, 150, 5e-3);
}
