//! The committed schema of a shard's header, held to what we write and to what we refuse.

use camino::Utf8PathBuf;
use cuemark_core::{ClipLen, Progress};
use cuemark_features::{ConvertOptions, OpenOptions, Resample, RowTime, convert, open};
use cuemark_testkit::fixture;
use safetensors::SafeTensors;
use serde_json::{Value, json};

fn schema() -> jsonschema::Validator {
    let text = std::fs::read_to_string(fixture("../docs/schemas/features.schema.json")).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// The header of a store that the fixtures were converted to.
fn written(resample: Option<Resample>) -> Value {
    let guard = tempfile::tempdir().unwrap();
    let out = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    let row_time = ClipLen::new(1.5).map(RowTime::Clip);
    let source = open(&fixture("features/npy"), &OpenOptions { row_time, ..OpenOptions::default() }).unwrap();
    convert(source.as_ref(), &out, &ConvertOptions { resample, ..ConvertOptions::default() }, &Progress::new())
        .unwrap();
    let bytes = std::fs::read(out.join("shard-00000.safetensors")).unwrap();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    serde_json::from_str(&metadata.metadata().as_ref().unwrap()["cuemark"]).unwrap()
}

#[test]
fn headers_that_we_write_fit_the_schema() {
    let (plain, spanning) = (written(None), written(Some(Resample::MeanBins { rows: 2 })));
    for header in [&plain, &spanning] {
        assert!(schema().is_valid(header), "{:?}", schema().iter_errors(header).next());
    }
    assert_eq!(plain["streams"]["visual"]["clip_seconds"], 1.5);
    assert_eq!(plain.get("covers"), None);
    assert_eq!(spanning["covers"]["visual/v_long"], 7.5);
}

#[test]
fn headers_without_a_length_of_a_clip_do_not() {
    for wrong in [
        json!({ "version": 1, "streams": { "visual": { "extractor": "x", "width": 4 } } }),
        json!({ "version": 1, "streams": { "visual": { "extractor": "x", "width": 4, "clip_seconds": 0 } } }),
        json!({ "version": 1, "streams": { "visual": { "extractor": "x", "width": 0, "clip_seconds": 1 } } }),
        json!({ "version": 2, "streams": {} }),
        json!({ "version": 1 }),
    ] {
        assert!(!schema().is_valid(&wrong), "{wrong}");
    }
}
