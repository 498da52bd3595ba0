//! Films to try things on, and weights that may be there.

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_encoders::weights::{Cache, WeightsFolder, find};

/// Weights that have been pulled; `None`, loudly, when they have not.
pub(crate) fn pulled(name: &str) -> Option<WeightsFolder> {
    let cache = Cache::at(cuemark_testkit::weights(name)?);
    Some(cache.locate(find(name).unwrap()).unwrap())
}

/// The folder of the three real films.
pub(crate) fn shared_videos() -> Option<Utf8PathBuf> {
    cuemark_testkit::shared("data/videos")
}

/// A film of `seconds` at 10 frames a second that gets brighter, made by ffmpeg.
pub(crate) fn make_film(path: &Utf8Path, seconds: u32) {
    let film = format!("nullsrc=s=64x48:r=10:d={seconds},geq=lum='16+40*T':cb=128:cr=128");
    let coding = ["-c:v", "libx264", "-qp", "0", "-pix_fmt", "yuv420p"];
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y", "-f", "lavfi", "-i", &film]).args(coding).arg(path);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
