//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::{Feedback, TaskWeave, TaskWeaveConfig};
use crate::check::{Cut, Fixture, Trace};
use crate::layers::detr::{Padding, Rounding};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let [costs, _] = fixture.set_weights()?;
    let inputs = fixture.joint_inputs()?;
    let config = TaskWeaveConfig {
        clips: inputs.steps(),
        words: fixture.number("max_q_l")?,
        network: fixture.detr_size()?,
        encoder_layers: fixture.number("enc_layers")?,
        shared_layers: fixture.number("shared_layers")?,
        decoder_layers: fixture.number("dec_layers")?,
        proposals: fixture.number("num_queries")?,
        feedback: Feedback::HighlightsToMoments,
        feedback_after: fixture.number("epoch_thres")?,
        mask_order: fixture.mask_order()?,
        padding: Padding::Leaks,
        costs,
        background: fixture.real("eos_coef")?,
        margin: fixture.real("saliency_margin")?,
        highlight_weight: fixture.real("hd_loss_factor")?,
        round: Rounding::Clips,
    };
    let given = Given::widths(inputs.video.dim(2)? - 2, inputs.text.dim(2)?, 0);
    let net = TaskWeave::new(&config, &given, vb.clone())?;
    let (pass, truth) = (Pass::answering(), fixture.joint_truth(&inputs)?);
    let projected = net.project(&inputs, &pass)?;
    let forward = |helps: Feedback| net.forward(&inputs, &projected, Some(helps), &pass);
    let (main, other) = (forward(Feedback::HighlightsToMoments)?, forward(Feedback::MomentsToHighlights)?);
    let wrong = net.wrong_scores(&inputs, &projected, &pass)?;
    let losses = net.losses(&inputs, &main, &wrong, &truth)?;
    let other_losses = net.losses(&inputs, &other, &wrong, &truth)?;

    let mut trace = Trace::new();
    trace.out("t2v", &main.first.seen);
    let branched = &main.first.branched;
    trace.out("mr_in", &branched.moments_in);
    trace.out("hd_in", &branched.highlights_in);
    trace.out("mr_shared", &branched.moments_shared);
    trace.out("hd_shared", &branched.highlights_shared);
    trace.out("mr_spec", &branched.moments_own);
    trace.out("mr_memory_first", &branched.moments);
    trace.out("hd_memory", &branched.highlights);
    if let (Some(second), Some(told)) = (&main.second, &main.told) {
        trace.out("saliency_mask", told);
        trace.out("mr_memory", &second.branched.moments);
    }
    trace.layers("hs", &main.found.decoded.states)?;
    trace.layers("references", &main.found.decoded.before)?;
    trace.set(&main.found.layers, &losses.set)?;
    trace.out("saliency_scores", &main.saliency);
    trace.out("saliency_scores_neg", &wrong);
    if let (Some(last), Some(told)) = (other.found.layers.last(), &other.told) {
        trace.out("plain_pred_logits", &last.logits);
        trace.out("plain_pred_spans", &last.spans);
        trace.out("mr2hd_mask", told);
    }
    trace.out("mr2hd_saliency_scores", &other.saliency);
    let layers = &main.found.layers;
    let ranked = fixture.ranked_windows(&layers[layers.len() - 1], Cut::Never)?;
    trace.windows_by_sample("windows", &fixture.final_windows(&ranked)?)?;
    trace.loss("loss_saliency", &losses.saliency.sum()?);
    trace.loss("loss_mr", &losses.moments);
    trace.loss("total", &losses.total);
    trace.loss("mr2hd_loss_saliency", &other_losses.saliency.sum()?);
    trace.loss("mr2hd_loss_mr", &other_losses.moments);
    trace.loss("mr2hd_total", &other_losses.total);
    Ok(trace)
}
