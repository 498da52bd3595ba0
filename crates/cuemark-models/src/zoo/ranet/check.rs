//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;

use super::{Choices, Interaction, RaNet, RaNetConfig, Recurrence, Relation};
use crate::check::{Fixture, Trace};
use crate::layers::MapSize;
use crate::losses::ScaledIou;
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = RaNetConfig {
        map: MapSize::of_fixture(fixture, "pooling_counts")?,
        hidden: fixture.number("hidden")?,
        position_embedding: fixture.config("position_embedding")?.as_bool().unwrap_or(false),
        neighbours: fixture.number("gcnext.k")?,
        groups: fixture.number("gcnext.groups")?,
        group_width: fixture.number("gcnext.width_per_group")?,
        lstm_layers: fixture.number("lstm.layers")?,
        recurrence: Recurrence::Padding,
        choices: Choices::Boundary,
        interaction: Interaction::Dynamic,
        relation: Relation::Attention {
            blocks: fixture.number("relation.blocks")?,
            rounds: fixture.number("relation.loops")?,
            narrowing: fixture.number("relation.inter_prop")?,
        },
        targets: ScaledIou::of_fixture(fixture)?,
        nms: fixture.real("nms_threshold")?,
    };
    let (visual, words) = (fixture.input("visual")?, fixture.input("text")?);
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let net = RaNet::new(&config, &given, vb.clone())?;
    let forward = net.forward(&visual, &words, &fixture.input("text_mask")?.squeeze(2)?, &Pass::answering())?;
    let ious = net.map.cells_of_square(&fixture.input("map_gt")?)?.squeeze(2)?;
    let probabilities = sigmoid(&forward.logits)?;

    let mut trace = Trace::new();
    let square = |x: &Tensor| net.map.to_square(x);
    trace.out("clip_feat", &forward.clips.transpose(1, 2)?);
    trace.out("word_feat", &forward.words);
    trace.out("map_mask", &net.map.mask(visual.device())?);
    trace.out("choice_map", &square(&forward.choices)?);
    trace.out("fused", &net.spread(&forward.fused)?.permute((0, 3, 1, 2))?);
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
