//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{
    JOINT, TOY, assert_joint_learnt, assert_padding_changes_nothing, assert_well_formed, moved_by_padding,
};

fn config() -> TrDetrConfig {
    TrDetrConfig { clips: 12, words: 6, network: JOINT, proposals: 5, ..TrDetrConfig::default() }
}

fn net(config: &TrDetrConfig) -> TrDetr {
    TrDetr::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn spans_are_ordered_and_every_real_clip_has_a_score() {
    assert_well_formed(&net(&config()), 5);
}

#[test]
fn padding_changes_nothing_unless_it_is_let_through_as_published() {
    assert_padding_changes_nothing(&net(&config()));
    assert!(moved_by_padding(&net(&TrDetrConfig { padding: Padding::Leaks, ..config() })) > 1e-4);
}

#[test]
fn clips_of_a_span_are_sliced_as_python_slices() {
    assert_eq!(slice(-1, 2, 12), 11..11);
    assert_eq!(slice(-1, 11, 12), 11..12);
    assert_eq!(slice(3, 20, 12), 3..12);
    assert_eq!(slice(0, -1, 12), 0..0);
    assert_eq!(slice(-30, -2, 12), 0..11);
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(TrDetr::new(&config(), &TOY.given(), vb)?)) };
    assert_joint_learnt(build, 400, 2e-3);
}
