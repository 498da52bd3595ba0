//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::{Ablr, AblrConfig, Answers, Regression};
use crate::check::{Fixture, Trace};
use crate::layers::{Pair, WordSource};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let visual = fixture.input("video")?;
    let config = AblrConfig {
        clips: fixture.number("clips")?,
        project: None,
        hidden: fixture.number("hidden")?,
        regression_hidden: fixture.number("regress_hidden")?,
        regression: Regression::Weights,
        forget_bias: fixture.real("forget_bias")?,
        attention_weight: fixture.real("alpha_attention")?,
        regression_weight: fixture.real("alpha_regress")?,
        dropout: 0.0,
        answers: Answers::Exact,
        word_vectors: WordSource::Own,
    };
    let table = fixture.tensor("param.Wemb")?.dims2()?;
    let net = Ablr::new(&config, &Given::widths(visual.dim(2)?, table.1, table.0), vb.clone())?;
    let words = net.words.look_up(&fixture.ids("caption")?, &visual)?;
    let (clip_mask, word_mask) = (fixture.input("video_mask")?, fixture.input("caption_mask")?);
    let lengths = fixture.counts("caption_len")?;
    let pair = Pair { visual: &visual, clip_mask: &clip_mask, words: &words, word_mask: &word_mask, lengths: &lengths };
    let forward = net.forward(&pair, &Pass::answering())?;
    let [regression, attention, total] =
        net.losses(&forward, &fixture.input("gt")?, &fixture.input("attention_target")?)?;

    let mut trace = Trace::new();
    trace.out("video_states", &forward.video);
    trace.out("word_states", &forward.words);
    trace.out("sentence_mean", &forward.sentence);
    trace.out("attention_first", &forward.first);
    trace.out("word_attention", &forward.of_words);
    trace.out("attention_final", &forward.last);
    trace.out("location", &forward.ends);
    trace.loss("regression", &regression);
    trace.loss("attention_weighted", &attention);
    trace.loss("total", &total);
    Ok(trace)
}
