//! A disk in memory that fails when it is told to, and that knows what a power cut would leave.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Rng;
use cuemark_search::engine::disk::{Disk, DiskFile, FileStamp, Held, Mapped};
use cuemark_testkit::faults::{DiskNames, Fault, FaultPlan};

/// What reaches a disk reaches it in pages.
const PAGE: usize = 512;

/// Ways in which a disk, or an engine, may be broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Not at all.
    No,
    /// Waiting for the log does not wait: commits are acknowledged before they are on disk.
    LogIsNotSynced,
    /// Everybody gets the lock.
    LockIsNotTaken,
    /// A cut takes a record more.
    CutsTooFar,
}

/// A disk in memory. Clones are the same disk.
#[derive(Debug, Clone)]
pub(crate) struct TestDisk(Arc<Mutex<World>>);

#[derive(Debug)]
struct World {
    files: BTreeMap<u64, Inode>,
    names: DiskNames<u64>,
    inodes: u64,
    /// Which operations wrote to a log.
    log_writes: Vec<usize>,
    plan: FaultPlan,
    locks: BTreeSet<Utf8PathBuf>,
    maps: Vec<(u64, u64, Weak<()>)>,
    problems: Vec<String>,
    broken: Broken,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    data: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
    modified: usize,
}

impl TestDisk {
    pub(crate) fn new(plan: Option<(usize, Fault)>, broken: Broken) -> Self {
        Self(Arc::new(Mutex::new(World {
            files: BTreeMap::new(),
            names: DiskNames::on_disk(BTreeMap::new()),
            inodes: 0,
            log_writes: Vec::new(),
            plan: FaultPlan::new(plan),
            locks: BTreeSet::new(),
            maps: Vec::new(),
            problems: Vec::new(),
            broken,
        })))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// Operations so far.
    pub(crate) fn operations(&self) -> usize {
        self.world().plan.operations()
    }

    /// Which operations wrote to a log.
    pub(crate) fn log_writes(&self) -> Vec<usize> {
        self.world().log_writes.clone()
    }

    /// Whether the power is cut.
    pub(crate) fn is_off(&self) -> bool {
        self.world().plan.is_off()
    }

    /// Whether somebody has the lock.
    pub(crate) fn is_locked(&self, path: &Utf8Path) -> bool {
        self.world().locks.contains(path)
    }

    /// Plans a fault so many operations from now.
    pub(crate) fn fail_later(&self, operations: usize, fault: Fault) {
        self.world().plan.fail_later(operations, fault);
    }

    /// Whether the planned fault has come.
    pub(crate) fn has_failed(&self) -> bool {
        self.world().plan.has_come()
    }

    /// What no engine should do and one did.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.world().problems.clone()
    }

    /// Whether a name is there.
    pub(crate) fn has(&self, path: &Utf8Path) -> bool {
        self.world().names.find(path).is_ok()
    }

    /// The disk as it is after the power has come back: what was waited for, and a part of the rest that `seed` chooses. 0
    /// keeps nothing of the rest and 1 all of it.
    pub(crate) fn after_power_cut(&self, seed: u64) -> Self {
        let world = self.world();
        let mut rng = Rng::stream(seed, "power cut");
        let mut keeps = || match seed {
            0 => false,
            1 => true,
            _ => rng.below(2) == 1,
        };
        let mut files = BTreeMap::new();
        for (number, inode) in &world.files {
            let mut data = inode.durable.clone();
            if keeps() {
                data.resize(inode.data.len(), 0);
            }
            for page in &inode.dirty {
                let (from, to) = (page * PAGE, ((page + 1) * PAGE).min(inode.data.len()).min(data.len()));
                if from < to && keeps() {
                    data[from..to].copy_from_slice(&inode.data[from..to]);
                }
            }
            files.insert(*number, Inode { durable: data.clone(), data, dirty: BTreeSet::new(), modified: 0 });
        }
        let kept = match seed {
            0 => 0,
            1 => world.names.pending(),
            _ => Rng::stream(seed, "names").below(world.names.pending() + 1),
        };
        let disk = Self::new(None, world.broken);
        {
            let mut after = disk.world();
            (after.files, after.names) = (files, DiskNames::on_disk(world.names.after_power_cut(kept)));
            after.inodes = world.inodes;
        }
        disk
    }

    /// Counts an operation; what is to happen at it.
    fn step(&self) -> io::Result<(MutexGuard<'_, World>, Option<Fault>)> {
        let mut world = self.world();
        let fault = world.plan.step()?;
        Ok((world, fault))
    }

    /// An operation that does nothing to the disk: a power cut comes before it.
    fn look(&self) -> io::Result<MutexGuard<'_, World>> {
        match self.step()? {
            (_, Some(Fault::PowerCut)) => Err(io::Error::other("the power is cut")),
            (world, _) => Ok(world),
        }
    }
}

impl World {
    fn is_log(&self, number: u64) -> bool {
        self.names.now().iter().any(|(path, of)| *of == number && path.file_name() == Some("moments.log"))
    }

    fn stamp(&self, number: u64) -> FileStamp {
        let inode = &self.files[&number];
        FileStamp { device: 1, inode: number, length: inode.data.len() as u64, modified: inode.modified as i128 }
    }
}

struct Open(TestDisk, u64);

struct Lock(TestDisk, Utf8PathBuf);

impl Held for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.world().locks.remove(&self.1);
    }
}

impl Disk for TestDisk {
    fn open(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        let number = self.look()?.names.find(path)?;
        Ok(Box::new(Open(self.clone(), number)))
    }

    fn open_to_write(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path)
    }

    fn create(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        let (mut world, _) = self.step()?;
        world.inodes += 1;
        let number = world.inodes;
        world.files.insert(number, Inode::default());
        world.names.set(path, Some(number));
        world.plan.ends()?;
        Ok(Box::new(Open(self.clone(), number)))
    }

    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        let (mut world, _) = self.step()?;
        let number = world.names.find(from)?;
        // One step: neither name is ever without the file.
        world.names.set(to, Some(number));
        world.names.set(from, None);
        world.plan.ends()
    }

    fn remove(&self, path: &Utf8Path) -> io::Result<()> {
        let (mut world, _) = self.step()?;
        world.names.find(path)?;
        world.names.set(path, None);
        world.plan.ends()
    }

    fn sync_folder(&self, _: &Utf8Path) -> io::Result<()> {
        let mut world = self.look()?;
        world.names.sync(|_| true);
        Ok(())
    }

    fn make_folder(&self, _: &Utf8Path) -> io::Result<()> {
        self.look().map(drop)
    }

    fn list(&self, folder: &Utf8Path) -> io::Result<Vec<String>> {
        let world = self.look()?;
        let here = world.names.now().keys().filter(|path| path.parent() == Some(folder));
        Ok(here.filter_map(|path| path.file_name()).map(str::to_owned).collect())
    }

    fn stamp(&self, path: &Utf8Path) -> io::Result<FileStamp> {
        let world = self.look()?;
        Ok(world.stamp(world.names.find(path)?))
    }

    fn lock(&self, path: &Utf8Path) -> io::Result<Option<Box<dyn Held>>> {
        let mut world = self.look()?;
        let is_new = world.locks.insert(path.to_owned());
        let taken = is_new || world.broken == Broken::LockIsNotTaken;
        drop(world);
        Ok(taken.then(|| Box::new(Lock(self.clone(), path.to_owned())) as Box<dyn Held>))
    }
}

impl DiskFile for Open {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let world = self.0.look()?;
        let data = world.files[&self.1].data.get(offset as usize..).unwrap_or_default();
        let count = data.len().min(buffer.len());
        buffer[..count].copy_from_slice(&data[..count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let (mut world, fault) = self.0.step()?;
        let count = if fault == Some(Fault::Short) { bytes.len().div_ceil(2) } else { bytes.len() };
        let (from, to) = (offset as usize, offset as usize + count);
        let now = world.plan.operations();
        if world.is_log(self.1) {
            world.log_writes.push(now);
        }
        if let Some(inode) = world.files.get_mut(&self.1) {
            inode.data.resize(inode.data.len().max(to), 0);
            inode.data[from..to].copy_from_slice(&bytes[..count]);
            inode.dirty.extend(from / PAGE..to.div_ceil(PAGE));
            inode.modified = now;
        }
        world.plan.ends()?;
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.0.look()?;
        if world.broken == Broken::LogIsNotSynced && world.is_log(self.1) {
            return Ok(());
        }
        if let Some(inode) = world.files.get_mut(&self.1) {
            inode.durable = inode.data.clone();
            inode.dirty.clear();
        }
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let (mut world, _) = self.0.step()?;
        let more = if world.broken == Broken::CutsTooFar { 256 } else { 0 };
        let (length, now) = (length.saturating_sub(more), world.plan.operations());
        let mut problems = Vec::new();
        if length > world.files[&self.1].data.len() as u64 {
            problems.push(format!("a cut to {length} bytes made the file longer"));
        }
        let of = |(number, mapped, alive): &&(u64, u64, Weak<()>)| {
            *number == self.1 && *mapped > length && alive.strong_count() > 0
        };
        if let Some((_, mapped, _)) = world.maps.iter().find(of) {
            problems.push(format!("a cut to {length} bytes where a reader maps {mapped}"));
        }
        world.problems.extend(problems);
        if let Some(inode) = world.files.get_mut(&self.1) {
            inode.data.resize(length as usize, 0);
            inode.modified = now;
        }
        world.plan.ends()
    }

    fn stamp(&self) -> io::Result<FileStamp> {
        Ok(self.0.look()?.stamp(self.1))
    }

    fn map(&self, length: u64) -> io::Result<Mapped> {
        let mut world = self.0.look()?;
        let alive = Arc::new(());
        world.maps.push((self.1, length, Arc::downgrade(&alive)));
        let data = world.files[&self.1].data.get(..length as usize).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Mapped::of_bytes(data, alive))
    }
}
