//! `cargo xtask dist`: what people download: the program with completions, manual pages, licences and a list of its parts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::process::{cargo, scratch_folder, target_folder, watch, workspace};

/// Everything that needs neither a C library nor a GPU, so that nobody compiles to grow beyond one machine.
const FEATURES: &str = "--features=milvus";

/// Texts that go along: ours, and the notice that the lexicon's licence asks for.
const TEXTS: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "CITATION.cff",
    "crates/cuemark-text/data/WORDNET.txt",
];

/// Shells that scripts are written for.
const SHELLS: &[&str] = &["bash", "elvish", "fish", "powershell", "zsh"];

/// Builds, packs, and with `--check` tries what was packed.
pub(crate) fn run(options: &[&str]) -> Result<ExitCode> {
    let check = match options {
        [] => false,
        ["--check"] => true,
        _ => bail!("`cargo xtask dist` takes no option but --check"),
    };
    let packed = pack(&build()?)?;
    println!("{}: {:.1} MB", packed.display(), fs::metadata(&packed)?.len() as f64 / 1e6);
    if check && !tried(&packed)? {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn build() -> Result<PathBuf> {
    let arguments = ["build", "--profile", "dist", "--package", "cuemark-cli", FEATURES];
    if !watch(&mut cargo(&arguments))?.ok {
        bail!("the program cannot be built");
    }
    Ok(target_folder()?.join("dist").join(format!("cuemark{}", std::env::consts::EXE_SUFFIX)))
}

/// Lays everything into `cuemark/` and packs that folder, with its checksum beside it.
fn pack(program: &Path) -> Result<PathBuf> {
    let place = scratch_folder("dist")?;
    let folder = place.join("cuemark");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for part in ["bin", "completions", "man"] {
        fs::create_dir_all(folder.join(part))?;
    }
    let own = folder.join("bin").join(program.file_name().context("the program has no name")?);
    fs::copy(program, &own)?;
    for text in TEXTS {
        let name = Path::new(text).file_name().context("a text has no name")?;
        fs::copy(workspace().join(text), folder.join(name)).with_context(|| (*text).to_owned())?;
    }
    for shell in SHELLS {
        let script = output(Command::new(&own).args(["completions", shell]))?;
        fs::write(folder.join("completions").join(format!("cuemark.{shell}")), script)?;
    }
    output(Command::new(&own).arg("man").arg(folder.join("man")))?;
    let parts = parts()?;
    fs::write(folder.join("THIRD-PARTY.txt"), third_party(&parts))?;
    fs::write(folder.join("sbom.cdx.json"), serde_json::to_vec_pretty(&sbom(&parts))?)?;

    let name = format!("cuemark-{}-{}.tar.gz", env!("CARGO_PKG_VERSION"), host()?);
    let packed = place.join(&name);
    output(Command::new("tar").arg("-czf").arg(&packed).arg("-C").arg(&place).arg("cuemark"))?;
    let sum = cuemark_core::digest::hex(&Sha256::digest(fs::read(&packed)?));
    fs::write(place.join(format!("{name}.sha256")), format!("{sum}  {name}\n"))?;
    Ok(packed)
}

/// A crate that is compiled into the program.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    name: String,
    version: String,
    licence: String,
}

/// Every crate in the program, ours and others', as cargo resolves them for it.
fn parts() -> Result<BTreeSet<Part>> {
    let tree =
        ["tree", "--package", "cuemark-cli", FEATURES, "--edges", "normal", "--prefix", "none", "--format", "{p}|{l}"];
    let listed = output(&mut cargo(&tree))?;
    Ok(String::from_utf8_lossy(&listed).lines().filter_map(part).collect())
}

/// `serde v1.0.229|MIT OR Apache-2.0`, perhaps with a folder behind the version or a mark that it was listed before.
fn part(line: &str) -> Option<Part> {
    let (package, licence) = line.split_once('|')?;
    let mut words = package.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let licence = licence.trim_end_matches(" (*)");
    Some(Part { name: name.to_owned(), version: version.to_owned(), licence: licence.to_owned() })
}

fn third_party(parts: &BTreeSet<Part>) -> String {
    let mut text = String::from("Crates that are compiled into this program, with the licences that they state.\n\n");
    for Part { name, version, licence } in parts.iter().filter(|part| !part.name.starts_with("cuemark")) {
        let licence = if licence.is_empty() { "see deny.toml of the source" } else { licence };
        text += &format!("{name} {version}: {licence}\n");
    }
    text
}

/// The same for programs, in CycloneDX' layout.
fn sbom(parts: &BTreeSet<Part>) -> Value {
    let component = |part: &Part| {
        json!({
            "type": "library", "name": part.name, "version": part.version,
            "purl": format!("pkg:cargo/{}@{}", part.name, part.version),
            "licenses": [{ "expression": part.licence }],
        })
    };
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": { "type": "application", "name": "cuemark", "version": env!("CARGO_PKG_VERSION") } },
        "components": parts.iter().map(component).collect::<Vec<_>>(),
    })
}

/// Unpacks the archive into an empty folder and runs it there with an empty environment.
fn tried(packed: &Path) -> Result<bool> {
    let folder = scratch_folder("dist-check")?;
    fs::remove_dir_all(&folder)?;
    fs::create_dir_all(&folder)?;
    output(Command::new("tar").arg("-xzf").arg(packed).arg("-C").arg(&folder))?;
    let program = folder.join("cuemark/bin/cuemark");
    fs::write(
        folder.join("truth.jsonl"),
        "{\"qid\":1,\"query\":\"q\",\"video\":\"v\",\"duration\":9.0,\"spans\":[[1.0,4.0]]}\n",
    )?;
    fs::write(folder.join("mine.jsonl"), "{\"qid\":1,\"predictions\":[{\"span\":[1.0,4.0]}]}\n")?;
    let mut held = true;
    for words in [
        &["--version"][..],
        &["eval", "--truth", "truth.jsonl", "--pred", "mine.jsonl"],
        &["demo", "--quick", "--out", "demo"],
        &["models", "list"],
    ] {
        println!("\n$ cuemark {}", words.join(" "));
        let mut command = Command::new(&program);
        command.args(words).current_dir(&folder).env_clear().env("HOME", &folder).env("PATH", "/usr/bin:/bin");
        held &= watch(&mut command)?.ok;
    }
    Ok(held)
}

/// The triple that the compiler builds for here.
fn host() -> Result<String> {
    let told = output(Command::new("rustc").arg("-vV"))?;
    let told = String::from_utf8_lossy(&told);
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it builds for")?.to_owned())
}

/// What a command printed, or an error that says what it complained of.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let done = command.output().with_context(|| format!("{command:?}"))?;
    if !done.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(done.stdout)
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
    fn every_chore_that_a_workflow_calls_exists() {
        let chores: Vec<String> =
            crate::help().lines().filter_map(|line| line.strip_prefix("cargo xtask ")).map(str::to_owned).collect();
        let folder = workspace().join(".github/workflows");
        let mut called = 0;
        for file in fs::read_dir(folder).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            for command in text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("run: ")) {
                let words = command.strip_prefix("cargo xtask ").unwrap_or_else(|| panic!("`{command}` is no chore"));
                // `verify fuzz --minutes 120` is `verify fuzz [--minutes N …]`.
                let name: Vec<&str> = words.split(' ').take_while(|word| !word.starts_with('-')).collect();
                let known = chores.iter().any(|chore| chore.split(' ').take(name.len()).eq(name.iter().copied()));
                assert!(known, "`{command}`: there is no such chore");
                for option in words.split(' ').filter(|word| word.starts_with("--")) {
                    assert!(
                        chores.iter().any(|chore| chore.starts_with(&name.join(" ")) && chore.contains(option)),
                        "{command}"
                    );
                }
                called += 1;
            }
        }
        assert!(called > 5);
    }
}
