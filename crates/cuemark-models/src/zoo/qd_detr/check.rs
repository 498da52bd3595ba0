//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::{QdDetr, QdDetrConfig};
use crate::check::{Cut, Fixture, Trace};
use crate::layers::detr::Rounding;
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let [costs, weights] = fixture.set_weights()?;
    let inputs = fixture.joint_inputs()?;
    let config = QdDetrConfig {
        clips: inputs.steps(),
        words: fixture.number("max_q_l")?,
        network: fixture.detr_size()?,
        encoder_layers: fixture.number("enc_layers")?,
        decoder_layers: fixture.number("dec_layers")?,
        proposals: fixture.number("num_queries")?,
        mask_order: fixture.mask_order()?,
        costs,
        weights,
        background: fixture.real("eos_coef")?,
        saliency: fixture.saliency_weights()?,
        round: Rounding::Clips,
    };
    let given = Given::widths(inputs.video.dim(2)? - 2, inputs.text.dim(2)?, 0);
    let net = QdDetr::new(&config, &given, vb.clone())?;
    let pass = Pass::answering();
    let projected = net.project(&inputs, &pass)?;
    let right = net.encode(&inputs, &projected, &inputs.own_text(), &pass)?;
    let wrong = net.encode(&inputs, &projected, &inputs.next_text(), &pass)?;
    let (decoded, layers) = net.decode(&inputs, &projected, &right.memory, &pass)?;
    let truth = fixture.joint_truth(&inputs)?;
    let losses = net.losses(&inputs.video_mask, &layers, [&right.saliency, &wrong.saliency], &truth)?;

    let mut trace = Trace::new();
    trace.out("vid_proj", &projected.clips);
    trace.out("txt_proj", &projected.words);
    trace.out("video_position", &projected.place);
    for (after, encoded) in [("", &right), ("_neg", &wrong)] {
        trace.out(&format!("t2v{after}"), &encoded.seen);
        trace.out(&format!("memory{after}"), &encoded.memory);
        trace.out(&format!("memory_global{after}"), &encoded.token);
        trace.out(&format!("saliency_scores{after}"), &encoded.saliency);
    }
    trace.layers("references", &decoded.before)?;
    trace.layers("hs", &decoded.states)?;
    trace.set(&layers, &losses.set)?;
    let ranked = fixture.ranked_windows(&layers[layers.len() - 1], Cut::Never)?;
    trace.windows("final_windows", &fixture.final_windows(&ranked)?)?;
    trace.windows("ranked_windows", &ranked)?;
    trace.loss("saliency_margin", &losses.saliency.margin);
    trace.loss("saliency_rank", &losses.saliency.rank);
    trace.loss("saliency_neg_pair", &losses.saliency.wrong);
    trace.loss("loss_saliency", &losses.saliency.sum()?);
    trace.loss("total", &losses.total);
    Ok(trace)
}
