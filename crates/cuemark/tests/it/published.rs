//! Checkpoints that somebody else trained: a network of every family answers with one as it did in its own run, and one that is
//! not whole answers nothing.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark::{Error, ExportModel, LoadCheckpoint, Predict, Progress, PublishedModel, Train, WeightFile};
use cuemark_core::{Advise as _, Dialect, Rng};
use cuemark_features::tensor_file::{NamedTensor, Tables, read_tables, write_safetensors, write_torch};
use cuemark_formats::Overwrite;
use cuemark_world::{WorldOptions, make};

/// One method of each family, and all eight that answer moments and highlights together. Behind each what makes it small.
const FAMILIES: [(&str, &[&str]); 16] = [
    ("2d-tan", &["model.map={ pre_clips = 8, clips = 8, counts = [7] }", "model.hidden=16", "model.layers=2"]),
    ("tgn", &["model.hidden=16", "model.attention=8"]),
    ("drn", &["model.lstm=12", "model.first=12", "model.pyramid=16", "train.stage=[{ epochs = 1 }]"]),
    ("vslnet", &["model.hidden=16", "model.heads=2"]),
    ("cnm", &["model.hidden=16", "model.ffn=16", "model.clip_layers=1", "model.word_layers=1"]),
    ("ctrl", &["model.hidden=16", "model.middle=16"]),
    ("tsp-prl", &["model.hidden=16", "model.align_hidden=[8, 4]", "model.steps=3"]),
    ("xml", &["model.hidden=16", "model.heads=2", "eval.every=1"]),
    ("moment-detr", &[SMALL]),
    ("qd-detr", &[SMALL]),
    ("eatr", &[SMALL]),
    ("cg-detr", &[SMALL, "model.text_heads=2"]),
    ("tr-detr", &[SMALL]),
    ("uvcom", &[SMALL]),
    ("taskweave", &[SMALL]),
    ("univtg", &[SMALL]),
];

const SMALL: &str = "model.network={ hidden = 16, heads = 2, ffn = 24 }";

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// A small world, and vectors for its words.
    fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let options = WorldOptions { videos: 16, length: 12.0, ..WorldOptions::default() };
        make(&options, &scene.path("world"), &Progress::new()).unwrap();
        let mut words = std::collections::BTreeSet::new();
        for split in ["train", "val", "test-iid"] {
            let truth = std::fs::read_to_string(scene.path(&format!("world/splits/{split}.jsonl"))).unwrap();
            // Every word of the file, those of its keys among them, which hurts nobody.
            words.extend(cuemark_text::words_of(&truth));
        }
        let mut rng = Rng::new(3);
        let mut line = |word: &String| {
            let numbers: Vec<String> = (0..12).map(|_| format!("{:.4}", rng.normal())).collect();
            format!("{word} {}\n", numbers.join(" "))
        };
        std::fs::write(scene.path("words.txt"), words.iter().map(&mut line).collect::<String>()).unwrap();
        scene
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join(name)
    }

    /// One epoch of the run that we ship for the world, made small.
    fn train(&self, model: &str, small: &[&str]) {
        let file = format!("{}/../../runs/{model}/world.toml", env!("CARGO_MANIFEST_DIR"));
        let mut train = Train::new(file);
        train.out = Some(self.path(model));
        let all = ["train.epochs=1", "train.batch=16"].iter().chain(small).map(|set| (*set).to_owned());
        train.set = all.collect();
        train.set.push(format!("data.root={}", self.path("world")));
        if !small.iter().any(|set| set.starts_with("data.text")) {
            train.set.push(format!("data.words={}", self.path("words.txt")));
        }
        train.run(&Progress::new()).unwrap_or_else(|error| panic!("{model}: {error}"));
    }

    /// What our export writes, by the names of the authors' code.
    fn exported(&self, model: &str) -> BTreeMap<String, NamedTensor> {
        let mut export = ExportModel::new(self.path(model));
        export.out = Some(self.path(&format!("{model}.pt")));
        (export.to, export.force) = (WeightFile::Pytorch, true);
        let written = export.run(&Progress::new()).unwrap();
        read_tables(&written.path, Tables::All).unwrap()
    }

    /// The answers to the test split by the weights of a file.
    fn answers(&self, published: PublishedModel, out: &str) -> Result<String, Error> {
        let mut predict = Predict::with_checkpoint(published, "", self.path(out));
        (predict.truth, predict.model.split, predict.force) = (None, Some("test-iid".to_owned()), true);
        predict.run(&Progress::new())?;
        Ok(std::fs::read_to_string(self.path(out)).unwrap())
    }

    fn config(&self, model: &str, file: &Utf8Path) -> PublishedModel {
        PublishedModel { config: Some(self.path(model).join("run.toml")), ..PublishedModel::new(model, file) }
    }
}

/// The names as data-parallel training leaves them.
fn in_parallel(tensors: BTreeMap<String, NamedTensor>) -> BTreeMap<String, NamedTensor> {
    tensors.into_iter().map(|(name, tensor)| (format!("module.{name}"), tensor)).collect()
}

/// Trains, exports, renames, and holds the answers of the checkpoint to those of the run; the checkpoint's kind is `file`'s.
fn assert_answers_as_its_run(scene: &Scene, model: &str, small: &[&str], file: &str) {
    scene.train(model, small);
    let own = Predict::with_run(scene.path(model), "test-iid", scene.path("own.jsonl"));
    Predict { force: true, ..own }.run(&Progress::new()).unwrap();
    let own = std::fs::read_to_string(scene.path("own.jsonl")).unwrap();

    let named = in_parallel(scene.exported(model));
    let file = scene.path(file);
    match file.extension() {
        Some("pt") => write_torch(&file, Overwrite::Force, &named).unwrap(),
        _ => write_safetensors(&file, Overwrite::Force, &named).unwrap(),
    }
    let answers = scene.answers(scene.config(model, &file), "theirs.jsonl");
    let answers = answers.unwrap_or_else(|error| panic!("{model}: {error}"));
    assert_eq!(answers.lines().count(), own.lines().count(), "{model}");
    assert!(answers == own, "{model}: other answers than its own run gives");
}

#[test]
fn a_checkpoint_of_every_family_answers_as_the_run_that_it_came_from() {
    let scene = Scene::new();
    for (number, (model, small)) in FAMILIES.into_iter().enumerate() {
        let file = if number % 2 == 0 { "checkpoint.pt" } else { "checkpoint.safetensors" };
        assert_answers_as_its_run(&scene, model, small, file);
    }
}

#[test]
fn a_checkpoint_with_a_fine_tuned_sentence_encoder_answers_as_the_run_that_it_came_from() {
    let scene = Scene::new();
    let encoder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/encoders/tiny-distilbert");
    let text = format!("data.text={{ encoder = '{encoder}', training = 'fine-tuned' }}");
    let small = ["model.network.hidden=16", "model.network.joint=12", "model.network.layers=1", &text];
    assert_answers_as_its_run(&scene, "mmn", &small, "checkpoint.pt");
}

#[test]
fn a_checkpoint_that_is_not_whole_is_refused_with_its_table_and_answers_nothing() {
    let scene = Scene::new();
    for (model, small) in [FAMILIES[0], FAMILIES[9]] {
        scene.train(model, small);
        let whole = in_parallel(scene.exported(model));
        let file = scene.path("damaged.pt");
        let name = whole.keys().find(|name| name.ends_with(".weight")).unwrap().clone();
        let bare = name.trim_start_matches("module.");
        let refused = |tensors: &BTreeMap<String, NamedTensor>| {
            write_torch(&file, Overwrite::Force, tensors).unwrap();
            let error = scene.answers(scene.config(model, &file), "none.jsonl").unwrap_err();
            assert!(matches!(error, Error::Checkpoint { .. }), "{model}: {error}");
            assert!(!scene.path("none.jsonl").exists(), "{model}: nothing is answered");
            error
        };
        let row = |error: &Error, verdict: &str| {
            let text = error.to_string();
            assert!(text.lines().any(|line| line.starts_with(bare) && line.contains(verdict)), "{model}: {text}");
            assert!(text.contains("NOT a checkpoint of"), "{text}");
        };

        let mut lacking = whole.clone();
        lacking.remove(&name);
        let error = refused(&lacking);
        row(&error, "missing in the file");
        assert!(error.advice_in(Dialect::Terminal).unwrap().contains("--allow-missing"), "{error}");
        // Where somebody said that it may be, it is drawn anew.
        let mut allowed = scene.config(model, &file);
        allowed.allow_missing.push(bare.to_owned());
        let drawn = scene.answers(allowed, "drawn.jsonl").unwrap();
        assert!(drawn.lines().count() > 1, "{model}");

        let mut misshaped = whole.clone();
        misshaped.insert(name.clone(), NamedTensor { shape: vec![2, 3], values: vec![0.0; 6] });
        row(&refused(&misshaped), "misshaped: the network wants");

        let mut more = whole.clone();
        more.insert("module.more.weight".to_owned(), NamedTensor { shape: vec![1], values: vec![0.0] });
        let text = refused(&more).to_string();
        assert!(text.contains("more.weight  ") && text.contains("1 extra"), "{text}");
        assert!(text.contains("dropped before every name: module."), "{text}");

        // The same verdict, asked without answering.
        let mut load = LoadCheckpoint::new(model, &file);
        load.config = Some(scene.path(model).join("run.toml"));
        assert!(!load.run(&Progress::new()).unwrap().whole);
    }
}

#[test]
fn without_a_run_file_the_shapes_of_the_checkpoint_say_how_large_the_network_is() {
    let scene = Scene::new();
    scene.train("2d-tan", FAMILIES[0].1);
    scene.exported("2d-tan");
    let truth = scene.path("world/splits/test-iid.jsonl");
    let published = PublishedModel::new("2d-tan", scene.path("2d-tan.pt"));
    let mut predict = Predict::with_checkpoint(published, &truth, scene.path("p.jsonl"));
    let refused = predict.run(&Progress::new()).unwrap_err();
    assert!(refused.advice_in(Dialect::Terminal).unwrap().contains("--features"), "{refused}");
    predict.model.features = Some(scene.path("world/features-motion"));
    let refused = predict.run(&Progress::new()).unwrap_err();
    assert!(refused.to_string().contains("no checkpoint holds any"), "{refused}");
    predict.published.as_mut().unwrap().set.push(format!("data.words={}", scene.path("words.txt")));
    predict.run(&Progress::new()).unwrap();
    let lines = |path: &Utf8Path| std::fs::read_to_string(path).unwrap().lines().count();
    assert_eq!(lines(&scene.path("p.jsonl")), lines(&truth));
}

#[test]
fn a_run_file_of_another_method_is_refused() {
    let scene = Scene::new();
    let file = scene.path("any.pt");
    let published = PublishedModel {
        config: Some(format!("{}/../../runs/tgn/world.toml", env!("CARGO_MANIFEST_DIR")).into()),
        ..PublishedModel::new("2d-tan", &file)
    };
    let refused = scene.answers(published, "p.jsonl").unwrap_err();
    assert!(matches!(refused, Error::Setting { setting: "config", .. }), "{refused}");
}
