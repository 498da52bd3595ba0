//! The real files, which fail when they are told to, and a record of what a power cut would leave of them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Rng;
use cuemark_formats::{Files, OpenFile, RealFiles};
use cuemark_testkit::faults::{DiskNames, Fault, FaultPlan};

/// Ways in which what writes may be broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Not at all.
    No,
    /// Waiting for a file does not wait.
    FilesAreNotSynced,
}

/// What a disk writes together or not at all, in bytes.
const PAGE: usize = 4096;

/// Files below one folder. Clones are the same files.
#[derive(Debug, Clone)]
pub(crate) struct TestFiles(Arc<Mutex<World>>);

#[derive(Debug)]
struct World {
    /// What is in each file, and how much of it is on disk.
    files: Vec<(Vec<u8>, usize)>,
    names: DiskNames<usize>,
    plan: FaultPlan,
    broken: Broken,
}

impl TestFiles {
    /// Everything below `folder` is there and on disk.
    pub(crate) fn of(folder: &Utf8Path, plan: Option<(usize, Fault)>, broken: Broken) -> Self {
        let (mut files, mut names) = (Vec::new(), BTreeMap::new());
        for path in files_below(folder) {
            let bytes = std::fs::read(&path).unwrap();
            names.insert(path, files.len());
            files.push((bytes.clone(), bytes.len()));
        }
        let (names, plan) = (DiskNames::on_disk(names), FaultPlan::new(plan));
        Self(Arc::new(Mutex::new(World { files, names, plan, broken })))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// Operations so far.
    pub(crate) fn operations(&self) -> usize {
        self.world().plan.operations()
    }

    /// Writes into `to` what is below `folder` after the power has come back: what was waited for, and those pages of the rest
    /// that `seed` chooses. 0 keeps nothing of the rest and 1 all of it.
    pub(crate) fn after_power_cut(&self, seed: u64, folder: &Utf8Path, to: &Utf8Path) {
        let world = self.world();
        let mut rng = Rng::stream(seed, "power cut");
        let kept = part(world.names.pending(), seed, &mut rng);
        for (path, number) in world.names.after_power_cut(kept) {
            let (bytes, durable) = &world.files[number];
            let path = to.join(path.strip_prefix(folder).unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, survivors(bytes, *durable, seed, &mut rng)).unwrap();
        }
    }

    /// Counts an operation; what is to happen at it.
    fn step(&self) -> io::Result<(MutexGuard<'_, World>, Option<Fault>)> {
        let mut world = self.world();
        let fault = world.plan.step()?;
        Ok((world, fault))
    }
}

/// None of `most` for seed 0, all for 1, any number for others.
fn part(most: usize, seed: u64, rng: &mut Rng) -> usize {
    match seed {
        0 => 0,
        1 => most,
        _ => rng.below(most + 1),
    }
}

/// What a power cut leaves of a file of which the first `durable` bytes were waited for.
///
/// Pages of the rest are on disk or not, each by itself, in no order: one may be there when an earlier one is not, and the length
/// of the file without either. A small file is there whole or as zeros, which is what tears two files that must agree apart.
fn survivors(bytes: &[u8], durable: usize, seed: u64, rng: &mut Rng) -> Vec<u8> {
    let rest = bytes.len() - durable;
    let length = durable + if seed > 1 && rng.chance(0.5) { rest } else { part(rest, seed, rng) };
    let mut left = bytes[..length].to_vec();
    if seed > 1 {
        for page in left[durable..].chunks_mut(PAGE) {
            if rng.chance(0.5) {
                page.fill(0);
            }
        }
    }
    left
}

struct Open {
    real: Box<dyn OpenFile>,
    files: TestFiles,
    number: usize,
}

impl Files for TestFiles {
    fn create(&self, path: &Utf8Path) -> io::Result<Box<dyn OpenFile>> {
        let (mut world, _) = self.step()?;
        let real = RealFiles.create(path)?;
        let number = world.files.len();
        world.files.push((Vec::new(), 0));
        world.names.set(path, Some(number));
        world.plan.ends()?;
        Ok(Box::new(Open { real, files: self.clone(), number }))
    }

    fn append(&self, path: &Utf8Path) -> io::Result<Box<dyn OpenFile>> {
        let (mut world, _) = self.step()?;
        let real = RealFiles.append(path)?;
        let number = match world.names.find(path) {
            Ok(number) => number,
            Err(_) => {
                world.files.push((Vec::new(), 0));
                let number = world.files.len() - 1;
                world.names.set(path, Some(number));
                number
            }
        };
        world.plan.ends()?;
        Ok(Box::new(Open { real, files: self.clone(), number }))
    }

    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        let (mut world, _) = self.step()?;
        RealFiles.rename(from, to)?;
        let number = world.names.find(from)?;
        world.names.set(to, Some(number));
        world.names.set(from, None);
        world.plan.ends()
    }

    fn remove(&self, path: &Utf8Path) -> io::Result<()> {
        let (mut world, _) = self.step()?;
        RealFiles.remove(path)?;
        world.names.set(path, None);
        world.plan.ends()
    }

    fn make_folder(&self, folder: &Utf8Path) -> io::Result<()> {
        let (world, _) = self.step()?;
        RealFiles.make_folder(folder)?;
        world.plan.ends()
    }

    fn sync_folder(&self, folder: &Utf8Path) -> io::Result<()> {
        let (mut world, fault) = self.step()?;
        if fault == Some(Fault::PowerCut) {
            return world.plan.ends();
        }
        // Only the names in this very folder.
        world.names.sync(|path| path.parent() == Some(folder));
        Ok(())
    }
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (mut world, fault) = self.files.step()?;
        let count = if fault == Some(Fault::Short) { bytes.len().div_ceil(2) } else { bytes.len() };
        self.real.write_all(&bytes[..count])?;
        world.files[self.number].0.extend(&bytes[..count]);
        world.plan.ends()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OpenFile for Open {
    fn sync(&mut self) -> io::Result<()> {
        let (mut world, fault) = self.files.step()?;
        if fault == Some(Fault::PowerCut) {
            return world.plan.ends();
        }
        if world.broken != Broken::FilesAreNotSynced {
            let file = &mut world.files[self.number];
            file.1 = file.0.len();
        }
        Ok(())
    }
}

pub(crate) fn files_below(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let Ok(entries) = folder.read_dir_utf8() else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().into_path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
