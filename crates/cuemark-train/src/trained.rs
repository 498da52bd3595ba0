//! A model with its words: what training improves and what answers queries.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cuemark_core::{Advice, Progress, Truth, whole_message};
use cuemark_features::Normalise;
use cuemark_formats::Source;
use cuemark_models::{
    Batch, Bert, Given, Input, Model, ModelCard, QueryBatch, Text, TokenVectors, WordTable, registry,
};
use cuemark_tensor::{DType, Device, Params, Pass, Tensor};
use cuemark_text::{Vocabulary, WordVectors};

use crate::checkpoint::{self, Seal};
use crate::examples::Examples;
use crate::footage::{Footage, Widths};
use crate::kept::Known;
use crate::published_text::PublishedText;
use crate::query_features::{QueryFeatures, words_normalised};
use crate::scale::{CLIPS, Scale};
use crate::text::{Reader, frequent_verbs};
use crate::{Result, RunFile, RunFolder, TrainError};

/// A model, its parameters and the words it knows.
pub struct Trained {
    /// What it was trained by.
    pub run: RunFile,
    /// What is known about the method.
    pub card: &'static ModelCard,
    pub(crate) model: Box<dyn Model>,
    pub(crate) params: Params,
    /// The table of word vectors; `None` where a published encoder reads the queries.
    pub(crate) words: Option<WordTable>,
    /// The published encoder that reads the queries.
    pub(crate) text: Option<Arc<PublishedText>>,
    /// Vectors of words that somebody else computed.
    pub(crate) queries: Arc<QueryFeatures>,
    /// A fine-tuned encoder in front of a model that has none of its own.
    in_front: Option<Bert>,
    pub(crate) vocabulary: Vocabulary,
    verbs: Vec<String>,
    pub(crate) widths: Widths,
    /// What clip features are brought to first, where the run says so.
    pub(crate) scale: Option<Arc<Scale>>,
    pub(crate) device: Device,
    /// What a person should know about where the weights came from.
    pub note: Option<String>,
}

/// What a model is built from, its weights apart.
pub(crate) struct Parts {
    pub(crate) run: RunFile,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) verbs: Vec<String>,
    pub(crate) widths: Widths,
    /// The published encoder that reads the queries.
    pub(crate) text: Option<Arc<PublishedText>>,
}

impl Parts {
    /// Those of a run whose words are the words of these queries.
    pub(crate) fn learnt_from(run: RunFile, queries: &[Truth], widths: Widths, device: &Device) -> Result<Self> {
        let words: Vec<String> = queries.iter().flat_map(|truth| cuemark_text::words_of(&truth.query.text)).collect();
        let vocabulary = Vocabulary::of(&words, run.data.least_count);
        let verbs = frequent_verbs(queries, &vocabulary);
        let text = run.data.text.as_ref().map(|text| PublishedText::open(text, device)).transpose()?;
        Ok(Self { run, vocabulary, verbs, widths, text })
    }
}

/// What is brought to a network: vectors of words and the widths of everything.
pub(crate) struct Brought {
    /// The table of word vectors; `None` where a published encoder reads the queries.
    pub(crate) words: Option<WordTable>,
    queries: QueryFeatures,
    pub(crate) given: Given,
}

impl Brought {
    pub(crate) fn of(parts: &Parts, params: &Params, vectors: Vectors) -> Result<Self> {
        let Parts { run, vocabulary, verbs, widths, text } = parts;
        let text = text.as_ref();
        let queries = QueryFeatures::open(&run.data, text)?;
        let words = match text {
            Some(_) => None,
            None => Some(word_table(run, vocabulary, params, vectors)?),
        };
        let width = match (text, queries.width()?, &words) {
            (Some(text), ..) => text.width(),
            (None, Some(width), _) => width,
            (None, None, Some(words)) => words.vectors().dims2()?.1,
            (None, None, None) => 0,
        };
        let ids: Vec<u32> = verbs.iter().map(|verb| vocabulary.id(verb)).collect();
        let verb_vectors = match &words {
            Some(words) if !ids.is_empty() => {
                Some(words.vectors().detach().index_select(&Tensor::new(ids, params.device())?, 0)?)
            }
            _ => None,
        };
        let given = Given {
            visual: widths.visual,
            subtitle: widths.subtitle,
            audio: widths.audio,
            words: width,
            vocabulary: text.map_or(vocabulary.len(), |text| text.vocabulary()),
            tokens: text.map_or(TokenVectors::Own, |text| text.vectors()),
            verbs: verb_vectors,
        };
        Ok(Self { words, queries, given })
    }
}

/// Where published vectors of words come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vectors {
    /// The file that `data.words` names.
    File,
    /// The parameters: a checkpoint keeps them, so that the file need not be there any more.
    Params,
}

/// Where parameters come from.
pub(crate) enum Weights {
    /// Drawn from the run's seed, except those that `train.weights` gives.
    Fresh {
        /// What clip features are brought to first.
        scale: Option<Scale>,
    },
    /// A checkpoint of ours.
    Checkpoint(HashMap<String, Tensor>),
}

impl Trained {
    /// Reads the best checkpoint of a run folder, or the last one while there is no best.
    ///
    /// # Errors
    /// When this is no run folder, a file of it is damaged, or the checkpoint belongs to another model.
    pub fn open(folder: &RunFolder, device: &Device) -> Result<Self> {
        let path = if folder.best().is_file() { folder.best() } else { folder.last() };
        Self::open_checkpoint(folder, &path, device)
    }

    /// The weights of a run's best checkpoint by the names of the authors' code, without the word vectors, which are data there;
    /// neither its data nor its features are needed.
    ///
    /// # Errors
    /// When the folder holds no run, or its checkpoint is damaged or another model's.
    pub fn weights(folder: &RunFolder) -> Result<BTreeMap<String, Tensor>> {
        let path = if folder.best().is_file() { folder.best() } else { folder.last() };
        let run = folder.read_run()?;
        let (tensors, state, _) = checkpoint::load(&path, &Device::Cpu)?;
        if state.model != run.model {
            return Err(other_model(&path, &state.model, &run.model));
        }
        let ours =
            |name: &str| [crate::stage::OPTIMISER, WORD_TABLE, IN_FRONT, CLIPS].iter().any(|own| name.starts_with(own));
        Ok(tensors.into_iter().filter(|(name, _)| !ours(name)).collect())
    }

    /// As [`Trained::open`], from a checkpoint of the folder by name.
    pub(crate) fn open_checkpoint(folder: &RunFolder, path: &camino::Utf8Path, device: &Device) -> Result<Self> {
        let run = folder.read_run()?;
        let (tensors, state, seal) = checkpoint::load(path, device)?;
        if state.model != run.model {
            return Err(other_model(path, &state.model, &run.model));
        }
        let vocabulary = Vocabulary::read(&Source::new(folder.vocabulary()))?;
        let verbs = Source::new(folder.verbs()).text()?.lines().map(str::to_owned).collect();
        let widths = match Known::read(folder)? {
            Some(known) => known.widths,
            None => Footage::open(&run.data, HashMap::new())?.widths()?,
        };
        let text = run.data.text.as_ref().map(|text| PublishedText::open(text, device)).transpose()?;
        if let Some(text) = &text {
            text.check_print(&folder.read_text_print()?)?;
        }
        let parts = Parts { run, vocabulary, verbs, widths, text };
        let trained = Self::build(parts, Weights::Checkpoint(tensors), device)?;
        let note =
            || format!("`{path}` was written before checkpoints had checksums: damage to it would not be noticed");
        Ok(Self { note: (seal == Seal::Missing).then(note), ..trained })
    }

    /// A fresh model for the training queries.
    pub(crate) fn fresh(run: &RunFile, train: &[Truth], footage: &Footage, device: &Device) -> Result<Self> {
        let parts = Parts::learnt_from(run.clone(), train, footage.widths()?, device)?;
        let scale = run.data.standardise.then(|| Scale::measured(footage, train)).transpose()?;
        Self::build(parts, Weights::Fresh { scale }, device)
    }

    /// Keeps the words it knows in its run folder.
    pub(crate) fn write_words(&self, folder: &RunFolder) -> Result<()> {
        folder.write("vocabulary.txt", (self.vocabulary.words().join("\n") + "\n").as_bytes())?;
        folder.write("verbs.txt", self.verbs.join("\n").as_bytes())?;
        self.text.as_ref().map_or(Ok(()), |text| folder.write_text_print(&text.print()?))
    }

    pub(crate) fn build(parts: Parts, weights: Weights, device: &Device) -> Result<Self> {
        let card = registry::find(&parts.run.model)?;
        let (params, vectors) = match weights {
            Weights::Checkpoint(tensors) => (Params::loaded(tensors, device), Vectors::Params),
            Weights::Fresh { scale } => {
                let params = Params::seeded(parts.run.train.seed, device);
                scale.map_or(Ok(()), |scale| scale.keep(&params))?;
                (params, Vectors::File)
            }
        };
        let Brought { words, queries, given } = Brought::of(&parts, &params, vectors)?;
        let Parts { run, vocabulary, verbs, widths, text } = parts;
        let model = card.build(&run.settings, &given, params.builder())?;
        let input = model.input();
        if input.parses && text.is_some() {
            let problem = format!("`{}` reads parses, whose words are not the tokens of `data.text`", run.model);
            let hint = Some("leave `[data.text]` out, or take another model".into());
            return Err(TrainError::Setting { key: "data.text", problem, hint });
        }
        let scale = run.data.standardise.then(|| Scale::kept(&params, widths.visual)).transpose()?.map(Arc::new);
        let in_front = in_front(text.as_ref(), &input, &params)?;
        let queries = Arc::new(queries.prepared(&input));
        let (device, note) = (device.clone(), None);
        let trained = Self {
            run,
            card,
            model,
            params,
            words,
            text,
            queries,
            in_front,
            vocabulary,
            verbs,
            widths,
            scale,
            device,
            note,
        };
        if vectors == Vectors::File {
            trained.load_text()?;
            trained.load_published()?;
        }
        Ok(trained)
    }

    /// Lays the weights of a published encoder that will learn over the fresh ones.
    fn load_text(&self) -> Result<()> {
        let Some(text) = self.text.as_ref().filter(|text| text.size().is_some()) else { return Ok(()) };
        text.lay_into(&self.params, if self.in_front.is_some() { IN_FRONT } else { INSIDE })
    }

    /// Has a frozen encoder read all queries at once, which is much faster than one by one.
    pub(crate) fn prepare_text(&self, examples: &Examples, progress: &Progress) -> Result<()> {
        self.text.as_ref().map_or(Ok(()), |text| text.prepare(examples, progress))
    }

    /// The factor on the learning rate of one parameter in this pass; 0 keeps it as it is.
    pub(crate) fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        let of_model = self.model.rate(parameter, pass);
        match &self.text {
            Some(text) if parameter.starts_with(IN_FRONT) => text.config.factor_in_front(),
            Some(text) if parameter.starts_with(INSIDE) => text.config.factor(of_model),
            _ => of_model,
        }
    }

    /// Lays published weights over the fresh ones, by the reference's names.
    fn load_published(&self) -> Result<()> {
        let Some(path) = &self.run.train.weights else { return Ok(()) };
        let fault = |problem: String| TrainError::Folder {
            path: path.clone(),
            problem,
            hint: Advice::say("published weights must carry the reference's parameter names; ")
                .run("models show")
                .and(" lists ours"),
        };
        let tensors =
            cuemark_models::weights::read(path, &self.device).map_err(|error| fault(whole_message(&error)))?;
        let mut taken = 0;
        for (name, var) in self.params.vars() {
            let Some(tensor) = tensors.get(&name) else { continue };
            if tensor.shape() != var.shape() {
                let (found, wanted) = (tensor.dims(), var.dims());
                return Err(fault(format!("`{name}` has shape {found:?}, the network wants {wanted:?}")));
            }
            var.set(&tensor.to_dtype(DType::F32)?)?;
            taken += 1;
        }
        if taken == 0 {
            return Err(fault("holds no parameter of this model".to_owned()));
        }
        Ok(())
    }

    pub(crate) fn reader(&self, train: &[Truth]) -> Result<Reader> {
        Reader::new(&self.run.data, &self.model.input(), train, self.text.clone())
    }

    /// The batch on the model's device, word vectors looked up.
    pub(crate) fn ready(&self, batch: &Batch, pass: &Pass) -> Result<Batch> {
        let queries = self.ready_queries(&batch.queries, pass)?;
        Ok(Batch { queries, ..batch.to_device(&self.device)? })
    }

    /// The queries on the model's device, word vectors looked up.
    pub(crate) fn ready_queries(&self, queries: &QueryBatch, pass: &Pass) -> Result<QueryBatch> {
        let queries = self.queries.fill(queries.clone())?.to_device(&self.device)?;
        if queries.words.dim(2)? > 0 {
            return Ok(queries); // they came with features of their own
        }
        let words = match (&self.in_front, &self.words) {
            (Some(encoder), _) => {
                let rows = encoder.forward(&queries.word_ids, &queries.mask, pass)?;
                let rows = normalised(&rows, words_normalised(&self.model.input()))?;
                rows.broadcast_mul(&queries.mask.unsqueeze(2)?)?
            }
            (None, Some(table)) => table.look_up(&queries.word_ids, &queries.mask)?,
            (None, None) => return Ok(queries), // the model's own encoder reads the tokens
        };
        Ok(QueryBatch { words, ..queries })
    }

    /// Number of trainable values, word vectors included when they are trained.
    pub fn parameters(&self) -> usize {
        self.params.count()
    }
}

/// The encoder that learns in front of a model which reads words.
pub(crate) fn in_front(text: Option<&Arc<PublishedText>>, input: &Input, params: &Params) -> Result<Option<Bert>> {
    let size = text.and_then(|text| text.size()).filter(|_| input.text == Text::Words);
    Ok(match (size, text) {
        (Some(size), Some(text)) => Some(Bert::new(size, text.vocabulary(), params.builder().pp("text"))?),
        _ => None,
    })
}

fn other_model(path: &camino::Utf8Path, found: &str, wanted: &str) -> TrainError {
    TrainError::Folder {
        path: path.to_owned(),
        problem: format!("is a checkpoint of `{found}`, the run is about `{wanted}`"),
        hint: "name the folder it came from".into(),
    }
}

/// As [`Normalise::apply`], with a gradient.
fn normalised(rows: &Tensor, how: Normalise) -> Result<Tensor> {
    let norm = || rows.sqr()?.sum_keepdim(2)?.maximum(1e-24)?.sqrt();
    Ok(match how {
        Normalise::None => rows.clone(),
        Normalise::L2 => rows.broadcast_div(&norm()?)?,
        Normalise::L2Eps => rows.broadcast_div(&(norm()? + 1e-5)?)?,
    })
}

/// What the parameters of a sentence encoder inside a model begin with.
const INSIDE: &str = "text_encoder.bert.";

/// What those of one in front of a model begin with.
const IN_FRONT: &str = "text.";

/// What our word table's parameters begin with; the authors' networks are given vectors.
const WORD_TABLE: &str = "words.";

/// The buffer of published word vectors, and the parameter of trained ones.
pub(crate) const FIXED_WORDS: &str = "words.fixed_vectors";
pub(crate) const TRAINED_WORDS: &str = "words.weight";

/// Published vectors as a buffer, or vectors to be trained.
fn word_table(run: &RunFile, vocabulary: &Vocabulary, params: &Params, vectors: Vectors) -> Result<WordTable> {
    let vb = params.builder().pp("words");
    let Some(path) = &run.data.words else {
        return Ok(WordTable::trained(vocabulary.len(), run.data.word_width, vb)?);
    };
    if vectors == Vectors::Params {
        return Ok(WordTable::frozen(&vb.get_unchecked("fixed_vectors")?));
    }
    let table = published_vectors(path, vocabulary, params.device())?;
    vb.get(table.dims2()?, "fixed_vectors")?;
    let Some(var) = params.var(FIXED_WORDS) else { unreachable!("it was just made") };
    var.set(&table)?;
    Ok(WordTable::frozen(var.as_tensor()))
}

/// Published vectors of the words of a vocabulary, `[words, width]`; a word without one stays zero, as in the published code.
pub(crate) fn published_vectors(path: &camino::Utf8Path, vocabulary: &Vocabulary, device: &Device) -> Result<Tensor> {
    let published = WordVectors::read(&Source::new(path), |word| vocabulary.id(word) != Vocabulary::UNKNOWN)?;
    let mut table = vec![0f32; vocabulary.len() * published.width()];
    for (word, row) in
        vocabulary.words().iter().zip(table.chunks_exact_mut(published.width()).skip(Vocabulary::FIRST_WORD as usize))
    {
        if let Some(vector) = published.get(word) {
            row.copy_from_slice(vector);
        }
    }
    Ok(Tensor::from_vec(table, (vocabulary.len(), published.width()), device)?)
}
