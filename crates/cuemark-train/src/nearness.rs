//! How alike training queries and videos are: a video is as near to a query as its own nearest query.

use cuemark_core::Truth;
use cuemark_tensor::{Device, Tensor};
use cuemark_text::similarity::{Tfidf, top_k};

use crate::Result;
use crate::examples::{Example, Examples};

/// The most like queries that are kept of each query: enough to find every near video, few enough for memory.
const NEIGHBOURS: usize = 200;

/// For every example the videos that hold something like it.
pub(crate) struct Similar {
    /// By truth: video and similarity, each video once.
    near: Vec<Vec<(usize, f32)>>,
}

impl Similar {
    /// Compares the training queries with each other by their words.
    pub(crate) fn of_training(truths: &[Truth], examples: &Examples) -> Result<Self> {
        let texts: Vec<&str> = truths.iter().map(|truth| truth.query.text.as_str()).collect();
        let neighbours = top_k(&Tfidf::new(&texts, &texts), NEIGHBOURS)?;
        let mut video_of: Vec<Option<usize>> = vec![None; truths.len()];
        for example in &examples.list {
            video_of[example.truth] = Some(example.video);
        }
        let near = neighbours.into_iter().map(|list| {
            let mut near: Vec<(usize, f32)> = Vec::new();
            // Best first, so the first entry of a video is its nearest query.
            for neighbour in list {
                if let Some(video) =
                    video_of[neighbour.index as usize].filter(|video| near.iter().all(|(known, _)| known != video))
                {
                    near.push((video, neighbour.similarity));
                }
            }
            near
        });
        Ok(Self { near: near.collect() })
    }

    /// `[queries, videos]`; 0 for a query's own video and for everything that is not near.
    pub(crate) fn of(&self, list: &[&Example], videos: &[usize], of_query: &[usize]) -> Result<Tensor> {
        let mut values = vec![0f32; list.len() * videos.len()];
        for (row, (example, own)) in list.iter().zip(of_query).enumerate() {
            for (video, similarity) in self.near.get(example.truth).into_iter().flatten() {
                for place in (0..videos.len()).filter(|place| videos[*place] == *video && place != own) {
                    values[row * videos.len() + place] = *similarity;
                }
            }
        }
        Ok(Tensor::from_vec(values, (list.len(), videos.len()), &Device::Cpu)?)
    }

    /// Whether a video holds something as like the truth at `truth` as `threshold`.
    pub(crate) fn is_near(&self, truth: usize, video: usize, threshold: f32) -> bool {
        self.near
            .get(truth)
            .is_some_and(|near| near.iter().any(|(near, similarity)| *near == video && *similarity > threshold))
    }
}
