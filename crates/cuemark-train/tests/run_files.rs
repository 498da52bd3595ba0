//! Every run file that we ship reads, builds and keeps to the schema.
#![allow(clippy::unwrap_used)] // a test may panic

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise as _, Dialect};
use cuemark_models::{Given, registry};
use cuemark_tensor::{DType, Device, Params, Tensor};
use cuemark_train::RunFile;

fn run_files() -> Vec<Utf8PathBuf> {
    let runs = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../runs"));
    let folders = runs.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).filter(|path| path.is_dir());
    let mut files: Vec<Utf8PathBuf> = folders
        .flat_map(|folder| folder.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).collect::<Vec<_>>())
        .collect();
    files.sort();
    files
}

#[test]
fn every_run_file_reads_and_its_model_builds() {
    for path in run_files() {
        let run = RunFile::read(&path, &[])
            .unwrap_or_else(|error| panic!("{error} ({:?})", error.advice_in(Dialect::Terminal)));
        assert_eq!(path.parent().unwrap().file_name(), Some(run.model.as_str()), "{path}");
        let card = registry::find(&run.model).unwrap();
        let verbs = Tensor::zeros((80, 300), DType::F32, &Device::Cpu).unwrap();
        let given = Given { visual: 500, subtitle: 768, audio: 0, words: 300, vocabulary: 1000, verbs: Some(verbs) };
        (card.build)(&run.settings, &given, Params::counted().builder())
            .unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

#[test]
fn every_model_has_a_run_file_for_the_world() {
    let files = run_files();
    for card in registry::MODELS {
        assert!(files.iter().any(|path| path.ends_with(format!("{}/world.toml", card.name))), "{} has none", card.name);
    }
}

#[test]
fn run_files_keep_to_the_schema_and_what_the_reader_refuses_the_schema_refuses() {
    let schema =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/run.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let json = |path: &Utf8Path| {
        serde_json::to_value(std::fs::read_to_string(path).unwrap().parse::<toml::Table>().unwrap()).unwrap()
    };
    for path in run_files() {
        let errors: Vec<String> = schema.iter_errors(&json(&path)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{path}: {errors:?}");
    }
    for (table, key) in [("data", "feature"), ("train", "epoch"), ("eval", "metrics")] {
        let mut run = json(&run_files()[0]);
        run[table][key] = 1.into();
        assert!(!schema.is_valid(&run), "{table}.{key}");
    }
}
