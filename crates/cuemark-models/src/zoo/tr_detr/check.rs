//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_tensor::{Device, Pass, Tensor};

use super::{TrDetr, TrDetrConfig};
use crate::check::{Cut, Fixture, Trace};
use crate::layers::detr::{Padding, Rounding};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let [costs, weights] = fixture.set_weights()?;
    let inputs = fixture.joint_inputs()?;
    let config = TrDetrConfig {
        clips: inputs.steps(),
        words: fixture.number("max_q_l")?,
        network: fixture.detr_size()?,
        encoder_layers: fixture.number("enc_layers")?,
        decoder_layers: fixture.number("dec_layers")?,
        proposals: fixture.number("num_queries")?,
        mask_order: fixture.mask_order()?,
        padding: Padding::Leaks,
        costs,
        weights,
        saliency: fixture.saliency_weights()?,
        video_weight: fixture.real("VTC_loss_coef")?,
        clip_weight: fixture.real("CTC_loss_coef")?,
        round: Rounding::Clips,
    };
    let given = Given::widths(inputs.video.dim(2)? - 2, inputs.text.dim(2)?, 0);
    let net = TrDetr::new(&config, &given, vb.clone())?;
    let forward = net.forward(&inputs, &Pass::answering())?;
    let losses = net.losses(&inputs, &forward, &fixture.joint_truth(&inputs)?)?;

    let mut trace = Trace::new();
    trace.out("vid_proj", &forward.clips);
    trace.out("txt_proj", &forward.words);
    trace.out("fused", &forward.joined);
    trace.out("t2v", &forward.seen);
    trace.out("memory_first", &forward.first);
    trace.out("saliency_first", &forward.first_saliency);
    trace.out("memory", &forward.memory);
    trace.layers("hs", &forward.decoded.states)?;
    trace.layers("references", &forward.decoded.before)?;
    trace.set(&forward.layers, &losses.set)?;
    let best: Vec<f32> = forward.best.concat().into_iter().map(|clip| clip as f32).collect();
    trace.out("moment_clips", &Tensor::from_vec(best, (inputs.len(), 2), &Device::Cpu)?);
    trace.out("moment_state", &forward.state);
    trace.out("saliency_scores", &forward.saliency);
    let ranked = fixture.ranked_windows(&forward.layers[forward.layers.len() - 1], Cut::Never)?;
    trace.windows_by_sample("windows", &fixture.final_windows(&ranked)?)?;
    trace.loss("loss_saliency_rank", &losses.rank);
    trace.loss("loss_saliency", &losses.saliency);
    trace.loss("loss_vtc", &losses.videos);
    trace.loss("loss_ctc", &losses.clips);
    trace.loss("total", &losses.total);
    Ok(trace)
}
