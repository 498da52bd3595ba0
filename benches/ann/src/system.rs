//! What the system says about a process and a folder.

use anyhow::Context as _;
use camino::Utf8Path;

/// Seconds of all processors that this process has had, ended threads included, by the hundredth.
pub fn processor_seconds() -> anyhow::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let behind_name = text.rsplit_once(')').context("no name")?.1;
    let ticks: Vec<f64> = behind_name.split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

/// Seconds of a processor that the threads living now have had, by the nanosecond.
pub fn thread_seconds() -> anyhow::Result<f64> {
    let mut nanoseconds = 0.0;
    for task in std::fs::read_dir("/proc/self/task")? {
        // A thread may end between the listing and the look.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        nanoseconds += text.split_whitespace().next().context("no time")?.parse::<f64>()?;
    }
    Ok(nanoseconds / 1e9)
}

/// Bytes that `/proc/self/status` gives for `field`: `RssAnon`, `RssFile`, `VmHWM`.
pub fn memory(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Bytes on disk of a folder's files, holes left out.
pub fn disk(folder: &Utf8Path) -> anyhow::Result<u64> {
    let files = files(folder)?;
    let blocks = |path: &camino::Utf8PathBuf| {
        use std::os::unix::fs::MetadataExt as _;
        Ok(512 * std::fs::metadata(path)?.blocks())
    };
    files.iter().map(blocks).sum()
}

/// All files of a folder, those of its folders too, by name.
pub fn files(folder: &Utf8Path) -> anyhow::Result<Vec<camino::Utf8PathBuf>> {
    let mut found = Vec::new();
    for entry in folder.read_dir_utf8()? {
        let path = entry?.into_path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Copies a folder with its folders; holes stay holes.
pub fn copy(from: &Utf8Path, to: &Utf8Path) -> anyhow::Result<()> {
    let status =
        std::process::Command::new("cp").args(["-r", "--sparse=always", from.as_str(), to.as_str()]).status()?;
    anyhow::ensure!(status.success(), "cannot copy `{from}` to `{to}`");
    Ok(())
}
