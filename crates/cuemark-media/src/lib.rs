//! Video files: which there are, what they are called, and what the `ffmpeg` programs make of them.
//!
//! Everything ffmpeg reads can be read here, whatever the codec, and nothing is linked. Frames are chosen and placed by the
//! timestamps of the stream, never by their numbers: at a requested rate, frame `n` is the picture that is on screen
//! `n / rate` seconds after the video's first frame, be its own rate variable or not.
//!
//! **One duration rule**: a film lasts as long as its *picture stream* says, else as long as its container says, else as long
//! as pictures came out of it. The container's figure counts sound that outlasts the pictures, and moments are of pictures.
//!
//! Films come from anywhere, so programs are started in one place (`program.rs`) and held on a short leash: see there.

mod complaints;
mod cut;
mod digest;
mod encode;
mod error;
mod ffprobe;
mod find;
mod frames;
mod framing;
mod names;
mod opened;
mod play;
mod probe;
mod program;
mod running;
mod sound;
mod streams;
mod thumbnail;

pub use digest::content_digest;
pub use encode::Pictures;
pub use error::{MediaError, Result};
pub use find::{ENDINGS, FoundVideos, LeftOut, find_videos};
pub use frames::{Decoded, Frame, Frames, Partial, Rate};
pub use framing::{Filter, Framing};
pub use names::{VideoFile, free_name};
pub use opened::{OpenedVideo, Stamp};
pub use probe::VideoInfo;
pub use program::Ffmpeg;
pub use sound::{SOUND_RATE, Sound};
pub use streams::{SoundInfo, Streams, SubtitleInfo};
