//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::{Cpl, CplConfig, Ranking, Shown};
use crate::check::{Fixture, Trace};
use crate::layers::{Sequence, sentence_mask};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = CplConfig {
        clips: fixture.tensor("in.frames")?.dim(1)?,
        keep_every: fixture.number("frame_subsample")?,
        hidden: fixture.number("hidden_size")?,
        heads: fixture.number("DualTransformer.num_heads")?,
        ffn: fixture.shape("trans.decoder1.decoder_layers.0.fc1.bias")?.iter().product(),
        clip_layers: fixture.number("DualTransformer.num_decoder_layers1")?,
        word_layers: fixture.number("DualTransformer.num_decoder_layers2")?,
        vocabulary: Some(fixture.number("vocab_size")?),
        proposals: fixture.number("num_props")?,
        sigma: fixture.real("sigma")?,
        gamma: fixture.real("gamma")?,
        full_epoch: fixture.number("max_epoch")?,
        lambda: fixture.real("loss.lambda")?,
        whole_margin: fixture.real("loss.margin_1")?,
        side_margin: fixture.real("loss.margin_2")?,
        rank_weight: fixture.real("loss.alpha_1")?,
        diversity_weight: fixture.real("loss.alpha_2")?,
        answer: Ranking::Loss,
        dropout: 0.0,
    };
    let (visual, words) = (fixture.input("frames")?, fixture.input("words_feat")?);
    let net = Cpl::new(&config, &Given::widths(visual.dim(2)?, words.dim(2)?, 0), vb.clone())?;
    let pass = Pass::answering();
    let slots = words.dim(1)?;
    let clip_mask = visual.narrow(2, 0, 1)?.squeeze(2)?.ones_like()?;
    let mask = sentence_mask(&fixture.counts("words_len")?, slots, visual.device())?;
    let clips = net.read_clips(&visual, &pass)?;
    // Slot 0 of the fixture's words is a place for the start, which reading puts there itself.
    let read = net.words.read(&words.narrow(1, 1, slots - 1)?, 0.0, &pass)?;
    let places = net.places(&clips, &clip_mask, Sequence { x: &read, mask: &mask }, &pass)?;
    let (kept, real) = net.keep(&clips, &clip_mask)?;
    let masks = net.masks(&places, kept.dim(1)?, net.growth(fixture.number("epoch")?))?;
    let x = net.words.hide(&read, &fixture.input("masked_positions")?)?;
    let mask = mask.narrow(1, 0, slots - 1)?.contiguous()?;
    let ids = fixture.ids("words_id")?;
    let shown = Shown { x: &x, mask: &mask, ids: &ids };
    let guess = |weights: Option<&Tensor>| net.guess(&shown, Sequence { x: &kept, mask: &real }, weights, &pass);
    let (covered, whole) = (guess(Some(&masks.covered))?, guess(None)?);
    let (left, right) = (guess(Some(&masks.left))?, guess(Some(&masks.right))?);
    let losses = net.losses(&masks, &covered, &whole, [&left, &right])?;
    let badness = covered.badness.reshape(((), config.proposals))?;
    let ranked = net.rank(&places, &badness)?;
    let bounds = ranked.iter().flatten().flat_map(|one| [one.span.start() as f32, one.span.end() as f32]);
    let ranked = Tensor::from_vec(bounds.collect::<Vec<_>>(), (ranked.len(), config.proposals, 2), visual.device())?;
    let second = net.ranking_and_diversity(&losses)?;

    let mut trace = Trace::new();
    trace.out("center", &places.centre);
    trace.out("width", &places.width);
    trace.out("gauss_weight", &masks.covered);
    trace.out("neg_weight_left", &masks.left);
    trace.out("neg_weight_right", &masks.right);
    trace.out("words_mask", &mask);
    trace.out("words_logit", &covered.logits);
    trace.out("ref_words_logit", &whole.logits);
    trace.out("neg_words_logit_1", &left.logits);
    trace.out("neg_words_logit_2", &right.logits);
    trace.out("nll_per_proposal", &badness);
    trace.out("ranked_spans", &ranked);
    trace.loss("reconstruction", &losses.reconstruction);
    trace.loss("ref", &losses.whole);
    trace.loss("neg_1", &losses.left);
    trace.loss("neg_2", &losses.right);
    trace.loss("diversity", &losses.diversity);
    trace.loss("ranking_and_diversity", &second);
    trace.loss("total", &(&losses.reconstruction + second)?);
    Ok(trace)
}
