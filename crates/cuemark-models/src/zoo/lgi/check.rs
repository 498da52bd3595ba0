//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::{AttentionWidths, Lgi, LgiConfig, Output, PaddedClips};
use crate::check::{Fixture, Trace};
use crate::layers::{Pair, WordSource};
use crate::{Given, Result};

/// Widths of a fixture's attentions, that over words under its own key.
pub(in crate::zoo) fn widths_of(fixture: &Fixture, words: &str) -> Result<AttentionWidths> {
    Ok(AttentionWidths {
        words: fixture.number(words)?,
        phrases: fixture.number("lgi_global_satt_att_hdim")?,
        clips: fixture.number("grounding_att_hdim")?,
    })
}

/// The head that the reference has for a fixture's dataset.
pub(in crate::zoo) fn output_of(fixture: &Fixture) -> Result<Output> {
    Ok(if fixture.config("dataset")?.as_str() == Some("charades") { Output::Relu } else { Output::Sigmoid })
}

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = LgiConfig {
        clips: fixture.number("video_enc_pemb_idim")?,
        hidden: fixture.number("video_enc_vemb_odim")?,
        query: 2 * fixture.number("query_enc_rnn_hdim")?,
        head: fixture.number("grounding_hdim")?,
        attention: widths_of(fixture, "sqan_att_hdim")?,
        lstm_layers: fixture.number("query_enc_rnn_nlayer")?,
        phrases: fixture.number("num_semantic_entity")?,
        kernel: fixture.number("conv_kernel")?,
        local_blocks: fixture.number("lgi_local_num_res_blocks")?,
        blocks: fixture.number("lgi_global_num_nl_block")?,
        heads: fixture.number("lgi_global_nl_nheads")?,
        output: output_of(fixture)?,
        spread: fixture.real("dqa_lambda")?,
        attention_weight: fixture.real("tag_weight")?,
        phrase_weight: fixture.real("dqa_weight")?,
        dropout: 0.0,
        word_vectors: WordSource::Own,
        padded_clips: PaddedClips::Published,
    };
    let visual = fixture.input("video_features")?;
    let given = given_of(fixture, &visual)?;
    let net = Lgi::new(&config, &given, vb.clone())?;
    let (clip_mask, word_mask) = (fixture.input("video_mask")?, fixture.input("query_mask")?);
    let words = net.words.look_up(&fixture.ids("query_ids")?, &word_mask)?;
    let lengths = fixture.lengths("query_mask")?;
    let pair = Pair { visual: &visual, clip_mask: &clip_mask, words: &words, word_mask: &word_mask, lengths: &lengths };
    let forward = net.forward(&pair, &Pass::answering())?;
    let truth = Tensor::stack(&[fixture.input("gt_start")?, fixture.input("gt_end")?], 1)?;
    let [regression, attention, phrases, total] = net.losses(&forward, &truth, &fixture.input("attention_mask")?)?;

    let mut trace = Trace::new();
    trace.out("word_features", &forward.words);
    trace.out("sentence_feature", &forward.sentence);
    trace.out("segment_embedding", &forward.segments);
    trace.out("phrase_features", &forward.phrases);
    trace.out("phrase_word_attention", &forward.word_attention);
    trace.out("phrase_weights", &forward.phrase_weights);
    trace.out("semantics_aware_segments", &forward.context);
    trace.out("temporal_attention", &forward.temporal);
    trace.out("start_end", &forward.ends);
    trace.loss("regression", &regression);
    trace.loss("tag", &attention);
    trace.loss("dqa", &phrases);
    trace.loss("total", &total);
    Ok(trace)
}

/// Widths of a fixture, its table of words included.
pub(in crate::zoo) fn given_of(fixture: &Fixture, visual: &Tensor) -> Result<Given> {
    let table = fixture.tensor("param.query_enc.embedding.weight")?.dims2()?;
    Ok(Given::widths(visual.dim(2)?, table.1, table.0))
}
