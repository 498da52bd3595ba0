//! CMIN: a syntactic graph on the query, local self-attention on the video, cross gating, and anchors at every frame.
//! Zhang et al., "Cross-Modal Interaction Networks for Query-Based Moment Retrieval in Videos", SIGIR 2019.
//!
//! Follows the published code where it and the paper differ (only the best anchor of a query learns its offsets; no degree
//! normalisation in the graph). The true frames are those that the span covers best, and features of another width than
//! `video.width` are projected first.

use candle_core::{DType, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;
use cuemark_text::Parse;
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    AnchorForward, AnchorInputs, AnchorLayers, AnchorQuery, AnchorRules, AnchorSettings, FrameSettings, Linear, Movers,
    Recurrent, Ways, linear_no_bias,
};
use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "cmin",
    title: "CMIN",
    paper: "Zhang et al., Cross-Modal Interaction Networks for Query-Based Moment Retrieval in Videos, SIGIR 2019",
    family: Family::Anchor,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "a syntactic graph on the query gates local self-attention on the frames; anchors with offsets",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "video = { frames = 200 }\nanchors = { widths = [16, 32, 64, 96, 128, 160, 192] }",
            visual: 500,
            words: 300,
            millions: Some(8.2),
        },
        FullSize {
            dataset: "charades-sta",
            settings: "video = { frames = 64, width = 500 }\nanchors = { widths = [16, 24, 32, 40], spread = 0.125 }",
            visual: 1024,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "tacos",
            settings: "video = { frames = 200, width = 500 }\nanchors = { widths = [6, 18, 32] }",
            visual: 4096,
            words: 300,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Cmin::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<CminConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CminConfig {
    /// How frames are encoded.
    pub video: FrameSettings,
    /// Which anchors there are.
    pub anchors: AnchorSettings,
    /// Width of all states. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Layers of the graph. Default: 2
    #[serde(default = "graph_layers")]
    pub graph_layers: usize,
    /// Kinds of dependencies, each with vectors of its own. Default: 39
    #[serde(default = "relations")]
    pub relations: usize,
    /// Share of values dropped. Default: 0.2
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Overlaps below this share of the query's largest count as 0. Default: 0.3
    #[serde(default = "clear")]
    pub clear: f64,
    /// Weight of the offsets' loss. Default: 0.001
    #[serde(default = "offset_weight")]
    pub offset_weight: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.45
    #[serde(default = "nms")]
    pub nms: f64,
}

fn hidden() -> usize {
    512
}

fn graph_layers() -> usize {
    2
}

fn relations() -> usize {
    39
}

fn dropout() -> f64 {
    0.2
}

fn clear() -> f64 {
    0.3
}

fn offset_weight() -> f64 {
    0.001
}

fn nms() -> f64 {
    0.45
}

/// The number of the first relation between two words; 0 is none and 1 a word with itself.
const FIRST_RELATION: usize = 2;

/// The network.
#[derive(Debug)]
pub struct Cmin {
    config: CminConfig,
    layers: AnchorLayers,
    graph: Vec<GraphLayer>,
    words: Recurrent,
    gate_words: Linear,
    gate_video: Linear,
}

/// One layer of the graph: messages from each word to itself, to its head and to its dependents.
#[derive(Debug)]
struct GraphLayer {
    to_self: Messages,
    to_head: Messages,
    to_dependent: Messages,
}

/// How messages of one direction are made.
#[derive(Debug)]
struct Messages {
    transform: Linear,
    gate: Linear,
    bias: Tensor,
    gate_bias: Tensor,
}

/// Who hears whom in one direction: rows of the flattened words, and the place of the relation's vectors.
struct Edges {
    from: Vec<u32>,
    to: Vec<u32>,
    relation: Vec<u32>,
}

/// The dependencies of all queries of a batch.
struct Graph {
    own: Edges,
    to_head: Edges,
    to_dependent: Edges,
}

impl Cmin {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that cannot be.
    pub fn new(config: &CminConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let (hidden, sentence) = (config.hidden, vb.pp("sentence_encoder"));
        let layer =
            |number: usize| GraphLayer::new(given.words, config.relations, &sentence.pp("gcn_layers").pp(number));
        Ok(Self {
            layers: AnchorLayers::new(&config.video, &config.anchors, given.visual, hidden, config.dropout, &vb)?,
            graph: (0..config.graph_layers).map(layer).collect::<Result<_>>()?,
            words: Recurrent::gru(given.words, hidden / 2, 1, Ways::Both, sentence.pp("rnn.gru"))?,
            gate_words: linear_no_bias(hidden, hidden, vb.pp("cross_gate.fc_gate1"))?,
            gate_video: linear_no_bias(hidden, hidden, vb.pp("cross_gate.fc_gate2"))?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, frames, d_visual]`; words `[batch, words, d_word]`, mask `[batch, words]`
    /// - `[batch, frames, hidden]` on the way, one logit and two offsets per anchor in the end
    fn forward(&self, visual: &Tensor, query: &AnchorQuery, graph: &Graph, pass: &Pass) -> Result<AnchorForward> {
        let p = self.config.dropout;
        let video = self.layers.encode(visual, pass)?;
        let mut words = pass.dropout(query.words, p)?;
        for layer in &self.graph {
            words = (&words + pass.dropout(&layer.forward(&words, graph)?, p)?)?;
        }
        let words = pass.dropout(&self.words.forward_packed(&words, query.lengths)?, p)?;
        let attended = self.layers.attend(&video, &words, query)?;
        let gated_words = (sigmoid(&self.gate_words.forward(&video)?)? * &attended)?;
        let gated_video = (sigmoid(&self.gate_video.forward(&attended)?)? * &video)?;
        let (fused, anchored) = self.layers.score(&gated_video, &gated_words, pass)?;
        Ok(AnchorForward { video, words, attended, fused, anchored })
    }
}

impl GraphLayer {
    fn new(width: usize, relations: usize, vb: &VarBuilder) -> Result<Self> {
        let messages = |number: usize, relations: usize| -> Result<Messages> {
            let vectors = |what: &str| -> Result<Tensor> {
                let list = vb.pp(format!("{what}_bias{}", number + 1));
                let vectors = (0..relations).map(|r| list.get_with_hints(width, &r.to_string(), Init::Const(0.0)));
                Ok(Tensor::stack(&vectors.collect::<candle_core::Result<Vec<_>>>()?, 0)?)
            };
            Ok(Messages {
                transform: linear_no_bias(width, width, vb.pp("fc_dir_weight").pp(number))?,
                gate: linear_no_bias(width, width, vb.pp("fc_gate_weight").pp(number))?,
                bias: vectors("fc_dir")?,
                gate_bias: vectors("fc_gate")?,
            })
        };
        Ok(Self { to_self: messages(0, 1)?, to_head: messages(1, relations)?, to_dependent: messages(2, relations)? })
    }

    /// # Shapes
    /// - x `[batch, words, width]`; returns the same
    fn forward(&self, x: &Tensor, graph: &Graph) -> Result<Tensor> {
        let rows = x.flatten(0, 1)?;
        let mut heard = Tensor::zeros(rows.shape(), DType::F32, rows.device())?;
        for (messages, edges) in
            [(&self.to_self, &graph.own), (&self.to_head, &graph.to_head), (&self.to_dependent, &graph.to_dependent)]
        {
            heard = messages.send(&rows, edges, &heard)?;
        }
        Ok(heard.relu()?.reshape(x.shape())?)
    }
}

impl Messages {
    /// Adds to `heard` what each word says along `edges`.
    fn send(&self, rows: &Tensor, edges: &Edges, heard: &Tensor) -> Result<Tensor> {
        let relations = self.bias.dim(0)? as u32;
        let known = |list: &[u32]| {
            let pairs = list.iter().zip(&edges.relation);
            pairs.filter(|(_, relation)| **relation < relations).map(|(row, _)| *row).collect::<Vec<u32>>()
        };
        let relation = known(&edges.relation);
        if relation.is_empty() {
            return Ok(heard.clone());
        }
        let index = |list: Vec<u32>| Tensor::new(list, rows.device());
        let (from, to, relation) = (index(known(&edges.from))?, index(known(&edges.to))?, index(relation)?);
        let said = self.transform.forward(rows)?;
        let gate = self.gate.forward(&said)?.index_select(&from, 0)?;
        let said = said.index_select(&from, 0)?;
        let said = (said + self.bias.index_select(&relation, 0)?)?;
        let gate = sigmoid(&(gate + self.gate_bias.index_select(&relation, 0)?)?)?;
        Ok(heard.index_add(&to, &(said * gate)?, 0)?)
    }
}

impl Graph {
    /// From matrices of relation numbers, row head and column dependent, all queries one after another.
    fn of_matrices(matrices: &[usize], words: usize) -> Self {
        let edges = || Edges { from: Vec::new(), to: Vec::new(), relation: Vec::new() };
        let mut graph = Self { own: edges(), to_head: edges(), to_dependent: edges() };
        for (place, relation) in matrices.iter().enumerate() {
            let (query, head, dependent) = (place / (words * words), place / words % words, place % words);
            let (head, dependent) = (query * words + head, query * words + dependent);
            if *relation == 1 {
                graph.own.add(head, dependent, 0);
            } else if *relation >= FIRST_RELATION {
                graph.to_head.add(dependent, head, relation - FIRST_RELATION);
                graph.to_dependent.add(head, dependent, relation - FIRST_RELATION);
            }
        }
        graph
    }

    /// From parses whose positions are those of the words; what a parse says about words that are not there is left out.
    fn of_parses(parses: &[Parse], lengths: &[usize], words: usize) -> Self {
        let mut matrices = vec![0; parses.len() * words * words];
        for (query, (parse, length)) in parses.iter().zip(lengths).enumerate() {
            let real = (*length).min(words);
            let mut set = |head: usize, dependent: usize, relation: usize| {
                if head < real && dependent < real {
                    matrices[(query * words + head) * words + dependent] = relation;
                }
            };
            for dependency in parse.dependencies.iter().filter(|dependency| dependency.head != dependency.dependent) {
                set(dependency.head, dependency.dependent, usize::from(dependency.relation.id()));
            }
            for word in 0..real {
                set(word, word, 1);
            }
        }
        Self::of_matrices(&matrices, words)
    }
}

impl Edges {
    fn add(&mut self, from: usize, to: usize, relation: usize) {
        self.from.push(from as u32);
        self.to.push(to as u32);
        self.relation.push(relation as u32);
    }
}

impl Cmin {
    fn rules(&self) -> AnchorRules {
        let CminConfig { clear, offset_weight, .. } = self.config;
        AnchorRules { clear, movers: Movers::Best, offset_weight }
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<AnchorForward> {
        let queries = &batch.queries;
        let graph = Graph::of_parses(queries.parses(CARD.name)?, &queries.lengths, queries.words.dim(1)?);
        self.forward(&batch.videos.visual, &AnchorQuery::from(queries), &graph, pass)
    }
}

impl Model for Cmin {
    fn input(&self) -> Input {
        Input { parses: true, ..self.layers.input() }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let spans = &batch.targets(CARD.name)?.spans;
        self.layers.loss(&self.of_batch(batch, pass)?, spans, &self.rules())
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        self.layers.rank(&self.of_batch(batch, &Pass::answering())?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let inputs = AnchorInputs::of_fixture(fixture)?;
    let relation = "param.sentence_encoder.gcn_layers.0.fc_dir_bias2.";
    let config = CminConfig {
        video: FrameSettings::of_fixture(fixture)?,
        anchors: AnchorSettings::of_fixture(fixture)?,
        hidden: fixture.number("d_model")?,
        graph_layers: fixture.number("gcn_layers")?,
        relations: fixture.under(relation).count(),
        dropout: 0.0,
        clear: fixture.real("label_clear_threshold")?,
        offset_weight: fixture.real("reg_weight")?,
        nms: nms(),
    };
    let net = Cmin::new(&config, &inputs.given()?, vb.clone())?;
    let graph = Graph::of_matrices(&fixture.counts("adjacency")?, inputs.query().words.dim(1)?);
    let forward = net.forward(&inputs.visual, &inputs.query(), &graph, &Pass::answering())?;
    net.layers.trace(&forward, &net.rules(), fixture)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};
    use cuemark_text::{Dependency, Relation};

    use super::*;
    use crate::layers::anchor_trial::{
        anchors, assert_every_anchor_inside_the_video_is_proposed, difference_of_padded_words,
    };
    use crate::testing::{TOY, assert_learnt_by_heart, gap};

    fn config() -> CminConfig {
        CminConfig {
            video: FrameSettings { frames: 8, width: None, heads: 2, layers: 1, reach: 2 },
            anchors: anchors(),
            hidden: 16,
            graph_layers: 1,
            relations: 39,
            dropout: 0.0,
            clear: 0.3,
            offset_weight: 0.001,
            nms: 0.45,
        }
    }

    /// The toy batch, the second word of every query the head of all others.
    fn batch(relation: Relation) -> Batch {
        let mut batch = TOY.batch(1);
        let parse = |length: &usize| Parse {
            dependencies: (0..*length)
                .filter(|word| *word != 1)
                .map(|dependent| Dependency { head: 1, dependent, relation })
                .collect(),
            ..Parse::default()
        };
        batch.queries.parses = Some(batch.queries.lengths.iter().map(parse).collect());
        batch
    }

    fn net() -> Cmin {
        Cmin::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_anchor_inside_the_video_is_proposed() {
        assert_every_anchor_inside_the_video_is_proposed(&net(), &batch(Relation::Nsubj));
    }

    #[test]
    fn padded_words_change_nothing() {
        assert!(difference_of_padded_words(|batch, pass| net().of_batch(batch, pass), &batch(Relation::Nsubj)) < 1e-6);
    }

    #[test]
    fn who_hangs_on_whom_matters() {
        let (net, with) = (net(), batch(Relation::Nsubj));
        let mut without = with.clone();
        without.queries.parses = Some(vec![Parse::default(); TOY.pairs]);
        let logits = |batch: &Batch| net.of_batch(batch, &Pass::answering()).unwrap().anchored.logits;
        assert!(gap(&logits(&with), &logits(&without)) > 1e-6);
    }

    #[test]
    fn a_batch_without_parses_is_refused() {
        let refused = net().propose(&TOY.batch(1)).unwrap_err().to_string();
        assert_eq!(refused, "`cmin` needs the parses of its queries");
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let build = |vb: VarBuilder| Cmin::new(&config(), &TOY.given(), vb);
        assert_learnt_by_heart(build, &batch(Relation::Dobj), 120, 1e-2, 0.6);
    }
}
