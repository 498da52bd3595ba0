//! What may stand in `Cargo.lock`, and which of our crates may know which.
//!
//! `deny.toml` is the rule book. Where `cargo-deny` is installed it reads it; everywhere else the licences, sources and
//! wildcards of the book are held against `cargo metadata` here, so that the suite never skips them. Advisories need the
//! network and are left to `cargo-deny`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::process::{cargo, workspace};

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Book {
    licenses: Licences,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
    #[serde(default)]
    clarify: Vec<Clarified>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

/// A crate whose manifest names no licence, and what its files say.
#[derive(Deserialize)]
struct Clarified {
    #[serde(rename = "crate")]
    name: String,
    expression: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for crates of this workspace.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    kind: Option<String>,
    path: Option<String>,
}

/// Whether every rule holds; each breach is printed.
pub(crate) fn check() -> Result<bool> {
    let book = workspace().join("deny.toml");
    let book: Book = toml::from_str(&std::fs::read_to_string(&book).context("deny.toml")?).context("deny.toml")?;
    let metadata = metadata()?;
    let mut breaches = foreign(&book, &metadata);
    breaches.extend(ours(&metadata, &workspace().join("ARCHITECTURE.md"))?);
    for breach in &breaches {
        println!("{breach}");
    }
    Ok(breaches.is_empty())
}

fn metadata() -> Result<Metadata> {
    let output = cargo(&["metadata", "--format-version", "1", "--all-features", "--locked"]).output()?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Breaches of licence, source and version by crates of others.
fn foreign(book: &Book, metadata: &Metadata) -> Vec<String> {
    let mut breaches = Vec::new();
    for package in &metadata.packages {
        let name = &package.name;
        let Some(source) = &package.source else {
            let wildcards = package.dependencies.iter().filter(|needed| needed.req == "*" && needed.path.is_none());
            breaches.extend(wildcards.map(|needed| format!("{name}: `{}` may be any version", needed.name)));
            continue;
        };
        if !source.starts_with("registry+") {
            breaches.push(format!("{name} {}: comes from {source}, not from the registry", package.version));
        }
        let clarified = book.licenses.clarify.iter().find(|clarified| &clarified.name == name);
        let stated = clarified.map(|clarified| &clarified.expression).or(package.license.as_ref());
        let exceptions = book.licenses.exceptions.iter().filter(|exception| &exception.name == name);
        let allowed: BTreeSet<&str> =
            exceptions.flat_map(|exception| &exception.allow).chain(&book.licenses.allow).map(String::as_str).collect();
        match stated {
            None => breaches.push(format!("{name} {}: states no licence", package.version)),
            Some(stated) if !satisfies(stated, &allowed) => {
                breaches.push(format!("{name} {}: `{stated}` is not allowed", package.version));
            }
            Some(_) => {}
        }
    }
    breaches
}

/// Whether the SPDX expression can be satisfied by what is allowed. Old manifests write `/` for `OR`.
fn satisfies(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let expression = expression.replace('/', " OR ");
    spdx::Expression::parse_mode(&expression, spdx::ParseMode::LAX)
        .is_ok_and(|parsed| parsed.evaluate(|wanted| allowed.contains(wanted.to_string().as_str())))
}

/// The heading of the table that ARCHITECTURE.md keeps of our own crates.
const TABLE: &str = "| crate | stands on |";

/// Where ARCHITECTURE.md and the manifests disagree about which of our crates stands on which.
fn ours(metadata: &Metadata, architecture: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(architecture).context("ARCHITECTURE.md")?;
    let drawn = drawn(&text);
    let mut breaches = Vec::new();
    let real: BTreeMap<&str, BTreeSet<&str>> = metadata
        .packages
        .iter()
        .filter(|package| package.source.is_none() && package.name.starts_with("cuemark"))
        .map(|package| {
            let needed = package.dependencies.iter().filter(|needed| needed.kind.is_none() && needed.path.is_some());
            (package.name.as_str(), needed.map(|needed| needed.name.as_str()).collect())
        })
        .collect();
    for (name, needed) in &real {
        let line =
            format!("| {} | {} |", short(name), needed.iter().map(|name| short(name)).collect::<Vec<_>>().join(", "));
        match drawn.get(short(name)) {
            Some(drawn) if *drawn == needed.iter().map(|name| short(name)).collect() => {}
            _ => breaches.push(format!("ARCHITECTURE.md should say: {line}")),
        }
    }
    let gone = drawn.keys().filter(|name| !real.keys().any(|real| short(real) == **name));
    breaches.extend(gone.map(|name| format!("ARCHITECTURE.md draws `{name}`, which is not there")));
    Ok(breaches)
}

/// The table as it stands: each crate with what it stands on.
fn drawn(text: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let rows = text.lines().skip_while(|line| *line != TABLE).skip(2).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let (name, needed) = (cells.next()?, cells.next()?);
        Some((name, needed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()))
    })
    .collect()
}

/// `search` for `cuemark-search`; the crate of the verbs keeps its name.
fn short(name: &str) -> &str {
    name.strip_prefix("cuemark-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_is_short_enough_to_be_finished() {
        let readme = std::fs::read_to_string(workspace().join("README.md")).unwrap();
        let (lines, words) = (readme.lines().count(), readme.split_whitespace().count());
        assert!(lines <= 100 && words <= 450, "{lines} lines, {words} words");
    }

    #[test]
    fn one_side_of_an_or_is_enough_and_both_of_an_and_are_needed() {
        let allowed = BTreeSet::from(["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]);
        for fine in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "Apache-2.0 WITH LLVM-exception OR MIT",
            "(MIT OR GPL-2.0) AND Apache-2.0",
        ] {
            assert!(satisfies(fine, &allowed), "{fine}");
        }
        for not in ["GPL-3.0", "MIT AND GPL-3.0", "nonsense", "Apache-2.0 WITH GCC-exception-3.1"] {
            assert!(!satisfies(not, &allowed), "{not}");
        }
    }

    #[test]
    fn a_crate_that_the_table_leaves_out_or_draws_wrongly_is_named() {
        let package = |name: &str, needed: &[&str]| Package {
            name: name.to_owned(),
            version: "0".to_owned(),
            license: None,
            source: None,
            dependencies: needed
                .iter()
                .map(|name| Dependency {
                    name: (*name).to_owned(),
                    req: "*".to_owned(),
                    kind: None,
                    path: Some(String::new()),
                })
                .collect(),
        };
        let metadata =
            Metadata { packages: vec![package("cuemark-core", &[]), package("cuemark-text", &["cuemark-core"])] };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("A.md");
        let breaches = |rows: &str| {
            std::fs::write(&file, format!("words\n{TABLE}\n| --- | --- |\n{rows}\nwords\n")).unwrap();
            ours(&metadata, &file).unwrap()
        };
        assert!(breaches("| core |  |\n| text | core |").is_empty());
        assert_eq!(breaches("| core |  |"), ["ARCHITECTURE.md should say: | text | core |"]);
        assert_eq!(breaches("| core |  |\n| text | core, data |").len(), 1);
        assert_eq!(breaches("| core |  |\n| text | core |\n| gone |  |").len(), 1);
    }
}
