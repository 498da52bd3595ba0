//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::losses::Truth;
use super::{Asked, MsDetr, MsDetrConfig, WordHead};
use crate::check::{Fixture, Trace};
use crate::{Given, ModelError, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let rows = |parameter: &str| Ok::<_, ModelError>(fixture.shape(parameter)?.first().copied().unwrap_or_default());
    let flags = serde_json::from_value(fixture.config("patch_merge")?.clone());
    let weights = serde_json::from_value(fixture.config("w_bd_loss")?.clone());
    let bad = |key: &str| fixture.fault(&format!("config.{key}"), "is no such list");
    let config = MsDetrConfig {
        clips: rows("backbone.vid_pe.weight")?,
        words: rows("backbone.txt_pe.weight")?,
        hidden: fixture.number("d_model")?,
        heads: fixture.number("nhead")?,
        ffn: fixture.number("ff_dim")?,
        reduce: fixture.numbers("sr_ratio")?,
        halve: flags.map_err(|_| bad("patch_merge"))?,
        levels: fixture.numbers("output_layers")?,
        decoder_layers: fixture.number("decoder_layers")?,
        proposals: fixture.number("num_query")?,
        pieces: fixture.number("pooler_resolution")?,
        word_head: WordHead::Embedded,
        vocabulary: Some(rows("text_mlp.layers.1.weight")?),
        hide: 0.0,
        best: fixture.number("topk")?,
        min_iou: fixture.real("iou_cutoff")?,
        layer_weights: weights.map_err(|_| bad("w_bd_loss"))?,
        score_weight: fixture.real("w_iou_loss")?,
        distance_weight: fixture.real("w_l1_loss")?,
        inside_weight: fixture.real("w_span_loss")?,
        word_weight: fixture.real("w_mask_loss")?,
        focus: fixture.real("focal.gamma")?,
        score_balance: fixture.real("focal.score_alpha")?,
        inside_balance: fixture.real("focal.span_alpha")?,
        dropout: 0.0,
    };
    let (visual, words) = (fixture.input("video")?, fixture.input("text")?);
    let net = MsDetr::new(&config, &Given::widths(visual.dim(2)?, words.dim(2)?, 0), vb.clone())?;
    // What the authors' code builds and never uses: other groups of proposals, and a head for their first places.
    for (name, tensor) in fixture.parameters() {
        let spare = name.starts_with("head.query_embeddings.") && name != "head.query_embeddings.0.weight";
        if spare || name.starts_with("head.reference_head.") {
            vb.get(tensor.shape(), &name)?;
        }
    }
    let (mask, guessed, bounds) = (fixture.input("text_mask")?, fixture.input("word_mask")?, fixture.input("gt")?);
    let ids = fixture.ids("word_label")?;
    let asked = Asked { words: &words, mask: &mask, hidden: None };
    let forward = net.forward(&visual, &asked, &Pass::answering())?;
    let losses = net.losses(&forward, &Truth { bounds: &bounds, ids: &ids, guessed: Some(&guessed) })?;

    let mut trace = Trace::new();
    trace.out("text_embedding", &forward.words);
    trace.out("stage_logits", &forward.stages);
    forward.levels.iter().enumerate().for_each(|(number, level)| trace.out(&format!("level_{number}"), level));
    for (number, layer) in forward.layers.iter().enumerate() {
        trace.out(&format!("boxes_{number}"), &layer.bounds);
        trace.out(&format!("scores_{number}"), &layer.scores);
        if number + 1 == forward.layers.len() {
            trace.out("final_boxes", &layer.bounds);
            trace.out("final_scores", &layer.scores);
        }
    }
    losses.layers.iter().enumerate().for_each(|(number, loss)| trace.loss(&format!("bd_{number}"), loss));
    trace.loss("mask", &losses.words);
    trace.loss("span", &losses.inside);
    trace.loss("total", &net.total(&losses)?);
    Ok(trace)
}
