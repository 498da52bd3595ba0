//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{
    JOINT, TOY, assert_joint_learnt, assert_padding_changes_nothing, assert_well_formed, gap, joint_batch,
};

fn config() -> CgDetrConfig {
    CgDetrConfig {
        clips: 12,
        words: 6,
        network: JOINT,
        encoder_layers: 1,
        decoder_layers: 2,
        text_heads: 2,
        dummies: 3,
        prompts: 4,
        used_prompts: 2,
        proposals: 5,
        ..CgDetrConfig::default()
    }
}

fn net(config: &CgDetrConfig) -> CgDetr {
    CgDetr::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn spans_are_ordered_and_every_real_clip_has_a_score() {
    assert_well_formed(&net(&config()), 5);
}

#[test]
fn padding_changes_nothing() {
    assert_padding_changes_nothing(&net(&config()));
}

#[test]
fn attention_is_shared_between_dummies_and_words() {
    let (net, pass) = (net(&config()), Pass::answering());
    let inputs = net.inputs(&joint_batch()).unwrap();
    let projected = net.project(&inputs, &pass).unwrap();
    let own = inputs.own_text();
    let seen = net.see(&inputs, &projected, [&own, &own], &pass).unwrap();
    let sums = seen.attention.sum(2).unwrap();
    assert!(gap(&sums, &sums.ones_like().unwrap()) < 1e-5);
    let dummies = seen.attention.narrow(2, 0, 3).unwrap().sum(2).unwrap();
    assert!(gap(&(dummies + &seen.word_share).unwrap(), &sums) < 1e-5);
}

#[test]
fn excerpts_of_one_video_are_no_negatives_of_each_other() {
    assert_eq!(source_of("NUsG9BgSes0_210.0_360.0"), "NUsG9BgSes0");
    assert_eq!(source_of("a_b_1_2"), "a_b");
    assert_eq!([source_of("v_QOlSCBRmfWY"), source_of("s13-d21")], ["v_QOlSCBRmfWY", "s13-d21"]);
    assert_eq!(real_negatives(&["a", "a", "b", "c"]), [1, 2, 3]);
    assert!(real_negatives(&["a", "a"]).is_empty());
}

#[test]
fn a_batch_of_one_source_is_learnt_without_negatives() {
    let mut batch = joint_batch();
    let same = batch.videos.ids[0].clone();
    batch.videos.ids.fill(same);
    let loss = net(&config()).loss(&batch, &Pass::training(0, 1, cuemark_core::Rng::new(1))).unwrap();
    assert!(loss.total.to_scalar::<f32>().unwrap().is_finite());
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(CgDetr::new(&config(), &TOY.given(), vb)?)) };
    assert_joint_learnt(build, 150, 5e-3);
}
