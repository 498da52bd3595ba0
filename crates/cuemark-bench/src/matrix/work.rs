//! Filling one cell: train, answer, score. What is finished is not done again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use camino::Utf8Path;
use cuemark_core::{Predictions, Progress, QueryPredictions, Seen, Split, Task, Truth, VideoId};
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::world_folder::WORLD;
use cuemark_formats::{
    Overwrite, PredictionFormat, PredictionOptions, Source, WholeFile, read_predictions, write_predictions,
};
use cuemark_metrics::{Metric, MetricName, Overrides, Plan, Preset};
use cuemark_protocols::baselines::{self, Training};
use cuemark_tensor::Device;
use cuemark_text::variants::apply;
use cuemark_train::{
    Among, Nearness, OutOfReach, PredictOptions, RunFile, RunFolder, Start, TrainOptions, Trained, train,
};
use serde::{Deserialize, Serialize};

use super::cell::{Cell, CellTest, Method};
use super::check;
use super::command::Learning;
use super::corpus_guess::CorpusGuess;
use super::file::Protocol;
use super::notes::{DoneNote, TrainedNote};
use crate::report::{self, About, Answerer, Measure, QueryText};
use crate::{BenchError, Result};

/// What a process that fills a cell says on the way, one JSON object a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "at")]
pub enum CellMessage {
    /// It works.
    Working {
        /// At what: training, or a test.
        phase: String,
        /// Steps done.
        done: usize,
        /// Of so many.
        of: usize,
    },
    /// It is at its end.
    Ended(Ended),
}

impl CellMessage {
    /// Where the work on a cell is.
    pub fn of(seen: Seen) -> Self {
        Self::Working { phase: seen.phase.into_owned(), done: seen.done, of: seen.total }
    }
}

/// How the work on a cell ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ended")]
pub enum Ended {
    /// Everything is there.
    Done {
        /// **Seconds** of this session.
        seconds: f64,
    },
    /// It was asked to stop; what is finished is kept.
    Stopped {
        /// **Seconds** of this session.
        seconds: f64,
    },
    /// Something is wrong.
    Failed {
        /// What.
        why: String,
        /// What to do about it.
        hint: Option<String>,
    },
}

/// Where and how a cell is filled.
#[derive(Debug)]
pub struct WorkOptions {
    /// What it computes on.
    pub device: Device,
    /// Whether a run of other settings in its folder may be replaced.
    pub overwrite: Overwrite,
    /// Opens what a run file's `data.similarity` names.
    pub nearness: fn(&RunFile, &Progress) -> OpenedNearness,
}

/// What `data.similarity` names, or why it cannot be opened.
pub type OpenedNearness = Result<Option<Arc<dyn Nearness>>, Box<dyn std::error::Error + Send + Sync>>;

/// Answers per query where neither the matrix nor the metrics say.
const USUAL_ANSWERS: usize = 10;

/// Fills the cell that `folder` describes. `progress` has a phase for the training and one for each test; stopped, the work
/// ends soon, which is no error, and can be taken up again.
///
/// # Errors
/// Whatever training, answering and scoring can say; what is finished by then is kept.
pub fn work(folder: &Utf8Path, options: &WorkOptions, progress: &Progress) -> Result<Ended> {
    let began = Instant::now();
    let cell = super::notes::read_cell(folder)?;
    let mut session = Session { cell: &cell, folder, options, progress, trained: None, peak_mib: 0 };
    let ended = match session.run() {
        Err(error) if error.is_stopped() => false,
        ended => ended?,
    };
    let seconds = began.elapsed().as_secs_f64();
    Ok(if ended { Ended::Done { seconds } } else { Ended::Stopped { seconds } })
}

/// One uninterrupted stretch of work on a cell.
struct Session<'a> {
    cell: &'a Cell,
    folder: &'a Utf8Path,
    options: &'a WorkOptions,
    progress: &'a Progress,
    /// The model, once a test has asked for it.
    trained: Option<Trained>,
    /// The most MiB that a command has had.
    peak_mib: u64,
}

/// The answers to one test.
struct Answered {
    predictions: Predictions,
    out_of_reach: Option<OutOfReach>,
    /// **Milliseconds** per query.
    ms_per_query: Option<f64>,
}

impl Session<'_> {
    /// `false` when it was asked to stop.
    fn run(&mut self) -> Result<bool> {
        let began = Instant::now();
        let mut note = TrainedNote::read(self.folder)?.unwrap_or_default();
        if !self.learn(&mut note)? {
            return Ok(false);
        }
        let mut done = DoneNote::read(self.folder)?.unwrap_or_default();
        if done.training != self.cell.training_print() {
            done = DoneNote { training: self.cell.training_print(), ..DoneNote::default() };
        }
        for test in &self.cell.tests {
            let print = self.cell.test_print(test);
            if done.holds(self.folder, test, &print) {
                continue;
            }
            if self.progress.is_stopped() {
                return Ok(false);
            }
            let evaluation = self.test(test, &note)?;
            done.keep(test, print, evaluation);
            done.write(self.folder)?;
        }
        done.keep_only(&self.cell.tests);
        done.seconds += began.elapsed().as_secs_f64();
        let own = super::memory::own_peak_mib().or(done.peak_mib);
        done.peak_mib = own.map(|own| own.max(self.peak_mib));
        done.write(self.folder)?;
        Ok(true)
    }

    /// Trains a model to its end; `false` when it was asked to stop before.
    fn learn(&mut self, note: &mut TrainedNote) -> Result<bool> {
        let Method::Model { run, .. } = &self.cell.by else { return Ok(true) };
        let print = self.cell.training_print();
        if note.done && note.print == print {
            return Ok(true);
        }
        let table = run.parse().map_err(|error: toml::de::Error| BenchError::Cell {
            folder: self.folder.to_owned(),
            problem: error.message().to_owned(),
        })?;
        let run = RunFile::from_table(&self.cell.name, table, &[])?;
        // A run that crashed before its first note has left its run file.
        let other_run = RunFolder::new(self.folder).read_run().is_ok_and(|before| before != run);
        let mut start = Start::Resume;
        if other_run || (!note.print.is_empty() && note.print != print) {
            if self.options.overwrite == Overwrite::Never {
                return Err(BenchError::OtherSettings { cell: self.cell.name.clone() });
            }
            start = Start::Fresh(Overwrite::Force);
            *note = TrainedNote::default();
        }
        note.print = print;
        let nearness = (self.options.nearness)(&run, self.progress)
            .map_err(|error| BenchError::Cell { folder: self.folder.to_owned(), problem: error.to_string() })?;
        let options =
            TrainOptions { device: self.options.device.clone(), folder: RunFolder::new(self.folder), start, nearness };
        let outcome = train(&run, &options, self.progress)?;
        note.parameters = Some(outcome.begun.parameters as u64);
        note.seconds += outcome.seconds;
        note.steps = outcome.steps;
        note.best = outcome.best;
        note.done = !outcome.stopped;
        note.write(self.folder)?;
        Ok(note.done)
    }

    /// Answers and scores one test; the file that its evaluation is stored in.
    fn test(&mut self, test: &CellTest, note: &TrainedNote) -> Result<String> {
        self.progress.phase(test.name.clone(), 0);
        let mut split = self.split(&test.split)?;
        if let Some(every) = test.every {
            split.queries = split.queries.into_iter().step_by(every.get()).collect();
        }
        let plan = plan(test)?;
        let asked = Split { queries: rewritten(test.text, &split.queries)?, ..split.clone() };
        let answered = self.answer(test, &asked, plan.as_ref())?;
        let predictions = self.folder.join("predictions").join(format!("{}.jsonl", test.name));
        let mut file = WholeFile::create(predictions, Overwrite::Force)?;
        write_predictions(&answered.predictions, PredictionFormat::Cuemark, &mut file)?;
        file.finish()?;
        let about = self.about(test, &split, note, answered.ms_per_query);
        let measure = Measure { plan, out_of_reach: answered.out_of_reach, ..Measure::default() };
        let evaluated = measure.run(about, &split.queries, &answered.predictions, self.progress)?;
        // Every cell of a matrix asks the same queries, which are kept once for all of them.
        if let Some(cells) = self.folder.parent() {
            report::store_truth(&cells.join("truths"), &split.queries)?;
        }
        let path = evaluated.store(self.folder, &split.queries, Overwrite::Force)?;
        Ok(path.file_name().unwrap_or_default().to_owned())
    }

    fn split(&self, name: &str) -> Result<Split> {
        let made = self.cell.splits.as_ref().map(|folder| folder.join(format!("{name}.jsonl")));
        let mut split = match made.filter(|file| file.is_file()) {
            Some(file) => read_truth(&Source::new(file), None, &ReadOptions::default())?,
            None => self.cell.data.split(name)?,
        };
        split.name = Utf8Path::new(name).file_stem().unwrap_or(name).to_owned();
        Ok(split)
    }

    fn answer(&mut self, test: &CellTest, split: &Split, plan: Option<&Plan>) -> Result<Answered> {
        let answers = test.answers.unwrap_or_else(|| plan.map_or(USUAL_ANSWERS, depth));
        let plain = |predictions| Answered { predictions, out_of_reach: None, ms_per_query: None };
        match &self.cell.by {
            Method::Oracle => {
                let world = self.cell.data.root.clone().unwrap_or_default();
                Ok(plain(cuemark_world::oracle(&world, &test.split)?))
            }
            Method::Baseline => {
                if let Some(guess) = CorpusGuess::find(&self.cell.model) {
                    let folder = self.cell.splits.clone().unwrap_or_default();
                    return Ok(plain(guess.answer(&folder, &split.queries, answers, self.cell.seed)?));
                }
                let training = self.split(&self.cell.data.train)?;
                let baseline = baselines::find(&self.cell.model)?.fit(&Training::of(&training.queries))?;
                Ok(plain(baseline.predict(&split.queries, answers, self.cell.seed)?))
            }
            Method::Command(program) => {
                let of = |name: &str| self.split(name).map(|split| split.queries);
                let (train, val) = (of(&self.cell.data.train)?, of(&self.cell.data.val)?);
                let learning = Learning { train: &train, val: &val };
                let said = program.answer(self.cell, self.folder, test, split, &learning, self.progress)?;
                self.peak_mib = self.peak_mib.max(said.peak_mib);
                let ms_per_query = Some(1e3 * said.seconds / split.queries.len().max(1) as f64);
                Ok(Answered { predictions: said.predictions, out_of_reach: None, ms_per_query })
            }
            Method::Model { .. } => {
                let folder = self.folder.to_owned();
                self.predict(test, split, &folder, answers)
            }
            Method::TwoStage { first, second, videos } => {
                let list = first.join("predictions").join(format!("{}.jsonl", test.name));
                let (_, chosen) = read_predictions(&Source::new(list), &PredictionOptions::default())?;
                let fewer = Split { queries: narrowed(&split.queries, &chosen, *videos), ..split.clone() };
                let second = second.clone();
                self.predict(test, &fewer, &second, answers)
            }
        }
    }

    fn predict(&mut self, test: &CellTest, split: &Split, model: &Utf8Path, answers: usize) -> Result<Answered> {
        if self.trained.is_none() {
            self.trained = Some(Trained::open(&RunFolder::new(model), &self.options.device)?);
        }
        let Some(trained) = &self.trained else { unreachable!("it was just opened") };
        let options = PredictOptions {
            answers,
            batch: trained.run.eval.batch,
            among: test.among,
            window: None,
            variant: test.footage,
        };
        let began = Instant::now();
        let predicted = trained.predict(split, &options, self.progress)?;
        let milliseconds = 1e3 * began.elapsed().as_secs_f64();
        Ok(Answered {
            predictions: predicted.predictions,
            out_of_reach: Some(predicted.out_of_reach),
            ms_per_query: Some(milliseconds / split.queries.len().max(1) as f64),
        })
    }

    fn about(&self, test: &CellTest, split: &Split, note: &TrainedNote, ms_per_query: Option<f64>) -> About {
        let cell = self.cell;
        let graded = split.queries.iter().flat_map(|truth| &truth.moments).any(|moment| moment.relevance.is_some());
        let protocol = match (test.among, cell.protocol) {
            (Among::Pool, _) if graded => "ranked",
            (Among::Pool, _) => "mvmr",
            (Among::Split, _) => "vcmr",
            (Among::Own, Protocol::Own) if cell.data.is_world() => WORLD,
            (Among::Own, Protocol::Own) => "standard",
            (Among::Own, protocol) => protocol.name(),
        };
        About {
            model: cell.model.clone(),
            kind: match cell.by.answerer() {
                // Nothing learns from the log and nothing is compared with it.
                Answerer::Oracle => Answerer::File,
                answerer => answerer,
            },
            variant: cell.variant.clone(),
            dataset: cell.dataset_name.clone(),
            protocol: protocol.to_owned(),
            split: split.name.clone(),
            text: test.text,
            footage: test.footage,
            among: test.among,
            features: cell.features.clone(),
            seed: Some(cell.seed),
            parameters: note.parameters,
            ms_per_query,
            device: Some(format!("{:?}", self.options.device.location()).to_lowercase()),
            ..About::default()
        }
    }
}

/// What a test measures; `None` leaves it to the report.
fn plan(test: &CellTest) -> Result<Option<Plan>> {
    let metrics = check::metrics(&test.metrics)?;
    let metrics = (!metrics.is_empty()).then_some(metrics);
    Ok(match &test.preset {
        Some(preset) => Some(Plan::preset(preset.parse::<Preset>()?, metrics, Overrides::default())),
        None => metrics.map(|metrics| Plan::plain(metrics, Overrides::default())),
    })
}

/// How far down a list the metrics look, and not less than usual.
fn depth(plan: &Plan) -> usize {
    let looks = plan.metrics.iter().map(|MetricName { metric, .. }| match *metric {
        Metric::Recall { n, .. } | Metric::DiscountedRecall { n, .. } => n,
        Metric::Vcmr { n, .. } | Metric::Svmr { n, .. } | Metric::Mvmr { n, .. } | Metric::Vr { n } => n,
        Metric::Ndcg { k, .. } => k,
        _ => 1,
    });
    looks.max().unwrap_or(1).max(USUAL_ANSWERS)
}

/// The queries as they are asked. What is drawn does not hang on the model's seed: all are asked the same.
fn rewritten(text: QueryText, queries: &[Truth]) -> Result<Vec<Truth>> {
    let Some(variant) = text.variant() else { return Ok(queries.to_vec()) };
    Ok(apply(&variant, queries, 0)?.0)
}

/// The same queries, each with the `videos` of its pool that `chosen` lists first; those it does not list come last.
fn narrowed(queries: &[Truth], chosen: &Predictions, videos: usize) -> Vec<Truth> {
    let lists = chosen.for_task(Task::Any).unwrap_or_default();
    let by_query: rustc_hash::FxHashMap<_, &QueryPredictions> = lists.iter().map(|list| (&list.query, list)).collect();
    let narrow = |truth: &Truth| {
        let pool = truth.pool.clone().unwrap_or_default();
        let ranked = by_query.get(&truth.query.id).map_or(&[][..], |list| &list.ranked);
        let mut seen: HashSet<VideoId> = HashSet::new();
        let named = ranked.iter().filter_map(|answer| answer.video.clone()).filter(|video| pool.contains(video));
        let in_order = named.chain(pool.iter().cloned()).filter(|video| seen.insert(video.clone()));
        Truth { pool: Some(in_order.take(videos).collect()), ..truth.clone() }
    };
    queries.iter().map(narrow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::{Extra, Prediction, Query, QueryId, Span};

    #[test]
    fn a_first_stage_leaves_its_best_videos_in_its_order() {
        let truth = Truth {
            pool: Some(["a", "b", "c", "d"].map(VideoId::new).to_vec()),
            ..Truth::bare(Query { id: QueryId::new("1"), text: "x".to_owned() })
        };
        let answer = |video: &str| Prediction { video: Some(VideoId::new(video)), span: Span::whole(1.0), score: None };
        let list = QueryPredictions {
            query: QueryId::new("1"),
            ranked: ["c", "elsewhere", "c", "b"].map(answer).to_vec(),
            saliency: None,
            extra: Extra::default(),
        };
        let pools = |videos| {
            let narrowed = narrowed(std::slice::from_ref(&truth), &Predictions::any(vec![list.clone()]), videos);
            narrowed[0].pool.clone().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(pools(2), ["c", "b"]);
        assert_eq!(pools(3), ["c", "b", "a"], "videos it does not name come last, in the pool's order");
    }

    #[test]
    fn lists_are_as_long_as_the_metrics_look() {
        let of =
            |metrics: &str| depth(&Plan::plain(cuemark_metrics::parse_list(metrics).unwrap(), Overrides::default()));
        assert_eq!((of("R@1,IoU=0.5"), of("NDCG@40,IoU=0.3"), of("MVMR:R@50,IoU=0.5,mIoU")), (10, 40, 50));
    }
}
