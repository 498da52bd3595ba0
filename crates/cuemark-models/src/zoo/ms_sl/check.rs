//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::cosine;
use cuemark_tensor::{Device, Pass};

use super::losses::Ranks;
use super::{MsSl, MsSlConfig, Ranking};
use crate::check::{Fixture, Trace};
use crate::layers::window_means;
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = MsSlConfig {
        pieces: fixture.number("map_size")?,
        frames: fixture.number("max_ctx_l")?,
        words: fixture.number("max_desc_l")?,
        hidden: fixture.number("hidden_size")?,
        heads: fixture.number("n_heads")?,
        ranking: Ranking { margin: fixture.real("margin")?, ..Ranking::default() },
        clip_contrast: fixture.real("clip_nce_weight")?,
        frame_contrast: fixture.real("frame_nce_weight")?,
        clip_share: fixture.real("inference_weights.clip")?,
        ..MsSlConfig::default()
    };
    let (words, frames) = (fixture.input("query_feat")?, fixture.input("frame_video_feat")?);
    let net = MsSl::new(&config, &Given::widths(frames.dim(2)?, words.dim(2)?, 0), vb.clone())?;
    let pass = Pass::answering();
    let queries = net.queries(&words, &fixture.input("query_mask")?, &pass)?;
    let mask = fixture.input("frame_video_mask")?;
    let context = net.context(&fixture.input("clip_video_feat")?, &frames, &mask, &pass)?;
    let own = fixture.counts("query_labels")?;
    let (cosines, best, products) = MsSl::clip_scores(&queries, &context.proposals)?;
    let seen = net.attend_own(&context, &best, &own)?;

    let mut trace = Trace::new();
    trace.out("query", &queries);
    trace.out("proposal_feat", &context.proposals);
    trace.out("frame_feat", &context.frames);
    trace.out("key_clip_index", &best);
    trace.out("clip_scores", &cosines);
    trace.out("clip_scores_unnorm", &products);
    trace.out("frame_scores", &cosine(&queries, &seen)?);
    trace.out("frame_scores_unnorm", &queries.times(&seen.t()?)?);
    let codes = net.codes(&context, &fixture.lengths("frame_video_mask")?)?;
    let (mut clips, mut attended, mut scores) = (Vec::new(), Vec::new(), Vec::new());
    let means = window_means(&net.windows, config.pieces, queries.device())?;
    for code in &codes {
        let (cosines, frames) = net.score_video(&queries, &means, code)?;
        clips.push(cosines.iter().map(|row| row.iter().copied().fold(f32::MIN, f32::max)).collect::<Vec<f32>>());
        attended.push(frames);
    }
    for answers in net.answers(&queries, &codes.iter().collect::<Vec<_>>())? {
        scores.push(answers.iter().map(|answer| answer.video_score).collect::<Vec<f32>>());
    }
    trace.out("inf_clip_scores", &Tensor::new(clips, &Device::Cpu)?.t()?);
    trace.out("inf_frame_scores", &Tensor::new(attended, &Device::Cpu)?.t()?);
    trace.out("inf_scores", &Tensor::new(scores, &Device::Cpu)?);

    // The fixture counts sentences of other videos from 0, everything else from 1.
    let drawn = Ranks {
        sentences: fixture.counts("v2t_neg_rank")?.into_iter().map(|rank| rank + 1).collect(),
        videos: fixture.counts("t2v_neg_rank")?,
        frames: [fixture.counts("frame_neg_rank_ctx")?, fixture.counts("frame_neg_rank_q")?],
    };
    let losses = net.losses(&queries, &context, &own, &drawn)?;
    let ones = |count: usize| vec![1; count];
    let hardest =
        Ranks { sentences: ones(codes.len()), videos: ones(own.len()), frames: [ones(own.len()), ones(own.len())] };
    let hard = net.losses(&queries, &context, &own, &hardest)?;
    trace.loss("clip_nce", &(&losses.clip_nce * config.clip_contrast)?);
    trace.loss("frame_nce", &(&losses.frame_nce * config.frame_contrast)?);
    trace.loss("clip_triplet", &losses.clip_triplet);
    trace.loss("frame_triplet", &losses.frame_triplet);
    trace.loss("clip_triplet_hard", &hard.clip_triplet);
    trace.loss("frame_triplet_hard", &hard.frame_triplet);
    trace.loss("total", &net.total(&losses)?);
    Ok(trace)
}
