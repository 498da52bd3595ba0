//! `cargo xtask registry`: the crates that are for others, packed as a registry wants them; with `--check` compiled from what was
//! packed and nothing else, far from the files of this repository.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use toml::{Table, Value};

use crate::process::{cargo, scratch_folder, target_folder, watch, workspace};

/// The most that registries take, in bytes.
const LIMIT: u64 = 10_000_000;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    /// Registries that it may go to; none at all for what is `publish = false`.
    publish: Option<Vec<String>>,
}

impl Package {
    fn is_for_others(&self) -> bool {
        self.publish.is_none()
    }
}

pub(crate) fn run(options: &[&str]) -> Result<ExitCode> {
    let check = match options {
        [] => false,
        ["--check"] => true,
        _ => bail!("`cargo xtask registry` takes no option but --check"),
    };
    let packages = packages()?;
    let mut arguments = vec!["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"];
    for package in packages.iter().filter(|package| !package.is_for_others()) {
        arguments.extend(["--exclude", &package.name]);
    }
    if !watch(&mut cargo(&arguments))?.ok {
        return Ok(ExitCode::FAILURE);
    }
    let mut held = true;
    let mut packed = Vec::new();
    for package in packages.iter().filter(|package| package.is_for_others()) {
        let file = target_folder()?.join(format!("package/{}-{}.crate", package.name, package.version));
        let bytes = fs::metadata(&file).with_context(|| file.display().to_string())?.len();
        println!("{:8.1} kB {}", bytes as f64 / 1e3, package.name);
        held &= bytes < LIMIT;
        packed.push(file);
    }
    if check {
        held &= compiles(&packed)?;
    }
    Ok(ExitCode::from(u8::from(!held)))
}

fn packages() -> Result<Vec<Package>> {
    let told = cargo(&["metadata", "--format-version", "1", "--no-deps"]).output()?;
    let told: Metadata = serde_json::from_slice(&told.stdout).context("cargo metadata")?;
    Ok(told.packages)
}

/// Unpacks everything into one folder and compiles it there, with the libraries of others as `Cargo.lock` has them.
fn compiles(packed: &[PathBuf]) -> Result<bool> {
    let place = scratch_folder("registry")?;
    fs::remove_dir_all(&place)?;
    fs::create_dir_all(&place)?;
    let mut members = Vec::new();
    for file in packed {
        let done = Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(&place).status()?;
        let name = file.file_stem().and_then(|name| name.to_str()).context("a package has no name")?;
        if !done.success() {
            bail!("{} cannot be unpacked", file.display());
        }
        members.push(name.to_owned());
    }
    fs::write(place.join("Cargo.toml"), around(&members, &fs::read_to_string(workspace().join("Cargo.toml"))?)?)?;
    fs::copy(workspace().join("Cargo.lock"), place.join("Cargo.lock"))?;
    let mut check = cargo(&["check", "--workspace", "--features", "cuemark-cli/milvus"]);
    check.current_dir(&place);
    Ok(watch(check.env("CARGO_TARGET_DIR", target_folder()?))?.ok)
}

/// A workspace of the packed crates in which they find each other, compiled in the profiles of `ours`.
fn around(members: &[String], ours: &str) -> Result<String> {
    let ours: Table = ours.parse().context("Cargo.toml")?;
    let list = members.iter().map(|name| Value::String(name.clone())).collect();
    let place = |member: &String| {
        let (name, _) = member.rsplit_once('-')?;
        Some((name.to_owned(), Value::Table(Table::from_iter([("path".to_owned(), Value::String(member.clone()))]))))
    };
    let patched: Table = members.iter().filter_map(place).collect();
    let workspace = [("resolver", Value::String("3".to_owned())), ("members", Value::Array(list))];
    let mut manifest = Table::new();
    manifest.insert(
        "workspace".to_owned(),
        Value::Table(workspace.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()),
    );
    manifest
        .insert("patch".to_owned(), Value::Table(Table::from_iter([("crates-io".to_owned(), Value::Table(patched))])));
    manifest.extend(ours.get("profile").map(|profile| ("profile".to_owned(), profile.clone())));
    Ok(toml::to_string(&manifest)?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// How many files below a folder end so.
    fn below(folder: &Path, ending: &str) -> usize {
        let count = |path: PathBuf| match path.is_dir() {
            true => below(&path, ending),
            false => usize::from(path.to_string_lossy().ends_with(ending)),
        };
        fs::read_dir(folder).unwrap().map(|entry| count(entry.unwrap().path())).sum()
    }

    #[test]
    fn a_crate_for_others_says_what_it_is_and_one_that_is_not_says_why() {
        let told = cargo(&["metadata", "--format-version", "1", "--no-deps"]).output().unwrap();
        let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        for package in told["packages"].as_array().unwrap() {
            let name = package["name"].as_str().unwrap();
            if package["publish"].is_null() {
                assert!(package["description"].is_string() && package["readme"].is_string(), "{name}");
                let words = package["keywords"].as_array().unwrap();
                assert!(
                    (1..=5).contains(&words.len()) && !package["categories"].as_array().unwrap().is_empty(),
                    "{name}"
                );
                assert!(words.iter().all(|word| word.as_str().unwrap().len() <= 20), "{name}");
            } else {
                let manifest = fs::read_to_string(package["manifest_path"].as_str().unwrap()).unwrap();
                let lines: Vec<&str> = manifest.lines().collect();
                let at = lines.iter().position(|line| *line == "publish = false").unwrap();
                assert!(lines[at - 1].starts_with("# "), "{name} does not say why nobody else gets it");
            }
        }
    }

    #[test]
    fn run_files_matrices_and_results_travel_in_the_package() {
        let told = cargo(&["package", "--package", "cuemark-bench", "--list", "--allow-dirty"]).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        for (folder, carried, ending) in
            [("runs", "runs", ".toml"), ("matrices", "matrices", ".toml"), ("results/runs", "results", ".json")]
        {
            let start = format!("carried/{carried}/");
            let listed = told.lines().map(|line| line.replace('\\', "/"));
            let packed = listed.filter(|line| line.starts_with(&start) && line.ends_with(ending)).count();
            assert_eq!(packed, below(&workspace().join(folder), ending), "{folder}");
        }
    }

    #[test]
    fn packed_crates_find_each_other_and_not_the_registry() {
        let made = around(&["cuemark-core-0.2.0".to_owned()], "[profile.dev]\nopt-level = 1\n").unwrap();
        let made: Table = made.parse().unwrap();
        assert_eq!(made["patch"]["crates-io"]["cuemark-core"]["path"].as_str(), Some("cuemark-core-0.2.0"));
        assert_eq!(made["profile"]["dev"]["opt-level"].as_integer(), Some(1));
    }
}
