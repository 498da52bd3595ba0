//! The crates that are compiled into a download: their licences with their texts, and a list for programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Flavour, build, output};
use crate::process::cargo;

/// A crate that is compiled into the program.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    name: String,
    version: String,
    licence: String,
}

/// Every crate in the program and in the wheel's library, as cargo resolves them.
pub(super) struct Parts {
    parts: BTreeSet<Part>,
    /// Where the source of each lies, by name and version.
    sources: BTreeMap<(String, String), PathBuf>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

impl Parts {
    pub(super) fn of(flavour: Flavour) -> Result<Self> {
        let tree = [
            "tree",
            "--package",
            "cuemark-cli",
            "--package",
            "cuemark-py",
            build::features(flavour),
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}|{l}",
        ];
        let listed = output(&mut cargo(&tree))?;
        let parts = String::from_utf8_lossy(&listed).lines().filter_map(part).collect();
        let told = output(&mut cargo(&["metadata", "--format-version", "1", "--all-features"]))?;
        let told: Metadata = serde_json::from_slice(&told)?;
        let source = |package: Package| {
            let folder = package.manifest_path.parent().context("a manifest lies nowhere")?.to_owned();
            Ok(((package.name, package.version), folder))
        };
        Ok(Self { parts, sources: told.packages.into_iter().map(source).collect::<Result<_>>()? })
    }

    fn foreign(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| !part.name.starts_with("cuemark"))
    }

    /// Which crates there are under which licences, and the texts that came with them, each text once.
    pub(super) fn notices(&self) -> Result<String> {
        let mut list = String::from("Crates that are compiled into cuemark, with the licences that they state.\n\n");
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for Part { name, version, licence } in self.foreign() {
            let licence = if licence.is_empty() { "see its text below, or deny.toml of the source" } else { licence };
            list += &format!("{name} {version}: {licence}\n");
            let Some(folder) = self.sources.get(&(name.clone(), version.clone())) else { continue };
            for text in texts_of(folder)? {
                texts.entry(text).or_default().push(format!("{name} {version}"));
            }
        }
        list += "\nThe texts that came with them follow.\n";
        for (text, names) in texts {
            list += &format!("\n{}\n{}\n\n{text}\n", "=".repeat(100), names.join(", "));
        }
        Ok(list)
    }

    /// The same for programs, in CycloneDX' layout.
    pub(super) fn sbom(&self) -> Value {
        let component = |part: &Part| {
            let mut component = json!({
                "type": "library", "name": part.name, "version": part.version,
                "purl": format!("pkg:cargo/{}@{}", part.name, part.version),
            });
            if !part.licence.is_empty() {
                // Old manifests write `/` for `OR`, which is no expression.
                component["licenses"] = json!([{ "expression": part.licence.replace('/', " OR ") }]);
            }
            component
        };
        json!({
            "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": { "component": { "type": "application", "name": "cuemark", "version": env!("CARGO_PKG_VERSION") } },
            "components": self.parts.iter().map(component).collect::<Vec<_>>(),
        })
    }
}

/// `serde v1.0.229|MIT OR Apache-2.0`, perhaps with a folder behind the version or a mark that it was listed before.
fn part(line: &str) -> Option<Part> {
    let (package, licence) = line.split_once('|')?;
    let mut words = package.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let licence = licence.trim_end_matches(" (*)");
    Some(Part { name: name.to_owned(), version: version.to_owned(), licence: licence.to_owned() })
}

/// Files of a crate that are about who owns it and what one may do with it.
fn texts_of(folder: &Path) -> Result<Vec<String>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && is_notice(path))
        .collect();
    files.sort();
    files.iter().map(|file| Ok(plain(&String::from_utf8_lossy(&fs::read(file)?)))).collect()
}

fn is_notice(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    ["license", "licence", "copying", "notice", "copyright", "unlicense"].iter().any(|start| name.starts_with(start))
}

/// Without what differs between two copies of one text: endings of lines and blanks at either end.
fn plain(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_a_name_a_version_and_a_licence() {
        let of = |name: &str, version: &str, licence: &str| {
            Some(Part { name: name.to_owned(), version: version.to_owned(), licence: licence.to_owned() })
        };
        assert_eq!(part("serde v1.0.229|MIT OR Apache-2.0 (*)"), of("serde", "1.0.229", "MIT OR Apache-2.0"));
        assert_eq!(part("cuemark-core v0.1.0 (/somewhere)|MIT"), of("cuemark-core", "0.1.0", "MIT"));
        assert_eq!(part("milvus-sdk-rust v3.0.3|"), of("milvus-sdk-rust", "3.0.3", ""));
        assert_eq!(part(""), None);
    }

    #[test]
    fn a_text_that_two_crates_share_stands_there_once_under_both_names() {
        let folder = tempfile::tempdir().unwrap();
        let mut parts = Parts { parts: BTreeSet::new(), sources: BTreeMap::new() };
        for (name, text) in [("one", "Do what you like. \r\n"), ("two", "Do what you like.\n"), ("three", "Ask.\n")] {
            let own = folder.path().join(name);
            fs::create_dir(&own).unwrap();
            fs::write(own.join("LICENSE-MIT"), text).unwrap();
            fs::write(own.join("lib.rs"), "not a notice").unwrap();
            let version = "1.0.0".to_owned();
            parts.parts.insert(Part { name: name.to_owned(), version: version.clone(), licence: "MIT".to_owned() });
            parts.sources.insert((name.to_owned(), version), own);
        }
        let text = parts.notices().unwrap();
        assert_eq!(text.matches("Do what you like.").count(), 1);
        assert!(text.contains("one 1.0.0, two 1.0.0\n\nDo what you like.\n"), "{text}");
        assert!(text.contains("three 1.0.0: MIT\n") && !text.contains("not a notice"), "{text}");
    }
}
