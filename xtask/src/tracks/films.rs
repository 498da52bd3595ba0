//! Films with known words, and others.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use cuemark_core::{Rng, Span};

use super::Noise;
use super::sound::Sound;
use crate::process::workspace;

/// How long a film with words is, in seconds.
pub(super) const DURATION: f64 = 8.0;
/// How long a film without words is, in seconds: nothing is asked of it, and half of the time goes into looking at films.
pub(super) const SHORT: f64 = 4.0;
/// How long a caption is shown, in seconds.
const SHOWN: f64 = 3.0;
/// Pictures a second.
const RATE: usize = 12;
/// Silence or noise before and after what is said, in seconds.
const MARGIN: f64 = 0.5;

/// A film that one can ask for.
pub(super) struct Film {
    /// What the index calls it.
    pub(super) name: String,
    pub(super) file: PathBuf,
    /// What is said or written in it.
    pub(super) words: String,
    /// The same in other words; of speech only.
    pub(super) otherwise: Option<String>,
    /// When it is said or written.
    pub(super) truth: Span,
}

/// Sentences and what they are in other words: `fixtures/search/said.tsv`, in the order of `seed`.
pub(super) fn sentences(seed: u64) -> Result<Vec<(String, String)>> {
    let text = read("fixtures/search/said.tsv")?;
    let pair = |line: &str| line.split_once('\t').map(|(said, other)| (said.to_owned(), other.to_owned()));
    let mut pairs: Vec<_> =
        text.lines().map(pair).collect::<Option<_>>().context("a line of said.tsv without a paraphrase")?;
    Rng::stream(seed, "sentences").shuffle(&mut pairs);
    Ok(pairs)
}

/// Lines of `fixtures/search/written.txt`, in the order of `seed`.
pub(super) fn captions(seed: u64) -> Result<Vec<String>> {
    let mut lines: Vec<String> = read("fixtures/search/written.txt")?.lines().map(str::to_owned).collect();
    Rng::stream(seed, "captions").shuffle(&mut lines);
    Ok(lines)
}

fn read(file: &str) -> Result<String> {
    std::fs::read_to_string(workspace().join(file)).with_context(|| file.to_owned())
}

/// `count` films in which a sentence is said, over pictures without words. Pictures and times are the same at every level of
/// noise.
pub(super) fn said(folder: &Path, seed: u64, count: usize, noise: Noise) -> Result<Vec<Film>> {
    let (speech, films) = (made(folder.join("speech"))?, made(folder.join(format!("said-{}", noise.name())))?);
    let mut all = Vec::new();
    for (number, (words, otherwise)) in sentences(seed)?.into_iter().take(count).enumerate() {
        let name = format!("said-{number:03}");
        let mut rng = Rng::stream(seed, &name);
        let speech = Sound::speak(&words, &speech.join(format!("{name}.wav")))?;
        let latest = DURATION - MARGIN - speech.duration();
        anyhow::ensure!(latest > MARGIN, "`{words}` takes {:.1} s", speech.duration());
        let start = rng.between(MARGIN, latest);
        let picture = picture(&mut rng, [320, 180]);
        let film = Film {
            file: films.join(format!("{name}.mkv")),
            words,
            otherwise: Some(otherwise),
            truth: Span::new(start, start + speech.duration())?,
            name,
        };
        if !film.file.exists() {
            let mut noisy = Rng::stream(seed, &format!("{} {}", film.name, noise.name()));
            let sound = films.join(format!("{}.wav", film.name));
            std::fs::write(&sound, speech.laid(start, DURATION, noise.decibels(), &mut noisy).to_wav())?;
            encode(&picture, &["-i", text(&sound)?], DURATION, &film.file)?;
            std::fs::remove_file(sound)?;
            progress(number, count, &format!("sentences said ({})", noise.name()));
        }
        all.push(film);
    }
    Ok(all)
}

/// `count` films without sound in which a caption is shown for three seconds: white on a dark box, near the lower edge.
pub(super) fn written(folder: &Path, seed: u64, count: usize) -> Result<Vec<Film>> {
    let films = made(folder.join("written"))?;
    let font = font()?;
    let mut all = Vec::new();
    for (number, words) in captions(seed)?.into_iter().take(count).enumerate() {
        let name = format!("written-{number:03}");
        let mut rng = Rng::stream(seed, &name);
        let start = rng.between(MARGIN, DURATION - SHOWN - MARGIN);
        let end = start + SHOWN;
        // Sizes that captions have, and no line is wider than the picture.
        let size = rng.between(24.0, 34.0).min(600.0 / (0.62 * words.len() as f64)) as u32;
        let place = format!("x=(w-tw)/2:y=h*{:.2}", rng.between(0.7, 0.85));
        let look = "fontcolor=white:box=1:boxcolor=black@0.8:boxborderw=8";
        let when = format!("enable='between(t,{start:.3},{end:.3})'");
        let caption = format!("drawtext=fontfile={font}:text='{words}':fontsize={size}:{look}:{place}:{when}");
        let picture = format!("{},{caption}", picture(&mut rng, [640, 360]));
        let file = films.join(format!("{name}.mkv"));
        if !file.exists() {
            encode(&picture, &[], DURATION, &file)?;
            progress(number, count, "captions shown");
        }
        all.push(Film { name, file, words, otherwise: None, truth: Span::new(start, end)? });
    }
    Ok(all)
}

/// `count` films without words: a tone, noise or nothing to hear.
pub(super) fn others(folder: &Path, seed: u64, count: usize) -> Result<Vec<PathBuf>> {
    let films = made(folder.join("other"))?;
    let mut all = Vec::new();
    for number in 0..count {
        let name = format!("other-{number:03}");
        let mut rng = Rng::stream(seed, &name);
        let picture = picture(&mut rng, [320, 180]);
        let tone = format!("sine=frequency={:.0},volume=0.3", rng.between(100.0, 2_000.0));
        let colour = rng.pick(&["white", "pink", "brown"]).copied().unwrap_or("white");
        let noise = format!("anoisesrc=color={colour}:amplitude=0.1:seed={}", rng.below(1 << 30));
        let sound: &[&str] = match number % 3 {
            0 => &["-f", "lavfi", "-i", &tone],
            1 => &["-f", "lavfi", "-i", &noise],
            _ => &[],
        };
        let file = films.join(format!("{name}.mkv"));
        if !file.exists() {
            encode(&picture, sound, SHORT, &file)?;
            progress(number, count, "others");
        }
        all.push(file);
    }
    Ok(all)
}

/// One of ffmpeg's moving pictures. `testsrc2` is left out: it counts its pictures in digits, and those are read.
fn picture(rng: &mut Rng, [width, height]: [usize; 2]) -> String {
    let size = format!("s={width}x{height}:r={RATE}");
    let cells = format!("s={}x{}:r={RATE}", width / 4, height / 4);
    let larger = format!("scale={width}:{height}:flags=neighbor");
    let (seed, hue) = (rng.below(1 << 30), rng.below(360));
    let source = match rng.below(4) {
        0 => {
            format!("gradients={size}:seed={seed}:speed={:.3}:nb_colors={}", rng.between(0.01, 0.05), 2 + rng.below(6))
        }
        1 => {
            let look = format!("mold=8:life_color=#{:06x}:mold_color=#{:06x}", rng.below(1 << 24), rng.below(1 << 24));
            format!("life={cells}:seed={seed}:ratio={:.2}:{look},{larger}", rng.between(0.1, 0.4))
        }
        2 => {
            let rule = rng.pick(&[18, 30, 54, 60, 90, 110, 150]).copied().unwrap_or(30);
            format!("cellauto={cells}:seed={seed}:rule={rule},{larger}")
        }
        _ => {
            let (x, y) = (rng.between(-0.8, -0.7), rng.between(0.05, 0.2));
            format!("mandelbrot={size}:start_x={x:.4}:start_y={y:.4}:start_scale={:.2}", rng.between(0.2, 2.0))
        }
    };
    format!("{source},format=yuv420p,hue=h={hue}")
}

/// Pictures as H.264, sound as FLAC, which keeps the noise as it was made. A film that exists is whole.
fn encode(picture: &str, sound: &[&str], duration: f64, file: &Path) -> Result<()> {
    let part = file.with_extension("part.mkv");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y", "-f", "lavfi", "-i", picture]).args(sound);
    command.args(["-t", &duration.to_string(), "-c:v", "libx264", "-preset", "veryfast", "-crf", "23"]);
    command.args(["-pix_fmt", "yuv420p", "-c:a", "flac"]).arg(&part);
    let made = command.output().context("ffmpeg")?;
    if !made.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&made.stderr));
    }
    Ok(std::fs::rename(part, file)?)
}

/// The file of a font for captions.
fn font() -> Result<String> {
    let found = Command::new("fc-match").args(["--format", "%{file}", "DejaVu Sans"]).output().context("fc-match")?;
    let file = String::from_utf8(found.stdout)?;
    anyhow::ensure!(Path::new(&file).is_file(), "no font: install fonts-dejavu-core");
    Ok(file)
}

fn made(folder: PathBuf) -> Result<PathBuf> {
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

fn progress(number: usize, count: usize, what: &str) {
    if (number + 1).is_multiple_of(20) || number + 1 == count {
        println!("tracks: films with {what}: {} of {count}", number + 1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_question_is_asked_of_two_films() {
        let (said, written) = (sentences(0).unwrap(), captions(0).unwrap());
        assert_eq!((said.len(), written.len()), (100, 100));
        let words = |text: &str| -> Vec<String> {
            let letters = text.to_lowercase();
            letters.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let questions = said.iter().flat_map(|(said, other)| [said, other]).chain(&written).map(|text| words(text));
        assert_eq!(questions.collect::<BTreeSet<_>>().len(), 300);
        for caption in &written {
            assert!((3..=7).contains(&words(caption).len()), "{caption}");
            // Nothing that means something to ffmpeg's filters.
            assert!(caption.chars().all(|c| c.is_ascii_alphanumeric() || c == ' '), "{caption}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_films_and_another_one_others() {
        let drawn = |seed| (captions(seed).unwrap(), picture(&mut Rng::new(seed), [320, 180]));
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
    }
}
