//! What the network is made of: BERT layers, the reader that fuses clips with a query, and the heads.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{gelu, l2_normalise, l2_normalise_along, mask_out, softmax};

use super::{ConquerConfig, NO_CLIP};
use crate::Result;
use crate::layers::{
    Conv1d, InputProjection, LayerNorm, Linear, SelfAttention, Steps, bert_linear, bert_linear_no_bias, bert_table,
};

/// What subtitles add: their projection and the query's weights for the two streams.
#[derive(Debug)]
pub(super) struct Subtitle {
    pub(super) project: InputProjection,
    clusters: Tensor,
    centres: Tensor,
    pub(super) norm: LayerNorm,
    weights: Linear,
}

/// Positions and token types.
#[derive(Debug)]
pub(super) struct Embeddings {
    positions: Tensor,
    types: Tensor,
    pub(super) norm: LayerNorm,
}

/// A whole BERT layer, norms after the sums.
#[derive(Debug)]
pub(super) struct BertLayer {
    attention: SelfAttention,
    widen: Linear,
    narrow: Linear,
    pub(super) norm: LayerNorm,
    pub(super) dropout: f64,
}

/// Projection and transformer.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) project: InputProjection,
    pub(super) layers: Vec<BertLayer>,
}

#[derive(Debug)]
pub(super) struct ClipScore {
    first: Conv1d,
    second: Conv1d,
}

#[derive(Debug)]
pub(super) struct VideoScoreHead {
    reader: Reader,
    first: Linear,
    second: Linear,
}

impl Embeddings {
    pub(super) fn new(steps: usize, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            positions: bert_table(steps, hidden, vb.pp("position_embeddings"))?,
            types: bert_table(2, hidden, vb.pp("token_type_embeddings"))?,
            norm: LayerNorm::new(hidden, 1e-5, vb.pp("LayerNorm"))?,
        })
    }

    /// Adds positions from 0 and the vector of one token type.
    pub(super) fn place(&self, x: &Tensor, kind: usize) -> Result<Tensor> {
        let positions = self.positions.narrow(0, 0, x.dim(1)?)?;
        Ok(x.broadcast_add(&positions.broadcast_add(&self.types.narrow(0, kind, 1)?)?)?)
    }
}

impl BertLayer {
    pub(super) fn stack(count: usize, config: &ConquerConfig, vb: &VarBuilder) -> Result<Vec<Self>> {
        let ConquerConfig { hidden, wide, heads, dropout, .. } = *config;
        let layer = |number: usize| {
            let vb = vb.pp("encoder.layer").pp(number);
            Ok(Self {
                attention: SelfAttention::new(hidden, heads, dropout, vb.pp("attention"))?,
                widen: bert_linear(hidden, wide, vb.pp("intermediate.dense"))?,
                narrow: bert_linear(wide, hidden, vb.pp("output.dense"))?,
                norm: LayerNorm::new(hidden, 1e-5, vb.pp("output.LayerNorm"))?,
                dropout,
            })
        };
        (0..count).map(layer).collect()
    }

    pub(super) fn forward(&self, x: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let x = self.attention.forward(x, Some(mask), pass)?;
        let wide = gelu(&self.widen.forward(&x)?)?;
        Ok(self.norm.forward(&(pass.dropout(&self.narrow.forward(&wide)?, self.dropout)? + x)?)?)
    }
}

pub(super) fn run(layers: &[BertLayer], x: Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
    layers.iter().try_fold(x, |x, layer| layer.forward(&x, mask, pass))
}

impl Reader {
    pub(super) fn new(inputs: usize, config: &ConquerConfig, vb: &VarBuilder) -> Result<Self> {
        let project = InputProjection::new(inputs, config.hidden, config.dropout, vb.pp("trans_linear"))?;
        Ok(Self { project, layers: BertLayer::stack(config.layers.video, config, vb)? })
    }

    pub(super) fn forward(&self, x: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        run(&self.layers, self.project.forward(x, pass)?, mask, pass)
    }
}

impl ClipScore {
    pub(super) fn new(config: &ConquerConfig, vb: &VarBuilder) -> Result<Self> {
        let vb = vb.pp("clip_score_predictor");
        let steps = Steps { padding: config.kernel / 2, ..Steps::default() };
        Ok(Self {
            first: Conv1d::without_bias(config.hidden, config.scoring, config.kernel, steps, vb.pp(0))?,
            second: Conv1d::without_bias(config.scoring, 1, 1, Steps::default(), vb.pp(2))?,
        })
    }

    pub(super) fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let logits = self.second.forward(&self.first.forward(x)?.relu()?)?.squeeze(2)?;
        Ok(mask_out(&logits, mask, NO_CLIP)?)
    }
}

impl Subtitle {
    pub(super) fn new(width: usize, config: &ConquerConfig, vb: &VarBuilder) -> Result<Self> {
        let ConquerConfig { hidden, clusters, dropout, .. } = *config;
        let pooling = vb.pp("query_weight.text_pooling");
        let init = Init::Randn { mean: 0.0, stdev: (hidden as f64).sqrt().recip() };
        Ok(Self {
            project: InputProjection::new(width, hidden, dropout, vb.pp("encoder.videoEncoder.text_linear"))?,
            clusters: pooling.get_with_hints((hidden, clusters), "clusters", init)?,
            centres: pooling.get_with_hints((1, hidden, clusters), "clusters2", init)?,
            norm: LayerNorm::new(clusters, 1e-5, pooling.pp("LayerNorm"))?,
            weights: bert_linear_no_bias(hidden * clusters, 2, vb.pp("query_weight.moe_fc_txt"))?,
        })
    }

    /// How much the query listens to video and to subtitle, `[queries, 2]`: words pooled by their nearness to clusters.
    pub(super) fn weigh(&self, words: &Tensor, dropout: f64, pass: &Pass) -> Result<Tensor> {
        let nearness = softmax(&self.norm.forward(&words.times(&self.clusters)?)?, D::Minus1)?;
        let gathered = words.transpose(1, 2)?.contiguous()?.times(&nearness)?; // [queries, hidden, clusters]
        let shares = nearness.sum_keepdim(1)?;
        let residual = (gathered - self.centres.broadcast_mul(&shares)?)?;
        let pooled = l2_normalise(&l2_normalise_along(&residual, 1)?.flatten_from(1)?)?;
        Ok(softmax(&self.weights.forward(&pass.dropout(&pooled, dropout)?)?, D::Minus1)?)
    }
}

impl VideoScoreHead {
    pub(super) fn new(config: &ConquerConfig, vb: &VarBuilder) -> Result<Self> {
        let predictor = vb.pp("video_score_predictor");
        Ok(Self {
            reader: Reader::new(5 * config.hidden, config, &vb.pp("video_feature_modeling"))?,
            first: bert_linear_no_bias(config.hidden, config.scoring, predictor.pp(0))?,
            second: bert_linear_no_bias(config.scoring, 1, predictor.pp(2))?,
        })
    }

    /// `[pairs, clips, 5 hidden]` to `[pairs]`; the maximum is over padded clips too, as published.
    pub(super) fn forward(&self, x: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let best = self.reader.forward(x, mask, pass)?.max(1)?;
        Ok(self.second.forward(&self.first.forward(&best)?.relu()?)?.squeeze(1)?)
    }
}
