//! The loop: batches in, checkpoints out, resumable at every step.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cuemark_core::{Predictions, Progress, Rng, Split, Task, Truth};
use cuemark_features::{FeatureVariant, Prefetch};
use cuemark_formats::{Overwrite, PredictionFormat, WholeFile, write_predictions};
use cuemark_metrics::{Overrides, Plan, evaluate};
use cuemark_models::{Batch, BatchBy};
use cuemark_tensor::optim::{Adam, AdamConfig, Optimise, Sgd, WeightDecay};
use cuemark_tensor::{DType, Device, Pass, Tensor, set_precision};
use cuemark_text::similarity::Tfidf;
use indexmap::IndexMap;
use serde_json::json;

use crate::average::Average;
use crate::batches::Batches;
use crate::checkpoint::{self, State};
use crate::examples::Examples;
use crate::first_stage::FirstNegatives;
use crate::footage::Footage;
use crate::log::{Begun, Evaluated};
use crate::nearness::{NearSentences, Nearness};
use crate::negatives::Candidates;
use crate::predict::{Among, PredictOptions, durations};
use crate::schedule::Place;
use crate::text::Reader;
use crate::{Optimiser, Result, RunFile, RunFolder, StageConfig, TrainError, Trained};

/// The longest that work may be lost to a crash between two evaluations.
const SAVE_EVERY: Duration = Duration::from_secs(300);

/// The similarity of training queries when nobody says which: that of their words.
const WORDS: &str = "tfidf";

/// Batches that wait ready.
const AHEAD: usize = 4;

/// Lines of the log per epoch.
const LINES_PER_EPOCH: usize = 10;

/// Where and how a run happens.
#[derive(Debug)]
pub struct TrainOptions {
    /// What it computes on.
    pub device: Device,
    /// The folder it leaves.
    pub folder: RunFolder,
    /// Whether it begins or goes on.
    pub start: Start,
    /// What `data.similarity` names, where that is more than the words of the training queries.
    pub nearness: Option<Arc<dyn Nearness>>,
}

/// Whether a run begins or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// From the beginning; what is in the folder may be replaced or not.
    Fresh(Overwrite),
    /// From the last checkpoint; from the beginning when there is none.
    Resume,
}

impl TrainOptions {
    fn overwrite(&self) -> Overwrite {
        match self.start {
            Start::Fresh(overwrite) => overwrite,
            // A folder without a checkpoint has nothing to lose.
            Start::Resume => Overwrite::Force,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was trained.
    pub begun: Begun,
    /// Steps made in all, earlier sessions included.
    pub steps: usize,
    /// Best score on the validation split, a fraction.
    pub best: Option<f64>,
    /// The step of the best score.
    pub best_step: usize,
    /// Whether it was stopped from outside.
    pub stopped: bool,
    /// Whether `train.minutes` ended it before its last epoch.
    pub out_of_time: bool,
    /// **Seconds** of this session.
    pub seconds: f64,
    /// Share of the steps' time that was spent waiting for data.
    pub waiting: f64,
}

/// Trains what a run file describes.
///
/// The same run file on the same device gives the same numbers, however often it is stopped and resumed: every draw comes from the
/// seed and the number of the step. `progress` counts steps, those of earlier sessions included, remarks on the loss, and
/// says a line for every evaluation; stopped, the run ends in order after the step it is at, which is no error.
///
/// # Errors
/// When something the run needs is missing or broken, named; when the loss is no longer finite; when the folder cannot be written.
pub fn train(run: &RunFile, options: &TrainOptions, progress: &Progress) -> Result<Outcome> {
    set_precision(run.train.precision);
    let resumed = options.start == Start::Resume && options.folder.last().is_file();
    if resumed {
        options.folder.check_same(run)?;
    } else {
        options.folder.check_free(options.overwrite())?;
    }
    let session = Session::begin(run, options, resumed, progress)?;
    // Nothing is written before everything that the run needs was found to be there.
    if !resumed {
        options.folder.create(run)?;
        session.trained.write_words(&options.folder)?;
    }
    session.run(progress)
}

/// What was handed over, else the words of the training queries.
fn nearness(run: &RunFile, options: &TrainOptions, queries: &[Truth]) -> Result<Arc<dyn Nearness>> {
    match (&options.nearness, run.data.similarity.as_deref()) {
        (Some(nearness), _) => Ok(Arc::clone(nearness)),
        (None, None | Some(WORDS)) => {
            let texts: Vec<&str> = queries.iter().map(|truth| truth.query.text.as_str()).collect();
            Ok(Arc::new(NearSentences::of_training(&Tfidf::new(&texts, &texts), queries)?))
        }
        (None, Some(other)) => Err(TrainError::RunFile {
            path: run.model.clone(),
            problem: format!("`data.similarity` is `{other}`, and whoever trains has not opened it"),
            hint: None,
        }),
    }
}

/// One uninterrupted stretch of a run.
struct Session<'a> {
    run: &'a RunFile,
    options: &'a TrainOptions,
    trained: Trained,
    batches: Arc<Batches>,
    val: Split,
    val_footage: Footage,
    reader: Reader,
    state: State,
    optimiser: Option<Box<dyn Optimise>>,
    /// The averaged weights of a stage that keeps them.
    average: Option<Average>,
    saved: HashMap<String, Tensor>,
    last_save: Instant,
    /// When `state.stage_seconds` was last brought up to date.
    ticked: Instant,
    waited: Duration,
    stepping: Duration,
}

impl<'a> Session<'a> {
    fn begin(run: &'a RunFile, options: &'a TrainOptions, resumed: bool, progress: &Progress) -> Result<Self> {
        let (train, val) = (run.data.split(&run.data.train)?, run.data.split(&run.data.val)?);
        for split in [&train, &val] {
            if split.queries.is_empty() {
                let why = "it has no query".to_owned();
                return Err(TrainError::EmptySplit { split: split.name.clone(), why });
            }
        }
        let footage = Footage::open(&run.data, durations(&train))?;
        let (trained, state, saved) = if resumed {
            let path = options.folder.last();
            let (tensors, state, _) = checkpoint::load(&path, &options.device)?;
            (Trained::open_checkpoint(&options.folder, &path, &options.device)?, state, tensors)
        } else {
            let trained = Trained::fresh(run, &train.queries, &footage, &options.device)?;
            (trained, State { model: run.model.clone(), ..State::default() }, HashMap::new())
        };
        let input = trained.model.input();
        let footage = footage.prepared(&input);
        let reader = trained.reader(&train.queries)?;
        let shortest = 1.0 / input.resample.rows().max(1) as f64;
        let examples = Examples::of(&train, &reader, &trained.vocabulary)?;
        let examples = if input.joint { examples.with_windows(&train)? } else { examples };
        let examples = if input.spans {
            examples.for_training(&footage, shortest, &train.name)?
        } else {
            examples.without_spans()
        };
        trained.prepare_text(&examples, progress)?;
        let nearness = if input.similarity { Some(nearness(run, options, &train.queries)?) } else { None };
        let val_footage = Footage::open(&run.data, durations(&val))?.prepared(&input);
        let (footage, answering) = (Arc::new(footage), examples.answering());
        let (queries, candidates) = (Arc::clone(&trained.queries), Mutex::default());
        let first_stage = match (&run.data.first_stage, trained.model.first_stage_negatives()) {
            (Some(path), each) if each > 0 => Some(FirstNegatives::read(path, each, &train.queries, &examples)?),
            (Some(_), _) => {
                let problem = format!("`data.first_stage`: `{}` draws no negatives from a first stage", run.model);
                return Err(TrainError::RunFile { path: "run file".to_owned(), problem, hint: None });
            }
            (None, _) => None,
        };
        let batches =
            Arc::new(Batches { examples, footage, queries, input, nearness, answering, first_stage, candidates });
        Ok(Self {
            run,
            options,
            trained,
            batches,
            val,
            val_footage,
            reader,
            state,
            optimiser: None,
            average: None,
            saved,
            last_save: Instant::now(),
            ticked: Instant::now(),
            waited: Duration::ZERO,
            stepping: Duration::ZERO,
        })
    }

    fn run(mut self, progress: &Progress) -> Result<Outcome> {
        let began = Instant::now();
        let device = format!("{:?}", self.options.device.location());
        self.options.folder.write_versions(&device, self.batches.footage.recipe().as_ref())?;
        self.options.folder.rewind_log(self.state.step)?;
        let steps = self.run.train.stages.iter().map(|stage| stage.epochs * self.per_epoch(stage)).sum();
        let begun = Begun {
            parameters: self.trained.parameters(),
            examples: self.batches.examples.list.len(),
            out_of_reach: self.batches.examples.out_of_reach,
            cut: self.trained.queries.cut_queries(&self.batches.examples, self.batches.input.words)?,
            steps,
        };
        begun.lines().into_iter().for_each(|line| progress.say(line));
        progress.phase("training", steps);
        // A run that is stopped by now makes its next step all the same, so that every session gets on.
        let _ = progress.advance(self.state.step);
        let mut stopped = false;
        while !self.state.done && !stopped {
            stopped = !self.stage(progress)?;
        }
        if stopped {
            self.save_last()?;
        }
        Ok(Outcome {
            begun,
            steps: self.state.step,
            best: self.state.best,
            best_step: self.state.best_step,
            stopped,
            out_of_time: !stopped && self.state.step < steps && self.run.train.minutes.is_some(),
            seconds: began.elapsed().as_secs_f64(),
            waiting: self.waited.as_secs_f64() / self.stepping.as_secs_f64().max(1e-9),
        })
    }

    fn by_video(&self) -> bool {
        self.batches.input.batch_by == BatchBy::Videos
    }

    fn per_epoch(&self, stage: &StageConfig) -> usize {
        self.batches.examples.epoch(self.by_video(), stage.batch, Rng::new(0)).len()
    }

    /// Runs the stage that the state is in to its end; `false` when it was stopped before.
    fn stage(&mut self, progress: &Progress) -> Result<bool> {
        let stage = self.run.train.stages[self.state.stage].clone();
        let per_epoch = self.per_epoch(&stage);
        let total = stage.epochs * per_epoch;
        self.optimiser = Some(self.optimiser(&stage)?);
        let begin = |averaging| Average::begin(averaging, &self.trained.params, &self.saved);
        self.average = stage.average.map(begin).transpose()?;
        self.prepare_negatives()?;
        self.ticked = Instant::now();
        while self.state.stage_step < total && !self.out_of_patience() && self.time_left(&stage) > 0.0 {
            if !self.epoch(&stage, per_epoch, total, progress)? {
                return Ok(false);
            }
        }
        self.state.done = self.state.stage + 1 == self.run.train.stages.len();
        if !self.state.done {
            self.next_stage()?;
        }
        self.save_last()?;
        Ok(true)
    }

    /// Negatives are drawn by the relevance that the weights see which the stage began with, resumed or not.
    fn prepare_negatives(&self) -> Result<()> {
        let candidates = match self.trained.model.hard_negatives(self.state.stage) {
            None => None,
            Some(settings) => {
                let began = self.options.folder.began(self.state.stage);
                let trained = Trained::open_checkpoint(&self.options.folder, &began, &self.options.device)?;
                Some(Arc::new(Candidates::by(&trained, &self.batches, settings)?))
            }
        };
        *self.batches.candidates.lock().unwrap_or_else(PoisonError::into_inner) = candidates;
        Ok(())
    }

    fn out_of_patience(&self) -> bool {
        self.run.eval.patience.is_some_and(|patience| self.state.stale >= patience)
    }

    /// The next stage begins with the best weights of this one and a fresh optimiser.
    fn next_stage(&mut self) -> Result<()> {
        if self.options.folder.best().is_file() {
            self.trained = Trained::open(&self.options.folder, &self.options.device)?;
        }
        self.saved.clear();
        let state = &mut self.state;
        (state.stage, state.stage_step, state.stage_seconds) = (state.stage + 1, 0, None);
        (state.best, state.stale, state.plateaus) = (None, 0, 0);
        checkpoint::save(
            self.options.folder.files(),
            &self.options.folder.began(self.state.stage),
            &self.weights(),
            &self.state,
        )
    }

    /// Runs the rest of the current epoch; `false` when it was stopped.
    fn epoch(&mut self, stage: &StageConfig, per_epoch: usize, total: usize, progress: &Progress) -> Result<bool> {
        let (seed, number) = (self.run.train.seed, self.state.stage);
        let epoch = self.state.stage_step / per_epoch + 1;
        let pass = Pass::training(number, epoch, Rng::new(0));
        if let Some(optimiser) = &mut self.optimiser {
            optimiser.set_rates(&|name| self.trained.rate(name, &pass));
        }
        let order = Rng::stream(seed, &format!("order of epoch {epoch} of stage {number}"));
        let plan = self.batches.examples.epoch(self.by_video(), stage.batch, order);
        let first = self.state.stage_step % per_epoch;
        let jobs: Vec<(usize, Vec<usize>)> = plan
            .into_iter()
            .enumerate()
            .skip(first)
            .map(|(place, batch)| ((epoch - 1) * per_epoch + place, batch))
            .collect();
        let batches = Arc::clone(&self.batches);
        let make = move |(step, examples): &(usize, Vec<usize>)| {
            batches.training(examples, &mut Rng::stream(seed, &format!("batch {step} of stage {number}")))
        };
        let mut ready = Prefetch::new(jobs, self.run.train.workers, AHEAD, make);
        let evaluate_every = ((self.run.eval.every * per_epoch as f64).round() as usize).max(1);
        let log_every = (per_epoch / LINES_PER_EPOCH).max(1);
        while let Some(batch) = ready.next() {
            let began = Instant::now();
            let batch = batch?;
            let loss = self.step(stage, per_epoch, total, epoch, &batch)?;
            self.stepping += began.elapsed();
            let step = self.state.stage_step;
            if let Some(average) = self.average.as_mut().filter(|_| step.is_multiple_of(per_epoch)) {
                average.update(&self.trained.params)?;
            }
            if step.is_multiple_of(log_every) || step == total {
                self.log_loss(stage, per_epoch, total)?;
            }
            let throughput = batch.len() as f64 / began.elapsed().as_secs_f64().max(1e-9);
            progress.remark(format!("loss {loss:.4}, {throughput:.0} queries/s"));
            let stopped = progress.advance(1).is_err();
            self.tick();
            let late = self.time_left(stage) <= 0.0;
            if step.is_multiple_of(evaluate_every) || step == total || late {
                let evaluated = self.evaluate_averaged(stage, per_epoch)?;
                progress.say(evaluated.line());
                self.tick();
                self.save_last()?;
                if self.out_of_patience() || late {
                    break;
                }
            } else if self.last_save.elapsed() > SAVE_EVERY {
                self.save_last()?;
            }
            if stopped {
                self.waited += ready.waited();
                return Ok(false);
            }
        }
        self.waited += ready.waited();
        self.stepping += ready.waited();
        Ok(true)
    }

    /// Counts the seconds since it was last called as the stage's.
    fn tick(&mut self) {
        if self.run.train.minutes.is_some() {
            *self.state.stage_seconds.get_or_insert_default() += self.ticked.elapsed().as_secs_f64();
            self.ticked = Instant::now();
        }
    }

    /// The part of its time that a stage has left, 1 at its beginning; 1 for ever where nobody set a limit.
    fn time_left(&self, stage: &StageConfig) -> f64 {
        let Some(minutes) = self.run.train.minutes else { return 1.0 };
        let epochs: usize = self.run.train.stages.iter().map(|stage| stage.epochs).sum();
        let seconds = 60.0 * minutes * stage.epochs as f64 / epochs.max(1) as f64;
        1.0 - self.state.stage_seconds.unwrap_or(0.0) / seconds
    }

    /// Where the schedule stands: as far as the steps have come, or the time, whichever is further.
    fn place(&self, stage: &StageConfig, per_epoch: usize, total: usize) -> Place {
        let by_time = ((1.0 - self.time_left(stage)).clamp(0.0, 1.0) * total as f64) as usize;
        Place { step: self.state.stage_step.max(by_time), per_epoch, total, plateaus: self.state.plateaus }
    }

    /// One step; its loss.
    fn step(
        &mut self,
        stage: &StageConfig,
        per_epoch: usize,
        total: usize,
        epoch: usize,
        batch: &Batch,
    ) -> Result<f64> {
        let rate = stage.rate * stage.schedule.factor(self.place(stage, per_epoch, total));
        let purpose = format!("step {} of stage {}", self.state.stage_step, self.state.stage);
        let pass = Pass::training(self.state.stage, epoch, Rng::stream(self.run.train.seed, &purpose));
        let loss = self.trained.model.loss(&self.trained.ready(batch, &pass)?, &pass)?.total;
        let mut gradients = loss.backward()?;
        for (name, var) in self.trained.params.trainable() {
            if self.trained.rate(&name, &pass) == 0.0 {
                gradients.remove(var.as_tensor());
            }
        }
        let value = f64::from(loss.to_dtype(DType::F32)?.to_scalar::<f32>()?);
        if !value.is_finite() {
            return Err(TrainError::Diverged { loss: value, step: self.state.step + 1 });
        }
        let Some(optimiser) = &mut self.optimiser else { unreachable!("every stage begins with one") };
        let factor = stage.clip().apply(&optimiser.parameters(), &mut gradients)?;
        optimiser.step(&gradients, rate, factor)?;
        self.state.step += 1;
        self.state.stage_step += 1;
        self.state.loss_sum += value;
        self.state.loss_count += 1;
        Ok(value)
    }

    fn optimiser(&self, stage: &StageConfig) -> Result<Box<dyn Optimise>> {
        let weight_decay = match stage.optimiser {
            Optimiser::Adam | Optimiser::Sgd => WeightDecay::InGradient(stage.weight_decay),
            Optimiser::Adamw => WeightDecay::Decoupled(stage.weight_decay),
        };
        let parameters = self.trained.params.trainable();
        let mut optimiser: Box<dyn Optimise> = match stage.optimiser {
            Optimiser::Adam | Optimiser::Adamw => {
                let [beta1, beta2] = stage.betas;
                let config = AdamConfig { beta1, beta2, eps: stage.eps, weight_decay };
                Box::new(Adam::new(parameters, config, &[])?)
            }
            Optimiser::Sgd => Box::new(Sgd::new(parameters, stage.momentum, weight_decay, &[])?),
        };
        let mut state: HashMap<String, Tensor> = HashMap::new();
        for (name, tensor) in &self.saved {
            let Some(name) = name.strip_prefix(OPTIMISER) else { continue };
            let tensor = if name.ends_with(".steps") { tensor.to_dtype(DType::U32)? } else { tensor.clone() };
            state.insert(name.to_owned(), tensor);
        }
        if !state.is_empty() {
            optimiser.load_state(&state)?;
        }
        Ok(optimiser)
    }

    /// As [`Session::evaluate`], with the averaged weights where the stage keeps an average.
    fn evaluate_averaged(&mut self, stage: &StageConfig, per_epoch: usize) -> Result<Evaluated> {
        if let Some(average) = &mut self.average {
            average.exchange(&self.trained.params)?;
        }
        let evaluated = self.evaluate(stage, per_epoch);
        if let Some(average) = &mut self.average {
            average.exchange(&self.trained.params)?;
        }
        evaluated
    }

    /// Answers and scores the validation split, and keeps the weights if they are the best so far.
    fn evaluate(&mut self, stage: &StageConfig, per_epoch: usize) -> Result<Evaluated> {
        let eval = &self.run.eval;
        let metrics = eval.metrics()?;
        let among = if metrics.iter().any(|metric| matches!(metric.metric.task(), Task::Vcmr | Task::Vr | Task::Svmr)) {
            Among::Split
        } else if self.val.queries.iter().all(|truth| truth.pool.is_some()) {
            Among::Pool
        } else {
            Among::Own
        };
        let options = PredictOptions {
            answers: eval.answers,
            batch: eval.batch,
            among,
            window: None,
            variant: FeatureVariant::Seen,
        };
        // An evaluation is not stopped half way: the checkpoint after it must hold its score.
        let predicted = self.trained.answer(&self.val, &self.val_footage, &self.reader, &options, &Progress::new())?;
        let metrics = score(metrics, &self.val.queries, &predicted.predictions)?;
        let score = metrics.values().sum::<f64>() / metrics.len().max(1) as f64;
        let best = self.state.best.is_none_or(|best| score > best);
        let state = &mut self.state;
        state.stale = if best { 0 } else { state.stale + 1 };
        if stage.schedule.falls_after(state.stale) {
            state.plateaus += 1;
        }
        if best {
            (state.best, state.best_step) = (Some(score), state.step);
            checkpoint::save(self.options.folder.files(), &self.options.folder.best(), &self.weights(), &self.state)?;
            self.write_predictions(&predicted.predictions)?;
        }
        let evaluated = Evaluated {
            step: self.state.step,
            epoch: self.state.stage_step as f64 / per_epoch as f64,
            split: self.val.name.clone(),
            metrics,
            score,
            best,
        };
        self.options.folder.log(&evaluated)?;
        Ok(evaluated)
    }

    fn write_predictions(&self, predictions: &Predictions) -> Result<()> {
        let folder = &self.options.folder;
        let mut file = WholeFile::create_on(folder.files(), folder.predictions(), Overwrite::Force)?;
        write_predictions(predictions, PredictionFormat::Cuemark, &mut file)?;
        Ok(file.finish()?)
    }

    fn log_loss(&mut self, stage: &StageConfig, per_epoch: usize, total: usize) -> Result<()> {
        let line = json!({
            "step": self.state.step,
            "stage": self.state.stage,
            "epoch": self.state.stage_step as f64 / per_epoch as f64,
            "loss": self.state.loss_sum / self.state.loss_count.max(1) as f64,
            "rate": stage.rate * stage.schedule.factor(self.place(stage, per_epoch, total)),
        });
        (self.state.loss_sum, self.state.loss_count) = (0.0, 0);
        self.options.folder.log(&line)
    }

    fn weights(&self) -> Vec<(String, Tensor)> {
        self.trained.params.vars().into_iter().map(|(name, var)| (name, var.as_tensor().clone())).collect()
    }

    /// Everything that the next step depends on.
    fn save_last(&mut self) -> Result<()> {
        let mut tensors = self.weights();
        if let Some(optimiser) = self.optimiser.as_ref().filter(|_| self.state.stage_step > 0) {
            tensors.extend(optimiser.state()?.into_iter().map(|(name, tensor)| (format!("{OPTIMISER}{name}"), tensor)));
        }
        tensors.extend(self.average.iter().filter(|_| self.state.stage_step > 0).flat_map(Average::state));
        checkpoint::save(self.options.folder.files(), &self.options.folder.last(), &tensors, &self.state)?;
        self.last_save = Instant::now();
        Ok(())
    }
}

/// What the optimiser's tensors begin with in a checkpoint.
pub(crate) const OPTIMISER: &str = "optimiser.";

/// The metrics of answers, fractions, by name.
fn score(
    metrics: Vec<cuemark_metrics::MetricName>,
    truths: &[Truth],
    predictions: &Predictions,
) -> Result<IndexMap<String, f64>> {
    let plan = Plan::plain(metrics, Overrides::default());
    let evaluation = evaluate(&plan, truths, predictions, &Progress::new())?;
    Ok(evaluation.columns.iter().filter_map(|column| Some((column.name.to_string(), column.mean()?))).collect())
}
