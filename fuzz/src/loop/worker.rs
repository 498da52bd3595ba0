//! One process that runs one target for a few seconds.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use cuemark_core::Rng;
use cuemark_fuzz::coverage::Coverage;
use cuemark_fuzz::{Reader, Turn, feed_in};

use crate::Places;
use crate::seeds::Seeds;

/// A reader that takes longer for so little hangs.
const SLOW: Duration = Duration::from_secs(10);
/// Inputs between two looks at the counters, of which there are hundreds of thousands.
const BATCH: usize = 64;
/// Inputs that one process keeps at most because they reached something new.
const NEW: usize = 500;

/// Where the last panic was.
static PANICKED: Mutex<String> = Mutex::new(String::new());

/// What a worker leaves in its folder: `count`, how often it ran, slow ones and panics; `edges`, what it reached.
pub(crate) fn work(
    name: &'static str,
    reader: Reader,
    time: Duration,
    seed: u64,
    folder: Utf8PathBuf,
    places: &Places,
) -> Option<()> {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| format!("{}-{}", place.file(), place.line())).unwrap_or_default();
        *PANICKED.lock().unwrap_or_else(PoisonError::into_inner) = place.replace(['/', '.'], "-");
    }));
    let mut worker = Worker {
        name,
        reader,
        rng: Rng::stream(seed, name),
        seeds: Seeds::of(name, places),
        coverage: None,
        folder,
        out: places.out.clone(),
        runs: 0,
        bad: 0,
        new: 0,
    };
    // What reading the seeds reaches is not new.
    let known: Vec<Vec<u8>> = worker.seeds.all().map(<[u8]>::to_vec).collect();
    worker.run(&[], Turn::Every);
    worker.coverage = Coverage::begin();
    for input in &known {
        worker.run(input, Turn::Every);
    }
    worker.coverage.as_mut().map(Coverage::take);
    worker.runs = 0;
    let until = Instant::now() + time;
    while Instant::now() < until {
        worker.batch();
        worker.say(Saying::Meanwhile)?;
    }
    worker.say(Saying::End)
}

/// When a worker says how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Saying {
    Meanwhile,
    End,
}

struct Worker {
    name: &'static str,
    reader: Reader,
    rng: Rng,
    seeds: Seeds,
    coverage: Option<Coverage>,
    folder: Utf8PathBuf,
    out: PathBuf,
    runs: u64,
    bad: u64,
    new: usize,
}

impl Worker {
    fn batch(&mut self) {
        let inputs: Vec<(Vec<u8>, Turn)> =
            (0..BATCH).map(|_| (self.seeds.one(&mut self.rng), Turn::One(self.rng.below(1 << 16)))).collect();
        for (input, turn) in &inputs {
            self.run(input, *turn);
        }
        let is_new = |worker: &mut Self| worker.coverage.as_mut().is_some_and(|coverage| coverage.take() > 0);
        let before = self.coverage.as_ref().map(Coverage::bits);
        if !is_new(self) {
            return;
        }
        // Something in here is new: which one it was shows when each is run alone.
        if let (Some(coverage), Some(before)) = (self.coverage.as_mut(), before) {
            coverage.forget_but(&before);
        }
        for (input, turn) in inputs {
            self.run(&input, turn);
            if is_new(self) && self.new < NEW {
                self.new += 1;
                let pool = self.out.join("pool").join(self.name);
                keep(&pool, &format!("{:016x}", fnv(&input)), &input);
                self.seeds.add(input);
            }
        }
    }

    fn run(&mut self, input: &[u8], turn: Turn) {
        let begin = Instant::now();
        let (folder, reader) = (&self.folder, self.reader);
        let fed = std::panic::catch_unwind(AssertUnwindSafe(|| feed_in(folder, reader, turn, input)));
        self.runs += 1;
        let why = match (fed.is_err(), begin.elapsed() > SLOW) {
            (true, _) => format!("panic-{}", PANICKED.lock().unwrap_or_else(PoisonError::into_inner)),
            (false, true) => "slow".to_owned(),
            (false, false) => return,
        };
        self.bad += 1;
        // One input for each place that panics: a million of them say no more.
        keep(&self.out.join("finds"), &format!("{}-{why}", self.name), input);
    }

    fn say(&self, when: Saying) -> Option<()> {
        let counts = format!("{} {} {}", self.runs, self.bad, self.new);
        std::fs::write(self.folder.join("count"), counts).ok()?;
        let Some(coverage) = &self.coverage else { return Some(()) };
        // Large, and needed at the end only; but the end may come by a signal.
        if when == Saying::End || self.runs / BATCH as u64 % 256 == 1 {
            std::fs::write(self.folder.join("edges"), coverage.bits()).ok()?;
        }
        Some(())
    }
}

/// Puts `input` under a name, unless one is there.
pub(crate) fn keep(folder: &Path, name: &str, input: &[u8]) {
    let path = folder.join(name);
    if path.exists() {
        return;
    }
    if let Err(error) = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, input)) {
        eprintln!("{}: {error}", path.display());
    }
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
