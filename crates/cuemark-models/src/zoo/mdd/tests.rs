//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::Confounder::{Action, Location, Unobserved};
use super::*;
use crate::layers::{MapSize, MapSupport};
use crate::losses::ScaledIou;
use crate::testing::{TOY, best_overlaps, gap, overfit};

fn config(confounders: &[Confounder]) -> MddConfig {
    MddConfig {
        map: MapSize { pre_clips: 8, clips: 8, counts: vec![7] },
        hidden: 16,
        lstm_layers: 1,
        semantic_roles: true,
        reconstruction: 1.0,
        confounders: confounders.to_vec(),
        branches: Branches::Plain,
        unobserved: Entries::Each(6),
        actions: 3,
        heads: 2,
        kernel: 3,
        layers: 2,
        support: MapSupport::Exact,
        targets: ScaledIou::default(),
        nms: 0.45,
    }
}

fn given() -> Given {
    let verbs = Tensor::arange(0f32, 30.0, &Device::Cpu).unwrap().reshape((5, 6)).unwrap().sin().unwrap();
    Given { verbs: Some(verbs), ..TOY.given() }
}

fn net(config: &MddConfig) -> Mdd {
    Mdd::new(config, &given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

/// The toy batch with a verb in every sentence but the last, and a second one in the first.
fn batch() -> Batch {
    let mut batch = TOY.batch(1);
    let parse = |query: usize| {
        let first = Phrase { verb: 1, nouns: vec![0, 3] };
        let phrases = match query {
            0 => vec![first, Phrase { verb: 2, nouns: Vec::new() }],
            query if query + 1 == TOY.pairs => Vec::new(),
            _ => vec![first],
        };
        Parse { tokens: Vec::new(), phrases, dependencies: Vec::new() }
    };
    batch.queries.parses = Some((0..TOY.pairs).map(parse).collect());
    batch
}

/// Why the published form does nothing at the start, and what its variant mends.
#[test]
fn the_product_of_plain_branches_is_lost_beside_the_map_and_that_of_normalised_ones_is_not() {
    let share = |branches: Branches| {
        let net = net(&MddConfig { branches, ..config(&[Location, Unobserved, Unobserved]) });
        let batch = batch();
        let moments = span_max(&net.clips(&batch.videos.visual).unwrap(), net.map.layout()).unwrap();
        let query = Tensor::ones((moments.dim(0).unwrap(), 16), candle_core::DType::F32, &Device::Cpu).unwrap();
        let product = net.confounder(&query, &moments).unwrap().unwrap();
        let norm = |x: &Tensor| x.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap().sqrt();
        norm(&product) / norm(&moments)
    };
    let (plain, normalised) = (share(Branches::Plain), share(Branches::Normalised));
    assert!(plain < 0.1 && normalised > 0.5, "{plain} {normalised}");
}

#[test]
fn every_valid_cell_is_proposed_once_with_a_probability() {
    let ranked = net(&config(&[Location, Action, Unobserved])).propose(&batch()).unwrap();
    assert_eq!(ranked.len(), TOY.pairs);
    for proposals in ranked {
        assert_eq!(proposals.len(), 36);
        assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn branches_are_named_by_kind_and_number() {
    let names = branch_names(&[Unobserved, Location, Action, Unobserved, Location, Action]);
    assert_eq!(names, ["hidden1", "location", "action", "hidden2", "location2", "action2"]);
}

#[test]
fn padded_words_change_nothing() {
    let net = net(&config(&[Location, Unobserved, Unobserved]));
    let short = net.of_batch(&batch()).unwrap().logits;
    let long = net.of_batch(&batch().with_longer_words(3)).unwrap().logits;
    assert!(gap(&short, &long) < 1e-6);
}

#[test]
fn a_sentence_without_a_verb_keeps_its_query_and_others_do_not() {
    let forward = net(&config(&[])).of_batch(&batch()).unwrap();
    let moved = |query: usize| gap(&forward.query.get(query).unwrap(), &forward.gated.get(query).unwrap());
    assert_eq!(moved(TOY.pairs - 1), 0.0);
    assert!((0..TOY.pairs - 1).all(|query| moved(query) > 1e-6));
}

#[test]
fn words_past_the_end_of_a_query_are_left_out_of_its_tree() {
    let net = net(&config(&[]));
    let mut far = batch();
    for parse in far.queries.parses.iter_mut().flatten() {
        parse.phrases.push(Phrase { verb: 900, nouns: vec![0] });
        parse.phrases.iter_mut().for_each(|phrase| phrase.nouns.push(901));
    }
    assert!(gap(&net.of_batch(&batch()).unwrap().gated, &net.of_batch(&far).unwrap().gated) < 1e-6);
}

#[test]
fn parts_that_are_switched_off_need_neither_parses_nor_parameters() {
    let plain = MddConfig { semantic_roles: false, reconstruction: 0.0, ..config(&[]) };
    let (full, less) = (Params::counted(), Params::counted());
    Mdd::new(&config(&[]), &given(), full.builder()).unwrap();
    Mdd::new(&plain, &given(), less.builder()).unwrap();
    // Two square matrices and a row of two for the gate, a matrix and a bias for the reconstruction.
    assert_eq!(full.count() - less.count(), 2 * 16 * 16 + 2 * 16 + 16 * 16 + 16);
    let loss = net(&plain).loss(&TOY.batch(1), &Pass::answering()).unwrap();
    assert_eq!(loss.parts.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["bce"]);
    let error = net(&config(&[])).loss(&TOY.batch(1), &Pass::answering()).unwrap_err();
    assert_eq!(error.to_string(), "`mdd` needs the parses of its queries");
}

#[test]
fn actions_need_verbs() {
    let error = Mdd::new(&config(&[Action]), &TOY.given(), Params::counted().builder()).unwrap_err();
    assert_eq!(error.to_string(), "`mdd` needs the frequent verbs of its training queries");
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = batch();
    for confounders in [&[Location, Unobserved, Unobserved][..], &[Action]] {
        // Without the reconstruction, whose floor is far above 0 at this width.
        let config = MddConfig { reconstruction: 0.0, ..config(confounders) };
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Mdd::new(&config, &given(), vb)?)) };
        let (model, first, last) = overfit(build, &batch, 150, 1e-2);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.3 * first, "{confounders:?}: {first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{confounders:?}: {overlaps:?}");
    }
}

#[test]
fn dictionaries_of_different_sizes_stand_beside_each_other_and_a_list_that_is_too_short_is_refused() {
    let sizes = |unobserved: Entries| {
        let settings = MddConfig { unobserved, ..config(&[Unobserved, Location, Unobserved]) };
        let net = Mdd::new(&settings, &given(), Params::seeded(1, &Device::Cpu).builder())?;
        net.propose(&batch())?;
        let own = net.branches.iter().filter(|branch| branch.kind == Unobserved);
        Ok::<Vec<usize>, crate::ModelError>(own.map(|branch| branch.dictionary.dim(0).unwrap()).collect())
    };
    assert_eq!(sizes(Entries::List(vec![3, 7])).unwrap(), [3, 7]);
    assert_eq!(sizes(Entries::Each(5)).unwrap(), [5, 5]);
    let error = sizes(Entries::List(vec![3])).unwrap_err().to_string();
    assert!(error.contains("`unobserved` has no number of vectors for dictionary 2"), "{error}");
    let read = |text: &str| toml::from_str::<MddConfig>(text).unwrap().unobserved;
    let map = "map = { pre_clips = 8, clips = 8, counts = [7] }";
    assert_eq!(read(&format!("{map}\nunobserved = [3, 7]")), Entries::List(vec![3, 7]));
    assert_eq!(read(&format!("{map}\nunobserved = 20")), Entries::Each(20));
}
