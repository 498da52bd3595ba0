//! What a run file may say and how it is refused.

use cuemark_core::{Advice, Advise as _};

use super::*;
use crate::TrainError;

const SMALL: &str = "
    [model]
    name = '2d-tan'
    kernel = 3
    [data]
    train = 'train.jsonl'
    val = 'val.jsonl'
    features = 'store'
    [train]
    epochs = 3
    rate = 1e-3
";

fn read(text: &str, overrides: &[Override]) -> Result<RunFile> {
    RunFile::from_table("run.toml", text.parse().unwrap(), overrides)
}

fn over(key: &str, value: &str) -> Override {
    Override { key: key.to_owned(), value: value.to_owned(), origin: "--set".to_owned() }
}

#[test]
fn defaults_are_filled_in_and_survive_being_written() {
    let run = read(SMALL, &[]).unwrap();
    assert_eq!((run.model.as_str(), run.train.stages.len(), run.train.stages[0].batch), ("2d-tan", 1, 32));
    let again = read(&run.to_toml().unwrap(), &[]).unwrap();
    assert_eq!(run, again);
}

#[test]
fn defaults_are_those_that_the_documentation_states() {
    let run = read(SMALL, &[]).unwrap();
    let data = DataConfig {
        train: "train.jsonl".to_owned(),
        val: "val.jsonl".to_owned(),
        features: Some("store".into()),
        ..DataConfig::default()
    };
    assert_eq!(run.data, data);
    let DataConfig { train, val, stream, word_width, least_count, rows_span_duration, .. } = DataConfig::default();
    assert_eq!((train.as_str(), val.as_str(), stream.as_str()), ("train", "val", "visual"));
    assert_eq!((word_width, least_count, rows_span_duration), (64, 1, false));
    let EvalConfig { metric, every, patience, queries, answers, batch } = run.eval;
    assert_eq!(metric, Metrics::One("R@1,IoU=0.5".to_owned()));
    assert_eq!((every, patience, queries, answers, batch), (1.0, None, None, 10, 64));
    let stage = &run.train.stages[0];
    assert_eq!((stage.batch, stage.betas, stage.eps), (32, [0.9, 0.999], 1e-8));
    assert_eq!((stage.weight_decay, stage.momentum, &stage.schedule), (0.0, 0.0, &Schedule::Constant));
}

#[test]
fn a_line_that_is_no_toml_is_named_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("run.toml")).unwrap();
    for (text, line) in [("= 1\n", 1), ("[model]\nname = 'x'\n= 3\n", 3), ("a = 1\nb = 2 3\n", 2), ("a = 1\na = 2", 2)]
    {
        std::fs::write(&path, text).unwrap();
        let error = RunFile::read(&path, &[]).unwrap_err().to_string();
        assert!(error.contains(&format!("run.toml:{line}")), "{text:?}: {error}");
    }
}

#[test]
fn a_misspelt_key_is_named_with_the_right_one() {
    for (wrong, key, right) in [
        ("epoch = 1", "train.epoch", "epochs"),
        ("[eval]\nmetrics = 'mIoU'", "eval.metrics", "metric"),
        ("[evaluation]\nevery = 1", "evaluation", "eval"),
    ] {
        let error = read(&format!("{SMALL}\n{wrong}"), &[]).unwrap_err();
        assert!(error.to_string().contains(&format!("unknown key `{key}`")), "{error}");
        assert_eq!(error.advice().unwrap(), Advice::nearest(right));
    }
}

#[test]
fn data_alone_needs_no_features_and_is_checked_alike() {
    let of = |text: &str| DataConfig::from_table("matrix", text.parse().unwrap());
    let data = of("dataset = 'world'\nroot = 'w'").unwrap();
    assert_eq!((data.train.as_str(), data.features), ("train", None));
    assert!(of("dataset = 'world'").unwrap_err().to_string().contains("`data.root` is missing"));
    assert!(matches!(of("val = 'test.jsonl'").unwrap_err(), TrainError::ChosenOnTest { .. }));
    assert!(of("rot = 'w'").unwrap_err().to_string().contains("unknown key `data.rot`"));
}

#[test]
fn later_overrides_win_and_are_parsed_as_toml() {
    let run = read(SMALL, &[over("train.epochs", "7"), over("train.epochs", "9"), over("model.fill", "conv")]).unwrap();
    assert_eq!(run.train.stages[0].epochs, 9);
    assert_eq!(run.settings["fill"].as_str(), Some("conv"));
}

#[test]
fn stages_take_over_what_they_do_not_say() {
    let run = read(&format!("{SMALL}\n[[train.stage]]\n[[train.stage]]\nrate = 1e-4\nepochs = 1"), &[]).unwrap();
    let rates: Vec<_> = run.train.stages.iter().map(|stage| (stage.epochs, stage.rate)).collect();
    assert_eq!(rates, [(3, 1e-3), (1, 1e-4)]);
}

#[test]
fn no_checkpoint_is_chosen_on_a_test_split() {
    for split in ["test", "test-iid", "splits/test_ood.jsonl", "charades_sta_test.txt"] {
        let error = read(SMALL, &[over("data.val", split)]).unwrap_err();
        assert!(matches!(error, TrainError::ChosenOnTest { .. }), "{split}: {error}");
    }
    assert!(read(SMALL, &[over("data.val", "latest-val.jsonl")]).is_ok());
}

#[test]
fn values_out_of_range_are_named() {
    for (key, value) in [("train.rate", "0"), ("train.rate", "nan"), ("eval.every", "-1"), ("train.batch", "0")] {
        let error = read(SMALL, &[over(key, value)]).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
    let error = read(SMALL, &[over("train.average", "{ decay = 1.5 }")]).unwrap_err();
    assert!(error.to_string().contains("train.average.decay"), "{error}");
    for (key, value) in [("train.momentum", "1.5"), ("train.momentum", "0.5"), ("train.clip_value", "-1")] {
        let error = read(SMALL, &[over(key, value)]).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
    assert!(read(SMALL, &[over("train.momentum", "0.5"), over("train.optimiser", "sgd")]).is_ok());
    let error = read(SMALL, &[over("train.clip_norm", "1"), over("train.clip_value", "1")]).unwrap_err();
    assert!(error.to_string().contains("`train.clip_norm` and `train.clip_value`"), "{error}");
    let error = read(SMALL, &[over("eval.metric", "R@1,IoU=x")]).unwrap_err();
    assert!(error.to_string().contains("R@1,IoU=x"), "{error}");
}

#[test]
fn what_says_twice_or_wrongly_how_long_a_row_is_is_refused_under_the_files_name() {
    let clip = |seconds: &str| over("data.clip_length", seconds);
    for (overrides, said) in [
        (vec![clip("1.5"), over("data.rows_span_duration", "true")], "contradicts `data.rows_span_duration`"),
        (vec![clip("0.0")], "is 0, expected seconds above 0"),
    ] {
        let error = read(SMALL, &overrides).unwrap_err().to_string();
        assert!(error.starts_with("run.toml: `data.clip_length`") && error.contains(said), "{error}");
    }
}
