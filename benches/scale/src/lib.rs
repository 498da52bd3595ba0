//! What the programs here share.

use std::fs::File;
use std::io::{BufWriter, Write as _};

use camino::Utf8Path;
use cuemark_search::engine::Embedded;
use cuemark_search::{Embedding, Engine as _};
use serde_json::{Value, json};

/// All moments of `engine` and `questions` as plain 32-bit numbers for a peer: `moments.f32` and `queries.f32` in `out`.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write_for_a_peer(engine: &Embedded, questions: &[Embedding], out: &Utf8Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(out)?;
    let put = |file: &mut BufWriter<File>, embedding: &Embedding| {
        embedding.numbers().iter().try_for_each(|x| file.write_all(&x.to_le_bytes()))
    };
    let mut file = BufWriter::new(File::create(out.join("moments.f32"))?);
    for entry in engine.videos()? {
        for moment in engine.moments(&entry.id)?.unwrap_or_default() {
            put(&mut file, &moment.embedding)?;
        }
    }
    file.flush()?;
    let mut file = BufWriter::new(File::create(out.join("queries.f32"))?);
    questions.iter().try_for_each(|question| put(&mut file, question))?;
    Ok(file.flush()?)
}

/// Bytes in memory by kind, as the system counts them: now, what files are not, what files are, and the most there ever was.
pub fn memory() -> Value {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).map(|kilobytes| 1024 * kilobytes)
    };
    json!({ "all": bytes("VmRSS:"), "own": bytes("RssAnon:"), "mapped": bytes("RssFile:"), "peak": bytes("VmHWM:") })
}
