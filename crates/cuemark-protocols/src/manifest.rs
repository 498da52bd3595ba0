//! A result and, beside it, what made it.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{Overwrite, WholeFile};
use serde::Serialize;

use crate::Result;

/// What made a file: enough to make it again.
#[derive(Debug, Clone, Serialize)]
pub struct Manifest<Settings, Outcome> {
    /// The protocol's name.
    pub protocol: &'static str,
    /// The version of its rules; rises when the same input and seed would give something else.
    pub version: u32,
    /// The version of cuemark that ran it.
    pub cuemark: &'static str,
    /// The seed of its random choices; absent where it makes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What it was told.
    pub settings: Settings,
    /// What it found and counted.
    pub outcome: Outcome,
}

impl<Settings: Serialize, Outcome: Serialize> Manifest<Settings, Outcome> {
    /// A manifest of this version of cuemark.
    pub fn new(protocol: &'static str, version: u32, settings: Settings, outcome: Outcome) -> Self {
        Self { protocol, version, cuemark: env!("CARGO_PKG_VERSION"), seed: None, settings, outcome }
    }

    /// The same with the seed of its random choices.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Writes `out` through `fill` and this manifest beside it, the manifest last; neither appears when one fails.
    ///
    /// # Errors
    /// When something stands there already and may not be replaced, or a file cannot be written.
    pub fn write_with(
        &self,
        out: &Utf8Path,
        overwrite: Overwrite,
        fill: impl FnOnce(&mut WholeFile) -> Result<()>,
    ) -> Result<()> {
        let mut beside = WholeFile::create(manifest_path(out), overwrite)?;
        beside.put_json(self)?;
        beside.put(b"\n")?;
        let mut file = WholeFile::create(out, overwrite)?;
        fill(&mut file)?;
        file.finish()?;
        Ok(beside.finish()?)
    }
}

/// Where the manifest of `out` lies: `pools.jsonl` has `pools.manifest.json`.
pub fn manifest_path(out: &Utf8Path) -> Utf8PathBuf {
    let name = out.file_name().unwrap_or("out");
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or(name);
    out.with_file_name(format!("{stem}.manifest.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProtocolError;

    fn manifest() -> Manifest<u8, u8> {
        Manifest::new("test", 1, 2, 3).with_seed(4)
    }

    #[test]
    fn a_failed_result_leaves_no_file_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let out = Utf8PathBuf::from_path_buf(folder.path().join("x.jsonl")).unwrap();
        let failed = manifest().write_with(&out, Overwrite::Never, |file| {
            file.put(b"half")?;
            Err(ProtocolError::NoMoments { what: "test".to_owned() })
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_manifest_lies_beside_its_result() {
        let folder = tempfile::tempdir().unwrap();
        let out = Utf8PathBuf::from_path_buf(folder.path().join("x.jsonl.gz")).unwrap();
        manifest().write_with(&out, Overwrite::Never, |file| Ok(file.put(b"{}")?)).unwrap();
        let text = std::fs::read_to_string(folder.path().join("x.manifest.json")).unwrap();
        let expected = format!(
            "{{\"protocol\":\"test\",\"version\":1,\"cuemark\":\"{}\",\"seed\":4,\"settings\":2,\"outcome\":3}}\n",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(text, expected);
        assert!(manifest().write_with(&out, Overwrite::Never, |_| Ok(())).is_err());
    }
}
