//! What holds for the network on toy batches.

use cuemark_core::Rng;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::{Device, Params};

use super::corpus::MOMENTS_PER_VIDEO;
use super::*;
use crate::layers::{CellFill, MapSupport};
use crate::layers::{MatchingEncoderSize, TextTraining};
use crate::suppress;
use crate::testing::{TOY, best_overlaps, gap, overfit};

fn config() -> MmnConfig {
    let settings = "network = { map = { pre_clips = 8, clips = 8, counts = [7] }, hidden = 16, joint = 12, kernel = 3,\n\
                    layers = 2, text = { dim = 8, layers = 1, heads = 2, ffn = 16, positions = 8, dropout = 0.0 } }\n\
                    matching = { margin = 0.1 }";
    toml::from_str(settings).unwrap()
}

fn model() -> Mmn {
    Mmn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

/// Four queries asked of two videos, not in the order of the videos.
fn two_videos() -> Batch {
    let mut batch = TOY.batch(1);
    batch.queries.video = vec![1, 0, 1, 0];
    batch.videos.visual = batch.videos.visual.narrow(0, 0, 2).unwrap();
    batch
}

#[test]
fn every_query_ranks_the_cells_of_its_own_video() {
    let (model, batch) = (model(), two_videos());
    let ranked = model.propose(&batch).unwrap();
    assert!(ranked.iter().all(|ranked| ranked.len() == 36));
    let mut swapped = batch.clone();
    swapped.queries.video = vec![0, 0, 1, 0];
    let others = model.propose(&swapped).unwrap();
    assert_ne!(ranked[0], others[0]);
    assert_eq!(ranked[1..], others[1..]);
}

#[test]
fn padded_words_change_nothing() {
    let (model, batch) = (model(), TOY.batch(1));
    let of = |batch: &Batch| model.sentences(&batch.queries, &Pass::answering()).unwrap();
    let (short, long) = (of(&batch), of(&batch.with_longer_words(3)));
    assert!(gap(&short.matching, &long.matching) < 1e-6 && gap(&short.overlap, &long.overlap) < 1e-6);
}

/// The published network in the open: dense convolutions on the padded map, batch norm over all of it.
#[test]
fn training_statistics_run_over_the_whole_padded_map() {
    let params = Params::seeded(1, &Device::Cpu);
    let model = Mmn::new(&config(), &TOY.given(), params.builder()).unwrap();
    let visual = TOY.batch(1).videos.visual;
    let map = model.encoder.moments.map();
    let forward = model.encoder.moments.forward(&visual, &Pass::training(0, 1, Rng::new(0))).unwrap();
    let get = |name: &str| params.var(&format!("proposal_conv.{name}")).unwrap().as_tensor().clone();
    let mut x = map.to_square(&forward.cells).unwrap();
    let mut mask = map.mask(&Device::Cpu).unwrap().reshape((1, 1, 8, 8)).unwrap();
    for (layer, padding) in [(0, 2), (1, 0)] {
        let y = x.conv2d(&get(&format!("convs.{layer}.weight")), padding, 1, 1, 1).unwrap();
        let y = y.broadcast_add(&get(&format!("convs.{layer}.bias")).reshape((1, (), 1, 1)).unwrap()).unwrap();
        let mean = y.mean_keepdim((0, 2, 3)).unwrap();
        let centred = y.broadcast_sub(&mean).unwrap();
        let var = centred.sqr().unwrap().mean_keepdim((0, 2, 3)).unwrap();
        let y = centred.broadcast_div(&(var + 1e-5).unwrap().sqrt().unwrap()).unwrap().relu().unwrap();
        let count = mask.conv2d(&Tensor::ones((1, 1, 3, 3), mask.dtype(), &Device::Cpu).unwrap(), padding, 1, 1, 1);
        let count = count.unwrap();
        mask = count.gt(0.5).unwrap().to_dtype(count.dtype()).unwrap();
        x = y.broadcast_mul(&(&mask / count.maximum(1.0).unwrap()).unwrap()).unwrap();
    }
    let weight = get("conv1x1_iou.weight").squeeze(3).unwrap().squeeze(2).unwrap();
    let dense = map.cells_of_square(&x).unwrap().times(&weight.t().unwrap()).unwrap();
    let dense = dense.broadcast_add(&get("conv1x1_iou.bias")).unwrap();
    assert!(gap(&dense, &forward.moments.overlap) < 1e-4);
}

#[test]
fn a_batch_in_parts_is_the_mean_of_its_parts() {
    let batch = two_videos();
    let settings = MmnConfig { part: Some(1), ..config() };
    let model = Mmn::new(&settings, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
    let loss = |batch: &Batch| model.loss(batch, &Pass::answering()).unwrap().total.to_scalar::<f32>().unwrap();
    let alone = |video: usize| {
        let mut one = batch.clone();
        let asked: Vec<usize> = (0..4).filter(|query| batch.queries.video[*query] == video).collect();
        let rows = Tensor::new(asked.iter().map(|query| *query as u32).collect::<Vec<_>>(), &Device::Cpu).unwrap();
        one.videos.visual = batch.videos.visual.narrow(0, video, 1).unwrap();
        one.queries.ids.truncate(2);
        one.queries.video = vec![0, 0];
        one.queries.word_ids = batch.queries.word_ids.index_select(&rows, 0).unwrap();
        one.queries.lengths = asked.iter().map(|query| batch.queries.lengths[*query]).collect();
        let spans = &batch.targets.as_ref().unwrap().spans;
        one.targets.as_mut().unwrap().spans = asked.iter().map(|query| spans[*query]).collect();
        loss(&one)
    };
    assert!((loss(&batch) - (alone(0) + alone(1)) / 2.0).abs() < 1e-5);
    let whole = Mmn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
    let whole = whole.loss(&batch, &Pass::answering()).unwrap().total.to_scalar::<f32>().unwrap();
    assert!((loss(&batch) - whole).abs() > 1e-3); // fewer negatives, smaller loss
}

#[test]
fn a_corpus_answers_as_single_videos_do() {
    let (model, batch) = (model(), two_videos());
    let codes = Corpus::encode(&model, &batch.videos).unwrap();
    let answers = model.search(&batch.queries, &codes.iter().collect::<Vec<_>>()).unwrap();
    let ranked = model.propose(&batch).unwrap();
    for (query, video) in batch.queries.video.iter().enumerate() {
        let answer = &answers[query][*video];
        let kept = suppress(&ranked[query], 0.5, MOMENTS_PER_VIDEO, model.grid());
        assert_eq!(answer.moments.len(), kept.len());
        assert!((answer.video_score - kept[0].score).abs() < 1e-5);
    }
}

#[test]
fn embeddings_are_unit_vectors_of_one_space() {
    let (model, batch) = (model(), two_videos());
    let moments = model.embed_moments(&batch.videos).unwrap();
    let queries = model.embed_queries(&batch.queries).unwrap();
    assert_eq!(moments.len(), 2);
    assert_eq!(moments[0].embeddings.dims(), [36, 24]);
    assert_eq!(moments[0].spans.len(), 36);
    for rows in [&moments[1].embeddings, &queries] {
        let norms = rows.sqr().unwrap().sum(1).unwrap().to_vec1::<f32>().unwrap();
        assert!(norms.iter().all(|norm| (norm - 1.0).abs() < 1e-5));
    }
}

#[test]
fn distilbert_is_frozen_first_and_slow_afterwards() {
    let text = TextTraining { frozen_epochs: 4, ..TextTraining::default() };
    let model =
        Mmn::new(&MmnConfig { text, ..config() }, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
    let rate = |name: &str, epoch| model.rate(name, &Pass::training(0, epoch, Rng::new(0)));
    let bert = "text_encoder.bert.embeddings.LayerNorm.weight";
    assert_eq!((rate(bert, 4), rate(bert, 5), rate("text_encoder.fc_out1.weight", 1)), (0.0, 0.1, 1.0));
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = TOY.batch(1);
    for (fill, support) in [(CellFill::Pool, MapSupport::Exact), (CellFill::Conv, MapSupport::Valid)] {
        let network = MatchingEncoderSize { fill, support, ..config().network };
        let settings = MmnConfig { network, ..config() };
        let (model, first, last) =
            overfit(|vb| Ok(Box::new(Mmn::new(&settings, &TOY.given(), vb)?)), &batch, 120, 1e-2);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.4 * first, "{fill:?} {support:?}: {first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{fill:?} {support:?}: {overlaps:?}");
    }
}
