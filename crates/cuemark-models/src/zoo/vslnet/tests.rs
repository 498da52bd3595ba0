//! What holds for the network on toy batches.

use cuemark_tensor::Device;
use cuemark_tensor::Params;
use cuemark_text::{Parse, Pos, TaggedToken};

use super::*;
use crate::testing::{TOY, best_overlaps, gap, overfit};

fn config(predictor: PredictorKind, padding: Padding) -> VslNetConfig {
    VslNetConfig {
        positions: 12,
        hidden: 16,
        character_width: 4,
        character_filters: vec![2, 3],
        heads: 2,
        convolutions: 2,
        kernel: 3,
        predictor,
        padding,
        dropout: 0.0,
        ..VslNetConfig::default()
    }
}

/// The toy batch with spelt words.
fn batch() -> Batch {
    let mut batch = TOY.batch(1);
    let word = |place: usize| TaggedToken { text: "cupboard"[place..].to_owned(), tag: Pos::Noun, bytes: None };
    let parse = |length: &usize| Parse { tokens: (0..*length).map(word).collect(), ..Parse::default() };
    batch.queries.parses = Some(batch.queries.lengths.iter().map(parse).collect());
    batch
}

fn net(predictor: PredictorKind, padding: Padding) -> VslNet {
    let params = Params::seeded(1, &Device::Cpu);
    VslNet::new(&config(predictor, padding), &TOY.given(), params.builder()).unwrap()
}

#[test]
fn proposals_are_ordered_and_lie_within_the_real_clips() {
    let mut batch = batch().with_longer_videos(3);
    batch.videos.lengths[0] = 6;
    let ranked = net(PredictorKind::Transformer, Padding::Masked).propose(&batch).unwrap();
    assert_eq!(ranked.iter().map(Vec::len).collect::<Vec<_>>(), [21, 36, 36, 36]);
    for proposals in ranked {
        assert!(proposals.iter().all(|proposal| proposal.span.end() <= 1.0));
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn padding_changes_nothing_unless_it_is_let_through_as_published() {
    let (short, pass) = (batch(), Pass::answering());
    let longer = short.with_longer_videos(2).with_longer_words(3);
    for predictor in [PredictorKind::Rnn, PredictorKind::Transformer] {
        for (padding, same) in [(Padding::Masked, true), (Padding::Leaks, false)] {
            let net = net(predictor, padding);
            let few = net.of_batch(&short, &pass).unwrap().starts;
            let more = net.of_batch(&longer, &pass).unwrap().starts.narrow(1, 0, TOY.clips).unwrap();
            assert_eq!(gap(&few, &more) < 1e-4, same, "{predictor:?} {padding:?}: {}", gap(&few, &more));
        }
    }
}

#[test]
fn a_word_is_read_by_its_characters_in_either_case() {
    let mut queries = batch().queries;
    let ids = spell(&queries, 2).unwrap().to_vec3::<u32>().unwrap();
    assert_eq!(ids[0][0][..9], [4, 22, 17, 3, 16, 2, 19, 5, 0]);
    queries.parses.as_mut().unwrap()[0].tokens[0].text = "CUP€".to_owned();
    assert_eq!(spell(&queries, 2).unwrap().to_vec3::<u32>().unwrap()[0][0][..5], [4, 22, 17, 1, 0]);
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = batch();
    for predictor in [PredictorKind::Rnn, PredictorKind::Transformer] {
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
            Ok(Box::new(VslNet::new(&config(predictor, Padding::Masked), &TOY.given(), vb)?))
        };
        let (model, first, last) = overfit(build, &batch, 80, 1e-2);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.1 * first, "{predictor:?}: {first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{predictor:?}: {overlaps:?}");
    }
}
