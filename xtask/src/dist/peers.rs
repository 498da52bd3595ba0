//! How long it takes to install the wheel, to import it and to see a first number, beside two evaluators of ranked lists that
//! people install in the same way.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::output;
use super::root::{INSIDE, Root};
use super::tried::size;
use crate::machine::Machine;

/// One library and the shortest program that prints a number with it.
struct Peer {
    name: &'static str,
    import: &'static str,
    number: &'static str,
}

const PEERS: &[Peer] = &[
    Peer {
        name: "cuemark",
        import: "import cuemark",
        number: "import cuemark\n\
                 print(cuemark.evaluate('truth.jsonl', 'mine.jsonl').metrics)",
    },
    Peer {
        name: "ranx",
        import: "import ranx",
        number: "from ranx import Qrels, Run, evaluate\n\
                 print(evaluate(Qrels({'q': {'a': 1}}), Run({'q': {'b': 2.0, 'a': 1.0}}), 'map'))",
    },
    Peer {
        name: "ir_measures",
        import: "import ir_measures",
        number: "import ir_measures\n\
                 from ir_measures import AP\n\
                 print(ir_measures.calc_aggregate([AP], {'q': {'a': 1}}, {'q': {'b': 2.0, 'a': 1.0}}))",
    },
];

/// Installs each into an environment of its own in a bare system, from the registry and without a cache, and prints a table.
pub(super) fn beside(wheel: &Path, root: &Root) -> Result<bool> {
    let folder = root.empty()?;
    let name = wheel.file_name().and_then(|name| name.to_str()).context("a wheel has no name")?;
    std::fs::copy(wheel, folder.join(name))?;
    std::fs::write(
        folder.join("truth.jsonl"),
        "{\"qid\":1,\"query\":\"q\",\"video\":\"v\",\"duration\":9.0,\"spans\":[[1.0,4.0]]}\n",
    )?;
    std::fs::write(folder.join("mine.jsonl"), "{\"qid\":1,\"predictions\":[{\"span\":[1.0,4.0]}]}\n")?;
    println!("{}\n", Machine::here().describe());
    println!(
        "| | install | on disk | first import | import | first number | number |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    for peer in PEERS {
        let environment = format!("{INSIDE}/{}", peer.name);
        output(&mut root.command(&["/usr/bin/python3", "-m", "venv", &environment]))?;
        let own = folder.join(peer.name);
        let before = size(&own)?;
        let python = format!("{environment}/bin/python");
        let wheel = format!("{INSIDE}/{name}");
        let what = if peer.name == "cuemark" { wheel.as_str() } else { peer.name };
        let install =
            seconds(&mut root.command(&[&python, "-m", "pip", "install", "--no-cache-dir", "--quiet", what]))?;
        let bytes = size(&own)? - before;
        let first = seconds(&mut root.command(&[&python, "-c", peer.import]))?;
        let import = best_of_three(|| root.command(&[&python, "-c", peer.import]))?;
        let number_first = seconds(&mut root.command(&[&python, "-c", peer.number]))?;
        let number = best_of_three(|| root.command(&[&python, "-c", peer.number]))?;
        println!(
            "| {} | {install:.1} s | {:.0} MB | {first:.2} s | {import:.2} s | {number_first:.2} s | {number:.2} s |",
            peer.name,
            bytes as f64 / 1e6
        );
    }
    let nothing = best_of_three(|| root.command(&["/usr/bin/python3", "-c", ""]))?;
    println!("\nSeconds are those of whole processes; one of Python that does nothing takes {nothing:.2} s.");
    Ok(true)
}

/// From before a command was started until it was gone; it has to end well.
fn seconds(command: &mut Command) -> Result<f64> {
    let begin = Instant::now();
    output(command)?;
    Ok(begin.elapsed().as_secs_f64())
}

fn best_of_three(command: impl Fn() -> Command) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        best = best.min(seconds(&mut command())?);
    }
    Ok(best)
}
