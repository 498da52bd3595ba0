//! Putting examples into padded tensors.

use std::sync::Arc;

use cuemark_core::{NormSpan, Rng, VideoId};
use cuemark_models::{Batch, BatchBy, Input, Phrases, QueryBatch, Targets, VideoBatch};
use cuemark_tensor::{DType, Device, Tensor};

use crate::examples::{Example, Examples};
use crate::first_stage::FirstNegatives;
use crate::footage::{Clips, Footage};
use crate::highlights::joint_targets;
use crate::nearness::{self, Nearness};
use crate::negatives::Candidates;
use crate::query_features::QueryFeatures;
use crate::{Result, StageConfig};

/// Makes batches of one split for one model. Everything is made on the CPU; [`Batch::to_device`] moves it.
pub(crate) struct Batches {
    pub(crate) examples: Examples,
    pub(crate) footage: Arc<Footage>,
    pub(crate) queries: Arc<QueryFeatures>,
    pub(crate) input: Input,
    /// How near videos are to queries that were not written for them, for models that ask for it.
    pub(crate) nearness: Option<Arc<dyn Nearness>>,
    /// By truth the videos that answer it, by [`Examples::answering`].
    pub(crate) answering: Vec<Vec<usize>>,
    /// Where a second stage draws its negatives.
    pub(crate) first_stage: Option<FirstNegatives>,
}

impl Batches {
    /// The batches of one epoch of a stage, as positions of examples.
    pub(crate) fn epoch(&self, stage: &StageConfig, order: Rng) -> Vec<Vec<usize>> {
        self.examples.epoch(self.input.batch_by, stage.batch, order)
    }

    /// Steps of one epoch of a stage, which no order changes.
    pub(crate) fn per_epoch(&self, stage: &StageConfig) -> usize {
        self.epoch(stage, Rng::new(0)).len()
    }

    /// The batch of these examples for training. It carries spans, if the model may see them, and negatives out of
    /// `candidates`, in stages that have them; what it draws comes from `rng`.
    pub(crate) fn training(&self, examples: &[usize], candidates: Option<&Candidates>, rng: &mut Rng) -> Result<Batch> {
        // First of all: drawn queries become examples of the batch like any other, and everything below is made of those.
        let drawn = candidates.map(|candidates| candidates.draw(&self.examples, examples, rng));
        let examples = drawn.as_ref().map_or(examples, |drawn| drawn.examples.as_slice());
        let (mut videos, of_query) = self.videos_of(examples);
        let negatives = match (&drawn, &self.first_stage) {
            (Some(drawn), _) => Some(drawn.negatives(examples, &mut videos)),
            (None, Some(first)) => Some(first.draw(examples, &mut videos, rng)),
            (None, None) => None,
        };
        let clips =
            videos.iter().map(|video| self.footage.whole(&self.examples.videos[*video])).collect::<Result<Vec<_>>>()?;
        let list: Vec<&Example> = examples.iter().map(|position| &self.examples.list[*position]).collect();
        let ids = videos.iter().map(|video| self.examples.videos[*video].clone()).collect();
        let other_videos = if self.input.other_videos { Some(self.other_videos(&list, rng)?) } else { None };
        let similarity = match &self.nearness {
            Some(near) => Some(nearness::of_batch(near.as_ref(), &self.examples, &list, &videos, &of_query)?),
            None => None,
        };
        let positives = positives(&list, &videos, &of_query, &self.answering);
        let mut targets = self.input.spans.then(|| Targets { positives, ..targets(&list, &of_query, &clips) });
        if let Some(targets) = targets.as_mut().filter(|_| self.input.joint) {
            let pairs: Vec<(&Example, &Clips)> =
                list.iter().zip(&of_query).map(|(example, place)| (*example, &*clips[*place])).collect();
            targets.joint = Some(joint_targets(&pairs));
        }
        Ok(Batch {
            videos: video_batch(ids, &clips)?,
            queries: self.queries.fill(query_batch(&list, of_query)?)?,
            targets,
            other_videos,
            similarity,
            negatives,
        })
    }

    /// The videos of a batch, and for every query the place of its own among them.
    fn videos_of(&self, examples: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let asked = examples.iter().map(|position| self.examples.list[*position].video);
        // A video twice where two pairs share it: such models answer row by row, the sentence of a row about the clips of that row.
        if self.input.batch_by == BatchBy::Pairs {
            return (asked.collect(), (0..examples.len()).collect());
        }
        let mut videos: Vec<usize> = Vec::new();
        let mut of_query = Vec::with_capacity(examples.len());
        for video in asked {
            // From the end: an epoch puts the examples of one video beside each other.
            let place = videos.iter().rposition(|known| *known == video).unwrap_or_else(|| {
                videos.push(video);
                videos.len() - 1
            });
            of_query.push(place);
        }
        (videos, of_query)
    }

    /// For every query a video that is not its own, drawn evenly.
    fn other_videos(&self, list: &[&Example], rng: &mut Rng) -> Result<VideoBatch> {
        let all = self.examples.videos.len();
        let other = |example: &&Example| {
            let drawn = rng.below(all.saturating_sub(1).max(1));
            // Skipping over the own video keeps the draw even.
            (drawn + usize::from(drawn >= example.video && all > 1)).min(all - 1)
        };
        let drawn: Vec<usize> = list.iter().map(other).collect();
        let clips =
            drawn.iter().map(|video| self.footage.whole(&self.examples.videos[*video])).collect::<Result<Vec<_>>>()?;
        video_batch(drawn.iter().map(|video| self.examples.videos[*video].clone()).collect(), &clips)
    }
}

/// Clips of several videos, padded to the longest.
pub(crate) fn video_batch(ids: Vec<VideoId>, clips: &[Arc<Clips>]) -> Result<VideoBatch> {
    let lengths: Vec<usize> = clips.iter().map(|clips| clips.visual.rows()).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let stacked = |rows: &mut dyn Iterator<Item = &cuemark_features::Features>, width: usize| -> Result<Tensor> {
        let mut data = Vec::with_capacity(clips.len() * longest * width);
        for (number, features) in rows.enumerate() {
            data.extend_from_slice(features.data());
            data.resize((number + 1) * longest * width, 0.0);
        }
        Ok(Tensor::from_vec(data, (clips.len(), longest, width), &Device::Cpu)?)
    };
    let width = clips.first().map_or(0, |clips| clips.visual.width());
    let subtitle = match clips.first().and_then(|clips| clips.subtitle.as_ref()) {
        Some(first) => Some(stacked(&mut clips.iter().filter_map(|clips| clips.subtitle.as_ref()), first.width())?),
        None => None,
    };
    let audio = match clips.first().and_then(|clips| clips.audio.as_ref()) {
        Some(first) => Some(stacked(&mut clips.iter().filter_map(|clips| clips.audio.as_ref()), first.width())?),
        None => None,
    };
    Ok(VideoBatch {
        ids,
        visual: stacked(&mut clips.iter().map(|clips| &clips.visual), width)?,
        subtitle,
        audio,
        mask: mask(&lengths, longest)?,
        lengths,
        durations: clips.iter().map(|clips| clips.covered).collect(),
    })
}

/// Queries padded to the longest; `words` is left empty for the table of word vectors to fill.
pub(crate) fn query_batch(list: &[&Example], of_query: Vec<usize>) -> Result<QueryBatch> {
    let words: Vec<&[u32]> = list.iter().map(|example| example.words.as_slice()).collect();
    let (word_ids, lengths) = padded(&words)?;
    let longest = word_ids.dim(1)?;
    // All or none: a model that reads parses reads those of every query, and an empty one would be a parse too.
    let parses = list.iter().map(|example| example.parse.clone()).collect::<Option<Vec<_>>>();
    let phrases = if list.iter().all(|example| example.phrases.is_empty()) {
        None
    } else {
        let all: Vec<&[u32]> = list.iter().flat_map(|example| example.phrases.iter().map(Vec::as_slice)).collect();
        let (word_ids, lengths) = padded(&all)?;
        let per_query = list.iter().map(|example| example.phrases.len()).collect();
        Some(Phrases { word_ids, words: None, lengths, per_query })
    };
    Ok(QueryBatch {
        ids: list.iter().map(|example| example.query.clone()).collect(),
        video: of_query,
        words: Tensor::zeros((list.len(), longest, 0), DType::F32, &Device::Cpu)?,
        word_ids,
        mask: mask(&lengths, longest)?,
        lengths,
        parses,
        phrases,
    })
}

fn padded(rows: &[&[u32]]) -> Result<(Tensor, Vec<usize>)> {
    let lengths: Vec<usize> = rows.iter().map(|row| row.len()).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut data = Vec::with_capacity(rows.len() * longest);
    for (number, row) in rows.iter().enumerate() {
        data.extend_from_slice(row);
        data.resize((number + 1) * longest, 0);
    }
    Ok((Tensor::from_vec(data, (rows.len(), longest), &Device::Cpu)?, lengths))
}

fn mask(lengths: &[usize], longest: usize) -> Result<Tensor> {
    // Numbers, not truth values: networks multiply by it.
    let real = |length: usize| (0..longest).map(move |place| f32::from(u8::from(place < length)));
    let data: Vec<f32> = lengths.iter().copied().flat_map(real).collect();
    Ok(Tensor::from_vec(data, (lengths.len(), longest), &Device::Cpu)?)
}

fn targets(list: &[&Example], of_query: &[usize], clips: &[Arc<Clips>]) -> Targets {
    let span = |(example, place): (&&Example, &usize)| {
        let clips = &clips[*place];
        // Examples for training have a span that begins inside their clips; its end may lie after them.
        let (start, end) = example.span.map_or((0.0, 0.0), |span| (span.start(), span.end()));
        let norm = NormSpan::new((start - clips.start) / clips.covered, (end - clips.start) / clips.covered);
        norm.map_or_else(whole, NormSpan::clipped)
    };
    // A batch of weights that are all 1 says nothing about them, so that the loss is the paper's own and not a product with ones.
    let graded = list.iter().any(|example| example.relevance != 1.0);
    Targets {
        spans: list.iter().zip(of_query).map(span).collect(),
        relevance: graded.then(|| list.iter().map(|example| example.relevance).collect()),
        joint: None,
        positives: None,
    }
}

/// For every query the places of all videos that answer it; `None` when that is only its own everywhere.
fn positives(
    list: &[&Example],
    videos: &[usize],
    of_query: &[usize],
    answering: &[Vec<usize>],
) -> Option<Vec<Vec<usize>>> {
    let places = |example: &&Example| -> Vec<usize> {
        let answering = answering.get(example.truth).map_or(&[][..], Vec::as_slice);
        (0..videos.len()).filter(|place| answering.binary_search(&videos[*place]).is_ok()).collect()
    };
    let positives: Vec<Vec<usize>> = list.iter().map(places).collect();
    // Said only where it differs: contrastive losses take everything but the own video for a negative, which is what the papers
    // do, and wrong only where a batch holds a second video that answers the query.
    let only_own = positives.iter().zip(of_query).all(|(places, own)| places.iter().all(|place| place == own));
    (!only_own).then_some(positives)
}

fn whole() -> NormSpan {
    NormSpan::new(0.0, 1.0).unwrap_or_else(|| unreachable!("0 and 1 are finite"))
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use cuemark_core::Span;
    use cuemark_features::Durations;

    use super::*;
    use crate::{OutOfReach, RunFile};

    fn example(truth: usize, video: usize) -> Example {
        Example {
            query: cuemark_core::QueryId::from(format!("q{truth}").as_str()),
            truth,
            video,
            words: Vec::new(),
            parse: None,
            phrases: Vec::new(),
            span: None,
            relevance: 1.0,
            windows: Vec::new(),
            rated: None,
            said: 1,
        }
    }

    /// Query 0 is answered in videos 5 and 7, query 1 in 7 alone: in a batch of pairs (0 in 5), (1 in 7), (0 in 7) both
    /// places that hold video 7 count for either.
    #[test]
    fn every_video_of_the_batch_that_answers_a_query_is_a_positive() {
        let list = [example(0, 5), example(1, 7), example(0, 7)];
        let list: Vec<&Example> = list.iter().collect();
        let answering = [vec![5, 7], vec![7]];
        let found = positives(&list, &[5, 7, 7], &[0, 1, 2], &answering);
        assert_eq!(found, Some(vec![vec![0, 1, 2], vec![1, 2], vec![0, 1, 2]]));
    }

    /// The losses of a weak model would not show a span that it is given and does not read; a batch does.
    #[test]
    fn a_model_that_may_not_see_spans_is_given_none_whatever_examples_know() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let features = root.join("v.csv");
        std::fs::write(&features, "1,2\n3,4\n5,6\n7,8\n").unwrap();
        let run = format!(
            "[model]\nname = 'cnm'\n[data]\ndataset = 'world'\nroot = '{root}'\nfeatures = '{root}'\nstream = 'x'\n\
             word_width = 3\nclip_length = 1.0\n[train]\nepochs = 1\nbatch = 1\nrate = 1.0"
        );
        let data = RunFile::from_table("run.toml", run.parse().unwrap(), &[]).unwrap().data;
        let footage = Arc::new(Footage::open(&data, Durations::default()).unwrap());
        let queries = Arc::new(QueryFeatures::open(&data, None).unwrap());
        let targets = |spans: bool| {
            let batches = Batches {
                examples: Examples {
                    videos: vec![VideoId::from("v")],
                    list: vec![Example { span: Span::new(1.0, 3.0).ok(), words: vec![1, 2], ..example(0, 0) }],
                    of_video: vec![vec![0]],
                    out_of_reach: OutOfReach::default(),
                },
                footage: Arc::clone(&footage),
                queries: Arc::clone(&queries),
                input: Input { spans, ..Input::pairs(4) },
                nearness: None,
                answering: vec![vec![0]],
                first_stage: None,
            };
            batches.training(&[0], None, &mut Rng::new(1)).unwrap().targets
        };
        // One to three seconds of the four that the rows cover.
        assert_eq!(targets(true).unwrap().spans, [NormSpan::new(0.25, 0.75).unwrap()]);
        assert!(targets(false).is_none());
    }

    #[test]
    fn a_batch_in_which_only_own_videos_answer_has_no_mask() {
        let list = [example(0, 5), example(1, 7)];
        let list: Vec<&Example> = list.iter().collect();
        assert_eq!(positives(&list, &[5, 7], &[0, 1], &[vec![5, 6], vec![7]]), None);
    }
}
