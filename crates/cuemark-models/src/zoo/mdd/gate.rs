//! The gate on words, from their dependency trees.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::functional::{mask_out, masked_mean, softmax};
use cuemark_text::Phrase;

use crate::Result;
use crate::layers::{Linear, linear_no_bias};

/// Gives verbs, and nouns under their verb, a say in the query.
#[derive(Debug)]
pub(super) struct Gate {
    top: Linear,
    down: Linear,
    pub(super) score: Linear,
}

impl Gate {
    pub(super) fn new(hidden: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            top: linear_no_bias(hidden, hidden, vb.pp("w_top"))?,
            down: linear_no_bias(hidden, hidden, vb.pp("w_down"))?,
            score: linear_no_bias(2 * hidden, 1, vb.pp("w_gamma"))?,
        })
    }

    /// # Shapes
    /// - states `[batch, words, hidden]`; query `[batch, hidden]`; phrases one list per query
    /// - returns `[batch, hidden]`
    pub(super) fn forward(
        &self,
        states: &Tensor,
        query: &Tensor,
        lengths: &[usize],
        phrases: &[&[Phrase]],
    ) -> Result<Tensor> {
        let Some(trees) = Trees::new(lengths, phrases, states)? else { return Ok(query.clone()) };
        let verbs = trees.words.narrow(2, 0, 1)?.squeeze(2)?; // [batch, phrases, hidden]
        let verb_scores = self.scores(&query.unsqueeze(1)?, &verbs)?;
        let shares = softmax(&mask_out(&verb_scores, &trees.phrase_mask, -1e9)?, D::Minus1)?;
        let main_verb = verbs.broadcast_mul(&shares.unsqueeze(2)?)?.sum(1)?;
        let nouns = trees.words.narrow(2, 1, trees.words.dim(2)? - 1)?;
        let noun_scores = self.scores(&main_verb.unsqueeze(1)?.unsqueeze(1)?, &nouns)?;
        let scores = Tensor::cat(&[verb_scores.unsqueeze(2)?, noun_scores], 2)?;
        let shares = softmax(&mask_out(&scores, &trees.word_mask, -1e9)?, D::Minus1)?;
        let said = trees.words.broadcast_mul(&shares.unsqueeze(3)?)?.sum(2)?; // [batch, phrases, hidden]
        let gate = masked_mean(&said, &trees.phrase_mask.unsqueeze(2)?, 1)?;
        Ok((query + (query * gate)?)?)
    }

    /// How much each of `below [.., hidden]` matters under `above`, which broadcasts to it: `[..]`.
    fn scores(&self, above: &Tensor, below: &Tensor) -> Result<Tensor> {
        let above = self.top.forward(above)?.tanh()?.broadcast_as(below.shape())?;
        let below = self.down.forward(&below.contiguous()?)?.tanh()?;
        Ok(self.score.forward(&Tensor::cat(&[above.contiguous()?, below], D::Minus1)?)?.squeeze(D::Minus1)?)
    }
}

/// The phrases of all queries of a batch, padded to one size: first the verb of each, then its nouns.
struct Trees {
    /// `[batch, phrases, 1 + nouns, hidden]`
    pub(super) words: Tensor,
    /// `[batch, phrases, 1 + nouns]`, 1 where there is a word.
    word_mask: Tensor,
    /// `[batch, phrases]`, 1 where there is a phrase.
    phrase_mask: Tensor,
}

impl Trees {
    /// `None` when no query has a phrase. Words past the end of a query that was cut are left out.
    pub(super) fn new(lengths: &[usize], phrases: &[&[Phrase]], states: &Tensor) -> Result<Option<Self>> {
        let (batch, steps, hidden) = states.dims3()?;
        let inside = |(phrases, length): (&&[Phrase], &usize)| -> Vec<Vec<usize>> {
            let length = (*length).min(steps);
            let words = |phrase: &Phrase| {
                let nouns = phrase.nouns.iter().copied().filter(|noun| *noun < length);
                std::iter::once(phrase.verb).chain(nouns).collect()
            };
            phrases.iter().filter(|phrase| phrase.verb < length).map(words).collect()
        };
        let trees: Vec<Vec<Vec<usize>>> = phrases.iter().zip(lengths).map(inside).collect();
        let most_phrases = trees.iter().map(Vec::len).max().unwrap_or(0);
        let most_words = trees.iter().flatten().map(Vec::len).max().unwrap_or(0).max(2); // room for one noun
        if most_phrases == 0 {
            return Ok(None);
        }
        let sizes = (batch, most_phrases, most_words);
        let mut rows = vec![0u32; batch * most_phrases * most_words];
        let (mut word_mask, mut phrase_mask) = (vec![0f32; rows.len()], vec![0f32; batch * most_phrases]);
        for (query, tree) in trees.iter().enumerate() {
            for (number, words) in tree.iter().enumerate() {
                let phrase = query * most_phrases + number;
                phrase_mask[phrase] = 1.0;
                for (place, word) in words.iter().enumerate() {
                    rows[phrase * most_words + place] = (query * steps + word) as u32;
                    word_mask[phrase * most_words + place] = 1.0;
                }
            }
        }
        let device = states.device();
        let words = states.reshape((batch * steps, hidden))?.index_select(&Tensor::new(rows, device)?, 0)?;
        Ok(Some(Self {
            words: words.reshape((batch, most_phrases, most_words, hidden))?,
            word_mask: Tensor::from_vec(word_mask, sizes, device)?,
            phrase_mask: Tensor::from_vec(phrase_mask, (batch, most_phrases), device)?,
        }))
    }
}
