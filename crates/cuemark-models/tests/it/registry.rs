//! The registry holds every method of the zoo, and every published size builds.

use std::collections::BTreeSet;

use camino::Utf8Path;
use cuemark_core::{Advise as _, Dialect};
use cuemark_models::registry::{MODELS, Reference, find};
use cuemark_models::{Given, Supervision};
use cuemark_tensor::{DType, Device, Params, Tensor};

#[test]
fn every_method_of_the_zoo_is_registered_and_no_name_twice() {
    let zoo = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/zoo"));
    let methods = zoo.read_dir_utf8().unwrap().filter(|entry| entry.as_ref().unwrap().file_name() != "mod.rs").count();
    let names: BTreeSet<&str> = MODELS.iter().map(|card| card.name).collect();
    assert_eq!(names.len(), MODELS.len());
    assert_eq!(methods, MODELS.len());
}

#[test]
fn published_configurations_have_the_parameters_that_their_papers_count() {
    for card in MODELS {
        assert!(!card.full_sizes.is_empty(), "{} has no published configuration", card.name);
        for size in card.full_sizes {
            let count =
                card.parameters(size).unwrap_or_else(|error| panic!("{} on {}: {error}", card.name, size.dataset))
                    as f64
                    / 1e6;
            let Some(stated) = size.millions else { continue };
            // As printed: 10.99 has two decimals, 91.6 one.
            let decimals = stated.to_string().split('.').nth(1).map_or(0, str::len) as i32;
            let unit = 10f64.powi(-decimals);
            assert!(
                (count - stated).abs() <= 0.5 * unit + 1e-9,
                "{} on {}: {count} M, stated {stated} M",
                card.name,
                size.dataset
            );
        }
    }
}

/// What a card says about supervision is what batches are made by.
#[test]
fn spans_are_asked_for_by_methods_that_learn_from_them_and_by_no_other() {
    for card in MODELS {
        let settings: toml::Table = card.full_sizes[0].settings.parse().unwrap();
        let size = card.full_sizes[0];
        let verbs = Tensor::zeros((80, size.words), DType::F32, &Device::Cpu).unwrap();
        let given = Given { verbs: Some(verbs), ..Given::widths(size.visual, size.words, 1000) };
        let model = card.build(&settings, &given, Params::counted().builder()).unwrap();
        assert_eq!(model.input().spans, card.supervision == Supervision::Full, "{}", card.name);
    }
}

/// Those whose networks map moments and sentences apart from each other; `models list` says so of them.
#[test]
fn six_methods_can_fill_an_index() {
    let bi_encoders = MODELS.iter().filter(|card| card.is_bi_encoder(&card.full_sizes[0]).unwrap());
    let names: Vec<&str> = bi_encoders.map(|card| card.name).collect();
    assert_eq!(names, ["mmn", "rmmn", "bet", "xml", "reloclnet", "ms-sl"]);
}

/// What fixtures say about themselves is what the registry says.
#[test]
fn methods_whose_authors_code_was_not_run_are_known_as_such() {
    assert_eq!(MODELS.iter().filter(|card| card.reference() == Reference::Rederived).count(), 8);
    let Some(folder) = cuemark_testkit::shared("parity") else { return };
    for entry in folder.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.extension() != Some("json") {
            continue;
        }
        let told: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let Some(card) = told["model"].as_str().and_then(|name| find(name).ok()) else { continue };
        let source = told["source"].as_str().unwrap();
        let rederived =
            ["not executed", "no reference code was run", "our own re"].iter().any(|words| source.contains(words));
        assert_eq!(card.reference() == Reference::Rederived, rederived, "{path}: {source}");
    }
}

#[test]
fn a_misspelt_name_suggests_the_right_one() {
    assert_eq!(find("2dtan").unwrap_err().advice_in(Dialect::Terminal).unwrap(), "did you mean `2d-tan`?");
    assert!(find("zebra").unwrap_err().advice_in(Dialect::Terminal).unwrap().contains("models list"));
}

#[test]
fn a_setting_that_does_not_exist_is_named() {
    for card in MODELS {
        let mut settings: toml::Table = card.full_sizes[0].settings.parse().unwrap();
        settings.insert("bogus".to_owned(), 1.into());
        let error = card.settings(&settings).unwrap_err().to_string();
        assert!(error.contains("bogus") && error.contains(card.name), "{error}");
    }
}
