//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::{DType, Tensor};
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::config::nms;
use super::{OffsetScale, Scdm, ScdmConfig, Weights};
use crate::check::{Fixture, Trace};
use crate::layers::WordSource;
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let visual = fixture.input("video")?;
    let ratios = fixture.config("ratios")?;
    let config = ScdmConfig {
        grid: fixture.number("grid")?,
        maps: fixture.numbers("maps")?.len(),
        hidden: fixture.number("h")?,
        channels: fixture.number("channels")?,
        branch: fixture.number("pred_hidden")?,
        first_kernel: fixture.shape("conv1.weight")?.last().copied().unwrap_or(3),
        sentence_blocks: 0,
        ratios: serde_json::from_value(ratios.clone())
            .map_err(|_| fixture.fault("config.ratios", format!("{ratios} is no list of numbers")))?,
        min_anchor: 0.0,
        max_anchor: None,
        positive_iou: fixture.real("thresholds.pos")?,
        negative_iou: fixture.real("thresholds.neg")?,
        hard_logit: fixture.real("thresholds.hard_logit")?,
        offset_scale: OffsetScale {
            centre: fixture.real("offset_scale.center")?,
            width: fixture.real("offset_scale.width")?,
        },
        weights: Weights {
            positive: fixture.real("loss_weights.pos")?,
            hard: fixture.real("loss_weights.hard")?,
            easy: fixture.real("loss_weights.easy")?,
            centre: fixture.real("loss_weights.center")?,
            width: fixture.real("loss_weights.width")?,
        },
        modulation_eps: fixture.real("modulation_eps")?,
        batch_norm_eps: fixture.real("batchnorm_eps")?,
        dropout: 0.0,
        word_vectors: WordSource::Own,
        nms: nms(),
    };
    let table = fixture.tensor("param.Wemb")?.dims2()?;
    let net = Scdm::new(&config, &Given::widths(visual.dim(2)?, table.1, table.0), vb.clone())?;
    let words = net.words.look_up(&fixture.ids("words")?, &visual)?;
    let forward = net.forward(&visual, &words, &fixture.counts("words_len")?, &Pass::answering())?;
    let truth = fixture.input("gt")?.to_vec2::<f32>()?;
    let spans: Vec<(f64, f64)> = truth.iter().map(|row| (f64::from(row[0]), f64::from(row[1]))).collect();

    let mut trace = Trace::new();
    trace.out("word_states", &forward.words);
    trace.out("sentence", &forward.sentence);
    if let Some(first) = forward.attention.first() {
        trace.out("attention_block0", first);
    }
    let mut total = Tensor::zeros((), DType::F32, visual.device())?;
    for (map, out) in forward.maps.iter().enumerate() {
        let (batch, cells, widths) = (visual.dim(0)?, out.features.dim(1)?, config.ratios.len());
        let ends: Vec<f32> =
            net.anchors[map].iter().flat_map(|anchor| [anchor.ends().0 as f32, anchor.ends().1 as f32]).collect();
        let half = (&out.widths * 0.5)?;
        let decoded = Tensor::stack(&[(&out.centres - &half)?, (&out.centres + &half)?], 2)?;
        let per_cell = |x: &Tensor| x.reshape((batch, cells, widths));
        trace.out(&format!("anchor_features_{map}"), &out.features.transpose(1, 2)?);
        trace.out(&format!("anchors_{map}"), &Tensor::from_vec(ends, (cells, widths, 2), visual.device())?);
        trace.out(&format!("decoded_{map}"), &decoded.reshape((batch, cells, widths, 2))?);
        trace.out(&format!("iou_target_{map}"), &per_cell(&net.ious(map, &spans, &visual)?)?);
        trace.out(&format!("offsets_{map}"), &out.offsets);
        trace.out(&format!("overlap_logits_{map}"), &per_cell(&out.logits)?);
        let loss = net.map_loss(map, out, &spans)?;
        for (name, part) in [
            ("pos", &loss.positive),
            ("hard", &loss.hard),
            ("easy", &loss.easy),
            ("center", &loss.centre),
            ("width", &loss.width),
            ("weighted", &loss.weighted),
        ] {
            trace.loss(&format!("map{map}_{name}"), part);
        }
        total = (total + loss.weighted)?;
    }
    trace.loss("total", &total);
    Ok(trace)
}
