//! The two decoders of CNM and CPL: one reads clips, one reads words, and either can look at what the other has read.

use candle_core::{D, Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::Pass;

use super::{LayerNorm, Linear, MultiHead, TransformerSize, linear, see_only};

/// Added to a variance before its root.
const EPS: f64 = 1e-5;
/// Added to the weight of a clip, so that a row of weights never sums to 0.
const TINY: f64 = 1e-10;

/// The two decoders.
#[derive(Debug, Clone)]
pub struct DualTransformer {
    clips: Vec<Layer>,
    words: Vec<Layer>,
}

/// A sequence, `[batch, steps, width]`, and which of its steps are real, `[batch, steps]`.
#[derive(Debug, Clone, Copy)]
pub struct Sequence<'a> {
    /// The steps.
    pub x: &'a Tensor,
    /// 1 where a step is real.
    pub mask: &'a Tensor,
}

/// What a decoder gave, and how its last layer looked at the memory.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// `[batch, steps, width]`.
    pub x: Tensor,
    /// Mean over heads, `[batch, steps, memory]`; `None` without a memory.
    pub attention: Option<Tensor>,
}

#[derive(Debug, Clone)]
struct Layer {
    self_attn: MultiHead,
    memory_attn: MultiHead,
    widen: Linear,
    narrow: Linear,
    norms: [LayerNorm; 3],
    dropout: f64,
}

impl DualTransformer {
    /// `layers`: of the decoder of clips, of the decoder of words.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(size: TransformerSize, layers: [usize; 2], vb: VarBuilder) -> Result<Self> {
        let stack = |name: &str, layers: usize| {
            let vb = vb.pp(name).pp("decoder_layers");
            (0..layers).map(|number| Layer::new(size, &vb.pp(number))).collect::<Result<Vec<_>>>()
        };
        Ok(Self { clips: stack("decoder1", layers[0])?, words: stack("decoder2", layers[1])? })
    }

    /// Clips that have looked at the words: `[batch, clips, width]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn clips_from_words(&self, clips: Sequence, words: Sequence, pass: &Pass) -> Result<Tensor> {
        let memory = decode(&self.words, words, None, [None, None], pass)?.x;
        let memory = Sequence { x: &memory, mask: words.mask };
        Ok(decode(&self.clips, clips, Some(memory), [None, None], pass)?.x)
    }

    /// Words that have looked at the clips, at each as much as `weights [batch, clips]` lets them.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn words_from_clips(
        &self,
        words: Sequence,
        clips: Sequence,
        weights: Option<&Tensor>,
        pass: &Pass,
    ) -> Result<Decoded> {
        let memory = decode(&self.clips, clips, None, [weights, None], pass)?.x;
        let memory = Sequence { x: &memory, mask: clips.mask };
        decode(&self.words, words, Some(memory), [None, weights], pass)
    }
}

/// `weights`: of the sequence's own steps, of the memory's.
fn decode(
    layers: &[Layer],
    sequence: Sequence,
    memory: Option<Sequence>,
    weights: [Option<&Tensor>; 2],
    pass: &Pass,
) -> Result<Decoded> {
    let own_bias = see_only(sequence.mask)?.broadcast_add(&causal(sequence.x)?)?;
    let memory_bias = memory.map(|memory| see_only(memory.mask)).transpose()?;
    let mut decoded = Decoded { x: sequence.x.clone(), attention: None };
    for layer in layers {
        let x = &decoded.x;
        let (seen, _) = layer.look(&layer.self_attn, x, x, &own_bias, weights[0], pass)?;
        let mut x = layer.norms[0].forward(&(x + seen)?)?;
        let mut attention = None;
        if let (Some(memory), Some(bias)) = (memory, &memory_bias) {
            let (seen, mean) = layer.look(&layer.memory_attn, &x, memory.x, bias, weights[1], pass)?;
            x = layer.norms[1].forward(&(x + seen)?)?;
            attention = Some(mean);
        }
        let inner = pass.dropout(&layer.widen.forward(&x)?.relu()?, layer.dropout)?;
        let thought = pass.dropout(&layer.narrow.forward(&inner)?, layer.dropout)?;
        decoded = Decoded { x: layer.norms[2].forward(&(x + thought)?)?, attention };
    }
    Ok(decoded)
}

/// Hides from every step what comes after it, `[1, 1, steps, steps]`.
fn causal(x: &Tensor) -> Result<Tensor> {
    let steps = x.dim(1)?;
    let hidden = (0..steps * steps).map(|pair| if pair % steps > pair / steps { -1e9f32 } else { 0.0 });
    Tensor::from_vec(hidden.collect(), (1, 1, steps, steps), x.device())
}

impl Layer {
    fn new(size: TransformerSize, vb: &VarBuilder) -> Result<Self> {
        let norm = |name: &str| LayerNorm::new(size.width, EPS, vb.pp(name));
        Ok(Self {
            self_attn: MultiHead::new(size.width, size.heads, vb.pp("self_attn"))?,
            memory_attn: MultiHead::new(size.width, size.heads, vb.pp("encoder_attn"))?,
            widen: linear(size.width, size.ffn, vb.pp("fc1"))?,
            narrow: linear(size.ffn, size.width, vb.pp("fc2"))?,
            norms: [norm("self_attn_layer_norm")?, norm("encoder_attn_layer_norm")?, norm("final_layer_norm")?],
            dropout: size.dropout,
        })
    }

    /// What is seen of `keys`, each weighted after the softmax, and the mean attention over heads.
    fn look(
        &self,
        attention: &MultiHead,
        x: &Tensor,
        keys: &Tensor,
        bias: &Tensor,
        weights: Option<&Tensor>,
        pass: &Pass,
    ) -> Result<(Tensor, Tensor)> {
        let mut seen = attention.weights(x, keys, Some(bias))?;
        if let Some(weights) = weights {
            seen = seen.broadcast_mul(&(weights + TINY)?.unsqueeze(1)?.unsqueeze(1)?)?;
            seen = seen.broadcast_div(&seen.sum_keepdim(D::Minus1)?)?;
        }
        let mixed = attention.mix(&pass.dropout(&seen, self.dropout)?, keys)?;
        Ok((pass.dropout(&mixed, self.dropout)?, seen.mean(1)?))
    }
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{DType, Device, Params};

    use super::*;
    use crate::testing::gap;

    #[test]
    fn even_weights_change_nothing() {
        let size = TransformerSize { width: 8, heads: 2, ffn: 12, dropout: 0.0 };
        let net = DualTransformer::new(size, [2, 2], Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let steps = |count: usize| {
            Tensor::arange(0f32, 16.0 * count as f32, &Device::Cpu)
                .unwrap()
                .reshape((2, count, 8))
                .unwrap()
                .sin()
                .unwrap()
        };
        let ones = |count: usize| Tensor::ones((2, count), DType::F32, &Device::Cpu).unwrap();
        let (clips, words, clip_mask, word_mask) = (steps(6), steps(4), ones(6), ones(4));
        let (clips, words) = (Sequence { x: &clips, mask: &clip_mask }, Sequence { x: &words, mask: &word_mask });
        let pass = Pass::answering();
        let plain = net.words_from_clips(words, clips, None, &pass).unwrap();
        let even = net.words_from_clips(words, clips, Some(&ones(6)), &pass).unwrap();
        assert!(gap(&plain.x, &even.x) < 1e-5);
        let few = Tensor::new(&[[1f32, 1.0, 0.0, 0.0, 0.0, 0.0]; 2], &Device::Cpu).unwrap();
        assert!(gap(&plain.x, &net.words_from_clips(words, clips, Some(&few), &pass).unwrap().x) > 1e-3);
    }
}
