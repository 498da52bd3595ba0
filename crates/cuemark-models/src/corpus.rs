//! Asking queries of many videos: which videos, which moments in them, best first.

use crate::{Answer, Code, Corpus, ModelError, Proposal, QueryBatch, Result};

/// How far a search goes.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The most videos that are looked into for one query.
    pub videos: usize,
    /// The most moments that are kept of one query.
    pub moments: usize,
    /// For every query the videos that another model thinks best, best first; they take the place of the model's own choice.
    pub first_stage: Option<&'a [Vec<VideoScore>]>,
}

/// A video of the collection with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VideoScore {
    /// Position in the collection.
    pub video: usize,
    /// Larger is better; comparable within one query.
    pub score: f32,
}

/// A moment of the collection with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundMoment {
    /// Position of its video in the collection.
    pub video: usize,
    /// Where in the video, and how well it fits.
    pub proposal: Proposal,
}

/// What was found for one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Videos, best first (VR).
    pub videos: Vec<VideoScore>,
    /// Moments of all of them, best first (VCMR and ranked lists).
    pub moments: Vec<FoundMoment>,
}

/// Asks every query of all `videos`: chooses videos first, unless they are few, and looks for moments in those only.
///
/// Equal scores keep the order of the videos. The moments of one given video (SVMR) are
/// [`Model::propose`](crate::Model::propose)'s.
///
/// # Errors
/// When a first stage names a video that is not there or has not one list per query, and those of the model.
pub fn find(model: &dyn Corpus, queries: &QueryBatch, videos: &[&Code], ask: &Ask) -> Result<Vec<Found>> {
    if let Some(lists) = ask.first_stage {
        if lists.len() != queries.ids.len() {
            return Err(wrong("a first-stage list for each query"));
        }
        let chosen = lists.iter().map(|list| list.iter().copied().take(ask.videos).collect());
        return look_into(model, queries, videos, ask, chosen.collect());
    }
    let scores = if videos.len() > ask.videos { model.score_videos(queries, videos)? } else { None };
    match scores {
        Some(scores) => {
            let chosen = scores.into_iter().map(|row| best_videos(row, ask.videos)).collect();
            look_into(model, queries, videos, ask, chosen)
        }
        None => {
            let all: Vec<usize> = (0..videos.len()).collect();
            Ok(model.search(queries, videos)?.into_iter().map(|answers| merge(answers, &all, ask)).collect())
        }
    }
}

fn look_into(
    model: &dyn Corpus,
    queries: &QueryBatch,
    videos: &[&Code],
    ask: &Ask,
    chosen: Vec<Vec<VideoScore>>,
) -> Result<Vec<Found>> {
    let mut found = Vec::with_capacity(chosen.len());
    for (query, chosen) in chosen.into_iter().enumerate() {
        let one = queries.select(&[query])?;
        let places: Vec<usize> = chosen.iter().map(|chosen| chosen.video).collect();
        let codes: Option<Vec<&Code>> = places.iter().map(|place| videos.get(*place).copied()).collect();
        let codes = codes.ok_or_else(|| wrong("first-stage lists of videos that are in the collection"))?;
        let answers = if ask.first_stage.is_some() {
            model.search_after(&one, &codes, &[chosen.iter().map(|chosen| chosen.score).collect()])?
        } else {
            model.search(&one, &codes)?
        };
        found.push(answers.into_iter().next().map(|answers| merge(answers, &places, ask)).unwrap_or_default());
    }
    Ok(found)
}

fn wrong(what: &'static str) -> ModelError {
    ModelError::Missing { model: "a search", what }
}

fn best_videos(scores: Vec<f32>, keep: usize) -> Vec<VideoScore> {
    let mut ranked: Vec<VideoScore> =
        scores.into_iter().enumerate().map(|(video, score)| VideoScore { video, score }).collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    ranked.truncate(keep);
    ranked
}

/// One query's answers from videos at `places` as ranked lists.
pub(crate) fn merge(answers: Vec<Answer>, places: &[usize], ask: &Ask) -> Found {
    let mut found = Found::default();
    for (answer, place) in answers.into_iter().zip(places) {
        found.videos.push(VideoScore { video: *place, score: answer.video_score });
        found.moments.extend(answer.moments.into_iter().map(|proposal| FoundMoment { video: *place, proposal }));
    }
    found.videos.sort_by(|a, b| b.score.total_cmp(&a.score));
    found.videos.truncate(ask.videos);
    found.moments.sort_by(|a, b| b.proposal.score.total_cmp(&a.proposal.score));
    found.moments.truncate(ask.moments);
    found
}

#[cfg(test)]
mod tests {
    use cuemark_core::NormSpan;
    use cuemark_tensor::{Device, Tensor};

    use super::*;
    use crate::VideoBatch;
    use crate::testing::TOY;

    /// Scores video `v` for query `q` by the number in its code; its one moment scores ten times that.
    struct Numbers;

    impl Corpus for Numbers {
        fn encode(&self, _: &VideoBatch) -> Result<Vec<Code>> {
            Ok(Vec::new())
        }

        fn score_videos(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Option<Vec<Vec<f32>>>> {
            let row: Vec<f32> = videos.iter().map(|code| code.0[0].to_scalar().unwrap()).collect();
            Ok(Some(vec![row; queries.ids.len()]))
        }

        fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<Answer>>> {
            let scores = self.score_videos(queries, videos)?.unwrap();
            self.search_after(queries, videos, &scores)
        }

        fn search_after(&self, _: &QueryBatch, _: &[&Code], first_stage: &[Vec<f32>]) -> Result<Vec<Vec<Answer>>> {
            let span = NormSpan::new(0.0, 1.0).unwrap();
            let answer =
                |score: &f32| Answer { video_score: *score, moments: vec![Proposal { span, score: score * 10.0 }] };
            Ok(first_stage.iter().map(|row| row.iter().map(answer).collect()).collect())
        }
    }

    fn codes() -> Vec<Code> {
        [1f32, 3.0, 2.0].map(|score| Code(vec![Tensor::new(score, &Device::Cpu).unwrap()])).to_vec()
    }

    fn order(found: &Found) -> (Vec<usize>, Vec<usize>) {
        let videos = found.videos.iter().map(|video| video.video).collect();
        (videos, found.moments.iter().map(|moment| moment.video).collect())
    }

    #[test]
    fn the_best_videos_are_looked_into_whether_chosen_first_or_not() {
        let (codes, queries) = (codes(), TOY.batch(1).queries);
        let codes: Vec<&Code> = codes.iter().collect();
        for (videos, expected) in [(2, vec![1, 2]), (3, vec![1, 2, 0])] {
            let found = find(&Numbers, &queries, &codes, &Ask { videos, moments: 9, first_stage: None }).unwrap();
            assert_eq!(found.len(), queries.ids.len());
            assert!(found.iter().all(|found| order(found) == (expected.clone(), expected.clone())));
        }
        let found = find(&Numbers, &queries, &codes, &Ask { videos: 2, moments: 1, first_stage: None }).unwrap();
        assert_eq!(order(&found[0]).1, [1]);
    }

    #[test]
    fn a_first_stage_takes_the_place_of_the_models_own_choice() {
        let (codes, queries) = (codes(), TOY.batch(1).queries.select(&[0]).unwrap());
        let codes: Vec<&Code> = codes.iter().collect();
        let list = [vec![VideoScore { video: 2, score: 5.0 }, VideoScore { video: 0, score: 7.0 }]];
        let ask = Ask { videos: 2, moments: 9, first_stage: Some(&list) };
        assert_eq!(order(&find(&Numbers, &queries, &codes, &ask).unwrap()[0]), (vec![0, 2], vec![0, 2]));
        let outside = [vec![VideoScore { video: 3, score: 5.0 }]];
        assert!(find(&Numbers, &queries, &codes, &Ask { first_stage: Some(&outside), ..ask }).is_err());
        assert!(find(&Numbers, &queries, &codes, &Ask { first_stage: Some(&[]), ..ask }).is_err());
    }
}
