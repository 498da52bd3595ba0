//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_text::Phrase;

use super::config::{entries, nms};
use super::{Branches, Confounder, Entries, Mdd, MddConfig};
use crate::check::{Fixture, Trace};
use crate::layers::{MapSize, MapSupport};
use crate::losses::ScaledIou;
use crate::{Given, Result};

/// Vectors in the unobserved dictionary of this number, from 1; `None` when there is none.
fn dictionary(fixture: &Fixture, number: usize) -> Option<usize> {
    fixture.shape(&format!("hidden{number}.dictionary")).ok()?.first().copied()
}

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let clips = fixture.number("clips")?;
    let (visual, words) = (fixture.input("visual")?, fixture.input("text")?);
    let config = MddConfig {
        map: MapSize { pre_clips: visual.dim(1)?, clips, counts: vec![clips.saturating_sub(1)] },
        hidden: fixture.number("hidden")?,
        lstm_layers: fixture.number("lstm_layers")?,
        semantic_roles: true,
        reconstruction: fixture.real("lambda_recon")?,
        confounders: fixture_confounders(fixture),
        branches: Branches::Plain,
        unobserved: Entries::List((1..).map_while(|number| dictionary(fixture, number)).collect()),
        actions: entries(),
        heads: fixture.number("heads")?,
        kernel: fixture.number("conv.kernel")?,
        layers: fixture.number("conv.layers")?,
        support: MapSupport::Exact,
        targets: ScaledIou::of_fixture(fixture)?,
        nms: nms(),
    };
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let mut net = Mdd::new(&config, &given, vb.clone())?;
    // The fixture stores what we compute.
    let squares = (clips * clips, config.hidden);
    net.position = vb.get((clips, clips, config.hidden), "position_code")?.reshape(squares)?;
    for branch in net.branches.iter_mut().filter(|branch| branch.kind == Confounder::Location) {
        branch.dictionary = vb.pp(&branch.name).get(squares, "dictionary")?;
    }
    let trees = fixture.config("trees")?;
    let trees: Vec<Vec<Phrase>> =
        serde_json::from_value(trees.clone()).map_err(|error| fixture.fault("config.trees", error.to_string()))?;
    let trees: Vec<&[Phrase]> = trees.iter().map(Vec::as_slice).collect();
    let forward = net.forward(&visual, &words, &fixture.counts("word_lens")?, &trees)?;
    let ious = net.map.cells_of_square(&fixture.input("map_gt")?.unsqueeze(1)?)?.squeeze(2)?;
    let bce = config.targets.loss(&forward.logits, &ious)?;
    let reconstruction = net.reconstruction(&forward.moments)?;

    let mut trace = Trace::new();
    let channels_last = |x: &Tensor| x.permute((0, 2, 3, 1));
    let map_feat = net.map.to_square(&forward.moments)?;
    trace.out("map_feat", &channels_last(&map_feat)?);
    // The reference computes its branches on invalid cells too, where the map is zero.
    let everywhere = map_feat.flatten_from(2)?.transpose(1, 2)?.contiguous()?;
    if let Some(confounder) = net.confounder(&forward.gated, &everywhere)? {
        trace.out("confounder", &confounder.reshape(channels_last(&map_feat)?.shape())?);
    }
    trace.out("query_global", &forward.query);
    trace.out("query_gated", &forward.gated);
    trace.out("score_logit", &net.map.to_square(&forward.logits.unsqueeze(2)?)?.squeeze(1)?);
    trace.loss("total", &net.total(&bce, reconstruction.as_ref())?);
    trace.loss("bce", &bce);
    if let Some(reconstruction) = &reconstruction {
        trace.loss("recon", reconstruction);
    }
    Ok(trace)
}

/// The branches that a fixture has parameters for.
fn fixture_confounders(fixture: &Fixture) -> Vec<Confounder> {
    let parameters = fixture.parameters();
    let kinds =
        [("location", Confounder::Location), ("action", Confounder::Action), ("hidden", Confounder::Unobserved)];
    let kind = |(prefix, kind): (&str, Confounder)| {
        let branches = parameters.keys().filter(|name| name.starts_with(prefix) && name.ends_with(".fc_q.weight"));
        std::iter::repeat_n(kind, branches.count()).collect::<Vec<_>>()
    };
    kinds.into_iter().flat_map(kind).collect()
}
