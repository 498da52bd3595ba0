//! Layers in which steps look at themselves or at another sequence, normalised after each part.

use candle_core::{Device, Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::Pass;
use serde::{Deserialize, Serialize};

use super::super::{LayerNorm, MultiHead};
use super::blocks::{Drawn, EPS, FeedForward, LayerPlan, Residual};

/// Self-attention layers, `layers.0` and on; no norm after the last.
#[derive(Debug, Clone)]
pub struct Encoder(Vec<EncoderLayer>);

#[derive(Debug, Clone)]
struct EncoderLayer {
    self_attn: MultiHead,
    feed_forward: FeedForward,
    norms: [LayerNorm; 2],
    dropout: f64,
    residual: Residual,
}

impl Encoder {
    /// `count` layers.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(plan: &LayerPlan, count: usize, vb: &VarBuilder) -> Result<Self> {
        let layer = |number: usize| {
            let vb = vb.pp("layers").pp(number);
            Ok(EncoderLayer {
                self_attn: attention(plan, vb.pp("self_attn"))?,
                feed_forward: FeedForward::new(plan, &vb)?,
                norms: [
                    LayerNorm::new(plan.width, EPS, vb.pp("norm1"))?,
                    LayerNorm::new(plan.width, EPS, vb.pp("norm2"))?,
                ],
                dropout: plan.dropout,
                residual: plan.residual,
            })
        };
        Ok(Self((0..count).map(layer).collect::<Result<_>>()?))
    }

    /// # Shapes
    /// - x and place, which is added to queries and keys alone, `[batch, steps, width]`
    /// - bias, added to the logits, broadcast to `[batch, heads, steps, steps]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor, place: &Tensor, bias: &Tensor, pass: &Pass) -> Result<Tensor> {
        let mut x = x.clone();
        for layer in &self.0 {
            let placed = x.broadcast_add(place)?;
            let seen = layer.self_attn.forward(&placed, &placed, &x, Some(bias), layer.dropout, pass)?;
            x = layer.norms[0].forward(&layer.residual.add(&x, &seen, pass)?)?;
            let thought = layer.feed_forward.forward(&x, pass)?;
            x = layer.norms[1].forward(&layer.residual.add(&x, &thought, pass)?)?;
        }
        Ok(x)
    }
}

pub(super) fn attention(plan: &LayerPlan, vb: VarBuilder) -> Result<MultiHead> {
    match plan.drawn {
        Drawn::Default => MultiHead::new(plan.width, plan.heads, vb),
        Drawn::Glorot => MultiHead::glorot(plan.width, plan.heads, vb),
    }
}

/// One sequence looks at another, which stays as it is.
#[derive(Debug, Clone)]
pub struct CrossLayer {
    self_attn: MultiHead,
    tail: CrossTail,
    dropout: f64,
}

/// What follows the attention of a [`CrossLayer`].
#[derive(Debug, Clone)]
pub struct CrossTail {
    feed_forward: FeedForward,
    norms: [LayerNorm; 2],
    residual: Residual,
}

impl CrossTail {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(plan: &LayerPlan, vb: &VarBuilder) -> Result<Self> {
        let norm = |name: &str| LayerNorm::new(plan.width, EPS, vb.pp(name));
        let feed_forward = FeedForward::new(plan, vb)?;
        Ok(Self { feed_forward, norms: [norm("norm1")?, norm("norm2")?], residual: plan.residual })
    }

    /// What was seen is added; then the feed-forward part reads the normed sum, and its own residual adds the sum as it was.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor, seen: &Tensor, pass: &Pass) -> Result<Tensor> {
        let sum = self.residual.add(x, seen, pass)?;
        let thought = self.feed_forward.forward(&self.norms[0].forward(&sum)?, pass)?;
        self.norms[1].forward(&self.residual.add(&sum, &thought, pass)?)
    }
}

impl CrossLayer {
    /// `count` layers, `layers.0` and on.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn stack(plan: &LayerPlan, count: usize, vb: &VarBuilder) -> Result<Vec<Self>> {
        let layer = |number: usize| {
            let vb = vb.pp("layers").pp(number);
            let self_attn = attention(plan, vb.pp("self_attn"))?;
            Ok(Self { self_attn, tail: CrossTail::new(plan, &vb)?, dropout: plan.dropout })
        };
        (0..count).map(layer).collect()
    }

    /// # Shapes
    /// - x and its place `[batch, steps, width]`; keys, their place already added, and values `[batch, others, width]`
    /// - bias as [`cross_bias`] gives it
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(
        &self,
        x: &Tensor,
        place: Option<&Tensor>,
        [keys, values]: [&Tensor; 2],
        bias: &Tensor,
        pass: &Pass,
    ) -> Result<Tensor> {
        let placed = place.map_or_else(|| Ok(x.clone()), |place| x + place)?;
        let seen = self.self_attn.forward(&placed, keys, values, Some(bias), self.dropout, pass)?;
        self.tail.forward(x, &seen, pass)
    }
}

/// Which keys a padded step may not see beyond padded keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskOrder {
    /// None: answers do not depend on the neighbours in the batch. Default.
    #[default]
    None,
    /// As published: head `h` of sample `b` also obeys the mask of sample `(b heads + h) mod batch`, which takes valid words from
    /// valid clips whenever lengths differ. For exact reproduction only.
    Tiled,
}

/// What padded clips and words do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// Nothing: answers do not depend on how a batch is padded. Default.
    #[default]
    Masked,
    /// They take part wherever the published code lets them. For exact reproduction only.
    Leaks,
}

/// Sequences padded to one length.
#[derive(Debug, Clone, Copy)]
pub struct Padded<'a> {
    /// Real steps of each.
    pub lengths: &'a [usize],
    /// Steps of all, padding included.
    pub steps: usize,
}

/// What is added to a logit so that its key is not seen.
const UNSEEN: f32 = -1e9;

/// The bias on the logits of `queries` that look at `keys`: padded keys are hidden, and what `order` hides besides.
///
/// # Shapes
/// - returns `[batch, 1, 1, keys]`, or `[batch, heads, queries, keys]` when samples are mixed
///
/// # Errors
/// Those of the tensor operations.
pub fn cross_bias(
    order: MaskOrder,
    queries: Padded<'_>,
    keys: Padded<'_>,
    heads: usize,
    device: &Device,
) -> Result<Tensor> {
    let batch = keys.lengths.len();
    let hidden = |hide: bool| if hide { UNSEEN } else { 0.0 };
    let mixed = order == MaskOrder::Tiled && queries.lengths.iter().any(|length| *length < queries.steps);
    if !mixed {
        let bias = keys.lengths.iter().flat_map(|length| (0..keys.steps).map(move |key| hidden(key >= *length)));
        return Tensor::from_vec(bias.collect::<Vec<_>>(), (batch, 1, 1, keys.steps), device);
    }
    let mut bias = Vec::with_capacity(batch * heads * queries.steps * keys.steps);
    for (sample, length) in keys.lengths.iter().enumerate() {
        for head in 0..heads {
            let other = (sample * heads + head) % batch;
            let [first, limit] = [queries.lengths[other], keys.lengths[other]];
            for query in 0..queries.steps {
                let both = |key: usize| query >= first && key >= limit;
                bias.extend((0..keys.steps).map(|key| hidden(key >= *length || both(key))));
            }
        }
    }
    Tensor::from_vec(bias, (batch, heads, queries.steps, keys.steps), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bias(order: MaskOrder, clips: &[usize]) -> Tensor {
        let (queries, keys) = (Padded { lengths: clips, steps: 4 }, Padded { lengths: &[3, 1], steps: 3 });
        cross_bias(order, queries, keys, 2, &Device::Cpu).unwrap().broadcast_as((2, 2, 4, 3)).unwrap()
    }

    #[test]
    fn the_published_order_mixes_samples_only_when_videos_differ_in_length() {
        assert!(crate::testing::gap(&bias(MaskOrder::Tiled, &[4, 4]), &bias(MaskOrder::None, &[4, 4])) == 0.0);
        let tiled = bias(MaskOrder::Tiled, &[4, 2]);
        assert!(crate::testing::gap(&tiled, &bias(MaskOrder::None, &[4, 2])) > 1e8);
        // The second head of the first sample obeys the second sample: its clips 2 and 3 lose words 1 and 2.
        let seen = |head: usize, clip: usize| {
            let row = tiled.get(0).unwrap().get(head).unwrap().get(clip).unwrap().to_vec1::<f32>().unwrap();
            row.iter().filter(|bias| **bias == 0.0).count()
        };
        assert_eq!([seen(0, 3), seen(1, 1), seen(1, 2), seen(1, 3)], [3, 3, 1, 1]);
    }
}
