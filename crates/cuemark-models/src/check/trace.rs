//! What a network gave for a fixture's inputs.

use std::collections::BTreeMap;

use cuemark_tensor::{DType, Device, Tensor, Var};

use crate::layers::EndClip;
use crate::{Proposal, Result, VideoAnswer};

/// Outputs and losses by the names that the fixture gives them.
#[derive(Debug, Default)]
pub struct Trace {
    pub(super) tensors: BTreeMap<String, Tensor>,
    pub(super) masks: BTreeMap<String, Tensor>,
    pub(super) watched: BTreeMap<String, Var>,
}

impl Trace {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// `out.NAME`.
    pub fn out(&mut self, name: &str, tensor: &Tensor) {
        self.tensors.insert(format!("out.{name}"), tensor.clone());
    }

    /// `out.NAME`, compared only where `mask` is not 0: for masked logits, whose fill value means nothing.
    pub fn out_where(&mut self, name: &str, tensor: &Tensor, mask: &Tensor) {
        self.masks.insert(format!("out.{name}"), mask.clone());
        self.out(name, tensor);
    }

    /// `out.PREFIX_score`, `_video`, `_start` and `_end`: the best `keep` moments over all videos for every query, as clip
    /// indices; `clips(query, video)` says how many clips a video has.
    ///
    /// # Errors
    /// When a query has fewer moments.
    pub fn ranked_moments(
        &mut self,
        prefix: &str,
        answers: Vec<Vec<VideoAnswer>>,
        clips: impl Fn(usize, usize) -> usize,
        end_clip: EndClip,
        keep: usize,
    ) -> Result<()> {
        let queries = answers.len();
        let mut columns: [Vec<f32>; 4] = Default::default();
        for (query, answers) in answers.into_iter().enumerate() {
            let of_video =
                |(video, answer): (usize, VideoAnswer)| answer.moments.into_iter().map(move |moment| (video, moment));
            let mut moments: Vec<(usize, Proposal)> = answers.into_iter().enumerate().flat_map(of_video).collect();
            moments.sort_by(|a, b| b.1.score.total_cmp(&a.1.score));
            for (video, moment) in moments.into_iter().take(keep) {
                let clips = clips(query, video) as f64;
                let end = (moment.span.end() * clips).round() - f64::from(u8::from(end_clip != EndClip::After));
                columns[0].push(moment.score);
                columns[1].push(video as f32);
                columns[2].push((moment.span.start() * clips).round() as f32);
                columns[3].push(end as f32);
            }
        }
        for (name, values) in ["score", "video", "start", "end"].into_iter().zip(columns) {
            self.out(&format!("{prefix}_{name}"), &Tensor::from_vec(values, (queries, keep), &Device::Cpu)?);
        }
        Ok(())
    }

    /// `loss.NAME`.
    pub fn loss(&mut self, name: &str, tensor: &Tensor) {
        self.tensors.insert(format!("loss.{name}"), tensor.clone());
    }

    /// Makes an input a variable, so that its gradient can be compared under `grad.NAME` (with NAME as `in.x`).
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn watch(&mut self, name: &str, tensor: &Tensor) -> Result<Tensor> {
        let var = Var::from_tensor(&tensor.to_dtype(DType::F32)?)?;
        self.watched.insert(name.to_owned(), var.clone());
        Ok(var.as_tensor().clone())
    }
}
