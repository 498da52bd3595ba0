//! Our side of `cargo xtask bench features`: reads every video of an HDF5 file, as training does.
//!
//! `h5_read FILE.h5 TIMES`
//!
//! Prints one line of JSON: seconds of each time from opening the file to the last row in memory as 32-bit numbers, after a
//! first that does not count, and what was read, by which both sides show that they read the same.

use std::error::Error;
use std::time::Instant;

use camino::Utf8Path;
use cuemark_core::VideoId;
use cuemark_features::{Features, OpenOptions, open};

#[allow(clippy::print_stdout)] // an example talks to the terminal
fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, times] = words.as_slice() else {
        return Err("usage: h5_read FILE.h5 TIMES".into());
    };
    let (mut seconds, mut read) = (Vec::new(), Vec::new());
    for number in 0..=times.parse::<usize>()? {
        let began = Instant::now();
        read = read_all(Utf8Path::new(file))?;
        if number > 0 {
            seconds.push(began.elapsed().as_secs_f64());
        }
    }
    let numbers: usize = read.iter().map(|features| features.data().len()).sum();
    let sum: f64 = read.iter().flat_map(Features::data).map(|number| f64::from(*number)).sum();
    println!("{}", serde_json::json!({ "read_s": seconds, "videos": read.len(), "numbers": numbers, "sum": sum }));
    Ok(())
}

/// Every video, in the order of their names.
fn read_all(file: &Utf8Path) -> Result<Vec<Features>, Box<dyn Error>> {
    let options = OpenOptions::default();
    let source = open(file, &options)?;
    let videos: Vec<VideoId> = source.videos(&options.stream).into_iter().cloned().collect();
    Ok(videos.iter().map(|video| source.get(video, &options.stream)).collect::<Result<_, _>>()?)
}
