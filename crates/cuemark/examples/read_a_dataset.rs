//! Reads a published dataset from its own folder and says what is in it, and what is wrong with it.
//!
//! `cargo run --example read_a_dataset -- charades-sta FOLDER`

#![allow(clippy::print_stdout)] // an example talks to the terminal

use camino::Utf8Path;
use cuemark::Progress;
use cuemark_data::{ReadOptions, find, load};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, root] = arguments.as_slice() else {
        return Err("usage: read_a_dataset NAME FOLDER".into());
    };
    read_a_dataset(name, Utf8Path::new(root))
}

/// Reads the dataset called `name` from `root`.
pub fn read_a_dataset(name: &str, root: &Utf8Path) -> Result<(), Box<dyn std::error::Error>> {
    // The card knows the published counts, where the files come from and under which licence.
    let dataset = load(find(name)?, root, &ReadOptions::default(), &Progress::new())?;
    let all = dataset.all();
    println!("{}: {} queries on {} videos", name, all.queries.len(), all.videos.len());
    if let Some(first) = all.queries.first() {
        let spans: Vec<String> = first.right().map(|moment| format!("{:?}", moment.span)).collect();
        println!("the first: “{}” at {}", first.query.text, spans.join(", "));
    }
    // Nothing is repaired silently: reversed, empty and overlong rows are counted by kind.
    for (fault, rows) in all.rows.iter() {
        println!("{rows} rows: {fault}");
    }
    Ok(())
}
