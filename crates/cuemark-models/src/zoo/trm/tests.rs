//! What holds for the network on toy batches.

use cuemark_core::Rng;
use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{TOY, assert_learnt_by_heart, gap};

fn config() -> TrmConfig {
    let settings = "network = { map = { pre_clips = 8, clips = 8, counts = [7] }, hidden = 16, joint = 12, kernel = 3,\n\
                    layers = 2, text = { dim = 8, layers = 1, heads = 2, ffn = 16, positions = 8, dropout = 0.0 } }\n\
                    matching = { margin = 0.1 }\nphrases = { most = 3, attention = 6, exclusiveness = 0.5 }";
    toml::from_str(settings).unwrap()
}

fn model(config: &TrmConfig) -> Trm {
    Trm::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

/// Sentences with 2, 1, 0 and 2 phrases.
fn batch() -> Batch {
    let mut batch = TOY.batch(1);
    let tokens = [[1u32, 5, 2], [1, 2, 0], [1, 7, 2], [1, 3, 2], [1, 9, 0]];
    batch.queries.phrases = Some(Phrases {
        words: None,
        word_ids: Tensor::new(&tokens, &Device::Cpu).unwrap(),
        lengths: vec![3, 2, 3, 3, 2],
        per_query: vec![2, 1, 0, 2],
    });
    batch
}

fn phrase_losses(model: &Trm, batch: &Batch, others: Option<&[usize]>) -> [f32; 3] {
    let forward = model.of_batch(batch, &Pass::answering()).unwrap();
    let spans = &batch.targets.as_ref().unwrap().spans;
    let ious = model.encoder.moments.map().ious(spans, &Device::Cpu).unwrap();
    let losses = model.phrase_losses(&forward, &ious, &batch.queries.video, others).unwrap();
    [losses.present, losses.absent, losses.exclusive].map(|loss| loss.to_scalar().unwrap())
}

#[test]
fn every_query_ranks_the_cells_of_its_video() {
    let ranked = model(&config()).propose(&batch()).unwrap();
    assert_eq!(ranked.len(), 4);
    assert!(ranked.iter().all(|ranked| ranked.len() == 36 && ranked.is_sorted_by(|a, b| a.score >= b.score)));
}

#[test]
fn padded_words_of_sentences_and_phrases_change_nothing() {
    let (model, batch) = (model(&config()), batch());
    let mut longer = batch.with_longer_words(2);
    let phrases = longer.queries.phrases.as_mut().unwrap();
    phrases.word_ids = phrases.word_ids.pad_with_zeros(1, 0, 2).unwrap();
    let of = |batch: &Batch| model.of_batch(batch, &Pass::answering()).unwrap().logits;
    assert!(gap(&of(&batch), &of(&longer)) < 1e-5);
}

#[test]
fn a_sentence_without_phrases_is_its_own() {
    let (model, batch) = (model(&config()), batch());
    let forward = model.of_batch(&batch, &Pass::answering()).unwrap();
    assert_eq!(forward.owners.slots, [1, 2, 0, 3, 0, 0, 4, 0, 0, 5, 6, 0]);
    assert_eq!(forward.attention.to_vec2::<f32>().unwrap()[2], [1.0, 0.0, 0.0]);
    let (phrase, sentence) = (forward.phrases.get(3).unwrap(), forward.sentences.overlap.get(2).unwrap());
    assert!(gap(&phrase, &sentence) == 0.0);
    let mut without = batch.clone();
    without.queries.phrases = None;
    let forward = model.of_batch(&without, &Pass::answering()).unwrap();
    assert!(gap(&forward.phrases, &forward.sentences.overlap) == 0.0);
}

#[test]
fn phrases_past_the_most_are_not_read() {
    let few = TrmConfig { phrases: PhraseConfig { most: 1, attention: 6, ..PhraseConfig::default() }, ..config() };
    let (model, batch) = (model(&few), batch());
    let mut changed = batch.clone();
    let tokens = [[1u32, 5, 2], [1, 8, 8], [1, 7, 2], [1, 3, 2], [1, 8, 8]];
    changed.queries.phrases.as_mut().unwrap().word_ids = Tensor::new(&tokens, &Device::Cpu).unwrap();
    let of = |batch: &Batch| model.of_batch(batch, &Pass::answering()).unwrap().logits;
    assert!(gap(&of(&batch), &of(&changed)) == 0.0);
}

#[test]
fn a_phrase_without_an_overlapping_cell_and_a_video_without_another_cost_nothing() {
    let never = PhraseConfig { threshold: 1.5, ..config().phrases };
    let model = model(&TrmConfig { phrases: never, ..config() });
    let [present, absent, exclusive] = phrase_losses(&model, &batch(), None);
    assert_eq!((present, absent), (0.0, 0.0));
    assert!(exclusive > 0.0);
    let loss = model.loss(&batch(), &Pass::training(0, 1, Rng::new(1))).unwrap().total;
    let gradients = loss.backward().unwrap();
    let gradient = gradients.get(model.to_hidden.weight()).unwrap().abs().unwrap().sum_all().unwrap();
    assert!(gradient.to_scalar::<f32>().unwrap().is_finite());
}

#[test]
fn other_videos_are_other_and_drawn_only_in_training() {
    let draw = |seed| Trm::other_videos(5, &Pass::training(0, 1, Rng::new(seed))).unwrap();
    for seed in 0..20 {
        assert!(draw(seed).iter().enumerate().all(|(video, other)| *other != video && *other < 5));
    }
    assert_ne!(draw(1), draw(2));
    assert_eq!(Trm::other_videos(3, &Pass::answering()).unwrap(), [1, 2, 0]);
    assert!(Trm::other_videos(1, &Pass::answering()).is_none());
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    assert_learnt_by_heart(|vb| Trm::new(&config(), &TOY.given(), vb), &batch(), 120, 1e-2, 0.5);
}
