//! What CMIN, CSMGAN and IA-Net have in common around mathematics of their own: frames are encoded before it, and behind it
//! they attend to words, are read once more and score their anchors. Training and answering are one for all of them.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::Pass;

use super::{
    AnchorHead, AnchorSettings, Anchored, FrameEncoder, FrameRange, FrameSettings, FrameToWords, Positives, Recurrent,
    Ways, best_anchors, ranges_of_fixture,
};
use crate::check::{Fixture, Trace};
use crate::{Given, Input, Loss, Proposal, QueryBatch, Result};

/// The layers of the family that are no network's own.
#[derive(Debug, Clone)]
pub struct AnchorLayers {
    video: FrameEncoder,
    attention: FrameToWords,
    fuse: Recurrent,
    head: AnchorHead,
    frames: usize,
    dropout: f64,
}

/// The words of a batch as networks of the family read them.
#[derive(Debug, Clone, Copy)]
pub struct AnchorQuery<'a> {
    /// `[batch, words, d_word]`.
    pub words: &'a Tensor,
    /// `[batch, words]`, 1 at real words.
    pub mask: &'a Tensor,
    /// Number of real words of each query.
    pub lengths: &'a [usize],
}

/// Everything on the way to the anchors; states are `[batch, frames or words, hidden]`.
#[derive(Debug, Clone)]
pub struct AnchorForward {
    /// Frames as they were encoded.
    pub video: Tensor,
    /// Words as they were encoded.
    pub words: Tensor,
    /// For each frame the words it attends to.
    pub attended: Tensor,
    /// What the head reads.
    pub fused: Tensor,
    /// Scores and offsets.
    pub anchored: Anchored,
}

/// What is taught, apart from the network.
#[derive(Debug, Clone, Copy)]
pub struct AnchorRules {
    /// Overlaps below this share of the query's largest count as 0.
    pub clear: f64,
    /// Which anchors learn their offsets.
    pub movers: Movers,
    /// Weight of the offsets' loss.
    pub offset_weight: f64,
}

/// Which anchors learn their offsets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Movers {
    /// The best of each query, the first of equals.
    Best,
    /// All that overlap enough.
    Positive(Positives),
}

impl Movers {
    /// Pairs of row and anchor.
    fn choose(self, ious: &[Vec<f32>]) -> Vec<(usize, usize)> {
        match self {
            Self::Best => best_anchors(ious),
            Self::Positive(positives) => positives.choose(ious),
        }
    }
}

impl AnchorLayers {
    /// From features of `inputs` channels to states of `hidden`.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that cannot be.
    pub fn new(
        video: &FrameSettings,
        anchors: &AnchorSettings,
        inputs: usize,
        hidden: usize,
        dropout: f64,
        vb: &VarBuilder,
    ) -> Result<Self> {
        Ok(Self {
            video: FrameEncoder::new(video, inputs, hidden, dropout, vb.pp("video_encoder"))?,
            attention: FrameToWords::new(hidden, vb.pp("v2s"))?,
            fuse: Recurrent::gru(2 * hidden, hidden / 2, 1, Ways::Both, vb.pp("rnn.gru"))?,
            head: AnchorHead::new(anchors, video.frames, hidden, vb.clone())?,
            frames: video.frames,
            dropout,
        })
    }

    /// # Shapes
    /// - visual `[batch, frames, inputs]`; returns `[batch, frames, hidden]`
    ///
    /// # Errors
    /// When there are more or fewer frames than the settings say.
    pub fn encode(&self, visual: &Tensor, pass: &Pass) -> Result<Tensor> {
        Ok(self.video.forward(visual, pass)?)
    }

    /// For each frame the words it attends to, padded ones left out.
    ///
    /// # Shapes
    /// - video `[batch, frames, hidden]`, words `[batch, words, hidden]`; returns `[batch, frames, hidden]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn attend(&self, video: &Tensor, words: &Tensor, query: &AnchorQuery) -> Result<Tensor> {
        Ok(self.attention.forward(video, words, query.mask)?)
    }

    /// Reads frames and what they attended to side by side, and what the head says then.
    ///
    /// # Shapes
    /// - both `[batch, frames, hidden]`, and so is the first result
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn score(&self, video: &Tensor, attended: &Tensor, pass: &Pass) -> Result<(Tensor, Anchored)> {
        let fused = pass.dropout(&self.fuse.forward(&Tensor::cat(&[video, attended], 2)?)?, self.dropout)?;
        let anchored = self.head.forward(&fused)?;
        Ok((fused, anchored))
    }

    /// What the family reads of a batch.
    pub fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::Linspace { rows: self.frames },
            ..Input::pairs(self.frames)
        }
    }

    /// What is minimised for queries about `spans`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn loss(&self, forward: &AnchorForward, spans: &[NormSpan], rules: &AnchorRules) -> Result<Loss> {
        let truth: Vec<FrameRange> = spans.iter().map(|span| self.head.range(*span)).collect();
        let ious: Vec<Vec<f32>> = truth.iter().map(|range| self.head.ious(*range)).collect();
        let anchored = &forward.anchored;
        let targets = self.head.targets(&ious, rules.clear as f32, &anchored.logits)?;
        Ok(self.head.losses(anchored, &targets, &rules.movers.choose(&ious), &truth, rules.offset_weight)?.into())
    }

    /// The anchors that lie inside the video, best first.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn rank(&self, forward: &AnchorForward) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.head.rank(&forward.anchored)?)
    }

    /// What came of the inputs of a fixture of the family, and its losses with the anchors that the fixture chose: the best of
    /// its labels, or every one with a stored overlap.
    ///
    /// # Errors
    /// When the fixture lacks something.
    pub fn trace(&self, forward: &AnchorForward, rules: &AnchorRules, fixture: &Fixture) -> Result<Trace> {
        let label = fixture.input("label")?;
        let ious = match rules.movers {
            Movers::Best => label.to_vec2()?,
            Movers::Positive(_) => fixture.input("positive_iou")?.to_vec2()?,
        };
        let (chosen, truth) = (rules.movers.choose(&ious), ranges_of_fixture(fixture)?);
        let mut trace = Trace::new();
        trace.out("video", &forward.video);
        trace.out("words", &forward.words);
        trace.out("attended", &forward.attended);
        trace.out("fused_rnn", &forward.fused);
        self.head.trace(&forward.anchored, &mut trace)?;
        self.head.losses(&forward.anchored, &label, &chosen, &truth, rules.offset_weight)?.trace(&mut trace);
        Ok(trace)
    }
}

impl<'a> From<&'a QueryBatch> for AnchorQuery<'a> {
    fn from(queries: &'a QueryBatch) -> Self {
        Self { words: &queries.words, mask: &queries.mask, lengths: &queries.lengths }
    }
}

/// The inputs of a fixture of the family.
#[derive(Debug)]
pub struct AnchorInputs {
    /// `[batch, frames, d_visual]`.
    pub visual: Tensor,
    words: Tensor,
    mask: Tensor,
    lengths: Vec<usize>,
}

impl AnchorInputs {
    /// Those of `fixture`.
    ///
    /// # Errors
    /// When it does not hold them.
    pub fn of_fixture(fixture: &Fixture) -> Result<Self> {
        Ok(Self {
            visual: fixture.input("frames")?,
            words: fixture.input("words")?,
            mask: fixture.input("word_mask")?,
            lengths: fixture.lengths("word_mask")?,
        })
    }

    /// Their widths.
    ///
    /// # Errors
    /// When a tensor has fewer axes than it should.
    pub fn given(&self) -> Result<Given> {
        Ok(Given::widths(self.visual.dim(2)?, self.words.dim(2)?, 0))
    }

    /// The words.
    pub fn query(&self) -> AnchorQuery<'_> {
        AnchorQuery { words: &self.words, mask: &self.mask, lengths: &self.lengths }
    }
}

/// What holds for every network of the family, on toy batches.
#[cfg(test)]
pub(crate) mod trial {
    use super::*;
    use crate::testing::{TOY, gap};
    use crate::{Batch, Model};

    pub(crate) fn anchors() -> AnchorSettings {
        AnchorSettings { widths: vec![2.0, 3.0, 4.0, 5.0], spread: 0.5 }
    }

    /// With [`anchors`] on the eight clips of [`TOY`].
    pub(crate) fn assert_every_anchor_inside_the_video_is_proposed(net: &impl Model, batch: &Batch) {
        let ranked = net.propose(batch).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            // Width 3 leaves out one centre on either side and 5 two; 2 and 4 stand between frames and leave out one less.
            assert_eq!(proposals.len(), 7 + 6 + 5 + 4);
            assert!(proposals.iter().all(|proposal| proposal.span.start() >= 0.0 && proposal.span.end() <= 1.0));
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    /// The largest difference that three more words of padding make to a logit.
    pub(crate) fn difference_of_padded_words(
        of_batch: impl Fn(&Batch, &Pass) -> Result<AnchorForward>,
        batch: &Batch,
    ) -> f32 {
        let logits = |batch: &Batch| of_batch(batch, &Pass::answering()).unwrap().anchored.logits;
        gap(&logits(batch), &logits(&batch.with_longer_words(3)))
    }
}
