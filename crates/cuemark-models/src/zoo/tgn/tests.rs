//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::layers::PaddedWords;
use crate::testing::{TOY, assert_learnt_by_heart, gap};

fn config(padded_words: PaddedWords, window: usize) -> TgnConfig {
    TgnConfig {
        anchors: Lengths::Range { first: 2, last: 6 },
        clips: 8,
        window,
        hidden: 12,
        attention: 8,
        sentence: SentenceWays::Both,
        padded_words,
        positive_iou: 0.7,
        negative_iou: 0.3,
        between: Between::Ignored,
        positive_weights: Vec::new(),
        dropout: 0.0,
        nms: 0.55,
    }
}

fn net(padded_words: PaddedWords) -> Tgn {
    Tgn::new(&config(padded_words, 8), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

fn logits(net: &Tgn, batch: &Batch) -> Tensor {
    net.of_batch(&batch.videos.visual, batch, &Pass::answering()).unwrap().logits
}

#[test]
fn every_candidate_that_begins_in_the_video_is_proposed() {
    let ranked = net(PaddedWords::Masked).propose(&TOY.batch(1)).unwrap();
    assert_eq!(ranked.len(), TOY.pairs);
    for proposals in ranked {
        // Length a fits where it ends at clip a - 1 or later: 7 + 6 + 5 + 4 + 3 of the 8 clips.
        assert_eq!(proposals.len(), 25);
        assert!(proposals.iter().all(|proposal| proposal.span.start() >= 0.0 && proposal.span.end() <= 1.0));
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn answers_come_from_the_logits_that_training_sees() {
    let batch = TOY.batch(1).with_longer_words(2);
    for padded_words in [PaddedWords::Masked, PaddedWords::Published] {
        let (net, queries) = (net(padded_words), &batch.queries);
        let seen = padded_words.seen(&queries.mask).unwrap();
        let found = net.logits(&batch.videos.visual, &queries.words, &queries.lengths, &seen).unwrap();
        assert!(gap(&found, &logits(&net, &batch)) < 1e-5);
    }
}

#[test]
fn padded_words_change_nothing_unless_the_published_attention_is_asked_for() {
    let batch = TOY.batch(1);
    let difference = |padded_words| {
        let net = net(padded_words);
        gap(&logits(&net, &batch), &logits(&net, &batch.with_longer_words(3)))
    };
    assert!(difference(PaddedWords::Masked) < 1e-6);
    assert!(difference(PaddedWords::Published) > 1e-6);
}

#[test]
fn padded_clips_change_neither_loss_nor_answers() {
    let (net, batch) = (net(PaddedWords::Masked), TOY.batch(1));
    let longer = batch.with_longer_videos(4);
    let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total.to_scalar::<f32>().unwrap();
    let wide = Tgn { config: TgnConfig { window: 12, ..net.config.clone() }, ..self::net(PaddedWords::Masked) };
    let padded = wide.loss(&longer, &Pass::answering()).unwrap().total.to_scalar::<f32>().unwrap();
    assert!((loss(&batch) - padded).abs() < 1e-6);
    assert_eq!(net.propose(&batch).unwrap().len(), net.propose(&longer).unwrap().len());
    for (a, b) in net.propose(&batch).unwrap().iter().zip(net.propose(&longer).unwrap()) {
        assert_eq!(a.len(), b.len());
        assert_eq!(a[0].span, b[0].span);
    }
}

#[test]
fn a_stretch_of_a_longer_video_keeps_its_clips_and_its_span_together() {
    let net = Tgn::new(&config(PaddedWords::Masked, 5), &TOY.given(), Params::seeded(1, &Device::Cpu).builder());
    let (net, batch) = (net.unwrap(), TOY.batch(1));
    let spans = &batch.targets.as_ref().unwrap().spans;
    let pass = Pass::training(0, 1, cuemark_core::Rng::new(4));
    let stretch = net.stretch(&batch, spans, &pass).unwrap();
    assert_eq!(stretch.visual.dims(), [TOY.pairs, 5, TOY.visual]);
    let whole = batch.videos.visual.to_vec3::<f32>().unwrap();
    for (pair, rows) in stretch.visual.to_vec3::<f32>().unwrap().iter().enumerate() {
        let first = whole[pair].iter().position(|row| row == &rows[0]).unwrap();
        assert_eq!(rows[..], whole[pair][first..first + 5]);
        let start = (spans[pair].start() * 8.0 - first as f64).clamp(0.0, 5.0);
        assert!((stretch.spans[pair].0 - start).abs() < 1e-9);
    }
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = TOY.batch(1);
    let build = |vb: VarBuilder| Tgn::new(&config(PaddedWords::Masked, 8), &TOY.given(), vb);
    assert_learnt_by_heart(build, &batch, 60, 1e-2, 0.1);
}
