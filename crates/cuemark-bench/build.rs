//! Lists the repository's run files, matrices and results of runs, so that the program carries them with it.
//!
//! `carried/` links to them; cargo puts what a link leads to into the package, so that they are there without the repository
//! too. A checkout on a system without links finds them where they lie.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let own = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut text = String::new();
    let lists = [
        ("RUN_FILES", "carried/runs", "../../runs", "toml"),
        ("MATRICES", "carried/matrices", "../../matrices", "toml"),
        ("RESULTS", "carried/results", "../../results/runs", "json"),
    ];
    for (name, carried, linked, ending) in lists {
        let folder = [carried, linked].map(|folder| own.join(folder)).into_iter().find(|folder| folder.is_dir());
        let Some(folder) = folder else {
            return Err(std::io::Error::other(format!("neither `{carried}` nor `{linked}` is a folder")));
        };
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        collect(&folder, "", ending, &mut files)?;
        files.sort();
        let _ = writeln!(text, "static {name}: &[(&str, &str)] = &[");
        for (stem, path) in files {
            let _ = writeln!(text, "    ({stem:?}, include_str!({:?})),", path.display().to_string());
        }
        text.push_str("];\n");
    }
    std::fs::write(PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default()).join("ready.rs"), text)
}

/// Every file below `folder` that ends so, by its path without the ending.
fn collect(folder: &Path, before: &str, ending: &str, files: &mut Vec<(String, PathBuf)>) -> std::io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if path.is_dir() {
            collect(&path, &format!("{before}{stem}/"), ending, files)?;
        } else if path.extension().is_some_and(|found| found == ending) {
            files.push((format!("{before}{stem}"), path));
        }
    }
    Ok(())
}
