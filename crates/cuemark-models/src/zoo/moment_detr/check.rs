//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_features::{Features, Normalise};
use cuemark_tensor::{DType, Device, Pass, Tensor};

use super::{Alignment, MomentDetr, MomentDetrConfig};
use crate::check::{Cut, Fixture, Trace};
use crate::layers::detr::{JointInputs, Rounding, tef};
use crate::layers::real_steps;
use crate::{ClipLabels, ClipPairs, Given, JointTruth, RatedClip, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let [costs, weights] = fixture.set_weights()?;
    let config = MomentDetrConfig {
        clips: fixture.number("max_v_l")?,
        words: fixture.number("max_q_l")?,
        network: fixture.detr_size()?,
        encoder_layers: fixture.number("enc_layers")?,
        decoder_layers: fixture.number("dec_layers")?,
        proposals: fixture.number("num_queries")?,
        costs,
        weights,
        background: fixture.real("eos_coef")?,
        saliency: fixture.saliency_weights()?,
        align: Some(Alignment {
            width: fixture.number("contrastive_hdim")?,
            temperature: fixture.real("temperature")?,
            weight: fixture.real("contrastive_align_loss_coef")?,
        }),
        round: Rounding::Clips,
    };
    let inputs = inputs(fixture, &config)?;
    let truth = truth(fixture, &inputs)?;
    let given = Given::widths(inputs.video.dim(2)? - 2, inputs.text.dim(2)?, 0);
    let net = MomentDetr::new(&config, &given, vb.clone())?;
    let forward = net.forward(&inputs, &Pass::answering())?;
    let losses = net.losses(&forward, &truth)?;

    let clips = |pairs: &[[u32; 2]]| pairs.concat().into_iter().map(|clip| clip as f32);
    let mut trace = Trace::new();
    trace.out("src_vid", &inputs.video);
    trace.out("src_vid_mask", &inputs.video_mask);
    trace.out("src_txt", &inputs.text);
    trace.out("src_txt_mask", &inputs.text_mask);
    for (sample, windows) in truth.windows.iter().enumerate() {
        trace.out(&format!("target_spans_{sample}"), &pairs(windows.iter().flatten().copied())?);
    }
    trace.out("saliency_pos_labels", &pairs(clips(&truth.pairs.positive))?);
    trace.out("saliency_neg_labels", &pairs(clips(&truth.pairs.negative))?);
    trace.out("vid_proj", &forward.clips);
    trace.out("txt_proj", &forward.words);
    trace.out("video_position", &forward.place);
    trace.out("memory", &forward.memory);
    trace.layers("hs", &forward.states)?;
    trace.out("saliency_scores", &forward.saliency);
    trace.set(&forward.layers, &losses.set)?;
    let last = forward.layers.len() - 1;
    if let Some(aligner) = &net.aligner {
        trace.out("proj_queries", &aligner.proposals(&forward.states[last])?);
        trace.out("proj_txt_mem", &aligner.words(&forward.memory, inputs.steps())?);
    }
    for (number, loss) in losses.align.iter().enumerate() {
        let after = if number == last { String::new() } else { format!("_{number}") };
        trace.loss(&format!("loss_contrastive_align{after}"), loss);
    }
    let ranked = fixture.ranked_windows(&forward.layers[last], Cut::Never)?;
    trace.windows("final_windows", &fixture.final_windows(&ranked)?)?;
    trace.windows("ranked_windows", &ranked)?;
    trace.loss("loss_saliency", &losses.saliency);
    trace.loss("total", &losses.total);
    Ok(trace)
}

/// Rows of several sources side by side, each normalised by itself, as many as the shortest has.
fn rows(fixture: &Fixture, names: &[String], limit: usize) -> Result<Features> {
    let mut sources = Vec::new();
    for name in names {
        let rows = fixture.input(name)?.to_vec2::<f32>()?;
        let width = rows.first().map_or(0, Vec::len);
        let kept: Vec<f32> = rows.iter().take(limit).flatten().copied().collect();
        let features = Features::new(rows.len().min(limit), width, kept);
        let features = features.ok_or_else(|| fixture.fault(&format!("in.{name}"), "has no rows"))?;
        sources.push(Normalise::L2Eps.apply(features));
    }
    Ok(Features::beside(&sources))
}

fn inputs(fixture: &Fixture, config: &MomentDetrConfig) -> Result<JointInputs> {
    let samples = fixture.durations()?.len();
    let (mut videos, mut texts) = (Vec::new(), Vec::new());
    for sample in 0..samples {
        let names = ["a", "b"].map(|source| format!("video_{source}_{sample}"));
        videos.push(rows(fixture, &names, config.clips)?);
        texts.push(rows(fixture, &[format!("text_{sample}")], config.words)?);
    }
    let (video, clips) = padded(&videos)?;
    let (text, words) = padded(&texts)?;
    // Rows are made on the CPU; the network lies where the fixture was opened.
    let device = fixture.tensor("in.text_0")?.device().clone();
    let (video, text) = (video.to_device(&device)?, text.to_device(&device)?);
    Ok(JointInputs {
        video_mask: real_steps(&clips, video.dim(1)?, &device)?,
        video: Tensor::cat(&[&video, &tef(&clips, video.dim(1)?, &device)?], 2)?,
        text_mask: real_steps(&words, text.dim(1)?, &device)?,
        text,
        clips,
        words,
    })
}

fn padded(features: &[Features]) -> Result<(Tensor, Vec<usize>)> {
    let lengths: Vec<usize> = features.iter().map(Features::rows).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let one = |features: &Features| -> Result<Tensor> {
        let rows = Tensor::from_slice(features.data(), (features.rows(), features.width()), &Device::Cpu)?;
        Ok(rows.pad_with_zeros(0, 0, longest - features.rows())?)
    };
    Ok((Tensor::stack(&features.iter().map(one).collect::<Result<Vec<_>>>()?, 0)?, lengths))
}

fn truth(fixture: &Fixture, inputs: &JointInputs) -> Result<JointTruth> {
    let clip = fixture.real("clip_length")?;
    let draws = [fixture.counts("easy_pos")?, fixture.counts("easy_neg")?];
    let mut truth =
        JointTruth { windows: Vec::new(), pairs: ClipPairs::default(), totals: Vec::new(), relevant: Vec::new() };
    for (sample, clips) in inputs.clips.iter().enumerate() {
        let covered = *clips as f64 * clip;
        let span = |[start, end]: [f32; 2]| {
            let [start, end] = [start, end].map(|seconds| f64::from(seconds) / covered);
            [((start + end) / 2.0) as f32, (end - start) as f32]
        };
        truth.windows.push(fixture.pairs_of(&format!("in.windows_{sample}"))?.into_iter().map(span).collect());
        let grades = fixture.tensor(&format!("in.saliency_scores_{sample}"))?.to_dtype(DType::F32)?.to_vec2::<f32>()?;
        let rated = fixture.counts(&format!("relevant_clip_ids_{sample}"))?.into_iter().zip(&grades);
        let labels = ClipLabels::Rated(
            rated.map(|(clip, grades)| RatedClip { clip, total: grades.iter().sum(), raters: grades.len() }).collect(),
        );
        let mut drawn = draws.iter().map(|draws| draws[sample]);
        let [positive, negative] = labels.pairs(*clips, &mut |_| drawn.next().unwrap_or_default());
        truth.pairs.positive.push(positive);
        truth.pairs.negative.push(negative);
        truth.totals.push(labels.totals(inputs.steps()));
        truth.relevant.push(labels.relevant(inputs.steps()));
    }
    Ok(truth)
}

fn pairs(values: impl Iterator<Item = f32>) -> Result<Tensor> {
    let values: Vec<f32> = values.collect();
    let rows = values.len() / 2;
    Ok(Tensor::from_vec(values, (rows, 2), &Device::Cpu)?)
}
