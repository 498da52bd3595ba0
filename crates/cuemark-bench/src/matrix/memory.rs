//! How much memory there is, and how much processes have: read from `/proc` where there is one.

/// Bytes that could be had without swapping; `None` where the system does not say.
pub fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    kib_of(&text, "MemAvailable:").map(|kib| kib * 1024)
}

/// Bytes of memory that a process has now.
pub(super) fn of_process(id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    kib_of(&text, "VmRSS:").map(|kib| kib * 1024)
}

/// Bytes of memory that a process and everything it started have now.
pub(super) fn of_family(id: u32) -> u64 {
    // Nobody starts so many, and a list that grows while it is read must end.
    const MOST: usize = 10_000;
    let (mut ids, mut bytes) = (vec![id], 0);
    let mut next = 0;
    while let Some(id) = ids.get(next).copied().filter(|_| next < MOST) {
        bytes += of_process(id).unwrap_or(0);
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        ids.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        next += 1;
    }
    bytes
}

/// The most MiB that this process has had.
pub(super) fn own_peak_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    kib_of(&text, "VmHWM:").map(|kib| kib / 1024)
}

/// The number behind `key`.
fn kib_of(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Reads `4GiB`, `512 MiB`, `800M` or a plain number of bytes; units are powers of 1,024.
///
/// ```
/// use cuemark_bench::matrix::parse_bytes;
/// assert_eq!(parse_bytes("4GiB"), Some(4 << 30));
/// assert_eq!(parse_bytes("1.5 G"), Some(3 << 29));
/// assert_eq!(parse_bytes("a lot"), None);
/// ```
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * (1u64 << shift) as f64;
    (bytes.is_finite() && bytes >= 1.0).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_behind_their_keys() {
        let text = "MemTotal:  24 kB\nMemAvailable:   17 kB\n";
        assert_eq!((kib_of(text, "MemAvailable:"), kib_of(text, "Swap:")), (Some(17), None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory() {
        assert!(of_process(std::process::id()).unwrap() > 1 << 20);
        assert!(available().unwrap() > 1 << 20 && own_peak_mib().unwrap() > 0);
    }
}
