//! `cargo xtask dist`: what people download. An archive with the program, its completions, manual pages, licences and a list of
//! its parts, and the wheel with the same program inside; both from one build. `cargo xtask try` tries either on bare systems.

mod build;
mod parts;
mod peers;
mod root;
mod tried;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use cuemark_core::digest;
use sha2::{Digest as _, Sha256};

pub(crate) use tried::run as run_try;

use crate::process::{scratch_folder, workspace};
use build::Built;
use parts::Parts;

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

/// Which of the two archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Everything that needs neither a C library nor a GPU.
    Plain,
    /// The same with CUDA; runs where a driver is.
    Cuda,
}

/// Builds and packs, and with `--check` tries what was packed.
pub(crate) fn run(options: &[&str]) -> Result<ExitCode> {
    if let Some(unknown) = options.iter().find(|option| !["--check", "--cuda"].contains(option)) {
        bail!("`cargo xtask dist` knows --check and --cuda, not `{unknown}`");
    }
    let flavour = if options.contains(&"--cuda") { Flavour::Cuda } else { Flavour::Plain };
    let built = build::run(flavour)?;
    let parts = Parts::of(flavour)?;
    let mut made = vec![pack(&built, &parts, flavour)?];
    if let Some(wheel) = &built.wheel {
        made.push(wheel::complete(wheel, &parts)?);
    }
    for file in &made {
        println!("{}: {:.1} MB", file.display(), megabytes(file)?);
        checksum(file)?;
    }
    let mut held = true;
    if options.contains(&"--check") {
        for file in &made {
            held &= tried::tried(file)?;
        }
    }
    Ok(ExitCode::from(u8::from(!held)))
}

/// Lays everything into `cuemark/` and packs that folder.
fn pack(built: &Built, parts: &Parts, flavour: Flavour) -> Result<PathBuf> {
    let place = place()?;
    let folder = place.join("cuemark");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for part in ["bin", "completions", "man", "schemas"] {
        fs::create_dir_all(folder.join(part))?;
    }
    let own = folder.join("bin").join(built.program.file_name().context("the program has no name")?);
    fs::copy(&built.program, &own)?;
    for text in TEXTS {
        let name = Path::new(text).file_name().context("a text has no name")?;
        fs::copy(workspace().join(text), folder.join(name)).with_context(|| (*text).to_owned())?;
    }
    for schema in fs::read_dir(workspace().join("docs/schemas"))? {
        let schema = schema?;
        fs::copy(schema.path(), folder.join("schemas").join(schema.file_name()))?;
    }
    for shell in SHELLS {
        let script = output(Command::new(&built.here).args(["completions", shell]))?;
        fs::write(folder.join("completions").join(format!("cuemark.{shell}")), script)?;
    }
    output(Command::new(&built.here).arg("man").arg(folder.join("man")))?;
    fs::write(folder.join("THIRD-PARTY.txt"), parts.notices()?)?;
    fs::write(folder.join("sbom.cdx.json"), serde_json::to_vec_pretty(&parts.sbom())?)?;

    let ending = if flavour == Flavour::Cuda { "-cuda" } else { "" };
    let packed = place.join(format!("cuemark-{}-{}{ending}.tar.gz", env!("CARGO_PKG_VERSION"), build::host()?));
    output(Command::new("tar").arg("-czf").arg(&packed).arg("-C").arg(&place).arg("cuemark"))?;
    Ok(packed)
}

/// Where archives and wheels lie.
fn place() -> Result<PathBuf> {
    scratch_folder("dist")
}

/// Writes the checksum of a file beside it, as `sha256sum --check` reads it.
fn checksum(file: &Path) -> Result<()> {
    let name = file.file_name().and_then(|name| name.to_str()).context("a file has no name")?;
    let sum = digest::hex(&Sha256::digest(fs::read(file)?));
    fs::write(file.with_file_name(format!("{name}.sha256")), format!("{sum}  {name}\n"))?;
    Ok(())
}

fn megabytes(file: &Path) -> Result<f64> {
    Ok(fs::metadata(file)?.len() as f64 / 1e6)
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
    fn what_dist_does_not_know_is_refused_before_anything_is_built() {
        assert!(run(&["--chek"]).unwrap_err().to_string().contains("`--chek`"));
    }

    #[test]
    fn a_checksum_lies_beside_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.tar.gz");
        fs::write(&file, "abc").unwrap();
        checksum(&file).unwrap();
        let sum = fs::read_to_string(folder.path().join("a.tar.gz.sha256")).unwrap();
        assert_eq!(sum, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.tar.gz\n");
    }

    #[test]
    fn a_schema_is_called_as_its_file_so_that_it_resolves_beside_the_others() {
        let mut looked_at = 0;
        for file in fs::read_dir(workspace().join("docs/schemas")).unwrap() {
            let path = file.unwrap().path();
            let schema: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert_eq!(schema["$id"].as_str(), path.file_name().unwrap().to_str(), "{}", path.display());
            looked_at += 1;
        }
        assert!(looked_at > 6);
    }
}
