//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{TOY, assert_learnt_by_heart, gap};

fn config(word_head: WordHead) -> MsDetrConfig {
    MsDetrConfig {
        clips: 8,
        words: 9,
        hidden: 16,
        heads: 2,
        ffn: 16,
        reduce: vec![2, 1, 1],
        halve: vec![true, true, false],
        levels: vec![0, 1, 2],
        decoder_layers: 2,
        proposals: 8,
        pieces: 2,
        word_head,
        min_iou: 0.5,
        dropout: 0.0,
        ..MsDetrConfig::default()
    }
}

fn net(word_head: WordHead) -> MsDetr {
    MsDetr::new(&config(word_head), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

fn forward(net: &MsDetr, batch: &Batch) -> Forward {
    let [words, mask, _] = net.cut(&batch.queries).unwrap();
    let asked = Asked { words: &words, mask: &mask, hidden: None };
    net.forward(&batch.videos.visual, &asked, &Pass::answering()).unwrap()
}

#[test]
fn levels_halve_and_every_proposal_is_ranked() {
    let (net, batch) = (net(WordHead::Embedded), TOY.batch(1));
    let lengths: Vec<usize> = forward(&net, &batch).levels.iter().map(|level| level.dim(1).unwrap()).collect();
    assert_eq!(lengths, [4, 2, 2]);
    for proposals in net.propose(&batch).unwrap() {
        assert_eq!(proposals.len(), 8);
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn padded_words_change_no_clip() {
    let batch = TOY.batch(1);
    for word_head in [WordHead::Embedded, WordHead::Encoded] {
        let net = net(word_head);
        let (short, long) = (forward(&net, &batch), forward(&net, &batch.with_longer_words(3)));
        assert!(gap(&short.levels[2], &long.levels[2]) < 1e-5);
        assert!(gap(&short.layers[1].bounds, &long.layers[1].bounds) < 1e-5);
    }
}

#[test]
fn an_unlearnt_proposal_stays_at_its_place() {
    let net = net(WordHead::Embedded);
    let bounds = forward(&net, &TOY.batch(1)).layers[0].bounds.to_vec3::<f32>().unwrap();
    let whole = |(_, bounds): &(usize, &Vec<f32>)| bounds[0] > 0.01 && bounds[1] < 0.99; // not cut to the video
    assert_eq!(bounds[0].iter().enumerate().filter(whole).count(), 3);
    for (number, bounds) in bounds[0].iter().enumerate().filter(whole) {
        let centre = (bounds[0] + bounds[1]) / 2.0;
        assert!((centre - number as f32 / 8.0).abs() < 1e-5, "{number}: {centre}");
    }
}

#[test]
fn levels_that_no_layer_begins_with_are_refused() {
    let wrong = MsDetrConfig { levels: vec![0, 7], ..config(WordHead::Embedded) };
    assert!(MsDetr::new(&wrong, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).is_err());
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = TOY.batch(1);
    let build = |vb: VarBuilder| MsDetr::new(&config(WordHead::Encoded), &TOY.given(), vb);
    assert_learnt_by_heart(build, &batch, 250, 3e-3, 0.5);
}
