//! The scripted life of an index, and what must be true at every point of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::{Line, Progress, Track};
use cuemark_formats::Overwrite;
use cuemark_search::engine::{Embedded, change_manifest_on, disk::Disk, salvage_on};
use cuemark_search::{
    Calibration, Engine, IndexedMoment, KeptFile, Manifest, Result, SearchError, Settling, VideoEntry, VideoState,
};

use crate::disk::TestDisk;
use crate::toy::{self, WIDTH, entry, manifest};

pub(crate) const FOLDER: &str = "/index";
const RESCUED: &str = "/rescued";

/// What is known about one video: which moments it has, and its tag.
type Version = (u64, Option<&'static str>);

/// What each video may be. Several things while nobody can tell whether a step that failed happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model(BTreeMap<&'static str, Vec<Option<Version>>>);

impl Model {
    fn of(&self, id: &str) -> Vec<Option<Version>> {
        self.0.get(id).cloned().unwrap_or_else(|| vec![None])
    }

    /// A step that changes a video from what it may be: acknowledged, or not.
    fn change<T>(&mut self, id: &'static str, done: &Result<T>, change: impl Fn(Option<Version>) -> Option<Version>) {
        let before = self.of(id);
        let mut after: Vec<Option<Version>> = before.iter().copied().map(change).collect();
        if done.is_err() {
            after.extend(before);
        }
        after.sort();
        after.dedup();
        self.0.insert(id, after);
    }

    /// Whether something failed whose outcome is open.
    pub(crate) fn is_open(&self) -> bool {
        self.0.values().any(|versions| versions.len() > 1)
    }

    /// What an engine has that it must not have, or does not have that it must.
    pub(crate) fn check(&self, engine: &Embedded) -> Result<Option<String>> {
        for (id, allowed) in &self.0 {
            let found = match (engine.video(&(*id).into())?, engine.moments(&(*id).into())?) {
                (Some(entry), Some(moments)) => {
                    Some((entry, moments, engine.lines(&(*id).into())?.unwrap_or_default()))
                }
                (None, None) => None,
                _ => return Ok(Some(format!("`{id}` is there in part"))),
            };
            let is = |version: &Option<Version>| match (version, &found) {
                (None, None) => true,
                (Some((seed, tag)), Some((entry, found, lines))) => {
                    let spans =
                        |moments: &[IndexedMoment]| moments.iter().map(|moment| moment.span).collect::<Vec<_>>();
                    let tags: Vec<&str> = tag.iter().copied().collect();
                    // The words of the same version, never those of another: they came with these moments.
                    spans(found) == spans(&moments(*seed)) && *lines == words(*seed) && entry.tags == tags
                }
                _ => false,
            };
            if !allowed.iter().any(is) {
                return Ok(Some(format!("`{id}` is {found:?} and should be one of {allowed:?}")));
            }
        }
        let strange = engine.videos()?.into_iter().find(|entry| !self.0.contains_key(entry.id.as_str()));
        Ok(strange.map(|entry| format!("`{}` was never put", entry.id)))
    }
}

fn moments(seed: u64) -> Vec<IndexedMoment> {
    toy::moments(seed, 20 + seed % 3)
}

/// Words of every other version; those that come several at a time have none.
fn words(seed: u64) -> Vec<(Track, Line)> {
    if seed.is_multiple_of(2) || seed == 3 { Vec::new() } else { toy::lines(seed, 30) }
}

/// What the index is about: calibrated when it was made.
fn calibrated() -> Manifest {
    Manifest { calibration: Calibration { slope: 1.25, offset: -0.5, ..Calibration::default() }, ..manifest() }
}

/// The curve that it gets later.
fn recalibrated() -> Calibration {
    Calibration { slope: 2.5, offset: -1.0, ..Calibration::default() }
}

/// What it keeps of its encoder: more than a page, and in a folder of its own.
fn kept() -> Vec<KeptFile> {
    let file = |name: &str, bytes: Vec<u8>| KeptFile { name: name.to_owned(), bytes };
    vec![file("words", b"a ball".to_vec()), file("deep/weights", (0..2000).map(|n| n as u8).collect())]
}

/// What is wrong with the manifest or with what it keeps: both are whole once there is a manifest, and its curve is one of
/// `curves`.
fn not_as_calibrated(disk: &TestDisk, folder: &Utf8Path, curves: &[Calibration]) -> Result<Option<String>> {
    let found = Manifest::read_on(disk, folder)?;
    if !curves.contains(&found.calibration) || found.kept.len() != kept().len() {
        return Ok(Some(format!("the manifest is {found:?}")));
    }
    for file in kept() {
        let path = folder.join("encoder").join(&file.name);
        let fault = |source| SearchError::Io { what: "read", path: path.clone(), source };
        let mut bytes = vec![0; file.bytes.len() + 1];
        let read = disk.open(&path).and_then(|open| open.read_at(0, &mut bytes)).map_err(fault)?;
        if bytes[..read] != file.bytes {
            return Ok(Some(format!("`{path}` is not what it was")));
        }
    }
    Ok(None)
}

/// A life as far as it came.
pub(crate) struct Life {
    pub(crate) model: Model,
    /// What the curve may be: two things while nobody can tell whether a change that failed happened.
    curves: Vec<Calibration>,
    /// What was wrong before it ended.
    pub(crate) problems: Vec<String>,
}

/// Lives on `disk` until the end or until the power is cut. A step that fails is not acknowledged, and life goes on.
pub(crate) fn live(disk: &TestDisk) -> Life {
    let curves = vec![calibrated().calibration];
    let mut life = Life { model: Model::default(), curves, problems: Vec::new() };
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let folder = Utf8Path::new(FOLDER);
    let create = || Embedded::create_keeping(Arc::clone(&shared), folder, &calibrated(), &kept(), Overwrite::Never);
    let open = || Embedded::open_on(Arc::clone(&shared), folder);
    // What failed once is tried again; a manifest that is there already means that only the last wait failed.
    let engine = create().map(|(engine, _)| engine).or_else(|_| create().map(|(engine, _)| engine)).or_else(|_| open());
    let Ok(engine) = engine else {
        if !disk.is_off() {
            life.problems.push("an index could not be made at the second try".to_owned());
        }
        return life;
    };
    let reader = open().or_else(|_| open()).ok();
    let model = &mut life.model;
    let look = |model: &Model, disk: &TestDisk, problems: &mut Vec<String>| {
        let seen = reader.as_ref().map(|reader| reader.refresh().and_then(|()| model.check(reader)));
        if let Some(Ok(Some(problem))) = seen {
            problems.push(format!("a reader: {problem}"));
        }
        disk.is_off()
    };
    macro_rules! step {
        ($($work:tt)*) => {
            $($work)*
            if look(model, disk, &mut life.problems) {
                return life;
            }
        };
    }
    let put = |model: &mut Model, engine: &Embedded, id: &'static str, seed: u64| {
        let done = engine.put_with_words(&entry(id), &moments(seed), &words(seed));
        model.change(id, &done, |_| Some((seed, None)));
    };
    let note = |model: &mut Model, id: &'static str, tag: &'static str| {
        let done = engine.note(&id.into(), VideoState::Present, &[tag.to_owned()]);
        model.change(id, &done, |before| before.map(|(seed, _)| (seed, Some(tag))));
    };
    let remove = |model: &mut Model, id: &'static str| {
        let done = engine.remove(&id.into());
        model.change(id, &done, |_| None);
    };
    step!(put(model, &engine, "a", 1););
    step! {
        let three = [("b", 2), ("c", 3), ("d", 4)];
        let videos: Vec<_> = three.iter().map(|(id, seed)| (entry(id), moments(*seed))).collect();
        let done = engine.put_all(&videos);
        three.iter().for_each(|(id, seed)| model.change(id, &done, |_| Some((*seed, None))));
    }
    step!(note(model, "b", "seen"););
    step!(remove(model, "c"););
    step!(put(model, &engine, "a", 5););
    step! {
        // Somebody else, while this one is writing.
        let locked = disk.is_locked(&folder.join("lock"));
        if let Ok(other) = open() {
            let done = other.put_with_words(&entry("intruder"), &moments(9), &words(9));
            if locked && done.is_ok() {
                life.problems.push("two wrote at once".to_owned());
            }
            model.change("intruder", &done, |_| Some((9, None)));
            if matches!(done, Err(SearchError::Locked { .. })) {
                model.0.remove("intruder");
            }
        }
    }
    step!(put(model, &engine, "e", 6););
    step!(let _ = engine.settle(Settling::Fully, &Progress::new()););
    step!(put(model, &engine, "f", 7););
    step!(remove(model, "d"););
    step!(let _ = engine.compact(&Progress::new()););
    step!(put(model, &engine, "c", 8););
    step!(note(model, "a", "again"););
    step! {
        // Something else is known about a film: its moments and words stay with it.
        let done = engine.amend(&VideoEntry { tags: vec!["moved".to_owned()], ..entry("a") }, None);
        model.change("a", &done, |before| before.map(|(seed, _)| (seed, Some("moved"))));
    }
    step!(let _ = engine.settle(Settling::Anew, &Progress::new()););
    step! {
        let done = salvage_on(&shared, folder, Utf8Path::new(RESCUED), None, Overwrite::Force, &Progress::new());
        if let Ok(salvaged) = done {
            let rescued = Embedded::open_on(Arc::clone(&shared), Utf8Path::new(RESCUED)).and_then(|rescued| model.check(&rescued));
            // What it kept of its encoder could not be read at the fault, which it says.
            let described = not_as_calibrated(disk, Utf8Path::new(RESCUED), &life.curves).ok().flatten();
            let described = described.filter(|_| salvaged.assumed.is_empty());
            if let Some(problem) = rescued.ok().flatten().or(described) {
                life.problems.push(format!("salvaged: {problem}; {salvaged:?}"));
            }
        }
    }
    step!(put(model, &engine, "f", 10););
    // Whoever writes must have ended first.
    drop(engine);
    step! {
        let done = change_manifest_on(disk, folder, |manifest| manifest.calibration = recalibrated());
        life.curves.push(recalibrated());
        if done.is_ok() {
            life.curves.remove(0);
        }
    }
    life
}

/// What is wrong with what a life left on `disk`, on which everything works again.
pub(crate) fn judge(disk: &TestDisk, life: &Life) -> Vec<String> {
    let mut problems = life.problems.clone();
    problems.extend(disk.problems());
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let folder = Utf8Path::new(FOLDER);
    if !disk.has(&folder.join("index.json")) && life.model.0.is_empty() {
        // Nothing was acknowledged, and what is there is no index: one can be made in its place.
        let made = Embedded::create_keeping(shared, folder, &calibrated(), &kept(), Overwrite::Never);
        problems.extend(made.err().map(|error| format!("cannot be made after a cut: {error}")));
        return problems;
    }
    let mut model = life.model.clone();
    let judged = (|| -> Result<()> {
        problems.extend(not_as_calibrated(disk, folder, &life.curves)?);
        let engine = Embedded::open_on(Arc::clone(&shared), folder)?;
        problems.extend(model.check(&engine)?);
        let faults = engine.verify(&Progress::new())?;
        if !faults.is_empty() && !model.is_open() {
            problems.push(format!("verify tells of {faults:?} though nothing was left half done"));
        }
        if engine.status()?.damaged > faults.len() {
            problems.push("status tells of more damage than verify".to_owned());
        }
        // The next writer goes on, and what was not whole stays away.
        let before: Vec<_> = engine.videos()?;
        let done = engine.put_with_words(&entry("late"), &moments(11), &words(11));
        model.change("late", &done, |_| Some((11, None)));
        done?;
        engine.settle(Settling::WhenWorthIt, &Progress::new())?;
        let again = Embedded::open_on(Arc::clone(&shared), folder)?;
        problems.extend(model.check(&again)?.map(|problem| format!("after another write: {problem}")));
        let after: Vec<_> = again.videos()?.into_iter().filter(|entry| entry.id.as_str() != "late").collect();
        if before != after {
            problems.push(format!("another write changed {before:?} to {after:?}"));
        }
        again.remove(&"late".into())?;
        again.compact(&Progress::new())?;
        model.0.remove("late");
        problems.extend(model.check(&again)?.map(|problem| format!("after compacting: {problem}")));
        let faults = again.verify(&Progress::new())?;
        if !faults.is_empty() {
            problems.push(format!("after compacting: {faults:?}"));
        }
        Ok(())
    })();
    problems.extend(judged.err().map(|error| format!("{error}: {:?}", std::error::Error::source(&error))));
    problems.extend(disk.problems());
    problems
}

/// Makes a graph again and again on a disk that is full at one operation after the other; how many of them failed. Panics when
/// something of a graph that failed is left.
pub(crate) fn graphs_on_full_disks(errno: i32) -> usize {
    let mut failed = 0;
    for place in 1.. {
        let disk = TestDisk::new(None, crate::disk::Broken::No);
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let folder = Utf8Path::new(FOLDER);
        let engine = Embedded::create_on(Arc::clone(&shared), folder, WIDTH, Overwrite::Never).unwrap();
        engine.put(&entry("a"), &moments(1)).unwrap();
        let before = shared.list(folder).unwrap();
        disk.fail_later(place, cuemark_testkit::faults::Fault::Errno(errno));
        let done = engine.settle(Settling::Fully, &Progress::new());
        if !disk.has_failed() {
            return failed;
        }
        if done.is_err() {
            failed += 1;
            let after = shared.list(folder).unwrap();
            // Where only waiting for the name failed, the graph is there and counts.
            engine.refresh().unwrap();
            let counts = engine.status().unwrap().in_graph > 0;
            assert_eq!(after.len(), before.len() + if counts { 2 } else { 0 }, "operation {place}: {after:?}");
            assert!(after.iter().all(|name| !name.ends_with(".part")), "operation {place}: {after:?}");
        }
    }
    failed
}
