//! Answering the queries of a split.

use std::sync::Arc;

use cuemark_core::{Predictions, Progress, Split, Truth, VideoId};
use cuemark_features::{Durations, FeatureVariant};
use cuemark_models::{Batch, Code, Corpus, Proposal, suppress};
use cuemark_tensor::{Pass, on_threads};
use cuemark_text::Vocabulary;
use serde::{Deserialize, Serialize};

use crate::batches::{query_batch, video_batch};
use crate::examples::{CutQueries, Example, Examples, OutOfReach};
use crate::footage::{Clips, Footage, Window};
use crate::found::{Found, FoundMoment, predictions};
use crate::text::Reader;
use crate::{FirstStage, Result, TrainError, Trained};

/// What is asked of a trained model.
#[derive(Debug, Clone)]
pub struct PredictOptions {
    /// Answers kept per query.
    pub answers: usize,
    /// Pairs of query and video at a time.
    pub batch: usize,
    /// Where each query is searched.
    pub among: Among,
    /// **Seconds** of the stretches that long videos are cut into; `None` lets the model see as much as it can.
    pub window: Option<f64>,
    /// Features shuffled or zeroed, to see what the model makes of the query alone.
    pub variant: FeatureVariant,
}

/// Where a query is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Among {
    /// In the video it was written for.
    #[default]
    Own,
    /// In its pool.
    Pool,
    // Answers come as lists of moments of all videos, of moments of the query's own, and of videos.
    /// In every video of the split.
    Split,
}

impl Among {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Pool => "pool",
            Self::Split => "split",
        }
    }
}

impl std::fmt::Display for Among {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Answers, and what could not be answered.
#[derive(Debug)]
pub struct Predicted {
    /// Best first, in **seconds**.
    pub predictions: Predictions,
    /// Moments that no answer could meet.
    pub out_of_reach: OutOfReach,
    /// Queries of which the model read only the beginning.
    pub cut: CutQueries,
}

/// The queries of a split, and what they are answered by.
pub(crate) struct Asked<'a> {
    pub(crate) split: &'a Split,
    pub(crate) footage: &'a Footage,
    pub(crate) reader: &'a Reader,
    pub(crate) options: &'a PredictOptions,
    /// The videos that another model chose for each query.
    pub(crate) first: Option<&'a FirstStage>,
}

impl Asked<'_> {
    /// Where a query is searched.
    fn videos(&self, truth: &Truth) -> Result<Vec<VideoId>> {
        let lacks = |problem| TrainError::Query { query: truth.query.id.to_string(), problem };
        match (self.first, self.options.among) {
            (Some(first), _) => Ok(first.videos(truth)?.iter().map(|(video, _)| video.clone()).collect()),
            (None, Among::Own) => {
                let own = truth.video.as_ref().map(|video| &video.id);
                let own = own.or_else(|| truth.right().next().map(|moment| &moment.video));
                own.map(|video| vec![video.clone()]).ok_or_else(|| lacks("names no video to search in"))
            }
            (None, Among::Pool) => truth.pool.clone().ok_or_else(|| lacks("has no pool to search in")),
            (None, Among::Split) => Ok(self.split.videos.iter().map(|video| video.id.clone()).collect()),
        }
    }

    /// Every query with every video that it is asked of.
    fn examples(&self, vocabulary: &Vocabulary) -> Result<Examples> {
        Examples::asking(self.split, self.reader, vocabulary, |truth| self.videos(truth))
    }
}

/// Pairs of a query and a video that one search answers, at the most: what it finds is held in memory until it is through.
const SEARCHED_AT_ONCE: usize = 32_768;

/// The examples of each query, gathered where consecutive queries search the same videos in the same order: a corpus model then puts
/// the videos' codes together once for all of them.
fn asked_together(list: &[Example]) -> Vec<Vec<&[Example]>> {
    let mut groups: Vec<Vec<&[Example]>> = Vec::new();
    for examples in list.chunk_by(|a, b| a.truth == b.truth) {
        let same = |other: &[Example]| other.iter().map(|one| one.video).eq(examples.iter().map(|one| one.video));
        match groups.last_mut() {
            Some(group) if (group.len() + 1) * examples.len() <= SEARCHED_AT_ONCE && same(group[0]) => {
                group.push(examples);
            }
            _ => groups.push(vec![examples]),
        }
    }
    groups
}

/// One stretch of one video that one query is asked of.
struct Ask {
    example: usize,
    window: Window,
}

impl Trained {
    /// Answers every query of a split. `progress` counts pairs of query and video.
    ///
    /// # Errors
    /// When a video has no features, a query names no video or pool, it was stopped, and those of the model.
    pub fn predict(&self, split: &Split, options: &PredictOptions, progress: &Progress) -> Result<Predicted> {
        self.predict_after(split, options, None, progress)
    }

    /// As [`Trained::predict`], but every query is asked of the videos that a first stage chose for it, whose scores count
    /// where the model can take them. [`PredictOptions::among`] then says only how answers are listed.
    ///
    /// # Errors
    /// As [`Trained::predict`], and for a query that the first stage has no videos for.
    pub fn predict_after(
        &self,
        split: &Split,
        options: &PredictOptions,
        first: Option<&FirstStage>,
        progress: &Progress,
    ) -> Result<Predicted> {
        let durations = durations(split);
        let input = self.model.input();
        let footage = Footage::open(&self.run.data, durations)?.varied(options.variant);
        let footage = footage.prepared(&input, self.scale.as_ref());
        // Which roles count as phrases was decided on the training queries.
        let train = if input.phrases > 0 { self.run.data.split(&self.run.data.train)?.queries } else { Vec::new() };
        let reader = self.reader(&train)?;
        self.answer(&Asked { split, footage: &footage, reader: &reader, options, first }, progress)
    }

    pub(crate) fn answer(&self, asked: &Asked, progress: &Progress) -> Result<Predicted> {
        let Asked { split, footage, options, first, .. } = *asked;
        let mut cut = CutQueries::default();
        let mut ranked: Vec<Found> = split.queries.iter().map(|truth| Found::of(truth, options)).collect();
        match self.model.corpus().filter(|_| first.is_some() || options.among != Among::Own) {
            Some(corpus) => {
                self.search(corpus, asked, &mut ranked, progress)?;
            }
            None => {
                let examples = asked.examples(&self.vocabulary)?;
                let examples = if self.model.input().joint { examples.with_words()? } else { examples };
                cut = self.queries.cut_queries(&examples, self.model.input().words)?;
                self.prepare_text(&examples, progress)?;
                self.propose(&examples, asked, &mut ranked, progress)?;
            }
        }
        let out_of_reach = self.reach(split, footage, options)?;
        let threshold = self.model.nms().unwrap_or(1.0);
        Ok(Predicted { predictions: predictions(&split.queries, ranked, threshold, options), out_of_reach, cut })
    }

    /// Every query against one video at a time.
    fn propose(&self, examples: &Examples, asked: &Asked, ranked: &mut [Found], progress: &Progress) -> Result<()> {
        let Asked { footage, options, .. } = *asked;
        let mut asks = Vec::with_capacity(examples.list.len());
        for (position, example) in examples.list.iter().enumerate() {
            let windows = footage.windows(&examples.videos[example.video], options.window)?;
            if windows.len() > 1 {
                ranked[example.truth].note_stretches();
            }
            asks.extend(windows.into_iter().map(|window| Ask { example: position, window }));
        }
        progress.announce(asks.len());
        for chunk in asks.chunks(options.batch.max(1)) {
            let list: Vec<&Example> = chunk.iter().map(|ask| &examples.list[ask.example]).collect();
            let video = |ask: &Ask| &examples.videos[examples.list[ask.example].video];
            let clips = chunk.iter().map(|ask| footage.clips(video(ask), ask.window)).collect::<Result<Vec<_>>>()?;
            let batch = Batch {
                videos: video_batch(chunk.iter().map(|ask| video(ask).clone()).collect(), &clips)?,
                queries: query_batch(&list, (0..chunk.len()).collect())?,
                targets: None,
                other_videos: None,
                similarity: None,
                negatives: None,
            };
            let ready = self.ready(&batch, &Pass::answering())?;
            let answers = on_threads(&self.device, || self.model.answer(&ready))?;
            let mut saliency = answers.saliency.unwrap_or_default().into_iter();
            for (((ask, example), clips), proposals) in chunk.iter().zip(&list).zip(&clips).zip(answers.proposals) {
                let found = &mut ranked[example.truth];
                if let Some(scores) = saliency.next() {
                    let seconds = clips.covered / clips.visual.rows().max(1) as f64;
                    found.rate_clips(video(ask), ask.window.first, seconds, &scores);
                }
                for proposal in self.kept(&proposals, options) {
                    found.see_video(video(ask), proposal.score);
                    found.add(FoundMoment::new(video(ask), clips, proposal));
                }
            }
            progress.advance(chunk.len())?;
        }
        Ok(())
    }

    /// Every query against all videos at once; queries that search the same videos are asked together.
    fn search(&self, corpus: &dyn Corpus, asked: &Asked, ranked: &mut [Found], progress: &Progress) -> Result<()> {
        let Asked { split, footage, options, first, .. } = *asked;
        let every = asked.examples(&self.vocabulary)?;
        self.prepare_text(&every, progress)?;
        let codes = self.encode(corpus, &every.videos, footage, options.batch)?;
        progress.announce(every.list.len());
        for together in asked_together(&every.list) {
            let of_first = together.first().copied().unwrap_or_default();
            let list: Vec<&Example> = together.iter().filter_map(|examples| examples.first()).collect();
            let queries = self.ready_queries(&query_batch(&list, (0..list.len()).collect())?, &Pass::answering())?;
            let searched: Vec<&Code> = of_first.iter().map(|example| &codes[example.video].0).collect();
            let answers = match first {
                Some(first) => {
                    let scores = |example: &&Example| -> Result<Vec<f32>> {
                        let videos = first.videos(&split.queries[example.truth])?;
                        Ok(videos.iter().map(|(_, score)| *score).collect())
                    };
                    let scores = list.iter().map(scores).collect::<Result<Vec<_>>>()?;
                    corpus.search_after(&queries, &searched, &scores)?
                }
                None => corpus.search(&queries, &searched)?,
            };
            for (example, answers) in list.iter().zip(answers) {
                let found = &mut ranked[example.truth];
                for (place, answer) in of_first.iter().zip(answers) {
                    let (video, clips) = (&every.videos[place.video], &codes[place.video].1);
                    found.see_video(video, answer.video_score);
                    // Of thousands of videos most have no moment that could still be listed.
                    if answer.moments.first().is_none_or(|best| !found.has_room(video, best.score)) {
                        continue;
                    }
                    for proposal in self.kept(&answer.moments, options) {
                        found.add(FoundMoment::new(video, clips, proposal));
                    }
                }
            }
            progress.advance(together.iter().map(|examples| examples.len()).sum())?;
        }
        Ok(())
    }

    pub(crate) fn encode(
        &self,
        corpus: &dyn Corpus,
        videos: &[VideoId],
        footage: &Footage,
        batch: usize,
    ) -> Result<Vec<(Code, Arc<Clips>)>> {
        let mut codes = Vec::with_capacity(videos.len());
        for chunk in videos.chunks(batch.max(1)) {
            let clips = chunk.iter().map(|video| footage.whole(video)).collect::<Result<Vec<_>>>()?;
            let batch = video_batch(chunk.to_vec(), &clips)?.to_device(&self.device)?;
            codes.extend(corpus.encode(&batch)?.into_iter().zip(clips));
        }
        Ok(codes)
    }

    /// The best of one video, overlaps dropped; more than are wanted, since stretches of one video are joined later.
    fn kept(&self, proposals: &[Proposal], options: &PredictOptions) -> Vec<Proposal> {
        suppress(proposals, self.model.nms().unwrap_or(1.0), options.answers, self.model.grid())
    }

    /// Counts the moments of a split that no answer could meet.
    fn reach(&self, split: &Split, footage: &Footage, options: &PredictOptions) -> Result<OutOfReach> {
        let mut counted = Examples {
            videos: Vec::new(),
            list: Vec::new(),
            of_video: Vec::new(),
            out_of_reach: OutOfReach::default(),
        };
        let shortest = 1.0 / self.model.input().resample.rows().max(1) as f64;
        for moment in split.queries.iter().flat_map(Truth::right) {
            // Pools name videos that need not have features when only own videos are searched.
            let Ok(windows) = footage.windows(&moment.video, options.window) else { continue };
            let Some(last) = windows.last() else { continue };
            let clips = footage.clips(&moment.video, *last)?;
            let seen = counted.count_reach(moment.span, clips.start + clips.covered, shortest);
            let longest = if windows.len() > 1 { 2.0 * clips.covered } else { f64::INFINITY };
            counted.out_of_reach.too_long += usize::from(seen && moment.span.len() > longest);
        }
        Ok(counted.out_of_reach)
    }
}

/// How long each video of a split lasts, where it says.
pub(crate) fn durations(split: &Split) -> Durations {
    let of_videos = split.videos.iter();
    let of_queries = split.queries.iter().filter_map(|truth| truth.video.as_ref());
    of_videos.chain(of_queries).filter_map(|video| Some((video.id.clone(), video.duration?))).collect()
}
