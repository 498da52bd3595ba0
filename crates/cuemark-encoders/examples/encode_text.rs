//! Our side of `cargo xtask bench encode`: sentences of a file, one a line, through MiniLM.
//!
//! `encode_text CACHE SENTENCES RUNS` pulls the weights into CACHE when they are not there, encodes everything once to warm up and
//! RUNS times by the clock, and prints `{"seconds": […], "sentences": N, "first": [[…], …]}`. Threads: `RAYON_NUM_THREADS`.

#![allow(clippy::print_stdout)] // An example talks to whoever called it.

use std::error::Error;
use std::time::Instant;

use cuemark_encoders::text;
use cuemark_encoders::weights::{Cache, find};
use cuemark_tensor::Device;

/// Vectors that are printed, for the caller to compare.
const SHOWN: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cache, sentences, runs] = arguments.as_slice() else { return Err("CACHE SENTENCES RUNS".into()) };
    let (folder, _) = Cache::at(cache.as_str()).pull(find("minilm")?, &mut |_| ())?;
    let encoder = text::from_folder(&folder, &Device::Cpu)?;
    let text = std::fs::read_to_string(sentences)?;
    let sentences: Vec<&str> = text.lines().collect();
    let vectors = encoder.encode(&sentences)?;
    let mut seconds = Vec::new();
    for _ in 0..runs.parse::<usize>()? {
        let begin = Instant::now();
        encoder.encode(&sentences)?;
        seconds.push(begin.elapsed().as_secs_f64());
    }
    let first: Vec<&Vec<f32>> = vectors.iter().take(SHOWN).collect();
    println!("{}", serde_json::json!({ "seconds": seconds, "sentences": sentences.len(), "first": first }));
    Ok(())
}
