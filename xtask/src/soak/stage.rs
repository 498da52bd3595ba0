//! The small collection that the soak is about.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};

use crate::process::{cargo, scratch_folder, target_folder, watch, workspace};
use crate::test::FEATURES;

/// Films of the world; half of them are in the index from the beginning to the end.
const FILMS: usize = 16;

/// Programs, folders and films.
pub(super) struct Stage {
    program: PathBuf,
    folder: PathBuf,
    index: String,
    /// Names of the films that stay in the index.
    pub(super) films: Vec<String>,
    /// Names of the films that come and go, half by commands and half by jobs.
    pub(super) passing: Vec<String>,
}

/// As the tests build it, so that nothing is compiled twice.
fn built() -> Result<PathBuf> {
    if !watch(&mut cargo(&["build", "--workspace", "--all-targets", FEATURES]))?.ok {
        bail!("the program cannot be built");
    }
    Ok(target_folder()?.join("debug/cuemark"))
}

impl Stage {
    /// Builds the program unless one is given, makes a world, trains a small encoder and indexes half of the films.
    pub(super) fn prepare(program: Option<PathBuf>) -> Result<Self> {
        let program = match program {
            Some(program) => std::path::absolute(program)?,
            None => built()?,
        };
        let folder = scratch_folder("soak")?;
        for name in ["world", "run", "index", "films", "passing"] {
            let old = folder.join(name);
            if old.exists() {
                std::fs::remove_dir_all(&old).with_context(|| old.display().to_string())?;
            }
        }
        let index = folder.join("index").to_str().context("the build folder's name is not UTF-8")?.to_owned();
        let mut stage = Self { program, folder, index, films: Vec::new(), passing: Vec::new() };
        let (world, run) = (stage.path("world")?, stage.path("run")?);
        stage.must(&["world", "make", "--out", &world, "--videos", &FILMS.to_string(), "--mp4", "--seed", "4"])?;
        let recipe = std::path::absolute(workspace().join("fixtures/runs/small-mmn.toml"))?;
        let recipe = recipe.to_str().context("the workspace's name is not UTF-8")?;
        stage.must(&["train", recipe, "--set", &format!("data.root={world}"), "--out", &run])?;
        stage.share_out()?;
        stage.large_film()?;
        stage.must(&["index", "create", &stage.index, "--encoder", &run, &stage.path("films")?])?;
        Ok(stage)
    }

    /// Every other film of the world comes and goes.
    fn share_out(&mut self) -> Result<()> {
        let mut all: Vec<PathBuf> = std::fs::read_dir(self.folder.join("world/videos"))?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        all.retain(|path| path.extension().is_some_and(|ending| ending == "mp4"));
        all.sort();
        for (number, film) in all.iter().enumerate() {
            let (folder, names) =
                if number % 2 == 0 { ("films", &mut self.films) } else { ("passing", &mut self.passing) };
            std::fs::create_dir_all(self.folder.join(folder))?;
            let name = film.file_name().context("a film without a name")?;
            std::fs::copy(film, self.folder.join(folder).join(name))?;
            names.extend(film.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
        if self.films.len() < 4 || self.passing.len() < 4 {
            bail!("the world made only {} films", all.len());
        }
        Ok(())
    }

    /// Larger than what the system keeps for a client that does not read.
    fn large_film(&mut self) -> Result<()> {
        let made = Command::new("ffmpeg")
            .args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25:duration=20,noise=alls=50"])
            .args(["-c:v", "mpeg4", "-q:v", "2", "-pix_fmt", "yuv420p", "-y"])
            .arg(self.folder.join("films/large.mp4"))
            .status()
            .context("ffmpeg")?;
        if !made.success() {
            bail!("ffmpeg made no film");
        }
        self.films.push("large".to_owned());
        Ok(())
    }

    pub(super) fn index(&self) -> &str {
        &self.index
    }

    /// The file of a film that stays.
    pub(super) fn film(&self, name: &str) -> PathBuf {
        self.folder.join("films").join(format!("{name}.mp4"))
    }

    /// The file of a film that comes and goes.
    pub(super) fn passing_film(&self, name: &str) -> PathBuf {
        self.folder.join("passing").join(format!("{name}.mp4"))
    }

    pub(super) fn path(&self, name: &str) -> Result<String> {
        Ok(self.folder.join(name).to_str().context("the build folder's name is not UTF-8")?.to_owned())
    }

    /// A call of the program.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(Path::new("/"));
        command
    }

    /// A call of the program, run to its end.
    pub(super) fn cuemark(&self, arguments: &[&str]) -> Result<Output> {
        self.command(arguments).output().with_context(|| format!("cuemark {arguments:?}"))
    }

    fn must(&self, arguments: &[&str]) -> Result<()> {
        println!("soak: cuemark {}", arguments.join(" "));
        // Runs keep relative paths of the working folder that they were made in; every path here is from the root.
        let output = self.cuemark(arguments)?;
        if !output.status.success() {
            bail!("cuemark {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}
