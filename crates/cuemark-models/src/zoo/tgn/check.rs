//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;

use super::config::nms;
use super::labels::{Labels, weighted_loss};
use super::{Between, Lengths, SentenceWays, Tgn, TgnConfig};
use crate::check::{Fixture, Trace};
use crate::layers::PaddedWords;
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let (visual, words) = (fixture.input("video")?, fixture.input("words")?);
    let config = TgnConfig {
        anchors: Lengths::List(fixture.numbers("anchors")?),
        clips: visual.dim(1)?,
        window: visual.dim(1)?,
        hidden: fixture.number("rnn")?,
        attention: fixture.number("attention_hidden")?,
        sentence: if fixture.shape("att1.weight")?.get(1) == Some(&(4 * fixture.number("rnn")?)) {
            SentenceWays::Both
        } else {
            SentenceWays::Forward
        },
        padded_words: PaddedWords::Published,
        positive_iou: fixture.real("pos_threshold")?,
        negative_iou: fixture.real("neg_threshold")?,
        between: Between::Ignored,
        positive_weights: Vec::new(),
        dropout: 0.0,
        nms: nms(),
    };
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let net = Tgn::new(&config, &given, vb.clone())?;
    let seen = config.padded_words.seen(&fixture.input("word_mask")?)?;
    let forward = net.forward(&visual, &words, &fixture.lengths("word_mask")?, &seen, &Pass::answering())?;
    let labels = Labels { positive: fixture.input("label")?, counted: fixture.input("anchor_mask")? };
    let all = Labels { counted: labels.counted.ones_like()?, positive: labels.positive.clone() };
    let (weights, frames) = (fixture.input("pos_weight")?, fixture.input("video_mask")?);

    let mut trace = Trace::new();
    trace.out("sentence_states", &forward.words);
    trace.out("attention", &forward.attention);
    trace.out("logit", &forward.logits);
    trace.out("prob", &sigmoid(&forward.logits)?);
    trace.loss("masked", &weighted_loss(&forward.logits, &labels, &weights, &frames)?);
    trace.loss("unmasked", &weighted_loss(&forward.logits, &all, &weights, &frames)?);
    Ok(trace)
}
