//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::answers::Scores;
use super::{Clamp, Drn, DrnConfig, Level, Pair};
use crate::check::{Fixture, Trace};
use crate::layers::WordSource;
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let strides = fixture.numbers("fpn_stride")?;
    let level = |(number, stride): (usize, &usize)| -> Result<Level> {
        let bound = |end: usize| fixture.real(&format!("level_ranges.{number}.{end}"));
        Ok(Level { stride: *stride, from: bound(0)?, to: bound(1)? })
    };
    let visual = fixture.input("features")?;
    let config = DrnConfig {
        clips: visual.dim(1)?,
        lstm: fixture.number("hidden_dim")?,
        lstm_layers: fixture.number("lstm_layers")?,
        first: fixture.number("first_output_dim")?,
        pyramid: fixture.number("fpn_feature_dim")?,
        position: fixture.number("position_dim")?,
        tower: fixture.number("fcos_conv_layers")?,
        levels: strides.iter().enumerate().map(level).collect::<Result<_>>()?,
        alpha: fixture.real("fcos_loss_alpha")?,
        gamma: fixture.real("fcos_loss_gamma")?,
        overlap: fixture.real("stage2_iou_threshold")?,
        clamp: Clamp::First,
        min_score: fixture.real("fcos_inference_thr")?,
        top: fixture.number("fcos_pre_nms_top_n")?,
        word_vectors: WordSource::Own,
        nms: DrnConfig::default().nms,
    };
    let table = fixture.tensor("param.query_encoder.embedding.weight")?.dims2()?;
    let net = Drn::new(&config, &Given::widths(visual.dim(2)?, table.1, table.0), vb.clone())?;
    let words = net.words.look_up(&fixture.ids("query_tokens")?, &visual)?;
    let (ends, lengths) = (fixture.input("clip_start_end")?, fixture.counts("query_len")?);
    let pair = Pair { visual: &visual, ends: &ends, words: &words, lengths: &lengths };
    let forward = net.forward(&pair, &Pass::answering())?;
    let spans: Vec<(f64, f64)> = fixture
        .input("gt_start_end")?
        .to_vec2::<f32>()?
        .into_iter()
        .map(|row| (f64::from(row[0]), f64::from(row[1])))
        .collect();
    let truth = net.truth(&spans, &visual)?;
    let class = net.class_loss(&forward, &truth)?;
    let distance = net.distance_loss(&forward, &truth)?;

    let mut trace = Trace::new();
    for number in 0..strides.len() {
        let (out, truth) = (&forward.levels[number], &truth[number]);
        let locations: Vec<f32> = net.locations(number).into_iter().map(|x| x as f32).collect();
        trace.out(&format!("query_command_{number}"), &forward.commands[number]);
        trace.out(&format!("fpn_level_{number}"), &forward.pyramid[number].transpose(1, 2)?);
        trace.out(&format!("cls_logits_{number}"), &out.class.unsqueeze(1)?);
        trace.out(&format!("bbox_reg_{number}"), &out.distances.transpose(1, 2)?);
        trace.out(&format!("iou_logits_{number}"), &out.overlap.unsqueeze(1)?);
        trace.out(&format!("locations_{number}"), &Tensor::new(locations, visual.device())?);
        trace.out(&format!("labels_{number}"), &truth.positive);
        trace.out(&format!("reg_targets_{number}"), &truth.distances);
    }
    trace.out("decoded_unclamped", &net.decoded(&forward)?);
    for (name, scores) in [("stage1", Scores::Class), ("stage23", Scores::ClassAndOverlap)] {
        for (query, found) in net.detections(&forward, scores)?.iter().enumerate() {
            let rows = found
                .iter()
                .flat_map(|proposal| [proposal.span.start() as f32, proposal.span.end() as f32, proposal.score]);
            let rows = Tensor::from_vec(rows.collect(), (found.len(), 3), visual.device())?;
            trace.out(&format!("{name}_detections_{query}"), &rows);
        }
    }
    trace.loss("stage1_total", &(&class + &distance)?);
    trace.loss("stage1_cls", &class);
    trace.loss("stage1_reg", &distance);
    trace.loss("stage2_iou", &net.overlap_loss(&forward, &spans)?);
    Ok(trace)
}
