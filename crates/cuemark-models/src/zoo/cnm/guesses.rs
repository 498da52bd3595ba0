//! How badly hidden words are guessed from what a mask shows.

use candle_core::{DType, Device, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::Pass;

use super::{CnmConfig, kept_clips};
use crate::layers::{Decoded, DualTransformer, Linear, MaskedWords, Sequence, TransformerSize, guessing_loss, linear};
use crate::{Given, Result};

/// Everything but the layer that places the Gaussian.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) clips: Linear,
    pub(super) words: MaskedWords,
    pub(super) transformer: DualTransformer,
    guess: Linear,
    pub(super) dropout: f64,
}

/// Guesses from what the Gaussian covers, from everything, and from the rest.
pub(super) struct Guesses {
    pub(super) covered: Decoded,
    pub(super) covered_logits: Tensor,
    pub(super) whole: Tensor,
    pub(super) rest: Tensor,
}

/// How badly words are guessed, `[batch]` each.
pub(super) struct Badness {
    pub(super) covered: Tensor,
    pub(super) whole: Tensor,
    pub(super) rest: Tensor,
}

impl Badness {
    pub(super) fn reconstruction(&self) -> Result<Tensor> {
        Ok((self.covered.mean_all()? + self.whole.mean_all()?)?)
    }
}

impl Guesses {
    pub(super) fn badness(&self, ids: &Tensor, mask: &Tensor) -> Result<Badness> {
        let badness = |logits: &Tensor| guessing_loss(logits, ids, mask);
        Ok(Badness {
            covered: badness(&self.covered_logits)?,
            whole: badness(&self.whole)?,
            rest: badness(&self.rest)?,
        })
    }
}

impl Body {
    pub(super) fn new(config: &CnmConfig, given: &Given, vocabulary: usize, vb: &VarBuilder) -> Result<Self> {
        let CnmConfig { hidden, heads, ffn, dropout, .. } = *config;
        let size = TransformerSize { width: hidden, heads, ffn, dropout };
        let layers = [config.clip_layers, config.word_layers];
        Ok(Self {
            clips: linear(given.visual, hidden, vb.pp("frame_fc"))?,
            words: MaskedWords::new(given.words, hidden, vb.clone())?,
            transformer: DualTransformer::new(size, layers, vb.pp("trans"))?,
            guess: linear(hidden, vocabulary, vb.pp("fc_rec"))?,
            dropout,
        })
    }

    pub(super) fn read_clips(&self, visual: &Tensor, pass: &Pass) -> Result<Tensor> {
        Ok(self.clips.forward(&pass.dropout(visual, self.dropout)?)?)
    }

    /// # Shapes
    /// - shown `[batch, words, hidden]`, clips `[batch, clips, hidden]`, mask `[batch, kept]`
    pub(super) fn guess_all(
        &self,
        shown: Sequence,
        clips: Sequence,
        mask: &Tensor,
        every: usize,
        pass: &Pass,
    ) -> Result<Guesses> {
        let kept = Tensor::new(kept_clips(clips.x.dim(1)?, every), clips.x.device())?;
        let (x, real) = (clips.x.contiguous()?.index_select(&kept, 1)?, clips.mask.index_select(&kept, 1)?);
        let clips = Sequence { x: &x, mask: &real };
        let decode = |weights: Option<&Tensor>| self.transformer.words_from_clips(shown, clips, weights, pass);
        let covered = decode(Some(mask))?;
        Ok(Guesses {
            covered_logits: self.guess.forward(&covered.x)?,
            covered,
            whole: self.guess.forward(&decode(None)?.x)?,
            rest: self.guess.forward(&decode(Some(&mask.affine(-1.0, 1.0)?))?.x)?,
        })
    }
}

/// The parameters of `vb`, through which no gradient flows. They share their memory with the originals and so follow them.
pub(super) fn frozen<'a>(vb: &VarBuilder<'a>) -> VarBuilder<'a> {
    struct Frozen<'a>(VarBuilder<'a>);
    impl SimpleBackend for Frozen<'_> {
        fn get(&self, s: Shape, name: &str, init: Init, _: DType, _: &Device) -> candle_core::Result<Tensor> {
            Ok(self.0.get_with_hints(s, name, init)?.detach())
        }

        fn get_unchecked(&self, name: &str, dtype: DType, _: &Device) -> candle_core::Result<Tensor> {
            Ok(self.0.get_unchecked_dtype(name, dtype)?.detach())
        }

        fn contains_tensor(&self, name: &str) -> bool {
            self.0.contains_tensor(name)
        }
    }
    VarBuilder::from_backend(Box::new(Frozen(vb.clone())), DType::F32, vb.device().clone())
}
