//! What holds for the network on toy batches.

use cuemark_core::Rng;
use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{
    JOINT, TOY, assert_joint_learnt, assert_padding_changes_nothing, assert_well_formed, gap, joint_batch,
    moved_by_padding,
};

fn config(feedback: Feedback) -> TaskWeaveConfig {
    TaskWeaveConfig {
        clips: 12,
        words: 6,
        network: JOINT,
        proposals: 5,
        feedback,
        feedback_after: 0,
        ..TaskWeaveConfig::default()
    }
}

fn net(config: &TaskWeaveConfig) -> (TaskWeave, Params) {
    let params = Params::seeded(1, &Device::Cpu);
    (TaskWeave::new(config, &TOY.given(), params.builder()).unwrap(), params)
}

const BOTH: [Feedback; 2] = [Feedback::HighlightsToMoments, Feedback::MomentsToHighlights];

#[test]
fn spans_are_ordered_and_every_real_clip_has_a_score() {
    BOTH.iter().for_each(|feedback| assert_well_formed(&net(&config(*feedback)).0, 5));
}

#[test]
fn padding_changes_nothing_unless_it_is_let_through_as_published() {
    for feedback in BOTH {
        assert_padding_changes_nothing(&net(&config(feedback)).0);
        let leaking = TaskWeaveConfig { padding: Padding::Leaks, ..config(feedback) };
        assert!(moved_by_padding(&net(&leaking).0) > 1e-4, "{feedback:?}");
    }
}

#[test]
fn the_convolution_of_the_moments_is_dead_and_doubt_has_the_slope_of_its_loss() {
    let (net, params) = net(&config(Feedback::HighlightsToMoments));
    let loss = net.loss(&joint_batch(), &Pass::training(0, 1, Rng::new(1))).unwrap();
    let gradients = loss.total.backward().unwrap();
    let gradient = |name: &str| gradients.get(params.var(name).unwrap().as_tensor()).cloned();
    if let Some(gradient) = gradient("transformer.mr_conv.conv.weight") {
        assert!(gradient.abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap() < 1e-6);
    }
    let part = |wanted: &str| {
        let found = loss.parts.iter().find(|(name, _)| *name == wanted).unwrap();
        found.1.to_scalar::<f32>().unwrap()
    };
    let highlights = part("saliency margin") + part("saliency rank") + part("wrong pairs");
    let slope = gradient("hd_log_var").unwrap().to_vec1::<f32>().unwrap()[0];
    assert!((slope - (1.0 - 2.0 * highlights)).abs() < 1e-4, "{slope} {highlights}");
}

#[test]
fn the_share_of_proposals_over_clips_has_length_one_and_constant_scores_tell_nothing() {
    let (net, _) = net(&config(Feedback::MomentsToHighlights));
    let inputs = net.inputs(&joint_batch()).unwrap();
    let projected = net.project(&inputs, &Pass::answering()).unwrap();
    let forward = net.forward(&inputs, &projected, Some(Feedback::MomentsToHighlights), &Pass::answering()).unwrap();
    let lengths = forward.told.unwrap().sqr().unwrap().sum(1).unwrap();
    assert!(gap(&lengths, &lengths.ones_like().unwrap()) < 1e-5);
    let constant = Tensor::ones((inputs.len(), inputs.steps()), DType::F32, &Device::Cpu).unwrap();
    let told = net.salient(&inputs, &constant).unwrap();
    assert_eq!(told.sum_all().unwrap().to_scalar::<f32>().unwrap(), 0.0);
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    for feedback in BOTH {
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
            Ok(Box::new(TaskWeave::new(&config(feedback), &TOY.given(), vb)?))
        };
        assert_joint_learnt(build, 400, 2e-3);
    }
}
