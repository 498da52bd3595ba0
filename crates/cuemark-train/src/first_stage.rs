//! Videos that another model chose, for a second one to look into.

use cuemark_core::{Predictions, QueryId, Task, Truth, VideoId};
use rustc_hash::FxHashMap;

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

#[cfg(test)]
mod tests {
    use cuemark_core::{Extra, Prediction, Query, QueryPredictions, Span};

    use super::*;

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
}
