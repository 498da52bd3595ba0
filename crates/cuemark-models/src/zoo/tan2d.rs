//! 2D-TAN: scores every candidate span on a start × end map and lets convolutions look at neighbouring spans.
//! Zhang et al., "Learning 2D Temporal Adjacent Networks for Moment Localization with Natural Language", AAAI 2020.
//!
//! Follows the published code where it and the paper differ (the counting weights of the convolutions). The learning rate
//! stays constant: the published plateau schedule watches the negated loss and hardly ever acts.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{l2_normalise, sigmoid};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    CellFill, CellFilling, ClipProjection, FillNames, Linear, MapSize, MapStack, MapSupport, MomentMap, Recurrent,
    Ways, last_step, linear, pointwise,
};
use crate::losses::ScaledIou;
use crate::{
    Apart, Batch, Family, FullSize, Given, Grid, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "2d-tan",
    title: "2D-TAN",
    paper: "Zhang et al., Learning 2D Temporal Adjacent Networks for Moment Localization with Natural Language, AAAI 2020",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "scores every span on a start × end map with masked 2D convolutions",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "map = { pre_clips = 256, clips = 64, counts = [15, 8, 8] }\nkernel = 9\nlayers = 4",
            visual: 500,
            words: 300,
            millions: Some(91.6),
        },
        FullSize {
            dataset: "charades-sta",
            settings: "map = { pre_clips = 256, clips = 16, counts = [15] }\nkernel = 5\nlayers = 8\nnms = 0.45",
            visual: 4096,
            words: 300,
            millions: Some(60.9),
        },
        FullSize {
            dataset: "tacos",
            settings: "map = { pre_clips = 256, clips = 128, counts = [15, 8, 8, 8] }\nkernel = 5\nlayers = 8\nnms = 0.4\n\
                       targets = { min_iou = 0.3, max_iou = 0.7 }",
            visual: 4096,
            words: 300,
            millions: Some(60.9),
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Tan2d::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<Tan2dConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tan2dConfig {
    /// Sizes of the map.
    pub map: MapSize,
    /// Width of everything. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// How cells are made from clips. Default: pool
    #[serde(default)]
    pub fill: CellFill,
    /// Layers of the query's LSTM. Default: 3
    #[serde(default = "lstm_layers")]
    pub lstm_layers: usize,
    /// Side of the convolutions' kernel.
    pub kernel: usize,
    /// Number of convolutions.
    pub layers: usize,
    /// Which cells the convolutions compute. Default: exact
    #[serde(default)]
    pub support: MapSupport,
    /// How overlaps become targets. Default: 0 up to 0.5, 1 at 1.0
    #[serde(default)]
    pub targets: ScaledIou,
    /// Overlap above which the worse of two answers is dropped. Default: 0.5
    #[serde(default = "nms")]
    pub nms: f64,
}

fn hidden() -> usize {
    512
}

fn lstm_layers() -> usize {
    3
}

fn nms() -> f64 {
    0.5
}

/// The network.
#[derive(Debug)]
pub struct Tan2d {
    config: Tan2dConfig,
    map: MomentMap,
    clips: ClipProjection,
    fill: CellFilling,
    query: Recurrent,
    query_to_map: Linear,
    moment_to_map: Linear,
    stack: MapStack,
    score: Linear,
}

/// Everything on the way to the scores, one row per valid cell.
struct Forward {
    clips: Tensor,
    moments: Tensor,
    fused: Tensor,
    logits: Tensor,
}

impl Tan2d {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that no map can have.
    pub fn new(config: &Tan2dConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        let map = MomentMap::new(config.map.clips, &config.map.counts)?;
        let fusion = vb.pp("fusion_layer");
        Ok(Self {
            clips: ClipProjection::new(given.visual, hidden, config.map.clips, vb.pp("frame_layer.vis_conv"))?,
            fill: CellFilling::new(&map, config.fill, FillNames::ByScale, hidden, &vb.pp("prop_layer.layers"))?,
            query: Recurrent::lstm(
                given.words,
                hidden,
                config.lstm_layers,
                Ways::Forward,
                fusion.pp("textual_encoder"),
            )?,
            query_to_map: linear(hidden, hidden, fusion.pp("tex_linear"))?,
            moment_to_map: pointwise(hidden, hidden, 2, fusion.pp("vis_conv"))?,
            stack: MapStack::new(&map, hidden, config.kernel, config.layers, config.support, vb.pp("map_layer.convs"))?,
            score: pointwise(hidden, 1, 2, vb.pp("pred_layer"))?,
            map,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, pre_clips, d_visual]`; words `[batch, words, d_word]` with `lengths` real ones
    /// - logits of the result `[batch, cells]`, one per valid cell
    fn forward(&self, visual: &Tensor, words: &Tensor, lengths: &[usize]) -> Result<Forward> {
        let clips = self.clips.forward(visual)?;
        let moments = self.fill.forward(&clips)?;
        let query = self.query_to_map.forward(&last_step(&self.query.forward(words)?, lengths)?)?;
        let fused = l2_normalise(&self.moment_to_map.forward(&moments)?.broadcast_mul(&query.unsqueeze(1)?)?)?;
        let logits = self.score.forward(&self.stack.forward(&fused)?)?.squeeze(D::Minus1)?;
        Ok(Forward { clips, moments, fused, logits })
    }

    fn of_batch(&self, batch: &Batch) -> Result<Forward> {
        self.forward(&batch.videos.visual, &batch.queries.words, &batch.queries.lengths)
    }
}

impl Model for Tan2d {
    fn input(&self) -> Input {
        Input::pairs(self.config.map.pre_clips)
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        self.judge(&self.read(batch, pass)?, batch, pass)
    }

    fn apart(&self) -> Option<&dyn Apart> {
        Some(self)
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.map.rank(&sigmoid(&self.of_batch(batch)?.logits)?)?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }

    fn grid(&self) -> Option<Grid> {
        Some(Grid { clips: self.config.map.clips })
    }
}

impl Apart for Tan2d {
    fn read(&self, part: &Batch, _: &Pass) -> Result<Vec<Tensor>> {
        Ok(vec![self.of_batch(part)?.logits])
    }

    fn judge(&self, found: &[Tensor], batch: &Batch, _: &Pass) -> Result<Loss> {
        let ious = self.map.ious(&batch.targets(CARD.name)?.spans, batch.videos.visual.device())?;
        Ok(self.config.targets.loss(&found[0], &ious)?.into())
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = Tan2dConfig {
        map: MapSize::of_fixture(fixture, "equivalent_pooling_counts")?,
        hidden: fixture.number("hidden")?,
        fill: if fixture.variant() == Some("conv") { CellFill::Conv } else { CellFill::Pool },
        lstm_layers: fixture.number("lstm_layers")?,
        kernel: fixture.number("map_conv.kernel")?,
        layers: fixture.number("map_conv.layers")?,
        support: MapSupport::Exact,
        targets: ScaledIou::of_fixture(fixture)?,
        nms: fixture.real("nms_threshold")?,
    };
    let (visual, words) = (fixture.input("visual")?, fixture.input("text")?);
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let net = Tan2d::new(&config, &given, vb.clone())?;
    let lengths = fixture.lengths("text_mask")?;
    let forward = net.forward(&visual, &words, &lengths)?;
    let ious = net.map.cells_of_square(&fixture.input("map_gt")?)?.squeeze(2)?;
    let probabilities = sigmoid(&forward.logits)?;

    let mut trace = Trace::new();
    let square = |x: &Tensor| net.map.to_square(x);
    trace.out("clip_feat", &forward.clips.transpose(1, 2)?);
    trace.out("map_mask", &net.map.mask(visual.device())?);
    trace.out("map_feat", &square(&forward.moments)?);
    trace.out("fused", &square(&forward.fused)?);
    trace.out("map_conv", &net.stack.forward_on_whole_map(&net.map, &forward.fused)?);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config(fill: CellFill, support: MapSupport) -> Tan2dConfig {
        Tan2dConfig {
            map: MapSize { pre_clips: 8, clips: 8, counts: vec![7] },
            hidden: 16,
            fill,
            lstm_layers: 1,
            kernel: 3,
            layers: 2,
            support,
            targets: ScaledIou::default(),
            nms: 0.5,
        }
    }

    fn build(fill: CellFill, support: MapSupport, vb: VarBuilder) -> Result<Box<dyn Model>> {
        Ok(Box::new(Tan2d::new(&config(fill, support), &TOY.given(), vb)?))
    }

    #[test]
    fn every_valid_cell_is_proposed_once_with_a_probability() {
        let params = cuemark_tensor::Params::seeded(1, &cuemark_tensor::Device::Cpu);
        let model = build(CellFill::Conv, MapSupport::Exact, params.builder()).unwrap();
        let ranked = model.propose(&TOY.batch(1)).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 36);
            assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padded_words_change_nothing() {
        let params = cuemark_tensor::Params::seeded(1, &cuemark_tensor::Device::Cpu);
        let net = Tan2d::new(&config(CellFill::Pool, MapSupport::Exact), &TOY.given(), params.builder()).unwrap();
        let batch = TOY.batch(1);
        let short = net.of_batch(&batch).unwrap().logits;
        let long = net.of_batch(&batch.with_longer_words(3)).unwrap().logits;
        assert!(gap(&short, &long) < 1e-6);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        for (fill, support) in [
            (CellFill::Pool, MapSupport::Exact),
            (CellFill::Conv, MapSupport::Exact),
            (CellFill::Pool, MapSupport::Valid),
        ] {
            let (model, first, last) = overfit(|vb| build(fill, support, vb), &batch, 150, 1e-2);
            let overlaps = best_overlaps(model.as_ref(), &batch);
            assert!(last < 0.3 * first, "{fill:?} {support:?}: {first} to {last}");
            assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{fill:?} {support:?}: {overlaps:?}");
        }
    }
}
