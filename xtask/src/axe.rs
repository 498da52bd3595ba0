//! axe-core, which looks at the search page as a screen reader would: fetched once, kept below the build folder.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::process::scratch_folder;

/// The package, as the registry names it. Only its one script is used, inside the browser of a test.
const PACKAGE: &str = "axe-core@4.14.0";
/// The SHA-256 of what the registry hands out under that name.
const SUM: &str = "2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af";

/// Fetches what is missing.
///
/// A machine without npm or a network can still run everything else: the test notes that it did without.
pub(crate) fn fetch() -> Result<()> {
    let folder = scratch_folder("axe")?;
    if folder.join("package/axe.min.js").is_file() {
        return Ok(());
    }
    if let Err(error) = unpack(&folder) {
        println!("SKIPPED: {PACKAGE} cannot be fetched here ({error:#}); the page is not checked for screen readers");
    }
    Ok(())
}

fn unpack(folder: &Path) -> Result<()> {
    // `pack` downloads and runs nothing of the package.
    let packed = Command::new("npm").args(["pack", "--silent", PACKAGE]).current_dir(folder).output().context("npm")?;
    ensure!(packed.status.success(), "npm ended with {}", packed.status);
    let archive = String::from_utf8(packed.stdout)?.trim().to_owned();
    let summed = Command::new("sha256sum").arg(&archive).current_dir(folder).output().context("sha256sum")?;
    let found = String::from_utf8(summed.stdout)?;
    ensure!(found.starts_with(SUM), "`{archive}` is not what it was when it was chosen");
    let script = ["xzf", &archive, "package/axe.min.js", "package/LICENSE"];
    let unpacked = Command::new("tar").args(script).current_dir(folder).status().context("tar")?;
    ensure!(unpacked.success(), "tar ended with {unpacked}");
    Ok(())
}
