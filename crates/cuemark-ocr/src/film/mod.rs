//! What is written in a film, with times.
//!
//! ffmpeg decodes four pictures a second. Each is compared, as a glimpse, with the picture that was read last; one that differs is
//! read, but no sooner than a second after. So what stands for a second is seen, a picture that stands for an hour is read once, and
//! a film in which everything moves is read once a second, there together with the picture before (`steady`), or every two seconds
//! while nothing is found. What is kept is two pictures, a few glimpses, and the lines.

mod glimpse;
mod likeness;
mod merge;
mod steady;

use cuemark_core::{Line, Progress};
use cuemark_media::{Ffmpeg, Filter, Framing, OpenedVideo, Partial, Rate};

use crate::picture::Picture;
use crate::{Reader, Result};
use glimpse::Glimpse;
use merge::{Look, Merging};

/// Looks at the film in a second.
const LOOKS: f64 = 4.0;
/// Readings are so many seconds apart at least. A line may stand for a second, so not more.
const APART: f64 = 1.0;
/// And where everything moves and nothing was written in the last few readings: the film goes on as it was, and reading is most of the work.
const APART_WHERE_BARE: f64 = 2.0;
const BARE: usize = 2;
/// Everything moves where this share of a picture is another than a quarter of a second before; a caption that comes changes less.
const STIRRING: f64 = 0.1;
/// Pictures are decoded with so many pixels on the shorter and the longer side at most. Text that can be read in a film can be read at
/// this size, and the detector would take several times as long for more.
const SHORT_SIDE: f64 = 720.0;
const LONG_SIDE: f64 = 1920.0;
/// Text is sought in pictures whose shorter side has at least so many pixels: what people are to read while a film goes on is larger
/// than what a page has, and the detector is most of the work. A single picture is enlarged further, as the reference does it.
const SOUGHT_IN: usize = 480;
/// Lines of one picture; more is a page of a book, or made to keep the reader busy.
const MOST_IN_PICTURE: usize = 100;
/// Lines of one film. A news channel with tickers has some 5,000 an hour.
const MOST_LINES: usize = 100_000;

/// What is written in a film.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The lines by their starts. They may overlap in time: several lines stand on screen at once.
    pub lines: Vec<Line>,
    /// What of the film could not be read; `None` of a whole one.
    pub partial: Option<Partial>,
    /// How many of its pictures were read.
    pub pictures: usize,
}

impl Reader {
    /// The lines of a film. A damaged film gives what it has, and says so.
    ///
    /// `progress` counts seconds of film.
    ///
    /// # Errors
    /// When the film cannot be decoded at all or changes meanwhile, the weights turn out to be of other networks, or the work was
    /// stopped.
    pub fn lines(&self, film: &OpenedVideo, progress: &Progress) -> Result<Read> {
        let ffmpeg = Ffmpeg::on_path();
        let info = ffmpeg.probe(film, progress)?;
        let [width, height] = size(info.size);
        let framing = Framing::Stretch { width, height, filter: Filter::Bicubic };
        let mut frames = ffmpeg.frames(film, &info, Rate::PerSecond(LOOKS), framing, progress)?;
        progress.phase("reading what is written", info.duration.unwrap_or(0.0) as usize);
        let mut watching = Watching::new();
        let read = |picture: &Picture| self.read(picture, SOUGHT_IN, MOST_IN_PICTURE, &|| Ok(progress.check()?));
        let mut pictures = 0;
        let mut before: Option<(Glimpse, Picture)> = None;
        for frame in frames.by_ref() {
            let frame = frame?;
            let glimpse = Glimpse::of(&frame.rgb, width, height);
            let picture = Picture { width, height, rgb: frame.rgb };
            let changed = before.as_ref().map_or(0.0, |(then, _)| glimpse.share_changed(then));
            if let Some(look) = watching.look(Look { time: frame.time, glimpse: glimpse.clone() }, changed) {
                let mut found = read(&picture)?;
                if let Some((_, then)) = before.filter(|_| changed >= steady::RESTLESS) {
                    found = steady::joined(found, read(&steady::mean(&picture, &then))?);
                }
                watching.read(look, found);
                pictures += 1;
            }
            before = Some((glimpse, picture));
            if frame.time.fract() == 0.0 {
                progress.advance(1)?;
            }
            if watching.merging.count() > MOST_LINES {
                let complaint = Some(format!("more than {MOST_LINES} lines of text"));
                let partial = Partial { read_seconds: frame.time, stated_seconds: info.duration, complaint };
                return Ok(Read { lines: watching.merging.finish(frame.time), partial: Some(partial), pictures });
            }
        }
        let decoded = frames.finish()?;
        Ok(Read { lines: watching.merging.finish(decoded.seconds), partial: decoded.partial(), pictures })
    }
}

/// Width and height at which a film is read: its own, unless it is large.
fn size([width, height]: [usize; 2]) -> [usize; 2] {
    let (short, long) = (width.min(height) as f64, width.max(height) as f64);
    let scale = (SHORT_SIDE / short).min(LONG_SIDE / long).min(1.0);
    [width, height].map(|side| ((side as f64 * scale).round() as usize).max(1))
}

/// Decides what is read.
#[derive(Debug)]
struct Watching {
    merging: Merging,
    /// Readings without a line since the last that had one.
    without: usize,
    /// The picture that was read last.
    last: Option<Look>,
    /// What was seen since, and was another.
    between: Vec<Look>,
}

impl Watching {
    fn new() -> Self {
        Self { merging: Merging::every(1.0 / LOOKS), without: 0, last: None, between: Vec::new() }
    }

    /// Gives a look back when its picture is to be read; `changed` is the share of it that is another than at the look before.
    fn look(&mut self, look: Look, changed: f64) -> Option<Look> {
        let Some(last) = &self.last else { return Some(look) };
        if !look.glimpse.differs(&last.glimpse) {
            // What was seen meanwhile is gone without having stood for long.
            self.between.clear();
            self.merging.unchanged(look.time);
            return None;
        }
        let is_bare = self.without >= BARE && changed >= STIRRING;
        if look.time - last.time >= if is_bare { APART_WHERE_BARE } else { APART } {
            return Some(look);
        }
        self.between.push(look);
        None
    }

    fn read(&mut self, look: Look, found: Vec<crate::FoundText>) {
        self.without = if found.is_empty() { self.without + 1 } else { 0 };
        self.merging.reading(look.clone(), found, &self.between);
        self.between.clear();
        self.last = Some(look);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FoundText;

    #[test]
    fn large_films_are_read_smaller_and_small_ones_as_they_are() {
        assert_eq!(size([640, 360]), [640, 360]);
        assert_eq!(size([3840, 2160]), [1280, 720]);
        assert_eq!(size([1080, 1920]), [720, 1280]);
        assert_eq!(size([16_000, 2]), [1920, 1]);
    }

    /// When a film that has these levels of grey, four a second, is read; a line is found at these times.
    fn times_read(levels: &[u8], written: &[f64]) -> Vec<f64> {
        let mut watching = Watching::new();
        let (mut times, mut before) = (Vec::new(), None);
        for (at, level) in levels.iter().enumerate() {
            let glimpse = Glimpse::of(&[*level; 3 * 64 * 36], 64, 36);
            let changed = before.as_ref().map_or(0.0, |before| glimpse.share_changed(before));
            before = Some(glimpse.clone());
            if let Some(look) = watching.look(Look { time: at as f64 / 4.0, glimpse }, changed) {
                times.push(look.time);
                let line = FoundText {
                    text: "Sale".to_owned(),
                    words: "Sale".to_owned(),
                    corners: [[0.0; 2]; 4],
                    confidence: 0.9,
                };
                let found = if written.contains(&look.time) { vec![line] } else { Vec::new() };
                watching.read(look, found);
            }
        }
        times
    }

    #[test]
    fn a_still_film_is_read_once_and_a_restless_one_every_second() {
        assert_eq!(times_read(&[7; 40], &[]), [0.0]);
        let restless: Vec<u8> = (0..17).map(|at| 15 * at).collect();
        assert_eq!(times_read(&restless, &[0.0, 1.0, 2.0]), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn where_everything_moves_and_nothing_is_written_readings_are_two_seconds_apart_until_something_is() {
        let restless: Vec<u8> = (0..45_u32).map(|at| (97 * at % 251) as u8).collect();
        assert_eq!(times_read(&restless, &[]), [0.0, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
        assert_eq!(times_read(&restless, &[5.0]), [0.0, 1.0, 3.0, 5.0, 6.0, 7.0, 9.0, 11.0]);
        // A slow change of all is none of these: what comes may be all that is to be read.
        let fade: Vec<u8> = (0..24).map(|at| 5 * at).collect();
        assert_eq!(times_read(&fade, &[]), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn what_stands_for_a_second_is_read_wherever_it_falls() {
        // Dark; a flash that is over before the next reading; something that stands for four looks; dark again.
        for start in 1..12 {
            let mut levels = vec![0; 20];
            levels[start..start + 4].fill(200);
            let read = times_read(&levels, &[]);
            let seen = read.iter().any(|time| levels[(time * 4.0) as usize] == 200);
            assert!(seen, "{start}: {read:?}");
        }
        // A slow fade is seen in the end, although no two neighbours differ.
        let fade: Vec<u8> = (0..40).map(|at| at * 2).collect();
        assert!(times_read(&fade, &[]).len() > 3);
    }
}
