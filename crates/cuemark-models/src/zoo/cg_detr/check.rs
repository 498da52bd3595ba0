//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_tensor::{Device, Pass, Tensor};

use super::losses::Views;
use super::{CgDetr, CgDetrConfig, real_negatives};
use crate::check::{Cut, Fixture, Trace};
use crate::layers::detr::Rounding;
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let [costs, weights] = fixture.set_weights()?;
    let inputs = fixture.joint_inputs()?;
    let config = CgDetrConfig {
        clips: inputs.steps(),
        words: fixture.number("max_q_l")?,
        network: fixture.detr_size()?,
        encoder_layers: fixture.number("enc_layers")?,
        decoder_layers: fixture.number("dec_layers")?,
        text_layers: fixture.number("t2v_layers")?,
        moment_layers: fixture.number("moment_layers")?,
        dummy_layers: fixture.number("dummy_layers")?,
        sentence_layers: fixture.number("sent_layers")?,
        text_heads: fixture.number("text_encoder_heads")?,
        dummies: fixture.number("num_dummies")?,
        prompts: fixture.number("total_prompts")?,
        used_prompts: fixture.number("num_prompts")?,
        proposals: fixture.number("num_queries")?,
        mask_order: fixture.mask_order()?,
        costs,
        weights,
        background: fixture.real("eos_coef")?,
        saliency: fixture.saliency_weights()?,
        attention_weight: fixture.real("lw_wattn")?,
        align_weight: fixture.real("lw_ms_align")?,
        distill_weight: fixture.real("lw_distill")?,
        round: Rounding::Clips,
    };
    let given = Given::widths(inputs.video.dim(2)? - 2, inputs.text.dim(2)?, 0);
    let net = CgDetr::new(&config, &given, vb.clone())?;
    let (pass, truth) = (Pass::answering(), fixture.joint_truth(&inputs)?);
    let projected = net.project(&inputs, &pass)?;
    let own = inputs.own_text();
    let right = net.see(&inputs, &projected, [&own, &own], &pass)?;
    let (decoded, layers) = net.decode(&inputs, &projected.place, &right.memory, &pass)?;
    let taught = net.teach(&inputs, &projected, &truth.graded_clips(inputs.device())?, &pass)?;
    let rows = real_negatives(&fixture.counts("video_group")?);
    let wrong = net.see_wrong(&inputs, &projected, &rows, &pass)?;
    let views = Views { right: &right, wrong: wrong.as_ref(), negatives: &rows };
    let losses = net.losses(&inputs, &projected, &layers, views, &taught, &truth)?;

    let mut trace = Trace::new();
    let real: Vec<f32> = own.iter().map(|row| f32::from(u8::from(rows.contains(row)))).collect();
    trace.out("real_neg_mask", &Tensor::new(real, &Device::Cpu)?);
    trace.out("vid_proj", &projected.bare[0]);
    trace.out("txt_proj", &projected.bare[1]);
    trace.out("video_position", &projected.place);
    trace.out("dummy_tokens", &projected.dummies);
    trace.out("t2v", &right.clips);
    trace.out("cate_attn_weights", &right.attention);
    trace.out("prompt_sim", &right.likeness);
    let used: Vec<Vec<f32>> =
        right.used.iter().map(|used| used.iter().map(|prompt| *prompt as f32).collect()).collect();
    trace.out("prompt_top", &Tensor::new(used, &Device::Cpu)?);
    trace.out("saliency_token_in", &right.token_in);
    trace.out("saliency_token", &right.token_out);
    for (after, seen) in [("", Some(&right)), ("_neg", wrong.as_ref())] {
        let Some(seen) = seen else { continue };
        trace.out(&format!("memory{after}"), &seen.memory);
        trace.out(&format!("memory_global{after}"), &seen.token);
        trace.out(&format!("saliency_scores{after}"), &seen.saliency);
        trace.out(&format!("t2vattnvalues{after}"), &seen.word_share);
    }
    trace.out("memory_moment", &taught.moment[0]);
    trace.out("nmmemory_moment", &taught.other[0]);
    trace.out("mmemory_frames", &taught.moment[1]);
    trace.out("nmmemory_frames", &taught.other[1]);
    trace.out("sentence_txt", &taught.sentence[0]);
    trace.out("sentence_dummy", &taught.dummy[0]);
    trace.out("moment2txt_similarity", &taught.wanted);
    trace.layers("references", &decoded.before)?;
    trace.layers("hs", &decoded.states)?;
    trace.set(&layers, &losses.set)?;
    let ranked = fixture.ranked_windows(&layers[layers.len() - 1], Cut::Duration)?;
    trace.windows("final_windows", &fixture.final_windows(&ranked)?)?;
    trace.windows("ranked_windows", &ranked)?;
    trace.loss("loss_saliency", &losses.saliency.sum);
    trace.loss("loss_ms_align", &losses.align.sum);
    trace.loss("loss_distill", &losses.distill);
    trace.loss("loss_orthogonal_dummy", &losses.apart);
    trace.loss("saliency_margin", &losses.saliency.margin);
    trace.loss("saliency_rank", &losses.saliency.rank);
    trace.loss("saliency_rank_false_neg", &losses.saliency.rank_false);
    trace.loss("saliency_neg_pair", &losses.saliency.wrong);
    trace.loss("attn_margin", &losses.saliency.share_margin);
    trace.loss("attn_rank", &losses.saliency.share_rank);
    trace.loss("attn_bce", &losses.saliency.share_entropy);
    trace.loss("attn_neg_pair", &losses.saliency.share_wrong);
    trace.loss("ms_align_sentence", &losses.align.sentence);
    trace.loss("ms_align_dummy", &losses.align.dummy);
    trace.loss("ms_align_clips", &losses.align.clips);
    trace.loss("total", &losses.total);
    Ok(trace)
}
