//! Bare Debian systems below a folder, to try downloads in: Python, and no compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::output;
use crate::needs;
use crate::process::{scratch_folder, watch};

/// Releases of Debian, oldest first.
const RELEASES: &[&str] = &["bullseye", "bookworm"];

/// What is in a root beside the least that Debian calls a system.
const PACKAGES: &str = "ca-certificates,python3,python3-pip,python3-venv";

/// The folder inside that things are tried in.
pub(super) const INSIDE: &str = "/try";

/// Goes into a root with its own view of processes and devices; what is mounted for it goes when it ends.
const ENTER: &str = "mount -t proc proc \"$0/proc\" && mount --bind /dev \"$0/dev\" && exec chroot \"$0\" \"$@\"";

/// One bare system.
pub(super) struct Root {
    pub(super) release: &'static str,
    folder: PathBuf,
}

impl Root {
    /// Every release; made on the first call, kept afterwards.
    pub(super) fn all() -> Result<Vec<Self>> {
        RELEASES.iter().map(|release| Self::new(release)).collect()
    }

    fn new(release: &'static str) -> Result<Self> {
        let root = Self { release, folder: scratch_folder("roots")?.join(release) };
        if !root.is_whole() {
            root.make()?;
        }
        for compiler in ["cc", "gcc", "clang"] {
            if root.folder.join("usr/bin").join(compiler).exists() {
                bail!("{}: `{compiler}` has no place in a bare system", root.folder.display());
            }
        }
        Ok(root)
    }

    /// debootstrap removes its own folder when everything is there.
    fn is_whole(&self) -> bool {
        self.folder.join("usr/bin/python3").exists() && !self.folder.join("debootstrap").exists()
    }

    fn make(&self) -> Result<()> {
        if !needs::meet_for_bare_systems()? {
            bail!("bare systems are made by debootstrap, as root");
        }
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        let mut make = Command::new("debootstrap");
        make.arg("--variant=minbase").arg(format!("--include={PACKAGES}")).arg(self.release).arg(&self.folder);
        if !watch(make.arg(mirror()?))?.ok {
            bail!("no bare {} can be made here; it takes root and a mirror of Debian", self.release);
        }
        Ok(())
    }

    /// The folder that things are tried in, as seen from outside; emptied.
    pub(super) fn empty(&self) -> Result<PathBuf> {
        let folder = self.folder.join(INSIDE.trim_start_matches('/'));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        // Names and certificates are the machine's: how to reach a registry is its business.
        for file in ["/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"] {
            if Path::new(file).is_file() {
                fs::copy(file, self.folder.join(file.trim_start_matches('/'))).with_context(|| file.to_owned())?;
            }
        }
        Ok(folder)
    }

    /// A command inside, in that folder, with nothing in its environment but where programs lie and how pip reaches its index.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER]).arg(&self.folder);
        command.args(["env", "-i", "--chdir", INSIDE, "HOME=/try", "LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"]);
        for name in ["PIP_INDEX_URL", "PIP_CERT", "PIP_DEFAULT_TIMEOUT"] {
            command.args(std::env::var(name).ok().map(|value| format!("{name}={value}")));
        }
        command.args(words);
        command
    }
}

/// The mirror of Debian that this machine itself uses.
fn mirror() -> Result<String> {
    let told = output(Command::new("apt-get").args(["indextargets", "--format", "$(REPO_URI) $(CODENAME)"]))?;
    let told = String::from_utf8_lossy(&told);
    debian_among(&told).map(str::to_owned).context("apt knows no mirror of Debian")
}

/// The place that has a release of Debian itself, among lines of a place and a code name.
fn debian_among(lines: &str) -> Option<&str> {
    let known = ["bullseye", "bookworm", "trixie", "forky", "sid"];
    lines.lines().find_map(|line| line.rsplit_once(' ').filter(|(_, name)| known.contains(name)).map(|(uri, _)| uri))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_one_that_has_a_release_and_no_other() {
        let lines = "http://a/debian-security/ bookworm-security\nhttp://b/tools/ stable\nhttp://c/debian/ bookworm\n";
        assert_eq!(debian_among(lines), Some("http://c/debian/"));
        assert_eq!(debian_among("http://a/tools/ nodistro\n"), None);
    }

    #[test]
    fn a_command_inside_has_an_environment_of_its_own() {
        let root = Root { release: "bookworm", folder: PathBuf::from("/somewhere") };
        let command = root.command(&["cuemark", "--version"]);
        let words: Vec<&str> = command.get_args().filter_map(|word| word.to_str()).collect();
        assert!(words.windows(2).any(|pair| pair == ["env", "-i"]), "{words:?}");
        assert!(words.ends_with(&["cuemark", "--version"]), "{words:?}");
    }
}
