//! Sentences and moments as vectors of one space: what an index is made of.

use std::collections::HashMap;
use std::sync::OnceLock;

use cuemark_core::{Advice, ClipLen, Query, QueryId, Span, VideoId};
use cuemark_features::{Features, Recipe};
use cuemark_models::{BiEncoder, Input, VideoBatch};
use cuemark_tensor::{Device, Pass, Tensor};
use cuemark_text::Vocabulary;

use crate::batches::{query_batch, video_batch};
use crate::examples::{Example, Numbers};
use crate::footage::{Clips, Footage};
use crate::kept::Known;
use crate::scale::Scale;
use crate::text::Reader;
use crate::{Result, RunFolder, TrainError, Trained};

/// Training videos that are looked at to learn how long a video usually is.
const SAMPLED: usize = 200;

/// Stretches of video that are embedded at a time.
const AT_ONCE: usize = 32;
/// Sentences that are embedded together at the most.
const SENTENCES_AT_ONCE: usize = 64;

/// A trained model that maps sentences and moments into one space, independently of each other.
pub struct Embedder {
    trained: Trained,
    reader: Reader,
    input: Input,
    /// The run's own features, opened when they are asked for; `None` when they are gone.
    footage: OnceLock<Option<Footage>>,
    recipe: Option<Recipe>,
    width: usize,
    window: f64,
}

/// A moment as an index keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedMoment {
    /// Where it lies, in **seconds** of its video.
    pub span: Span,
    /// Its place in the space, of length 1.
    pub embedding: Vec<f32>,
}

impl Embedder {
    /// Reads the best checkpoint of a run folder, or of what [`Embedder::files`] kept of one.
    ///
    /// # Errors
    /// As [`Trained::open`], and when the model does not embed sentences and moments independently.
    pub fn open(folder: &RunFolder, device: &Device) -> Result<Self> {
        let trained = Trained::open(folder, device)?;
        if trained.model.bi_encoder().is_none() {
            return Err(TrainError::Folder {
                path: folder.path().to_owned(),
                problem: format!(
                    "`{}` scores pairs of a query and a video; its moments cannot be indexed",
                    trained.run.model
                ),
                hint: Advice::say("train a bi-encoder such as mmn or rmmn; ").run("models list").and(" says which are"),
            });
        }
        let input = trained.model.input();
        if let Some(known) = Known::read(folder)? {
            let reader = Reader::of_roles(&input, known.roles, trained.text.clone());
            let (recipe, window, footage) = (known.recipe, known.window, OnceLock::new());
            return Self { trained, reader, input, footage, recipe, width: 0, window }.measured();
        }
        let footage = Footage::open(&trained.run.data, HashMap::new())?;
        let train =
            if input.phrases > 0 { trained.run.data.split(&trained.run.data.train)?.queries } else { Vec::new() };
        let reader = trained.reader(&train)?;
        let window = footage.usual_seconds(SAMPLED)?;
        let recipe = footage.source().origin(&trained.run.data.stream).ok().and_then(|origin| origin.recipe.cloned());
        Self { trained, reader, input, footage: Some(footage).into(), recipe, width: 0, window }.measured()
    }

    fn measured(self) -> Result<Self> {
        let mut embedder = self;
        embedder.width = embedder.sentences(&["a"])?.first().map_or(0, Vec::len);
        Ok(embedder)
    }

    /// Numbers per vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// What it was trained as.
    pub fn model(&self) -> &str {
        &self.trained.run.model
    }

    /// The run's settings, for its data and splits.
    pub fn run(&self) -> &crate::RunFile {
        &self.trained.run
    }

    /// **Seconds** of the stretches that it was trained on: the median over training videos.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// How the clip features it reads must have been made; `None` for layouts that do not say.
    pub fn recipe(&self) -> Option<&Recipe> {
        self.recipe.as_ref()
    }

    /// What [`Embedder::open`] needs to make the same of a folder in which these files lie, by their names there: neither
    /// the run nor the data that it learned from need be there any more. `folder` is the run that this was opened from.
    ///
    /// # Errors
    /// When its checkpoint cannot be read any more.
    pub fn files(&self, folder: &RunFolder) -> Result<Vec<(String, Vec<u8>)>> {
        let known = Known {
            widths: self.trained.widths,
            window: self.window,
            recipe: self.recipe.clone(),
            roles: self.reader.roles(),
        };
        known.files(folder, &self.trained.run)
    }

    /// The run's own features, while they are where they were.
    fn footage(&self) -> Option<&Footage> {
        self.footage.get_or_init(|| Footage::open(&self.trained.run.data, HashMap::new()).ok()).as_ref()
    }

    /// The run's own clip features of a video with the length of their clips; `None` when its store does not have it, or is
    /// not there any more.
    ///
    /// # Errors
    /// When the store is damaged.
    pub fn stored(&self, video: &VideoId) -> Result<Option<(Features, ClipLen)>> {
        let Some(footage) = self.footage() else { return Ok(None) };
        let (source, stream) = (footage.source(), &self.trained.run.data.stream);
        if source.videos(stream).binary_search(&video).is_err() {
            return Ok(None);
        }
        let features = source.get(video, stream)?;
        let clip = source.clip_len(video, stream, features.rows())?;
        Ok(Some((features, clip)))
    }

    /// Whether the model has met a word (lower case) in training.
    pub fn knows(&self, word: &str) -> bool {
        self.trained.vocabulary.id(word) != Vocabulary::UNKNOWN
    }

    /// One unit vector per sentence, in order; a sentence's vector does not depend on the others.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn sentences(&self, sentences: &[&str]) -> Result<Vec<Vec<f32>>> {
        let examples = sentences.iter().map(|sentence| self.example(sentence)).collect::<Result<Vec<_>>>()?;
        let mut all: Vec<Vec<f32>> = vec![Vec::new(); examples.len()];
        for places in alike(&examples) {
            for places in places.chunks(SENTENCES_AT_ONCE) {
                let batch: Vec<&Example> = places.iter().filter_map(|place| examples.get(*place)).collect();
                let queries = query_batch(&batch, vec![0; batch.len()])?;
                let queries = self.trained.ready_queries(&queries, &Pass::answering())?;
                let embedded = rows(&self.bi_encoder()?.embed_queries(&queries)?)?;
                for (place, numbers) in places.iter().zip(embedded) {
                    all[*place] = numbers;
                }
            }
        }
        Ok(all)
    }

    /// A sentence as the model reads it.
    fn example(&self, sentence: &str) -> Result<Example> {
        let query = Query { id: QueryId::new("q"), text: sentence.to_owned() };
        let read = self.reader.read(&query)?;
        let numbers = Numbers::of(&read, &self.reader, &self.trained.vocabulary)?;
        Ok(Example {
            query: query.id,
            truth: 0,
            video: 0,
            words: numbers.words,
            phrases: numbers.phrases,
            said: read.words.len(),
            parse: read.parse,
            span: None,
            relevance: 1.0,
            windows: Vec::new(),
            rated: None,
        })
    }

    /// The moments of one video at every scale, in the order of their starts, then ends.
    ///
    /// A video about as long as [`Embedder::window`] is seen whole. A longer one is cut into half-overlapping stretches of
    /// that length, then of twice that length and so on up to the whole video; of overlapping stretches each moment comes
    /// from the one it lies most central in, and a longer stretch adds only moments that shorter ones could not hold.
    ///
    /// # Errors
    /// Those of the model.
    pub fn moments(&self, features: &Features, clip: ClipLen) -> Result<Vec<EmbeddedMoment>> {
        let stretches = stretches(features.rows(), ((self.window / clip.seconds()).round() as usize).max(1));
        let mut found = Vec::new();
        for chunk in stretches.chunks(AT_ONCE) {
            let clips: Vec<_> = chunk.iter().map(|stretch| self.clips(features, clip, *stretch)).collect();
            let ids = chunk.iter().map(|_| VideoId::new("v")).collect();
            let batch: VideoBatch = video_batch(ids, &clips)?.to_device(&self.trained.device)?;
            for ((stretch, clips), moments) in chunk.iter().zip(&clips).zip(self.bi_encoder()?.embed_moments(&batch)?) {
                for (span, embedding) in moments.spans.iter().zip(rows(&moments.embeddings)?) {
                    let at = |fraction: f64| clips.start + fraction.clamp(0.0, 1.0) * clips.covered;
                    let Ok(span) = Span::new(at(span.start()), at(span.end())) else { continue };
                    if stretch.owns(span, clip.seconds()) {
                        found.push(EmbeddedMoment { span, embedding });
                    }
                }
            }
        }
        found.sort_by(|a, b| a.span.start().total_cmp(&b.span.start()).then(a.span.end().total_cmp(&b.span.end())));
        Ok(found)
    }

    fn bi_encoder(&self) -> Result<&dyn BiEncoder> {
        self.trained.model.bi_encoder().ok_or_else(|| TrainError::Folder {
            path: "run".into(),
            problem: "the model is no bi-encoder".to_owned(),
            hint: "train a bi-encoder such as mmn or rmmn".into(),
        })
    }

    fn clips(&self, features: &Features, clip: ClipLen, stretch: Stretch) -> std::sync::Arc<Clips> {
        let width = features.width();
        let data = features.data().get(stretch.first * width..(stretch.first + stretch.rows) * width);
        let part =
            Features::new(stretch.rows, width, data.unwrap_or_default().to_vec()).unwrap_or_else(|| features.clone());
        let resample = self.input.resample;
        let seen = if resample.keeps_clip_len() { part.rows().min(resample.rows()) } else { part.rows() };
        std::sync::Arc::new(Clips {
            visual: resample.apply(&Scale::brought(self.trained.scale.as_ref(), self.input.normalise, part, 0)),
            subtitle: None,
            audio: None,
            start: stretch.first as f64 * clip.seconds(),
            covered: seen as f64 * clip.seconds(),
        })
    }
}

/// Rows of a video that the model sees at once, and the moments that it answers for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    first: usize,
    rows: usize,
    /// Moments whose centre lies in these rows are its own.
    centre: (f64, f64),
    /// Shorter moments, in rows, belong to a finer scale.
    shortest: f64,
}

impl Stretch {
    fn owns(&self, span: Span, clip: f64) -> bool {
        let centre = span.centre() / clip;
        self.centre.0 <= centre && centre < self.centre.1 && span.len() / clip > self.shortest
    }
}

/// Every stretch of a video of so many rows, the finest scale first.
fn stretches(rows: usize, window: usize) -> Vec<Stretch> {
    let mut all = Vec::new();
    let (mut length, mut shortest) = (window.max(1), 0.0);
    loop {
        // A video half as long again is still seen whole: cutting it would double the work for little.
        if rows <= length + length / 2 {
            all.push(Stretch { first: 0, rows, centre: (0.0, f64::INFINITY), shortest });
            return all;
        }
        let step = (length / 2).max(1);
        let mut firsts: Vec<usize> = (0..).map(|n| n * step).take_while(|first| first + length < rows).collect();
        firsts.push(rows - length);
        for (place, first) in firsts.iter().enumerate() {
            // Half-way between the middles of this stretch and its neighbours.
            let middle = |first: usize| first as f64 + length as f64 / 2.0;
            let before = place.checked_sub(1).and_then(|before| firsts.get(before));
            let low = before.map_or(0.0, |before| middle(*before).midpoint(middle(*first)));
            let high = firsts.get(place + 1).map_or(f64::INFINITY, |after| middle(*first).midpoint(middle(*after)));
            all.push(Stretch { first: *first, rows: length, centre: (low, high), shortest });
        }
        shortest = length as f64 / 2.0;
        length *= 2;
    }
}

/// Places of examples that may be embedded together: those of one length, so that none is padded and a sentence's vector does not
/// depend on the others. What has parses or phrases is on its own.
fn alike(examples: &[Example]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut of_length: HashMap<usize, usize> = HashMap::new();
    for (place, example) in examples.iter().enumerate() {
        if example.parse.is_some() || !example.phrases.is_empty() {
            groups.push(vec![place]);
            continue;
        }
        let group = *of_length.entry(example.words.len()).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups
}

fn rows(tensor: &Tensor) -> Result<Vec<Vec<f32>>> {
    Ok(tensor.to_device(&Device::Cpu)?.to_vec2::<f32>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_video_about_as_long_as_the_window_is_seen_whole() {
        for rows in [1, 32, 48] {
            assert_eq!(stretches(rows, 32).len(), 1, "{rows}");
        }
        assert!(stretches(49, 32).len() > 1);
    }

    #[test]
    fn every_moment_of_a_long_video_belongs_to_exactly_one_stretch_of_the_finest_scale_that_holds_it() {
        let all = stretches(500, 32);
        assert!(all.iter().all(|stretch| stretch.first + stretch.rows <= 500));
        for start in 0..490 {
            let span = Span::new(f64::from(start), f64::from(start) + 10.0).unwrap();
            let owners: Vec<&Stretch> =
                all.iter().filter(|stretch| stretch.rows == 32 && stretch.owns(span, 1.0)).collect();
            assert_eq!(owners.len(), 1, "{start}");
            let owner = owners[0];
            assert!(owner.first as f64 <= span.start() && span.end() <= (owner.first + owner.rows) as f64, "{start}");
            assert!(!all.iter().any(|stretch| stretch.rows > 32 && stretch.owns(span, 1.0)), "{start}");
        }
        let whole = Span::new(0.0, 499.0).unwrap();
        assert!(all.iter().any(|stretch| stretch.owns(whole, 1.0)));
    }
}
