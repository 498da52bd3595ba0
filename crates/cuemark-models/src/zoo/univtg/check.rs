//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_core::NormSpan;
use cuemark_tensor::functional::sigmoid;
use cuemark_tensor::{Device, Pass, Tensor};

use super::labels::{Labels, Truth, labels};
use super::losses::HIDDEN;
use super::{ClipScore, UniVtg, UniVtgConfig};
use crate::check::{Fixture, Trace};
use crate::layers::detr::{JointInputs, Padding, Rounding};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let inputs = fixture.joint_inputs()?;
    let config = UniVtgConfig {
        clips: inputs.steps(),
        words: fixture.number("max_q_l")?,
        network: fixture.detr_size()?,
        encoder_layers: fixture.number("enc_layers")?,
        padding: Padding::Leaks,
        boundary_weight: fixture.real("loss_weights.loss_b")?,
        overlap_weight: fixture.real("loss_weights.loss_g")?,
        inside_weight: fixture.real("loss_weights.loss_f")?,
        intra_weight: fixture.real("loss_weights.loss_s_intra")?,
        inter_weight: fixture.real("loss_weights.loss_s_inter")?,
        background: fixture.real("eos_coef")?,
        score: ClipScore::Add,
        nms: fixture.real("nms_thd")?,
        round: Rounding::None,
    };
    let given = Given::widths(inputs.video.dim(2)? - 2, inputs.text.dim(2)?, 0);
    let net = UniVtg::new(&config, &given, vb.clone())?;
    let forward = net.forward(&inputs, &Pass::answering())?;
    let truth = truth(fixture, &inputs)?;
    let losses = net.losses(&inputs, &forward, &truth)?;

    let mut trace = Trace::new();
    let every = |of: &dyn Fn(&Labels, usize) -> Vec<f32>| -> Result<Tensor> {
        let empty = of(&labels(&[], 1, 1.0), 0).len();
        let row = |labels: &Labels, clip: usize| {
            if clip < labels.times.len() { of(labels, clip) } else { vec![0.0; empty] }
        };
        let values: Vec<f32> = truth
            .labels
            .iter()
            .flat_map(|labels| (0..inputs.steps()).flat_map(move |clip| row(labels, clip)))
            .collect();
        Ok(Tensor::from_vec(values, (inputs.len(), inputs.steps(), empty), &Device::Cpu)?)
    };
    trace.out("timestamp", &every(&|labels, clip| vec![labels.times[clip]; 2])?);
    trace.out("timestamp_window", &every(&|labels, clip| vec![f32::from(u8::from(labels.inside[clip]))])?.squeeze(2)?);
    trace.out("span_labels_nn", &every(&|labels, clip| labels.bounds[clip].to_vec())?);
    trace.out("vid_proj", &forward.clips);
    trace.out("txt_pooled", &forward.sentence.unsqueeze(1)?);
    trace.out("memory", &forward.memory);
    let foreground = sigmoid(&forward.inside)?;
    trace.out("foreground", &foreground);
    trace.out("pred_spans", &forward.offsets);
    let hidden = inputs.video_mask.affine(-f64::from(HIDDEN), f64::from(HIDDEN))?;
    trace.out_where("saliency_scores", &(&forward.likeness + hidden)?, &inputs.video_mask);
    trace.out("highlight_scores", &((&forward.likeness + &foreground)? * &inputs.video_mask)?);
    answers(fixture, &inputs, &truth, &foreground, &forward.offsets, &mut trace)?;
    trace.loss("loss_b", &losses.boundary);
    trace.loss("loss_g", &losses.overlap);
    trace.loss("loss_f", &losses.inside);
    trace.loss("loss_s_inter", &losses.inter);
    trace.loss("loss_s_intra", &losses.intra);
    trace.loss("total", &losses.total);
    Ok(trace)
}

fn truth(fixture: &Fixture, inputs: &JointInputs) -> Result<Truth> {
    let seconds = fixture.real("clip_length")?;
    let worth = fixture.input("saliency_scores")?.to_vec2::<f32>()?;
    let mut truth = Truth { labels: Vec::new(), worth, good: fixture.counts("saliency_pos_labels")? };
    for (sample, clips) in inputs.clips.iter().enumerate() {
        let name = format!("in.relevant_windows_{sample}");
        let covered = *clips as f64 * seconds;
        let windows = fixture.pairs_of(&name)?.into_iter().map(|window| {
            let [start, end] = window.map(|bound| f64::from(bound) / covered);
            NormSpan::new(start, end).ok_or_else(|| fixture.fault(&name, "holds no spans"))
        });
        truth.labels.push(labels(&windows.collect::<Result<Vec<_>>>()?, *clips, seconds));
        truth.worth[sample].truncate(*clips);
    }
    Ok(truth)
}

/// Windows in seconds with their scores, and what is left of them after suppression.
fn answers(
    fixture: &Fixture,
    inputs: &JointInputs,
    truth: &Truth,
    foreground: &Tensor,
    offsets: &Tensor,
    trace: &mut Trace,
) -> Result<()> {
    let (scores, offsets, durations) = (foreground.to_vec2::<f32>()?, offsets.to_vec3::<f32>()?, fixture.durations()?);
    let (limit, keep) = (fixture.number("max_before_nms")?, fixture.number("max_after_nms")?);
    let threshold = fixture.real("nms_thd")?;
    let (mut all, mut best) = (Vec::new(), Vec::new());
    for (sample, duration) in durations.iter().enumerate() {
        let window = |clip: usize| {
            let time = truth.labels[sample].times[clip];
            let bound = |side: usize| (f64::from(time + offsets[sample][clip][side]) * duration).clamp(0.0, *duration);
            [bound(0), bound(1), f64::from(scores[sample][clip])]
        };
        let mut windows: Vec<[f64; 3]> = (0..inputs.clips[sample]).map(window).collect();
        windows.sort_by(|a, b| b[2].total_cmp(&a[2]));
        let windows: Vec<[f64; 3]> =
            windows.into_iter().map(|window| window.map(|value| (value * 1e4).round() / 1e4)).collect();
        let mut kept: Vec<[f64; 3]> = Vec::new();
        for window in windows.iter().take(limit) {
            let clashes = |earlier: &[f64; 3]| {
                let both = (window[1].min(earlier[1]) - window[0].max(earlier[0])).max(0.0);
                both / (window[1].max(earlier[1]) - window[0].min(earlier[0])) > threshold
            };
            if kept.len() < keep && !kept.iter().any(clashes) {
                kept.push(*window);
            }
        }
        all.push(windows);
        best.push(kept);
    }
    trace.windows_by_sample("ranked", &all)?;
    trace.windows_by_sample("nms", &best)
}
