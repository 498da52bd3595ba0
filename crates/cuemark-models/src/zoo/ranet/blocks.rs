//! What the network is made of: graphs over clips and over words, cells that meet words, cells that attend to others.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{attention, l2_normalise, softmax};

use super::{Interaction, RaNetConfig};
use crate::Result;
use crate::layers::{Conv1d, Linear, Steps, largest, linear, pointwise, uniform};

/// Convolutions along time and over the nearest clips in feature space (GCNeXt), added to the clips.
#[derive(Debug)]
pub(super) struct GraphBlock {
    neighbours: usize,
    time: (Linear, Conv1d, Linear),
    meaning: (Linear, Conv1d, Linear),
}

impl GraphBlock {
    pub(super) fn new(config: &RaNetConfig, vb: &VarBuilder) -> Result<Self> {
        let RaNetConfig { hidden, groups, group_width, neighbours, .. } = *config;
        let width = groups * group_width;
        let (time, meaning) = (vb.pp("tconvs"), vb.pp("sconvs"));
        let steps = Steps { padding: 1, groups, ..Steps::default() };
        let over_time = Conv1d::new(width, width, 3, steps, time.pp(2))?;
        // Stored as a convolution over a map of one row.
        let (stored, fan) = (meaning.pp(2), uniform(group_width * neighbours));
        let weight = stored.get_with_hints((width, group_width, 1, neighbours), "weight", fan)?.squeeze(2)?;
        let steps = Steps { padding: (neighbours - 1) / 2, ..steps };
        let over_neighbours = Conv1d::of(weight, Some(stored.get_with_hints(width, "bias", fan)?), steps);
        Ok(Self {
            neighbours,
            time: (pointwise(hidden, width, 1, time.pp(0))?, over_time, pointwise(width, hidden, 1, time.pp(4))?),
            meaning: (
                pointwise(2 * hidden, width, 2, meaning.pp(0))?,
                over_neighbours,
                pointwise(width, hidden, 2, meaning.pp(4))?,
            ),
        })
    }

    /// `[batch, clips, hidden]` to the same.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (before, convolve, after) = &self.time;
        let over_time = after.forward(&convolve.forward(&before.forward(x)?.relu()?)?.relu()?)?;

        let (batch, clips, hidden) = x.dims3()?;
        let rows = x.reshape((batch * clips, hidden))?;
        let near = rows.index_select(&nearest(x, self.neighbours)?, 0)?.reshape((batch * clips, (), hidden))?;
        let own = rows.unsqueeze(1)?.broadcast_as(near.shape())?;
        let (before, convolve, after) = &self.meaning;
        let pairs = Tensor::cat(&[near, own.contiguous()?], D::Minus1)?;
        let over_near = after.forward(&convolve.forward(&before.forward(&pairs)?.relu()?)?.relu()?)?;
        let over_near = largest(&over_near, 1)?.reshape((batch, clips, hidden))?;
        Ok(((over_time + (x * 2.0)?)? + over_near)?.relu()?)
    }
}

/// For every clip the rows of its `count` nearest clips, nearest first and itself before all, of `x [batch, clips, hidden]`
/// as `batch * clips` rows; the earlier of two equally near ones comes first.
fn nearest(x: &Tensor, count: usize) -> Result<Tensor> {
    let x = x.detach();
    let squares = x.sqr()?.sum_keepdim(2)?;
    let products = x.contiguous()?.times(&x.t()?.contiguous()?)?;
    let distances = (products * -2.0)?.broadcast_add(&squares)?.broadcast_add(&squares.t()?)?.to_vec3::<f32>()?;
    let mut rows = Vec::new();
    for (video, distances) in distances.iter().enumerate() {
        for (clip, distances) in distances.iter().enumerate() {
            let mut others: Vec<usize> = (0..distances.len()).filter(|other| *other != clip).collect();
            others.sort_by(|a, b| distances[*a].total_cmp(&distances[*b]));
            let near = std::iter::once(clip).chain(others).take(count);
            rows.extend(near.map(|near| (video * distances.len() + near) as u32));
        }
    }
    Ok(Tensor::new(rows, x.device())?)
}

/// Where a cell meets the sentence, and each of its words.
#[derive(Debug)]
pub(super) struct Interactor {
    sentence: Linear,
    sentence_cells: Linear,
    tokens: Option<Tokens>,
}

#[derive(Debug)]
struct Tokens {
    key: Linear,
    value: Linear,
    ask: Linear,
    cells: Linear,
}

impl Interactor {
    pub(super) fn new(width: usize, hidden: usize, interaction: Interaction, vb: &VarBuilder) -> Result<Self> {
        let tokens = || -> Result<Tokens> {
            Ok(Tokens {
                key: linear(hidden, hidden, vb.pp("txt_linear_b2_a"))?,
                value: linear(hidden, hidden, vb.pp("txt_linear_b2_b"))?,
                ask: pointwise(width, hidden, 2, vb.pp("vis_conv_b2_a"))?,
                cells: pointwise(width, hidden, 2, vb.pp("vis_conv_b2_b"))?,
            })
        };
        Ok(Self {
            sentence: linear(hidden, hidden, vb.pp("txt_linear_b1"))?,
            sentence_cells: pointwise(width, hidden, 2, vb.pp("vis_conv_b1"))?,
            tokens: (interaction == Interaction::Dynamic).then(tokens).transpose()?,
        })
    }

    /// # Shapes
    /// - cells `[batch, cells, width]`; words `[batch, words, hidden]`, zero where there is none
    /// - returns `[batch, cells, hidden]`
    pub(super) fn forward(&self, cells: &Tensor, words: &Tensor) -> Result<Tensor> {
        let sentence = self.sentence.forward(&largest(words, 1)?)?.unsqueeze(1)?;
        let by_sentence = l2_normalise(&self.sentence_cells.forward(cells)?.broadcast_mul(&sentence)?)?;
        let Some(tokens) = &self.tokens else { return Ok(by_sentence) };
        let (key, value) = (tokens.key.forward(words)?, tokens.value.forward(words)?);
        let (attended, _) = attention(&tokens.ask.forward(cells)?, &key, &value, None)?;
        let by_words = l2_normalise(&(attended * tokens.cells.forward(cells)?)?)?;
        Ok((by_sentence + by_words)?.relu()?)
    }
}

/// The width inside a relation block over that of its queries and keys.
pub(super) const QUERY_NARROWING: usize = 8;

/// Compares cells that share a start or an end, on the whole map.
#[derive(Debug)]
pub(super) struct RelationBlock {
    narrow: Tensor,
    after: Tensor,
    join: Tensor,
    ask: Linear,
    key: Linear,
    value: Linear,
    gamma: Tensor,
    rounds: usize,
}

impl RelationBlock {
    pub(super) fn new(hidden: usize, width: usize, rounds: usize, vb: &VarBuilder) -> Result<Self> {
        let kernel = |inputs: usize, outputs: usize, name: &str| {
            vb.pp(name).get_with_hints((outputs, inputs, 3, 3), "0.weight", uniform(inputs * 9))
        };
        let attention = vb.pp("gat");
        Ok(Self {
            narrow: kernel(hidden, width, "conva")?,
            after: kernel(width, width, "convb")?,
            join: kernel(hidden + width, hidden, "convc")?,
            ask: pointwise(width, width / QUERY_NARROWING, 2, attention.pp("query_conv"))?,
            key: pointwise(width, width / QUERY_NARROWING, 2, attention.pp("key_conv"))?,
            value: pointwise(width, width, 2, attention.pp("value_conv"))?,
            gamma: attention.get_with_hints(1, "gamma", Init::Const(0.0))?,
            rounds,
        })
    }

    /// # Shapes
    /// - x `[batch, clips, clips, hidden]`; mask `[clips, clips, 1]`
    /// - returns as x, zero where the mask is
    pub(super) fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let mut compared = convolve(x, &self.narrow)?.relu()?;
        for _ in 0..self.rounds {
            compared = (self.attend(&compared)?.broadcast_mul(&self.gamma)? + compared)?;
        }
        let compared = convolve(&compared, &self.after)?.relu()?;
        let joined = convolve(&Tensor::cat(&[x, &compared], 3)?, &self.join)?.relu()?;
        Ok(joined.broadcast_mul(mask)?)
    }

    /// Attention of every cell over its row and the rest of its column, one softmax over both; `[batch, N, N, width]`.
    fn attend(&self, x: &Tensor) -> Result<Tensor> {
        let clips = x.dim(1)?;
        let (ask, key, value) = (self.ask.forward(x)?, self.key.forward(x)?, self.value.forward(x)?);
        let turned = |x: &Tensor| x.transpose(1, 2)?.contiguous(); // [batch, end, start, _]
        let products = |ask: &Tensor, key: &Tensor| ask.times(&key.t()?.contiguous()?);
        let by_row = products(&ask, &key)?; // [batch, start, end, end']
        let by_column = products(&turned(&ask)?, &turned(&key)?)?; // [batch, end, start, start']
        let own = (0..clips * clips).map(|at| if at / clips == at % clips { f32::NEG_INFINITY } else { 0.0 });
        let own = Tensor::from_vec(own.collect::<Vec<f32>>(), (clips, clips), x.device())?;
        let by_column = turned(&by_column.broadcast_add(&own)?)?; // [batch, start, end, start']
        let shares = softmax(&Tensor::cat(&[by_row, by_column], 3)?, D::Minus1)?;
        let from_row = shares.narrow(3, 0, clips)?.contiguous()?.times(&value)?;
        let from_column = turned(&shares.narrow(3, clips, clips)?)?.times(&turned(&value)?)?;
        Ok((from_row + turned(&from_column)?)?)
    }
}

/// A 3×3 convolution that keeps the size of `x [batch, height, breadth, inputs]`; weight `[outputs, inputs, 3, 3]`.
fn convolve(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (batch, height, breadth, inputs) = x.dims4()?;
    let outputs = weight.dim(0)?;
    let padded = x.pad_with_zeros(1, 1, 1)?.pad_with_zeros(2, 1, 1)?;
    let place = |place: usize| padded.narrow(1, place / 3, height)?.narrow(2, place % 3, breadth);
    let windows = Tensor::cat(&(0..9).map(place).collect::<candle_core::Result<Vec<_>>>()?, 3)?;
    let weight = weight.permute((2, 3, 1, 0))?.reshape((9 * inputs, outputs))?;
    let y = windows.reshape((batch * height * breadth, 9 * inputs))?.times(&weight)?;
    Ok(y.reshape((batch, height, breadth, outputs))?)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::Device;

    use super::*;
    use crate::testing::gap;

    #[test]
    fn the_nearest_clips_begin_with_the_clip_itself_and_come_by_distance() {
        let x = Tensor::new(&[[[0f32], [5.0], [1.0], [5.0]]], &Device::Cpu).unwrap();
        let rows = nearest(&x, 3).unwrap().to_vec1::<u32>().unwrap();
        assert_eq!(rows, [0, 2, 1, 1, 3, 2, 2, 0, 1, 3, 1, 2]);
    }

    #[test]
    fn the_whole_map_is_convolved_as_candle_does_it() {
        let x = Tensor::arange(0f32, 120.0, &Device::Cpu).unwrap().reshape((2, 4, 5, 3)).unwrap().sin().unwrap();
        let weight = Tensor::arange(0f32, 54.0, &Device::Cpu).unwrap().reshape((2, 3, 3, 3)).unwrap().cos().unwrap();
        let plain = x.permute((0, 3, 1, 2)).unwrap().contiguous().unwrap().conv2d(&weight, 1, 1, 1, 1).unwrap();
        assert!(gap(&convolve(&x, &weight).unwrap(), &plain.permute((0, 2, 3, 1)).unwrap()) < 1e-4);
    }
}
