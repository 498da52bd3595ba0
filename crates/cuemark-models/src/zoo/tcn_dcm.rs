//! TCN-DCM: parts what a span shows from where it lies, and lets every span look at all locations before it is scored.
//! Yang et al., "Deconfounded Video Moment Retrieval with Causal Intervention", SIGIR 2021.
//!
//! Follows the published code, with one change: the covariances inside the distance correlation are clamped at 0 before
//! their root, where the published code can take the root of a tiny negative number.

use std::f64::consts::TAU;
use std::sync::Arc;

use candle_core::{D, Device, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{l2_normalise, sigmoid, softmax};
use cuemark_tensor::map::{LayerPlan, map_conv_relu, span_max};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    ClipProjection, Linear, MapSize, MomentMap, Recurrent, Ways, last_step, linear, linear_no_bias, pointwise, uniform,
};
use crate::losses::ScaledIou;
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "tcn-dcm",
    title: "TCN-DCM",
    paper: "Yang et al., Deconfounded Video Moment Retrieval with Causal Intervention, SIGIR 2021",
    family: Family::Map2d,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "parts content from location and attends over all locations before spans are scored",
    full_sizes: &[
        FullSize {
            dataset: "charades-sta",
            settings: "map = { pre_clips = 256, clips = 16, counts = [15] }",
            visual: 1024,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "activitynet-captions",
            settings: "map = { pre_clips = 256, clips = 32, counts = [15, 8] }\nnms = 0.5",
            visual: 500,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "didemo",
            settings: "map = { pre_clips = 6, clips = 6, counts = [5] }\nsigma = 0.5\n\
                       targets = { min_iou = 0.7, max_iou = 1.0 }",
            visual: 4096,
            words: 300,
            millions: None,
        },
    ],
    build: |table, given, vb| Ok(Box::new(TcnDcm::new(&read_settings("tcn-dcm", table)?, given, vb)?)),
    settings: |table| fill_settings::<TcnDcmConfig>("tcn-dcm", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcnDcmConfig {
    /// Sizes of the map.
    pub map: MapSize,
    /// Width of everything. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Layers of the query's LSTM. Default: 3
    #[serde(default = "three")]
    pub lstm_layers: usize,
    /// Heads of the attention over locations; divides `hidden`. Default: 4
    #[serde(default = "heads")]
    pub heads: usize,
    /// Dropout on the weights of that attention. Default: 0.1
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Share of a span's own location in what the attention gives. Default: 1.0
    #[serde(default = "one")]
    pub eta: f64,
    /// Side of the convolutions' kernel. Default: 5
    #[serde(default = "kernel")]
    pub kernel: usize,
    /// Number of convolutions. Default: 3
    #[serde(default = "three")]
    pub layers: usize,
    /// Weight of the loss on another video, where nothing answers; 0 needs no other video. Default: 1.0
    #[serde(default = "one")]
    pub gamma: f64,
    /// Weight of the distance between location part and position code. Default: 1.0
    #[serde(default = "one")]
    pub sigma: f64,
    /// Weight of the distance correlation of content and location. Default: 0.001
    #[serde(default = "lambda")]
    pub lambda: f64,
    /// Weight of the norms of content and location. Default: 1e-5
    #[serde(default = "frobenius")]
    pub frobenius: f64,
    /// How overlaps become targets. Default: 0 up to 0.5, 1 at 1.0
    #[serde(default)]
    pub targets: ScaledIou,
    /// Overlap above which the worse of two answers is dropped. Default: 0.45
    #[serde(default = "nms")]
    pub nms: f64,
}

fn hidden() -> usize {
    512
}

fn three() -> usize {
    3
}

fn heads() -> usize {
    4
}

fn dropout() -> f64 {
    0.1
}

fn one() -> f64 {
    1.0
}

fn kernel() -> usize {
    5
}

fn lambda() -> f64 {
    0.001
}

fn frobenius() -> f64 {
    1e-5
}

fn nms() -> f64 {
    0.45
}

/// The network.
#[derive(Debug)]
pub struct TcnDcm {
    config: TcnDcmConfig,
    map: MomentMap,
    /// What the location part of each valid cell is pushed to, `[cells, hidden]`.
    position: Tensor,
    clips: ClipProjection,
    query: Recurrent,
    content: Linear,
    location: Linear,
    intervention: Intervention,
    query_to_map: Linear,
    residual: Linear,
    convolutions: Vec<(Tensor, Tensor)>,
    plan: Arc<LayerPlan>,
    score: Tensor,
}

/// Attention of every span over the locations of all valid spans.
#[derive(Debug)]
struct Intervention {
    from_query: Linear,
    from_content: Linear,
    ask: Linear,
    key: Linear,
    value: Linear,
    heads: usize,
    eta: f64,
    dropout: f64,
}

/// Everything on the way to the scores, one row per valid cell.
struct Forward {
    moments: Tensor,
    query: Tensor,
    content: Tensor,
    location: Tensor,
    logits: Tensor,
}

/// The parts of the loss, before weighting.
struct Parts {
    bce: Tensor,
    bce_negative: Option<Tensor>,
    reconstruction: Tensor,
    dcor: Option<Tensor>,
    frobenius: Tensor,
}

impl TcnDcm {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for sizes that do not fit each other.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &TcnDcmConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        if config.heads == 0 || !hidden.is_multiple_of(config.heads) {
            let problem = format!("`heads`: {} do not divide `hidden` of {hidden}", config.heads);
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let map = MomentMap::new(config.map.clips, &config.map.counts)?;
        let code = position_code(config.map.clips, hidden, vb.device())?;
        let net = vb.pp("TCN");
        let attention = net.pp("BD_Adjust_Att");
        let convolution = |number: usize| {
            let (vb, fan) = (net.pp(format!("conv2d_{number}")), uniform(hidden * config.kernel * config.kernel));
            let weight = vb.get_with_hints((hidden, hidden, config.kernel, config.kernel), "weight", fan)?;
            Ok((weight, vb.get_with_hints(hidden, "bias", fan)?))
        };
        Ok(Self {
            position: code.index_select(&map.squares(vb.device())?, 0)?,
            clips: ClipProjection::new(given.visual, hidden, config.map.clips, vb.pp("featpool.conv"))?,
            query: Recurrent::lstm(given.words, hidden, config.lstm_layers, Ways::Forward, vb.pp("query.lstm"))?,
            content: pointwise(hidden, hidden, 2, net.pp("conv"))?,
            location: pointwise(hidden, hidden, 2, net.pp("conv_pos"))?,
            intervention: Intervention {
                from_query: linear(hidden, hidden, net.pp("Q"))?,
                from_content: pointwise(hidden, hidden, 2, net.pp("M"))?,
                ask: linear_no_bias(hidden, hidden, attention.pp("fc_qry"))?,
                key: linear_no_bias(hidden, hidden, attention.pp("fc_key"))?,
                value: linear(hidden, hidden, attention.pp("fc_value"))?,
                heads: config.heads,
                eta: config.eta,
                dropout: config.dropout,
            },
            query_to_map: linear(hidden, hidden, net.pp("fc"))?,
            residual: pointwise(hidden, hidden, 2, net.pp("conv_res"))?,
            convolutions: (1..=config.layers).map(convolution).collect::<Result<_>>()?,
            plan: Arc::new(LayerPlan::same(map.layout(), config.kernel).map_err(candle_core::Error::from)?),
            score: net.get_with_hints((1, hidden), "pred_weight", uniform(hidden))?,
            map,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, pre_clips, d_visual]`; words `[batch, words, d_word]` with `lengths` real ones
    /// - logits of the result `[batch, cells]`, one per valid cell
    fn forward(&self, visual: &Tensor, words: &Tensor, lengths: &[usize], pass: &Pass) -> Result<Forward> {
        let moments = span_max(&self.clips.forward(visual)?, self.map.layout())?;
        let query = last_step(&self.query.forward(words)?, lengths)?;
        let content = self.content.forward(&moments)?;
        let location = self.location.forward(&moments)?.tanh()?;
        let combined = (&content + self.intervention.forward(&query, &content, &location, pass)?)?;
        let asked = self.query_to_map.forward(&query)?.unsqueeze(1)?;
        let fused = l2_normalise(&combined.broadcast_mul(&asked)?)?;
        let convolve = |x: Tensor, (weight, bias): &(Tensor, Tensor)| {
            map_conv_relu(&x, weight, Some(bias), &self.plan, 1) // cells of this plan weigh 1
        };
        let compared = self.convolutions.iter().try_fold(fused.clone(), convolve)?;
        let compared = (compared + self.residual.forward(&fused)?.relu()?)?;
        let logits = compared.broadcast_mul(&self.score)?.sum(D::Minus1)?;
        Ok(Forward { moments, query, content, location, logits })
    }

    /// The parts of the loss from raw `ious [batch, cells]` and a pass over videos in which nothing answers.
    fn parts(&self, forward: &Forward, ious: &Tensor, other: Option<&Forward>) -> Result<Parts> {
        let nothing = |other: &Forward| self.config.targets.loss(&other.logits, &other.logits.zeros_like()?);
        Ok(Parts {
            bce: self.config.targets.loss(&forward.logits, ious)?,
            bce_negative: other.map(nothing).transpose()?,
            reconstruction: self.reconstruction(&forward.location)?,
            dcor: (self.config.lambda != 0.0).then(|| forward.correlation()).transpose()?,
            frobenius: (norm(&forward.content)? + norm(&forward.location)?)?,
        })
    }

    /// Mean over cells of the distance between location part and position code.
    fn reconstruction(&self, location: &Tensor) -> Result<Tensor> {
        // PyTorch's pairwise distance adds 1e-6 to every difference.
        let difference = (location.broadcast_sub(&self.position)? + 1e-6)?;
        Ok(difference.sqr()?.sum(D::Minus1)?.maximum(1e-24)?.sqrt()?.mean_all()?)
    }

    fn total(&self, parts: &Parts) -> Result<Tensor> {
        let TcnDcmConfig { gamma, sigma, lambda, frobenius, .. } = self.config;
        let mut total = (&parts.bce + ((&parts.reconstruction * sigma)? + (&parts.frobenius * frobenius)?)?)?;
        for (part, weight) in [(&parts.bce_negative, gamma), (&parts.dcor, lambda)] {
            if let Some(part) = part {
                total = (total + (part * weight)?)?;
            }
        }
        Ok(total)
    }
}

impl Forward {
    /// Distance correlation of content and location over the valid cells of the whole batch.
    fn correlation(&self) -> Result<Tensor> {
        distance_correlation(&self.content.flatten_to(1)?, &self.location.flatten_to(1)?)
    }
}

impl Intervention {
    /// # Shapes
    /// - query `[batch, hidden]`; content and location `[batch, cells, hidden]`
    /// - returns `[batch, cells, hidden]`
    fn forward(&self, query: &Tensor, content: &Tensor, location: &Tensor, pass: &Pass) -> Result<Tensor> {
        let asked = self.from_content.forward(&content.relu()?)?;
        let asked = asked.broadcast_add(&self.from_query.forward(&query.relu()?)?.unsqueeze(1)?)?;
        let value = self.value.forward(location)?.relu()?;
        let (batch, cells, hidden) = value.dims3()?;
        let heads = |x: &Tensor| x.reshape((batch, cells, self.heads, ()))?.transpose(1, 2)?.contiguous();
        let (ask, key) = (heads(&self.ask.forward(&asked)?)?, heads(&self.key.forward(location)?)?);
        let scale = ((hidden / self.heads) as f64).sqrt().recip();
        let weights = softmax(&(ask.times(&key.t()?.contiguous()?)? * scale)?, D::Minus1)?;
        let attended = pass.dropout(&weights, self.dropout)?.times(&heads(&value)?)?;
        let attended = attended.transpose(1, 2)?.reshape((batch, cells, hidden))?;
        Ok((attended + (value * self.eta)?)?.relu()?)
    }
}

/// The length of a tensor as one vector.
fn norm(x: &Tensor) -> Result<Tensor> {
    Ok(x.sqr()?.sum(D::Minus1)?.sum_all()?.maximum(1e-24)?.sqrt()?)
}

/// Sines and cosines of start and end of every square, `[clips * clips, width]`: the first half of the channels for the
/// start, the second for the end, indices counted from 1 and spread over a full turn.
///
/// # Errors
/// Those of the tensor operations.
pub(super) fn position_code(clips: usize, width: usize, device: &Device) -> Result<Tensor> {
    let half = width / 2;
    let value = |place: usize| {
        let (square, channel) = (place / width, place % width);
        let (index, channel) =
            if channel < half { (square / clips, channel) } else { (square % clips, channel - half) };
        let turn = (index + 1) as f64 / (clips as f64 + 1e-6) * TAU;
        let angle = turn / 10_000f64.powf((channel / 2 * 2) as f64 / half as f64);
        (if channel.is_multiple_of(2) { angle.sin() } else { angle.cos() }) as f32
    };
    let values: Vec<f32> = (0..clips * clips * width).map(value).collect();
    Ok(Tensor::from_vec(values, (clips * clips, width), device)?)
}

/// Distance correlation of the rows of `x` and of `y`, both `[rows, width]`: 0 when they are independent, 1 at most.
///
/// The gradient is worked out by hand and carried by a sum that is 0: recorded by the tensors it would hold a dozen
/// rows × rows matrices until the backward pass.
fn distance_correlation(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let correlate = if x.device().is_cpu() { correlate_on_cpu } else { correlate_with_tensors };
    let (value, by_x, by_y) = correlate(&x.detach(), &y.detach())?;
    let carrier = (along(x, &by_x)? + along(y, &by_y)?)?;
    Ok(((&carrier - carrier.detach())? + value)?)
}

/// A scalar whose gradient in the rows of `x` is that of a value with these slopes, `[rows, rows]` and symmetric, in the
/// squared distances between rows.
fn along(x: &Tensor, by_squares: &Tensor) -> Result<Tensor> {
    let rows = x.detach();
    let slope = (rows.broadcast_mul(&by_squares.sum_keepdim(1)?)? - by_squares.times(&rows)?)?;
    Ok((x * (slope * 4.0)?)?.sum(1)?.sum(0)?)
}

/// Distance correlation from `xy`, `xx` and `yy`, sums over all pairs of rows of products of centred distances, and its
/// slopes in the three.
fn from_sums(xy: f64, xx: f64, yy: f64, rows: usize) -> (f64, [f64; 3]) {
    let pairs = (rows as f64).powi(2);
    let [xy, xx, yy] = [xy, xx, yy].map(|sum| (sum / pairs).max(0.0).sqrt());
    let scale = xx * yy + 1e-9;
    // A root of 0 has no slope.
    let slope = |value: f64| if value.is_finite() { value / pairs } else { 0.0 };
    let by_own = |own: f64, other: f64| slope(-0.25 * xy / scale.powf(1.5) * other / own);
    (xy / scale.sqrt(), [slope(0.5 / (xy * scale.sqrt())), by_own(xx, yy), by_own(yy, xx)])
}

/// The distance correlation and its slopes in the squared distances of `x` and of `y`, `[rows, rows]` each.
fn correlate_with_tensors(x: &Tensor, y: &Tensor) -> Result<(f64, Tensor, Tensor)> {
    let distances = |x: &Tensor| -> Result<(Tensor, Tensor)> {
        let squares = x.sqr()?.sum_keepdim(1)?;
        let products = (x.times(&x.t()?)? * -2.0)?;
        let squared = products.broadcast_add(&squares)?.broadcast_add(&squares.t()?)?;
        let plain = (squared.relu()? + 1e-9)?.sqrt()?;
        let means = plain.mean_keepdim(1)?;
        let shifts = means.broadcast_sub(&means.mean_keepdim(0)?)?.t()?;
        let centred = plain.broadcast_sub(&means)?.broadcast_sub(&shifts)?;
        Ok((plain, centred))
    };
    let ((plain_x, a), (plain_y, b)) = (distances(x)?, distances(y)?);
    let sum = |a: &Tensor, b: &Tensor| -> Result<f64> { Ok(f64::from((a * b)?.sum(1)?.sum(0)?.to_scalar::<f32>()?)) };
    let (value, [by_xy, by_xx, by_yy]) = from_sums(sum(&a, &b)?, sum(&a, &a)?, sum(&b, &b)?, x.dim(0)?);
    // Centring is a projection, so that the slope in a plain distance is the centred matrix; 1 / (2 d) is the root's.
    let slopes = |own: &Tensor, other: &Tensor, plain: &Tensor, by_own: f64| -> Result<Tensor> {
        Ok((((own * by_own)? + (other * (0.5 * by_xy))?)? / plain)?)
    };
    Ok((value, slopes(&a, &b, &plain_x, by_xx)?, slopes(&b, &a, &plain_y, by_yy)?))
}

/// As [`correlate_with_tensors`], in three walks over the distances instead of some thirty.
fn correlate_on_cpu(x: &Tensor, y: &Tensor) -> Result<(f64, Tensor, Tensor)> {
    let rows = x.dim(0)?;
    let (mut a, mut b) = (Distances::new(x)?, Distances::new(y)?);
    let mut sums = [0f64; 3];
    for row in 0..rows {
        let mut of_row = [0f32; 3];
        for (a, b) in a.centred(row).zip(b.centred(row)) {
            of_row[0] += a * b;
            of_row[1] += a * a;
            of_row[2] += b * b;
        }
        sums.iter_mut().zip(of_row).for_each(|(sum, of_row)| *sum += f64::from(of_row));
    }
    let (value, slopes) = from_sums(sums[0], sums[1], sums[2], rows);
    let [by_xy, by_xx, by_yy] = slopes.map(|slope| slope as f32);
    let mut slopes = vec![(0f32, 0f32); rows];
    for row in 0..rows {
        let centred = a.centred(row).zip(b.centred(row));
        for (slopes, (a, b)) in slopes.iter_mut().zip(centred) {
            *slopes = (a * by_xx + b * (0.5 * by_xy), b * by_yy + a * (0.5 * by_xy));
        }
        let distances = a.row_mut(row).iter_mut().zip(b.row_mut(row));
        for ((a, b), (by_a, by_b)) in distances.zip(&slopes) {
            (*a, *b) = (by_a / *a, by_b / *b);
        }
    }
    let tensor = |distances: Distances| Tensor::from_vec(distances.values, (rows, rows), x.device());
    Ok((value, tensor(a)?, tensor(b)?))
}

/// Distances between all rows of a matrix, in memory.
struct Distances {
    /// Row by row.
    values: Vec<f32>,
    /// The mean of each row.
    means: Vec<f32>,
    /// The mean of all.
    mean: f32,
}

impl Distances {
    fn new(x: &Tensor) -> Result<Self> {
        let mut values = x.times(&x.t()?)?.flatten_all()?.to_vec1::<f32>()?;
        let squares = x.sqr()?.sum(1)?.to_vec1::<f32>()?;
        let rows = squares.len();
        let mut means = Vec::with_capacity(rows);
        for (row, square) in values.chunks_exact_mut(rows.max(1)).zip(&squares) {
            for (value, other) in row.iter_mut().zip(&squares) {
                *value = ((square + other - 2.0 * *value).max(0.0) + 1e-9).sqrt();
            }
            means.push((row.iter().map(|value| f64::from(*value)).sum::<f64>() / rows as f64) as f32);
        }
        let mean = means.iter().map(|mean| f64::from(*mean)).sum::<f64>() / rows as f64;
        Ok(Self { values, means, mean: mean as f32 })
    }

    /// One row with the means of rows and columns taken out.
    fn centred(&self, row: usize) -> impl Iterator<Item = f32> + '_ {
        let rows = self.means.len();
        let own = self.means[row] - self.mean;
        self.values[row * rows..(row + 1) * rows].iter().zip(&self.means).map(move |(value, mean)| value - own - mean)
    }

    fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let rows = self.means.len();
        &mut self.values[row * rows..(row + 1) * rows]
    }
}

impl Model for TcnDcm {
    fn input(&self) -> Input {
        Input { other_videos: self.config.gamma != 0.0, ..Input::pairs(self.config.map.pre_clips) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let ious = self.map.ious(&batch.targets(CARD.name)?.spans, batch.videos.visual.device())?;
        let of_video = |visual: &Tensor| self.forward(visual, &batch.queries.words, &batch.queries.lengths, pass);
        let forward = of_video(&batch.videos.visual)?;
        let other = if self.config.gamma == 0.0 {
            None
        } else {
            let missing =
                ModelError::Missing { model: CARD.name, what: "another video for each of its training queries" };
            Some(of_video(&batch.other_videos.as_ref().ok_or(missing)?.visual)?)
        };
        let parts = self.parts(&forward, &ious, other.as_ref())?;
        let total = self.total(&parts)?;
        let named = [
            ("bce", Some(parts.bce)),
            ("bce_negative", parts.bce_negative),
            ("reconstruction", Some(parts.reconstruction)),
            ("dcor", parts.dcor),
            ("frobenius", Some(parts.frobenius)),
        ];
        Ok(Loss { total, parts: named.into_iter().filter_map(|(name, part)| Some((name, part?))).collect() })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let queries = &batch.queries;
        let forward = self.forward(&batch.videos.visual, &queries.words, &queries.lengths, &Pass::answering())?;
        Ok(self.map.rank(&sigmoid(&forward.logits)?)?)
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = TcnDcmConfig {
        map: MapSize::of_fixture(fixture, "pooling_counts")?,
        hidden: fixture.number("hidden")?,
        lstm_layers: fixture.number("lstm_layers")?,
        heads: fixture.number("heads")?,
        dropout: 0.0,
        eta: fixture.real("eta")?,
        kernel: fixture.number("conv.kernel")?,
        layers: fixture.number("conv.layers")?,
        gamma: fixture.real("gamma")?,
        sigma: fixture.real("sigma")?,
        lambda: fixture.real("lambda_dcor")?,
        frobenius: fixture.real("frobenius_weight")?,
        targets: ScaledIou::of_fixture(fixture)?,
        nms: nms(),
    };
    let (visual, words) = (fixture.input("visual")?, fixture.input("text")?);
    let given = Given::widths(visual.dim(2)?, words.dim(2)?, 0);
    let net = TcnDcm::new(&config, &given, vb.clone())?;
    let lengths = fixture.counts("word_lens")?;
    let pass = Pass::answering();
    let forward = net.forward(&visual, &words, &lengths, &pass)?;
    let other = net.forward(&fixture.input("visual_negative")?, &words, &lengths, &pass)?;
    let ious = net.map.from_square(&fixture.input("map_gt")?.unsqueeze(1)?)?.squeeze(2)?;
    let parts = net.parts(&forward, &ious, Some(&other))?;

    let mut trace = Trace::new();
    let square = |x: &Tensor| net.map.to_square(x);
    let clips = config.map.clips;
    let code = position_code(clips, config.hidden, visual.device())?;
    trace.out("map_mask", &net.map.mask(visual.device())?);
    trace.out("map_feat", &square(&forward.moments)?);
    trace.out("query", &forward.query);
    trace.out("content", &square(&forward.content)?);
    trace.out("location", &square(&forward.location)?);
    trace.out("position_code", &code.t()?.reshape((config.hidden, clips, clips))?);
    trace.out("score_logit", &square(&forward.logits.unsqueeze(2)?)?.squeeze(1)?);
    trace.out("prob", &square(&sigmoid(&forward.logits)?.unsqueeze(2)?)?.squeeze(1)?);
    trace.loss("total", &net.total(&parts)?);
    trace.loss("bce", &parts.bce);
    trace.loss("reconstruction", &parts.reconstruction);
    trace.loss("frobenius", &parts.frobenius);
    trace.loss("dcor", &forward.correlation()?); // fixtures have it whatever its weight
    if let Some(part) = &parts.bce_negative {
        trace.loss("bce_negative", part);
    }
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::{Params, Var};

    use super::*;
    use crate::VideoBatch;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config() -> TcnDcmConfig {
        TcnDcmConfig {
            map: MapSize { pre_clips: 8, clips: 8, counts: vec![7] },
            hidden: 16,
            lstm_layers: 1,
            heads: 2,
            dropout: 0.1,
            eta: 1.0,
            kernel: 3,
            layers: 2,
            gamma: 1.0,
            sigma: 1.0,
            lambda: 0.001,
            frobenius: 1e-5,
            targets: ScaledIou::default(),
            nms: 0.45,
        }
    }

    fn net() -> TcnDcm {
        TcnDcm::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    /// The toy batch with noise, in which nothing is to be found, as the other video of each query.
    fn batch() -> Batch {
        let mut batch = TOY.batch(1);
        let mut rng = Rng::new(2);
        let noise = (0..batch.videos.visual.elem_count()).map(|_| (0.5 * rng.normal()) as f32).collect();
        let visual = Tensor::from_vec(noise, batch.videos.visual.shape(), &Device::Cpu).unwrap();
        batch.other_videos = Some(VideoBatch { visual, ..batch.videos.clone() });
        batch
    }

    #[test]
    fn every_valid_cell_is_proposed_once_with_a_probability() {
        let ranked = net().propose(&batch()).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 36);
            assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padded_words_change_nothing() {
        let (net, batch) = (net(), batch());
        let logits = |batch: &Batch| {
            let queries = &batch.queries;
            net.forward(&batch.videos.visual, &queries.words, &queries.lengths, &Pass::answering()).unwrap().logits
        };
        assert!(gap(&logits(&batch), &logits(&batch.with_longer_words(3))) < 1e-6);
    }

    #[test]
    fn without_another_video_only_a_zero_gamma_trains() {
        let with = |gamma: f64| {
            let config = TcnDcmConfig { gamma, ..config() };
            TcnDcm::new(&config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
        };
        let error = with(1.0).loss(&TOY.batch(1), &Pass::answering()).unwrap_err();
        assert_eq!(error.to_string(), "`tcn-dcm` needs another video for each of its training queries");
        let loss = with(0.0).loss(&TOY.batch(1), &Pass::answering()).unwrap();
        assert!(loss.parts.iter().all(|(name, _)| *name != "bce_negative"));
    }

    #[test]
    fn distances_of_a_thing_correlate_fully_with_themselves_and_with_their_multiples() {
        let x = Tensor::arange(0f32, 24.0, &Device::Cpu).unwrap().reshape((8, 3)).unwrap().sin().unwrap();
        for y in [x.clone(), (&x * 3.0).unwrap()] {
            let value = distance_correlation(&x, &y).unwrap().to_scalar::<f32>().unwrap();
            assert!((value - 1.0).abs() < 1e-3, "{value}");
        }
    }

    /// The definition in plain loops.
    fn correlation_by_definition(x: &[Vec<f64>], y: &[Vec<f64>]) -> f64 {
        let rows = x.len();
        let centred = |x: &[Vec<f64>]| -> Vec<Vec<f64>> {
            let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            let plain: Vec<Vec<f64>> = x.iter().map(|a| x.iter().map(|b| distance(a, b)).collect()).collect();
            let means: Vec<f64> = plain.iter().map(|row| row.iter().sum::<f64>() / rows as f64).collect();
            let mean = means.iter().sum::<f64>() / rows as f64;
            let centre = |i: usize, j: usize| plain[i][j] - means[i] - means[j] + mean;
            (0..rows).map(|i| (0..rows).map(|j| centre(i, j)).collect()).collect()
        };
        let (a, b) = (centred(x), centred(y));
        let covariance = |a: &[Vec<f64>], b: &[Vec<f64>]| -> f64 {
            a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum::<f64>()
        };
        (covariance(&a, &b) / (covariance(&a, &a) * covariance(&b, &b)).sqrt()).sqrt()
    }

    #[test]
    fn distance_correlation_is_its_definition_with_and_without_tensors() {
        let mut rng = Rng::new(3);
        let rows = 60;
        let x: Vec<Vec<f64>> = (0..rows).map(|_| vec![rng.normal(), rng.normal()]).collect();
        let y: Vec<Vec<f64>> = x.iter().map(|row| vec![row[0] + rng.normal(), row[1] * row[0], rng.normal()]).collect();
        let tensor = |x: &[Vec<f64>]| {
            let values: Vec<f32> = x.iter().flatten().map(|value| *value as f32).collect();
            Tensor::from_vec(values, (rows, x[0].len()), &Device::Cpu).unwrap()
        };
        let wanted = correlation_by_definition(&x, &y);
        let (on_cpu, x_cpu, y_cpu) = correlate_on_cpu(&tensor(&x), &tensor(&y)).unwrap();
        let (with_tensors, x_tensors, y_tensors) = correlate_with_tensors(&tensor(&x), &tensor(&y)).unwrap();
        assert!(
            (on_cpu - wanted).abs() < 1e-4 && (with_tensors - wanted).abs() < 1e-4,
            "{on_cpu} {with_tensors} {wanted}"
        );
        // Slopes at a distance of 0 are large and cancel: they are compared as they are used.
        for (rows, a, b) in [(tensor(&x), x_cpu, x_tensors), (tensor(&y), y_cpu, y_tensors)] {
            let pull = |slopes: &Tensor| {
                let own = rows.broadcast_mul(&slopes.sum_keepdim(1).unwrap()).unwrap();
                (own - slopes.times(&rows).unwrap()).unwrap()
            };
            assert!(gap(&pull(&a), &pull(&b)) < 1e-4);
        }
    }

    #[test]
    fn the_gradient_of_the_distance_correlation_is_that_of_small_steps() {
        let values = |phase: f32| (0..24).map(|n| (n as f32 * 0.9 + phase).sin() * 2.0).collect::<Vec<f32>>();
        let var = |values: &[f32]| Var::from_slice(values, (8, 3), &Device::Cpu).unwrap();
        let value = |x: &[f32], y: &[f32]| {
            distance_correlation(var(x).as_tensor(), var(y).as_tensor()).unwrap().to_scalar::<f32>().unwrap()
        };
        let (x, y) = (values(0.0), values(1.3));
        let (of_x, of_y) = (var(&x), var(&y));
        let grads = distance_correlation(of_x.as_tensor(), of_y.as_tensor()).unwrap().backward().unwrap();
        let grad = |of: &Var| grads.get(of.as_tensor()).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for place in [0, 7, 16, 23] {
            let moved = |values: &[f32], by: f32| {
                let mut moved = values.to_vec();
                moved[place] += by;
                moved
            };
            let in_x = (value(&moved(&x, 1e-2), &y) - value(&moved(&x, -1e-2), &y)) / 2e-2;
            let in_y = (value(&x, &moved(&y, 1e-2)) - value(&x, &moved(&y, -1e-2))) / 2e-2;
            assert!((in_x - grad(&of_x)[place]).abs() < 1e-3, "{in_x} {}", grad(&of_x)[place]);
            assert!((in_y - grad(&of_y)[place]).abs() < 1e-3, "{in_y} {}", grad(&of_y)[place]);
        }
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = batch();
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
            // Without the location loss, whose floor is far above 0 at this width.
            let config = TcnDcmConfig { sigma: 0.0, dropout: 0.0, ..config() };
            Ok(Box::new(TcnDcm::new(&config, &TOY.given(), vb)?))
        };
        let (model, first, last) = overfit(build, &batch, 150, 1e-2);
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(last < 0.3 * first, "{first} to {last}");
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    }
}
