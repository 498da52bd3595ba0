//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::answers::Logits;
use super::{Conquer, ConquerConfig, Layers, Measure};
use crate::check::{Fixture, Trace};
use crate::layers::{EndClip, PairLimits};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let exclusive = fixture.under("param.video_scoring_head").next().is_some();
    let config = ConquerConfig {
        clips: fixture.number("video_len")?,
        words: fixture.number("query_bert_config.max_position_embeddings")?,
        hidden: fixture.number("hidden_dim")?,
        wide: fixture.number("bert_config.intermediate_size")?,
        heads: fixture.number("bert_config.num_attention_heads")?,
        layers: Layers {
            query: fixture.number("query_bert_config.num_hidden_layers")?,
            video: fixture.number("bert_config.num_hidden_layers")?,
        },
        clusters: fixture.number("netvlad_config.text_cluster")?,
        scoring: fixture.number("moment_localization_config.conv_cfg_1.out_channels")?,
        kernel: fixture.number("moment_localization_config.conv_cfg_1.kernel_size")?,
        measure: if exclusive { Measure::Exclusive } else { Measure::General },
        pairs: PairLimits { min: fixture.number("pair_min")?, max: fixture.number("pair_max")? },
        span_weight: fixture.real("lw_st_ed")?,
        video_weight: fixture.real("lw_video_ce")?,
        ..ConquerConfig::default()
    };
    let (words, visual, subtitle) =
        (fixture.input("query_feat")?, fixture.input("visual_feat")?, fixture.input("sub_feat")?);
    let (queries, each, clips, width) = visual.dims4()?;
    let given = Given { subtitle: subtitle.dim(3)?, ..Given::widths(width, words.dim(2)?, 0) };
    let net = Conquer::new(&config, &given, vb.clone())?;
    let pass = Pass::answering();
    let (asked, word_mask) = net.queries(&words, &fixture.input("query_mask")?, &pass)?;
    let mask = fixture.input("video_mask")?;
    let videos = net.videos(&visual.flatten_to(1)?, Some(&subtitle.flatten_to(1)?), &mask.flatten_to(1)?, &pass)?;
    let of_query: Vec<u32> = (0..queries as u32).flat_map(|query| std::iter::repeat_n(query, each)).collect();
    let of_query = Tensor::new(of_query, asked.device())?;
    let pairs =
        net.forward(&asked.index_select(&of_query, 0)?, &word_mask.index_select(&of_query, 0)?, &videos, &pass)?;

    let mut trace = Trace::new();
    trace.out("query_enc", &asked);
    trace.out("visual_enc", &videos.visual);
    if let (Some(subtitle), Some(fusion)) = (&videos.subtitle, &pairs.fusion) {
        trace.out("sub_enc", subtitle);
        trace.out("fusion_weight", fusion);
    }
    trace.out("qdf", &pairs.fused);
    trace.out("qal", &pairs.aware);
    trace.out("contextual_qal", &pairs.context);
    trace.out_where("begin_logits", &pairs.begin.reshape((queries, each, clips))?, &mask);
    trace.out_where("end_logits", &pairs.end.reshape((queries, each, clips))?, &mask);
    if let Some(video) = &pairs.video {
        trace.out("video_score", &video.reshape((queries, each))?);
    }
    let first = fixture.input("first_stage_score")?.to_vec2::<f32>()?;
    let mut all = Logits::default();
    all.extend(&pairs, &videos.mask)?;
    let lengths = all.lengths.clone();
    let measures = [("general", Measure::General), ("exclusive", Measure::Exclusive), ("disjoint", Measure::Disjoint)];
    for (name, measure) in measures.into_iter().filter(|(_, measure)| exclusive || *measure != Measure::Exclusive) {
        let of = |query: usize| {
            let logits = all.rows(query * each..(query + 1) * each);
            net.answers(&logits, Some(&first[query]), measure)
        };
        let answers = (0..queries).map(of).collect();
        let clips = |query: usize, video: usize| lengths[query * each + video];
        trace.ranked_moments(name, answers, clips, EndClip::Last, fixture.number("rank_size")?)?;
    }
    let labels = fixture.counts("st_ed_indices")?;
    let labels: Vec<(usize, usize)> = labels.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let (span, video) = net.losses(&pairs, queries, &labels)?;
    let mut total = (span.mean_all()? * config.span_weight)?;
    trace.loss("moment_ce", &total);
    if let Some(video) = video {
        let video = (video.mean_all()? * config.video_weight)?;
        trace.loss("video_ce", &video);
        total = (total + video)?;
    }
    trace.loss("total", &total);
    Ok(trace)
}
