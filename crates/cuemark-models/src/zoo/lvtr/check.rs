//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::{DType, Pass};

use super::{Asked, Label, Lvtr, LvtrConfig, Order, Score, label_logits};
use crate::check::{Fixture, Trace};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = LvtrConfig {
        clips: fixture.number("num_input_frames")?,
        sentences: fixture.number("num_input_sentences")?,
        order: Order::Time,
        proposals: fixture.number("num_proposals")?,
        hidden: fixture.number("hidden_dim")?,
        heads: fixture.number("nheads")?,
        ffn: fixture.number("dim_feedforward")?,
        encoder_layers: fixture.number("enc_layers")?,
        decoder_layers: fixture.number("dec_layers")?,
        input_layers: fixture.number("n_input_proj")?,
        label: match fixture.config("pred_label")?.as_str() {
            Some("sim") => Label::Sim,
            Some("pred") => Label::Pred,
            Some("cos") => Label::Cos,
            _ => return Err(fixture.fault("config.pred_label", "is none of cos, sim and pred")),
        },
        score: Score::Label,
        span_weight: fixture.real("loss_weights.span")?,
        overlap_weight: fixture.real("loss_weights.giou")?,
        label_weight: fixture.real("loss_weights.label")?,
        look_weight: 0.0,
        span_cost: fixture.real("set_cost_span")?,
        overlap_cost: fixture.real("set_cost_giou")?,
        label_cost: fixture.real("set_cost_query")?,
        dropout: 0.0,
        input_dropout: 0.0,
    };
    let asked = Asked {
        clips: fixture.input("video")?,
        clip_mask: fixture.input("video_mask")?,
        text: fixture.input("sentences")?,
        text_mask: fixture.input("sentence_mask")?,
    };
    let net = Lvtr::new(&config, &Given::widths(asked.clips.dim(2)?, asked.text.dim(2)?, 0), vb.clone())?;
    let mut truth = Vec::new();
    for sample in 0..asked.clips.dim(0)? {
        let spans = fixture.input(&format!("target_spans_{sample}"))?.to_vec2::<f32>()?;
        truth.push(spans.iter().map(|span| [span[0], span[1]]).collect::<Vec<_>>());
    }
    let forward = net.forward(&asked, &Pass::answering())?;

    let mut trace = Trace::new();
    trace.out("video_position", &forward.clip_position);
    let mut total = Tensor::zeros((), DType::F32, asked.clips.device())?;
    let last = forward.layers.len().saturating_sub(1);
    for (number, layer) in forward.layers.iter().enumerate() {
        let (losses, matchings) = net.losses(layer, &truth)?;
        total = (total + net.total(&losses)?)?;
        let suffix = if number == last { String::new() } else { format!("_{number}") };
        trace.loss(&format!("loss_span{suffix}"), &losses.span);
        trace.loss(&format!("loss_giou{suffix}"), &losses.overlap);
        trace.loss(&format!("loss_label{suffix}"), &losses.label);
        let prefix = if number == last { "" } else { "aux_" };
        trace.out(&format!("{prefix}pred_logits{suffix}"), &layer.logits);
        trace.out(&format!("{prefix}pred_spans{suffix}"), &layer.spans);
        if number == last {
            trace.out("pred_logits_sim", &label_logits(Label::Sim, &layer.states, &forward.text_memory)?);
            for (sample, matching) in matchings.iter().enumerate() {
                let (proposals, sentences): (Vec<u32>, Vec<u32>) =
                    matching.iter().map(|(proposal, sentence)| (*proposal as u32, *sentence as u32)).unzip();
                trace.out(&format!("match_pred_{sample}"), &Tensor::new(proposals, asked.clips.device())?);
                trace.out(&format!("match_tgt_{sample}"), &Tensor::new(sentences, asked.clips.device())?);
            }
        }
    }
    trace.loss("total", &total);
    Ok(trace)
}
