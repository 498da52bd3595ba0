//! ACRN: CTRL whose windows are pooled with their neighbours by an attention that the sentence steers.
//! Liu et al., "Attentive Moment Retrieval in Videos", SIGIR 2018.
//!
//! Follows the published code where it and the paper differ: tanh and softmax in the attention, full vectors beside the outer
//! product. Windows, sentences and training pairs are CTRL's, with the same deviations. `outer_scale` and `embedding_spread` are not
//! published: they are there to find out why the published form stays behind CTRL on the world.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::ClipRange;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{l2_normalise, softmax};
use serde::{Deserialize, Serialize};

use super::ctrl::{Aligned, WindowRules, no_loss, normal_linear, sentences, step_loss};
use crate::check::{Fixture, Trace};
use crate::layers::Linear;
use crate::layers::window_means;
use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "acrn",
    title: "ACRN",
    paper: "Liu et al., Attentive Moment Retrieval in Videos, SIGIR 2018",
    family: Family::TwoStage,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "CTRL with an attention over a window and its neighbours, fused with the sentence by an outer product",
    full_sizes: &[
        FullSize { dataset: "tacos", settings: "", visual: 4096, words: 4800, millions: Some(15.3) },
        FullSize {
            dataset: "activitynet-captions",
            settings: "windows = { train = [16, 64, 128], answer = [16, 64, 128], context = 64 }",
            visual: 500,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "charades-sta",
            settings: "windows = { train = [8, 16], answer = [8, 16] }",
            visual: 4096,
            words: 300,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Acrn::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<AcrnConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AcrnConfig {
    /// Which windows are looked at. Default: those of TACoS in rows of 16 frames
    pub windows: WindowRules,
    /// Width of the joint space. Default: 1024
    pub hidden: usize,
    /// Neighbouring values that are averaged before the outer product. Default: 16
    pub pool: usize,
    /// What the outer product is multiplied with: of unit vectors it is some hundred times smaller than what stands beside it. Default: 1
    pub outer_scale: f64,
    /// Standard deviation of the first weights of the two embeddings; 1 drives both tanh of the attention to their ends. Default: 1
    pub embedding_spread: f64,
    /// Width of the layer before the scores. Default: 1000
    pub middle: usize,
    /// Weight of the offsets. Default: 0.01
    pub offset_weight: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.45
    pub nms: f64,
}

impl Default for AcrnConfig {
    fn default() -> Self {
        let windows = WindowRules::default();
        let (outer_scale, embedding_spread) = (1.0, 1.0);
        Self {
            windows,
            hidden: 1024,
            pool: 16,
            outer_scale,
            embedding_spread,
            middle: 1000,
            offset_weight: 0.01,
            nms: 0.45,
        }
    }
}

/// The network.
#[derive(Debug)]
pub struct Acrn {
    config: AcrnConfig,
    window: Linear,
    sentence: Linear,
    first: Linear,
    second: Linear,
}

/// Windows after the attention.
struct Memory {
    /// `[windows, 3]`: shares of left neighbour, window and right neighbour.
    weights: Tensor,
    /// `[windows, hidden]`.
    memory: Tensor,
}

impl Acrn {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &AcrnConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let AcrnConfig { hidden, middle, pool, embedding_spread, .. } = *config;
        let groups = hidden.div_ceil(pool.max(1));
        let layers = vb.pp("vs_multilayer_lt");
        Ok(Self {
            window: normal_linear(given.visual, hidden, embedding_spread, &vb.pp("v2s_lt"))?,
            sentence: normal_linear(given.words, hidden, embedding_spread, &vb.pp("s2s_lt"))?,
            first: normal_linear(2 * hidden + groups * groups, middle, 0.01, &layers.pp("layer1"))?,
            second: normal_linear(middle, 3, 0.01, &layers.pp("layer2"))?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[windows, 3, width]` in order of time; sentences `[windows, hidden]`, or one for all
    fn remember(&self, visual: &Tensor, sentences: &Tensor) -> Result<Memory> {
        let columns = self.window.forward(visual)?; // [windows, 3, hidden]
        // Each column sees the sum of all up to itself.
        let mut sums: Vec<Tensor> = Vec::new();
        for place in 0..columns.dim(1)? {
            let column = columns.narrow(1, place, 1)?;
            sums.push(match sums.last() {
                Some(before) => (before + column)?,
                None => column,
            });
        }
        let asked = sentences.tanh()?.unsqueeze(1)?;
        let logits = Tensor::cat(&sums, 1)?.tanh()?.broadcast_mul(&asked)?.sum(D::Minus1)?;
        let weights = softmax(&logits, D::Minus1)?;
        let memory = columns.broadcast_mul(&weights.unsqueeze(2)?)?.sum(1)?;
        Ok(Memory { weights, memory })
    }

    /// Every sentence with every window, unit vectors `[.., hidden]` both.
    fn align(&self, windows: &Tensor, sentences: &Tensor) -> Result<Aligned> {
        let (count, asked) = (windows.dim(0)?, sentences.dim(0)?);
        let (rows, columns) = (self.pooled(windows)?, self.pooled(sentences)?);
        // [sentences, windows, rows, columns]: the row comes from the window.
        let rows = rows.unsqueeze(0)?.unsqueeze(3)?;
        let columns = columns.unsqueeze(1)?.unsqueeze(2)?;
        let mut outer = rows.broadcast_mul(&columns)?.flatten_from(2)?;
        if self.config.outer_scale != 1.0 {
            outer = (outer * self.config.outer_scale)?;
        }
        let hidden = self.config.hidden;
        let alone = |part: Tensor| part.broadcast_as((asked, count, hidden));
        let fused = Tensor::cat(&[alone(windows.unsqueeze(0)?)?, alone(sentences.unsqueeze(1)?)?, outer], 2)?;
        Aligned::new(fused, &self.first, &self.second)
    }

    /// Means of groups of neighbouring values, `[rows, hidden]` to `[rows, groups]`; the last group may be smaller.
    fn pooled(&self, x: &Tensor) -> Result<Tensor> {
        let (hidden, pool) = (self.config.hidden, self.config.pool.max(1));
        let group = |first: usize| ClipRange::new(first, (first + pool).min(hidden));
        let groups: Vec<ClipRange> = (0..hidden).step_by(pool).filter_map(group).collect();
        Ok(x.times(&window_means(&groups, hidden, x.device())?.t()?)?)
    }
}

impl Model for Acrn {
    fn input(&self) -> Input {
        self.config.windows.input()
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let chosen = self.config.windows.choose(batch, &batch.targets(CARD.name)?.spans, pass)?;
        if chosen.queries.is_empty() {
            return no_loss(batch.videos.visual.device());
        }
        let sentences = self.sentence.forward(&sentences(&batch.queries.select(&chosen.queries)?)?)?;
        let windows = l2_normalise(&self.remember(&chosen.visual, &sentences)?.memory)?;
        let aligned = self.align(&windows, &l2_normalise(&sentences)?)?;
        step_loss(&aligned, &chosen.offsets, self.config.offset_weight)
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let all = self.sentence.forward(&sentences(&batch.queries)?)?;
        let of = |(query, video): (usize, &usize)| {
            let (windows, visual) = self.config.windows.all(&batch.videos, *video)?;
            let sentence = all.narrow(0, query, 1)?;
            let memory = l2_normalise(&self.remember(&visual, &sentence)?.memory)?;
            self.align(&memory, &l2_normalise(&sentence)?)?.rank(&windows, batch.videos.lengths[*video])
        };
        batch.queries.video.iter().enumerate().map(of).collect()
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = AcrnConfig {
        hidden: fixture.number("semantic")?,
        pool: fixture.number("pool")?,
        middle: fixture.number("middle")?,
        offset_weight: fixture.real("reg_weight")?,
        ..AcrnConfig::default()
    };
    let visual = fixture.input("visual")?.transpose(1, 2)?.contiguous()?;
    let sentences = fixture.input("sentence")?;
    let net = Acrn::new(&config, &Given::widths(visual.dim(2)?, sentences.dim(1)?, 0), vb.clone())?;
    let sentences = net.sentence.forward(&sentences)?;
    let memory = net.remember(&visual, &sentences)?;
    let (windows, sentences) = (l2_normalise(&memory.memory)?, l2_normalise(&sentences)?);
    let aligned = net.align(&windows, &sentences)?;
    let (align, offset) = aligned.losses(&fixture.input("offset_label")?, fixture.real("alpha")?)?;

    let mut trace = Trace::new();
    trace.out("attention", &memory.weights);
    trace.out("memory", &memory.memory);
    trace.out("visual_embed", &windows);
    trace.out("sentence_embed", &sentences);
    trace.out("comb", &aligned.fused);
    trace.out("score", &aligned.scores);
    trace.out("offset_start", &aligned.starts);
    trace.out("offset_end", &aligned.ends);
    trace.loss("total", &(&align + (&offset * config.offset_weight)?)?);
    trace.loss("align", &align);
    trace.loss("reg", &offset);
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, Toy, assert_learnt_by_heart, gap, of_one_video};

    fn config() -> AcrnConfig {
        let windows = WindowRules { train: vec![2, 3], answer: vec![2, 3], context: 2, ..WindowRules::default() };
        AcrnConfig { windows, hidden: 16, pool: 3, middle: 20, ..AcrnConfig::default() }
    }

    fn net() -> Acrn {
        Acrn::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_window_is_proposed_once() {
        for proposals in net().propose(&TOY.batch(1)).unwrap() {
            assert_eq!(proposals.len(), 7 + 6);
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padding_changes_nothing() {
        let batch = TOY.batch(1);
        let longer = batch.with_longer_words(2).with_longer_videos(3);
        let loss = |batch: &Batch| net().loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&longer)) < 1e-6);
        assert_eq!(net().propose(&batch).unwrap(), net().propose(&longer).unwrap());
    }

    #[test]
    fn the_last_group_is_the_mean_of_what_it_has() {
        let x = Tensor::arange(0f32, 16.0, &Device::Cpu).unwrap().unsqueeze(0).unwrap();
        let pooled = net().pooled(&x).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let by_hand = [1.0, 4.0, 7.0, 10.0, 13.0, 15.0];
        assert!(pooled.iter().zip(by_hand).all(|(a, b)| (a - b).abs() < 1e-5) && pooled.len() == 6, "{pooled:?}");
    }

    #[test]
    fn the_attention_knows_before_from_after() {
        let net = net();
        let visual = TOY.batch(1).videos.visual.narrow(1, 0, 3).unwrap().contiguous().unwrap();
        let turned = visual.index_select(&Tensor::new(&[2u32, 1, 0], &Device::Cpu).unwrap(), 1).unwrap();
        let sentence = Tensor::ones((1, 16), candle_core::DType::F32, &Device::Cpu).unwrap();
        let weights = |visual: &Tensor| net.remember(visual, &sentence).unwrap().weights;
        let back = weights(&turned).index_select(&Tensor::new(&[2u32, 1, 0], &Device::Cpu).unwrap(), 1).unwrap();
        assert!(gap(&weights(&visual), &back) > 1e-3);
    }

    /// Windows are only ever compared with those of other queries, so the moments of one video must be each other's.
    #[test]
    fn the_moments_of_one_video_can_be_learnt_by_heart() {
        let batch = of_one_video(&Toy { clips: 12, ..TOY }.batch(1));
        let build = |vb: VarBuilder| Acrn::new(&config(), &TOY.given(), vb);
        assert_learnt_by_heart(build, &batch, 600, 5e-3, 0.5);
    }
}
