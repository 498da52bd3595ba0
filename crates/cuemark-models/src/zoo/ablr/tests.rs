//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{TOY, best_overlaps, gap, overfit};

fn config(regression: Regression) -> AblrConfig {
    let settings = "clips = 8\nhidden = 12\nregression_hidden = 6\ndropout = 0.0";
    AblrConfig { regression, ..toml::from_str(settings).unwrap() }
}

fn net(regression: Regression) -> Ablr {
    Ablr::new(&config(regression), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn every_query_gets_one_span_inside_its_video() {
    for regression in [Regression::Weights, Regression::Features] {
        let ranked = net(regression).propose(&TOY.batch(1)).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 1);
            assert!(proposals[0].span.start() >= 0.0 && proposals[0].span.end() <= 1.0);
        }
    }
}

#[test]
fn padded_words_change_nothing() {
    let (net, batch) = (net(Regression::Weights), TOY.batch(1));
    let ends = |batch: &Batch| net.of_batch(batch, &Pass::answering()).unwrap().ends;
    assert!(gap(&ends(&batch), &ends(&batch.with_longer_words(3))) < 1e-6);
}

#[test]
fn another_number_of_clips_is_refused() {
    let refused = net(Regression::Weights).propose(&TOY.batch(1).with_longer_videos(1)).unwrap_err();
    assert_eq!(refused.to_string(), "`[model]` of `ablr`: `clips` = 8, and a video has 9");
}

#[test]
fn clips_of_a_moment_share_its_attention() {
    let shares = net(Regression::Weights).shares(NormSpan::new(0.25, 0.6).unwrap());
    // From clip 2 to the clip that 0.6 * 8 = 4.8 lies in.
    assert_eq!(shares, [0.0, 0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0, 0.0, 0.0]);
}

#[test]
fn grid_answers_begin_with_a_clip() {
    let mut net = net(Regression::Weights);
    net.config.answers = Answers::Grid;
    let span = net.answer(&[0.30, 0.70]).unwrap().span;
    assert_eq!((span.start(), span.end()), (0.25, 0.625));
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = TOY.batch(1);
    for regression in [Regression::Weights, Regression::Features] {
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
            Ok(Box::new(Ablr::new(&config(regression), &TOY.given(), vb)?))
        };
        let (model, first, last) = overfit(build, &batch, 120, 1e-2);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < first, "{regression:?}: {first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{regression:?}: {overlaps:?}");
    }
}
