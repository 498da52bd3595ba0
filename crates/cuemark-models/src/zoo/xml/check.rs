//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::{Xml, XmlConfig, span_loss};
use crate::check::{Fixture, Trace};
use crate::layers::{PairLimits, SimilarityCurve};
use crate::losses::{DrawnNegatives, RankingLoss};
use crate::{Code, Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = XmlConfig {
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
        sharpness: fixture.real("video_score_exponent")?,
        ..XmlConfig::default()
    };
    let (words, visual, subtitle) =
        (fixture.input("query_feat")?, fixture.input("video_feat")?, fixture.input("sub_feat")?);
    let given = Given { subtitle: subtitle.dim(2)?, ..Given::widths(visual.dim(2)?, words.dim(2)?, 0) };
    let net = Xml::new(&config, &given, vb.clone())?;
    let pass = Pass::answering();
    let (encoded, queries, weights) = net.queries(&words, &fixture.input("query_mask")?, &pass)?;
    let context = net.context(&visual, Some(&subtitle), &fixture.input("video_mask")?, &pass)?;
    let scores = net.scores(&queries, &context)?;
    let own = net.own_logits(&queries, &context)?;
    let all = net.all_logits(&queries, &context)?;

    let mut trace = Trace::new();
    trace.out("encoded_query", &encoded);
    trace.out("modular_att", &weights);
    for (number, name) in ["video", "sub"].into_iter().enumerate() {
        trace.out(&format!("{name}_query"), &queries.narrow(1, number, 1)?.squeeze(1)?);
        trace.out(&format!("{name}_feat1"), &context.first[number]);
        trace.out(&format!("{name}_feat2"), &context.second[number]);
    }
    trace.out("query_context_scores", &scores);
    trace.out_where("st_logits", &own.0, &context.mask);
    trace.out_where("ed_logits", &own.1, &context.mask);
    let everywhere = context.mask.unsqueeze(0)?.broadcast_as(all.0.shape())?.contiguous()?;
    trace.out_where("cross_st_logits", &all.0, &everywhere);
    trace.out_where("cross_ed_logits", &all.1, &everywhere);
    let lengths = fixture.lengths("video_mask")?;
    let codes = net.curve.encode(&context.first, &context.second, &lengths)?;
    let asked = net.stream_queries(&queries)?;
    let codes: Vec<&Code> = codes.iter().collect();
    let whole = SimilarityCurve::score_videos(&asked, &codes)?;
    let answers = net.curve.search(&asked, &codes, &whole, &net.rules())?;
    trace.ranked_moments("vcmr", answers, |_, video| lengths[video], config.end_clip, fixture.number("rank_size")?)?;
    trace.out("length_mask", &config.pairs.square(config.clips)?);

    let labels = fixture.counts("st_ed_indices")?;
    let labels: Vec<(usize, usize)> = labels.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let span = (span_loss(&own, &labels)?.mean_all()? * config.span_weight)?;
    let diagonal: Vec<Vec<usize>> = (0..labels.len()).map(|row| vec![row]).collect();
    let ranked = |videos: &str, queries: &str| -> Result<(Tensor, Tensor)> {
        let ranks = [&*fixture.counts(videos)?, &fixture.counts(queries)?];
        Ok(config.ranking.both_ways(&scores, [&diagonal, &diagonal], ranks)?)
    };
    let (easy, hard) = (ranked("neg_rank_ctx", "neg_rank_q")?, ranked("hard_rank_ctx", "hard_rank_q")?);
    let (videos, queries) = ((easy.0 * fixture.real("lw_neg_ctx")?)?, (easy.1 * fixture.real("lw_neg_q")?)?);
    trace.loss("loss_st_ed", &span);
    trace.loss("loss_neg_ctx", &videos);
    trace.loss("loss_neg_q", &queries);
    trace.loss("hard_neg_ctx", &hard.0);
    trace.loss("hard_neg_q", &hard.1);
    trace.loss("total", &((span + videos)? + queries)?);
    Ok(trace)
}
