//! Runs whose queries a published text encoder reads: frozen, fine-tuned inside a model and in front of one, stopped and resumed.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{ClipLen, Progress, VideoId};
use cuemark_encoders::text::Pretrained;
use cuemark_features::{FeatureVariant, Features, Recipe, RowTime, StoreWriter, VideoFeatures};
use cuemark_formats::Overwrite;
use cuemark_tensor::Device;
use cuemark_testkit::fixture;
use cuemark_train::{
    Among, Outcome, PredictOptions, RunFile, RunFolder, Start, TrainError, TrainOptions, Trained, train,
};
use cuemark_world::{WorldOptions, make};

const MMN: &str = "
    [model]
    name = 'mmn'
    [model.network]
    map = { pre_clips = 8, clips = 8, counts = [7] }
    hidden = 16
    joint = 12
    kernel = 3
    layers = 1
    [model.matching]
    margin = 0.1
";

const XML: &str = "
    [model]
    name = 'xml'
    hidden = 16
    heads = 2
";

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let options = WorldOptions { videos: 30, ..WorldOptions::default() };
        make(&options, &scene.path("world"), &Progress::new()).unwrap();
        scene
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join(name)
    }

    /// A run of `model` with `data` added to `[data]`.
    fn run(&self, model: &str, data: &str) -> Result<RunFile, TrainError> {
        let (world, cache) = (self.path("world"), self.path("cache"));
        let data = data.replace("CACHE", cache.as_str());
        let text = format!(
            "{model}
            [data]
            dataset = 'world'
            root = '{world}'
            {data}
            [train]
            epochs = 2
            batch = 8
            rate = 3e-3
            seed = 5
            [eval]
            every = 1.0"
        );
        RunFile::from_table("run.toml", text.parse().unwrap(), &[])
    }

    fn train(&self, run: &RunFile, out: &str) -> Result<Outcome, TrainError> {
        train(run, &self.options(out, Start::Fresh(Overwrite::Never)), &Progress::new())
    }

    fn options(&self, out: &str, start: Start) -> TrainOptions {
        TrainOptions { device: Device::Cpu, folder: RunFolder::new(self.path(out)), start, nearness: None }
    }

    fn log(&self, out: &str) -> String {
        std::fs::read_to_string(self.path(out).join("metrics.jsonl")).unwrap()
    }
}

fn text(encoder: &str, training: &str) -> String {
    let encoder = fixture("encoders").join(encoder);
    format!("text = {{ encoder = '{encoder}', training = '{training}', cache = 'CACHE' }}")
}

fn refused(run: Result<RunFile, TrainError>) -> String {
    run.expect_err("should be refused").to_string()
}

/// The largest difference between the parameters of a checkpoint that begin with `prefix` and the published ones.
fn moved(folder: &Utf8Path, prefix: &str, encoder: &str) -> f32 {
    let published = Pretrained::open(fixture("encoders").join(encoder).as_str(), None, None).unwrap();
    let path = folder.join("checkpoints/last.safetensors");
    let found = cuemark_models::weights::read(&path, &Device::Cpu).unwrap();
    let mut largest = 0f32;
    let mut seen = 0;
    for (name, tensor) in published.parameters().unwrap() {
        let Some(own) = found.get(&format!("{prefix}{name}")) else { continue };
        seen += 1;
        let gap = (own - tensor).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
        largest = largest.max(gap.to_scalar::<f32>().unwrap());
    }
    assert!(seen > 30, "{seen} parameters of {encoder} in the checkpoint");
    largest
}

#[test]
fn a_fine_tuned_encoder_learns_and_a_run_with_one_resumes_as_if_it_had_not_been_stopped() {
    let scene = Scene::new();
    let run = scene.run(MMN, &text("tiny-distilbert", "fine-tuned")).unwrap();
    let whole = scene.train(&run, "whole").unwrap();
    assert!(whole.steps > 3 && !whole.stopped);
    assert!(moved(&scene.path("whole"), "text_encoder.bert.", "tiny-distilbert") > 1e-4);

    let progress = Progress::new();
    progress.stop_at(3);
    let stopped = train(&run, &scene.options("parts", Start::Fresh(Overwrite::Never)), &progress).unwrap();
    assert!(stopped.stopped && stopped.steps < whole.steps);
    train(&run, &scene.options("parts", Start::Resume), &Progress::new()).unwrap();
    assert_eq!(scene.log("whole"), scene.log("parts"));

    // Its best checkpoint, read back, answers as it did while training.
    let trained = Trained::open(&RunFolder::new(scene.path("whole")), &Device::Cpu).unwrap();
    let split = trained.run.data.split("val").unwrap();
    let options =
        PredictOptions { answers: 10, batch: 64, among: Among::Own, window: None, variant: FeatureVariant::Seen };
    let predicted = trained.predict(&split, &options, &Progress::new()).unwrap();
    let path = scene.path("again.jsonl");
    let mut file = cuemark_formats::WholeFile::create(path.clone(), Overwrite::Never).unwrap();
    let format = cuemark_formats::PredictionFormat::Cuemark;
    cuemark_formats::write_predictions(&predicted.predictions, format, &mut file).unwrap();
    file.finish().unwrap();
    let read = |path: &Utf8Path| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(&path), read(&scene.path("whole").join("predictions.jsonl")));
}

#[test]
fn an_encoder_stays_as_published_in_the_epochs_in_which_the_recipe_freezes_it() {
    let scene = Scene::new();
    let model = MMN.replace("name = 'mmn'", "name = 'mmn'\ntext = { frozen_epochs = 2 }");
    let run = scene.run(&model, &text("tiny-simcse", "fine-tuned")).unwrap();
    scene.train(&run, "run").unwrap();
    assert_eq!(moved(&scene.path("run"), "text_encoder.bert.", "tiny-simcse"), 0.0);
}

#[test]
fn every_model_that_reads_tokens_trains_with_a_frozen_and_with_a_fine_tuned_encoder() {
    let scene = Scene::new();
    let trm = MMN.replace("name = 'mmn'", "name = 'trm'\nphrases = { most = 3 }");
    let rmmn = MMN.replace("name = 'mmn'", "name = 'rmmn'");
    let [cet, bet] = ["cet", "bet"]
        .map(|name| format!("[model]\nname = '{name}'\nclips = 8\nhidden = 16\nheads = 2\nffn = 16\nlayers = 1"));
    for (name, model) in [("mmn", MMN), ("trm", &trm), ("rmmn", &rmmn), ("cet", &cet), ("bet", &bet)] {
        for (encoder, training) in [("tiny-roberta", "frozen"), ("tiny-distilbert", "fine-tuned")] {
            let run = scene.run(model, &text(encoder, training)).unwrap();
            let outcome = scene.train(&run, &format!("{name}-{training}")).unwrap();
            assert!(outcome.best.is_some(), "{name} {training}");
        }
    }
    // Of a frozen encoder nothing is in the checkpoint: it was never part of the network.
    let weights = Trained::weights(&RunFolder::new(scene.path("trm-frozen"))).unwrap();
    assert!(!weights.keys().any(|name| name.contains("bert")), "{:?}", weights.keys());
}

#[test]
fn an_encoder_in_front_of_a_model_learns_with_it() {
    let scene = Scene::new();
    let run = scene.run(XML, &text("tiny-roberta", "fine-tuned")).unwrap();
    scene.train(&run, "run").unwrap();
    assert!(moved(&scene.path("run"), "text.", "tiny-roberta") > 1e-5);
}

/// One number for every token of every query, by the encoder itself: what somebody else's extraction would have written.
fn write_query_features(scene: &Scene, encoder: &str) -> Utf8PathBuf {
    let folder = scene.path("query-features");
    let run = scene.run(XML, "").unwrap();
    let published = Pretrained::open(fixture("encoders").join(encoder).as_str(), None, None).unwrap();
    let states = published.states(&Device::Cpu).unwrap();
    let recipe = Recipe {
        extractor: "elsewhere".to_owned(),
        weights: None,
        fps: None,
        row_time: RowTime::Clip(ClipLen::new(1.0).unwrap()),
        width: 16,
        resize: None,
        settings: BTreeMap::new(),
    };
    let recipes = BTreeMap::from([("words".to_owned(), recipe)]);
    let writer = StoreWriter::create(&folder, recipes, Overwrite::Never).unwrap();
    let mut rows = Vec::new();
    for split in ["train", "val"] {
        for truth in run.data.split(split).unwrap().queries {
            let tokens = published.tokens(&[truth.query.text.as_str()]).unwrap();
            let state = states.of(&tokens).unwrap().remove(0);
            let values = state.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let features = Features::new(values.len() / 16, 16, values).unwrap();
            let streams = vec![("words".to_owned(), features)];
            rows.push(VideoFeatures { video: VideoId::from(truth.query.id.as_str()), streams });
        }
    }
    writer.write_shard(0, &rows).unwrap();
    folder
}

#[test]
fn published_features_of_queries_are_read_as_a_frozen_encoder_is() {
    let scene = Scene::new();
    let store = write_query_features(&scene, "tiny-distilbert");
    scene.train(&scene.run(XML, &text("tiny-distilbert", "frozen")).unwrap(), "frozen").unwrap();
    scene.train(&scene.run(XML, &format!("query_features = '{store}'")).unwrap(), "stored").unwrap();
    scene.train(&scene.run(XML, "").unwrap(), "words").unwrap();
    assert_eq!(scene.log("frozen"), scene.log("stored"));
    assert_ne!(scene.log("frozen"), scene.log("words"));

    // Over the whole split too, where models answer query by query.
    let predict = |out: &str| {
        let trained = Trained::open(&RunFolder::new(scene.path(out)), &Device::Cpu).unwrap();
        let split = trained.run.data.split("val").unwrap();
        let options =
            PredictOptions { answers: 5, batch: 5, among: Among::Split, window: None, variant: FeatureVariant::Seen };
        format!("{:?}", trained.predict(&split, &options, &Progress::new()).unwrap().predictions)
    };
    assert_eq!(predict("frozen"), predict("stored"));
}

#[test]
fn another_encoder_in_the_place_of_the_trained_one_is_noticed() {
    let scene = Scene::new();
    let encoder = scene.path("encoder");
    std::fs::create_dir(&encoder).unwrap();
    let copy = |from: &str| {
        for entry in fixture("encoders").join(from).read_dir_utf8().unwrap() {
            let from = entry.unwrap().into_path();
            std::fs::copy(&from, encoder.join(from.file_name().unwrap())).unwrap();
        }
    };
    copy("tiny-distilbert");
    let data = format!("text = {{ encoder = '{encoder}', cache = 'CACHE' }}");
    scene.train(&scene.run(MMN, &data).unwrap(), "run").unwrap();
    let open = || Trained::open(&RunFolder::new(scene.path("run")), &Device::Cpu);
    assert!(open().is_ok());
    // One number of the weights is another one.
    let weights = encoder.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    let error = open().err().expect("should be refused").to_string();
    assert!(error.contains("is not the `encoder` that the run was trained with"), "{error}");
}

#[test]
fn what_cannot_go_together_is_said() {
    let scene = Scene::new();
    let both = format!("{}\nquery_features = 'x'", text("tiny-distilbert", "frozen"));
    assert!(refused(scene.run(MMN, &both)).contains("`data.text` and `data.query_features`"));
    let rate = text("tiny-distilbert", "frozen").replace(" }", ", rate = 0.5 }");
    assert!(refused(scene.run(MMN, &rate)).contains("a frozen encoder does not learn"));
    let longest = text("tiny-distilbert", "frozen").replace(" }", ", longest = 2 }");
    assert!(refused(scene.run(MMN, &longest)).contains("no room for a word"));
    let vslnet = scene.run("[model]\nname = 'vslnet'", &text("tiny-distilbert", "frozen")).unwrap();
    let error = scene.train(&vslnet, "vslnet").expect_err("should be refused").to_string();
    assert!(error.contains("`vslnet` reads parses"), "{error}");
    let absent = scene.run(MMN, "text = { encoder = 'distilbrt', cache = 'CACHE' }").unwrap();
    let error = scene.train(&absent, "absent").expect_err("should be refused").to_string();
    assert!(error.contains("distilbrt"), "{error}");
    assert!(!scene.path("absent").exists());
}
