//! Trains a small model on the built-in world, lets it answer, and scores the answers beside a guess that never saw a video.
//!
//! Nothing is downloaded, it takes seconds on a CPU, and so the model learns next to nothing: raise `videos` and `epochs`.
//!
//! `cargo run --example train_and_predict`

#![allow(clippy::print_stdout)] // an example talks to the terminal

use camino::Utf8Path;
use cuemark::{Predict, PredictionFile, Progress, Score, Train, TruthFile};
use cuemark_world::WorldOptions;

/// What is trained on what, and how. `runs/` has one such file per published recipe.
const RUN: &str = "
[model]
name = '2d-tan'
map = { pre_clips = 8, clips = 8, counts = [7] }
hidden = 16
lstm_layers = 1
kernel = 3
layers = 2
[data]
dataset = 'world'
root = 'set below'
word_width = 12
[train]
epochs = 2
batch = 8
rate = 3e-3
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    train_and_predict(Utf8Path::from_path(folder.path()).ok_or("the path is no text")?)
}

/// Does everything below `folder`.
pub fn train_and_predict(folder: &Utf8Path) -> Result<(), Box<dyn std::error::Error>> {
    let progress = Progress::new();
    // Films of coloured shapes: features, queries, splits, and the truth about all of them.
    let world = folder.join("world");
    cuemark_world::make(&WorldOptions { videos: 24, length: 12.0, ..WorldOptions::default() }, &world, &progress)?;

    let run_file = folder.join("run.toml");
    std::fs::write(&run_file, RUN)?;
    let mut train = Train::new(run_file);
    train.out = Some(folder.join("run"));
    // What a run file leaves open can be set from outside, key by key.
    train.set = vec![format!("data.root={world}")];
    let trained = train.run(&progress)?;
    println!("{} steps; best on {}: {:?}", trained.steps, trained.val, trained.best);

    // Models never score themselves: they write a prediction file, like everybody else.
    let test = world.join("splits/test-iid.jsonl");
    let model = folder.join("model.jsonl");
    Predict::with_run(&trained.folder, "test-iid", &model).run(&progress)?;
    // A guess that knows only where the moments of the training split lie. A model should beat it.
    let guess = folder.join("guess.jsonl");
    let mut blind = Predict::with_baseline("bias-mode", &test, &guess);
    blind.train = Some(world.join("splits/train.jsonl"));
    blind.run(&progress)?;
    for (name, file) in [("the model", model), ("the guess", guess)] {
        let scored = Score::new(TruthFile::new(&test), PredictionFile::new(file)).run(&progress)?;
        println!("\n{name}\n{}", scored.report().to_markdown());
    }
    Ok(())
}
