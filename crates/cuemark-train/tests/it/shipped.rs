//! The run files that we ship, made small.

use camino::Utf8Path;
use cuemark_train::{Override, RunFile, TrainError};

/// `runs/FILE.toml` with these settings in place of its own; of two for one key the later counts.
pub(crate) fn shortened(file: &str, settings: &[(&str, &str)]) -> Result<RunFile, TrainError> {
    let path = format!("{}/../../runs/{file}.toml", env!("CARGO_MANIFEST_DIR"));
    RunFile::read(Utf8Path::new(&path), &overrides(settings))
}

pub(crate) fn overrides(settings: &[(&str, &str)]) -> Vec<Override> {
    let over = |(key, value): &(&str, &str)| Override {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
        origin: "test".to_owned(),
    };
    settings.iter().map(over).collect()
}
