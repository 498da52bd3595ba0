//! Cutting a moment out of a film.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Progress, Span};
use cuemark_formats::Overwrite;
use cuemark_media::{Ffmpeg, MediaError, OpenedVideo};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Cuts a stretch of a film into a file of its own, exactly, by encoding it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct CutClip {
    /// The film.
    #[cfg_attr(feature = "clap", arg(value_name = "FILM"))]
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub film: Utf8PathBuf,
    /// Where the stretch begins, in seconds.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS"))]
    pub start: f64,
    /// Where it ends, in seconds; what is past the film's end is left out.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS"))]
    pub end: f64,
    /// The new file; its ending says what it becomes: mp4, mov, mkv or webm.
    #[cfg_attr(feature = "clap", arg(long, value_name = "OUT.mp4"))]
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub out: Utf8PathBuf,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

/// A moment that is a file of its own now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WrittenClip {
    /// The new file.
    pub clip: Utf8PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The film.
    pub film: Utf8PathBuf,
    /// Where it begins in the film, in **seconds**.
    pub start: f64,
    /// Where it ends in the film, in **seconds**.
    pub end: f64,
}

impl CutClip {
    /// What the new file's name may end in. A program that is asked for a playlist writes more files than one.
    pub const ENDINGS: [&str; 4] = ["mp4", "mov", "mkv", "webm"];

    /// `span` of `film` into the new file `out`.
    pub fn new(film: impl Into<Utf8PathBuf>, span: Span, out: impl Into<Utf8PathBuf>) -> Self {
        Self { film: film.into(), start: span.start(), end: span.end(), out: out.into(), force: false }
    }

    /// Cuts; the file is there whole or not at all.
    ///
    /// # Errors
    /// When the stretch or the name cannot be (before anything is opened), the film cannot be read or is shorter, or the new
    /// file is there already.
    pub fn run(&self, progress: &Progress) -> Result<WrittenClip> {
        let span = Span::new(self.start, self.end).map_err(|error| Error::setting("end", error.to_string()))?;
        if span.len() <= 0.0 || !span.end().is_finite() {
            return Err(Error::setting("end", format!("nothing lies between {} and {} s", self.start, self.end)));
        }
        let ending = self.out.extension().unwrap_or_default().to_ascii_lowercase();
        if !Self::ENDINGS.contains(&ending.as_str()) {
            let advice = Advice::say(format!("names of clips end in {}", Self::ENDINGS.join(", ")));
            return Err(Error::setting("out", format!("`{}` is no name for a clip", self.out)).advise(advice));
        }
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        overwrite.check(&self.out)?;
        progress.phase("cutting", 0);
        let (ffmpeg, video) = (Ffmpeg::on_path(), OpenedVideo::open(&self.film)?);
        let duration = ffmpeg.probe(&video, progress)?.duration;
        if let Some(duration) = duration.filter(|duration| self.start >= *duration) {
            return Err(Error::setting("start", format!("the film is over after {duration:.3} s")));
        }
        let end = duration.map_or(span.end(), |duration| duration.min(span.end()));
        let span = Span::new(span.start(), end).map_err(|error| Error::setting("end", error.to_string()))?;
        ffmpeg.cut(&video, span, &self.out, overwrite, progress)?;
        let look = |source| MediaError::Io { what: "look at", path: self.out.clone(), source };
        let bytes = std::fs::metadata(&self.out).map_err(look)?.len();
        Ok(WrittenClip { clip: self.out.clone(), bytes, film: self.film.clone(), start: span.start(), end: span.end() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_cut_is_refused_before_any_film_is_opened() {
        let cut = |start, end, out: &str| CutClip { film: "no film".into(), start, end, out: out.into(), force: false };
        let problem = |cut: CutClip| cut.run(&Progress::new()).unwrap_err().to_string();
        assert!(problem(cut(3.0, 3.0, "a.mp4")).starts_with("`end`: nothing lies between"));
        for (start, end) in [(4.0, 3.0), (f64::NAN, 3.0), (0.0, f64::INFINITY), (-1.0, 2.0)] {
            assert!(problem(cut(start, end, "a.mp4")).starts_with("`end`: "), "{start} {end}");
        }
        for name in ["a", "a.m3u8", "a.mp4.sh", "a.", "%d.jpg"] {
            assert!(problem(cut(1.0, 2.0, name)).contains("is no name for a clip"), "{name}");
        }
        assert!(problem(cut(1.0, 2.0, "a.MP4")).contains("no film"));
    }
}
