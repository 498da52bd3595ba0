//! One stage of a run: epochs of steps with one optimiser, one schedule and one way to draw negatives (the training loop).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuemark_core::{Progress, Rng};
use cuemark_features::Prefetch;
use cuemark_models::{Batch, Sharing, differentiate};
use cuemark_tensor::optim::{Adam, AdamConfig, Optimise, Sgd, WeightDecay};
use cuemark_tensor::{DType, Params, Pass, Tensor, Var, step_on_threads};
use serde_json::json;

use crate::average::Average;
use crate::checkpoint::State;
use crate::log::Evaluated;
use crate::negatives::Candidates;
use crate::schedule::Place;
use crate::session::Session;
use crate::{Optimiser, Result, StageConfig, TrainError, Trained};

/// The longest that work may be lost to a crash between two evaluations.
const SAVE_EVERY: Duration = Duration::from_secs(300);

/// Batches that wait ready.
const AHEAD: usize = 4;

/// Lines of the log per epoch.
const LINES_PER_EPOCH: usize = 10;

/// What the optimiser's tensors begin with in a checkpoint.
pub(crate) const OPTIMISER: &str = "optimiser.";

/// The stage that a session is in, and what holds for as long as it is.
///
/// Nothing of it is kept but the optimiser and the average: where the stage stands is [`State`]'s, so that a stage which is
/// begun again from a checkpoint goes on as if it had never stopped.
pub(crate) struct Stage {
    config: StageConfig,
    /// From 0.
    number: usize,
    /// Steps of one epoch.
    per_epoch: usize,
    /// Steps of the whole stage.
    total: usize,
    /// Its share of `train.minutes`, in **seconds**.
    seconds: Option<f64>,
    optimiser: Box<dyn Optimise>,
    /// The averaged weights, of stages that keep them.
    average: Option<Average>,
    /// What negatives are drawn from, in stages that ask for them.
    negatives: Option<Arc<Candidates>>,
    /// When [`State::stage_seconds`] was last brought up to date.
    ticked: Instant,
}

impl Stage {
    /// The stage that the session's state names, taken up where that says.
    pub(crate) fn begin(session: &Session) -> Result<Self> {
        let (train, number) = (&session.run.train, session.state.stage);
        let config = train.stages[number].clone();
        let per_epoch = session.batches.per_epoch(&config);
        let params = &session.trained.params;
        let epochs: usize = train.stages.iter().map(|stage| stage.epochs).sum();
        Ok(Self {
            number,
            per_epoch,
            total: config.epochs * per_epoch,
            seconds: train.minutes.map(|minutes| 60.0 * minutes * config.epochs as f64 / epochs.max(1) as f64),
            optimiser: optimiser(&config, params, &session.saved)?,
            average: config.average.map(|averaging| Average::begin(averaging, params, &session.saved)).transpose()?,
            negatives: negatives(session)?,
            ticked: Instant::now(),
            config,
        })
    }

    /// Runs to the end of the stage: its last step, the end of its time or of its patience. `Break` when it was stopped before.
    pub(crate) fn run(&mut self, session: &mut Session, progress: &Progress) -> Result<ControlFlow<()>> {
        while session.state.stage_step < self.total
            && !session.out_of_patience()
            && self.time_left(&session.state) > 0.0
        {
            if self.epoch(session, progress)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Runs the rest of the epoch that the state is in; `Break` when it was stopped.
    fn epoch(&mut self, session: &mut Session, progress: &Progress) -> Result<ControlFlow<()>> {
        let (seed, number, per_epoch) = (session.run.train.seed, self.number, self.per_epoch);
        let epoch = session.state.stage_step / per_epoch + 1;
        // Factors on the rate hold for an epoch (a text encoder that is frozen at first), so they are asked for once; the draw
        // of this pass is never used.
        let pass = Pass::training(number, epoch, Rng::new(0));
        self.optimiser.set_rates(&|name| session.trained.rate(name, &pass));
        // The order is drawn anew from the seed and the epoch's number, not from a generator that runs along: a resumed run has
        // the same order without having drawn the epochs before.
        let order = Rng::stream(seed, &format!("order of epoch {epoch} of stage {number}"));
        let plan = session.batches.epoch(&self.config, order);
        let first = session.state.stage_step % per_epoch;
        let jobs: Vec<(usize, Vec<usize>)> = plan
            .into_iter()
            .enumerate()
            .skip(first)
            .map(|(place, batch)| ((epoch - 1) * per_epoch + place, batch))
            .collect();
        let (batches, negatives) = (Arc::clone(&session.batches), self.negatives.clone());
        // Every batch has a generator of its own, by its number: which worker makes it, and when, changes nothing.
        let make = move |(step, examples): &(usize, Vec<usize>)| {
            let mut rng = Rng::stream(seed, &format!("batch {step} of stage {number}"));
            batches.training(examples, negatives.as_deref(), &mut rng)
        };
        let mut ready = Prefetch::new(jobs, session.run.train.workers, AHEAD, make);
        let evaluate_every = ((session.run.eval.every * per_epoch as f64).round() as usize).max(1);
        let log_every = (per_epoch / LINES_PER_EPOCH).max(1);
        while let Some(batch) = ready.next() {
            let began = Instant::now();
            let batch = batch?;
            let loss = self.step(session, epoch, &batch)?;
            session.clock.stepping += began.elapsed();
            let step = session.state.stage_step;
            if let Some(average) = self.average.as_mut().filter(|average| average.is_due(step, per_epoch)) {
                average.update(&session.trained.params)?;
            }
            if step.is_multiple_of(log_every) || step == self.total {
                self.log_loss(session)?;
            }
            let throughput = batch.len() as f64 / began.elapsed().as_secs_f64().max(1e-9);
            progress.remark(format!("loss {loss:.4}, {throughput:.0} queries/s"));
            // Whether it is stopped is asked here and obeyed at the end of the step: an evaluation that is due is made first, since
            // a resumed run would not make it up and the logs would differ.
            let stopped = progress.advance(1).is_err();
            self.tick(&mut session.state);
            let late = self.time_left(&session.state) <= 0.0;
            if step.is_multiple_of(evaluate_every) || step == self.total || late {
                let evaluated = self.evaluate(session)?;
                progress.say(evaluated.line());
                self.tick(&mut session.state);
                session.save_last(self)?;
                if session.out_of_patience() || late {
                    break;
                }
            } else if session.last_save.elapsed() > SAVE_EVERY {
                session.save_last(self)?;
            }
            if stopped {
                session.clock.waited += ready.waited();
                return Ok(ControlFlow::Break(()));
            }
        }
        session.clock.waited += ready.waited();
        session.clock.stepping += ready.waited();
        Ok(ControlFlow::Continue(()))
    }

    /// One step; its loss.
    fn step(&mut self, session: &mut Session, epoch: usize, batch: &Batch) -> Result<f64> {
        let Session { run, trained, state, .. } = session;
        let purpose = format!("step {} of stage {}", state.stage_step, state.stage);
        let pass = Pass::training(state.stage, epoch, Rng::stream(run.train.seed, &purpose));
        let (rate, trained) = (self.rate(state), &*trained);
        let parameters: Vec<Var> = self.optimiser.parameters().into_iter().cloned().collect();
        let Sharing { parts, threads } = Sharing::of(trained.model.as_ref(), batch.len(), &parameters);
        let learn = move || self.learn(trained, batch, &pass, (&parameters, parts), rate);
        let value = step_on_threads(&trained.device, threads, learn)?;
        if !value.is_finite() {
            return Err(TrainError::Diverged { loss: value, step: state.step + 1 });
        }
        state.step += 1;
        state.stage_step += 1;
        state.loss_sum += value;
        state.loss_count += 1;
        Ok(value)
    }

    /// Moves the weights by what a batch says; its loss. A loss that is no number moves nothing: weights that it has touched must
    /// not reach a checkpoint.
    fn learn(
        &mut self,
        trained: &Trained,
        batch: &Batch,
        pass: &Pass,
        (parameters, parts): (&[Var], usize),
        rate: f64,
    ) -> Result<f64> {
        let ready = |batch: &Batch, pass: &Pass| trained.ready(batch, pass);
        let (loss, mut gradients) = differentiate(trained.model.as_ref(), batch, pass, parameters, parts, ready)?;
        // A rate of 0 alone keeps the parameter where it is, but its gradient would fill the optimiser's memory and count in the
        // norm that the others are clipped by.
        for (name, var) in trained.params.trainable() {
            if trained.rate(&name, pass) == 0.0 {
                gradients.remove(var.as_tensor());
            }
        }
        let value = f64::from(loss.to_dtype(DType::F32)?.to_scalar::<f32>()?);
        if value.is_finite() {
            let factor = self.config.clip().apply(&self.optimiser.parameters(), &mut gradients)?;
            self.optimiser.step(&gradients, rate, factor)?;
        }
        Ok(value)
    }

    /// Judges the weights, or the averaged ones where the stage keeps an average.
    fn evaluate(&mut self, session: &mut Session) -> Result<Evaluated> {
        if let Some(average) = &mut self.average {
            average.exchange(&session.trained.params)?;
        }
        // No `?` before the weights are back: a session whose evaluation failed is still saved as it was.
        let evaluated = session.evaluate(&self.config, self.epochs(&session.state));
        if let Some(average) = &mut self.average {
            average.exchange(&session.trained.params)?;
        }
        evaluated
    }

    /// Counts the seconds since it was last called as the stage's.
    fn tick(&mut self, state: &mut State) {
        // Runs without a limit count nothing: seconds in a checkpoint would make two equal runs differ in bytes.
        if self.seconds.is_some() {
            *state.stage_seconds.get_or_insert_default() += self.ticked.elapsed().as_secs_f64();
            self.ticked = Instant::now();
        }
    }

    /// The part of its time that the stage has left, 1 at its beginning; 1 for ever where nobody set a limit.
    fn time_left(&self, state: &State) -> f64 {
        self.seconds.map_or(1.0, |seconds| 1.0 - state.stage_seconds.unwrap_or(0.0) / seconds)
    }

    /// Epochs done, parts of one counted.
    fn epochs(&self, state: &State) -> f64 {
        state.stage_step as f64 / self.per_epoch as f64
    }

    /// The learning rate of the next step.
    fn rate(&self, state: &State) -> f64 {
        // As far as the steps have come, or the time, whichever is further: a run that will be cut off by the clock still sees
        // its rate fall to the end of the schedule.
        let by_time = ((1.0 - self.time_left(state)).clamp(0.0, 1.0) * self.total as f64) as usize;
        let step = state.stage_step.max(by_time);
        let place = Place { step, per_epoch: self.per_epoch, total: self.total, plateaus: state.plateaus };
        self.config.rate * self.config.schedule.factor_by_clock(place, state.stage_step)
    }

    fn log_loss(&self, session: &mut Session) -> Result<()> {
        let state = &mut session.state;
        let line = json!({
            "step": state.step,
            "stage": state.stage,
            "epoch": self.epochs(state),
            "loss": state.loss_sum / state.loss_count.max(1) as f64,
            "rate": self.rate(state),
        });
        (state.loss_sum, state.loss_count) = (0.0, 0);
        session.options.folder.log(&line)
    }

    /// What a checkpoint keeps beside the weights.
    pub(crate) fn tensors(&self) -> Result<Vec<(String, Tensor)>> {
        let of_optimiser = self.optimiser.state()?.into_iter();
        let mut tensors: Vec<_> = of_optimiser.map(|(name, tensor)| (format!("{OPTIMISER}{name}"), tensor)).collect();
        tensors.extend(self.average.iter().flat_map(Average::state));
        Ok(tensors)
    }
}

/// The optimiser of a stage, with what a checkpoint kept of it.
fn optimiser(stage: &StageConfig, params: &Params, saved: &HashMap<String, Tensor>) -> Result<Box<dyn Optimise>> {
    let weight_decay = match stage.optimiser {
        Optimiser::Adam | Optimiser::Sgd => WeightDecay::InGradient(stage.weight_decay),
        Optimiser::Adamw => WeightDecay::Decoupled(stage.weight_decay),
    };
    let parameters = params.trainable();
    let mut optimiser: Box<dyn Optimise> = match stage.optimiser {
        Optimiser::Adam | Optimiser::Adamw => {
            let [beta1, beta2] = stage.betas;
            let config = AdamConfig { beta1, beta2, eps: stage.eps, weight_decay };
            Box::new(Adam::new(parameters, config, &[])?)
        }
        Optimiser::Sgd => Box::new(Sgd::new(parameters, stage.momentum, weight_decay, &[])?),
    };
    let mut state: HashMap<String, Tensor> = HashMap::new();
    for (name, tensor) in saved {
        let Some(name) = name.strip_prefix(OPTIMISER) else { continue };
        // Checkpoints hold 32-bit floats alone; the count of steps is exact in them up to 16 million.
        let tensor = if name.ends_with(".steps") { tensor.to_dtype(DType::U32)? } else { tensor.clone() };
        state.insert(name.to_owned(), tensor);
    }
    if !state.is_empty() {
        optimiser.load_state(&state)?;
    }
    Ok(optimiser)
}

/// What a stage's negatives are drawn from, by the relevance that the weights see which the stage **began** with.
///
/// Those lie in a checkpoint of their own: the weights of the moment would give a resumed run other negatives.
fn negatives(session: &Session) -> Result<Option<Arc<Candidates>>> {
    let Some(settings) = session.trained.model.hard_negatives(session.state.stage) else { return Ok(None) };
    let (folder, device) = (&session.options.folder, &session.options.device);
    let trained = Trained::open_checkpoint(folder, &folder.began(session.state.stage), device)?;
    Ok(Some(Arc::new(Candidates::by(&trained, &session.batches, settings)?)))
}
