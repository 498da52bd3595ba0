//! MDD: 2D-TAN whose query is gated by its verbs and nouns and whose map is adjusted by attention over confounders.
//! Lan et al., "A Closer Look at Debiased Temporal Sentence Grounding in Videos: Dataset, Metric, and Approach",
//! TOMM 2022 (extends Yuan et al., "A Closer Look at Temporal Sentence Grounding in Videos", HUMA 2021).
//!
//! No code is published. Where the paper is silent: every branch has projections of its own; the reconstruction is the
//! mean over valid cells of the distance to TCN-DCM's position code; a sentence without a verb keeps its plain query;
//! unobserved dictionaries start from a normal of deviation 0.3, since the product of branches shrinks anything smaller.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{attention, l2_normalise, mask_out, masked_mean, sigmoid, softmax};
use cuemark_tensor::map::span_max;
use cuemark_text::{Parse, Phrase};
use serde::{Deserialize, Serialize};

use super::tcn_dcm::position_code;
use crate::check::{Fixture, Trace};
use crate::layers::{
    Linear, MapSize, MapStack, MapSupport, MomentMap, Recurrent, Ways, last_step, linear, linear_no_bias, pointwise,
};
use crate::losses::ScaledIou;
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "mdd",
    title: "MDD",
    paper: "Lan et al., A Closer Look at Debiased Temporal Sentence Grounding in Videos: Dataset, Metric, and Approach, \
            TOMM 2022",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "gates the query by its verbs and nouns and adds attention over several confounders to the map",
    full_sizes: &[
        FullSize {
            dataset: "charades-cd",
            settings: "map = { pre_clips = 256, clips = 16, counts = [15] }",
            visual: 1024,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "activitynet-cd",
            settings: "map = { pre_clips = 256, clips = 16, counts = [15] }",
            visual: 500,
            words: 300,
            millions: None,
        },
    ],
    build: |table, given, vb| Ok(Box::new(Mdd::new(&read_settings("mdd", table)?, given, vb)?)),
    settings: |table| fill_settings::<MddConfig>("mdd", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MddConfig {
    /// Sizes of the map.
    pub map: MapSize,
    /// Width of everything. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Layers of the query's LSTM. Default: 3
    #[serde(default = "lstm_layers")]
    pub lstm_layers: usize,
    /// Whether verbs and nouns gate the query; needs parses. Default: true
    #[serde(default = "yes")]
    pub semantic_roles: bool,
    /// Weight of the position reconstruction; 0 leaves that part out. Default: 1.0
    #[serde(default = "one")]
    pub reconstruction: f64,
    /// The branches whose product is added to the map; repeats are branches of their own, none leaves that part out.
    /// Default: location, unobserved, unobserved
    #[serde(default = "confounders")]
    pub confounders: Vec<Confounder>,
    /// Vectors in each unobserved dictionary. Default: 80
    #[serde(default = "entries")]
    pub unobserved: usize,
    /// Most verbs in an action dictionary. Default: 80
    #[serde(default = "entries")]
    pub actions: usize,
    /// Heads of every branch; divides `hidden`. Default: 4
    #[serde(default = "four")]
    pub heads: usize,
    /// Side of the convolutions' kernel. Default: 5
    #[serde(default = "kernel")]
    pub kernel: usize,
    /// Number of convolutions. Default: 4
    #[serde(default = "four")]
    pub layers: usize,
    /// Which cells the convolutions compute. Default: exact
    #[serde(default)]
    pub support: MapSupport,
    /// How overlaps become targets. Default: 0 up to 0.5, 1 at 1.0
    #[serde(default)]
    pub targets: ScaledIou,
    /// Overlap above which the worse of two answers is dropped. Default: 0.45
    #[serde(default = "nms")]
    pub nms: f64,
}

/// What may lie behind both the moment and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confounder {
    /// Where spans lie: the position codes of all squares of the map.
    Location,
    /// What is done: vectors of the most frequent verbs of the training queries.
    Action,
    /// Anything else: learnt vectors.
    Unobserved,
}

fn hidden() -> usize {
    512
}

fn lstm_layers() -> usize {
    3
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}

fn confounders() -> Vec<Confounder> {
    vec![Confounder::Location, Confounder::Unobserved, Confounder::Unobserved]
}

fn entries() -> usize {
    80
}

fn four() -> usize {
    4
}

fn kernel() -> usize {
    5
}

fn nms() -> f64 {
    0.45
}

/// The network.
#[derive(Debug)]
pub struct Mdd {
    config: MddConfig,
    map: MomentMap,
    project: Linear,
    query: Recurrent,
    gate: Option<Gate>,
    place: Option<Linear>,
    /// The position code of every square, `[clips * clips, hidden]`.
    position: Tensor,
    branches: Vec<Branch>,
    query_to_map: Linear,
    moment_to_map: Linear,
    stack: MapStack,
    score: Linear,
}

/// Gives verbs, and nouns under their verb, a say in the query.
#[derive(Debug)]
struct Gate {
    top: Linear,
    down: Linear,
    score: Linear,
}

/// Attention of every cell over the dictionary of one confounder.
#[derive(Debug)]
struct Branch {
    name: String,
    kind: Confounder,
    /// `[entries, hidden]`, or as wide as a word for actions.
    dictionary: Tensor,
    widen: Option<Linear>,
    from_query: Linear,
    from_moment: Linear,
    ask: Linear,
    key: Linear,
    value: Linear,
    heads: usize,
}

/// Everything on the way to the scores, one row per valid cell.
struct Forward {
    moments: Tensor,
    query: Tensor,
    gated: Tensor,
    logits: Tensor,
}

impl Mdd {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, for sizes that do not fit each other, and when actions are among the
    /// confounders and the data gave no verbs.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &MddConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        if config.heads == 0 || !hidden.is_multiple_of(config.heads) {
            let problem = format!("`heads`: {} do not divide `hidden` of {hidden}", config.heads);
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let map = MomentMap::new(config.map.clips, &config.map.counts)?;
        let position = position_code(config.map.clips, hidden, vb.device())?;
        let named = branch_names(&config.confounders).into_iter().zip(&config.confounders);
        let branches = named.map(|(name, kind)| Branch::new(name, *kind, config, given, &position, &vb));
        Ok(Self {
            project: linear(given.visual, hidden, vb.pp("proj"))?,
            query: Recurrent::lstm(given.words, hidden, config.lstm_layers, Ways::Forward, vb.pp("lstm"))?,
            gate: config.semantic_roles.then(|| Gate::new(hidden, &vb)).transpose()?,
            place: (config.reconstruction != 0.0).then(|| linear(hidden, hidden, vb.pp("fc_pos"))).transpose()?,
            branches: branches.collect::<Result<_>>()?,
            query_to_map: linear(hidden, hidden, vb.pp("fuse_q"))?,
            moment_to_map: pointwise(hidden, hidden, 2, vb.pp("fuse_v"))?,
            stack: MapStack::new(&map, hidden, config.kernel, config.layers, config.support, vb.pp("convs"))?,
            score: pointwise(hidden, 1, 2, vb.pp("pred"))?,
            position,
            map,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, pre_clips, d_visual]`; words `[batch, words, d_word]` with `lengths` real ones; phrases one list
    ///   per query, none when the gate is off
    /// - logits of the result `[batch, cells]`, one per valid cell
    fn forward(&self, visual: &Tensor, words: &Tensor, lengths: &[usize], phrases: &[&[Phrase]]) -> Result<Forward> {
        let moments = span_max(&self.clips(visual)?, self.map.layout())?;
        let states = self.query.forward(words)?;
        let query = last_step(&states, lengths)?;
        let gated = match &self.gate {
            Some(gate) => gate.forward(&states, &query, lengths, phrases)?,
            None => query.clone(),
        };
        let adjusted = match self.confounder(&gated, &moments)? {
            Some(confounder) => (&moments + confounder)?,
            None => moments.clone(),
        };
        let asked = self.query_to_map.forward(&gated)?.unsqueeze(1)?;
        let fused = l2_normalise(&self.moment_to_map.forward(&adjusted)?.broadcast_mul(&asked)?)?;
        let logits = self.score.forward(&self.stack.forward(&fused)?)?.squeeze(D::Minus1)?;
        Ok(Forward { moments, query, gated, logits })
    }

    /// Projection, ReLU and the mean of neighbours (A2), `[batch, pre_clips, d_visual]` to `[batch, clips, hidden]`.
    fn clips(&self, visual: &Tensor) -> candle_core::Result<Tensor> {
        let (batch, pre_clips, _) = visual.dims3()?;
        let clips = self.config.map.clips;
        if !pre_clips.is_multiple_of(clips) {
            candle_core::bail!("{pre_clips} pre-clips cannot be averaged to {clips} clips");
        }
        let x = self.project.forward(visual)?.relu()?;
        x.reshape((batch, clips, pre_clips / clips, ()))?.mean(2)
    }

    /// The product of all branches at each of `moments [batch, cells, hidden]`; `None` without branches.
    fn confounder(&self, gated: &Tensor, moments: &Tensor) -> Result<Option<Tensor>> {
        let mut product: Option<Tensor> = None;
        for branch in &self.branches {
            let seen = branch.forward(gated, moments)?;
            product = Some(match product {
                Some(product) => (product * seen)?,
                None => seen,
            });
        }
        Ok(product)
    }

    /// Mean over valid cells of the distance between what the map says about a cell's place and its position code.
    fn reconstruction(&self, moments: &Tensor) -> Result<Option<Tensor>> {
        let Some(place) = &self.place else { return Ok(None) };
        let code = self.position.index_select(&self.map.squares(moments.device())?, 0)?;
        let difference = place.forward(moments)?.tanh()?.broadcast_sub(&code)?;
        Ok(Some(difference.sqr()?.sum(D::Minus1)?.maximum(1e-24)?.sqrt()?.mean_all()?))
    }

    fn total(&self, bce: &Tensor, reconstruction: Option<&Tensor>) -> Result<Tensor> {
        match reconstruction {
            Some(part) => Ok((bce + (part * self.config.reconstruction)?)?),
            None => Ok(bce.clone()),
        }
    }

    fn of_batch(&self, batch: &Batch) -> Result<Forward> {
        let queries = &batch.queries;
        let parses: &[Parse] = if self.gate.is_some() { queries.parses(CARD.name)? } else { &[] };
        let phrases: Vec<&[Phrase]> = parses.iter().map(|parse| parse.phrases.as_slice()).collect();
        self.forward(&batch.videos.visual, &queries.words, &queries.lengths, &phrases)
    }
}

/// The prefix of each branch's parameters: `location`, `action`, then `location2` and so on; the unobserved ones are
/// numbered from the first, `hidden1`, `hidden2`, ….
fn branch_names(confounders: &[Confounder]) -> Vec<String> {
    let name = |(place, kind): (usize, &Confounder)| {
        let number = confounders[..=place].iter().filter(|other| *other == kind).count();
        match (kind, number) {
            (Confounder::Unobserved, number) => format!("hidden{number}"),
            (Confounder::Location, 1) => "location".to_owned(),
            (Confounder::Location, number) => format!("location{number}"),
            (Confounder::Action, 1) => "action".to_owned(),
            (Confounder::Action, number) => format!("action{number}"),
        }
    };
    confounders.iter().enumerate().map(name).collect()
}

impl Gate {
    fn new(hidden: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            top: linear_no_bias(hidden, hidden, vb.pp("w_top"))?,
            down: linear_no_bias(hidden, hidden, vb.pp("w_down"))?,
            score: linear_no_bias(2 * hidden, 1, vb.pp("w_gamma"))?,
        })
    }

    /// # Shapes
    /// - states `[batch, words, hidden]`; query `[batch, hidden]`; phrases one list per query
    /// - returns `[batch, hidden]`
    fn forward(&self, states: &Tensor, query: &Tensor, lengths: &[usize], phrases: &[&[Phrase]]) -> Result<Tensor> {
        let Some(trees) = Trees::new(lengths, phrases, states)? else { return Ok(query.clone()) };
        let verbs = trees.words.narrow(2, 0, 1)?.squeeze(2)?; // [batch, phrases, hidden]
        let verb_scores = self.scores(&query.unsqueeze(1)?, &verbs)?;
        let shares = softmax(&mask_out(&verb_scores, &trees.phrase_mask, -1e9)?, D::Minus1)?;
        let main_verb = verbs.broadcast_mul(&shares.unsqueeze(2)?)?.sum(1)?;
        let nouns = trees.words.narrow(2, 1, trees.words.dim(2)? - 1)?;
        let noun_scores = self.scores(&main_verb.unsqueeze(1)?.unsqueeze(1)?, &nouns)?;
        let scores = Tensor::cat(&[verb_scores.unsqueeze(2)?, noun_scores], 2)?;
        let shares = softmax(&mask_out(&scores, &trees.word_mask, -1e9)?, D::Minus1)?;
        let said = trees.words.broadcast_mul(&shares.unsqueeze(3)?)?.sum(2)?; // [batch, phrases, hidden]
        let gate = masked_mean(&said, &trees.phrase_mask.unsqueeze(2)?, 1)?;
        Ok((query + (query * gate)?)?)
    }

    /// How much each of `below [.., hidden]` matters under `above`, which broadcasts to it: `[..]`.
    fn scores(&self, above: &Tensor, below: &Tensor) -> Result<Tensor> {
        let above = self.top.forward(above)?.tanh()?.broadcast_as(below.shape())?;
        let below = self.down.forward(&below.contiguous()?)?.tanh()?;
        Ok(self.score.forward(&Tensor::cat(&[above.contiguous()?, below], D::Minus1)?)?.squeeze(D::Minus1)?)
    }
}

/// The phrases of all queries of a batch, padded to one size: first the verb of each, then its nouns.
struct Trees {
    /// `[batch, phrases, 1 + nouns, hidden]`
    words: Tensor,
    /// `[batch, phrases, 1 + nouns]`, 1 where there is a word.
    word_mask: Tensor,
    /// `[batch, phrases]`, 1 where there is a phrase.
    phrase_mask: Tensor,
}

impl Trees {
    /// `None` when no query has a phrase. Words past the end of a query that was cut are left out.
    fn new(lengths: &[usize], phrases: &[&[Phrase]], states: &Tensor) -> Result<Option<Self>> {
        let (batch, steps, hidden) = states.dims3()?;
        let inside = |(phrases, length): (&&[Phrase], &usize)| -> Vec<Vec<usize>> {
            let length = (*length).min(steps);
            let words = |phrase: &Phrase| {
                let nouns = phrase.nouns.iter().copied().filter(|noun| *noun < length);
                std::iter::once(phrase.verb).chain(nouns).collect()
            };
            phrases.iter().filter(|phrase| phrase.verb < length).map(words).collect()
        };
        let trees: Vec<Vec<Vec<usize>>> = phrases.iter().zip(lengths).map(inside).collect();
        let most_phrases = trees.iter().map(Vec::len).max().unwrap_or(0);
        let most_words = trees.iter().flatten().map(Vec::len).max().unwrap_or(0).max(2); // room for one noun
        if most_phrases == 0 {
            return Ok(None);
        }
        let sizes = (batch, most_phrases, most_words);
        let mut rows = vec![0u32; batch * most_phrases * most_words];
        let (mut word_mask, mut phrase_mask) = (vec![0f32; rows.len()], vec![0f32; batch * most_phrases]);
        for (query, tree) in trees.iter().enumerate() {
            for (number, words) in tree.iter().enumerate() {
                let phrase = query * most_phrases + number;
                phrase_mask[phrase] = 1.0;
                for (place, word) in words.iter().enumerate() {
                    rows[phrase * most_words + place] = (query * steps + word) as u32;
                    word_mask[phrase * most_words + place] = 1.0;
                }
            }
        }
        let device = states.device();
        let words = states.reshape((batch * steps, hidden))?.index_select(&Tensor::new(rows, device)?, 0)?;
        Ok(Some(Self {
            words: words.reshape((batch, most_phrases, most_words, hidden))?,
            word_mask: Tensor::from_vec(word_mask, sizes, device)?,
            phrase_mask: Tensor::from_vec(phrase_mask, (batch, most_phrases), device)?,
        }))
    }
}

impl Branch {
    fn new(
        name: String,
        kind: Confounder,
        config: &MddConfig,
        given: &Given,
        position: &Tensor,
        vb: &VarBuilder,
    ) -> Result<Self> {
        let (hidden, vb) = (config.hidden, vb.pp(&name));
        let (dictionary, widen) = match kind {
            Confounder::Location => (position.clone(), None),
            Confounder::Unobserved => {
                let init = Init::Randn { mean: 0.0, stdev: 0.3 };
                (vb.get_with_hints((config.unobserved, hidden), "dictionary", init)?, None)
            }
            Confounder::Action => {
                let missing =
                    ModelError::Missing { model: CARD.name, what: "the frequent verbs of its training queries" };
                let verbs = given.verbs.as_ref().ok_or(missing)?;
                let verbs = verbs.narrow(0, 0, verbs.dim(0)?.min(config.actions))?.detach();
                (verbs.to_device(vb.device())?, Some(linear(given.words, hidden, vb.pp("project"))?))
            }
        };
        Ok(Self {
            kind,
            dictionary,
            widen,
            from_query: linear(hidden, hidden, vb.pp("fc_u"))?,
            from_moment: linear(hidden, hidden, vb.pp("fc_m"))?,
            ask: linear(hidden, hidden, vb.pp("fc_q"))?,
            key: linear_no_bias(hidden, hidden, vb.pp("key"))?,
            value: linear_no_bias(hidden, hidden, vb.pp("value"))?,
            heads: config.heads,
            name,
        })
    }

    /// # Shapes
    /// - query `[batch, hidden]`; moments `[batch, cells, hidden]`
    /// - returns `[batch, cells, hidden]`
    fn forward(&self, query: &Tensor, moments: &Tensor) -> Result<Tensor> {
        let asked = self.from_moment.forward(moments)?.broadcast_add(&self.from_query.forward(query)?.unsqueeze(1)?)?;
        let dictionary = match &self.widen {
            Some(widen) => widen.forward(&self.dictionary)?,
            None => self.dictionary.clone(),
        };
        // The dictionary is the same for all: cells of all queries stand in one row.
        let heads = |x: &Tensor| {
            let width = x.dim(D::Minus1)? / self.heads;
            x.reshape(((), self.heads, width))?.transpose(0, 1)?.contiguous()
        };
        let (ask, key) = (heads(&self.ask.forward(&asked)?)?, heads(&self.key.forward(&dictionary)?)?);
        let (seen, _) = attention(&ask, &key, &heads(&self.value.forward(&dictionary)?)?, None)?;
        Ok(seen.transpose(0, 1)?.reshape(moments.shape())?)
    }
}

impl Model for Mdd {
    fn input(&self) -> Input {
        Input { parses: self.gate.is_some(), ..Input::pairs(self.config.map.pre_clips) }
    }

    fn loss(&self, batch: &Batch, _: &Pass) -> Result<Loss> {
        let ious = self.map.ious(&batch.targets(CARD.name)?.spans, batch.videos.visual.device())?;
        let forward = self.of_batch(batch)?;
        let bce = self.config.targets.loss(&forward.logits, &ious)?;
        let reconstruction = self.reconstruction(&forward.moments)?;
        let total = self.total(&bce, reconstruction.as_ref())?;
        let parts = [("bce", Some(bce)), ("reconstruction", reconstruction)];
        Ok(Loss { total, parts: parts.into_iter().filter_map(|(name, part)| Some((name, part?))).collect() })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        Ok(self.map.rank(&sigmoid(&self.of_batch(batch)?.logits)?)?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let clips = fixture.number("clips")?;
    let (visual, words) = (fixture.input("visual")?, fixture.input("text")?);
    let config = MddConfig {
        map: MapSize { pre_clips: visual.dim(1)?, clips, counts: vec![clips.saturating_sub(1)] },
        hidden: fixture.number("hidden")?,
        lstm_layers: fixture.number("lstm_layers")?,
        semantic_roles: true,
        reconstruction: fixture.real("lambda_recon")?,
        confounders: fixture_confounders(fixture),
        unobserved: fixture.shape("hidden1.dictionary").ok().and_then(|shape| shape.first().copied()).unwrap_or(0),
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
    let ious = net.map.from_square(&fixture.input("map_gt")?.unsqueeze(1)?)?.squeeze(2)?;
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

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::Confounder::{Action, Location, Unobserved};
    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config(confounders: &[Confounder]) -> MddConfig {
        MddConfig {
            map: MapSize { pre_clips: 8, clips: 8, counts: vec![7] },
            hidden: 16,
            lstm_layers: 1,
            semantic_roles: true,
            reconstruction: 1.0,
            confounders: confounders.to_vec(),
            unobserved: 6,
            actions: 3,
            heads: 2,
            kernel: 3,
            layers: 2,
            support: MapSupport::Exact,
            targets: ScaledIou::default(),
            nms: 0.45,
        }
    }

    fn given() -> Given {
        let verbs = Tensor::arange(0f32, 30.0, &Device::Cpu).unwrap().reshape((5, 6)).unwrap().sin().unwrap();
        Given { verbs: Some(verbs), ..TOY.given() }
    }

    fn net(config: &MddConfig) -> Mdd {
        Mdd::new(config, &given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    /// The toy batch with a verb in every sentence but the last, and a second one in the first.
    fn batch() -> Batch {
        let mut batch = TOY.batch(1);
        let parse = |query: usize| {
            let first = Phrase { verb: 1, nouns: vec![0, 3] };
            let phrases = match query {
                0 => vec![first, Phrase { verb: 2, nouns: Vec::new() }],
                query if query + 1 == TOY.pairs => Vec::new(),
                _ => vec![first],
            };
            Parse { tokens: Vec::new(), phrases, dependencies: Vec::new() }
        };
        batch.queries.parses = Some((0..TOY.pairs).map(parse).collect());
        batch
    }

    #[test]
    fn every_valid_cell_is_proposed_once_with_a_probability() {
        let ranked = net(&config(&[Location, Action, Unobserved])).propose(&batch()).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 36);
            assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn branches_are_named_by_kind_and_number() {
        let names = branch_names(&[Unobserved, Location, Action, Unobserved, Location, Action]);
        assert_eq!(names, ["hidden1", "location", "action", "hidden2", "location2", "action2"]);
    }

    #[test]
    fn padded_words_change_nothing() {
        let net = net(&config(&[Location, Unobserved, Unobserved]));
        let short = net.of_batch(&batch()).unwrap().logits;
        let long = net.of_batch(&batch().with_longer_words(3)).unwrap().logits;
        assert!(gap(&short, &long) < 1e-6);
    }

    #[test]
    fn a_sentence_without_a_verb_keeps_its_query_and_others_do_not() {
        let forward = net(&config(&[])).of_batch(&batch()).unwrap();
        let moved = |query: usize| gap(&forward.query.get(query).unwrap(), &forward.gated.get(query).unwrap());
        assert_eq!(moved(TOY.pairs - 1), 0.0);
        assert!((0..TOY.pairs - 1).all(|query| moved(query) > 1e-6));
    }

    #[test]
    fn words_past_the_end_of_a_query_are_left_out_of_its_tree() {
        let net = net(&config(&[]));
        let mut far = batch();
        for parse in far.queries.parses.iter_mut().flatten() {
            parse.phrases.push(Phrase { verb: 900, nouns: vec![0] });
            parse.phrases.iter_mut().for_each(|phrase| phrase.nouns.push(901));
        }
        assert!(gap(&net.of_batch(&batch()).unwrap().gated, &net.of_batch(&far).unwrap().gated) < 1e-6);
    }

    #[test]
    fn parts_that_are_switched_off_need_neither_parses_nor_parameters() {
        let plain = MddConfig { semantic_roles: false, reconstruction: 0.0, ..config(&[]) };
        let (full, less) = (Params::counted(), Params::counted());
        Mdd::new(&config(&[]), &given(), full.builder()).unwrap();
        Mdd::new(&plain, &given(), less.builder()).unwrap();
        // Two square matrices and a row of two for the gate, a matrix and a bias for the reconstruction.
        assert_eq!(full.count() - less.count(), 2 * 16 * 16 + 2 * 16 + 16 * 16 + 16);
        let loss = net(&plain).loss(&TOY.batch(1), &Pass::answering()).unwrap();
        assert_eq!(loss.parts.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["bce"]);
        let error = net(&config(&[])).loss(&TOY.batch(1), &Pass::answering()).unwrap_err();
        assert_eq!(error.to_string(), "`mdd` needs the parses of its queries");
    }

    #[test]
    fn actions_need_verbs() {
        let error = Mdd::new(&config(&[Action]), &TOY.given(), Params::counted().builder()).unwrap_err();
        assert_eq!(error.to_string(), "`mdd` needs the frequent verbs of its training queries");
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = batch();
        for confounders in [&[Location, Unobserved, Unobserved][..], &[Action]] {
            // Without the reconstruction, whose floor is far above 0 at this width.
            let config = MddConfig { reconstruction: 0.0, ..config(confounders) };
            let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Mdd::new(&config, &given(), vb)?)) };
            let (model, first, last) = overfit(build, &batch, 150, 1e-2);
            let overlaps = best_overlaps(model.as_ref(), &batch);
            assert!(last < 0.3 * first, "{confounders:?}: {first} to {last}");
            assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{confounders:?}: {overlaps:?}");
        }
    }
}
