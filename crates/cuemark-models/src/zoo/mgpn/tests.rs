//! What holds for the network on toy batches.

use cuemark_core::Rng;
use cuemark_tensor::{Device, Params};

use super::*;
use crate::layers::MapSize;
use crate::losses::ScaledIou;
use crate::testing::{TOY, assert_learnt_by_heart, gap};

fn config() -> MgpnConfig {
    MgpnConfig {
        map: MapSize { pre_clips: 8, clips: 8, counts: vec![3, 2] },
        hidden: 16,
        position_embedding: true,
        gru_layers: 1,
        recurrence: Recurrence::Padding,
        dropout: 0.1,
        blocks: 3,
        kernel: 3,
        groups: 4,
        targets: ScaledIou::default(),
        nms: 0.44,
    }
}

fn net(config: &MgpnConfig) -> Mgpn {
    Mgpn::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn every_valid_cell_is_proposed_once_with_a_probability() {
    let ranked = net(&config()).propose(&TOY.batch(1)).unwrap();
    assert_eq!(ranked.len(), TOY.pairs);
    for proposals in ranked {
        assert_eq!(proposals.len(), 8 + 7 + 6 + 5 + 2 + 1);
        assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn padded_words_leak_into_answers_as_published_but_not_into_length_aware_words() {
    let (short, long) = (TOY.batch(1), TOY.batch(1).with_longer_words(3));
    let leaks = |recurrence: Recurrence| {
        let net = net(&MgpnConfig { recurrence, ..config() });
        let of = |batch: &Batch| net.of_batch(batch, &Pass::answering()).unwrap();
        let (short, long) = (of(&short), of(&long));
        let words = gap(&short.words, &long.words.narrow(1, 0, TOY.words).unwrap());
        (
            words,
            gap(&short.words_fine, &long.words_fine.narrow(1, 0, TOY.words).unwrap()),
            gap(&short.clips_fused, &long.clips_fused),
        )
    };
    let (words, fine, clips) = leaks(Recurrence::Padding);
    assert!(words > 1e-5 && fine > 1e-6 && clips > 1e-7, "{words} {fine} {clips}");
    let (words, _, _) = leaks(Recurrence::LengthAware);
    assert!(words < 1e-6, "{words}");
}

/// A block on the whole map, with nothing of ours but the weights.
fn dense(block: &Block, map: &MomentMap, x: &Tensor) -> Tensor {
    let padding = block.plans.answering.kernel() / 2;
    let y = map.to_square(x).unwrap().conv2d(&block.weight, padding, 1, 1, block.groups).unwrap();
    let y = y.broadcast_add(&block.bias.reshape((1, (), 1, 1)).unwrap()).unwrap();
    let channels = y.dim(1).unwrap();
    let rows = y.transpose(0, 1).unwrap().reshape((channels, ())).unwrap();
    let mean = rows.mean_keepdim(1).unwrap();
    let centred = rows.broadcast_sub(&mean).unwrap();
    let variance = centred.sqr().unwrap().mean_keepdim(1).unwrap();
    let shape = (1, channels, 1, 1);
    let y = y.broadcast_sub(&mean.reshape(shape).unwrap()).unwrap();
    let y = y.broadcast_div(&(variance + 1e-5).unwrap().sqrt().unwrap().reshape(shape).unwrap()).unwrap();
    map.cells_of_square(&y.relu().unwrap()).unwrap()
}

#[test]
fn batch_norm_takes_its_training_statistics_over_the_whole_map() {
    let net = net(&config());
    let x = Tensor::arange(0f32, 2.0 * 29.0 * 32.0, &Device::Cpu).unwrap().reshape((2, 29, 32)).unwrap().sin().unwrap();
    let block = &net.blocks[0];
    let pass = Pass::training(0, 1, Rng::new(1));
    assert!(gap(&block.forward(&x, &pass).unwrap(), &dense(block, &net.map, &x)) < 1e-4);
}

#[test]
fn channels_that_groups_do_not_divide_are_refused() {
    let config = MgpnConfig { groups: 5, ..config() };
    let error = Mgpn::new(&config, &TOY.given(), Params::counted().builder()).unwrap_err();
    assert_eq!(error.to_string(), "`[model]` of `mgpn`: `groups`: 5 do not divide `hidden` of 16");
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = TOY.batch(1);
    let config = MgpnConfig {
        map: MapSize { pre_clips: 8, clips: 8, counts: vec![7] },
        position_embedding: false,
        dropout: 0.0,
        ..config()
    };
    let build = |vb: VarBuilder| Mgpn::new(&config, &TOY.given(), vb);
    assert_learnt_by_heart(build, &batch, 150, 1e-2, 0.3);
}
