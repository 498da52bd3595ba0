//! Training that is killed and taken up again, over and over, ends as training that was left alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cuemark_core::Rng;

use super::empty_folder;
use crate::process::workspace;

/// What two runs are compared by.
const FILES: &[&str] = &["checkpoints/best.safetensors", "checkpoints/last.safetensors", "predictions.jsonl"];
/// Kills of one run before it may end.
const KILLS_PER_RUN: usize = 8;

/// What was done.
pub(super) struct Killed {
    pub(super) kills: usize,
}

/// Kills runs of the small recipe `count` times, on half of the cores at once.
pub(super) fn kill(program: &Path, count: usize, seed: u64) -> Result<Killed> {
    let folder = empty_folder("training")?;
    let recipe = workspace().join("fixtures/runs/small-mmn.toml");
    let trainer = Trainer { program: program.to_owned(), recipe, world: folder.join("world") };
    trainer.must(&["world", "make", "--out", path(&trainer.world)?, "--videos", "10", "--seed", "4"])?;
    let began = Instant::now();
    let alone = folder.join("alone");
    if !trainer.start(&alone, How::Fresh)?.wait()?.success() {
        bail!("training fails when nobody disturbs it");
    }
    let usual = began.elapsed();
    let wanted = contents(&alone)?;
    let (left, kills, runs) = (AtomicUsize::new(count), AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong: Mutex<Vec<String>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (trainer, left, kills, runs, wrong, wanted) = (&trainer, &left, &kills, &runs, &wrong, &wanted);
            let folder = folder.join(format!("run-{thread}"));
            scope.spawn(move || {
                let mut rng = Rng::stream(seed, &format!("training {thread}"));
                while take(left) {
                    let done = trainer.disturbed(&folder, usual, &mut rng, (left, kills));
                    runs.fetch_add(1, Ordering::Relaxed);
                    let problem = match done.and_then(|()| contents(&folder)) {
                        Ok(found) if found == *wanted => continue,
                        Ok(_) => "a run that was killed ended otherwise than one that was not".to_owned(),
                        Err(error) => format!("{error:#}"),
                    };
                    if let Ok(mut wrong) = wrong.lock() {
                        wrong.push(problem);
                    }
                }
            });
        }
    });
    let (kills, runs) = (kills.into_inner(), runs.into_inner());
    println!(
        "kills: {kills} kills in {runs} runs of training, each compared with the undisturbed one in {} files",
        FILES.len()
    );
    let wrong = wrong.into_inner().unwrap_or_default();
    match wrong.first() {
        Some(first) => bail!("{} of {runs} runs: {first}", wrong.len()),
        None => Ok(Killed { kills }),
    }
}

/// Takes one of what is left; whether there was one.
fn take(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

#[derive(Debug, Clone, Copy)]
enum How {
    Fresh,
    Resumed,
}

struct Trainer {
    program: PathBuf,
    recipe: PathBuf,
    world: PathBuf,
}

impl Trainer {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn must(&self, arguments: &[&str]) -> Result<()> {
        if !self.command(arguments).status()?.success() {
            bail!("cuemark {} fails", arguments.join(" "));
        }
        Ok(())
    }

    fn start(&self, out: &Path, how: How) -> Result<std::process::Child> {
        let root = format!("data.root={}", path(&self.world)?);
        let how = match how {
            How::Fresh => "--force",
            How::Resumed => "--resume",
        };
        let arguments = ["train", path(&self.recipe)?, "--set", &root, "--out", path(out)?, how];
        self.command(&arguments).spawn().context("cuemark train")
    }

    /// One run, killed several times on its way; every kill after the first is taken from what is left.
    fn disturbed(
        &self,
        out: &Path,
        usual: Duration,
        rng: &mut Rng,
        (left, kills): (&AtomicUsize, &AtomicUsize),
    ) -> Result<()> {
        if out.exists() {
            std::fs::remove_dir_all(out)?;
        }
        for kill in 0..=KILLS_PER_RUN {
            let may_kill = kill < KILLS_PER_RUN && (kill == 0 || take(left));
            // Before there is a checkpoint there is nothing to go on with, and nothing was acknowledged.
            let how = if out.join(FILES[1]).exists() { How::Resumed } else { How::Fresh };
            let mut child = self.start(out, how)?;
            let after = usual.mul_f64(rng.between(0.02, 0.7));
            let began = Instant::now();
            while may_kill && began.elapsed() < after && child.try_wait()?.is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            if may_kill && child.try_wait()?.is_none() {
                child.kill()?;
                kills.fetch_add(1, Ordering::Relaxed);
            }
            let status = child.wait()?;
            if status.success() {
                return Ok(());
            }
            if let Some(code) = status.code() {
                bail!("training ends with {code} after {kill} kills");
            }
        }
        bail!("a run that nobody killed was killed")
    }
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is not UTF-8")
}

fn contents(run: &Path) -> Result<Vec<Vec<u8>>> {
    let read = |name: &&str| std::fs::read(run.join(name)).with_context(|| run.join(name).display().to_string());
    FILES.iter().map(read).collect()
}
