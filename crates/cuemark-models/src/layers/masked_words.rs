//! Hiding words of a sentence and saying how badly they are guessed, as CNM and CPL do.

use candle_core::{D, Device, Result, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::Rng;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::log_softmax;
use cuemark_text::{Parse, Pos, Vocabulary};

use super::{Linear, linear};
use crate::QueryBatch;

/// Share of the target that is spread over all words.
const SMOOTHING: f64 = 0.1;

/// Word vectors to hidden width, with a learned start and a learned stand-in for hidden words.
#[derive(Debug, Clone)]
pub struct MaskedWords {
    project: Linear,
    start: Tensor,
    stand_in: Tensor,
}

impl MaskedWords {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(words: usize, hidden: usize, vb: VarBuilder) -> Result<Self> {
        let vector = |name: &str| vb.get_with_hints(words, name, Init::Uniform { lo: 0.0, up: 1.0 });
        Ok(Self {
            project: linear(words, hidden, vb.pp("word_fc"))?,
            start: vector("start_vec")?,
            stand_in: vector("mask_vec")?,
        })
    }

    /// `words [batch, words, width]` with the start before them: `[batch, 1 + words, hidden]`, positions not yet added.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn read(&self, words: &Tensor, dropout: f64, pass: &Pass) -> Result<Tensor> {
        let (batch, _, width) = words.dims3()?;
        let start = self.start.broadcast_as((batch, 1, width))?;
        self.project.forward(&pass.dropout(&Tensor::cat(&[&start, words], 1)?, dropout)?)
    }

    /// What a guess of every word begins with: the start and all words but the last, hidden ones replaced, positions added.
    ///
    /// # Shapes
    /// - read `[batch, 1 + words, hidden]`; hidden `[batch, 1 + words]`, 1 where a word is hidden, 0 at the start
    /// - returns `[batch, words, hidden]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn hide(&self, read: &Tensor, hidden: &Tensor) -> Result<Tensor> {
        let hidden = hidden.unsqueeze(2)?;
        let stand_in = self.project.forward(&self.stand_in.unsqueeze(0)?)?.unsqueeze(0)?;
        let shown = (read.broadcast_mul(&hidden.affine(-1.0, 1.0)?)? + stand_in.broadcast_mul(&hidden)?)?;
        place(&shown)?.narrow(1, 0, read.dim(1)? - 1)?.contiguous()
    }
}

/// Adds the position code: sines in the first half, cosines in the second, nothing at position 0.
///
/// # Errors
/// Those of the tensor operations.
pub fn place(x: &Tensor) -> Result<Tensor> {
    let (_, steps, width) = x.dims3()?;
    let half = width / 2;
    let frequency = |channel: usize| 10_000f64.powf(-(channel as f64) / (half.max(2) - 1) as f64);
    let code = |step: usize| {
        (0..width).map(move |channel| match (step, channel) {
            (0, _) => 0.0,
            (_, channel) if channel < half => (step as f64 * frequency(channel)).sin() as f32,
            (_, channel) if channel < 2 * half => (step as f64 * frequency(channel - half)).cos() as f32,
            _ => 0.0,
        })
    };
    let codes: Vec<f32> = (0..steps).flat_map(code).collect();
    x.broadcast_add(&Tensor::from_vec(codes, (1, steps, width), x.device())?)
}

/// How badly the words `ids [rows, words]` are guessed by `logits [rows, words, vocabulary]`: the mean over the steps where
/// `mask [rows, words]` is 1 of the cross entropy with a tenth of the target spread over all words, `[rows]`.
///
/// # Errors
/// When an id is outside the vocabulary.
pub fn guessing_loss(logits: &Tensor, ids: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let vocabulary = logits.dim(2)? as f64;
    let log = log_softmax(logits, D::Minus1)?;
    let right = log.gather(&ids.unsqueeze(2)?.contiguous()?, 2)?.squeeze(2)?;
    let all = log.sum(2)?;
    let loss = ((right * (SMOOTHING - 1.0))? - (all * (SMOOTHING / vocabulary))?)?;
    (loss * mask)?.sum(1)? / mask.sum(1)?
}

/// The queries of a batch as CNM and CPL read them.
#[derive(Debug, Clone)]
pub struct Guessed {
    /// `[queries, words, width]` word vectors.
    pub words: Tensor,
    /// `[queries, words]` the words to guess, 0 for the end of the sentence.
    pub ids: Tensor,
    /// `[queries, 1 + words]`, 1 at the start and the words.
    pub mask: Tensor,
    /// Number of words of each.
    pub lengths: Vec<usize>,
    /// How likely each word is to be hidden, one row per query.
    pub weights: Vec<Vec<f64>>,
}

impl Guessed {
    /// Every sentence gets an end to guess, so that its loss does not depend on the others of its batch. Words past
    /// `vocabulary` become the unknown word. Nouns, verbs, adjectives and adverbs are hidden more often where parses tell them.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn of(queries: &QueryBatch, vocabulary: usize) -> Result<Self> {
        let words = queries.words.pad_with_zeros(1, 0, 1)?;
        let (count, steps, _) = words.dims3()?;
        let known = |id: u32| if (id as usize) < vocabulary { id } else { Vocabulary::UNKNOWN };
        let mut ids = vec![0u32; count * steps];
        for (row, numbers) in queries.word_ids.to_vec2::<u32>()?.into_iter().enumerate() {
            let place = &mut ids[row * steps..(row + 1) * steps];
            place.iter_mut().zip(numbers).for_each(|(place, id)| *place = known(id));
        }
        let weights = |(row, length): (usize, &usize)| {
            let parse = queries.parses.as_ref().and_then(|parses| parses.get(row));
            (0..*length).map(|word| weight(parse, word)).collect()
        };
        Ok(Self {
            ids: Tensor::from_vec(ids, (count, steps), words.device())?,
            mask: sentence_mask(&queries.lengths, 1 + steps, words.device())?,
            lengths: queries.lengths.clone(),
            weights: queries.lengths.iter().enumerate().map(weights).collect(),
            words,
        })
    }

    /// A third of the words of each query, at least one, hidden by chance: `[queries, 1 + words]`. Without a source of
    /// chance every third word.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn choose(&self, rng: Option<&mut Rng>) -> Result<Tensor> {
        let steps = self.mask.dim(1)?;
        let mut rng = rng;
        let mut hidden = vec![0f32; self.lengths.len() * steps];
        for (row, (length, weights)) in self.lengths.iter().zip(&self.weights).enumerate() {
            let mut left: Vec<f64> = weights.iter().map(|weight| weight.exp()).collect();
            for number in 0..(length / 3).max(1).min(*length) {
                let word = match rng.as_deref_mut() {
                    Some(rng) => rng.weighted(&left).unwrap_or_default(),
                    None => (3 * number + 1).min(length - 1),
                };
                left[word] = 0.0;
                hidden[row * steps + 1 + word] = 1.0;
            }
        }
        Tensor::from_vec(hidden, (self.lengths.len(), steps), self.mask.device())
    }
}

/// 1 at the start and at the words of each sentence, `[queries, steps]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn sentence_mask(lengths: &[usize], steps: usize, device: &Device) -> Result<Tensor> {
    let real = |length: &usize| {
        let length = *length;
        (0..steps).map(move |step| f32::from(u8::from(step <= length)))
    };
    Tensor::from_vec(lengths.iter().flat_map(real).collect::<Vec<f32>>(), (lengths.len(), steps), device)
}

fn weight(parse: Option<&Parse>, word: usize) -> f64 {
    let tag = parse.and_then(|parse| parse.tokens.get(word)).map(|token| token.tag);
    match tag {
        Some(Pos::Noun | Pos::Propn | Pos::Verb | Pos::Adj | Pos::Adv) => 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TOY;

    #[test]
    fn a_third_of_the_words_is_hidden_and_never_the_start() {
        let guessed = Guessed::of(&TOY.batch(1).queries, TOY.vocabulary).unwrap();
        for rng in [Some(&mut Rng::new(1)), None] {
            let hidden = guessed.choose(rng).unwrap().to_vec2::<f32>().unwrap();
            for (row, length) in hidden.iter().zip(&guessed.lengths) {
                assert_eq!(row[0], 0.0);
                assert_eq!(row.iter().sum::<f32>(), (length / 3).max(1) as f32);
                assert!(row[1 + length..].iter().all(|hidden| *hidden == 0.0));
            }
        }
    }

    #[test]
    fn a_sure_and_right_guess_costs_only_the_smoothing() {
        let logits = Tensor::new(&[[[0f32, 50.0], [0.0, 0.0]]], &Device::Cpu).unwrap();
        let (ids, mask) = (Tensor::new(&[[1u32, 0]], &Device::Cpu), Tensor::new(&[[1f32, 0.0]], &Device::Cpu));
        let loss = guessing_loss(&logits, &ids.unwrap(), &mask.unwrap()).unwrap().to_vec1::<f32>().unwrap();
        assert!((loss[0] - 0.05 * 50.0).abs() < 1e-5, "{loss:?}");
    }
}
