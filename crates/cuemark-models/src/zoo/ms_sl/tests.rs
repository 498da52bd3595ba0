//! What holds for the network on toy batches.

use cuemark_tensor::Params;

use super::*;
use crate::Code;
use crate::testing::{TOY, best_video, gap, overfit};

fn config() -> MsSlConfig {
    MsSlConfig { pieces: 4, frames: 12, words: 8, hidden: 16, heads: 2, dropout: 0.0, ..MsSlConfig::default() }
}

fn net() -> MsSl {
    MsSl::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn every_pooled_clip_is_proposed_once() {
    let ranked = net().propose(&TOY.batch(1)).unwrap();
    assert_eq!(ranked.len(), TOY.pairs);
    for proposals in ranked {
        assert_eq!(proposals.len(), 10);
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn padding_changes_nothing() {
    let batch = TOY.batch(1);
    let loss = |batch: &Batch| net().loss(batch, &Pass::answering()).unwrap().total;
    assert!(gap(&loss(&batch), &loss(&batch.with_longer_words(2).with_longer_videos(3))) < 1e-5);
}

#[test]
fn spans_are_never_read() {
    let batch = TOY.batch(1);
    let without = Batch { targets: None, ..batch.clone() };
    let loss = |batch: &Batch| net().loss(batch, &Pass::answering()).unwrap().total;
    assert_eq!(gap(&loss(&batch), &loss(&without)), 0.0);
}

#[test]
fn pieces_are_means_between_rounded_edges() {
    // Six rows into four pieces: edges 0, 2 (1.5 rounds to even), 3, 4 (4.5), 5, so bins 0..2, 2..3, 3..4, 4..5.
    let matrix = averaging(6, 7, 4, &Device::Cpu).unwrap().to_vec2::<f32>().unwrap();
    let rows: Vec<Vec<usize>> = matrix.iter().map(|row| (0..7).filter(|column| row[*column] > 0.0).collect()).collect();
    assert_eq!(rows, [vec![0, 1], vec![2], vec![3], vec![4]]);
    assert_eq!(averaging(1, 1, 3, &Device::Cpu).unwrap().to_vec2::<f32>().unwrap(), [[1.0], [1.0], [1.0]]);
}

#[test]
fn one_batch_of_videos_can_be_told_apart() {
    let batch = TOY.batch(1);
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(MsSl::new(&config(), &TOY.given(), vb)?)) };
    let (model, first, last) = overfit(build, &batch, 150, 5e-3);
    assert!(last < 0.5 * first, "{first} to {last}");
    let corpus = model.corpus().unwrap();
    let codes = corpus.encode(&batch.videos).unwrap();
    let codes: Vec<&Code> = codes.iter().collect();
    for (query, answers) in corpus.search(&batch.queries, &codes).unwrap().iter().enumerate() {
        assert_eq!(best_video(answers), query);
    }
}
