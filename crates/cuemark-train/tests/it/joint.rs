//! Models of moments and highlights on a small world: each learns, answers with spans and clip scores, and what is wrong with
//! its input is named.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise as _, ClipLen, Predictions, Progress, Rng, VideoId};
use cuemark_features::{FeatureVariant, Features, Recipe, RowTime, StoreWriter, VideoFeatures};
use cuemark_formats::{
    Overwrite, PredictionFormat, PredictionOptions, Source, WholeFile, read_predictions, write_predictions,
};
use cuemark_metrics::{Overrides, Plan, Preset, evaluate};
use cuemark_tensor::Device;
use cuemark_train::{
    Among, Outcome, PredictOptions, RunFile, RunFolder, Start, TrainError, TrainOptions, Trained, train,
};
use cuemark_world::{WorldOptions, make};

use crate::shipped::shortened;

const MODELS: [&str; 8] = ["moment-detr", "qd-detr", "eatr", "cg-detr", "tr-detr", "uvcom", "taskweave", "univtg"];

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let options = WorldOptions { videos: 24, ..WorldOptions::default() };
        make(&options, &scene.path("world"), &Progress::new()).unwrap();
        scene
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join(name)
    }

    /// The run file that we ship for the world, shortened.
    fn run(&self, model: &str, more: &[(&str, &str)]) -> Result<RunFile, TrainError> {
        let root = self.path("world");
        let short = [
            ("data.root", root.as_str()),
            ("data.word_width", "12"),
            ("model.network", "{ hidden = 16, heads = 2, ffn = 24, dropout = 0.0, input_dropout = 0.0 }"),
            ("train.epochs", "1"),
            ("train.batch", "8"),
            ("train.rate", "2e-3"),
        ];
        shortened(&format!("{model}/world"), &[&short[..], more].concat())
    }

    fn train(&self, run: &RunFile, out: &str) -> Result<Outcome, TrainError> {
        let folder = RunFolder::new(self.path(out));
        let start = Start::Fresh(Overwrite::Never);
        let options = TrainOptions { device: Device::Cpu, folder, start, nearness: None };
        train(run, &options, &Progress::new())
    }
}

fn text(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

const OWN: PredictOptions =
    PredictOptions { answers: 10, batch: 5, among: Among::Own, window: None, variant: FeatureVariant::Seen };

/// What a submission in the layout of QVHighlights keeps of predictions.
fn as_submission(scene: &Scene, predictions: &Predictions) -> Predictions {
    let path = scene.path("submission.jsonl");
    let mut file = WholeFile::create(path.clone(), Overwrite::Force).unwrap();
    write_predictions(predictions, PredictionFormat::QvHighlights, &mut file).unwrap();
    file.finish().unwrap();
    assert!(text(&path).lines().all(|line| line.contains("\"pred_saliency_scores\":[")));
    read_predictions(&Source::new(path), &PredictionOptions::default()).unwrap().1
}

#[test]
fn each_of_the_eight_learns_on_the_world_and_scores_every_clip() {
    let scene = Scene::new();
    for model in MODELS {
        let more: &[(&str, &str)] = if model == "cg-detr" { &[("model.text_heads", "2")] } else { &[] };
        let run = scene.run(model, more).unwrap();
        let outcome = scene.train(&run, model).unwrap();
        assert!(outcome.steps > 1 && outcome.best.is_some(), "{model}");
        let trained = Trained::open(&RunFolder::new(scene.path(model)), &Device::Cpu).unwrap();
        let split = trained.run.data.split("val").unwrap();
        let predicted = trained.predict(&split, &OWN, &Progress::new()).unwrap().predictions;
        for (list, truth) in predicted.tasks[0].queries.iter().zip(&split.queries) {
            let saliency = list.saliency.as_ref().unwrap();
            assert!(saliency.iter().all(|score| score.is_finite()), "{model}");
            // Features have a row a second, people rated two seconds at a time.
            assert_eq!(saliency.len(), (truth.duration().unwrap() / 2.0) as usize, "{model}");
            assert!(!list.ranked.is_empty(), "{model}");
        }
        let again = as_submission(&scene, &predicted);
        assert_eq!(again.tasks[0].queries.len(), split.queries.len());
        assert_eq!(again.rows, cuemark_core::RowCounts::default(), "{model}: nothing is read differently");
        let scores = |of: &Predictions| of.tasks[0].queries[0].saliency.clone().unwrap();
        assert_eq!(scores(&again), scores(&predicted), "{model}");
    }
}

/// The mean of two metrics of highlights over a split.
fn highlights(truths: &[cuemark_core::Truth], predictions: &Predictions) -> [f64; 2] {
    let names = ["HL-mAP/VeryGood", "HL-Hit1/VeryGood"];
    let metrics = names.iter().flat_map(|name| cuemark_metrics::parse_list(name).unwrap()).collect();
    let scored = evaluate(&Plan::plain(metrics, Overrides::default()), truths, predictions, &Progress::new()).unwrap();
    [0, 1].map(|column| scored.columns[column].mean().unwrap())
}

#[test]
fn the_worlds_clip_ratings_reach_runs_and_the_oracle_knows_them() {
    let scene = Scene::new();
    let data = scene.run("qd-detr", &[]).unwrap().data;
    for name in ["train", "val", "test-ood"] {
        let split = data.split(name).unwrap();
        assert_eq!(split.name, name);
        assert!(
            split.queries.iter().all(|truth| truth.highlights.as_ref().is_some_and(|rated| !rated.clips.is_empty()))
        );
        assert!(split.queries.iter().all(|truth| truth.kind.is_some()), "what the split says of its queries stays");
        let oracle = cuemark_world::oracle(&scene.path("world"), name).unwrap();
        let [precision, hit] = highlights(&split.queries, &oracle);
        let mut flat = oracle.clone();
        for list in &mut flat.tasks[0].queries {
            list.saliency = list.saliency.as_ref().map(|scores| vec![0.0; scores.len()]);
        }
        let [chance, _] = highlights(&split.queries, &flat);
        assert!(precision > 0.5 && hit > 0.7 && chance < 0.35, "{name}: {precision}, {hit}, {chance}");
    }
    std::fs::remove_dir_all(scene.path("world/highlights")).unwrap();
    assert!(data.split("val").unwrap().queries.iter().all(|truth| truth.highlights.is_none()), "a world of before");
}

#[test]
fn ratings_of_another_world_are_refused() {
    let scene = Scene::new();
    let path = scene.path("world/highlights/val.jsonl");
    let fewer = text(&path).split_once('\n').unwrap().1.to_owned();
    std::fs::write(&path, fewer).unwrap();
    let error = scene.run("qd-detr", &[]).unwrap().data.split("val").unwrap_err();
    assert!(error.to_string().contains("has no ratings for query `film"), "{error}");
    assert!(error.advice().is_some());
}

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

#[test]
fn a_query_without_words_is_named_and_not_learnt_from() {
    let scene = Scene::new();
    let mute = changed(&scene, "mute.jsonl", |number, line| {
        if number == 3 {
            line["query"] = "…".into();
            line["qid"] = "mute".into();
        }
    });
    let error = scene.train(&scene.run("moment-detr", &[("data.train", mute.as_str())]).unwrap(), "run").unwrap_err();
    assert!(error.to_string().contains("query `mute`: has no word"), "{error}");
}

/// Sizes of features shaped like those of QVHighlights.
const STREAMS: [(&str, usize); 4] = [("slowfast", 6), ("clip", 4), ("pann", 5), ("clip-text", 7)];
/// Clips of a video, two seconds each.
const CLIPS: usize = 12;

/// Annotations and features in the layout of QVHighlights, of our own making: in the clips that people liked, features are
/// shifted. `rows` says how many rows a video has of a stream.
fn write_vlogs(scene: &Scene, rows: impl Fn(&str, usize) -> usize) {
    let mut rng = Rng::new(3);
    let mut features = Vec::new();
    let root = scene.path("vlogs");
    std::fs::create_dir_all(&root).unwrap();
    for (file, first, count) in [("highlight_train_release", 0, 12), ("highlight_val_release", 12, 4)] {
        let mut lines = String::new();
        for number in first..first + count {
            let (start, other) = (number % 5, 9);
            let liked: Vec<usize> = (start..start + 3).chain([other]).collect();
            let grades: Vec<[usize; 3]> = liked.iter().map(|clip| [clip % 5, 4, 2]).collect();
            let line = serde_json::json!({
                "qid": number, "query": "a dog runs", "duration": 2 * CLIPS, "vid": format!("tube{number}_0.0_24.0"),
                "relevant_windows": [[2 * start, 2 * start + 6], [2 * other, 2 * other + 2]],
                "relevant_clip_ids": liked, "saliency_scores": grades,
            });
            lines.push_str(&format!("{line}\n"));
            let mut made = |name: &str, width: usize, rows: usize| {
                let value = |place: usize| {
                    let shift = if liked.contains(&(place / width)) { 1.0 } else { 0.0 };
                    (shift + 0.3 * rng.normal()) as f32
                };
                (name.to_owned(), Features::new(rows, width, (0..rows * width).map(value).collect()).unwrap())
            };
            let streams = STREAMS[..3].iter().map(|(name, width)| made(name, *width, rows(name, number))).collect();
            features.push(VideoFeatures { video: VideoId::from(format!("tube{number}_0.0_24.0").as_str()), streams });
            let words = [made(STREAMS[3].0, STREAMS[3].1, 3 + number % 2)].into_iter().collect();
            features.push(VideoFeatures { video: VideoId::from(number.to_string().as_str()), streams: words });
        }
        std::fs::write(root.join(format!("{file}.jsonl")), lines).unwrap();
    }
    let recipe = |(name, width): (&str, usize)| {
        let row_time = RowTime::Clip(ClipLen::new(2.0).unwrap());
        let recipe = Recipe {
            extractor: name.to_owned(),
            weights: None,
            fps: None,
            row_time,
            width,
            resize: None,
            settings: Default::default(),
        };
        (name.to_owned(), recipe)
    };
    let recipes = STREAMS.into_iter().map(recipe).collect();
    let writer = StoreWriter::create(&scene.path("store"), recipes, Overwrite::Force).unwrap();
    writer.write_shard(0, &features).unwrap();
}

/// The run file that we ship for QVHighlights, shortened.
fn vlog_run(scene: &Scene, model: &str, file: &str) -> RunFile {
    let (root, store) = (scene.path("vlogs"), scene.path("store"));
    let mut short = vec![
        ("data.root", root.as_str()),
        ("data.features", store.as_str()),
        ("model.network", "{ hidden = 16, heads = 2, ffn = 24 }"),
        ("train.epochs", "3"),
        ("train.batch", "4"),
        ("eval.every", "1.0"),
    ];
    if model == "cg-detr" {
        short.extend([("model.text_heads", "2"), ("model.dummies", "3")]);
    }
    shortened(&format!("{model}/{file}"), &short).unwrap()
}

#[test]
fn predictions_on_vlogs_are_scored_for_both_tasks_without_a_note() {
    let scene = Scene { folder: tempfile::tempdir().unwrap() };
    write_vlogs(&scene, |_, _| CLIPS);
    let with_audio = ["qd-detr", "tr-detr", "uvcom", "taskweave"].map(|model| (model, "qvhighlights-audio"));
    for (model, file) in MODELS.map(|model| (model, "qvhighlights")).into_iter().chain(with_audio) {
        let (run, out) = (vlog_run(&scene, model, file), format!("{model}-{file}"));
        scene.train(&run, &out).unwrap_or_else(|error| panic!("{model} {file}: {error}"));
        let trained = Trained::open(&RunFolder::new(scene.path(&out)), &Device::Cpu).unwrap();
        let split = trained.run.data.split("val").unwrap();
        let predicted = trained.predict(&split, &OWN, &Progress::new()).unwrap().predictions;
        let submitted = as_submission(&scene, &predicted);
        assert!(submitted.tasks[0].queries.iter().all(|list| list.saliency.as_ref().unwrap().len() == CLIPS));
        let plan = Plan::preset(Preset::QvHighlights, None, Overrides::default());
        let scored = evaluate(&plan, &split.queries, &submitted, &Progress::new()).unwrap();
        // The toy set has no window longer than 30 s: that range alone may say that it has no query.
        let notes: Vec<&String> = scored.notes.iter().filter(|note| !note.contains("no query to score")).collect();
        assert!(notes.is_empty(), "{model}: {notes:?}");
        let column = |name: &str| scored.columns.iter().find(|column| column.name.to_string() == name).unwrap().mean();
        assert!(column("mAP").is_some() && column("HL-mAP/VeryGood").is_some(), "{model}");
    }
}

#[test]
fn audio_that_is_absent_or_too_short_is_named() {
    let scene = Scene { folder: tempfile::tempdir().unwrap() };
    write_vlogs(&scene, |stream, number| if stream == "pann" && number == 5 { CLIPS - 4 } else { CLIPS });
    let error = scene.train(&vlog_run(&scene, "qd-detr", "qvhighlights-audio"), "short").unwrap_err();
    let words = "video `tube5_0.0_24.0` has 8 rows of `pann` for 12 of `slowfast`";
    assert!(error.to_string().contains(words) && error.advice().is_some(), "{error}");
    let mut run = vlog_run(&scene, "qd-detr", "qvhighlights-audio");
    run.data.audio = Some("vggish".to_owned());
    let error = scene.train(&run, "absent").unwrap_err();
    assert!(error.to_string().contains("vggish"), "{error}");
}

#[test]
fn ratings_of_the_wrong_length_are_named_by_their_line() {
    let scene = Scene { folder: tempfile::tempdir().unwrap() };
    write_vlogs(&scene, |_, _| CLIPS);
    let path = scene.path("vlogs/highlight_train_release.jsonl");
    let damaged = text(&path).replacen("\"saliency_scores\":[", "\"saliency_scores\":[[1,1,1],", 1);
    std::fs::write(&path, damaged).unwrap();
    let error = scene.train(&vlog_run(&scene, "moment-detr", "qvhighlights"), "run").unwrap_err().to_string();
    assert!(error.contains("highlight_train_release.jsonl:1") && error.contains("saliency_scores"), "{error}");
}

/// A window that begins after the last clip cannot be learnt: it is counted, and the other one of its query still is.
#[test]
fn windows_past_the_end_are_counted_and_the_others_learnt() {
    let scene = Scene { folder: tempfile::tempdir().unwrap() };
    write_vlogs(&scene, |_, _| CLIPS);
    let mut run = vlog_run(&scene, "moment-detr", "qvhighlights");
    run.settings.insert("clips".to_owned(), toml::Value::Integer(9));
    let folder = RunFolder::new(scene.path("run"));
    let start = Start::Fresh(Overwrite::Never);
    let options = TrainOptions { device: Device::Cpu, folder, start, nearness: None };
    let progress = Progress::new();
    train(&run, &options, &progress).unwrap();
    let said = progress.heard();
    assert!(said.iter().any(|line| line.contains("12 examples")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("12 of 24 moments begin past")), "{said:?}");
}

#[test]
fn queries_longer_than_the_model_reads_are_counted_and_cut() {
    let scene = Scene::new();
    let run = scene.run("qd-detr", &[("model.words", "4")]).unwrap();
    let folder = RunFolder::new(scene.path("run"));
    let options = TrainOptions { device: Device::Cpu, folder, start: Start::Fresh(Overwrite::Never), nearness: None };
    let progress = Progress::new();
    train(&run, &options, &progress).unwrap();
    let longer = |name: &str| {
        let words = |truth: &cuemark_core::Truth| truth.query.text.split_whitespace().count();
        run.data.split(name).unwrap().queries.iter().filter(|truth| words(truth) > 4).count()
    };
    let said = progress.heard();
    let wanted = format!("cut: {} queries have more than 4 words", longer("train"));
    assert!(said.iter().any(|line| line.contains(&wanted)), "{wanted}: {said:?}");
    let trained = Trained::open(&RunFolder::new(scene.path("run")), &Device::Cpu).unwrap();
    let predicted = trained.predict(&run.data.split("val").unwrap(), &OWN, &Progress::new()).unwrap();
    assert_eq!((predicted.cut.queries, predicted.cut.words), (longer("val"), 4));
}

#[test]
fn numbers_that_are_none_are_named_by_video_and_row() {
    let scene = Scene::new();
    let folder = scene.path("clips");
    std::fs::create_dir_all(&folder).unwrap();
    let data = scene.run("univtg", &[]).unwrap().data;
    for (n, video) in ["train", "val"].iter().flat_map(|name| data.split(name).unwrap().videos).enumerate() {
        let rows =
            (0..video.duration.unwrap() as usize).map(|row| if (n, row) == (2, 5) { "0.5,nan\n" } else { "0.5,1\n" });
        std::fs::write(folder.join(format!("{}.csv", video.id)), rows.collect::<String>()).unwrap();
    }
    let more = [("data.features", folder.as_str()), ("data.stream", "x"), ("data.clip_length", "1.0")];
    let error = scene.train(&scene.run("univtg", &more).unwrap(), "run").unwrap_err().to_string();
    assert!(error.contains("film000002") && error.contains('5'), "{error}");
}

/// Every number of a checkpoint, by name.
fn weights(path: &Utf8Path) -> std::collections::BTreeMap<String, Vec<f32>> {
    let read = cuemark_models::weights::read(path, &Device::Cpu).unwrap();
    read.into_iter().map(|(name, tensor)| (name, tensor.flatten_all().unwrap().to_vec1().unwrap())).collect()
}

/// TaskWeave's card: the average is what is judged and kept, and the run can be left and taken up.
#[test]
fn a_run_that_averages_weights_keeps_the_average_as_its_best_and_resumes_with_it() {
    let scene = Scene::new();
    let plain = [("train.epochs", "2"), ("eval.every", "2.0")];
    let averaged = [plain[0], plain[1], ("train.average", "{ decay = 0.5 }")];
    scene.train(&scene.run("taskweave", &plain).unwrap(), "plain").unwrap();
    scene.train(&scene.run("taskweave", &averaged).unwrap(), "averaged").unwrap();
    let folder = |name: &str| RunFolder::new(scene.path(name));
    let (kept, last) = (weights(&folder("averaged").best()), weights(&folder("averaged").last()));
    let steps = weights(&folder("plain").last());
    for (name, numbers) in &kept {
        assert_eq!(last[name], steps[name], "{name}: averaging changes no step");
        assert_eq!(*numbers, last[&format!("average.{name}")], "{name}: the best is the average");
    }
    assert!(kept.iter().any(|(name, numbers)| *numbers != last[name]), "the average lags behind the weights");

    // Stopped after its first step and taken up again.
    let run = scene.run("taskweave", &averaged).unwrap();
    let options = |start| TrainOptions { device: Device::Cpu, folder: folder("left"), start, nearness: None };
    let progress = Progress::new();
    progress.stop();
    assert!(train(&run, &options(Start::Fresh(Overwrite::Never)), &progress).unwrap().stopped);
    train(&run, &options(Start::Resume), &Progress::new()).unwrap();
    assert_eq!(weights(&folder("left").best()), kept);
}
