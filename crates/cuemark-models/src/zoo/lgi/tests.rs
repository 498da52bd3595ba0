//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::layers::WordSource;
use crate::testing::{TOY, assert_learnt_by_heart, gap};

fn config(padded_clips: PaddedClips) -> LgiConfig {
    LgiConfig {
        clips: 12,
        hidden: 16,
        query: 12,
        head: 10,
        attention: AttentionWidths { words: 8, phrases: 6, clips: 4 },
        lstm_layers: 2,
        phrases: 2,
        kernel: 3,
        local_blocks: 1,
        blocks: 1,
        heads: 2,
        output: Output::Sigmoid,
        spread: 0.3,
        attention_weight: 1.0,
        phrase_weight: 1.0,
        dropout: 0.0,
        word_vectors: WordSource::Given,
        padded_clips,
    }
}

fn net(padded_clips: PaddedClips) -> Lgi {
    Lgi::new(&config(padded_clips), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

fn ends(net: &Lgi, batch: &Batch) -> Tensor {
    net.of_batch(batch, &Pass::answering()).unwrap().ends
}

#[test]
fn every_query_gets_one_span_inside_its_video() {
    let batch = TOY.batch(1);
    let net = net(PaddedClips::Masked);
    let forward = net.of_batch(&batch, &Pass::answering()).unwrap();
    assert_eq!(forward.word_attention.dims(), [TOY.pairs, 2, TOY.words]);
    assert_eq!(forward.temporal.dims(), [TOY.pairs, TOY.clips]);
    let ranked = net.propose(&batch).unwrap();
    assert_eq!(ranked.len(), TOY.pairs);
    for proposals in ranked {
        assert_eq!(proposals.len(), 1);
        assert!(proposals[0].span.start() >= 0.0 && proposals[0].span.end() <= 1.0);
    }
}

#[test]
fn padding_changes_nothing_unless_the_published_leak_is_asked_for() {
    let batch = TOY.batch(1);
    let masked = net(PaddedClips::Masked);
    assert!(gap(&ends(&masked, &batch), &ends(&masked, &batch.with_longer_words(3))) < 1e-6);
    assert!(gap(&ends(&masked, &batch), &ends(&masked, &batch.with_longer_videos(3))) < 1e-6);
    let published = net(PaddedClips::Published);
    assert!(gap(&ends(&published, &batch), &ends(&published, &batch.with_longer_videos(3))) > 1e-6);
}

#[test]
fn the_clips_of_a_moment_are_counted_in_real_ones() {
    let mut batch = TOY.batch(1).with_longer_videos(4);
    batch.videos.lengths = vec![4; TOY.pairs];
    // The first moment is 0 to 3/8 of the video: rounded ends 0 and 2 of 4 clips, both counted.
    let (_, inside) = truth_of(&batch, "lgi").unwrap();
    assert_eq!(inside.to_vec2::<f32>().unwrap()[0], [1., 1., 1., 0., 0., 0., 0., 0., 0., 0., 0., 0.]);
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = TOY.batch(1);
    let build = |vb: VarBuilder| Lgi::new(&config(PaddedClips::Masked), &TOY.given(), vb);
    // The running statistics of the batch norms need their time.
    assert_learnt_by_heart(build, &batch, 120, 5e-3, 0.8);
}
