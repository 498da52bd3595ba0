//! The published text encoder of a run: its tokenizer, its sizes, and its vectors or its parameters.

use std::sync::Arc;

use cuemark_core::Progress;
use cuemark_encoders::text::{Pretrained, PretrainedFamily};
use cuemark_encoders::weights::Cache;
use cuemark_models::{BertFamily, BertSize, TokenVectors};
use cuemark_tensor::{DType, Device, Params};
use serde::{Deserialize, Serialize};

use crate::examples::Examples;
use crate::token_cache::TokenCache;
use crate::{Result, TextConfig, TextTraining, TrainError};

/// A published text encoder as a run uses it.
pub(crate) struct PublishedText {
    pub(crate) config: TextConfig,
    encoder: Pretrained,
    /// The vectors of a frozen one.
    kept: Option<TokenCache>,
    /// The sizes of one that learns.
    size: Option<BertSize>,
}

/// What a run folder says of its encoder, so that another one of the same name is noticed: `text.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextPrint {
    encoder: String,
    /// Hash of the tokenizer, and where it cuts.
    tokenizer: String,
    /// Hash of the weights, which a fine-tuned encoder has in its checkpoint instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weights: Option<String>,
}

impl PublishedText {
    /// # Errors
    /// When the weights are not there, damaged, or cannot be used as the run says.
    pub(crate) fn open(config: &TextConfig, device: &Device) -> Result<Arc<Self>> {
        let encoder = Pretrained::open(&config.encoder, config.tokenizer.as_deref(), config.longest)?;
        let (kept, size) = match config.training {
            TextTraining::FineTuned => (None, Some(size(&encoder)?)),
            TextTraining::Frozen => {
                let root = match &config.cache {
                    Some(folder) => folder.clone(),
                    None => Cache::of_user()?.token_features(),
                };
                (Some(TokenCache::open(&encoder, config.markers, &root, device)?), None)
            }
        };
        Ok(Arc::new(Self { config: config.clone(), encoder, kept, size }))
    }

    /// The tokens of a sentence, markers at both ends.
    pub(crate) fn tokens(&self, sentence: &str) -> Result<Vec<u32>> {
        Ok(self.encoder.tokens(&[sentence])?.into_iter().next().unwrap_or_default())
    }

    /// Tokens that there are.
    pub(crate) fn vocabulary(&self) -> usize {
        self.encoder.vocabulary()
    }

    /// Width of a token's vector.
    pub(crate) fn width(&self) -> usize {
        self.encoder.width()
    }

    /// The vectors of a frozen encoder; `None` for one that learns.
    pub(crate) fn kept(&self) -> Option<&TokenCache> {
        self.kept.as_ref()
    }

    /// The sizes of one that learns; `None` for a frozen one.
    pub(crate) fn size(&self) -> Option<&BertSize> {
        self.size.as_ref()
    }

    /// Who turns tokens into vectors, for models that read tokens.
    pub(crate) fn vectors(&self) -> TokenVectors {
        self.size.as_ref().map_or(TokenVectors::Given, |size| TokenVectors::Published(size.clone()))
    }

    /// Computes and keeps what a frozen encoder makes of all queries and phrases.
    pub(crate) fn prepare(&self, examples: &Examples, progress: &Progress) -> Result<()> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let of = |example: &'_ crate::examples::Example| {
            std::iter::once(example.words.clone()).chain(example.phrases.iter().cloned()).collect::<Vec<_>>()
        };
        let sentences: Vec<Vec<u32>> = examples.list.iter().flat_map(of).collect();
        kept.prepare(sentences.iter().map(Vec::as_slice), progress)
    }

    /// Lays the published weights over fresh ones; `prefix` stands before their names.
    ///
    /// # Errors
    /// When one of the network's parameters is not in the file, or has another shape there.
    pub(crate) fn lay_into(&self, params: &Params, prefix: &str) -> Result<()> {
        let fault = |problem: String| TrainError::Folder {
            path: self.encoder.path().to_owned(),
            problem,
            hint: "the weights must be those of the network that `config.json` describes".into(),
        };
        let published = self.encoder.parameters()?;
        for (name, var) in params.vars() {
            let Some(name) = name.strip_prefix(prefix) else { continue };
            let tensor = published.get(name).ok_or_else(|| fault(format!("parameter `{name}` is missing")))?;
            if tensor.dims() != var.dims() {
                let (found, wanted) = (tensor.dims(), var.dims());
                return Err(fault(format!("`{name}` has shape {found:?}, the network wants {wanted:?}")));
            }
            var.set(&tensor.to_dtype(DType::F32)?.to_device(params.device())?)?;
        }
        Ok(())
    }

    /// What tells this encoder from others.
    pub(crate) fn print(&self) -> Result<TextPrint> {
        let weights = self.kept.as_ref().map(|_| self.encoder.weights_digest()).transpose()?;
        let encoder = self.encoder.name().to_owned();
        Ok(TextPrint { encoder, tokenizer: self.encoder.tokenizer_digest()?, weights })
    }

    /// Refuses an encoder that is not the one a run was trained with.
    pub(crate) fn check_print(&self, trained: &TextPrint) -> Result<()> {
        let now = self.print()?;
        let same = now.tokenizer == trained.tokenizer && now.weights == trained.weights;
        same.then_some(()).ok_or_else(|| TrainError::Folder {
            path: self.encoder.path().to_owned(),
            problem: format!("is not the `{}` that the run was trained with", trained.encoder),
            hint: "put the same weights and tokenizer there, or train again".into(),
        })
    }
}

fn size(encoder: &Pretrained) -> Result<BertSize> {
    let sizes = encoder.sizes()?;
    Ok(BertSize {
        dim: sizes.width,
        layers: sizes.layers,
        heads: sizes.heads,
        ffn: sizes.inner,
        positions: sizes.positions,
        eps: sizes.epsilon,
        family: match sizes.family {
            PretrainedFamily::DistilBert => BertFamily::DistilBert,
            PretrainedFamily::Bert { token_types, first_position } => BertFamily::Bert { token_types, first_position },
        },
        ..BertSize::default()
    })
}

#[cfg(test)]
mod tests {
    use cuemark_models::{Bert, real_steps};
    use cuemark_tensor::{Pass, Tensor};

    use super::*;
    use crate::Markers;

    fn config(name: &str, training: TextTraining, cache: &camino::Utf8Path) -> TextConfig {
        TextConfig {
            encoder: cuemark_testkit::fixture("encoders").join(name).to_string(),
            tokenizer: None,
            training,
            rate: None,
            longest: None,
            markers: Markers::Kept,
            cache: Some(cache.to_owned()),
        }
    }

    fn rows_of(text: &PublishedText, sentence: &str) -> Vec<f32> {
        text.kept().unwrap().rows(&text.tokens(sentence).unwrap()).unwrap().into_data()
    }

    /// The frozen network agrees with `transformers` on these weights (the encoders' own tests), so that the one that learns does
    /// if it agrees with the frozen one, beside a longer sentence too.
    #[test]
    fn the_network_that_learns_begins_as_the_frozen_one_in_every_family() {
        let folder = tempfile::tempdir().unwrap();
        let cache = camino::Utf8Path::from_path(folder.path()).unwrap();
        for name in ["tiny-distilbert", "tiny-simcse", "tiny-roberta"] {
            let learning = PublishedText::open(&config(name, TextTraining::FineTuned, cache), &Device::Cpu).unwrap();
            let frozen = PublishedText::open(&config(name, TextTraining::Frozen, cache), &Device::Cpu).unwrap();
            let params = Params::seeded(1, &Device::Cpu);
            let vb = params.builder().pp("text");
            let network = Bert::new(learning.size().unwrap(), learning.vocabulary(), vb).unwrap();
            learning.lay_into(&params, "text.").unwrap();
            let sentences = ["the dog jumps", "a man opens the fridge and looks out of the window"];
            let tokens: Vec<Vec<u32>> = sentences.iter().map(|text| learning.tokens(text).unwrap()).collect();
            let lengths: Vec<usize> = tokens.iter().map(Vec::len).collect();
            let longest = lengths[1];
            let mut padded = tokens.concat();
            padded.splice(lengths[0]..lengths[0], vec![7; longest - lengths[0]]); // padding may hold anything
            let ids = Tensor::from_vec(padded, (2, longest), &Device::Cpu).unwrap();
            let mask = real_steps(&lengths, longest, &Device::Cpu).unwrap();
            let rows = network.forward(&ids, &mask, &Pass::answering()).unwrap();
            for (place, sentence) in sentences.iter().enumerate() {
                let own = rows.get(place).unwrap().narrow(0, 0, lengths[place]).unwrap();
                let own = own.flatten_all().unwrap().to_vec1::<f32>().unwrap();
                let kept = rows_of(&frozen, sentence);
                let gap = own.iter().zip(&kept).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
                assert!(own.len() == kept.len() && gap < 1e-5, "{name}: {gap}");
            }
        }
    }

    #[test]
    fn sentences_are_computed_once_and_what_is_kept_is_what_was_computed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = camino::Utf8Path::from_path(folder.path()).unwrap();
        let config = config("tiny-clip", TextTraining::Frozen, cache);
        let text = PublishedText::open(&config, &Device::Cpu).unwrap();
        let computed = rows_of(&text, "a red ball");
        let kept = text.kept().unwrap();
        let tokens: Vec<Vec<u32>> =
            ["a red ball", "a dog", "a red ball"].iter().map(|sentence| text.tokens(sentence).unwrap()).collect();
        let prepare = |progress: &Progress| kept.prepare(tokens.iter().map(Vec::as_slice), progress).unwrap();
        prepare(&Progress::new());
        let shards = || {
            let store = cache.read_dir_utf8().unwrap().next().unwrap().unwrap().into_path();
            store.read_dir_utf8().unwrap().count()
        };
        assert_eq!((rows_of(&text, "a red ball"), shards()), (computed, 1));
        // Nothing is missing the second time, in this process or the next.
        prepare(&Progress::new());
        let again = PublishedText::open(&config, &Device::Cpu).unwrap();
        again.kept().unwrap().prepare(tokens.iter().map(Vec::as_slice), &Progress::new()).unwrap();
        assert_eq!(shards(), 1);
    }

    #[test]
    fn dropped_markers_leave_the_rows_between_them() {
        let folder = tempfile::tempdir().unwrap();
        let cache = camino::Utf8Path::from_path(folder.path()).unwrap();
        let kept = config("tiny-roberta", TextTraining::Frozen, cache);
        let dropped = TextConfig { markers: Markers::Dropped, ..kept.clone() };
        let open = |config: &TextConfig| PublishedText::open(config, &Device::Cpu).unwrap();
        let (all, between) = (rows_of(&open(&kept), "a dog"), rows_of(&open(&dropped), "a dog"));
        assert_eq!(all[16..all.len() - 16], between[..]);
        // Nothing but markers is better than nothing.
        assert_eq!(rows_of(&open(&dropped), "").len(), 32);
    }

    #[test]
    fn clip_is_not_trained_and_says_what_to_do() {
        use cuemark_core::Advise as _;
        let folder = tempfile::tempdir().unwrap();
        let cache = camino::Utf8Path::from_path(folder.path()).unwrap();
        let error = PublishedText::open(&config("tiny-clip", TextTraining::FineTuned, cache), &Device::Cpu);
        let error = error.err().expect("should be refused");
        assert!(error.to_string().contains("CLIP's text encoder is not trained"), "{error}");
        assert!(error.advice().is_some());
    }
}
