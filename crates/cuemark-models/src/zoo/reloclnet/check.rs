//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::contrast::video_contrast;
use super::{ReLoClNet, ReLoClNetConfig};
use crate::check::{Fixture, Trace};
use crate::layers::{PairLimits, SimilarityCurve, of_stream};
use crate::losses::{DrawnNegatives, RankingLoss};
use crate::{Code, Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = ReLoClNetConfig {
        clips: fixture.number("max_ctx_l")?,
        words: fixture.number("max_desc_l")?,
        hidden: fixture.number("hidden_size")?,
        heads: fixture.number("n_heads")?,
        kernel: fixture.number("conv_kernel_size")?,
        pairs: PairLimits { min: fixture.number("pair_min")?, max: fixture.number("pair_max")? },
        ranking: DrawnNegatives {
            compare: if fixture.config("ranking_loss_type")? == "lse" { RankingLoss::Lse } else { RankingLoss::Hinge },
            margin: fixture.real("margin")?,
            ..DrawnNegatives::default()
        },
        span_weight: fixture.real("lw_st_ed")?,
        frame_weight: fixture.real("lw_fcl")?,
        video_weight: fixture.real("lw_vcl")?,
        sharpness: fixture.real("video_score_exponent")?,
        ..ReLoClNetConfig::default()
    };
    let (words, visual, subtitle) =
        (fixture.input("query_feat")?, fixture.input("video_feat")?, fixture.input("sub_feat")?);
    let given = Given { subtitle: subtitle.dim(2)?, ..Given::widths(visual.dim(2)?, words.dim(2)?, 0) };
    let net = ReLoClNet::new(&config, &given, vb.clone())?;
    let pass = Pass::answering();
    let queries = net.queries(&words, &fixture.input("query_mask")?, &pass)?;
    let context = net.context(&visual, Some(&subtitle), &fixture.input("video_mask")?, &pass)?;
    let (own, all) = (net.own_logits(&queries, &context)?, net.all_logits(&queries, &context)?);
    let scores = ReLoClNet::scores(&queries, &context)?;

    let mut trace = Trace::new();
    for (number, name) in ["video", "sub"].into_iter().enumerate() {
        trace.out(&format!("{name}_query"), &of_stream(&queries, number)?);
        trace.out(&format!("{name}_enc1"), &context.first[number]);
        trace.out(&format!("{name}_mid"), &context.middle[number]);
        trace.out(&format!("{name}_final"), &context.last[number]);
    }
    trace.out("query_context_scores", &scores);
    trace.out("mid_scores", &ReLoClNet::middle_scores(&queries, &context)?);
    trace.out_where("st_logits", &own.0, &context.mask);
    trace.out_where("ed_logits", &own.1, &context.mask);
    let everywhere = context.mask.unsqueeze(0)?.broadcast_as(all.0.shape())?.contiguous()?;
    trace.out_where("cross_st_logits", &all.0, &everywhere);
    trace.out_where("cross_ed_logits", &all.1, &everywhere);
    let lengths = fixture.lengths("video_mask")?;
    let codes = net.curve.encode(&context.last, &context.last, &lengths)?;
    let (codes, asked): (Vec<&Code>, _) = (codes.iter().collect(), net.stream_queries(&queries)?);
    let answers = net.curve.search(&asked, &codes, &SimilarityCurve::score_videos(&asked, &codes)?, &net.rules())?;
    trace.ranked_moments("vcmr", answers, |_, video| lengths[video], config.end_clip, fixture.number("rank_size")?)?;

    let labels = fixture.counts("st_ed_indices")?;
    let labels: Vec<(usize, usize)> = labels.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let diagonal: Vec<Vec<usize>> = (0..labels.len()).map(|row| vec![row]).collect();
    let inside = fixture.input("match_labels")?;
    let losses = ReLoClNet::per_query(&queries, &context, &own, &labels, &inside, &diagonal)?;
    let ranks = [&*fixture.counts("neg_rank_ctx")?, &fixture.counts("neg_rank_q")?];
    let (videos, columns) = config.ranking.both_ways(&scores, [&diagonal, &diagonal], ranks)?;
    let hinges = ((&videos * fixture.real("lw_neg_ctx")?)? + (&columns * fixture.real("lw_neg_q")?)?)?;
    let mut weighed = net.weigh(&losses)?;
    if fixture.variant() == Some("ranking") {
        weighed = (weighed * fixture.input("simi")?)?;
        trace.loss("st_per_sample", &losses.start);
        trace.loss("ed_per_sample", &losses.end);
        trace.loss("fcl_per_sample", &losses.frame);
        trace.loss("vcl_per_sample", &losses.video);
        let mask = fixture.input("positive_pair_mask")?.to_vec2::<f32>()?;
        let true_ones = |row: &Vec<f32>| (0..row.len()).filter(|column| row[*column] > 0.0).collect();
        let positives: Vec<Vec<usize>> = mask.iter().map(true_ones).collect();
        let masked = video_contrast(&ReLoClNet::middle_scores(&queries, &context)?, &positives)?;
        trace.loss("vcl_masked_logsumexp_per_sample", &masked);
    } else {
        trace.loss("loss_st_ed", &((&losses.start + &losses.end)?.mean_all()? * config.span_weight)?);
        trace.loss("loss_fcl", &(losses.frame.mean_all()? * config.frame_weight)?);
        trace.loss("loss_vcl", &(losses.video.mean_all()? * config.video_weight)?);
        trace.loss("loss_neg_ctx", &(videos * fixture.real("lw_neg_ctx")?)?);
        trace.loss("loss_neg_q", &(columns * fixture.real("lw_neg_q")?)?);
    }
    trace.loss("total", &(weighed.mean_all()? + hinges)?);
    Ok(trace)
}
