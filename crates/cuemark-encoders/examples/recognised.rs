//! What `concepts` recognises in films, clip by clip: for looking at, and for trying other ways to make rows of it.
//!
//!     recognised OUT STRIDE FILM…   OUT/FILM.f32: one row of 1,400 probabilities (actions, then objects) per clip
//!
//! A clip has two seconds; STRIDE is in frames of an eighth of a second, 16 as the encoder has it.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Progress;
use cuemark_encoders::extract::extract_rows;
use cuemark_encoders::visual::{Clips, EncoderOptions, Sampling};
use cuemark_encoders::{ClipEncoder, Concepts, EncodeError};
use cuemark_features::Recipe;
use cuemark_media::Ffmpeg;

type Error = Box<dyn std::error::Error>;

/// `concepts` before its rows are made: one number for every class.
struct Classes(Concepts);

impl ClipEncoder for Classes {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn width(&self) -> usize {
        1400
    }

    fn sampling(&self) -> Sampling {
        self.0.sampling()
    }

    fn recipe(&self) -> Recipe {
        self.0.recipe()
    }

    fn encode(&self, clips: &Clips) -> Result<Vec<Vec<f32>>, EncodeError> {
        self.0.probabilities_of_classes(clips)
    }
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1).map(Utf8PathBuf::from);
    let usage = "usage: OUT STRIDE FILM…";
    let (out, stride) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let options = EncoderOptions { stride: Some(stride.as_str().parse()?), ..EncoderOptions::default() };
    let classes = Classes(Concepts::open(&options)?);
    for film in arguments {
        let mut bytes = Vec::new();
        extract_rows(&Ffmpeg::on_path(), &film, &classes, &Progress::new(), &mut |rows| {
            bytes.extend(rows.iter().flatten().flat_map(|number| number.to_le_bytes()));
            Ok(())
        })?;
        let name = Utf8Path::new(film.file_stem().unwrap_or("film")).with_extension("f32");
        std::fs::write(out.join(name), bytes)?;
    }
    Ok(())
}
