//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_tensor::{Device, Pass, Tensor};

use super::{Eatr, EatrConfig, events};
use crate::check::{Cut, Fixture, Trace};
use crate::layers::detr::{Padding, Rounding};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let [costs, weights] = fixture.set_weights()?;
    let inputs = fixture.joint_inputs()?;
    let config = EatrConfig {
        clips: inputs.steps(),
        words: fixture.number("max_q_l")?,
        network: fixture.detr_size()?,
        encoder_layers: fixture.number("enc_layers")?,
        decoder_layers: fixture.number("dec_layers")?,
        proposals: fixture.number("num_queries")?,
        slot_rounds: fixture.number("num_slot_iter")?,
        padding: Padding::Leaks,
        costs,
        weights,
        background: fixture.real("eos_coef")?,
        saliency: fixture.saliency_weights()?,
        event_weight: fixture.real("event_coef")?,
        round: Rounding::Clips,
    };
    let given = Given::widths(inputs.video.dim(2)? - 2, inputs.text.dim(2)?, 0);
    let net = Eatr::new(&config, &given, vb.clone())?;
    let forward = net.forward(&inputs, &Pass::answering())?;
    let events = events(&inputs, config.padding)?;
    let losses = net.losses(&forward, &fixture.joint_truth(&inputs)?, &events)?;

    let mut trace = Trace::new();
    trace.out("boundary_score", &Tensor::new(events.scores.clone(), &Device::Cpu)?);
    for (sample, spans) in events.spans.iter().enumerate() {
        let flat = Tensor::from_vec(spans.concat(), (spans.len(), 2), &Device::Cpu)?;
        trace.out(&format!("pseudo_event_spans_{sample}"), &flat);
    }
    trace.out("vid_proj", &forward.clips);
    trace.out("txt_proj", &forward.words);
    trace.out("txt_global", &forward.sentence);
    trace.out("video_position", &forward.place);
    trace.out("memory", &forward.memory);
    trace.out("slots", &forward.slots);
    trace.out("gated", &forward.gated);
    trace.layers("references", &forward.anchors)?;
    trace.layers("hs", &[std::slice::from_ref(&forward.event_state), &forward.states[..]].concat())?;
    trace.out("pred_event_spans", &forward.events);
    trace.out("saliency_scores", &forward.saliency);
    trace.set(&forward.layers, &losses.set)?;
    trace.matched("event_match", "", &losses.event_matchings)?;
    let ranked = fixture.ranked_windows(&forward.layers[forward.layers.len() - 1], Cut::Never)?;
    trace.windows("final_windows", &fixture.final_windows(&ranked)?)?;
    trace.windows("ranked_windows", &ranked)?;
    trace.loss("loss_saliency", &losses.saliency);
    trace.loss("loss_event_span", &losses.events[0]);
    trace.loss("loss_event_giou", &losses.events[1]);
    trace.loss("total", &losses.total);
    Ok(trace)
}
