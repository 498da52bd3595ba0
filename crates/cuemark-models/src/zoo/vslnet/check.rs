//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::functional::{sigmoid, softmax};
use cuemark_tensor::{Device, Pass};

use super::blocks::Predictor;
use super::{Asked, Padding, PredictorKind, Truth, VslNet, VslNetConfig};
use crate::check::{Fixture, Trace};
use crate::layers::best_clips;
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let mut filters = Vec::new();
    let convolution = |number: usize| format!("embedding_net.char_emb.char_convs.{number}.0.weight");
    while let Ok(shape) = fixture.shape(&convolution(filters.len())) {
        filters.push(shape.first().copied().unwrap_or_default());
    }
    let config = VslNetConfig {
        positions: fixture.number("max_pos_len")?,
        hidden: fixture.number("dim")?,
        character_width: fixture.number("char_dim")?,
        character_filters: filters,
        heads: fixture.number("num_heads")?,
        convolutions: fixture.number("conv_layers")?,
        kernel: fixture.number("conv_kernel")?,
        predictor: match fixture.config("predictor")?.as_str() {
            Some("transformer") => PredictorKind::Transformer,
            _ => PredictorKind::Rnn,
        },
        padding: Padding::Leaks,
        highlight_weight: fixture.real("highlight_loss_weight")?,
        highlight_positive: fixture.real("highlight_positive_weight")?,
        highlight_extend: fixture.real("highlight_extend")?,
        dropout: 0.0,
    };
    let table = vb.pp("embedding_net.word_emb");
    let width = fixture.number("word_dim")?;
    let known = fixture.shape("embedding_net.word_emb.glove_vec")?.first().copied().unwrap_or_default();
    let rows =
        [table.get((1, width), "pad_vec")?, table.get((1, width), "unk_vec")?, table.get((known, width), "glove_vec")?];
    let ids = fixture.ids("word_ids")?;
    let (batch, steps) = ids.dims2()?;
    let words = Tensor::cat(&rows, 0)?.index_select(&ids.flatten_all()?, 0)?.reshape((batch, steps, width))?;
    let visual = fixture.input("video_features")?;
    let given = Given::widths(visual.dim(2)?, width, 0);
    let net = VslNet::with_alphabet(&config, &given, fixture.number("char_size")?, vb)?;
    let other = VslNetConfig { predictor: PredictorKind::Transformer, ..config.clone() };
    let other = Predictor::new(&other, &vb.pp("transformer_head"))?;

    let (mask, asked_mask) = (fixture.input("video_mask")?, fixture.input("query_mask")?);
    let characters = fixture.ids("char_ids")?;
    let asked = Asked { words: &words, characters: Some(&characters), mask: &asked_mask };
    let pass = Pass::answering();
    let forward = net.forward(&visual, &mask, &asked, &pass)?;
    let [other_starts, other_ends] = other.forward(&forward.gated, &mask, &pass)?;
    let clips = visual.dim(1)?;
    let truth = Truth {
        starts: one_hot(fixture, "start_index", clips, mask.device())?,
        ends: one_hot(fixture, "end_index", clips, mask.device())?,
        highlight: fixture.input("highlight_labels")?,
    };
    let losses = net.losses(&forward, &mask, &truth)?;
    let (starts, ends) = (softmax(&forward.starts, 1)?.to_vec2::<f32>()?, softmax(&forward.ends, 1)?.to_vec2::<f32>()?);
    let best: Vec<_> =
        starts.iter().zip(&ends).filter_map(|(starts, ends)| best_clips(starts, ends).first().copied()).collect();
    let column = |value: fn(&crate::layers::ScoredClips) -> usize| {
        Tensor::new(best.iter().map(|best| value(best) as f32).collect::<Vec<_>>(), visual.device())
    };

    let mut trace = Trace::new();
    trace.out("query_embedding", &forward.query_in);
    trace.out("query_encoded", &forward.query);
    trace.out("video_encoded", &forward.video);
    trace.out("cq_attention", &forward.attended);
    trace.out("cq_concat", &forward.fused);
    trace.out("highlight_score", &(sigmoid(&forward.highlight)? * &mask)?);
    trace.out_where("start_logits", &forward.starts, &mask);
    trace.out_where("end_logits", &forward.ends, &mask);
    trace.out_where("transformer_head_start_logits", &other_starts, &mask);
    trace.out_where("transformer_head_end_logits", &other_ends, &mask);
    trace.out("pred_start", &column(|best| best.first)?);
    trace.out("pred_end", &column(|best| best.last)?);
    trace.loss("span", &losses[0]);
    trace.loss("highlight", &losses[1]);
    trace.loss("total", &net.total(&losses)?);
    Ok(trace)
}

/// An input of indices as rows of `clips` with a 1 at each.
fn one_hot(fixture: &Fixture, name: &str, clips: usize, device: &Device) -> Result<Tensor> {
    let indices = fixture.counts(name)?;
    let mut values = vec![0f32; indices.len() * clips];
    for (row, index) in indices.iter().enumerate() {
        let place = values.get_mut(row * clips..(row + 1) * clips).and_then(|row| row.get_mut(*index));
        *place.ok_or_else(|| fixture.fault(&format!("in.{name}"), format!("holds {index}, past {clips} clips")))? = 1.0;
    }
    Ok(Tensor::from_vec(values, (indices.len(), clips), device)?)
}
