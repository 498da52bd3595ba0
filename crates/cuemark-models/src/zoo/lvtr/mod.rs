//! LVTR: learned proposals explore the video, and each is matched to one of the sentences asked of it, all at once.
//! Woo et al., "Explore-And-Match: Bridging Proposal-Based and Proposal-Free With Transformer for Sentence Grounding in
//! Videos", 2022.
//!
//! A sentence is the normalised mean of its word vectors, where the paper has CLIP's. While training, the sentences of a video
//! are cut into random groups, each in the order of time (`order = "drawn"`: in none); answers take them in the order asked, so
//! that no truth leaks into them. A sentence that no proposal prefers is still answered. The published `cos` normalises
//! proposals along the wrong axis; `cos-fixed` does not. With one sentence per group every label score ties: `score =
//! "matched"` adds a head that tells proposals apart by whether they were matched. `look_weight` adds a loss on where each sentence
//! looks: without it the network learns where moments lie and hardly what they show (`results/notes/studies-2026-11-18.md`).

mod check;
mod config;
mod losses;
mod matching;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{l2_normalise, l2_normalise_along, masked_mean, sigmoid, softmax};
use cuemark_tensor::{DType, Pass};

use crate::layers::{DecoderLayer, EncoderLayer, LayerNorm, Linear, TransformerSize, linear, see_only};
use crate::{
    Batch, BatchBy, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, QueryBatch, Result, Supervision,
    Task,
};

pub use config::{Label, LvtrConfig, Order, Score};
use losses::look_loss;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "lvtr",
    title: "LVTR",
    paper: "Woo et al., Explore-And-Match: Bridging Proposal-Based and Proposal-Free With Transformer for Sentence Grounding \
            in Videos, 2022",
    family: Family::Span,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "learned proposals explore the time axis; all sentences of a video are matched to them together",
    full_sizes: &[
        FullSize { dataset: "activitynet-captions", settings: "", visual: 512, words: 512, millions: Some(7.9) },
        FullSize { dataset: "charades-sta", settings: "", visual: 512, words: 512, millions: Some(7.9) },
    ],
    build: |settings, given, vb| Ok(Box::new(Lvtr::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<LvtrConfig>(),
    check: check::check,
};

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
    clip_memory: Tensor,
    text_memory: Tensor,
    layers: Vec<Layer>,
}

/// Which queries are answered together: positions in the batch, of one video.
struct Group {
    video: usize,
    queries: Vec<usize>,
}

impl Lvtr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
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
        let clip_memory = memory.narrow(1, 0, clips.dim(1)?)?.contiguous()?;
        let text_memory = memory.narrow(1, clips.dim(1)?, text.dim(1)?)?.contiguous()?;
        let queries = self.queries.unsqueeze(0)?.broadcast_as((clips.dim(0)?, self.config.proposals, hidden))?;
        let mut x = queries.zeros_like()?;
        let mut layers = Vec::with_capacity(self.decoder.len());
        for layer in &self.decoder {
            x = layer.forward(&x, &memory, [Some(&queries), Some(&position)], Some(&bias), pass)?;
            layers.push(self.answer(self.norm.forward(&x)?, &text_memory)?);
        }
        Ok(Forward { clip_position, clip_memory, text_memory, layers })
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
                if shuffled && self.config.order == Order::Time {
                    let spans = &batch.targets(CARD.name)?.spans;
                    part.sort_by(|a, b| spans[*a].centre().total_cmp(&spans[*b].centre()));
                }
                groups.push(Group { video, queries: part });
            }
        }
        Ok(groups)
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
        let asked = self.gather(batch, &groups)?;
        let forward = self.forward(&asked, pass)?;
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
        let mut parts = parts.unwrap_or_default();
        if self.config.look_weight > 0.0 {
            let look = look_loss(&asked, &forward, &truth)?;
            total = (total + (&look * self.config.look_weight)?)?;
            parts.push(("look", look));
        }
        Ok(Loss { total, parts })
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
