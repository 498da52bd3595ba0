//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::layers::MapSize;
use crate::losses::ScaledIou;
use crate::testing::{TOY, assert_learnt_by_heart, gap};

fn config() -> RaNetConfig {
    RaNetConfig {
        map: MapSize { pre_clips: 8, clips: 8, counts: vec![7] },
        hidden: 16,
        position_embedding: true,
        neighbours: 3,
        groups: 4,
        group_width: 2,
        lstm_layers: 1,
        recurrence: Recurrence::Padding,
        choices: Choices::Boundary,
        interaction: Interaction::Dynamic,
        relation: Relation::Attention { blocks: 1, rounds: 2, narrowing: 2 },
        targets: ScaledIou::default(),
        nms: 0.44,
    }
}

fn net(config: &RaNetConfig) -> RaNet {
    RaNet::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn every_valid_cell_is_proposed_once_with_a_probability() {
    let attention = |blocks: usize| Relation::Attention { blocks, rounds: 2, narrowing: 2 };
    for (choices, interaction, relation) in [
        (Choices::Boundary, Interaction::Dynamic, attention(2)),
        (Choices::Pool, Interaction::Dot, attention(1)),
        (Choices::BoundarySum, Interaction::Dynamic, Relation::Convolution { kernel: 3, layers: 2 }),
    ] {
        let ranked = net(&RaNetConfig { choices, interaction, relation, ..config() }).propose(&TOY.batch(1)).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 36);
            assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }
}

#[test]
fn padded_words_leak_into_answers_as_published_but_not_into_length_aware_words() {
    let (short, long) = (TOY.batch(1), TOY.batch(1).with_longer_words(3));
    let leaks = |recurrence: Recurrence| {
        let net = net(&RaNetConfig { recurrence, ..config() });
        let of = |batch: &Batch| net.of_batch(batch, &Pass::answering()).unwrap();
        let (short, long) = (of(&short), of(&long));
        let words = gap(&short.words, &long.words.narrow(1, 0, TOY.words).unwrap());
        (words, gap(&short.logits, &long.logits))
    };
    let (words, logits) = leaks(Recurrence::Padding);
    assert!(words > 1e-5 && logits > 1e-6, "{words} {logits}");
    let (words, logits) = leaks(Recurrence::LengthAware);
    // The softmax over words still counts the padded ones.
    assert!(words < 1e-6 && logits > 1e-6, "{words} {logits}");
}

#[test]
fn more_neighbours_than_clips_are_refused() {
    let config = RaNetConfig { neighbours: 9, ..config() };
    let error = RaNet::new(&config, &TOY.given(), Params::counted().builder()).unwrap_err();
    let message = "`[model]` of `ranet`: `neighbours`: 9, expected 1 to 8, the clips there are";
    assert_eq!(error.to_string(), message);
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = TOY.batch(1);
    let config = RaNetConfig { position_embedding: false, ..config() };
    let build = |vb: VarBuilder| RaNet::new(&config, &TOY.given(), vb);
    assert_learnt_by_heart(build, &batch, 120, 1e-2, 0.3);
}
