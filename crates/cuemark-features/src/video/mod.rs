//! Frames out of video files, through the `ffmpeg` and `ffprobe` programs.
//!
//! Everything ffmpeg reads can be read here, whatever the container and codec, and nothing is linked. Frames are chosen and placed
//! by the timestamps of the stream, never by their numbers: at a requested rate, frame `n` is the picture that is on
//! screen `n / rate` seconds after the video's first frame, be its own rate variable or not.
//!
//! The programs are run as they are, through plain pipes: what they are asked for is one list of numbers (raw pictures) and one
//! JSON document. They are told to open local files only, and a file's name is never read as an address or an option.

mod complaints;
mod decode;
mod framing;
mod probe;
mod program;

pub use decode::{Decoded, Frame, Frames, Rate};
pub use framing::{Filter, Framing};
pub use probe::VideoInfo;
pub use program::Ffmpeg;
