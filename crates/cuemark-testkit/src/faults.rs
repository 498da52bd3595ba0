//! Disks that fail when they are told to: what the fault harnesses of the index and of training share.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// What happens at the n-th operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this number of an error.
    Errno(i32),
    /// Half of what should be written is.
    Short,
    /// Nothing works from there on; what is left then is for the disk to say.
    PowerCut,
}

/// Counts what is asked of a disk, and lets one fault happen.
#[derive(Debug, Default)]
pub struct FaultPlan {
    operations: usize,
    planned: Option<(usize, Fault)>,
    is_off: bool,
}

impl FaultPlan {
    /// Nothing was asked yet; the fault comes at the operation of that number, counted from 1.
    pub fn new(planned: Option<(usize, Fault)>) -> Self {
        Self { planned, ..Self::default() }
    }

    /// Operations so far.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// Whether the power is cut.
    pub fn is_off(&self) -> bool {
        self.is_off
    }

    /// Whether the planned fault has come.
    pub fn has_come(&self) -> bool {
        self.planned.is_some_and(|(at, _)| self.operations >= at)
    }

    /// Plans a fault so many operations from now, in place of the one that was planned.
    pub fn fail_later(&mut self, operations: usize, fault: Fault) {
        self.planned = Some((self.operations + operations, fault));
    }

    /// Counts an operation; what is to happen at it besides failing.
    ///
    /// # Errors
    /// When the power is cut already, and the planned error.
    pub fn step(&mut self) -> io::Result<Option<Fault>> {
        self.ends()?;
        self.operations += 1;
        let fault = self.planned.filter(|(at, _)| *at == self.operations).map(|(_, fault)| fault);
        match fault {
            Some(Fault::Errno(number)) => return Err(io::Error::from_raw_os_error(number)),
            Some(Fault::PowerCut) => self.is_off = true,
            Some(Fault::Short) | None => {}
        }
        Ok(fault)
    }

    /// What an operation ends with that was under way when the power was cut: it may have happened, and nobody hears of it.
    ///
    /// # Errors
    /// When the power is cut.
    pub fn ends(&self) -> io::Result<()> {
        if self.is_off { Err(io::Error::other("the power is cut")) } else { Ok(()) }
    }
}

/// Names of files: those that everybody sees, and those that a power cut would leave.
#[derive(Debug)]
pub struct DiskNames<N> {
    now: BTreeMap<Utf8PathBuf, N>,
    durable: BTreeMap<Utf8PathBuf, N>,
    /// What was done since, in order.
    pending: Vec<(Utf8PathBuf, Option<N>)>,
}

impl<N: Copy> DiskNames<N> {
    /// These, all of them on disk.
    pub fn on_disk(names: BTreeMap<Utf8PathBuf, N>) -> Self {
        Self { now: names.clone(), durable: names, pending: Vec::new() }
    }

    /// The names that everybody sees.
    pub fn now(&self) -> &BTreeMap<Utf8PathBuf, N> {
        &self.now
    }

    /// Which file has the name.
    ///
    /// # Errors
    /// When none has it.
    pub fn find(&self, path: &Utf8Path) -> io::Result<N> {
        self.now.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Gives a name to a file, or takes it away.
    pub fn set(&mut self, path: &Utf8Path, file: Option<N>) {
        change(&mut self.now, path.to_owned(), file);
        self.pending.push((path.to_owned(), file));
    }

    /// Waits until the names of which `is_meant` says so are on disk.
    pub fn sync(&mut self, is_meant: impl Fn(&Utf8Path) -> bool) {
        for (path, file) in self.pending.extract_if(.., |(path, _)| is_meant(path)) {
            change(&mut self.durable, path, file);
        }
    }

    /// How many changes nobody has waited for.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// What a power cut leaves when the first `kept` of the changes that nobody waited for are on disk: journals keep the order of
    /// names.
    ///
    /// # Panics
    /// For more than there are.
    pub fn after_power_cut(&self, kept: usize) -> BTreeMap<Utf8PathBuf, N> {
        let mut names = self.durable.clone();
        for (path, file) in &self.pending[..kept] {
            change(&mut names, path.clone(), *file);
        }
        names
    }
}

fn change<N>(names: &mut BTreeMap<Utf8PathBuf, N>, path: Utf8PathBuf, file: Option<N>) {
    match file {
        Some(file) => names.insert(path, file),
        None => names.remove(&path),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_comes_once_and_a_power_cut_stays() {
        let mut plan = FaultPlan::new(Some((2, Fault::Errno(5))));
        assert_eq!(plan.step().unwrap(), None);
        assert_eq!(plan.step().unwrap_err().raw_os_error(), Some(5));
        assert!(plan.has_come() && plan.step().unwrap().is_none());
        plan.fail_later(1, Fault::PowerCut);
        assert_eq!(plan.step().unwrap(), Some(Fault::PowerCut));
        assert!(plan.is_off() && plan.ends().is_err() && plan.step().is_err());
        assert_eq!(plan.operations(), 4);
    }

    #[test]
    fn names_that_nobody_waited_for_are_kept_in_order_or_not_at_all() {
        let mut names = DiskNames::on_disk(BTreeMap::from([("a/old".into(), 1)]));
        names.set("a/new".into(), Some(2));
        names.set("b/other".into(), Some(3));
        names.set("a/old".into(), None);
        assert!(names.find("a/old".into()).is_err() && names.find("a/new".into()).unwrap() == 2);
        let left = |names: &DiskNames<i32>, kept| names.after_power_cut(kept).into_values().collect::<Vec<_>>();
        assert_eq!([left(&names, 0), left(&names, 1), left(&names, 3)], [vec![1], vec![2, 1], vec![2, 3]]);
        names.sync(|path| path.parent() == Some("a".into()));
        assert_eq!((names.pending(), left(&names, 0)), (1, vec![2]));
    }
}
