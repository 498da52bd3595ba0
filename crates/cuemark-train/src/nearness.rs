//! How near videos are to queries that were not written for them: near ones are no examples of what a query does not mean.

use std::collections::HashMap;
use std::fmt;

use cuemark_core::{QueryId, Truth, VideoId};
use cuemark_tensor::{Device, Tensor};
use cuemark_text::similarity::{Similarity, top_k};

use crate::Result;
use crate::examples::{Example, Examples};

/// The most like queries that are kept of each query: enough to find every near video, few enough for memory.
const NEIGHBOURS: usize = 200;

/// Says how near a training video is to a training query. Every source has a scale of its own, and a threshold belongs to it.
pub trait Nearness: fmt::Debug + Send + Sync {
    /// Larger is nearer; 0 where nothing is known.
    fn between(&self, query: &QueryId, video: &VideoId) -> f32;
}

/// Nearness by sentences: a video is as near to a query as the nearest query that was written for it.
#[derive(Debug)]
pub struct NearSentences {
    videos: HashMap<VideoId, u32>,
    /// By query the numbers of videos, ascending, each once with its similarity.
    near: HashMap<QueryId, Vec<(u32, f32)>>,
}

impl NearSentences {
    /// Compares the training queries with each other; `similarity` has all of them on both sides.
    ///
    /// # Errors
    /// When the provider cannot be read.
    pub fn of_training(similarity: &dyn Similarity, truths: &[Truth]) -> Result<Self> {
        let mut videos: HashMap<VideoId, u32> = HashMap::new();
        let written_for: Vec<Vec<u32>> = truths
            .iter()
            .map(|truth| {
                let number = |video: &VideoId| {
                    let next = videos.len() as u32;
                    *videos.entry(video.clone()).or_insert(next)
                };
                truth.right().map(|moment| &moment.video).map(number).collect()
            })
            .collect();
        let near = truths.iter().zip(top_k(similarity, NEIGHBOURS)?).map(|(truth, neighbours)| {
            let similar = neighbours.into_iter().flat_map(|neighbour| {
                let of_query = written_for.get(neighbour.index as usize).into_iter().flatten();
                of_query.map(move |video| (*video, neighbour.similarity))
            });
            let mut near: Vec<(u32, f32)> = similar.collect();
            // The nearest query of each video comes first and stays.
            near.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
            near.dedup_by_key(|(video, _)| *video);
            (truth.query.id.clone(), near)
        });
        Ok(Self { near: near.collect(), videos })
    }
}

impl Nearness for NearSentences {
    fn between(&self, query: &QueryId, video: &VideoId) -> f32 {
        let found = || {
            let (number, near) = (self.videos.get(video)?, self.near.get(query)?);
            let place = near.binary_search_by_key(number, |(video, _)| *video).ok()?;
            near.get(place).map(|(_, similarity)| *similarity)
        };
        found().unwrap_or(0.0)
    }
}

/// `[queries, videos]` of a batch; 0 for a query's own video.
pub(crate) fn of_batch(
    nearness: &dyn Nearness,
    examples: &Examples,
    list: &[&Example],
    videos: &[usize],
    of_query: &[usize],
) -> Result<Tensor> {
    let mut values = Vec::with_capacity(list.len() * videos.len());
    for (example, own) in list.iter().zip(of_query) {
        for (place, video) in videos.iter().enumerate() {
            let near = || nearness.between(&example.query, &examples.videos[*video]);
            values.push(if place == *own { 0.0 } else { near() });
        }
    }
    Ok(Tensor::from_vec(values, (list.len(), videos.len()), &Device::Cpu)?)
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Query, Span, Video};
    use cuemark_text::similarity::Tfidf;

    use super::*;

    fn truth(id: &str, text: &str, video: &str) -> Truth {
        let query = Query { id: QueryId::new(id), text: text.to_owned() };
        Truth::single(query, Video { id: VideoId::new(video), duration: Some(10.0) }, [Span::new(0.0, 1.0).unwrap()])
    }

    #[test]
    fn a_video_is_as_near_as_its_nearest_query() {
        let truths = [
            truth("a", "a red ball spins", "one"),
            truth("b", "a red ball spins", "two"),
            truth("c", "the blue star leaves", "two"),
            truth("d", "the blue star leaves", "three"),
        ];
        let texts: Vec<&str> = truths.iter().map(|truth| truth.query.text.as_str()).collect();
        let near = NearSentences::of_training(&Tfidf::new(&texts, &texts), &truths).unwrap();
        let between = |query: &str, video: &str| near.between(&QueryId::new(query), &VideoId::new(video));
        assert!((between("a", "two") - 1.0).abs() < 1e-6, "`b` says the same of it, whatever `c` says");
        assert!(between("a", "three") < 0.5);
        assert_eq!(between("a", "unknown"), 0.0);
        assert_eq!(between("unknown", "one"), 0.0);
    }
}
