//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;

use super::{Mgpn, MgpnConfig, Recurrence};
use crate::check::{Fixture, Trace};
use crate::layers::MapSize;
use crate::losses::ScaledIou;
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = MgpnConfig {
        map: MapSize::of_fixture(fixture, "pooling_counts")?,
        hidden: fixture.number("hidden")?,
        position_embedding: fixture.config("position_embedding")?.as_bool().unwrap_or(false),
        gru_layers: fixture.number("gru.layers")?,
        recurrence: Recurrence::Padding,
        dropout: 0.0,
        blocks: fixture.number("comparison.blocks")?,
        kernel: fixture.number("comparison.kernel")?,
        groups: fixture.number("comparison.groups")?,
        targets: ScaledIou::of_fixture(fixture)?,
        nms: fixture.real("nms_threshold")?,
    };
    let (visual, words) = (fixture.input("visual")?, fixture.input("text")?);
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let net = Mgpn::new(&config, &given, vb.clone())?;
    let forward = net.forward(&visual, &words, &fixture.input("text_mask")?.squeeze(2)?, &Pass::answering())?;
    let ious = net.map.cells_of_square(&fixture.input("map_gt")?)?.squeeze(2)?;
    let probabilities = sigmoid(&forward.logits)?;

    let mut trace = Trace::new();
    let square = |x: &Tensor| net.map.to_square(x);
    trace.out("vis_encoded", &forward.clips.transpose(1, 2)?);
    trace.out("txt_encoded", &forward.words);
    trace.out("vis_fused", &forward.clips_fused.transpose(1, 2)?);
    trace.out("txt_fused", &forward.words_fused);
    trace.out("vis_fine", &forward.clips_fine.transpose(1, 2)?);
    trace.out("txt_fine", &forward.words_fine);
    trace.out("map_mask", &net.map.mask(visual.device())?);
    trace.out("boundary_map", &square(&forward.boundary)?);
    trace.out("content_map", &square(&forward.content)?);
    trace.out("fused", &square(&forward.fused)?);
    trace.out("relation", &square(&forward.compared)?);
    trace.out("score_logit", &square(&forward.logits.unsqueeze(2)?)?);
    trace.out("prob", &square(&probabilities.unsqueeze(2)?)?);
    trace.out(
        "segments_top5",
        &fixture.top_segments(
            &net.map.rank(&probabilities)?,
            &fixture.durations()?,
            config.nms,
            Some(net.map.grid()),
        )?,
    );
    trace.loss("bce", &config.targets.loss(&forward.logits, &ious)?);
    Ok(trace)
}
