//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::{DType, Tensor};
use candle_nn::VarBuilder;

use super::Form;
use super::losses::{hard_terms, reliable};
use crate::check::{Fixture, Trace};
use crate::layers::{cosines, spans_of, video_of_sentences};
use crate::losses::{MutualMatching, Pairs, sampling_probabilities};
use crate::{Negatives, Result};

/// The fixture covers the losses; the network is MMN's and checked there.
pub(super) fn check(fixture: &Fixture, _: &VarBuilder) -> Result<Trace> {
    let matching = MutualMatching {
        margin: fixture.real("margin")?,
        tau: fixture.real("tau")?,
        top_k: fixture.number("top_k")?,
        negative_iou: fixture.real("neg_iou")?,
        sentence_iou: fixture.real("sent_removal_iou")?,
        ..MutualMatching::default()
    };
    let mut trace = Trace::new();
    let moments = trace.watch("in.map_contrastive", &fixture.input("map_contrastive")?)?;
    let sentences = trace.watch("in.sent", &fixture.input("sent")?)?;
    let cells = valid_cells(fixture)?;
    let valid = |x: &Tensor| x.flatten_from(2)?.transpose(1, 2)?.contiguous()?.index_select(&cells, 1);
    let ious = valid(&fixture.input("iou2d")?.unsqueeze(1)?)?.squeeze(2)?;
    let cosines = cosines(&sentences, &valid(&moments)?)?;
    let (video, spans) = (video_of_sentences(fixture)?, spans_of(fixture)?);
    let pairs = Pairs { cosines: &cosines, ious: &ious, video: &video, spans: &spans };

    let plain = matching.terms(pairs, None)?;
    trace.loss("mmn_vid", &plain.to_sentences.mean_all()?);
    trace.loss("mmn_sent", &plain.to_moments.mean_all()?);

    let similarity = fixture.input("query_video_similarity")?;
    let reliable = reliable(&similarity, &video, fixture.real("threshold")?, Form::Released)?;
    let filtered = matching.terms(pairs, Some(&reliable))?;
    let (to_sentences, to_moments) = (filtered.to_sentences.mean_all()?, filtered.to_moments.mean_all()?);
    trace.loss("filtered_vid", &to_sentences);
    trace.loss("filtered_sent", &to_moments);
    trace.loss("filtered_total", &(to_sentences + to_moments)?);

    let (query, own) = (fixture.number("hard.query_sentence")?, fixture.number("hard.query_video")?);
    let others = fixture.numbers("hard.sentences_one_per_video")?;
    let hard = Negatives {
        query,
        videos: (0..moments.dim(0)?).filter(|video| *video != own).collect(),
        queries: others.into_iter().filter(|other| *other != query).collect(),
    };
    let hard = hard_terms(&matching, pairs, &[hard], Form::Released)?;
    trace.loss("hard_q2v", &hard.to_moments.mean_all()?);
    trace.loss("hard_v2q", &hard.to_sentences.mean_all()?);

    let reals = |name: &str| -> Result<Vec<f64>> {
        Ok(fixture.input(name)?.flatten_all()?.to_dtype(DType::F64)?.to_vec1::<f64>()?)
    };
    let positives = reals("relevance_positive")?;
    let positive = positives.iter().sum::<f64>() / positives.len().max(1) as f64;
    let (a, b) = (fixture.real("sampling.a")?, fixture.real("sampling.b")?);
    let probabilities = sampling_probabilities(&reals("relevance")?, positive, a, b);
    trace.out("sampling_prob", &Tensor::new(probabilities, moments.device())?);
    Ok(trace)
}

/// The places of the valid cells on the whole map, by `in.map_mask`.
fn valid_cells(fixture: &Fixture) -> Result<Tensor> {
    let mask = fixture.input("map_mask")?;
    let squares = mask.flatten_all()?.to_vec1::<f32>()?;
    let valid: Vec<u32> = (0..).zip(squares).filter(|(_, valid)| *valid > 0.0).map(|(square, _)| square).collect();
    Ok(Tensor::new(valid, mask.device())?)
}
