//! Videos that another model chose, for a second one to look into.

use camino::Utf8Path;
use cuemark_core::{Predictions, QueryId, Rng, Task, Truth, VideoId};
use cuemark_formats::{PredictionOptions, Source, read_predictions};
use cuemark_models::Negatives;
use rustc_hash::FxHashMap;

use crate::examples::Examples;
use crate::{Result, TrainError};

/// For every query the videos that a first model thinks best, best first, each once with its score.
#[derive(Debug, Clone)]
pub struct FirstStage {
    lists: FxHashMap<QueryId, Vec<(VideoId, f32)>>,
}

impl FirstStage {
    /// The first `videos` of every list of videos (VR), or of the videos of every list of moments.
    ///
    /// A video counts with its best answer. Answers without a score count by their place, 1, 1/2, 1/3, …
    pub fn of(predictions: &Predictions, videos: usize) -> Self {
        let lists = [Task::Vr, Task::Vcmr].into_iter().find_map(|task| predictions.for_task(task)).unwrap_or_default();
        let mut found = FxHashMap::default();
        for list in lists {
            let mut chosen: Vec<(VideoId, f32)> = Vec::new();
            for (place, answer) in list.ranked.iter().enumerate() {
                let Some(video) = &answer.video else { continue };
                if chosen.len() < videos && chosen.iter().all(|(known, _)| known != video) {
                    let score = answer.score.map_or(1.0 / (place + 1) as f32, |score| score as f32);
                    chosen.push((video.clone(), score));
                }
            }
            found.insert(list.query.clone(), chosen);
        }
        Self { lists: found }
    }

    /// The videos of one query.
    ///
    /// # Errors
    /// When it has no list, or an empty one.
    pub(crate) fn videos(&self, truth: &Truth) -> Result<&[(VideoId, f32)]> {
        let list = self.lists.get(&truth.query.id).map(Vec::as_slice).filter(|list| !list.is_empty());
        let query = || truth.query.id.to_string();
        list.ok_or_else(|| TrainError::Query { query: query(), problem: "has no videos in the first stage's list" })
    }
}

/// Entries of a list behind the right video that negatives are still drawn from: the worse the first stage, the wider the pool.
const POOL: usize = 1000;

/// Wrong videos that a first stage ranks high, for training queries of a second one.
pub(crate) struct FirstNegatives {
    /// By example the candidates, best first, as positions among the training videos.
    candidates: Vec<Vec<usize>>,
    /// Videos that each query is given.
    each: usize,
}

impl FirstNegatives {
    /// Reads the lists that `path` holds for the training examples; `each` are drawn for every query.
    ///
    /// # Errors
    /// When the file cannot be read, or has no list for a training query.
    pub(crate) fn read(path: &Utf8Path, each: usize, truths: &[Truth], examples: &Examples) -> Result<Self> {
        let (_, predictions) = read_predictions(&Source::new(path), &PredictionOptions::default())?;
        Self::of(&FirstStage::of(&predictions, usize::MAX), each, truths, examples)
    }

    fn of(first: &FirstStage, each: usize, truths: &[Truth], examples: &Examples) -> Result<Self> {
        let place_of: FxHashMap<&VideoId, usize> =
            examples.videos.iter().enumerate().map(|(place, video)| (video, place)).collect();
        let answering = examples.answering();
        let mut candidates = Vec::with_capacity(examples.list.len());
        for example in &examples.list {
            let listed = first.videos(&truths[example.truth])?;
            // Videos without a training query have no features here.
            let known: Vec<usize> = listed.iter().filter_map(|(video, _)| place_of.get(video).copied()).collect();
            let rank = known.iter().position(|video| *video == example.video).unwrap_or(known.len());
            let pool = known.into_iter().filter(|video| *video != example.video).take(rank.saturating_add(POOL));
            let right = &answering[example.truth];
            candidates.push(pool.filter(|video| right.binary_search(video).is_err()).collect());
        }
        Ok(Self { candidates, each })
    }

    /// For every example of a batch so many of its candidates, no two the same, by their places in the batch; videos that are not
    /// there yet are added.
    pub(crate) fn draw(&self, examples: &[usize], videos: &mut Vec<usize>, rng: &mut Rng) -> Vec<Negatives> {
        let mut drawn = Vec::with_capacity(examples.len());
        for (query, position) in examples.iter().enumerate() {
            let mut candidates = self.candidates[*position].clone();
            rng.shuffle(&mut candidates);
            candidates.truncate(self.each);
            let place_of = |video: usize| {
                videos.iter().position(|known| *known == video).unwrap_or_else(|| {
                    videos.push(video);
                    videos.len() - 1
                })
            };
            drawn.push(Negatives {
                query,
                videos: candidates.into_iter().map(place_of).collect(),
                queries: Vec::new(),
            });
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Extra, Prediction, Query, QueryPredictions, Span};

    use super::*;
    use crate::OutOfReach;
    use crate::examples::Example;

    #[test]
    fn every_video_is_taken_once_with_its_best_answer() {
        let answer = |video: &str, score: Option<f64>| Prediction {
            video: Some(video.into()),
            span: Span::new(0.0, 1.0).unwrap(),
            score,
        };
        let ranked = vec![answer("a", Some(0.9)), answer("a", Some(0.8)), answer("b", None), answer("c", Some(0.1))];
        let list = QueryPredictions { query: "q".into(), ranked, saliency: None, extra: Extra::default() };
        let first = FirstStage::of(&Predictions::any(vec![list]), 2);
        let asked = |id: &str| Truth::bare(Query { id: id.into(), text: String::new() });
        let found: Vec<_> = first.videos(&asked("q")).unwrap().iter().map(|(v, s)| (v.as_str(), *s)).collect();
        assert_eq!(found, [("a", 0.9), ("b", 1.0 / 3.0)]);
        let error = first.videos(&asked("other")).unwrap_err().to_string();
        assert!(error.contains("other"), "{error}");
    }

    /// Four videos; query 0 is answered in v0, query 1 in v1 and, as a second example says, in v3 too.
    fn examples() -> Examples {
        let example = |truth: usize, video: usize| Example {
            query: QueryId::from(format!("q{truth}").as_str()),
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
        };
        Examples {
            videos: (0..4).map(|n| VideoId::from(format!("v{n}").as_str())).collect(),
            list: vec![example(0, 0), example(1, 1), example(1, 3)],
            of_video: vec![vec![0], vec![1], vec![], vec![2]],
            out_of_reach: OutOfReach::default(),
        }
    }

    #[test]
    fn negatives_are_wrong_videos_of_the_list_each_once_and_never_the_right_ones() {
        let list = |query: &str, videos: &[&str]| QueryPredictions {
            query: query.into(),
            ranked: videos
                .iter()
                .map(|video| Prediction {
                    video: Some((*video).into()),
                    span: Span::new(0.0, 1.0).unwrap(),
                    score: None,
                })
                .collect(),
            saliency: None,
            extra: Extra::default(),
        };
        let lists = vec![list("q0", &["v2", "v0", "elsewhere", "v3", "v1"]), list("q1", &["v3", "v1", "v0"])];
        let truths: Vec<Truth> =
            ["q0", "q1"].map(|id| Truth::bare(Query { id: id.into(), text: String::new() })).into();
        let first = FirstStage::of(&Predictions::any(lists), usize::MAX);
        let negatives = FirstNegatives::of(&first, 2, &truths, &examples()).unwrap();
        assert_eq!(negatives.candidates, [vec![2, 3, 1], vec![0], vec![0]]);
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..40 {
            let mut videos = vec![0, 1];
            let drawn = negatives.draw(&[0, 1], &mut videos, &mut Rng::new(seed));
            assert_eq!(videos[..2], [0, 1], "own videos stay where they are");
            let named: Vec<usize> = drawn[0].videos.iter().map(|place| videos[*place]).collect();
            assert!(named.len() == 2 && named[0] != named[1] && !named.contains(&0), "{named:?}");
            seen.extend(named);
            assert_eq!(drawn[1].videos, [0], "all there is, at the place where it is already");
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3], "every candidate has its turn");
        let stranger = [Truth::bare(Query { id: "other".into(), text: String::new() })];
        let mut only = examples();
        only.list.truncate(1);
        assert!(FirstNegatives::of(&first, 2, &stranger, &only).is_err());
    }
}
