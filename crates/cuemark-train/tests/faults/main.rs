//! Every file operation of a training run fails once in every way, or is where the power is cut; the run that goes on ends as if
//! nothing had happened.
//!
//! `CUEMARK_FAULTS=all` (`cargo xtask verify faults`) takes every operation; without it every so manieth is taken.
#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod disk;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Progress;
use cuemark_formats::Overwrite;
use cuemark_tensor::Device;
use cuemark_testkit::faults::Fault;
use cuemark_train::{RunFile, RunFolder, Start, TrainOptions, train};
use cuemark_world::{WorldOptions, make};
use disk::{Broken, TestFiles, files_below};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;
const EINTR: i32 = 4;
/// Subsets of what nobody waited for.
const SUBSETS: u64 = 16;
/// What two runs are compared by.
const RESULTS: [&str; 4] =
    ["checkpoints/best.safetensors", "checkpoints/last.safetensors", "predictions.jsonl", "metrics.jsonl"];

fn is_exhaustive() -> bool {
    std::env::var("CUEMARK_FAULTS").is_ok_and(|which| which == "all")
}

/// A world, an earlier run of other settings in the folder that the next one takes, and what an undisturbed one leaves there.
struct Scene {
    guard: tempfile::TempDir,
    run: RunFile,
    wanted: Vec<Vec<u8>>,
    operations: usize,
    lives: AtomicUsize,
}

impl Scene {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let world = Utf8Path::from_path(guard.path()).unwrap().join("world");
        make(&WorldOptions { videos: 10, ..WorldOptions::default() }, &world, &Progress::new()).unwrap();
        let run = |seed: u64| {
            let text = format!(
                "
                [model]
                name = '2d-tan'
                map = {{ pre_clips = 4, clips = 4, counts = [3] }}
                hidden = 4
                lstm_layers = 1
                kernel = 3
                layers = 1
                [data]
                dataset = 'world'
                root = '{world}'
                word_width = 4
                [train]
                epochs = 2
                batch = 64
                rate = 3e-3
                seed = {seed}
                [eval]
                every = 1.0
                "
            );
            RunFile::from_table("run.toml", text.parse().unwrap(), &[]).unwrap()
        };
        let mut scene = Self { guard, run: run(5), wanted: Vec::new(), operations: 0, lives: AtomicUsize::new(0) };
        let earlier = scene.path("earlier");
        scene.train(&run(6), RunFolder::new(&earlier), Start::Fresh(Overwrite::Never)).unwrap();
        let alone = scene.fresh_folder();
        let files = TestFiles::of(&alone, None, Broken::No);
        let folder = RunFolder::on(Arc::new(files.clone()), &alone);
        scene.train(&scene.run.clone(), folder, Start::Fresh(Overwrite::Force)).unwrap();
        scene.wanted = results(&alone);
        scene.operations = files.operations();
        assert!(scene.operations > 60, "the run does too little: {} operations", scene.operations);
        scene
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.guard.path()).unwrap().join(name)
    }

    /// A folder with the earlier run in it.
    fn fresh_folder(&self) -> Utf8PathBuf {
        let folder = self.path(&format!("run-{}", self.lives.fetch_add(1, Ordering::Relaxed)));
        let earlier = self.path("earlier");
        for path in files_below(&earlier) {
            let to = folder.join(path.strip_prefix(&earlier).unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(&path, to).unwrap();
        }
        folder
    }

    fn train(&self, run: &RunFile, folder: RunFolder, start: Start) -> Result<(), String> {
        let options = TrainOptions { device: Device::Cpu, folder, start, nearness: None };
        train(run, &options, &Progress::new()).map(drop).map_err(|error| error.to_string())
    }

    /// The operations to take, of all that a run has.
    fn places(&self, few: usize) -> Vec<usize> {
        let step = if is_exhaustive() { 1 } else { self.operations.div_ceil(few) };
        (1..=self.operations).step_by(step).collect()
    }

    /// What is wrong with the run in `folder` after it was taken up again where everything works.
    fn resumed(&self, folder: &Utf8Path, what: &str) -> Option<String> {
        // A run that had not begun is begun; the folder still holds the earlier one then.
        let begun = std::fs::read_to_string(folder.join("run.toml")).is_ok_and(|text| text.contains("seed = 5"));
        let start = if begun { Start::Resume } else { Start::Fresh(Overwrite::Force) };
        if let Err(error) = self.train(&self.run, RunFolder::new(folder), start) {
            return Some(format!("{what}: cannot be taken up again: {error}"));
        }
        let found = results(folder);
        let different = RESULTS.iter().zip(found.iter().zip(&self.wanted)).find(|(_, (found, wanted))| found != wanted);
        different.map(|(name, _)| format!("{what}: `{name}` is another than of the undisturbed run"))
    }

    /// What goes wrong when operation `place` meets `fault`.
    fn disturbed(&self, place: usize, fault: Fault, broken: Broken, subsets: &[u64]) -> Vec<String> {
        let folder = self.fresh_folder();
        let files = TestFiles::of(&folder, Some((place, fault)), broken);
        let on = RunFolder::on(Arc::new(files.clone()), &folder);
        let told = self.train(&self.run, on, Start::Fresh(Overwrite::Force));
        let problems: Vec<String> = if fault == Fault::PowerCut {
            let after = |seed: &u64| {
                let left = folder.with_extension(format!("after-{seed}"));
                files.after_power_cut(*seed, &folder, &left);
                let problem = self.resumed(&left, &format!("power cut at {place}, subset {seed}"));
                std::fs::remove_dir_all(&left).unwrap();
                problem
            };
            subsets.iter().filter_map(after).collect()
        } else {
            let what = format!("{fault:?} at {place}, which said {told:?}");
            self.resumed(&folder, &what).into_iter().collect()
        };
        std::fs::remove_dir_all(&folder).unwrap();
        problems
    }

    fn assert_none(&self, problems: &[String]) {
        let first: Vec<&String> = problems.iter().take(5).collect();
        assert!(problems.is_empty(), "{} problems, such as {first:#?}", problems.len());
    }
}

fn results(folder: &Utf8Path) -> Vec<Vec<u8>> {
    RESULTS.iter().map(|name| std::fs::read(folder.join(name)).unwrap_or_default()).collect()
}

#[test]
fn a_run_whose_file_operations_fail_ends_as_if_they_had_not_once_it_is_resumed() {
    let scene = Scene::new();
    let faults = [Fault::Errno(ENOSPC), Fault::Errno(EIO), Fault::Errno(EINTR), Fault::Short];
    let of = |(number, place): (usize, usize)| {
        // Without being exhaustive each place meets one of the ways.
        let few = if is_exhaustive() { &faults[..] } else { &faults[number % 4..][..1] };
        few.iter().flat_map(|fault| scene.disturbed(place, *fault, Broken::No, &[])).collect::<Vec<String>>()
    };
    let problems: Vec<String> = scene.places(30).into_iter().enumerate().flat_map(of).collect();
    scene.assert_none(&problems);
}

#[test]
fn a_run_that_a_power_cut_ends_ends_as_if_there_had_been_none_once_it_is_resumed() {
    let scene = Scene::new();
    let subsets: Vec<u64> = if is_exhaustive() { (0..SUBSETS).collect() } else { vec![0, 1, 2] };
    let of = |place: usize| scene.disturbed(place, Fault::PowerCut, Broken::No, &subsets);
    let problems: Vec<String> = scene.places(20).into_iter().flat_map(of).collect();
    scene.assert_none(&problems);
}

#[test]
fn checkpoints_that_are_not_waited_for_are_caught() {
    let scene = Scene::new();
    let all = 1..=scene.operations;
    let found = all.rev().any(|place| {
        let problems = scene.disturbed(place, Fault::PowerCut, Broken::FilesAreNotSynced, &[2, 3, 4, 5, 6, 7]);
        !problems.is_empty()
    });
    assert!(found, "a run is safe though it waits for nothing");
}
