//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::layers::PairLimits;
use crate::losses::DrawnNegatives;
use crate::testing::{TOY, assert_learnt_by_heart, best_moment, best_video, gap, with_subtitles};

fn config() -> XmlConfig {
    let ranking = DrawnNegatives { hard_from: 100, ..DrawnNegatives::default() };
    let pairs = PairLimits { min: 1, max: 7 };
    XmlConfig { clips: 10, words: 8, hidden: 16, heads: 2, dropout: 0.0, pairs, ranking, ..XmlConfig::default() }
}

fn given(subtitle: usize) -> Given {
    Given { subtitle, ..TOY.given() }
}

fn net(config: &XmlConfig, subtitle: usize) -> Xml {
    Xml::new(config, &given(subtitle), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn every_allowed_pair_is_proposed_once_with_and_without_subtitles() {
    let batch = TOY.batch(1);
    for (batch, subtitle) in [(batch.clone(), 0), (with_subtitles(&batch, 7), 7)] {
        let ranked = net(&config(), subtitle).propose(&batch).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 28);
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
            assert!(proposals.iter().all(|proposal| proposal.span.end() <= 1.0));
        }
    }
}

#[test]
fn padding_changes_nothing() {
    let batch = with_subtitles(&TOY.batch(1), 7);
    let net = net(&XmlConfig { endpoints: true, ..config() }, 7);
    let pass = Pass::answering();
    let all = |batch: &Batch| {
        let (_, queries, _) = net.queries(&batch.queries.words, &batch.queries.mask, &pass).unwrap();
        let context = net.context_of(&batch.videos, &pass).unwrap();
        let (starts, _) = net.own_logits(&queries, &context).unwrap();
        (starts.narrow(1, 0, TOY.clips).unwrap(), net.scores(&queries, &context).unwrap())
    };
    let (short, long) = (all(&batch), all(&batch.with_longer_words(2).with_longer_videos(1)));
    assert!(gap(&short.0, &long.0) < 1e-5 && gap(&short.1, &long.1) < 1e-6);
}

#[test]
fn one_batch_can_be_learnt_by_heart_and_searched() {
    let batch = with_subtitles(&TOY.batch(1), 7);
    let build = |vb: VarBuilder| Xml::new(&config(), &given(7), vb);
    let model = assert_learnt_by_heart(build, &batch, 200, 5e-3, 0.2);

    let corpus = model.corpus().unwrap();
    let codes = corpus.encode(&batch.videos).unwrap();
    let codes: Vec<&Code> = codes.iter().collect();
    let proposed = model.propose(&batch).unwrap();
    for (query, answers) in corpus.search(&batch.queries, &codes).unwrap().iter().enumerate() {
        assert_eq!((best_video(answers), best_moment(answers)), (query, query));
        assert_eq!(answers[query].moments[0].span, proposed[query][0].span);
    }
}

#[test]
fn relevance_weighs_spans_and_the_mask_spares_true_videos() {
    let mut batch = with_subtitles(&TOY.batch(1), 7);
    let masked = net(&XmlConfig { positive_mask: true, ..config() }, 7);
    let part = |net: &Xml, batch: &Batch, part: usize| {
        net.loss(batch, &Pass::answering()).unwrap().parts[part].1.to_scalar::<f32>().unwrap()
    };
    let (span, videos) = (part(&masked, &batch, 0), part(&masked, &batch, 1));
    let targets = batch.targets.as_mut().unwrap();
    targets.relevance = Some(vec![0.5; TOY.pairs]);
    targets.positives = Some(vec![(0..TOY.pairs).collect(); TOY.pairs]);
    assert!((part(&masked, &batch, 0) - 0.5 * span).abs() < 1e-5);
    assert!(videos > 0.0 && part(&masked, &batch, 1) == 0.0);
    assert!((part(&net(&config(), 7), &batch, 1) - videos).abs() < 1e-6);
}

#[test]
fn embeddings_have_unit_length_and_their_products_are_mean_cosines() {
    let batch = with_subtitles(&TOY.batch(1), 7);
    let net = net(&config(), 7);
    let moments = net.embed_moments(&batch.videos).unwrap();
    let queries = net.embed_queries(&batch.queries).unwrap();
    assert_eq!(moments[0].embeddings.dims(), [moments[0].spans.len(), 32]);
    let codes = net.encode(&batch.videos).unwrap();
    let scores = net.score_videos(&batch.queries, &codes.iter().collect::<Vec<_>>()).unwrap().unwrap();
    // The mean over streams of the best cosines is at least that of any one clip.
    for (video, moments) in moments.iter().enumerate() {
        let clips = moments.embeddings.narrow(0, 0, TOY.clips).unwrap();
        let best = queries.times(&clips.t().unwrap()).unwrap().max(1).unwrap().to_vec1::<f32>().unwrap();
        assert!(best.iter().enumerate().all(|(query, best)| *best <= scores[query][video] + 1e-5));
    }
}
