//! What may stand in `Cargo.lock`, and which of our crates may know which.
//!
//! `deny.toml` is the rule book. Where `cargo-deny` is installed it reads it; everywhere else the licences, sources and
//! wildcards of the book are held against `cargo metadata` here, so that the suite never skips them. Advisories need the
//! network and are left to `cargo-deny`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

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
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    targets: Vec<Target>,
    /// Registries that it may go to; none at all for what is `publish = false`.
    publish: Option<Vec<String>>,
    dependencies: Vec<Dependency>,
}

/// What cargo makes of a package.
#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    kind: Option<String>,
    path: Option<String>,
    #[serde(default)]
    rename: Option<String>,
}

/// Whether every rule holds; each breach is printed.
pub(crate) fn check() -> Result<bool> {
    let book = workspace().join("deny.toml");
    let book: Book = toml::from_str(&std::fs::read_to_string(&book).context("deny.toml")?).context("deny.toml")?;
    let metadata = metadata()?;
    let mut breaches = foreign(&book, &metadata);
    breaches.extend(ours(&metadata, &workspace().join("ARCHITECTURE.md"))?);
    breaches.extend(unused(&metadata)?);
    breaches.extend(unfit(&metadata));
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

/// Dependencies that no line of ours names.
fn unused(metadata: &Metadata) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for package in metadata.packages.iter().filter(|package| package.source.is_none()) {
        let folder = package.manifest_path.parent().context("a manifest lies nowhere")?;
        let program = [folder.join("src"), folder.join("build.rs"), folder.join("targets")];
        let mut source = String::new();
        for path in &program {
            read_rust(path, &mut source)?;
        }
        let mut tests = source.clone();
        for path in ["tests", "benches", "examples"] {
            read_rust(&folder.join(path), &mut tests)?;
        }
        for needed in &package.dependencies {
            let text = if needed.kind.as_deref() == Some("dev") { &tests } else { &source };
            if !names(text, &imported_as(metadata, needed)) {
                breaches.push(format!("{}: nothing uses `{}`", package.name, needed.name));
            }
        }
    }
    Ok(breaches)
}

/// What a dependency is called in the code.
fn imported_as(metadata: &Metadata, needed: &Dependency) -> String {
    let is_library = |target: &&Target| target.kind.iter().any(|kind| kind.ends_with("lib") || kind == "proc-macro");
    let found = metadata.packages.iter().find(|package| package.name == needed.name);
    let library = found.and_then(|package| package.targets.iter().find(is_library)).map(|target| &target.name);
    needed.rename.as_ref().or(library).unwrap_or(&needed.name).replace('-', "_")
}

/// Adds the text of a Rust file, or of all below a folder; what is not there adds nothing.
fn read_rust(path: &Path, text: &mut String) -> Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            read_rust(&entry?.path(), text)?;
        }
    } else if path.is_file() && path.extension().is_some_and(|end| end == "rs") {
        *text += &std::fs::read_to_string(path)?;
        text.push('\n');
    }
    Ok(())
}

/// Whether code names the crate: `name::` somewhere, or `use name` as it is.
fn names(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
        line.match_indices(name).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + name.len()..]);
            let begins = !before.ends_with(is_part) && !before.ends_with("::");
            begins && (after.starts_with("::") || (before.trim_end().ends_with("use") && !after.starts_with(is_part)))
        })
    })
}

/// What a registry would not take: a crate of ours for others that stands on one that is not, or on another version.
fn unfit(metadata: &Metadata) -> Vec<String> {
    let is_private = |package: &Package| package.publish.as_ref().is_some_and(Vec::is_empty);
    let ours: Vec<&Package> = metadata.packages.iter().filter(|package| package.source.is_none()).collect();
    let mut breaches = Vec::new();
    for package in ours.iter().filter(|package| !is_private(package)) {
        // Without a version a dependency of tests is left out of what is packed.
        let needed = package.dependencies.iter().filter(|needed| needed.path.is_some());
        for needed in needed.filter(|needed| !(needed.kind.as_deref() == Some("dev") && needed.req == "*")) {
            let Some(other) = ours.iter().find(|other| other.name == needed.name) else { continue };
            if is_private(other) {
                breaches.push(format!("{} is for others and stands on {}, which is not", package.name, other.name));
            } else if needed.req != format!("^{}", other.version) {
                let (name, req, version) = (&other.name, &needed.req, &other.version);
                breaches.push(format!("{}: `{name}` is wanted as `{req}` and is {version}", package.name));
            }
        }
    }
    breaches
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
            manifest_path: PathBuf::new(),
            targets: Vec::new(),
            publish: None,
            dependencies: needed
                .iter()
                .map(|name| Dependency {
                    name: (*name).to_owned(),
                    req: "*".to_owned(),
                    kind: None,
                    path: Some(String::new()),
                    rename: None,
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

    #[test]
    fn a_dependency_is_used_where_code_names_it_and_not_where_words_do() {
        for used in ["use serde::Serialize;", "    toml::from_str(text)", "use serde;", "x(&toml::Value::Null)"] {
            assert!(names(used, "serde") || names(used, "toml"), "{used}");
        }
        for not in
            ["// serde::Serialize", "let file = \"a.toml\";", "crate::toml::read()", "my_toml::x()", "use tomly;"]
        {
            assert!(!names(not, "toml") && !names(not, "serde"), "{not}");
        }
    }

    #[test]
    fn a_crate_for_others_stands_on_none_that_is_not_and_on_the_version_that_is() {
        let package = |name: &str, publish: Option<Vec<String>>, needed: Vec<Dependency>| Package {
            name: name.to_owned(),
            version: "0.2.0".to_owned(),
            license: None,
            source: None,
            manifest_path: PathBuf::new(),
            targets: Vec::new(),
            publish,
            dependencies: needed,
        };
        let needed = |name: &str, req: &str, kind: Option<&str>| Dependency {
            name: name.to_owned(),
            req: req.to_owned(),
            kind: kind.map(str::to_owned),
            path: Some(String::new()),
            rename: None,
        };
        let breaches = |of: Vec<Dependency>| {
            let kit = package("kit", Some(Vec::new()), Vec::new());
            unfit(&Metadata { packages: vec![package("core", None, Vec::new()), kit, package("text", None, of)] })
        };
        assert!(breaches(vec![needed("core", "^0.2.0", None), needed("kit", "*", Some("dev"))]).is_empty());
        assert_eq!(breaches(vec![needed("kit", "*", None)]), ["text is for others and stands on kit, which is not"]);
        assert_eq!(breaches(vec![needed("core", "^0.1.0", None)]).len(), 1);
    }
}
