//! Whole runs on a small world: learning, stopping, resuming, answering, and everything that can be wrong with the input.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise as _, Dialect, Progress};
use cuemark_features::{FeatureVariant, Features, OpenOptions, VISUAL, open};
use cuemark_formats::Overwrite;
use cuemark_tensor::Device;
use cuemark_train::{
    Among, Outcome, PredictOptions, RunFile, RunFolder, Start, TrainError, TrainOptions, Trained, train,
};
use cuemark_world::{WorldOptions, make};
use sha2::{Digest as _, Sha256};

use crate::shipped::{overrides, shortened};

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let options = WorldOptions { videos: 40, ..WorldOptions::default() };
        make(&options, &scene.path("world"), &Progress::new()).unwrap();
        scene
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join(name)
    }

    fn run(&self, more: &[(&str, &str)]) -> Result<RunFile, TrainError> {
        let text = format!(
            "
            [model]
            name = '2d-tan'
            map = {{ pre_clips = 8, clips = 8, counts = [7] }}
            hidden = 16
            lstm_layers = 1
            kernel = 3
            layers = 2
            [data]
            dataset = 'world'
            root = '{}'
            word_width = 12
            [train]
            epochs = 2
            batch = 8
            rate = 3e-3
            seed = 5
            clip_norm = 5.0
            [eval]
            every = 0.5
            ",
            self.path("world")
        );
        RunFile::from_table("run.toml", text.parse().unwrap(), &overrides(more))
    }

    fn options(&self, out: &str, start: Start) -> TrainOptions {
        TrainOptions { device: Device::Cpu, folder: RunFolder::new(self.path(out)), start, nearness: None }
    }

    fn train(&self, run: &RunFile, out: &str) -> Result<Outcome, TrainError> {
        train(run, &self.options(out, Start::Fresh(Overwrite::Never)), &Progress::new())
    }
}

/// The losses that a run logged.
fn losses(folder: &Utf8Path) -> Vec<f64> {
    let loss = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["loss"].as_f64();
    text(&folder.join("metrics.jsonl")).lines().filter_map(loss).collect()
}

fn text(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_run_leaves_every_file_and_its_predictions_score_what_it_says() {
    let scene = Scene::new();
    let run = scene.run(&[("train.epochs", "6")]).unwrap();
    let outcome = scene.train(&run, "run").unwrap();
    assert!(!outcome.stopped && outcome.best.is_some());
    let folder = scene.path("run");
    for file in [
        "run.toml",
        "vocabulary.txt",
        "versions.json",
        "metrics.jsonl",
        "predictions.jsonl",
        "checkpoints/best.safetensors",
        "checkpoints/last.safetensors",
    ] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    assert!(folder.read_dir_utf8().unwrap().all(|entry| !entry.unwrap().file_name().contains(".tmp")));
    let losses = losses(&folder);
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    assert!(last < 0.9 * first, "{first} to {last}");

    assert_answers_as_while_training(&scene, "run");
}

/// The best checkpoint, read back, answers the validation split as it did while training.
fn assert_answers_as_while_training(scene: &Scene, out: &str) {
    let folder = scene.path(out);
    let trained = Trained::open(&RunFolder::new(folder.clone()), &Device::Cpu).unwrap();
    let split = trained.run.data.split("val").unwrap();
    let options =
        PredictOptions { answers: 10, batch: 5, among: Among::Own, window: None, variant: FeatureVariant::Seen };
    let predicted = trained.predict(&split, &options, &Progress::new()).unwrap();
    let mut file = cuemark_formats::WholeFile::create(scene.path("again.jsonl"), Overwrite::Never).unwrap();
    cuemark_formats::write_predictions(&predicted.predictions, cuemark_formats::PredictionFormat::Cuemark, &mut file)
        .unwrap();
    file.finish().unwrap();
    assert_eq!(text(&scene.path("again.jsonl")), text(&folder.join("predictions.jsonl")));
}

#[test]
fn clips_are_measured_on_the_training_films_alone_and_the_measure_lies_with_the_weights() {
    let scene = Scene::new();
    let run = scene.run(&[("data.standardise", "true")]).unwrap();
    scene.train(&run, "scaled").unwrap();
    assert_answers_as_while_training(&scene, "scaled");

    let best = scene.path("scaled/checkpoints/best.safetensors");
    let kept =
        cuemark_models::weights::read(&best, &Device::Cpu).unwrap()["clips.fixed_mean"].to_vec1::<f32>().unwrap();
    let mean = |split: &str| {
        let videos: BTreeSet<_> =
            run.data.split(split).unwrap().queries.into_iter().map(|truth| truth.video.unwrap().id).collect();
        let source = open(&scene.path("world/features-motion"), &OpenOptions::default()).unwrap();
        let films: Vec<Features> = videos.iter().map(|video| source.get(video, VISUAL).unwrap()).collect();
        let rows = films.iter().map(Features::rows).sum::<usize>() as f32;
        let sum =
            |column: usize| films.iter().flat_map(move |film| film.data().iter().skip(column).step_by(film.width()));
        (0..kept.len()).map(|column| sum(column).sum::<f32>() / rows).collect::<Vec<f32>>()
    };
    let off = |mean: Vec<f32>| kept.iter().zip(mean).map(|(kept, mean)| (kept - mean).abs()).fold(0.0, f32::max);
    assert!(off(mean("train")) < 1e-4, "{}", off(mean("train")));
    assert!(off(mean("val")) > 1e-2, "the films to be judged on are others: {}", off(mean("val")));

    // Others' weights have no measure of our clips: asked for, it is missed by name.
    let run = scene.run(&[]).unwrap();
    scene.train(&run, "plain").unwrap();
    let file = scene.path("plain/run.toml");
    let asks = text(&file).replace("[data]", "[data]\nstandardise = true");
    std::fs::write(&file, asks).unwrap();
    let error = Trained::open(&RunFolder::new(scene.path("plain")), &Device::Cpu).err().unwrap();
    assert!(cuemark_core::whole_message(&error).contains("clips.fixed_mean"), "{error}");
}

#[test]
fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
    let scene = Scene::new();
    let run = scene.run(&[]).unwrap();
    scene.train(&run, "a").unwrap();
    scene.train(&run, "b").unwrap();
    scene.train(&scene.run(&[("train.seed", "6")]).unwrap(), "c").unwrap();
    let log = |out: &str| text(&scene.path(out).join("metrics.jsonl"));
    assert_eq!(log("a"), log("b"));
    assert_ne!(log("a"), log("c"));
}

/// A model that draws nothing; one that drops values, hides words and decays its rate; and a run whose end hangs on how many
/// evaluations in a row brought nothing better.
#[test]
fn a_run_that_is_stopped_anywhere_and_resumed_is_the_run_that_was_not() {
    let scene = Scene::new();
    let plateau = "{ kind = 'plateau', factor = 0.5, patience = 1 }";
    let impatient =
        [("train.rate", "1e-12"), ("train.epochs", "9"), ("eval.patience", "3"), ("train.schedule", plateau)];
    assert_resumes(&scene, "still", &[]);
    assert_resumes(&scene, "drawing", &[("model", CNM)]);
    assert_resumes(&scene, "scaled", &[("data.standardise", "true")]);
    // An average that moves between checkpoints, judged on some of the queries.
    assert_resumes(&scene, "averaged", &[("train.average", "{ decay = 0.9, every = 2 }"), ("eval.queries", "3")]);
    let steps = assert_resumes(&scene, "impatient", &impatient);
    assert!(steps < assert_resumes(&scene, "patient", &impatient[..2]), "{steps}");
}

#[test]
fn a_run_that_is_out_of_time_ends_in_order_with_its_rate_fallen() {
    let scene = Scene::new();
    let falling = ("train.schedule", "{ kind = 'linear' }");
    // A tenth of a second: a step or two of a thousand epochs.
    let run = scene.run(&[("train.epochs", "1000"), ("train.minutes", "0.0017"), falling]).unwrap();
    let outcome = scene.train(&run, "short").unwrap();
    assert!(outcome.out_of_time && !outcome.stopped && outcome.best.is_some(), "{outcome:?}");
    assert!(outcome.steps >= 1 && outcome.steps < outcome.begun.steps / 10, "{outcome:?}");
    // It is at its end: there is nothing to go on with.
    let again = train(&run, &scene.options("short", Start::Resume), &Progress::new()).unwrap();
    assert_eq!(again.steps, outcome.steps);
    let whole = scene.train(&scene.run(&[("train.minutes", "1000")]).unwrap(), "whole").unwrap();
    assert!(!whole.out_of_time && whole.steps == whole.begun.steps, "{whole:?}");
    assert!(scene.run(&[("train.minutes", "0")]).is_err());
}

/// Stops once so many steps are done.
fn stopping_at(steps: usize) -> Progress {
    let progress = Progress::new();
    progress.stop_at(steps);
    progress
}

/// Runs in one go and in sessions of three steps, wherever in an epoch those end; returns how many steps there were.
fn assert_resumes(scene: &Scene, name: &str, more: &[(&str, &str)]) -> usize {
    let run = scene.run(more).unwrap();
    let [whole, parts] = ["whole", "parts"].map(|how| format!("{name}-{how}"));
    let steps = scene.train(&run, &whole).unwrap().steps;
    let mut start = Start::Fresh(Overwrite::Never);
    let mut done = 0;
    for session in 0.. {
        let outcome = train(&run, &scene.options(&parts, start), &stopping_at(done + 3)).unwrap();
        start = Start::Resume;
        if !outcome.stopped {
            assert!(session > 3, "the run is too short to be stopped often");
            break;
        }
        assert_eq!(outcome.steps, done + 3);
        done = outcome.steps;
    }
    for file in ["metrics.jsonl", "predictions.jsonl"] {
        assert_eq!(text(&scene.path(&whole).join(file)), text(&scene.path(&parts).join(file)), "{name}: {file}");
    }
    for checkpoint in ["best", "last"] {
        let bytes = |out: &str| std::fs::read(scene.path(out).join(format!("checkpoints/{checkpoint}.safetensors")));
        assert!(bytes(&whole).unwrap() == bytes(&parts).unwrap(), "{name}: {checkpoint}");
    }
    steps
}

#[test]
fn work_after_the_last_checkpoint_is_done_again_after_a_crash() {
    let scene = Scene::new();
    let run = scene.run(&[]).unwrap();
    scene.train(&run, "whole").unwrap();
    // A crash leaves the last checkpoint and a log that is ahead of it, cut off in the middle of a line.
    train(&run, &scene.options("crashed", Start::Fresh(Overwrite::Never)), &stopping_at(4)).unwrap();
    let log = scene.path("crashed").join("metrics.jsonl");
    std::fs::write(&log, format!("{}{{\"step\":6,\"loss\":1}}\n{{\"step\":7,\"lo", text(&log))).unwrap();
    let resumed = train(&run, &scene.options("crashed", Start::Resume), &Progress::new()).unwrap();
    assert!(!resumed.stopped);
    assert_eq!(text(&log), text(&scene.path("whole").join("metrics.jsonl")));
}

#[test]
fn a_folder_is_not_overwritten_and_not_resumed_under_other_settings() {
    let scene = Scene::new();
    let run = scene.run(&[("train.epochs", "1")]).unwrap();
    scene.train(&run, "run").unwrap();
    let error = scene.train(&run, "run").unwrap_err();
    assert!(
        error.to_string().contains("holds a run already")
            && error.advice_in(Dialect::Terminal).unwrap().contains("--resume"),
        "{error}"
    );
    let other = scene.run(&[("train.epochs", "1"), ("train.rate", "1e-4")]).unwrap();
    let error = train(&other, &scene.options("run", Start::Resume), &Progress::new()).unwrap_err();
    assert!(error.to_string().contains("other settings"), "{error}");
}

#[test]
fn long_videos_are_searched_in_stretches() {
    let scene = Scene::new();
    scene.train(&scene.run(&[("train.epochs", "1")]).unwrap(), "run").unwrap();
    let trained = Trained::open(&RunFolder::new(scene.path("run")), &Device::Cpu).unwrap();
    let split = trained.run.data.split("test-iid").unwrap();
    let options =
        PredictOptions { answers: 20, batch: 7, among: Among::Own, window: Some(10.0), variant: FeatureVariant::Seen };
    let predicted = trained.predict(&split, &options, &Progress::new()).unwrap();
    let lists = &predicted.predictions.tasks[0].queries;
    assert_eq!(lists.len(), split.queries.len());
    for (list, truth) in lists.iter().zip(&split.queries) {
        let duration = truth.duration().unwrap();
        assert!(
            list.ranked
                .iter()
                .all(|prediction| prediction.span.len() <= 10.0 + 1e-9 && prediction.span.end() <= duration)
        );
        // Some answer lies in the last ten seconds, which the first stretch does not reach.
        assert!(list.ranked.iter().any(|prediction| prediction.span.start() >= duration - 11.0));
    }
}

#[test]
fn pools_are_searched_pair_by_pair_when_a_model_cannot_do_better() {
    let scene = Scene::new();
    scene.train(&scene.run(&[("train.epochs", "1")]).unwrap(), "run").unwrap();
    let trained = Trained::open(&RunFolder::new(scene.path("run")), &Device::Cpu).unwrap();
    let mut split = trained.run.data.split("test-iid").unwrap();
    let pool: Vec<_> = split.videos.iter().map(|video| video.id.clone()).collect();
    split.queries.truncate(3);
    split.queries.iter_mut().for_each(|truth| truth.pool = Some(pool.clone()));
    let options =
        PredictOptions { answers: 100, batch: 7, among: Among::Pool, window: None, variant: FeatureVariant::Seen };
    let predicted = trained.predict(&split, &options, &Progress::new()).unwrap();
    for list in &predicted.predictions.tasks[0].queries {
        assert!(list.ranked.is_sorted_by(|a, b| a.score >= b.score));
        let videos: std::collections::BTreeSet<_> =
            list.ranked.iter().filter_map(|prediction| prediction.video.clone()).collect();
        assert!(videos.len() > 1);
    }
}

/// Queries that search the same videos are asked together, four of them here and a fifth of others; each is answered as it is alone.
#[test]
fn a_query_is_answered_the_same_whoever_is_asked_with_it() {
    let scene = Scene::new();
    let searching = [("train.epochs", "1"), ("model", XML)];
    scene.train(&scene.run(&searching).unwrap(), "run").unwrap();
    let trained = Trained::open(&RunFolder::new(scene.path("run")), &Device::Cpu).unwrap();
    let mut split = trained.run.data.split("train").unwrap();
    let pool: Vec<_> = split.videos.iter().map(|video| video.id.clone()).collect();
    split.queries.truncate(5);
    split.queries.iter_mut().for_each(|truth| truth.pool = Some(pool.clone()));
    split.queries[2].pool = Some(pool[3..].to_vec());
    // So few that most videos have nothing to add to them.
    let options =
        PredictOptions { answers: 3, batch: 7, among: Among::Pool, window: None, variant: FeatureVariant::Seen };
    let answers = |queries: Vec<cuemark_core::Truth>| {
        let asked = cuemark_core::Split { queries, ..split.clone() };
        trained.predict(&asked, &options, &Progress::new()).unwrap().predictions.tasks.remove(0).queries
    };
    let together = answers(split.queries.clone());
    assert_eq!(together.len(), 5);
    for (truth, found) in split.queries.iter().zip(together) {
        let alone = answers(vec![truth.clone()]).remove(0);
        assert_eq!((found.ranked.len(), alone.ranked.len()), (3, 3));
        for (found, alone) in found.ranked.iter().zip(&alone.ranked) {
            assert_eq!((&found.video, found.span), (&alone.video, alone.span));
            assert!((found.score.unwrap() - alone.score.unwrap()).abs() <= 1e-5 * alone.score.unwrap().abs());
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    let scene = Scene::new();
    let says = |more: &[(&str, &str)], words: &str| {
        let error = scene.run(more).and_then(|run| scene.train(&run, "run")).unwrap_err();
        assert!(!scene.path("run").exists(), "{more:?}: something was written before all was found to be there");
        assert!(error.to_string().contains(words), "{more:?}: {error}");
        assert!(error.advice().is_some() || error.to_string().contains("it has"), "{error}");
    };
    says(&[("model.name", "2d-tann")], "no model `2d-tann`");
    says(&[("model.hiden", "3")], "hiden");
    says(&[("data.features", "nowhere")], "nowhere");
    says(&[("data.stream", "smell")], "smell");
    says(&[("data.val", "nothing")], "nothing.jsonl");
    says(&[("model.map", "{ pre_clips = 8, clips = 8, counts = [9] }")], "pooling counts [9]");

    let empty = scene.path("empty.jsonl");
    std::fs::write(&empty, "").unwrap();
    says(&[("data.train", empty.as_str())], "empty.jsonl");
    let stranger = scene.path("stranger.jsonl");
    std::fs::write(&stranger, r#"{"qid":"1","query":"a ball spins","video":"stranger","duration":9,"spans":[[1,2]]}"#)
        .unwrap();
    says(&[("data.train", stranger.as_str())], "stranger");
}

/// Writes `number` into the second row of what the world's store holds of the video that is asked about last, whose features
/// nobody looks at before they are put into a batch; returns the tensor's name.
fn spoil(scene: &Scene, number: f32) -> String {
    let query = text(&scene.path("world/splits/train.jsonl"));
    let query: serde_json::Value = serde_json::from_str(query.lines().last().unwrap()).unwrap();
    let tensor = format!("visual/{}", query["video"].as_str().unwrap());
    let shard = scene.path("world/features-motion/shard-00000.safetensors");
    let mut bytes = std::fs::read(&shard).unwrap();
    let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let listed: serde_json::Value = serde_json::from_slice(&bytes[8..data]).unwrap();
    let entry = &listed[&tensor];
    assert_eq!(entry["dtype"], "F32");
    let [first, width] = [&entry["data_offsets"][0], &entry["shape"][1]].map(|value| value.as_u64().unwrap() as usize);
    let place = data + first + 4 * width;
    bytes[place..place + 4].copy_from_slice(&number.to_le_bytes());
    std::fs::write(&shard, &bytes).unwrap();
    tensor
}

/// Let in, such a number would reach every weight in one step and show only as a loss that is none.
#[test]
fn a_video_whose_features_are_not_finite_is_named_and_not_learnt_from() {
    for number in [f32::NAN, f32::NEG_INFINITY] {
        let scene = Scene::new();
        let tensor = spoil(&scene, number);
        let error = scene.train(&scene.run(&[]).unwrap(), "run").unwrap_err();
        let words = format!("`{tensor}`: row 1 holds a number that is not finite");
        assert!(error.to_string().ends_with(&words), "{error}");
        assert!(
            error.advice_in(Dialect::Terminal).is_some_and(|hint| hint.contains("extract this video's features again"))
        );
        assert!(!scene.path("run/checkpoints/last.safetensors").exists());
    }
}

#[test]
fn a_checkpoint_of_another_model_or_half_of_one_is_refused() {
    let scene = Scene::new();
    scene.train(&scene.run(&[("train.epochs", "1")]).unwrap(), "run").unwrap();
    let folder = scene.path("run");
    let best = folder.join("checkpoints/best.safetensors");
    let bytes = std::fs::read(&best).unwrap();
    let open = || Trained::open(&RunFolder::new(folder.clone()), &Device::Cpu).map(|_| ()).unwrap_err().to_string();
    std::fs::write(&best, &bytes[..bytes.len() / 2]).unwrap();
    assert!(open().contains("is damaged"), "{}", open());
    let renamed = bytes.windows(6).position(|window| window == b"2d-tan").unwrap();
    let mut other = bytes.clone();
    other[renamed..renamed + 6].copy_from_slice(b"ranet!");
    std::fs::write(&best, &other).unwrap();
    assert!(open().contains("its checksum is another"), "{}", open());
    // Whole, but of another model: with the checksum that belongs to it.
    let key = other.windows(6).position(|window| window == b"sha256").unwrap() + 6;
    let digits = key + other[key..].iter().position(u8::is_ascii_hexdigit).unwrap();
    other[digits..digits + 64].fill(b'0');
    let sum = Sha256::digest(&other);
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    other[digits..digits + 64].copy_from_slice(sum.as_bytes());
    std::fs::write(&best, &other).unwrap();
    assert!(open().contains("is a checkpoint of `ranet!`"), "{}", open());
}

#[test]
fn stopping_is_asked_for_from_outside() {
    let scene = Scene::new();
    let progress = Progress::new();
    progress.stop();
    let options = scene.options("run", Start::Fresh(Overwrite::Never));
    let outcome = train(&scene.run(&[]).unwrap(), &options, &progress).unwrap();
    assert!(outcome.stopped && outcome.steps == 1);
    let seen = progress.look();
    assert_eq!((seen.phase.as_ref(), seen.done, seen.total), ("training", 1, outcome.begun.steps));
    assert!(seen.remark.starts_with("loss "), "{seen:?}");
    assert!(progress.heard()[0].contains(" parameters, "));
}

const XML: &str = "{ name = 'xml', clips = 40, words = 24, hidden = 16, heads = 2, pairs = { min = 0, max = 39 } }";

const CNM: &str =
    "{ name = 'cnm', clips = 16, keep_every = 2, hidden = 16, ffn = 16, clip_layers = 1, word_layers = 1 }";
const CPL: &str =
    "{ name = 'cpl', clips = 16, keep_every = 2, hidden = 16, ffn = 16, clip_layers = 1, word_layers = 1 }";

/// The training queries of the world, changed line by line, as a file.
fn changed(scene: &Scene, name: &str, change: impl Fn(usize, &mut serde_json::Value)) -> Utf8PathBuf {
    let lines = text(&scene.path("world/splits/train.jsonl"));
    let change = |(number, line): (usize, &str)| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        change(number, &mut line);
        format!("{line}\n")
    };
    let path = scene.path(name);
    std::fs::write(&path, lines.lines().enumerate().map(change).collect::<String>()).unwrap();
    path
}

/// Spans that lie elsewhere, or are not there at all, change not one loss: nothing of them reaches a weak model.
#[test]
fn weak_models_learn_the_same_wherever_the_spans_lie_and_without_any() {
    let scene = Scene::new();
    let moved = changed(&scene, "moved.jsonl", |_, line| line["spans"] = serde_json::json!([[0.0, 0.5]]));
    let none = changed(&scene, "none.jsonl", |_, line| line["spans"] = serde_json::json!([]));
    for (model, settings) in [("cnm", CNM), ("cpl", CPL)] {
        let trained = |train: &str| {
            let run = [("model", settings), ("data.train", train), ("train.epochs", "1"), ("eval.every", "1")];
            let out = format!("{model}-{}", train.len());
            scene.train(&scene.run(&run).unwrap(), &out).unwrap();
            losses(&scene.path(&out))
        };
        let given = trained("train");
        assert!(given.len() > 3, "{given:?}");
        assert_eq!(given, trained(moved.as_str()), "{model}");
        assert_eq!(given, trained(none.as_str()), "{model}");
    }
}

/// Every query with its own moment and, half as like, that of the query before it.
#[test]
fn a_pseudo_set_is_learnt_moment_by_moment() {
    let scene = Scene::new();
    let lines = text(&scene.path("world/splits/train.jsonl"));
    let queries: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let moment = |number: usize, similarity: f64| {
        let query = &queries[number % queries.len()];
        serde_json::json!({ "video": query["video"], "span": query["spans"][0], "similarity": similarity })
    };
    let pseudo = changed(&scene, "pseudo.jsonl", |number, line| {
        let moments = [moment(number, 1.0), moment(number + queries.len() - 1, 0.5)];
        *line = serde_json::json!({ "qid": line["qid"], "query": line["query"], "moments": moments });
    });
    let settings = "{ name = 'xml', clips = 40, words = 20, hidden = 16, heads = 2, pairs = { min = 0, max = 39 }, positive_mask = true }";
    let run = [("model", settings), ("data.train", pseudo.as_str()), ("train.epochs", "1"), ("eval.every", "1")];
    let run = scene.run(&run).unwrap();
    let progress = Progress::new();
    let outcome = train(&run, &scene.options("ranked", Start::Fresh(Overwrite::Never)), &progress).unwrap();
    assert_eq!(outcome.begun.examples, 2 * queries.len());
    assert!(progress.heard().iter().any(|line| line.starts_with("epoch 1.00, val: ")));
}

#[test]
fn descent_with_momentum_learns_and_is_resumed_where_it_was() {
    let scene = Scene::new();
    let more = [("train.optimiser", "sgd"), ("train.momentum", "0.8"), ("train.rate", "0.3"), ("train.epochs", "4")];
    let run = scene.run(&more).unwrap();
    scene.train(&run, "whole").unwrap();
    let whole = losses(&scene.path("whole"));
    assert!(whole[whole.len() - 1] < 0.95 * whole[0], "{whole:?}");
    train(&run, &scene.options("parts", Start::Fresh(Overwrite::Never)), &stopping_at(7)).unwrap();
    train(&run, &scene.options("parts", Start::Resume), &Progress::new()).unwrap();
    assert_eq!(losses(&scene.path("parts")), whole);
}

/// The run that we ship for a second stage, made small.
fn second_stage(scene: &Scene, more: &[(&str, &str)]) -> Result<RunFile, TrainError> {
    let root = scene.path("world");
    let short = [
        ("data.root", root.as_str()),
        ("data.word_width", "12"),
        ("model.hidden", "16"),
        ("model.heads", "2"),
        ("train.epochs", "1"),
        ("train.batch", "8"),
        ("eval.every", "1"),
    ];
    shortened("conquer/world", &[&short[..], more].concat())
}

#[test]
fn a_second_stage_learns_from_the_wrong_videos_of_a_first_one_and_other_models_refuse_it() {
    let scene = Scene::new();
    let train = scene.run(&[]).unwrap().data.split("train").unwrap();
    // One order of videos for every query.
    let list = |truth: &cuemark_core::Truth| {
        let answer = |video: &cuemark_core::Video| serde_json::json!({ "video": video.id, "span": [0.0, 1.0] });
        let all: Vec<_> = train.videos.iter().map(answer).collect();
        format!("{}\n", serde_json::json!({ "qid": truth.query.id, "predictions": all }))
    };
    let lists = scene.path("first.jsonl");
    std::fs::write(&lists, train.queries.iter().map(list).collect::<String>()).unwrap();

    let logged = |more: &[(&str, &str)], out: &str| {
        scene.train(&second_stage(&scene, more).unwrap(), out).unwrap();
        losses(&scene.path(out))
    };
    let (alone, after) = (logged(&[], "alone"), logged(&[("data.first_stage", lists.as_str())], "after"));
    assert!(after.len() > 1 && after.iter().all(|loss| loss.is_finite()), "{after:?}");
    assert_ne!(alone, after, "other negatives, other losses");

    // A query without a list is named; a model that nothing stands before says so.
    let text = text(&lists);
    std::fs::write(&lists, text.split_once('\n').unwrap().1).unwrap();
    let first = train.queries[0].query.id.to_string();
    let short = second_stage(&scene, &[("data.first_stage", lists.as_str())]).unwrap();
    let refused = scene.train(&short, "short").unwrap_err().to_string();
    assert!(refused.contains(&format!("query `{first}`")), "{refused}");
    let other = scene.run(&[("data.first_stage", lists.as_str())]).unwrap();
    let refused = scene.train(&other, "other").unwrap_err().to_string();
    assert!(refused.contains("`2d-tan` draws no negatives"), "{refused}");
}
