//! One branch: what is left of a moment when a confounder is held fixed.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::functional::attention;

use super::{CARD, Confounder, MddConfig};
use crate::layers::{Linear, linear, linear_no_bias};
use crate::{Given, ModelError, Result};

/// Attention of every cell over the dictionary of one confounder.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) name: String,
    pub(super) kind: Confounder,
    /// `[entries, hidden]`, or as wide as a word for actions.
    pub(super) dictionary: Tensor,
    widen: Option<Linear>,
    from_query: Linear,
    from_moment: Linear,
    ask: Linear,
    key: Linear,
    value: Linear,
    pub(super) heads: usize,
}

/// The prefix of each branch's parameters: `location`, `action`, then `location2` and so on; the unobserved ones are
/// numbered from the first, `hidden1`, `hidden2`, ….
pub(super) fn branch_names(confounders: &[Confounder]) -> Vec<String> {
    let name = |(place, kind): (usize, &Confounder)| {
        let number = confounders[..=place].iter().filter(|other| *other == kind).count();
        match (kind, number) {
            (Confounder::Unobserved, number) => format!("hidden{number}"),
            (Confounder::Location, 1) => "location".to_owned(),
            (Confounder::Location, number) => format!("location{number}"),
            (Confounder::Action, 1) => "action".to_owned(),
            (Confounder::Action, number) => format!("action{number}"),
        }
    };
    confounders.iter().enumerate().map(name).collect()
}

impl Branch {
    pub(super) fn new(
        name: String,
        kind: Confounder,
        config: &MddConfig,
        given: &Given,
        position: &Tensor,
        vb: &VarBuilder,
    ) -> Result<Self> {
        let (hidden, vb) = (config.hidden, vb.pp(&name));
        let (dictionary, widen) = match kind {
            Confounder::Location => (position.clone(), None),
            Confounder::Unobserved => {
                let init = Init::Randn { mean: 0.0, stdev: 0.3 };
                // Unobserved branches are called `hidden` and their number, from 1.
                let number = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap_or(1);
                let entries = config.unobserved.of(number - 1).ok_or_else(|| ModelError::Settings {
                    model: CARD.name,
                    problem: format!("`unobserved` has no number of vectors for dictionary {number}"),
                })?;
                (vb.get_with_hints((entries, hidden), "dictionary", init)?, None)
            }
            Confounder::Action => {
                let missing =
                    ModelError::Missing { model: CARD.name, what: "the frequent verbs of its training queries" };
                let verbs = given.verbs.as_ref().ok_or(missing)?;
                let verbs = verbs.narrow(0, 0, verbs.dim(0)?.min(config.actions))?.detach();
                (verbs.to_device(vb.device())?, Some(linear(given.words, hidden, vb.pp("project"))?))
            }
        };
        Ok(Self {
            kind,
            dictionary,
            widen,
            from_query: linear(hidden, hidden, vb.pp("fc_u"))?,
            from_moment: linear(hidden, hidden, vb.pp("fc_m"))?,
            ask: linear(hidden, hidden, vb.pp("fc_q"))?,
            key: linear_no_bias(hidden, hidden, vb.pp("key"))?,
            value: linear_no_bias(hidden, hidden, vb.pp("value"))?,
            heads: config.heads,
            name,
        })
    }

    /// # Shapes
    /// - query `[batch, hidden]`; moments `[batch, cells, hidden]`
    /// - returns `[batch, cells, hidden]`
    pub(super) fn forward(&self, query: &Tensor, moments: &Tensor) -> Result<Tensor> {
        let asked = self.from_moment.forward(moments)?.broadcast_add(&self.from_query.forward(query)?.unsqueeze(1)?)?;
        let dictionary = match &self.widen {
            Some(widen) => widen.forward(&self.dictionary)?,
            None => self.dictionary.clone(),
        };
        // The dictionary is the same for all: cells of all queries stand in one row.
        let heads = |x: &Tensor| {
            let width = x.dim(D::Minus1)? / self.heads;
            x.reshape(((), self.heads, width))?.transpose(0, 1)?.contiguous()
        };
        let (ask, key) = (heads(&self.ask.forward(&asked)?)?, heads(&self.key.forward(&dictionary)?)?);
        let (seen, _) = attention(&ask, &key, &heads(&self.value.forward(&dictionary)?)?, None)?;
        Ok(seen.transpose(0, 1)?.reshape(moments.shape())?)
    }
}
