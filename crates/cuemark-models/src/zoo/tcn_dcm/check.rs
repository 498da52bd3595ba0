//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;

use super::config::nms;
use super::{TcnDcm, TcnDcmConfig, position_code};
use crate::check::{Fixture, Trace};
use crate::layers::MapSize;
use crate::losses::ScaledIou;
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = TcnDcmConfig {
        map: MapSize::of_fixture(fixture, "pooling_counts")?,
        hidden: fixture.number("hidden")?,
        lstm_layers: fixture.number("lstm_layers")?,
        heads: fixture.number("heads")?,
        dropout: 0.0,
        eta: fixture.real("eta")?,
        kernel: fixture.number("conv.kernel")?,
        layers: fixture.number("conv.layers")?,
        gamma: fixture.real("gamma")?,
        sigma: fixture.real("sigma")?,
        lambda: fixture.real("lambda_dcor")?,
        frobenius: fixture.real("frobenius_weight")?,
        targets: ScaledIou::of_fixture(fixture)?,
        nms: nms(),
    };
    let (visual, words) = (fixture.input("visual")?, fixture.input("text")?);
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let net = TcnDcm::new(&config, &given, vb.clone())?;
    let lengths = fixture.counts("word_lens")?;
    let pass = Pass::answering();
    let forward = net.forward(&visual, &words, &lengths, &pass)?;
    let other = net.forward(&fixture.input("visual_negative")?, &words, &lengths, &pass)?;
    let ious = net.map.cells_of_square(&fixture.input("map_gt")?.unsqueeze(1)?)?.squeeze(2)?;
    let parts = net.parts(&forward, &ious, Some(&other))?;

    let mut trace = Trace::new();
    let square = |x: &Tensor| net.map.to_square(x);
    let clips = config.map.clips;
    let code = position_code(clips, config.hidden, visual.device())?;
    trace.out("map_mask", &net.map.mask(visual.device())?);
    trace.out("map_feat", &square(&forward.moments)?);
    trace.out("query", &forward.query);
    trace.out("content", &square(&forward.content)?);
    trace.out("location", &square(&forward.location)?);
    trace.out("position_code", &code.t()?.reshape((config.hidden, clips, clips))?);
    trace.out("score_logit", &square(&forward.logits.unsqueeze(2)?)?.squeeze(1)?);
    trace.out("prob", &square(&sigmoid(&forward.logits)?.unsqueeze(2)?)?.squeeze(1)?);
    trace.loss("total", &net.total(&parts)?);
    trace.loss("bce", &parts.bce);
    trace.loss("reconstruction", &parts.reconstruction);
    trace.loss("frobenius", &parts.frobenius);
    trace.loss("dcor", &forward.correlation()?); // fixtures have it whatever its weight
    if let Some(part) = &parts.bce_negative {
        trace.loss("bce_negative", part);
    }
    Ok(trace)
}
