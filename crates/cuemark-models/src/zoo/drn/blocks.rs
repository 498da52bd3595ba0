//! What the network is made of: the query at every level, convolutions, and the head that levels share.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, softmax};

use super::{DrnConfig, LevelOut};
use crate::Result;
use crate::layers::{BatchNorm, Conv1d, Linear, Recurrent, Steps, Ways, last_step, linear, real_steps};

/// The probability that the score head starts with everywhere.
const PRIOR: f64 = 0.01;

/// One query vector per level.
#[derive(Debug)]
pub(super) struct QueryEncoder {
    pub(super) words: Recurrent,
    sentence: Linear,
    of_level: Vec<Linear>,
    pub(super) score: Linear,
}

/// Convolution, batch norm, ReLU.
#[derive(Debug)]
pub(super) struct Block {
    conv: Conv1d,
    norm: BatchNorm,
}

/// What is read off every location; one set of weights for all levels.
#[derive(Debug)]
pub(super) struct Head {
    class_tower: Vec<Block>,
    box_tower: Vec<Block>,
    pub(super) class: Conv1d,
    pub(super) distances: Conv1d,
    pub(super) scales: Vec<Tensor>,
    mix: Block,
    pub(super) overlap: (Block, Conv1d),
}

/// Every step of `x [batch, steps, width]` repeated until there are `steps`.
pub(super) fn repeated(x: &Tensor, steps: usize) -> Result<Tensor> {
    let (batch, few, width) = x.dims3()?;
    let times = steps / few.max(1);
    Ok(x.unsqueeze(2)?.broadcast_as((batch, few, times, width))?.reshape((batch, few * times, width))?)
}

impl QueryEncoder {
    pub(super) fn new(words: usize, config: &DrnConfig, vb: &VarBuilder) -> Result<Self> {
        let (lstm, levels) = (config.lstm, config.levels.len());
        let of_level = |level: usize| linear(lstm, 2 * lstm, vb.pp(format!("qInput{level}")));
        Ok(Self {
            words: Recurrent::lstm(words, lstm, config.lstm_layers, Ways::Both, vb.pp("biLSTM"))?,
            sentence: linear(4 * lstm, lstm, vb.pp("qInput"))?,
            of_level: (0..levels).map(of_level).collect::<candle_core::Result<_>>()?,
            score: linear(2 * lstm, 1, vb.pp("cmd_inter2logits"))?,
        })
    }

    /// One vector per level, `[batch, 2 lstm]`.
    pub(super) fn forward(&self, words: &Tensor, lengths: &[usize]) -> Result<Vec<Tensor>> {
        let words = self.words.forward_packed(words, lengths)?;
        let first = words.narrow(1, 0, 1)?.squeeze(1)?;
        let sentence = Tensor::cat(&[first, last_step(&words, lengths)?], 1)?;
        let sentence = self.sentence.forward(&sentence)?.relu()?;
        let real = real_steps(lengths, words.dim(1)?, words.device())?;
        let command = |of_level: &Linear| {
            let guide = of_level.forward(&sentence)?.unsqueeze(1)?;
            let scores = self.score.forward(&words.broadcast_mul(&guide)?)?.squeeze(D::Minus1)?;
            let weights = softmax(&mask_out(&scores, &real, -1e30)?, D::Minus1)?;
            Ok(weights.unsqueeze(1)?.times(&words)?.squeeze(1)?)
        };
        self.of_level.iter().map(command).collect()
    }
}

impl Block {
    pub(super) fn without_bias(
        inputs: usize,
        outputs: usize,
        kernel: usize,
        steps: Steps,
        vb: &VarBuilder,
    ) -> Result<Self> {
        let conv = Conv1d::without_bias(inputs, outputs, kernel, steps, vb.pp(0))?;
        Ok(Self { conv, norm: BatchNorm::new(outputs, vb.pp(1))? })
    }

    pub(super) fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        Ok(self.norm.forward(&self.conv.forward(x)?, pass)?.relu()?)
    }
}

/// A convolution of the head: small weights, so that it begins with its bias everywhere.
fn head_conv(inputs: usize, outputs: usize, kernel: usize, bias: f64, vb: &VarBuilder) -> Result<Conv1d> {
    // Whoever asks for a parameter first decides what it begins with.
    vb.get_with_hints((outputs, inputs, kernel), "weight", Init::Randn { mean: 0.0, stdev: 0.01 })?;
    vb.get_with_hints(outputs, "bias", Init::Const(bias))?;
    let steps = Steps { padding: kernel / 2, ..Steps::default() };
    Ok(Conv1d::new(inputs, outputs, kernel, steps, vb.clone())?)
}

impl Head {
    pub(super) fn new(width: usize, tower: usize, levels: usize, vb: &VarBuilder) -> Result<Self> {
        let block = |inputs: usize, outputs: usize, kernel: usize, vb: VarBuilder, place: usize| -> Result<Block> {
            let conv = head_conv(inputs, outputs, kernel, 0.0, &vb.pp(place))?;
            Ok(Block { conv, norm: BatchNorm::new(outputs, vb.pp(place + 1))? })
        };
        // A tower counts its ReLUs: three places per convolution.
        let towers = |name: &str| (0..tower).map(|n| block(width, width, 3, vb.pp(name), 3 * n)).collect::<Result<_>>();
        let scale = |level: usize| vb.pp("scales").pp(level).get_with_hints(1, "scale", Init::Const(1.0));
        // Published checkpoints hold this layer and never use it.
        head_conv(width, 1, 3, 0.0, &vb.pp("centerness"))?;
        Ok(Self {
            class_tower: towers("cls_tower")?,
            box_tower: towers("bbox_tower")?,
            class: head_conv(width, 1, 3, -((1.0 - PRIOR) / PRIOR).ln(), &vb.pp("cls_logits"))?,
            distances: head_conv(width, 2, 3, 0.0, &vb.pp("bbox_pred"))?,
            scales: (0..levels).map(scale).collect::<candle_core::Result<_>>()?,
            mix: block(2 * width, width, 1, vb.pp("mix_fc"), 0)?,
            overlap: (
                block(width, width / 2, 3, vb.pp("iou_scores"), 0)?,
                head_conv(width / 2, 1, 1, 0.0, &vb.pp("iou_scores.3"))?,
            ),
        })
    }

    /// # Shapes
    /// - x `[batch, locations, width]`, scale `[1]`
    pub(super) fn forward(&self, x: &Tensor, scale: &Tensor, pass: &Pass) -> Result<LevelOut> {
        let run = |tower: &[Block]| tower.iter().try_fold(x.clone(), |x, block| block.forward(&x, pass));
        let (of_class, of_box) = (run(&self.class_tower)?, run(&self.box_tower)?);
        let distances = self.distances.forward(&of_box)?.broadcast_mul(scale)?.exp()?;
        let mixed = self.mix.forward(&Tensor::cat(&[&of_class, &of_box], 2)?, pass)?;
        let overlap = self.overlap.1.forward(&self.overlap.0.forward(&mixed, pass)?)?;
        Ok(LevelOut { class: self.class.forward(&of_class)?.squeeze(2)?, distances, overlap: overlap.squeeze(2)? })
    }
}
