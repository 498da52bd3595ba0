//! The ready matrices: each fits its schema and comes to cells on any machine.

use camino::Utf8Path;
use cuemark_bench::matrix::{MatrixFile, expand, matrices};

const STUDIES: [&str; 10] =
    ["annotation-bias", "cost", "features", "mdd", "overall", "pools", "query-text", "ranked", "seeds", "thresholds"];

#[test]
fn there_is_a_matrix_for_every_study() {
    let names: Vec<&str> = matrices().map(|(name, _)| name).collect();
    for study in STUDIES {
        assert!(names.contains(&study), "{study} is missing");
    }
}

#[test]
fn every_matrix_fits_the_schema() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/matrix.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    for (name, text) in matrices() {
        let value = serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap();
        let errors: Vec<String> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
    let wrong =
        serde_json::json!({ "name": "x", "about": "", "dataset": [{ "name": "world" }], "test": [{ "spilt": "" }] });
    assert!(!schema.is_valid(&wrong));
}

#[test]
fn every_matrix_has_cells_on_the_built_in_world_both_ways() {
    for (name, text) in matrices() {
        let matrix = MatrixFile::parse(name, text).unwrap();
        for matrix in [matrix.clone(), matrix.quickened()] {
            let expanded = expand(&matrix, Utf8Path::new("out")).unwrap();
            let on_world = expanded.cells.iter().filter(|cell| cell.dataset.starts_with("world")).count();
            assert!(on_world >= 2, "{name}: {on_world} cells");
            for cell in &expanded.cells {
                assert!(!cell.tests.is_empty(), "{name}: {} is asked nothing", cell.name);
            }
        }
    }
}
