//! What maturin does not put into a wheel: the licences of the crates in it, and the list of its parts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::parts::Parts;
use super::{output, place};
use crate::python;

/// The wheel with both, beside the archive.
pub(super) fn complete(wheel: &Path, parts: &Parts) -> Result<PathBuf> {
    let python = python::interpreter(&[python::WHEEL])?;
    let unpacked = place()?.join("unpacked");
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    output(Command::new(&python).args(["-m", "wheel", "unpack", "--dest"]).arg(&unpacked).arg(wheel))?;
    let root = only(&unpacked)?;
    let about = about(&root)?;
    fs::create_dir_all(about.join("licenses"))?;
    fs::create_dir_all(about.join("sboms"))?;
    fs::write(about.join("licenses/THIRD-PARTY.txt"), parts.notices()?)?;
    fs::write(about.join("sboms/cuemark.cdx.json"), serde_json::to_vec_pretty(&parts.sbom())?)?;
    let metadata = about.join("METADATA");
    fs::write(&metadata, with_licence_file(&fs::read_to_string(&metadata)?, "THIRD-PARTY.txt")?)?;
    output(Command::new(&python).args(["-m", "wheel", "pack", "--dest-dir"]).arg(place()?).arg(&root))?;
    let packed = place()?.join(wheel.file_name().context("a wheel has no name")?);
    if !packed.is_file() {
        bail!("{} was packed under another name", packed.display());
    }
    Ok(packed)
}

/// The one thing in a folder.
fn only(folder: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(folder)?;
    let first = entries.next().with_context(|| format!("{} is empty", folder.display()))??;
    Ok(first.path())
}

/// The folder of a wheel that is about it.
fn about(root: &Path) -> Result<PathBuf> {
    let found = fs::read_dir(root)?.filter_map(|entry| Some(entry.ok()?.path()));
    found
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "dist-info"))
        .context("the wheel has no folder that is about it")
}

/// Names one more file of licences in a wheel's metadata, which lists them one a line before the description.
fn with_licence_file(metadata: &str, name: &str) -> Result<String> {
    let line = "License-File: ";
    let at = metadata.find(line).context("the wheel names no licence file")?;
    let (before, after) = metadata.split_at(at);
    Ok(format!("{before}{line}{name}\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_file_is_named_among_the_others() {
        let metadata = "Name: cuemark\nLicense-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\n\nwords\n";
        let named = with_licence_file(metadata, "THIRD-PARTY.txt").unwrap();
        assert_eq!(named.lines().nth(1), Some("License-File: THIRD-PARTY.txt"));
        assert!(named.ends_with("License-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\n\nwords\n"));
        assert!(with_licence_file("Name: cuemark\n", "THIRD-PARTY.txt").is_err());
    }
}
