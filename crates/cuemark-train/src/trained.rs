//! A model with its words: what training improves and what answers queries.

use std::collections::{BTreeMap, HashMap};

use cuemark_core::{Advice, Truth, whole_message};
use cuemark_formats::Source;
use cuemark_models::layers::WordTable;
use cuemark_models::{Batch, Given, Model, ModelCard, QueryBatch, registry};
use cuemark_tensor::{DType, Device, Params, Tensor};
use cuemark_text::{Vocabulary, WordVectors};

use crate::checkpoint::{self, Seal};
use crate::footage::{Footage, Widths};
use crate::kept::Known;
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
    pub(crate) words: WordTable,
    pub(crate) vocabulary: Vocabulary,
    verbs: Vec<String>,
    pub(crate) widths: Widths,
    pub(crate) device: Device,
    /// What a person should know about where the weights came from.
    pub note: Option<String>,
}

/// Where parameters come from.
pub(crate) enum Weights {
    /// Drawn from the run's seed, except those that `train.weights` gives.
    Fresh,
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
        let ours = |name: &str| name.starts_with(crate::trainer::OPTIMISER) || name.starts_with(WORD_TABLE);
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
        let trained = Self::build(run, vocabulary, verbs, widths, Weights::Checkpoint(tensors), device)?;
        let note =
            || format!("`{path}` was written before checkpoints had checksums: damage to it would not be noticed");
        Ok(Self { note: (seal == Seal::Missing).then(note), ..trained })
    }

    /// A fresh model for the training queries.
    pub(crate) fn fresh(run: &RunFile, train: &[Truth], footage: &Footage, device: &Device) -> Result<Self> {
        let words: Vec<String> = train.iter().flat_map(|truth| cuemark_text::words_of(&truth.query.text)).collect();
        let vocabulary = Vocabulary::of(&words, run.data.least_count);
        let verbs = frequent_verbs(train, &vocabulary);
        Self::build(run.clone(), vocabulary, verbs, footage.widths()?, Weights::Fresh, device)
    }

    /// Keeps the words it knows in its run folder.
    pub(crate) fn write_words(&self, folder: &RunFolder) -> Result<()> {
        folder.write("vocabulary.txt", (self.vocabulary.words().join("\n") + "\n").as_bytes())?;
        folder.write("verbs.txt", self.verbs.join("\n").as_bytes())
    }

    pub(crate) fn build(
        run: RunFile,
        vocabulary: Vocabulary,
        verbs: Vec<String>,
        widths: Widths,
        weights: Weights,
        device: &Device,
    ) -> Result<Self> {
        let card = registry::find(&run.model)?;
        let fresh = matches!(weights, Weights::Fresh);
        let params = match weights {
            Weights::Checkpoint(tensors) => Params::loaded(tensors, device),
            Weights::Fresh => Params::seeded(run.train.seed, device),
        };
        let words = word_table(&run, &vocabulary, &params, fresh)?;
        let width = match widths.words {
            Some(width) => width,
            None => words.vectors().dims2()?.1,
        };
        let ids: Vec<u32> = verbs.iter().map(|verb| vocabulary.id(verb)).collect();
        let verb_vectors = if ids.is_empty() {
            None
        } else {
            Some(words.vectors().detach().index_select(&Tensor::new(ids, device)?, 0)?)
        };
        let given = Given {
            visual: widths.visual,
            subtitle: widths.subtitle,
            audio: widths.audio,
            words: width,
            vocabulary: vocabulary.len(),
            verbs: verb_vectors,
        };
        let model = (card.build)(&run.settings, &given, params.builder())?;
        let (device, note) = (device.clone(), None);
        let trained = Self { run, card, model, params, words, vocabulary, verbs, widths, device, note };
        if fresh {
            trained.load_published()?;
        }
        Ok(trained)
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
        Reader::new(&self.run.data, &self.model.input(), train)
    }

    /// The batch on the model's device, word vectors looked up.
    pub(crate) fn ready(&self, batch: &Batch) -> Result<Batch> {
        let queries = self.ready_queries(&batch.queries)?;
        Ok(Batch { queries, ..batch.to_device(&self.device)? })
    }

    /// The queries on the model's device, word vectors looked up.
    pub(crate) fn ready_queries(&self, queries: &QueryBatch) -> Result<QueryBatch> {
        let queries = queries.to_device(&self.device)?;
        if queries.words.dim(2)? > 0 {
            return Ok(queries); // they came with features of their own
        }
        let words = self.words.look_up(&queries.word_ids, &queries.mask)?;
        Ok(QueryBatch { words, ..queries })
    }

    /// Number of trainable values, word vectors included when they are trained.
    pub fn parameters(&self) -> usize {
        self.params.count()
    }
}

fn other_model(path: &camino::Utf8Path, found: &str, wanted: &str) -> TrainError {
    TrainError::Folder {
        path: path.to_owned(),
        problem: format!("is a checkpoint of `{found}`, the run is about `{wanted}`"),
        hint: "name the folder it came from".into(),
    }
}

/// What our word table's parameters begin with; the authors' networks are given vectors.
const WORD_TABLE: &str = "words.";

/// Published vectors as a buffer, or vectors to be trained.
fn word_table(run: &RunFile, vocabulary: &Vocabulary, params: &Params, fresh: bool) -> Result<WordTable> {
    let vb = params.builder().pp("words");
    let Some(path) = &run.data.words else {
        return Ok(WordTable::trained(vocabulary.len(), run.data.word_width, vb)?);
    };
    if !fresh {
        return Ok(WordTable::frozen(&vb.get_unchecked("fixed_vectors")?));
    }
    let published = WordVectors::read(&Source::new(path), |word| vocabulary.id(word) != Vocabulary::UNKNOWN)?;
    let mut table = vec![0f32; vocabulary.len() * published.width()];
    for (word, row) in
        vocabulary.words().iter().zip(table.chunks_exact_mut(published.width()).skip(Vocabulary::FIRST_WORD as usize))
    {
        // A word without a vector stays zero, as in the published code.
        if let Some(vector) = published.get(word) {
            row.copy_from_slice(vector);
        }
    }
    let shape = (vocabulary.len(), published.width());
    vb.get(shape, "fixed_vectors")?;
    let Some(var) = params.var("words.fixed_vectors") else { unreachable!("it was just made") };
    var.set(&Tensor::from_vec(table, shape, params.device())?)?;
    Ok(WordTable::frozen(var.as_tensor()))
}
