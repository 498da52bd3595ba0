//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::{D, Tensor};
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::{Cnm, CnmConfig};
use crate::check::{Fixture, Trace};
use crate::layers::{Sequence, sentence_mask};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = CnmConfig {
        clips: fixture.tensor("in.frames")?.dim(1)?,
        keep_every: fixture.number("frame_subsample")?,
        hidden: fixture.number("hidden_size")?,
        heads: fixture.number("DualTransformer.num_heads")?,
        ffn: fixture.shape("trans.decoder1.decoder_layers.0.fc1.bias")?.iter().product(),
        clip_layers: fixture.number("DualTransformer.num_decoder_layers1")?,
        word_layers: fixture.number("DualTransformer.num_decoder_layers2")?,
        vocabulary: Some(fixture.number("vocab_size")?),
        alpha: fixture.real("alpha")?,
        max_width: fixture.real("max_width")?,
        hard_margin: fixture.real("loss.beta_1")?,
        easy_margin: fixture.real("loss.beta_2")?,
        dropout: 0.0,
    };
    let (visual, words) = (fixture.input("frames")?, fixture.input("words_feat")?);
    let net = Cnm::new(&config, &Given::widths(visual.dim(2)?, words.dim(2)?, 0), vb.clone())?;
    let pass = Pass::answering();
    let slots = words.dim(1)?;
    let clip_mask = visual.narrow(2, 0, 1)?.squeeze(2)?.ones_like()?;
    let mask = sentence_mask(&fixture.counts("words_len")?, slots, visual.device())?;
    let clips = net.body.read_clips(&visual, &pass)?;
    // Slot 0 of the fixture's words is a place for the start, which reading puts there itself.
    let read = net.body.words.read(&words.narrow(1, 1, slots - 1)?, 0.0, &pass)?;
    let clips = Sequence { x: &clips, mask: &clip_mask };
    let gaussian = net.gaussian(&net.body, &net.span, clips, Sequence { x: &read, mask: &mask }, &pass)?;
    let shown = net.body.words.hide(&read, &fixture.input("masked_positions")?)?;
    let mask = mask.narrow(1, 0, slots - 1)?.contiguous()?;
    let guesses =
        net.body.guess_all(Sequence { x: &shown, mask: &mask }, clips, &gaussian.mask, config.keep_every, &pass)?;
    let badness = guesses.badness(&fixture.ids("words_id")?, &mask)?;
    let [hard, easy] = net.contrast(&badness)?;
    let (reconstruction, contrast) = (badness.reconstruction()?, (&hard + &easy)?);
    let half = (&gaussian.width / 2.0)?;
    let span = [(&gaussian.centre - &half)?.relu()?, (&gaussian.centre + &half)?.minimum(1.0)?];

    let mut trace = Trace::new();
    trace.out("center", &gaussian.centre);
    trace.out("width", &gaussian.width);
    trace.out("gauss_weight", &gaussian.mask);
    trace.out("span", &Tensor::stack(&span, D::Minus1)?);
    trace.out("words_mask", &mask);
    trace.out("words_logit", &guesses.covered_logits);
    trace.out("hard_neg_words_logit", &guesses.whole);
    trace.out("easy_neg_words_logit", &guesses.rest);
    if let Some(attention) = &guesses.covered.attention {
        trace.out("attn_weight", attention);
    }
    trace.loss("nll", &badness.covered.mean_all()?);
    trace.loss("neg_nll", &badness.whole.mean_all()?);
    trace.loss("reconstruction", &reconstruction);
    trace.loss("hard_neg", &hard);
    trace.loss("easy_neg", &easy);
    trace.loss("ivc", &contrast);
    trace.loss("sum_used_for_grad", &(reconstruction + contrast)?);
    Ok(trace)
}
