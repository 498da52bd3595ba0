//! Prints what is written in raw pictures, one JSON line for each: `read_pictures WEIGHTS_FOLDER WIDTH HEIGHT PICTURES.rgb`
//!
//! `benches/peers/ocr_pictures.py` prints the same of RapidOCR.
#![allow(clippy::print_stdout)] // it is an example's job

use std::error::Error;
use std::time::Instant;

use camino::Utf8Path;
use cuemark_ocr::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [weights, width, height, pictures] = arguments.as_slice() else {
        return Err("read_pictures WEIGHTS_FOLDER WIDTH HEIGHT PICTURES.rgb".into());
    };
    let (reader, width, height) = (Reader::open(Utf8Path::new(weights))?, width.parse()?, height.parse()?);
    for picture in std::fs::read(pictures)?.chunks_exact(3 * width * height) {
        let began = Instant::now();
        let lines = reader.picture(picture, width, height)?;
        let seconds = began.elapsed().as_secs_f64();
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        println!("{}", serde_json::json!({ "seconds": seconds, "lines": texts }));
    }
    Ok(())
}
