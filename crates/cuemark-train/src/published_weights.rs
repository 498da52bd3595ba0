//! A model whose weights somebody else trained.

use std::collections::HashMap;

use cuemark_core::Truth;
use cuemark_models::weights::Fit;
use cuemark_models::{Text, registry};
use cuemark_tensor::{DType, Device, Params, Tensor};

use crate::footage::Footage;
use crate::trained::{Brought, FIXED_WORDS, Parts, TRAINED_WORDS, Vectors, Weights, in_front, published_vectors};
use crate::{Result, RunFile, TrainError, Trained};

/// What came of holding a checkpoint to the network that a run file and its features make.
pub struct OpenedWeights {
    /// Name by name.
    pub fit: Fit,
    /// Width of a clip's features, as the run's features have it.
    pub visual: usize,
    /// Width of a word's vector.
    pub words: usize,
    /// The model; `None` unless every name is accounted for.
    pub trained: Option<Trained>,
}

impl Trained {
    /// The model of a run file with weights by the names of the authors' code, all of them and no other; those that begin with one
    /// of `may_miss` may be absent and are drawn from the run's seed.
    ///
    /// Checkpoints hold no vectors of words: they come from `data.words`, `data.text` or `data.query_features`. `learnt_from` says
    /// which words the model knows: the training queries, as in a run of ours, or the queries it will be asked, as in published
    /// code that looks every word up.
    ///
    /// # Errors
    /// When the run's features or words are missing or do not build; a checkpoint that does not fit is an answer.
    pub fn of_weights(
        run: RunFile,
        learnt_from: &[Truth],
        mut tensors: HashMap<String, Tensor>,
        may_miss: &[String],
        device: &Device,
    ) -> Result<OpenedWeights> {
        let widths = Footage::open(&run.data, HashMap::new())?.widths()?;
        let parts = Parts::learnt_from(run, learnt_from, widths, device)?;
        let Parts { run, vocabulary, text, .. } = &parts;

        let (name, table) = match &run.data.words {
            Some(path) => (FIXED_WORDS, published_vectors(path, vocabulary, device)?),
            None => (TRAINED_WORDS, Tensor::zeros((vocabulary.len(), run.data.word_width), DType::F32, device)?),
        };
        let own = HashMap::from([(name.to_owned(), table)]);
        let brought = Brought::of(&parts, &Params::loaded(own.clone(), device), Vectors::Params)?;
        let card = registry::find(&run.model)?;
        let counted = Params::counted();
        let input = card.build(&run.settings, &brought.given, counted.builder())?.input();
        let others = run.data.words.is_some() || run.data.queries.is_some() || run.data.query_features.is_some();
        if text.is_none() && !others && input.text == Text::Words {
            return Err(TrainError::Setting {
                key: "data.words",
                problem: format!("`{}` reads vectors of words, and no checkpoint holds any", run.model),
                hint: Some("say where they come from: `data.words`, `data.text` or `data.query_features`".into()),
            });
        }
        in_front(text.as_ref(), &input, &counted)?;
        let found = tensors.iter().map(|(name, tensor)| (name.clone(), tensor.dims().to_vec())).collect();
        let fit = Fit::of(&counted.shapes(), &found, may_miss);
        let (visual, words) = (brought.given.visual, brought.given.words);
        if !fit.is_whole() {
            return Ok(OpenedWeights { fit, visual, words, trained: None });
        }
        if !fit.allowed.is_empty() {
            let drawn = Params::seeded(run.train.seed, device);
            card.build(&run.settings, &brought.given, drawn.builder())?;
            in_front(text.as_ref(), &input, &drawn)?;
            let absent = drawn.vars().into_iter().filter(|(name, _)| !tensors.contains_key(name)).collect::<Vec<_>>();
            tensors.extend(absent.into_iter().map(|(name, var)| (name, var.as_tensor().clone())));
        }
        tensors.extend(own);
        let trained = Self::build(parts, Weights::Checkpoint(tensors), device)?;
        Ok(OpenedWeights { fit, visual, words, trained: Some(trained) })
    }
}
