//! The Python that peers run on: an environment of our own below the build folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process::{target_folder, workspace};

/// A library of the package index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Package {
    /// What a script imports.
    import: &'static str,
    /// What pip installs.
    name: &'static str,
}

/// Arrays.
pub(crate) const NUMPY: Package = Package { import: "numpy", name: "numpy" };
/// Kernel densities.
pub(crate) const SCIPY: Package = Package { import: "scipy", name: "scipy" };
/// Precision-recall curves.
pub(crate) const SKLEARN: Package = Package { import: "sklearn", name: "scikit-learn" };
/// Packs the wheel.
pub(crate) const MATURIN: Package = Package { import: "maturin", name: "maturin" };
/// A C compiler and linker that knows old C libraries.
pub(crate) const ZIG: Package = Package { import: "ziglang", name: "ziglang" };
/// cargo with that linker; a program and no module, so its version is asked for.
pub(crate) const ZIGBUILD: Package =
    Package { import: "importlib.metadata as m; m.version('cargo-zigbuild')", name: "cargo-zigbuild" };
/// Unpacks and packs wheels.
pub(crate) const WHEEL: Package = Package { import: "wheel", name: "wheel" };
/// Nearest neighbours in a graph.
pub(crate) const HNSWLIB: Package = Package { import: "hnswlib", name: "hnswlib" };
/// A vector database, with its server.
pub(crate) const MILVUS: Package = Package { import: "milvus", name: "milvus==2.3.5" };
/// What `MILVUS` imports and does not name.
pub(crate) const SETUPTOOLS: Package = Package { import: "pkg_resources", name: "setuptools<81" };
/// Tensors, networks and optimisers.
pub(crate) const TORCH: Package = Package { import: "torch", name: "torch" };
/// HDF5 files.
pub(crate) const H5PY: Package = Package { import: "h5py", name: "h5py" };
/// Video decoding.
pub(crate) const PYAV: Package = Package { import: "av", name: "av" };

/// Sentence encoders as people run them.
pub(crate) const SENTENCE_TRANSFORMERS: Package =
    Package { import: "sentence_transformers", name: "sentence-transformers" };

/// Where an environment has its interpreter.
pub(crate) const PYTHON: &str = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };

/// Python with `packages` installed; made on the first call, kept afterwards.
pub(crate) fn interpreter(packages: &[Package]) -> Result<PathBuf> {
    let folder = target_folder()?.join("xtask-venv");
    let python = folder.join(PYTHON);
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    for package in packages {
        let import = format!("import {}", package.import);
        if !Command::new(&python).args(["-c", &import]).output().context("python")?.status.success() {
            run(Command::new(&python).args(["-m", "pip", "install", "--quiet", package.name]))?;
        }
    }
    Ok(python)
}

/// The search path with the programs of an interpreter before everything else.
pub(crate) fn search_path(python: &Path) -> Result<OsString> {
    let first = python.parent().context("where Python's programs lie")?.to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(first).chain(std::env::split_paths(&path))).context("the search path")
}

/// A script in `benches/peers/`.
pub(crate) fn peer(script: &str) -> PathBuf {
    workspace().join("benches/peers").join(script)
}

pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    if !command.status().context(name.clone())?.success() {
        bail!("{name} did not end well; Python 3 with venv and pip is needed");
    }
    Ok(())
}
