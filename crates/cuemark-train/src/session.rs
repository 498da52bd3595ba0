//! One uninterrupted stretch of a run: what it needs is opened, stages are run in order, and everything is saved on the way.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuemark_core::{Progress, Truth};
use cuemark_tensor::Tensor;
use cuemark_text::similarity::Tfidf;

use crate::batches::Batches;
use crate::checkpoint::{self, State};
use crate::examples::Examples;
use crate::first_stage::FirstNegatives;
use crate::footage::Footage;
use crate::log::{Begun, Evaluated};
use crate::nearness::{NearSentences, Nearness};
use crate::predict::durations;
use crate::score::{Judge, Scored};
use crate::stage::Stage;
use crate::{Outcome, Result, RunFile, StageConfig, TrainError, TrainOptions, Trained};

/// The similarity of training queries when nobody says which: that of their words.
const WORDS: &str = "tfidf";

/// A training session: a run from its beginning, or from its last checkpoint, to its end or until somebody stops it.
pub(crate) struct Session<'a> {
    pub(crate) run: &'a RunFile,
    pub(crate) options: &'a TrainOptions,
    pub(crate) trained: Trained,
    pub(crate) batches: Arc<Batches>,
    judge: Judge,
    pub(crate) state: State,
    /// The tensors of the checkpoint that the session began with: weights, optimiser, average. Empty in every later stage.
    pub(crate) saved: HashMap<String, Tensor>,
    pub(crate) last_save: Instant,
    pub(crate) clock: Clock,
}

/// Where the time of steps goes.
#[derive(Default)]
pub(crate) struct Clock {
    pub(crate) waited: Duration,
    pub(crate) stepping: Duration,
}

/// What a session begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Weights drawn from the seed.
    Fresh,
    /// The folder's last checkpoint.
    Resumed,
}

impl<'a> Session<'a> {
    /// Opens everything that the run needs and writes nothing.
    pub(crate) fn begin(
        run: &'a RunFile,
        options: &'a TrainOptions,
        beginning: Beginning,
        progress: &Progress,
    ) -> Result<Self> {
        let (train, val) = (run.data.split(&run.data.train)?, run.data.split(&run.data.val)?);
        for split in [&train, &val] {
            if split.queries.is_empty() {
                let why = "it has no query".to_owned();
                return Err(TrainError::EmptySplit { split: split.name.clone(), why });
            }
        }
        // Before the model, which is built for the widths of what is stored.
        let footage = Footage::open(&run.data, durations(&train))?;
        let (trained, state, saved) = match beginning {
            Beginning::Resumed => {
                let path = options.folder.last();
                let (tensors, state, _) = checkpoint::load(&path, &options.device)?;
                (Trained::open_checkpoint(&options.folder, &path, &options.device)?, state, tensors)
            }
            Beginning::Fresh => {
                let trained = Trained::fresh(run, &train.queries, &footage, &options.device)?;
                (trained, State { model: run.model.clone(), ..State::default() }, HashMap::new())
            }
        };
        let input = trained.model.input();
        let footage = footage.prepared(&input, trained.scale.as_ref());
        let reader = trained.reader(&train.queries)?;
        let shortest = 1.0 / input.resample.rows().max(1) as f64;
        let examples = Examples::of(&train, &reader, &trained.vocabulary)?;
        let examples = if input.joint { examples.with_windows(&train)? } else { examples };
        // A weakly supervised model is not trusted to look away: what it must not learn from is taken out here.
        let examples = if input.spans {
            examples.for_training(&footage, shortest, &train.name)?
        } else {
            examples.without_spans()
        };
        trained.prepare_text(&examples, progress)?;
        let nearness = if input.similarity { Some(nearness(run, options, &train.queries)?) } else { None };
        let judge = Judge::open(run, val, reader, &input, trained.scale.as_ref())?;
        let (footage, answering) = (Arc::new(footage), examples.answering());
        let queries = Arc::clone(&trained.queries);
        let first_stage = match (&run.data.first_stage, trained.model.first_stage_negatives()) {
            (Some(path), each) if each > 0 => Some(FirstNegatives::read(path, each, &train.queries, &examples)?),
            (Some(_), _) => {
                let problem = format!("`{}` draws no negatives from a first stage", run.model);
                return Err(TrainError::Setting { key: "data.first_stage", problem, hint: None });
            }
            (None, _) => None,
        };
        let batches = Arc::new(Batches { examples, footage, queries, input, nearness, answering, first_stage });
        let (last_save, clock) = (Instant::now(), Clock::default());
        Ok(Self { run, options, trained, batches, judge, state, saved, last_save, clock })
    }

    /// Runs stage after stage to the end, or until `progress` is stopped.
    pub(crate) fn run(mut self, progress: &Progress) -> Result<Outcome> {
        let began = Instant::now();
        let device = format!("{:?}", self.options.device.location());
        self.options.folder.write_versions(&device, self.batches.footage.recipe().as_ref())?;
        // Lines that were logged after the checkpoint belong to steps that will be made again.
        self.options.folder.rewind_log(self.state.step)?;
        let steps = self.run.train.stages.iter().map(|stage| stage.epochs * self.batches.per_epoch(stage)).sum();
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
        let mut ended = ControlFlow::Continue(());
        while !self.state.done && ended.is_continue() {
            let mut stage = Stage::begin(&self)?;
            ended = stage.run(&mut self, progress)?;
            if ended.is_continue() {
                self.end_stage()?;
            }
            self.save_last(&stage)?;
        }
        let stopped = ended.is_break();
        Ok(Outcome {
            begun,
            steps: self.state.step,
            best: self.state.best,
            best_step: self.state.best_step,
            stopped,
            out_of_time: !stopped && self.state.step < steps && self.run.train.minutes.is_some(),
            seconds: began.elapsed().as_secs_f64(),
            waiting: self.clock.waited.as_secs_f64() / self.clock.stepping.as_secs_f64().max(1e-9),
        })
    }

    pub(crate) fn out_of_patience(&self) -> bool {
        self.run.eval.patience.is_some_and(|patience| self.state.stale >= patience)
    }

    /// Goes on to the next stage, which begins with the best weights of this one and a fresh optimiser; or the run is done.
    fn end_stage(&mut self) -> Result<()> {
        self.state.done = self.state.stage + 1 == self.run.train.stages.len();
        if self.state.done {
            return Ok(());
        }
        let folder = &self.options.folder;
        if folder.best().is_file() {
            self.trained = Trained::open(folder, &self.options.device)?;
        }
        self.saved.clear();
        let state = &mut self.state;
        (state.stage, state.stage_step, state.stage_seconds) = (state.stage + 1, 0, None);
        // The best is chosen anew among the evaluations of the next stage, so that a run ends with weights of its last one.
        (state.best, state.stale, state.plateaus) = (None, 0, 0);
        checkpoint::save(folder.files(), &folder.began(self.state.stage), &self.weights(), &self.state)
    }

    /// Answers and scores the validation split, and keeps the weights if they are the best so far.
    pub(crate) fn evaluate(&mut self, stage: &StageConfig, epochs: f64) -> Result<Evaluated> {
        let Scored { predictions, metrics, score } = self.judge.score(&self.trained)?;
        let best = self.state.best.is_none_or(|best| score > best);
        let state = &mut self.state;
        state.stale = if best { 0 } else { state.stale + 1 };
        if stage.schedule.falls_after(state.stale) {
            state.plateaus += 1;
        }
        if best {
            (state.best, state.best_step) = (Some(score), state.step);
            let folder = &self.options.folder;
            checkpoint::save(folder.files(), &folder.best(), &self.weights(), &self.state)?;
            folder.write_predictions(&predictions)?;
        }
        let (step, split) = (self.state.step, self.judge.split().to_owned());
        let evaluated = Evaluated { step, epoch: epochs, split, metrics, score, best };
        self.options.folder.log(&evaluated)?;
        Ok(evaluated)
    }

    fn weights(&self) -> Vec<(String, Tensor)> {
        self.trained.params.vars().into_iter().map(|(name, var)| (name, var.as_tensor().clone())).collect()
    }

    /// Saves everything that the next step depends on, in one file that is replaced as a whole.
    pub(crate) fn save_last(&mut self, stage: &Stage) -> Result<()> {
        let mut tensors = self.weights();
        // Between two stages the one that ended has nothing to say to the next, which begins with a fresh optimiser.
        if self.state.stage_step > 0 {
            tensors.extend(stage.tensors()?);
        }
        let folder = &self.options.folder;
        checkpoint::save(folder.files(), &folder.last(), &tensors, &self.state)?;
        self.last_save = Instant::now();
        Ok(())
    }
}

/// What was handed over, else the words of the training queries.
fn nearness(run: &RunFile, options: &TrainOptions, queries: &[Truth]) -> Result<Arc<dyn Nearness>> {
    match (&options.nearness, run.data.similarity.as_deref()) {
        (Some(nearness), _) => Ok(Arc::clone(nearness)),
        (None, None | Some(WORDS)) => {
            let texts: Vec<&str> = queries.iter().map(|truth| truth.query.text.as_str()).collect();
            Ok(Arc::new(NearSentences::of_training(&Tfidf::new(&texts, &texts), queries)?))
        }
        (None, Some(other)) => Err(TrainError::Setting {
            key: "data.similarity",
            problem: format!("is `{other}`, and whoever trains has not opened it"),
            hint: None,
        }),
    }
}
