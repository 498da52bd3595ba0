//! Parts a dataset so that a model which only learnt *where* moments usually lie is found out.
//!
//! `cargo run --example make_a_split -- charades-sta FOLDER OUT [DURATIONS]`

#![allow(clippy::print_stdout)] // an example talks to the terminal

use camino::Utf8PathBuf;
use cuemark::{MakeSplits, NamedDataset, Progress, SplitProtocol};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, root, out, durations @ ..] = arguments.as_slice() else {
        return Err("usage: make_a_split NAME FOLDER OUT [DURATIONS]".into());
    };
    let mut dataset = NamedDataset::new(name, root);
    // Some files state no durations, and without them nobody knows where in its video a moment lies.
    dataset.folder.durations = durations.first().map(Into::into);
    make_a_split(dataset, out.into())
}

/// Parts `dataset` into the folder `out`.
pub fn make_a_split(dataset: NamedDataset, out: Utf8PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    // `centre`: the tenth of the videos whose moments come last is test-ood. `cd` asks instead which places are rare.
    let mut request = MakeSplits::new(SplitProtocol::Centre, dataset, out);
    // Every random choice takes a seed, and the manifest keeps it.
    request.recipe.seed = 7;
    let made = request.run(&Progress::new())?;
    for split in &made.manifest.outcome.splits {
        println!("{}: {} queries on {} videos", split.name, split.queries, split.videos);
    }
    // An honest set of splits shares no video.
    for pair in made.manifest.outcome.shared_videos.iter().filter(|pair| pair.videos > 0) {
        println!("{} and {} share {} videos", pair.left, pair.right, pair.videos);
    }
    println!("{} says how they were made", made.out.join("manifest.json"));
    Ok(())
}
