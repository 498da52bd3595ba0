//! The machine and the day: no figure is written down without them.

use std::process::Command;

use serde_json::{Value, json};

/// Where and when something was measured.
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    memory_gib: f64,
    system: String,
    compiler: String,
    commit: String,
    /// Programs that wanted a core over the last minute, before anything was measured: well below `cores`, or the
    /// figures are those of a busy machine.
    load: f64,
    /// The day in UTC, `YYYY-MM-DD`.
    pub(crate) date: String,
}

impl Machine {
    /// This one, now. What cannot be found out is `unknown`.
    pub(crate) fn here() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let loadavg = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = loadavg.split(' ').next().and_then(|text| text.parse().ok());
        let memory = field(&meminfo, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: memory.unwrap_or(f64::NAN) / f64::from(1 << 20),
            system: said_by("uname", &["-sr"]),
            compiler: said_by("rustc", &["--version"]),
            commit: said_by("git", &["describe", "--always", "--dirty"]),
            load: load.unwrap_or(f64::NAN),
            date: said_by("date", &["-u", "+%F"]),
        }
    }

    /// One line for people.
    pub(crate) fn describe(&self) -> String {
        let Self { cpu, cores, memory_gib, system, compiler, commit, load, date } = self;
        let machine = format!("{cpu}, {cores} cores, {memory_gib:.0} GiB, load {load:.1} before the run");
        format!("{date}, commit {commit}; {machine}; {system}; {compiler}")
    }

    /// The same for scripts.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "date": self.date, "commit": self.commit, "cpu": self.cpu, "cores": self.cores,
            "memory_gib": self.memory_gib, "load": self.load, "system": self.system, "compiler": self.compiler,
        })
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The value of the first `name : value` line.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(crate::process::workspace()).output();
    output.ok().and_then(|output| String::from_utf8(output.stdout).ok()).map_or_else(unknown, |text| {
        let text = text.trim();
        if text.is_empty() { unknown() } else { text.to_owned() }
    })
}
