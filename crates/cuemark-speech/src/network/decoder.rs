//! The half that says what was heard, one piece after the other.

use candle_core::{Device, Tensor};
use cuemark_tensor::MatrixProduct as _;

use super::layers::{FeedForward, Linear, Norm, heads_of, joined};
use super::projection::Pieces;
use crate::Result;
use crate::numeric::softmax;
use crate::weights::Tensors;

/// Layers that look at what was said and at the sound.
pub(crate) struct Decoder {
    pieces: Pieces,
    positions: Tensor,
    layers: Vec<Layer>,
    norm: Norm,
    count: usize,
    longest: usize,
    device: Device,
}

struct Layer {
    own_norm: Norm,
    own_project: Linear,
    own_out: Linear,
    sound_norm: Norm,
    sound_query: Linear,
    /// Key and value side by side.
    sound_project: Linear,
    sound_out: Linear,
    feed: FeedForward,
    heads: usize,
    width: usize,
}

/// What was said of one window, and the sound of it.
pub(crate) struct Said {
    layers: Vec<Kept>,
    length: usize,
}

struct Kept {
    /// Keys and values of what was said, `[heads, pieces, width / heads]`.
    own: Option<(Tensor, Tensor)>,
    /// Of the sound: keys `[heads, width / heads, steps]`, values `[heads, steps, width / heads]`.
    sound: (Tensor, Tensor),
}

impl Said {
    /// The same sound with nothing said.
    pub(crate) fn again(&self) -> Self {
        let layers = self.layers.iter().map(|kept| Kept { own: None, sound: kept.sound.clone() }).collect();
        Self { layers, length: 0 }
    }
}

impl Decoder {
    pub(super) fn new(tensors: &mut Tensors) -> Result<Self> {
        let [count, width] = tensors.shape("decoder/embeddings/weight")?;
        let [longest, _] = tensors.shape("decoder/position_encodings/encodings")?;
        let heads = tensors.number("decoder/num_heads")?;
        let layers = tensors.layers("decoder");
        if layers == 0 || count == 0 || width == 0 || longest < 8 || !width.is_multiple_of(heads) {
            return Err(tensors.fault(format!("{layers} layers of width {width} with {heads} heads")));
        }
        let positions = tensors.take("decoder/position_encodings/encodings", &[longest, width])?;
        let device = positions.device().clone();
        Ok(Self {
            pieces: Pieces::new(tensors.values("decoder/embeddings/weight", &[count, width])?, width, &device)?,
            positions,
            layers: (0..layers).map(|layer| Layer::new(tensors, layer, width, heads)).collect::<Result<_>>()?,
            norm: Norm::new(tensors, "decoder/layer_norm", width)?,
            count,
            longest,
            device,
        })
    }

    /// How many pieces it knows.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// How many pieces one window may have, commands included.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Layers and heads of each.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.layers.len(), self.layers.first().map_or(0, |layer| layer.heads))
    }

    pub(super) fn start(&self, sound: &Tensor) -> Result<Said> {
        let kept = |layer: &Layer| {
            let projected = layer.sound_project.forward(sound)?;
            let key = heads_of(&projected, 0, layer.width, layer.heads)?.transpose(1, 2)?.contiguous()?;
            Ok(Kept { own: None, sound: (key, heads_of(&projected, 1, layer.width, layer.heads)?) })
        };
        Ok(Said { layers: self.layers.iter().map(kept).collect::<Result<_>>()?, length: 0 })
    }

    /// Says `pieces` and returns how well every piece would fit after the last of them.
    pub(crate) fn next(&self, said: &mut Said, pieces: &[u32]) -> Result<Vec<f32>> {
        let states = self.forward(said, pieces, &mut |_, _| Ok(()))?;
        let last = states.narrow(0, pieces.len() - 1, 1)?;
        self.pieces.scores(&self.norm.forward(&last)?)
    }

    /// Says `pieces` and returns what the given heads of given layers looked at: `[heads given, pieces, steps]`.
    pub(crate) fn attention(&self, said: &mut Said, pieces: &[u32], heads: &[(usize, usize)]) -> Result<Tensor> {
        let mut looked = Vec::with_capacity(heads.len());
        self.forward(said, pieces, &mut |layer, weights| {
            for (_, head) in heads.iter().filter(|(own, _)| *own == layer) {
                looked.push(weights.get(*head)?);
            }
            Ok(())
        })?;
        Ok(Tensor::stack(&looked, 0)?)
    }

    fn forward(
        &self,
        said: &mut Said,
        pieces: &[u32],
        look: &mut dyn FnMut(usize, &Tensor) -> Result<()>,
    ) -> Result<Tensor> {
        let positions = self.positions.narrow(0, said.length, pieces.len())?;
        let mut x = (self.pieces.of(pieces, &self.device)? + positions)?;
        let mask = if pieces.len() > 1 { Some(self.mask(said.length, pieces.len())?) } else { None };
        for (number, (layer, kept)) in self.layers.iter().zip(&mut said.layers).enumerate() {
            x = layer.own(&x, kept, mask.as_ref())?;
            let (sum, weights) = layer.sound(&x, kept)?;
            look(number, &weights)?;
            x = layer.feed.forward(&sum)?;
        }
        said.length += pieces.len();
        Ok(x)
    }

    /// Minus infinity where a piece would see one that comes later: `[new, before + new]`.
    fn mask(&self, before: usize, new: usize) -> Result<Tensor> {
        let later = |row: usize, column: usize| if column > before + row { f32::NEG_INFINITY } else { 0.0 };
        let values = (0..new).flat_map(|row| (0..before + new).map(move |column| later(row, column))).collect();
        Ok(Tensor::from_vec(values, (new, before + new), &self.device)?)
    }
}

impl Layer {
    fn new(tensors: &mut Tensors, layer: usize, width: usize, heads: usize) -> Result<Self> {
        let name = format!("decoder/layer_{layer}");
        let (own, sound) = (format!("{name}/self_attention"), format!("{name}/attention"));
        Ok(Self {
            own_norm: Norm::new(tensors, &format!("{own}/layer_norm"), width)?,
            own_project: Linear::new(tensors, &format!("{own}/linear_0"), 3 * width, width)?,
            own_out: Linear::new(tensors, &format!("{own}/linear_1"), width, width)?,
            sound_norm: Norm::new(tensors, &format!("{sound}/layer_norm"), width)?,
            sound_query: Linear::new(tensors, &format!("{sound}/linear_0"), width, width)?,
            sound_project: Linear::new(tensors, &format!("{sound}/linear_1"), 2 * width, width)?,
            sound_out: Linear::new(tensors, &format!("{sound}/linear_2"), width, width)?,
            feed: FeedForward::new(tensors, &format!("{name}/ffn"), width)?,
            heads,
            width,
        })
    }

    fn scale(&self) -> f64 {
        ((self.width / self.heads) as f64).powf(-0.5)
    }

    /// What was said before.
    fn own(&self, x: &Tensor, kept: &mut Kept, mask: Option<&Tensor>) -> Result<Tensor> {
        let projected = self.own_project.forward(&self.own_norm.forward(x)?)?;
        let of = |part| heads_of(&projected, part, self.width, self.heads);
        let (query, mut key, mut value) = ((of(0)? * self.scale())?, of(1)?, of(2)?);
        if let Some((keys, values)) = kept.own.take() {
            (key, value) = (Tensor::cat(&[&keys, &key], 1)?, Tensor::cat(&[&values, &value], 1)?);
        }
        let mut scores = query.times(&key.transpose(1, 2)?)?;
        if let Some(mask) = mask {
            scores = scores.broadcast_add(mask)?;
        }
        let seen = softmax(scores)?.times(&value)?;
        kept.own = Some((key, value));
        Ok((x + self.own_out.forward(&joined(&seen)?)?)?)
    }

    /// The sound, and where it looked: `[heads, pieces, steps]`.
    fn sound(&self, x: &Tensor, kept: &Kept) -> Result<(Tensor, Tensor)> {
        let query = self.sound_query.forward(&self.sound_norm.forward(x)?)?;
        let query = (heads_of(&query, 0, self.width, self.heads)? * self.scale())?;
        let weights = softmax(query.times(&kept.sound.0)?)?;
        let seen = weights.times(&kept.sound.1)?;
        Ok(((x + self.sound_out.forward(&joined(&seen)?)?)?, weights))
    }
}
