//! Prints what is written in films and what it took, one JSON line for each: `read_films WEIGHTS_FOLDER FILM…`
#![allow(clippy::print_stdout)] // it is an example's job

use std::error::Error;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Progress;
use cuemark_media::OpenedVideo;
use cuemark_ocr::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(Utf8PathBuf::from);
    let reader = Reader::open(Utf8Path::new(&arguments.next().ok_or("read_films WEIGHTS_FOLDER FILM…")?))?;
    for film in arguments {
        let began = Instant::now();
        let read = reader.lines(&OpenedVideo::open(&film)?, &Progress::new())?;
        let seconds = began.elapsed().as_secs_f64();
        let lines: Vec<_> = read.lines.iter().map(|line| (line.span.start(), line.span.end(), &line.text)).collect();
        let name = film.file_name().unwrap_or_default();
        println!(
            "{}",
            serde_json::json!({ "film": name, "seconds": seconds, "pictures": read.pictures, "lines": lines })
        );
    }
    Ok(())
}
