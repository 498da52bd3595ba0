//! ABLR: video and query attend to each other in turn; start and end are regressed from the attention weights.
//! Yuan et al., "To Find Where You Talk: Temporal Sentence Localization in Video with Attention Based Location Regression",
//! AAAI 2019.
//!
//! Re-derived from the published TensorFlow graph. Differs from it: every video is averaged to exactly `clips` rows, so that
//! an attention weight stands for the same fraction of every video; the last bias begins at 0.5, because a ReLU that begins
//! at 0 may never wake; answers are clamped and put in order, and moved to the grid of clips only when asked
//! (`answers = "grid"`); published word vectors are not trained further.

use candle_core::{D, DType, Tensor};
use candle_nn::{Init, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, masked_mean, sigmoid, softmax};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{Pair, QueryWords, WordSource};
use crate::losses::smooth_l1;
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, ModelError, Proposal, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "ablr",
    title: "ABLR",
    paper: "Yuan et al., To Find Where You Talk: Temporal Sentence Localization in Video with Attention Based Location \
            Regression, AAAI 2019",
    family: Family::Regression,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "co-attention of video and query; one span regressed from the attention weights",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "clips = 128",
            visual: 500,
            words: 300,
            millions: Some(3.2),
        },
        FullSize {
            dataset: "tacos",
            settings: "clips = 256\nproject = 500",
            visual: 4096,
            words: 300,
            millions: Some(5.3),
        },
    ],
    build: |table, given, vb| Ok(Box::new(Ablr::new(&read_settings("ablr", table)?, given, vb)?)),
    settings: |table| fill_settings::<AblrConfig>("ablr", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AblrConfig {
    /// Clips that a video's features are averaged to.
    pub clips: usize,
    /// Width that features are projected to first. Default: as wide as they are, no projection
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<usize>,
    /// Width of all states. Default: 256
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Width of the regression's hidden layer. Default: 64
    #[serde(default = "regression_hidden")]
    pub regression_hidden: usize,
    /// What start and end are regressed from. Default: weights
    #[serde(default)]
    pub regression: Regression,
    /// What is added to the forget gates. Default: 1.0
    #[serde(default = "one")]
    pub forget_bias: f64,
    /// Weight of the attention's loss. Default: 5.0
    #[serde(default = "attention_weight")]
    pub attention_weight: f64,
    /// Weight of the regression's loss, a sum over the batch. Default: 1.0
    #[serde(default = "one")]
    pub regression_weight: f64,
    /// Share of the LSTMs' outputs dropped. Default: 0.5
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Whether answers stand on the grid of clips. Default: exact
    #[serde(default)]
    pub answers: Answers,
    /// Where word vectors come from. Default: given
    #[serde(default)]
    pub word_vectors: WordSource,
}

/// What start and end are regressed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regression {
    /// The attention weights of all clips. Default.
    #[default]
    Weights,
    /// The attended video and query.
    Features,
}

/// Where answers may begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answers {
    /// Anywhere. Default.
    #[default]
    Exact,
    /// Where a clip begins, rounded down, as in the published code.
    Grid,
}

fn hidden() -> usize {
    256
}

fn regression_hidden() -> usize {
    64
}

fn one() -> f64 {
    1.0
}

fn attention_weight() -> f64 {
    5.0
}

fn dropout() -> f64 {
    0.5
}

/// The network.
#[derive(Debug)]
pub struct Ablr {
    config: AblrConfig,
    words: QueryWords,
    project: Option<Dense>,
    video: BothWays,
    sentence: BothWays,
    video_attention: Attention,
    word_attention: Attention,
    regression: Vec<Dense>,
}

/// `x W + b` with TensorFlow's `[inputs, outputs]`.
#[derive(Debug)]
struct Dense {
    weight: Tensor,
    bias: Tensor,
}

/// Two LSTMs, one for each way, and the layer that joins them.
#[derive(Debug)]
struct BothWays {
    forward: PeepholeLstm,
    backward: PeepholeLstm,
    fuse: Dense,
    dropout: f64,
}

/// An LSTM whose gates see the cell; gates input, new, forget, output.
#[derive(Debug)]
struct PeepholeLstm {
    kernel: Tensor,
    bias: Tensor,
    see_input: Tensor,
    see_forget: Tensor,
    see_output: Tensor,
    forget_bias: f64,
}

/// Additive attention of one vector over rows.
#[derive(Debug)]
struct Attention {
    from_query: Tensor,
    from_row: Dense,
    score: Tensor,
}

/// Everything on the way to start and end.
struct Forward {
    video: Tensor,
    words: Tensor,
    sentence: Tensor,
    first: Tensor,
    of_words: Tensor,
    last: Tensor,
    ends: Tensor,
}

impl Ablr {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
    pub fn new(config: &AblrConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        if config.clips == 0 {
            return Err(ModelError::Settings { model: CARD.name, problem: "`clips` = 0".to_owned() });
        }
        let hidden = config.hidden;
        let project = match config.project {
            Some(width) => Some(Dense::new(given.visual, width, "w_project", "b_project", &vb)?),
            None => None,
        };
        let small = config.regression_hidden;
        let mut regression = match config.regression {
            Regression::Weights => vec![Dense::new(config.clips, small, "regress_w", "regress_b", &vb)?],
            Regression::Features => vec![
                Dense::new(2 * hidden, hidden, "regress_w_0", "regress_b_0", &vb)?,
                Dense::new(hidden, small, "regress_w", "regress_b", &vb)?,
            ],
        };
        // Asked for first: the layer would let it begin at 0.
        vb.get_with_hints(2, "regress_b_2", Init::Const(0.5))?;
        regression.push(Dense::new(small, 2, "regress_w_2", "regress_b_2", &vb)?);
        Ok(Self {
            words: QueryWords::new(config.word_vectors, given, "Wemb", &vb)?,
            project,
            video: BothWays::new(config.project.unwrap_or(given.visual), config, "video", &vb)?,
            sentence: BothWays::new(given.words, config, "sentence", &vb)?,
            video_attention: Attention::new(
                hidden,
                ["embed_att_Wa", "embed_att_Ua", "embed_att_ba", "embed_att_w"],
                &vb,
            )?,
            word_attention: Attention::new(
                hidden,
                ["embed_att_W_qa", "embed_att_U_qa", "embed_att_b_qa", "embed_att_w_q"],
                &vb,
            )?,
            regression,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - see [`Pair`]; ends of the result `[batch, 2]`, as fractions, not below 0
    fn forward(&self, pair: &Pair, pass: &Pass) -> Result<Forward> {
        let visual = match &self.project {
            Some(project) => project.forward(pair.visual)?,
            None => pair.visual.clone(),
        };
        let (batch, clips, _) = visual.dims3()?;
        // The video is read from its very end, padding included; a query from its last word.
        let video = self.video.forward(&visual, &vec![clips; batch], pass)?;
        let words = self.sentence.forward(pair.words, pair.lengths, pass)?;
        let sentence = masked_mean(&words, &pair.word_mask.unsqueeze(2)?, 1)?;
        let (first, seen) = self.video_attention.forward(&sentence, &video, pair.clip_mask)?;
        let (of_words, said) = self.word_attention.forward(&seen, &words, pair.word_mask)?;
        let (last, seen) = self.video_attention.forward(&said, &video, pair.clip_mask)?;
        let mut ends = match self.config.regression {
            Regression::Weights => last.clone(),
            Regression::Features => Tensor::cat(&[&seen, &said], 1)?,
        };
        for (number, layer) in self.regression.iter().enumerate() {
            ends = layer.forward(&ends)?;
            // The layers are linear but for the first of three and the output.
            if number + 1 == self.regression.len() || (number == 0 && self.config.regression == Regression::Features) {
                ends = ends.relu()?;
            }
        }
        Ok(Forward { video, words, sentence, first, of_words, last, ends })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let clips = batch.videos.visual.dim(1)?;
        if clips != self.config.clips {
            let problem = format!("`clips` = {}, and a video has {clips}", self.config.clips);
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let words = self.words.forward(&batch.queries)?;
        self.forward(&Pair::of(batch, &words), pass)
    }

    /// Regression and attention, both weighted, then the total.
    ///
    /// # Shapes
    /// - truth `[batch, 2]`, share `[batch, clips]`: how much attention each clip should get
    fn losses(&self, forward: &Forward, truth: &Tensor, share: &Tensor) -> Result<[Tensor; 3]> {
        let regression = (smooth_l1(&(&forward.ends - truth)?)?.sum_all()? * self.config.regression_weight)?;
        let attention = (forward.last.clone() + 1e-12)?.log()?.mul(share)?.sum(1)?.mean_all()?;
        let attention = (attention * -self.config.attention_weight)?;
        let total = (&regression + &attention)?;
        Ok([regression, attention, total])
    }

    /// Even shares of the clips that a span touches.
    fn shares(&self, span: NormSpan) -> Vec<f32> {
        let clips = self.config.clips;
        let at = |fraction: f64| ((fraction * clips as f64).max(0.0) as usize).min(clips - 1);
        let (first, last) = (at(span.start()), at(span.end()));
        let share = 1.0 / (last - first + 1) as f32;
        (0..clips).map(|clip| if (first..=last).contains(&clip) { share } else { 0.0 }).collect()
    }

    fn answer(&self, row: &[f32]) -> Option<Proposal> {
        let clips = self.config.clips as f64;
        let end = |value: f32| match self.config.answers {
            Answers::Exact => f64::from(value),
            Answers::Grid => (f64::from(value) * clips).floor() / clips,
        };
        let span = NormSpan::new(end(*row.first()?), end(*row.get(1)?))?.clipped();
        Some(Proposal { span, score: 1.0 })
    }
}

/// Matrices begin small and even.
fn small() -> Init {
    Init::Uniform { lo: -0.1, up: 0.1 }
}

impl Dense {
    fn new(inputs: usize, outputs: usize, weight: &str, bias: &str, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            weight: vb.get_with_hints((inputs, outputs), weight, small())?,
            bias: vb.get_with_hints(outputs, bias, Init::Const(0.0))?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.contiguous()?.times(&self.weight)?.broadcast_add(&self.bias)?)
    }
}

impl BothWays {
    fn new(inputs: usize, config: &AblrConfig, what: &str, vb: &VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        let lstm = |name: String| PeepholeLstm::new(inputs, hidden, config.forget_bias, &vb.pp(name));
        Ok(Self {
            forward: lstm(format!("lstm_{what}"))?,
            backward: lstm(format!("reverse_lstm_{what}"))?,
            fuse: Dense::new(2 * hidden, hidden, &format!("w_fuse_{what}"), &format!("b_fuse_{what}"), vb)?,
            dropout: config.dropout,
        })
    }

    /// Reads forwards over all steps and backwards from the last of `lengths` steps; what stands after it means nothing.
    ///
    /// # Shapes
    /// - x `[batch, steps, inputs]`; returns `[batch, steps, hidden]`
    fn forward(&self, x: &Tensor, lengths: &[usize], pass: &Pass) -> Result<Tensor> {
        let (batch, steps, _) = x.dims3()?;
        let turned = |(row, length): (usize, &usize)| {
            let length = (*length).min(steps);
            (0..steps).map(move |step| (row * steps + if step < length { length - 1 - step } else { step }) as u32)
        };
        let turned = Tensor::new(lengths.iter().enumerate().flat_map(turned).collect::<Vec<u32>>(), x.device())?;
        let turn = |x: &Tensor| -> Result<Tensor> {
            let width = x.dim(2)?;
            let rows = x.reshape((batch * steps, width))?.index_select(&turned, 0)?;
            Ok(rows.reshape((batch, steps, width))?)
        };
        let forward = pass.dropout(&self.forward.forward(x)?, self.dropout)?;
        let backward = pass.dropout(&turn(&self.backward.forward(&turn(x)?)?)?, self.dropout)?;
        Ok(self.fuse.forward(&Tensor::cat(&[forward, backward], 2)?)?.relu()?)
    }
}

impl PeepholeLstm {
    fn new(inputs: usize, hidden: usize, forget_bias: f64, vb: &VarBuilder) -> Result<Self> {
        let diagonal = |gate: &str| vb.get_with_hints(hidden, &format!("w_{gate}_diag"), small());
        Ok(Self {
            kernel: vb.get_with_hints((inputs + hidden, 4 * hidden), "kernel", small())?,
            bias: vb.get_with_hints(4 * hidden, "bias", Init::Const(0.0))?,
            see_input: diagonal("i")?,
            see_forget: diagonal("f")?,
            see_output: diagonal("o")?,
            forget_bias,
        })
    }

    /// # Shapes
    /// - x `[batch, steps, inputs]`; returns `[batch, steps, hidden]`
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, steps, inputs) = x.dims3()?;
        let hidden = self.see_input.dim(0)?;
        let from_input = self.kernel.narrow(0, 0, inputs)?;
        let from_state = self.kernel.narrow(0, inputs, hidden)?;
        let given = x.transpose(0, 1)?.contiguous()?.times(&from_input)?.broadcast_add(&self.bias)?;
        let mut state = Tensor::zeros((batch, hidden), x.dtype(), x.device())?;
        let mut cell = state.clone();
        let mut states = Vec::with_capacity(steps);
        for step in 0..steps {
            let gates = (given.get(step)? + state.times(&from_state)?)?;
            let gate = |number: usize| gates.narrow(1, number * hidden, hidden);
            let seen = |cell: &Tensor, by: &Tensor| cell.broadcast_mul(by);
            let input = sigmoid(&(gate(0)? + seen(&cell, &self.see_input)?)?)?;
            let forget = sigmoid(&((gate(2)? + seen(&cell, &self.see_forget)?)? + self.forget_bias)?)?;
            cell = ((forget * &cell)? + (input * gate(1)?.tanh()?)?)?;
            let output = sigmoid(&(gate(3)? + seen(&cell, &self.see_output)?)?)?;
            state = (output * cell.tanh()?)?;
            states.push(state.clone());
        }
        Ok(Tensor::stack(&states, 1)?)
    }
}

impl Attention {
    /// Names: the query's matrix, the rows' matrix and bias, the vector that scores.
    fn new(hidden: usize, [query, row, bias, score]: [&str; 4], vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            from_query: vb.get_with_hints((hidden, hidden), query, small())?,
            from_row: Dense::new(hidden, hidden, row, bias, vb)?,
            score: vb.get_with_hints((hidden, 1), score, small())?,
        })
    }

    /// # Shapes
    /// - query `[batch, hidden]`, rows `[batch, n, hidden]`, mask `[batch, n]`
    /// - returns weights `[batch, n]` and what is attended to, `[batch, hidden]`
    fn forward(&self, query: &Tensor, rows: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let query = query.times(&self.from_query)?.unsqueeze(1)?;
        let both = self.from_row.forward(rows)?.broadcast_add(&query)?.tanh()?;
        let scores = both.times(&self.score)?.squeeze(D::Minus1)?;
        let weights = softmax(&mask_out(&scores, mask, -1e30)?, D::Minus1)?;
        Ok((weights.clone(), weights.unsqueeze(1)?.times(rows)?.squeeze(1)?))
    }
}

impl Model for Ablr {
    fn input(&self) -> Input {
        Input { normalise: Normalise::None, ..Input::pairs(self.config.clips) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let (spans, device) = (&batch.targets(CARD.name)?.spans, batch.videos.visual.device());
        let ends: Vec<f32> = spans.iter().flat_map(|span| [span.start() as f32, span.end() as f32]).collect();
        let ends = Tensor::from_vec(ends, (spans.len(), 2), device)?;
        let shares: Vec<f32> = spans.iter().flat_map(|span| self.shares(*span)).collect();
        let shares = Tensor::from_vec(shares, (spans.len(), self.config.clips), device)?;
        let [regression, attention, total] = self.losses(&self.of_batch(batch, pass)?, &ends, &shares)?;
        Ok(Loss { total, parts: vec![("regression", regression), ("attention", attention)] })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let ends = self.of_batch(batch, &Pass::answering())?.ends.to_dtype(DType::F32)?.to_vec2::<f32>()?;
        Ok(ends.iter().map(|row| self.answer(row).into_iter().collect()).collect())
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let visual = fixture.input("video")?;
    let config = AblrConfig {
        clips: fixture.number("clips")?,
        project: None,
        hidden: fixture.number("hidden")?,
        regression_hidden: fixture.number("regress_hidden")?,
        regression: Regression::Weights,
        forget_bias: fixture.real("forget_bias")?,
        attention_weight: fixture.real("alpha_attention")?,
        regression_weight: fixture.real("alpha_regress")?,
        dropout: 0.0,
        answers: Answers::Exact,
        word_vectors: WordSource::Own,
    };
    let table = fixture.tensor("param.Wemb")?.dims2()?;
    let net = Ablr::new(&config, &Given::widths(visual.dim(2)?, table.1, table.0), vb.clone())?;
    let words = net.words.look_up(&fixture.ids("caption")?, &visual)?;
    let (clip_mask, word_mask) = (fixture.input("video_mask")?, fixture.input("caption_mask")?);
    let lengths = fixture.counts("caption_len")?;
    let pair = Pair { visual: &visual, clip_mask: &clip_mask, words: &words, word_mask: &word_mask, lengths: &lengths };
    let forward = net.forward(&pair, &Pass::answering())?;
    let [regression, attention, total] =
        net.losses(&forward, &fixture.input("gt")?, &fixture.input("attention_target")?)?;

    let mut trace = Trace::new();
    trace.out("video_states", &forward.video);
    trace.out("word_states", &forward.words);
    trace.out("sentence_mean", &forward.sentence);
    trace.out("attention_first", &forward.first);
    trace.out("word_attention", &forward.of_words);
    trace.out("attention_final", &forward.last);
    trace.out("location", &forward.ends);
    trace.loss("regression", &regression);
    trace.loss("attention_weighted", &attention);
    trace.loss("total", &total);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, best_overlaps, gap, overfit};

    fn config(regression: Regression) -> AblrConfig {
        let settings = "clips = 8\nhidden = 12\nregression_hidden = 6\ndropout = 0.0".parse().unwrap();
        AblrConfig { regression, ..read_settings("ablr", &settings).unwrap() }
    }

    fn net(regression: Regression) -> Ablr {
        Ablr::new(&config(regression), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_query_gets_one_span_inside_its_video() {
        for regression in [Regression::Weights, Regression::Features] {
            let ranked = net(regression).propose(&TOY.batch(1)).unwrap();
            assert_eq!(ranked.len(), TOY.pairs);
            for proposals in ranked {
                assert_eq!(proposals.len(), 1);
                assert!(proposals[0].span.start() >= 0.0 && proposals[0].span.end() <= 1.0);
            }
        }
    }

    #[test]
    fn padded_words_change_nothing() {
        let (net, batch) = (net(Regression::Weights), TOY.batch(1));
        let ends = |batch: &Batch| net.of_batch(batch, &Pass::answering()).unwrap().ends;
        assert!(gap(&ends(&batch), &ends(&batch.with_longer_words(3))) < 1e-6);
    }

    #[test]
    fn another_number_of_clips_is_refused() {
        let refused = net(Regression::Weights).propose(&TOY.batch(1).with_longer_videos(1)).unwrap_err();
        assert_eq!(refused.to_string(), "`[model]` of `ablr`: `clips` = 8, and a video has 9");
    }

    #[test]
    fn clips_of_a_moment_share_its_attention() {
        let shares = net(Regression::Weights).shares(NormSpan::new(0.25, 0.6).unwrap());
        // From clip 2 to the clip that 0.6 * 8 = 4.8 lies in.
        assert_eq!(shares, [0.0, 0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn grid_answers_begin_with_a_clip() {
        let mut net = net(Regression::Weights);
        net.config.answers = Answers::Grid;
        let span = net.answer(&[0.30, 0.70]).unwrap().span;
        assert_eq!((span.start(), span.end()), (0.25, 0.625));
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        for regression in [Regression::Weights, Regression::Features] {
            let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
                Ok(Box::new(Ablr::new(&config(regression), &TOY.given(), vb)?))
            };
            let (model, first, last) = overfit(build, &batch, 120, 1e-2);
            let overlaps = best_overlaps(model.as_ref(), &batch);
            assert!(last < first, "{regression:?}: {first} to {last}");
            assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{regression:?}: {overlaps:?}");
        }
    }
}
