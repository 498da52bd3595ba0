//! LVTR: learned proposals explore the video, and each is matched to one of the sentences asked of it, all at once.
//! Woo et al., "Explore-And-Match: Bridging Proposal-Based and Proposal-Free With Transformer for Sentence Grounding in
//! Videos", 2022.
//!
//! A sentence is the normalised mean of its word vectors, where the paper has CLIP's. While training, the sentences of a video
//! are cut into random groups, each in the order of time; answers take them in the order asked, so that no truth leaks into
//! them. A sentence that no proposal prefers is still answered. The published `cos` normalises proposals along the wrong axis;
//! `cos-fixed` does not. With one sentence per group every label score ties: `score = "matched"` adds a head that tells
//! proposals apart by whether they were matched.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{
    bce_with_logits, l2_normalise, l2_normalise_along, log_softmax, masked_mean, sigmoid, softmax,
};
use cuemark_tensor::{DType, Pass};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{DecoderLayer, EncoderLayer, LayerNorm, Linear, TransformerSize, linear, see_only};
use crate::{
    Batch, BatchBy, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, QueryBatch, Result, Supervision,
    Task, fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "lvtr",
    title: "LVTR",
    paper: "Woo et al., Explore-And-Match: Bridging Proposal-Based and Proposal-Free With Transformer for Sentence Grounding \
            in Videos, 2022",
    family: Family::Span,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "learned proposals explore the time axis; all sentences of a video are matched to them together",
    full_sizes: &[
        FullSize { dataset: "activitynet-captions", settings: "", visual: 512, words: 512, millions: Some(7.9) },
        FullSize { dataset: "charades-sta", settings: "", visual: 512, words: 512, millions: Some(7.9) },
    ],
    build: |table, given, vb| Ok(Box::new(Lvtr::new(&read_settings("lvtr", table)?, given, vb)?)),
    settings: |table| fill_settings::<LvtrConfig>("lvtr", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LvtrConfig {
    /// Clips that every video is brought to. Default: 64
    pub clips: usize,
    /// Sentences that are answered together. Default: 4
    pub sentences: usize,
    /// Learned proposals. Default: 40
    pub proposals: usize,
    /// Width of everything. Default: 256
    pub hidden: usize,
    /// Heads of the attention. Default: 8
    pub heads: usize,
    /// Width inside the feed-forward parts. Default: 1024
    pub ffn: usize,
    /// Layers of the encoder. Default: 4
    pub encoder_layers: usize,
    /// Layers of the decoder. Default: 4
    pub decoder_layers: usize,
    /// Layers that bring clips and sentences to the hidden width. Default: 2
    pub input_layers: usize,
    /// What says which sentence a proposal belongs to. Default: cos
    pub label: Label,
    /// What ranks the proposals of a sentence. Default: label
    pub score: Score,
    /// Weight of the distance of centre and width. Default: 1.0
    pub span_weight: f64,
    /// Weight of the overlap. Default: 3.0
    pub overlap_weight: f64,
    /// Weight of the label. Default: 2.0
    pub label_weight: f64,
    /// What the distance counts when proposals are matched to sentences. Default: 1.0
    pub span_cost: f64,
    /// What the overlap counts there. Default: 3.0
    pub overlap_cost: f64,
    /// What the label counts there. Default: 2.0
    pub label_cost: f64,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
    /// Share of input values that training drops. Default: 0.5
    pub input_dropout: f64,
}

impl Default for LvtrConfig {
    fn default() -> Self {
        Self {
            clips: 64,
            sentences: 4,
            proposals: 40,
            hidden: 256,
            heads: 8,
            ffn: 1024,
            encoder_layers: 4,
            decoder_layers: 4,
            input_layers: 2,
            label: Label::Cos,
            score: Score::Label,
            span_weight: 1.0,
            overlap_weight: 3.0,
            label_weight: 2.0,
            span_cost: 1.0,
            overlap_cost: 3.0,
            label_cost: 2.0,
            dropout: 0.1,
            input_dropout: 0.5,
        }
    }
}

/// What says which sentence a proposal belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// The product with unit sentences, proposals normalised over each other: the published `cos`.
    Cos,
    /// The cosine.
    CosFixed,
    /// The plain product.
    Sim,
    /// A linear layer; proposals without a sentence belong to the last.
    Pred,
}

/// What ranks the proposals of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// How surely the proposal belongs to the sentence.
    Label,
    /// That, times how likely the proposal is to be matched at all: a head of our own.
    Matched,
}

/// The network.
#[derive(Debug)]
pub struct Lvtr {
    config: LvtrConfig,
    clips: Vec<Projection>,
    text: Vec<Projection>,
    encoder: Vec<EncoderLayer>,
    decoder: Vec<DecoderLayer>,
    norm: LayerNorm,
    queries: Tensor,
    span: Vec<Linear>,
    label: Linear,
    matched: Option<Linear>,
}

#[derive(Debug)]
struct Projection {
    norm: LayerNorm,
    linear: Linear,
}

/// Videos with their sentences: features `[groups, steps, width]` and 1 where there is one, `[groups, steps]`.
struct Asked {
    clips: Tensor,
    clip_mask: Tensor,
    text: Tensor,
    text_mask: Tensor,
}

/// What one layer of the decoder proposes.
struct Layer {
    /// `[groups, proposals, width]`.
    states: Tensor,
    /// Centre and width as fractions, `[groups, proposals, 2]`.
    spans: Tensor,
    /// `[groups, proposals, sentences]`.
    logits: Tensor,
    /// `[groups, proposals]`.
    matched: Option<Tensor>,
}

struct Forward {
    clip_position: Tensor,
    text_memory: Tensor,
    layers: Vec<Layer>,
}

/// Which queries are answered together: positions in the batch, of one video.
struct Group {
    video: usize,
    queries: Vec<usize>,
}

/// Pairs of a proposal and a sentence, ordered by proposal.
type Matching = Vec<(usize, usize)>;

/// The parts of one layer's loss.
struct Losses {
    span: Tensor,
    overlap: Tensor,
    label: Tensor,
    matched: Option<Tensor>,
}

impl Lvtr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &LvtrConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let LvtrConfig { hidden, heads, ffn, dropout, .. } = *config;
        let size = TransformerSize { width: hidden, heads, ffn, dropout };
        let (encoder, decoder) = (vb.pp("transformer.encoder.layers"), vb.pp("transformer.decoder.layers"));
        let projections = |inputs: usize, name: &str| -> Result<Vec<Projection>> {
            let layer = |number: usize| -> Result<Projection> {
                let inputs = if number == 0 { inputs } else { hidden };
                let vb = vb.pp(name).pp(number);
                Ok(Projection {
                    norm: LayerNorm::new(inputs, 1e-5, vb.pp("LayerNorm"))?,
                    linear: linear(inputs, hidden, vb.pp("net.1"))?,
                })
            };
            (0..config.input_layers).map(layer).collect()
        };
        let span =
            |number: usize| linear(hidden, if number == 2 { 2 } else { hidden }, vb.pp("span_embed.layers").pp(number));
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        Ok(Self {
            clips: projections(given.visual, "input_vid_proj")?,
            text: projections(given.words, "input_txt_proj")?,
            encoder: (0..config.encoder_layers)
                .map(|number| EncoderLayer::new(size, encoder.pp(number)))
                .collect::<candle_core::Result<_>>()?,
            decoder: (0..config.decoder_layers)
                .map(|number| DecoderLayer::new(size, decoder.pp(number)))
                .collect::<candle_core::Result<_>>()?,
            norm: LayerNorm::new(hidden, 1e-5, vb.pp("transformer.decoder.norm"))?,
            queries: vb.pp("query_embed").get_with_hints((config.proposals, hidden), "weight", normal)?,
            span: (0..3).map(span).collect::<candle_core::Result<_>>()?,
            label: linear(hidden, config.sentences, vb.pp("class_head"))?,
            matched: match config.score {
                Score::Label => None,
                Score::Matched => Some(linear(hidden, 1, vb.pp("matched_head"))?),
            },
            config: config.clone(),
        })
    }

    fn project(&self, layers: &[Projection], x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let mut x = x.clone();
        for (number, layer) in layers.iter().enumerate() {
            x = layer.linear.forward(&pass.dropout(&layer.norm.forward(&x)?, self.config.input_dropout)?)?;
            if number + 1 < layers.len() {
                x = x.relu()?;
            }
        }
        Ok(x)
    }

    fn forward(&self, asked: &Asked, pass: &Pass) -> Result<Forward> {
        let hidden = self.config.hidden;
        let (clips, text) =
            (self.project(&self.clips, &asked.clips, pass)?, self.project(&self.text, &asked.text, pass)?);
        let clip_position = sine_position(&asked.clip_mask, hidden)?;
        let position = Tensor::cat(&[&clip_position, &sine_position(&asked.text_mask, hidden)?], 1)?;
        let bias = see_only(&Tensor::cat(&[&asked.clip_mask, &asked.text_mask], 1)?)?;
        let both = Tensor::cat(&[&clips, &text], 1)?;
        let encode = |x: Tensor, layer: &EncoderLayer| layer.forward(&x, Some(&position), Some(&bias), pass);
        let memory = self.encoder.iter().try_fold(both, encode)?;
        let text_memory = memory.narrow(1, clips.dim(1)?, text.dim(1)?)?.contiguous()?;
        let queries = self.queries.unsqueeze(0)?.broadcast_as((clips.dim(0)?, self.config.proposals, hidden))?;
        let mut x = queries.zeros_like()?;
        let mut layers = Vec::with_capacity(self.decoder.len());
        for layer in &self.decoder {
            x = layer.forward(&x, &memory, [Some(&queries), Some(&position)], Some(&bias), pass)?;
            layers.push(self.answer(self.norm.forward(&x)?, &text_memory)?);
        }
        Ok(Forward { clip_position, text_memory, layers })
    }

    fn answer(&self, states: Tensor, text: &Tensor) -> Result<Layer> {
        let mut span = states.clone();
        for (number, layer) in self.span.iter().enumerate() {
            span = layer.forward(&span)?;
            if number + 1 < self.span.len() {
                span = span.relu()?;
            }
        }
        let logits = match self.config.label {
            Label::Pred => self.label.forward(&states)?,
            _ => label_logits(self.config.label, &states, text)?,
        };
        let matched = match &self.matched {
            Some(head) => Some(head.forward(&states)?.squeeze(2)?),
            None => None,
        };
        Ok(Layer { spans: sigmoid(&span)?, logits, matched, states })
    }

    /// # Shapes
    /// - truth: centre and width of every sentence of every group
    fn losses(&self, layer: &Layer, truth: &[Vec<[f32; 2]>]) -> Result<(Losses, Vec<Matching>)> {
        let device = layer.spans.device();
        let (groups, proposals, sentences) = layer.logits.dims3()?;
        let matchings = self.matchings(layer, truth)?;
        let (mut rows, mut wanted) = (Vec::new(), Vec::new());
        let mut labels = Vec::with_capacity(groups * proposals);
        let mut matched = vec![0f32; groups * proposals];
        for (group, (matching, truth)) in matchings.iter().zip(truth).enumerate() {
            labels.extend(match self.config.label {
                Label::Pred => matched_labels(matching, proposals, sentences),
                _ => block_labels(proposals, truth.len()),
            });
            for (proposal, sentence) in matching {
                matched[group * proposals + proposal] = 1.0;
                rows.push((group * proposals + proposal) as u32);
                wanted.extend(truth[*sentence]);
            }
        }
        let pairs = rows.len();
        let found = layer.spans.flatten_to(1)?.index_select(&Tensor::new(rows, device)?, 0)?;
        let wanted = Tensor::from_vec(wanted, (pairs, 2), device)?;
        let log = log_softmax(&layer.logits.flatten_to(1)?, D::Minus1)?;
        let right = log.gather(&Tensor::from_vec(labels, (groups * proposals, 1), device)?, 1)?;
        let matched = match &layer.matched {
            Some(logits) => {
                let wanted = Tensor::from_vec(matched, (groups, proposals), device)?;
                Some(bce_with_logits(logits, &wanted)?.mean_all()?)
            }
            None => None,
        };
        let losses = Losses {
            span: (&found - &wanted)?.abs()?.mean_all()?,
            overlap: generalised_overlap(&found, &wanted)?.affine(-1.0, 1.0)?.mean_all()?,
            label: right.mean_all()?.neg()?,
            matched,
        };
        Ok((losses, matchings))
    }

    fn total(&self, losses: &Losses) -> Result<Tensor> {
        let span = ((&losses.span * self.config.span_weight)? + (&losses.overlap * self.config.overlap_weight)?)?;
        let label = match &losses.matched {
            Some(matched) => (&losses.label + matched)?,
            None => losses.label.clone(),
        };
        Ok((span + (label * self.config.label_weight)?)?)
    }

    /// The cheapest one-to-one matching of every group's sentences to its proposals.
    fn matchings(&self, layer: &Layer, truth: &[Vec<[f32; 2]>]) -> Result<Vec<Matching>> {
        let spans = layer.spans.detach().to_vec3::<f32>()?;
        let shares = softmax(&layer.logits.detach(), D::Minus1)?.to_vec3::<f32>()?;
        let cost = |span: &[f32], wanted: &[f32; 2], share: f32| {
            let distance = f64::from((span[0] - wanted[0]).abs() + (span[1] - wanted[1]).abs());
            let overlap = overlap_of([span[0], span[1]].map(f64::from), wanted.map(f64::from));
            self.config.span_cost * distance
                - self.config.overlap_cost * overlap
                - self.config.label_cost * f64::from(share)
        };
        let mut matchings = Vec::with_capacity(truth.len());
        for ((spans, shares), truth) in spans.iter().zip(&shares).zip(truth) {
            let of_sentence = |(sentence, wanted): (usize, &[f32; 2])| {
                let shares = shares.iter().map(|shares| shares.get(sentence).copied().unwrap_or_default());
                spans.iter().zip(shares).map(|(span, share)| cost(span, wanted, share)).collect()
            };
            let costs: Vec<Vec<f64>> = truth.iter().enumerate().map(of_sentence).collect();
            let mut pairs: Matching = assign(&costs).into_iter().enumerate().map(|(s, p)| (p, s)).collect();
            pairs.sort_unstable();
            matchings.push(pairs);
        }
        Ok(matchings)
    }

    /// The queries of every video in groups: random ones in the order of time while training, else as they are asked.
    fn groups(&self, batch: &Batch, pass: &Pass) -> Result<Vec<Group>> {
        let mut of_video: Vec<Vec<usize>> = vec![Vec::new(); batch.videos.lengths.len()];
        for (query, video) in batch.queries.video.iter().enumerate() {
            of_video.get_mut(*video).into_iter().for_each(|queries| queries.push(query));
        }
        let mut groups = Vec::new();
        for (video, mut queries) in of_video.into_iter().enumerate() {
            let shuffled = pass.draw(|rng| rng.shuffle(&mut queries)).is_some();
            for part in queries.chunks(self.config.sentences.max(1)) {
                let mut part = part.to_vec();
                if shuffled {
                    let spans = &batch.targets(CARD.name)?.spans;
                    part.sort_by(|a, b| spans[*a].centre().total_cmp(&spans[*b].centre()));
                }
                groups.push(Group { video, queries: part });
            }
        }
        Ok(groups)
    }

    fn gather(&self, batch: &Batch, groups: &[Group]) -> Result<Asked> {
        let slots = self.config.sentences;
        let device = batch.videos.visual.device();
        let none = batch.len(); // the row of zeros after the sentences
        let slot = |group: &Group, slot: usize| group.queries.get(slot).copied().unwrap_or(none);
        let rows: Vec<usize> = groups.iter().flat_map(|group| (0..slots).map(move |n| slot(group, n))).collect();
        let mask: Vec<f32> = rows.iter().map(|row| f32::from(u8::from(*row < none))).collect();
        let rows = Tensor::new(rows.into_iter().map(|row| row as u32).collect::<Vec<_>>(), device)?;
        let videos = Tensor::new(groups.iter().map(|group| group.video as u32).collect::<Vec<_>>(), device)?;
        let text = sentence_features(&batch.queries)?.pad_with_zeros(0, 0, 1)?.index_select(&rows, 0)?;
        Ok(Asked {
            clips: batch.videos.visual.contiguous()?.index_select(&videos, 0)?,
            clip_mask: batch.videos.mask.contiguous()?.index_select(&videos, 0)?,
            text: text.reshape((groups.len(), slots, ()))?,
            text_mask: Tensor::from_vec(mask, (groups.len(), slots), device)?,
        })
    }
}

/// The normalised mean of the words of every query, `[queries, width]`.
fn sentence_features(queries: &QueryBatch) -> Result<Tensor> {
    Ok(l2_normalise(&masked_mean(&queries.words, &queries.mask.unsqueeze(2)?, 1)?)?)
}

fn label_logits(label: Label, states: &Tensor, text: &Tensor) -> Result<Tensor> {
    let (states, text) = match label {
        Label::Sim | Label::Pred => (states.clone(), text.clone()),
        // Along the axis of the proposals, as the published code's default has it.
        Label::Cos => (l2_normalise_along(states, 1)?, l2_normalise(text)?),
        Label::CosFixed => (l2_normalise(states)?, l2_normalise(text)?),
    };
    Ok(states.times(&text.t()?.contiguous()?)?)
}

/// Sines and cosines of the place among the real steps, spread over one circle; `mask [batch, steps]`.
fn sine_position(mask: &Tensor, width: usize) -> Result<Tensor> {
    let (batch, steps) = mask.dims2()?;
    let mut codes = Vec::with_capacity(batch * steps * width);
    for row in mask.to_dtype(DType::F32)?.to_vec2::<f32>()? {
        let total: f64 = row.iter().map(|real| f64::from(*real)).sum();
        let mut count = 0.0;
        for real in row {
            count += f64::from(real);
            let place = count / (total + 1e-6) * 2.0 * std::f64::consts::PI;
            codes.extend((0..width).map(|channel| {
                let angle = place / 10_000f64.powf((2 * (channel / 2)) as f64 / width as f64);
                (if channel % 2 == 0 { angle.sin() } else { angle.cos() }) as f32
            }));
        }
    }
    Ok(Tensor::from_vec(codes, (batch, steps, width), mask.device())?)
}

/// Proposals shared out in equal blocks, one per sentence; the last may be shorter.
fn block_labels(proposals: usize, sentences: usize) -> Vec<u32> {
    let block = proposals.div_ceil(sentences.max(1)).max(1);
    (0..proposals).map(|proposal| (proposal / block) as u32).collect()
}

fn matched_labels(matching: &Matching, proposals: usize, sentences: usize) -> Vec<u32> {
    let mut labels = vec![sentences.saturating_sub(1) as u32; proposals];
    matching.iter().for_each(|(proposal, sentence)| labels[*proposal] = *sentence as u32);
    labels
}

/// Overlap over union, less the share of the hull that neither covers; spans by centre and width, `[spans, 2]` to `[spans]`.
fn generalised_overlap(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let bounds = |x: &Tensor| -> Result<[Tensor; 2]> {
        let (centre, half) = (x.narrow(1, 0, 1)?.squeeze(1)?, (x.narrow(1, 1, 1)?.squeeze(1)? / 2.0)?);
        Ok([(&centre - &half)?, (centre + half)?])
    };
    let ([start, end], [other_start, other_end]) = (bounds(a)?, bounds(b)?);
    let both = (end.minimum(&other_end)? - start.maximum(&other_start)?)?.relu()?;
    let union = (((&end - &start)? + (&other_end - &other_start)?)? - &both)?;
    let hull = (end.maximum(&other_end)? - start.minimum(&other_start)?)?;
    Ok(((both / &union)? - ((&hull - &union)? / &hull)?)?)
}

/// As [`generalised_overlap`], of one pair.
fn overlap_of(a: [f64; 2], b: [f64; 2]) -> f64 {
    let bounds = |[centre, width]: [f64; 2]| (centre - width / 2.0, centre + width / 2.0);
    let ((start, end), (other_start, other_end)) = (bounds(a), bounds(b));
    let both = (end.min(other_end) - start.max(other_start)).max(0.0);
    let union = (end - start) + (other_end - other_start) - both;
    let hull = end.max(other_end) - start.min(other_start);
    if union > 0.0 && hull > 0.0 { both / union - (hull - union) / hull } else { 0.0 }
}

/// The cheapest column for every row, no column twice (the Hungarian algorithm by shortest augmenting paths).
/// Rows beyond the number of columns are left out.
fn assign(costs: &[Vec<f64>]) -> Vec<usize> {
    let columns = costs.first().map_or(0, Vec::len);
    let rows = costs.len().min(columns);
    // Columns are counted from 1; column 0 holds the row that is being placed.
    let (mut row_price, mut column_price) = (vec![0.0; rows + 1], vec![0.0; columns + 1]);
    let mut row_of = vec![0; columns + 1];
    for row in 1..=rows {
        row_of[0] = row;
        let mut least = vec![f64::INFINITY; columns + 1];
        let mut from = vec![0; columns + 1];
        let mut used = vec![false; columns + 1];
        let mut column = 0;
        while row_of[column] != 0 {
            used[column] = true;
            let current = row_of[column];
            let (mut step, mut next) = (f64::INFINITY, 0);
            for other in (1..=columns).filter(|other| !used[*other]) {
                let reduced = costs[current - 1][other - 1] - row_price[current] - column_price[other];
                if reduced < least[other] {
                    (least[other], from[other]) = (reduced, column);
                }
                if least[other] < step {
                    (step, next) = (least[other], other);
                }
            }
            if next == 0 {
                break; // only costs that are no numbers lead here
            }
            for other in 0..=columns {
                if used[other] {
                    row_price[row_of[other]] += step;
                    column_price[other] -= step;
                } else {
                    least[other] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[from[column]];
            column = from[column];
        }
    }
    let mut placed = vec![0; rows];
    (1..=columns).filter(|column| row_of[*column] != 0).for_each(|column| placed[row_of[column] - 1] = column - 1);
    placed
}

impl Model for Lvtr {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::L2,
            resample: Resample::MeanBins { rows: self.config.clips },
            batch_by: BatchBy::Videos,
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let spans = &batch.targets(CARD.name)?.spans;
        let groups = self.groups(batch, pass)?;
        let centred = |query: &usize| [spans[*query].centre() as f32, spans[*query].len() as f32];
        let truth: Vec<Vec<[f32; 2]>> =
            groups.iter().map(|group| group.queries.iter().map(centred).collect()).collect();
        let forward = self.forward(&self.gather(batch, &groups)?, pass)?;
        let losses =
            forward.layers.iter().map(|layer| Ok(self.losses(layer, &truth)?.0)).collect::<Result<Vec<_>>>()?;
        let mut total = Tensor::zeros((), DType::F32, batch.videos.visual.device())?;
        for losses in &losses {
            total = (total + self.total(losses)?)?;
        }
        let parts = losses
            .into_iter()
            .next_back()
            .map(|last| vec![("span", last.span), ("overlap", last.overlap), ("label", last.label)]);
        Ok(Loss { total, parts: parts.unwrap_or_default() })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let pass = Pass::answering();
        let groups = self.groups(batch, &pass)?;
        let forward = self.forward(&self.gather(batch, &groups)?, &pass)?;
        let mut answers = vec![Vec::new(); batch.len()];
        let Some(last) = forward.layers.last() else { return Ok(answers) };
        let shares = softmax(&last.logits, D::Minus1)?.to_vec3::<f32>()?;
        let spans = last.spans.to_vec3::<f32>()?;
        let matched = match &last.matched {
            Some(logits) => sigmoid(logits)?.to_vec2::<f32>()?,
            None => vec![vec![1.0; self.config.proposals]; groups.len()],
        };
        for (number, group) in groups.iter().enumerate() {
            for (sentence, query) in group.queries.iter().enumerate() {
                let proposals = spans[number].iter().zip(&shares[number]).zip(&matched[number]);
                let score = |((span, shares), matched): ((&Vec<f32>, &Vec<f32>), &f32)| {
                    let share = shares[sentence];
                    // Proposals that prefer this sentence come first.
                    let prefers = f32::from(u8::from(shares.iter().all(|other| *other <= share)));
                    let (centre, half) = (f64::from(span[0]), f64::from(span[1]) / 2.0);
                    let span = NormSpan::new(centre - half, centre + half)?.clipped();
                    Some(Proposal { span, score: prefers + share * matched })
                };
                let mut ranked: Vec<Proposal> = proposals.filter_map(score).collect();
                ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
                answers[*query] = ranked;
            }
        }
        Ok(answers)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = LvtrConfig {
        clips: fixture.number("num_input_frames")?,
        sentences: fixture.number("num_input_sentences")?,
        proposals: fixture.number("num_proposals")?,
        hidden: fixture.number("hidden_dim")?,
        heads: fixture.number("nheads")?,
        ffn: fixture.number("dim_feedforward")?,
        encoder_layers: fixture.number("enc_layers")?,
        decoder_layers: fixture.number("dec_layers")?,
        input_layers: fixture.number("n_input_proj")?,
        label: match fixture.config("pred_label")?.as_str() {
            Some("sim") => Label::Sim,
            Some("pred") => Label::Pred,
            Some("cos") => Label::Cos,
            _ => return Err(fixture.fault("config.pred_label", "is none of cos, sim and pred")),
        },
        score: Score::Label,
        span_weight: fixture.real("loss_weights.span")?,
        overlap_weight: fixture.real("loss_weights.giou")?,
        label_weight: fixture.real("loss_weights.label")?,
        span_cost: fixture.real("set_cost_span")?,
        overlap_cost: fixture.real("set_cost_giou")?,
        label_cost: fixture.real("set_cost_query")?,
        dropout: 0.0,
        input_dropout: 0.0,
    };
    let asked = Asked {
        clips: fixture.input("video")?,
        clip_mask: fixture.input("video_mask")?,
        text: fixture.input("sentences")?,
        text_mask: fixture.input("sentence_mask")?,
    };
    let net = Lvtr::new(&config, &Given::widths(asked.clips.dim(2)?, asked.text.dim(2)?, 0), vb.clone())?;
    let mut truth = Vec::new();
    for sample in 0..asked.clips.dim(0)? {
        let spans = fixture.input(&format!("target_spans_{sample}"))?.to_vec2::<f32>()?;
        truth.push(spans.iter().map(|span| [span[0], span[1]]).collect::<Vec<_>>());
    }
    let forward = net.forward(&asked, &Pass::answering())?;

    let mut trace = Trace::new();
    trace.out("video_position", &forward.clip_position);
    let mut total = Tensor::zeros((), DType::F32, asked.clips.device())?;
    let last = forward.layers.len().saturating_sub(1);
    for (number, layer) in forward.layers.iter().enumerate() {
        let (losses, matchings) = net.losses(layer, &truth)?;
        total = (total + net.total(&losses)?)?;
        let suffix = if number == last { String::new() } else { format!("_{number}") };
        trace.loss(&format!("loss_span{suffix}"), &losses.span);
        trace.loss(&format!("loss_giou{suffix}"), &losses.overlap);
        trace.loss(&format!("loss_label{suffix}"), &losses.label);
        let prefix = if number == last { "" } else { "aux_" };
        trace.out(&format!("{prefix}pred_logits{suffix}"), &layer.logits);
        trace.out(&format!("{prefix}pred_spans{suffix}"), &layer.spans);
        if number == last {
            trace.out("pred_logits_sim", &label_logits(Label::Sim, &layer.states, &forward.text_memory)?);
            for (sample, matching) in matchings.iter().enumerate() {
                let (proposals, sentences): (Vec<u32>, Vec<u32>) =
                    matching.iter().map(|(proposal, sentence)| (*proposal as u32, *sentence as u32)).unzip();
                trace.out(&format!("match_pred_{sample}"), &Tensor::new(proposals, asked.clips.device())?);
                trace.out(&format!("match_tgt_{sample}"), &Tensor::new(sentences, asked.clips.device())?);
            }
        }
    }
    trace.loss("total", &total);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config(label: Label, score: Score) -> LvtrConfig {
        LvtrConfig {
            clips: 8,
            sentences: 2,
            proposals: 6,
            hidden: 16,
            heads: 2,
            ffn: 24,
            encoder_layers: 1,
            decoder_layers: 2,
            label,
            score,
            dropout: 0.0,
            input_dropout: 0.0,
            ..LvtrConfig::default()
        }
    }

    fn net(label: Label, score: Score) -> Lvtr {
        Lvtr::new(&config(label, score), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    /// Three queries of the first video, one of the second.
    fn batch() -> Batch {
        let mut batch = TOY.batch(1);
        batch.queries.video = vec![0, 0, 0, 1];
        batch
    }

    #[test]
    fn every_query_gets_every_proposal_best_first() {
        for label in [Label::Cos, Label::CosFixed, Label::Sim, Label::Pred] {
            let ranked = net(label, Score::Matched).propose(&batch()).unwrap();
            assert_eq!(ranked.iter().map(Vec::len).collect::<Vec<_>>(), [6; 4]);
            assert!(ranked.iter().all(|proposals| proposals.is_sorted_by(|a, b| a.score >= b.score)));
        }
    }

    #[test]
    fn padding_changes_nothing() {
        let (batch, net) = (batch(), net(Label::Cos, Score::Label));
        let longer = batch.with_longer_words(3).with_longer_videos(2);
        let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&longer)) < 1e-4);
    }

    #[test]
    fn a_missing_sentence_changes_no_clip() {
        let net = net(Label::Cos, Score::Label);
        let batch = batch();
        let mut asked = net.gather(&batch, &[Group { video: 1, queries: vec![3] }]).unwrap();
        let before = net.forward(&asked, &Pass::answering()).unwrap();
        asked.text = (asked.text
            + asked
                .text_mask
                .affine(-5.0, 5.0)
                .unwrap()
                .unsqueeze(2)
                .unwrap()
                .broadcast_as((1, 2, TOY.width))
                .unwrap())
        .unwrap();
        let after = net.forward(&asked, &Pass::answering()).unwrap();
        assert!(gap(&before.layers[1].spans, &after.layers[1].spans) < 1e-5);
    }

    #[test]
    fn the_matching_is_the_cheapest_of_all() {
        let mut rng = Rng::new(5);
        for _ in 0..50 {
            let (rows, columns) = (1 + rng.below(3), 3 + rng.below(3));
            let costs: Vec<Vec<f64>> = (0..rows).map(|_| (0..columns).map(|_| rng.normal()).collect()).collect();
            let placed = assign(&costs);
            let cost: f64 = placed.iter().enumerate().map(|(row, column)| costs[row][*column]).sum();
            let mut best = f64::INFINITY;
            for code in 0..columns.pow(rows as u32) {
                let choice: Vec<usize> = (0..rows).map(|row| code / columns.pow(row as u32) % columns).collect();
                let distinct = (0..rows).all(|row| !choice[..row].contains(&choice[row]));
                if distinct {
                    best = best.min(choice.iter().enumerate().map(|(row, column)| costs[row][*column]).sum());
                }
            }
            assert!((cost - best).abs() < 1e-9, "{costs:?}: {placed:?}");
        }
        assert!(assign(&[]).is_empty());
    }

    #[test]
    fn overlap_is_one_with_itself_and_negative_apart() {
        assert!((overlap_of([0.5, 0.2], [0.5, 0.2]) - 1.0).abs() < 1e-12);
        assert!(overlap_of([0.2, 0.2], [0.8, 0.2]) < 0.0);
        let tensor = |pair: [f32; 2]| Tensor::new(&[pair], &Device::Cpu).unwrap();
        let same = generalised_overlap(&tensor([0.2, 0.2]), &tensor([0.8, 0.2])).unwrap().to_vec1::<f32>().unwrap();
        assert!((f64::from(same[0]) - overlap_of([0.2, 0.2], [0.8, 0.2])).abs() < 1e-6);
    }

    #[test]
    fn proposals_are_shared_out_in_blocks() {
        assert_eq!(block_labels(12, 3), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(block_labels(12, 2), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(block_labels(5, 3), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn one_sentence_alone_has_nothing_to_tell_proposals_apart() {
        let alone = LvtrConfig { sentences: 1, ..config(Label::Cos, Score::Label) };
        let net = Lvtr::new(&alone, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let loss = net.loss(&batch(), &Pass::answering()).unwrap();
        let label = loss.parts.iter().find(|(name, _)| *name == "label").unwrap().1.to_scalar::<f32>().unwrap();
        assert_eq!(label, 0.0);
        assert!(net.propose(&batch()).unwrap().iter().flatten().all(|proposal| proposal.score == 2.0));
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
            Ok(Box::new(Lvtr::new(&config(Label::CosFixed, Score::Matched), &TOY.given(), vb)?))
        };
        let (model, first, last) = overfit(build, &batch, 150, 5e-3);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.3 * first, "{first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    }
}
