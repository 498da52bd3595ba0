//! Sentences as `concepts` has them, and its names: for trying other rules on what `recognised` wrote.
//!
//!     sentence_vectors SENTENCES OUT   OUT: one row of 384 numbers (float32) for each line of SENTENCES
//!
//! `SENTENCES` may be `names` or `described`: the 1,400 names by themselves, or as rows are made of them.

use cuemark_encoders::visual::EncoderOptions;
use cuemark_encoders::{Concepts, classes, joint_text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [sentences, out] = arguments.as_slice() else { return Err("usage: SENTENCES OUT".into()) };
    let options = EncoderOptions::default();
    let encoder = joint_text(Concepts::NAME, &options)?;
    let file = match sentences.as_str() {
        "names" | "described" => String::new(),
        file => std::fs::read_to_string(file)?,
    };
    let lines: Vec<&str> = match sentences.as_str() {
        "names" => classes::kinetics_400().into_iter().chain(classes::imagenet()).collect(),
        "described" => classes::kinetics_400().into_iter().chain(classes::imagenet_described()).collect(),
        _ => file.lines().collect(),
    };
    let rows = encoder.encode(&lines)?;
    std::fs::write(out, rows.iter().flatten().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())?;
    Ok(())
}
