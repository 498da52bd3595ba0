//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{JOINT, assert_joint_learnt, assert_padding_changes_nothing, assert_well_formed};

fn config() -> MomentDetrConfig {
    MomentDetrConfig { clips: 12, words: 6, network: JOINT, proposals: 5, ..MomentDetrConfig::default() }
}

fn build(config: &MomentDetrConfig, vb: VarBuilder) -> Result<Box<dyn Model>> {
    Ok(Box::new(MomentDetr::new(config, &crate::testing::TOY.given(), vb)?))
}

#[test]
fn spans_are_ordered_and_every_real_clip_has_a_score() {
    let net = build(&config(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
    assert_well_formed(net.as_ref(), 5);
}

#[test]
fn padding_changes_nothing() {
    let net = build(&config(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
    assert_padding_changes_nothing(net.as_ref());
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    assert_joint_learnt(|vb| build(&config(), vb), 120, 5e-3);
}

#[test]
fn aligned_proposals_can_be_learnt_too() {
    let aligned = MomentDetrConfig { align: Some(Alignment::default()), ..config() };
    assert_joint_learnt(|vb| build(&aligned, vb), 120, 5e-3);
}
