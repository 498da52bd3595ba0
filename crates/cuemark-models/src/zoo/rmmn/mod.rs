//! RMMN: MMN trained to rank moments across many videos too: first without likely false negatives, then on sampled hard ones.
//! Yang et al., "MVMR: Evaluating Natural Language Video Localization Bias over Multiple Reliable Videos Pool", 2023.
//!
//! No training loop was released. By default the losses are those of the paper; `form = "released"` gives those of the
//! released code, in which filtered pairs still count (as cosines of 0, all logits rescaled) and the margin of a
//! hard-negative comparison wanders over all its sentences. The layer norm on moments that the text mentions is in neither
//! code and not here.

mod check;
mod config;
mod losses;
#[cfg(test)]
mod tests;

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::mmn::{Mmn, MmnConfig};
use crate::layers::{TwoSpaces, cosines, one_video_each};
use crate::{
    Batch, BiEncoder, Corpus, Family, FullSize, Given, Grid, HardNegatives, Input, Loss, Model, ModelCard, Proposal,
    Result, Supervision, Task,
};

pub use config::{Form, RmmnConfig};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "rmmn",
    title: "RMMN",
    paper: "Yang et al., MVMR: Evaluating Natural Language Video Localization Bias over Multiple Reliable Videos Pool, 2023",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo, Task::Corpus],
    supervision: Supervision::Full,
    idea: "MMN without false negatives, then fine-tuned on negatives that are as relevant as the positives",
    full_sizes: &[
        FullSize {
            dataset: "charades-sta",
            settings: "network = { map = { pre_clips = 32, clips = 16, counts = [15] }, kernel = 5, layers = 8 }\n\
                       matching = { margin = 0.4, weight = 0.05, switch_epoch = 14 }\n\
                       text = { frozen_epochs = 4 }\nsampling = { queries = 100, videos = 50 }",
            visual: 4096,
            words: 0,
            millions: None,
        },
        FullSize {
            dataset: "activitynet-captions",
            settings: "network = { map = { pre_clips = 256, clips = 64, counts = [15, 8, 8] }, kernel = 9, layers = 4 }\n\
                       matching = { margin = 0.3, weight = 0.1, switch_epoch = 6 }\n\
                       text = { frozen_epochs = 4 }\nsampling = { queries = 200, videos = 100 }",
            visual: 500,
            words: 0,
            millions: None,
        },
        FullSize {
            dataset: "tacos",
            settings: "network = { map = { pre_clips = 256, clips = 128, counts = [15, 8, 8, 8] }, kernel = 5, layers = 8 }\n\
                       targets = { min_iou = 0.3, max_iou = 0.7 }\n\
                       matching = { margin = 0.1, weight = 0.05, switch_epoch = 100 }\n\
                       text = { frozen_epochs = 40 }\npower = 0.3\nnms = 0.4\nsampling = { queries = 100, videos = 5 }",
            visual: 4096,
            words: 0,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Rmmn::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<RmmnConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Rmmn {
    config: RmmnConfig,
    mmn: Mmn,
}

/// What both stages compute first.
struct Forward {
    overlap_logits: Tensor,
    cosines: Tensor,
    ious: Tensor,
    own_video: Tensor,
}

impl Rmmn {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that no map can have.
    pub fn new(config: &RmmnConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let mmn = MmnConfig {
            network: config.network.clone(),
            targets: config.targets,
            matching: config.matching,
            text: config.text,
            part: None,
            power: config.power,
            nms: config.nms,
            matching_share: config.matching_share,
        };
        Ok(Self { mmn: Mmn::new(&mmn, given, vb)?, config: config.clone() })
    }

    fn forward(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let moments: TwoSpaces = self.mmn.moments(&batch.videos, pass)?;
        let sentences = self.mmn.sentences(&batch.queries, pass)?;
        let device = batch.videos.visual.device();
        Ok(Forward {
            overlap_logits: self.mmn.encoder.overlap_logits(&moments, &sentences)?,
            cosines: cosines(&sentences.matching, &moments.matching)?,
            ious: self.mmn.encoder.moments.map().ious(&batch.targets(CARD.name)?.spans, device)?,
            own_video: one_video_each(&batch.queries.video, moments.matching.dim(0)?, device)?,
        })
    }
}

impl Model for Rmmn {
    fn input(&self) -> Input {
        Input { similarity: true, ..self.mmn.input() }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let hard = self.config.step2 && pass.stage() > 0;
        let [overlap, to_sentences, to_moments] =
            if hard { self.hard(batch, pass)? } else { self.filtered(batch, pass)? };
        let matching = ((&to_sentences + &to_moments)? * self.config.matching.weight_in(pass))?;
        Ok(Loss {
            total: (&overlap + matching)?,
            parts: vec![("overlap", overlap), ("to_sentences", to_sentences), ("to_moments", to_moments)],
        })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        self.mmn.propose(batch)
    }

    fn hard_negatives(&self, stage: usize) -> Option<HardNegatives> {
        let settings = HardNegatives { sampling: self.config.sampling, threshold: self.config.threshold };
        (self.config.step2 && stage > 0).then_some(settings)
    }

    fn nms(&self) -> Option<f64> {
        self.mmn.nms()
    }

    fn grid(&self) -> Option<Grid> {
        self.mmn.grid()
    }

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        self.mmn.rate(parameter, pass)
    }

    fn corpus(&self) -> Option<&dyn Corpus> {
        self.mmn.corpus()
    }

    fn bi_encoder(&self) -> Option<&dyn BiEncoder> {
        self.mmn.bi_encoder()
    }
}
