//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_tensor::{Device, Pass, Tensor};

use super::centres::walk;
use super::{Uvcom, UvcomConfig, Walk};
use crate::check::{Cut, Fixture, Trace};
use crate::layers::detr::{Padding, Rounding};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let [costs, weights] = fixture.set_weights()?;
    let inputs = fixture.joint_inputs()?;
    let config = UvcomConfig {
        clips: inputs.steps(),
        words: fixture.number("max_q_l")?,
        network: fixture.detr_size()?,
        encoder_layers: fixture.number("enc_layers")?,
        decoder_layers: fixture.number("dec_layers")?,
        proposals: fixture.number("num_queries")?,
        mlp: fixture.number("mlp_hidden")?,
        word_centres: fixture.number("n_txt_mu")?,
        clip_centres: fixture.number("n_visual_mu")?,
        centre_rounds: fixture.number("em_iter")?,
        walk: Walk::Inverse,
        mask_order: fixture.mask_order()?,
        padding: Padding::Leaks,
        hard_negatives_from: fixture.number("neg_choose_epoch")?,
        costs,
        weights,
        background: fixture.real("eos_coef")?,
        saliency: fixture.saliency_weights()?,
        align_weight: fixture.real("sim_loss_coef")?,
        round: Rounding::Clips,
    };
    let given = Given::widths(inputs.video.dim(2)? - 2, inputs.text.dim(2)?, 0);
    let net = Uvcom::new(&config, &given, vb.clone())?;
    let pass = Pass::answering();
    let projected = net.project(&inputs, &pass)?;
    let right = net.encode(&inputs, &projected, &inputs.own_text(), &pass)?;
    let (slots, decoded, layers) = net.decode(&inputs, &projected, &right, &pass)?;
    let alike = net.alike(&inputs, &right)?;
    let choice = Uvcom::least_like(&alike)?;
    let late = fixture.number("epoch")? >= config.hard_negatives_from;
    let used = if late { choice.clone() } else { inputs.next_text() };
    let wrong = net.encode(&inputs, &projected, &used, &pass)?;
    let rolled = net.encode(&inputs, &projected, &inputs.next_text(), &pass)?;
    let truth = fixture.joint_truth(&inputs)?;
    let losses = net.losses(&inputs, &layers, [&right.saliency, &wrong.saliency], &alike, &truth)?;

    let mut trace = Trace::new();
    let places =
        |places: &[usize]| Tensor::new(places.iter().map(|place| *place as f32).collect::<Vec<f32>>(), &Device::Cpu);
    trace.out("t2v", &right.seen);
    trace.out("v2t", &right.text);
    trace.out("txt_global", &right.sentence);
    trace.out("txt_centres", &right.word_centres);
    trace.out("vid_centres", &right.clip_centres);
    trace.out("best_centre", &places(&right.best)?);
    trace.out("local", &right.local);
    trace.out("reweighted", &right.walked);
    trace.out("reweighted_lighthouse", &walk(&right.word_centres, &right.local, None, Walk::Series)?);
    trace.out("encoder_in", &right.before);
    trace.out("memory", &right.after);
    trace.out("slots", &slots);
    trace.layers("hs", &decoded.states)?;
    trace.layers("references", &decoded.after)?;
    trace.set(&layers, &losses.set)?;
    trace.out("sim_inter", &alike.inter);
    trace.out("sim_clip", &alike.clips);
    trace.out("negative_choice", &places(&choice)?);
    trace.out("negative_used", &places(&used)?);
    trace.out("saliency_scores", &right.saliency);
    trace.out("saliency_scores_neg", &wrong.saliency);
    trace.out("saliency_scores_neg_rolled", &rolled.saliency);
    let ranked = fixture.ranked_windows(&layers[layers.len() - 1], Cut::Never)?;
    trace.windows_by_sample("windows", &fixture.final_windows(&ranked)?)?;
    trace.loss("loss_saliency", &losses.saliency.sum()?);
    trace.loss("loss_saliency_hinge", &losses.saliency.margin);
    trace.loss("loss_saliency_rank", &losses.saliency.rank);
    trace.loss("loss_saliency_neg", &losses.saliency.wrong);
    trace.loss("loss_sim", &losses.align);
    trace.loss("total", &losses.total);
    Ok(trace)
}
