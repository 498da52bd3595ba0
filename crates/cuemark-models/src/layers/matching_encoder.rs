//! Moments and sentences mapped, independently of each other, into two joint spaces: the network of MMN, which RMMN and
//! TRM build on (blocks A1 to A5 of 2D-TAN with batch norm, and DistilBERT).
//!
//! One space tells how well a moment overlaps what a sentence describes, the other which sentence it belongs to.

use std::sync::Arc;

use candle_core::{D, Device, Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{cosine, masked_mean, sigmoid};
use cuemark_tensor::map::{LayerPlan, StackPlan, Support, map_conv};
use serde::{Deserialize, Serialize};

use super::{
    BatchNorm, BertSize, CellFill, CellFilling, ClipProjection, ConstantRows, FillNames, LayerNorm, Linear, MapSize,
    MapSupport, MomentMap, Shares, TokenEncoder, linear, pointwise, real_steps, uniform,
};
use crate::Given;

/// Sizes of a matching encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchingEncoderSize {
    /// Sizes of the map.
    pub map: MapSize,
    /// How cells are made from clips. Default: pool
    #[serde(default)]
    pub fill: CellFill,
    /// Width of a cell before the joint spaces. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Width of the joint spaces. Default: 256
    #[serde(default = "joint")]
    pub joint: usize,
    /// Side of the convolutions' kernel.
    pub kernel: usize,
    /// Number of convolutions.
    pub layers: usize,
    /// Which cells the convolutions compute. Default: exact
    #[serde(default)]
    pub support: MapSupport,
    /// What a cosine is multiplied by before it becomes a probability. Default: 10
    #[serde(default = "scale")]
    pub scale: f64,
    /// The sentence encoder. Default: the published DistilBERT
    #[serde(default)]
    pub text: BertSize,
}

fn hidden() -> usize {
    512
}

fn joint() -> usize {
    256
}

fn scale() -> f64 {
    10.0
}

/// How the sentence encoder is trained beside the rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextTraining {
    /// The factor on the learning rate of DistilBERT. Default: 0.1
    pub rate: f64,
    /// Epochs at the beginning in which DistilBERT stays as it is. Default: 0
    pub frozen_epochs: usize,
}

impl Default for TextTraining {
    fn default() -> Self {
        Self { rate: 0.1, frozen_epochs: 0 }
    }
}

impl TextTraining {
    /// The factor on the learning rate of one parameter in this pass.
    pub fn factor(&self, parameter: &str, pass: &Pass) -> f64 {
        if !parameter.starts_with("text_encoder.bert.") {
            return 1.0;
        }
        let frozen = pass.stage() == 0 && pass.epoch() <= self.frozen_epochs;
        if frozen { 0.0 } else { self.rate }
    }
}

/// Vectors in the two joint spaces, of any shape `[.., joint]`.
#[derive(Debug, Clone)]
pub struct TwoSpaces {
    /// Where a moment lies near the sentence it belongs to.
    pub matching: Tensor,
    /// Where a moment lies near sentences whose span it overlaps.
    pub overlap: Tensor,
}

/// Both encoders.
#[derive(Debug, Clone)]
pub struct MatchingEncoder {
    /// Videos to moments.
    pub moments: MomentEncoder,
    /// Tokens to sentences.
    pub sentences: SentenceEncoder,
    scale: f64,
}

impl MatchingEncoder {
    /// From the clips and tokens that the data gives.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that cannot be.
    pub fn new(size: &MatchingEncoderSize, given: &Given, vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            moments: MomentEncoder::new(size, given.visual, &vb)?,
            sentences: SentenceEncoder::new(size, given, &vb.pp("text_encoder"))?,
            scale: size.scale,
        })
    }

    /// Logits of the overlap of every moment with what every sentence describes.
    ///
    /// # Shapes
    /// - moments `[videos, cells, joint]`, sentences `[sentences, joint]`; returns `[sentences, videos, cells]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn overlap_logits(&self, moments: &TwoSpaces, sentences: &TwoSpaces) -> Result<Tensor> {
        cosines(&sentences.overlap, &moments.overlap)? * self.scale
    }

    /// Scores to rank by: `(cosine / 2 + 1/2)^power * probability`, shapes as both inputs have.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn scores(matching: &Tensor, overlap_logits: &Tensor, power: f64) -> Result<Tensor> {
        // A cosine may be a rounding error below -1, of which no root can be taken.
        matching.affine(0.5, 0.5)?.maximum(0.0)?.powf(power)? * sigmoid(overlap_logits)?
    }
}

/// Cosine of every sentence with every moment.
///
/// # Shapes
/// - sentences `[sentences, joint]`, moments `[videos, cells, joint]`; returns `[sentences, videos, cells]`
///
/// # Errors
/// Those of the tensor operations.
pub fn cosines(sentences: &Tensor, moments: &Tensor) -> Result<Tensor> {
    let (videos, cells, joint) = moments.dims3()?;
    let all = cosine(sentences, &moments.reshape((videos * cells, joint))?)?;
    all.reshape((sentences.dim(0)?, videos, cells))
}

/// 1 where `video[row]` is the column, `[rows, videos]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn one_video_each(video: &[usize], videos: usize, device: &Device) -> Result<Tensor> {
    let row = |own: &usize| {
        let own = *own;
        (0..videos).map(move |video| f32::from(u8::from(video == own)))
    };
    Tensor::from_vec(video.iter().flat_map(row).collect::<Vec<f32>>(), (video.len(), videos), device)
}

/// The cells of one video for each row: `[rows, videos, cells]` and `chosen [rows, videos]`, one 1 in each row, to `[rows, cells]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn cells_of(x: &Tensor, chosen: &Tensor) -> Result<Tensor> {
    // A product with ones and zeros: its gradient is one too, where that of a lookup adds row by row.
    x.broadcast_mul(&chosen.unsqueeze(2)?)?.sum(1)
}

/// Video branch: clips, map, convolutions with batch norm, two heads.
#[derive(Debug, Clone)]
pub struct MomentEncoder {
    map: MomentMap,
    clips: ClipProjection,
    fill: CellFilling,
    layers: Vec<NormLayer>,
    training: Stack,
    answering: Stack,
    matching: Linear,
    overlap: Linear,
}

#[derive(Debug, Clone)]
struct NormLayer {
    weight: Tensor,
    bias: Tensor,
    norm: BatchNorm,
}

/// Which cells each layer computes, and what each is multiplied by.
#[derive(Debug, Clone)]
struct Stack {
    layers: Vec<(Arc<LayerPlan>, Shares)>,
    valid_rows: Tensor,
    support: Support,
}

/// Everything on the way to the joint spaces, one row per valid cell.
#[derive(Debug, Clone)]
pub struct MomentForward {
    /// Projected clips, `[videos, clips, hidden]`.
    pub clips: Tensor,
    /// Cells before the convolutions, `[videos, cells, hidden]`.
    pub cells: Tensor,
    /// Moments in the two joint spaces, `[videos, cells, joint]`.
    pub moments: TwoSpaces,
}

impl MomentEncoder {
    fn new(size: &MatchingEncoderSize, visual: usize, vb: &VarBuilder) -> Result<Self> {
        let (hidden, kernel) = (size.hidden, size.kernel);
        let map = MomentMap::new(size.map.clips, &size.map.counts)?;
        let convolutions = vb.pp("proposal_conv");
        let layer = |number: usize| {
            let (conv, norm) = (convolutions.pp("convs").pp(number), convolutions.pp("bn").pp(number));
            let fan = uniform(hidden * kernel * kernel);
            let weight = conv.get_with_hints((hidden, hidden, kernel, kernel), "weight", fan)?;
            let bias = conv.get_with_hints(hidden, "bias", fan)?;
            Ok(NormLayer { weight, bias, norm: BatchNorm::new(hidden, norm)? })
        };
        // Batch norm takes its statistics over the whole padded map, so that training needs every cell that is not
        // constant; with running statistics those that reach a valid one suffice.
        let (training, answering) = match size.support {
            MapSupport::Exact => (Support::Reached, Support::Exact),
            MapSupport::Valid => (Support::Valid, Support::Valid),
        };
        let stack = |support| Stack::new(&map, kernel, size.layers, support, vb.device());
        Ok(Self {
            clips: ClipProjection::new(visual, hidden, size.map.clips, vb.pp("featpool.conv"))?,
            fill: CellFilling::new(&map, size.fill, FillNames::InOneRow, hidden, &vb.pp("feat2d.convs"))?,
            layers: (0..size.layers).map(layer).collect::<Result<_>>()?,
            training: stack(training)?,
            answering: stack(answering)?,
            matching: pointwise(hidden, size.joint, 2, convolutions.pp("conv1x1_contrastive"))?,
            overlap: pointwise(hidden, size.joint, 2, convolutions.pp("conv1x1_iou"))?,
            map,
        })
    }

    /// The map.
    pub fn map(&self) -> &MomentMap {
        &self.map
    }

    /// # Shapes
    /// - visual `[videos, pre_clips, d_visual]`
    ///
    /// # Errors
    /// When the clips of the map do not divide the pre-clips.
    pub fn forward(&self, visual: &Tensor, pass: &Pass) -> Result<MomentForward> {
        let clips = self.clips.forward(visual)?;
        let cells = self.fill.forward(&clips)?;
        let stack = if pass.is_training() { &self.training } else { &self.answering };
        let last = self.convolve(&cells, stack, pass)?;
        let last = if stack.support == Support::Reached { last.index_select(&stack.valid_rows, 1)? } else { last };
        Ok(MomentForward { clips, cells, moments: self.heads(&last)? })
    }

    /// The joint spaces on the whole map as the published network leaves them, invalid cells included: `[videos, joint, N, N]`.
    /// For comparison with a reference; answers never need it.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn on_whole_map(&self, cells: &Tensor) -> Result<TwoSpaces> {
        let device = cells.device();
        let stack = Stack::new(&self.map, self.kernel(), self.layers.len(), Support::Reached, device)?;
        let last = self.convolve(cells, &stack, &Pass::answering())?;
        let clips = self.map.layout().clips();
        // Row 0 of the padded input is zero: where every cell that nothing reaches looks.
        let mut rows = vec![0u32; clips * clips];
        for (row, (start, end)) in stack.layers.last().iter().flat_map(|(plan, _)| plan.outputs()).enumerate() {
            rows[*start as usize * clips + *end as usize] = row as u32 + 1;
        }
        let squares = last.pad_with_zeros(1, 1, 0)?.index_select(&Tensor::new(rows, device)?, 1)?;
        let spaces = self.heads(&squares)?;
        let square = |x: &Tensor| x.transpose(1, 2)?.reshape((x.dim(0)?, x.dim(2)?, clips, clips));
        Ok(TwoSpaces { matching: square(&spaces.matching)?, overlap: square(&spaces.overlap)? })
    }

    fn kernel(&self) -> usize {
        self.training.layers.first().map_or(1, |(plan, _)| plan.kernel())
    }

    fn convolve(&self, cells: &Tensor, stack: &Stack, pass: &Pass) -> Result<Tensor> {
        let videos = cells.dim(0)?;
        self.layers.iter().zip(&stack.layers).try_fold(cells.clone(), |x, (layer, (plan, share))| {
            let x = map_conv(&x, &layer.weight, Some(&layer.bias), plan, 1)?;
            // Cells of the padded map that see nothing hold the bias, and the published statistics count them.
            let outside =
                ConstantRows { rows: videos * (plan.dense_cells() - plan.output_count()), value: &layer.bias };
            let outside = (stack.support == Support::Reached).then_some(outside);
            layer.norm.forward_bent(&x, outside, Some(share), pass)
        })
    }

    fn heads(&self, x: &Tensor) -> Result<TwoSpaces> {
        Ok(TwoSpaces { matching: self.matching.forward(x)?, overlap: self.overlap.forward(x)? })
    }
}

impl Stack {
    fn new(map: &MomentMap, kernel: usize, layers: usize, support: Support, device: &Device) -> Result<Self> {
        let plan = StackPlan::new(map.layout(), kernel, layers, support)?;
        let layer = |plan: &Arc<LayerPlan>| Ok((Arc::clone(plan), Shares::new(plan.weights(), device)?));
        let valid_rows = Tensor::new(plan.valid_rows(), device)?;
        Ok(Self { layers: plan.layers.iter().map(layer).collect::<Result<_>>()?, valid_rows, support })
    }
}

/// Text branch: DistilBERT, mean over the real tokens, markers among them, layer norm, two heads.
#[derive(Debug, Clone)]
pub struct SentenceEncoder {
    bert: TokenEncoder,
    norm: LayerNorm,
    overlap: Linear,
    matching: Linear,
}

impl SentenceEncoder {
    fn new(size: &MatchingEncoderSize, given: &Given, vb: &VarBuilder) -> Result<Self> {
        let bert = TokenEncoder::new(&size.text, given, vb.pp("bert"))?;
        let dim = bert.width();
        Ok(Self {
            bert,
            norm: LayerNorm::new(dim, 1e-5, vb.pp("layernorm"))?,
            overlap: linear(dim, size.joint, vb.pp("fc_out1"))?,
            matching: linear(dim, size.joint, vb.pp("fc_out2"))?,
        })
    }

    /// What it reads of sentences: numbers of tokens, or the vectors that came with them ([`TokenEncoder::reads`]).
    pub fn reads<'a>(&self, ids: &'a Tensor, vectors: &'a Tensor) -> &'a Tensor {
        self.bert.reads(ids, vectors)
    }

    /// # Shapes
    /// - tokens: what [`SentenceEncoder::reads`] picked, `lengths` real ones each, markers included
    /// - returns `[sentences, joint]` in both spaces
    ///
    /// # Errors
    /// When there are more tokens than positions, or one is outside the vocabulary.
    pub fn forward(&self, tokens: &Tensor, lengths: &[usize], pass: &Pass) -> Result<TwoSpaces> {
        let mask = real_steps(lengths, tokens.dim(1)?, tokens.device())?;
        let hidden = self.bert.forward(tokens, &mask, pass)?;
        let mean = self.norm.forward(&masked_mean(&hidden, &mask.unsqueeze(D::Minus1)?, 1)?)?;
        Ok(TwoSpaces { matching: self.matching.forward(&mean)?, overlap: self.overlap.forward(&mean)? })
    }
}
