//! `verify tracks`: search by what is said and by what is written, in films whose words are known.
//!
//! Three kinds of films lie in one index, as many of each: in one kind a sentence is said (espeak-ng), in one a caption is
//! shown, and in one there are no words. They are asked for by their words, by other words (speech only), and by pictures alone
//! (`seen:`), which know nothing of the words and should do no better than chance.
//!
//! Levels of noise are of sound only: white noise so many decibels below the speech ([`sound::Sound::laid`]). Captions are the
//! same at every level. A ratio of powers says little about a picture (the caption's white on its box is far above any noise, the letters'
//! edges are what a reader needs), and an encoder of films smooths noise away, so that the file would not have what was asked.
//!
//! Everything is kept below the build folder by its seed: films that are there are not made again, films in an index not
//! indexed again, and a run that was stopped goes on.

mod ask;
mod films;
mod score;
mod sound;
mod stage;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use self::ask::Server;
use self::score::{Asked, Row};
use self::stage::{Indexing, Stage};
use crate::machine::Machine;
use crate::option;
use crate::process::workspace;

/// The share of questions, asked in the film's own words without noise, whose film must come first.
const WANTED: f64 = 0.9;

/// How far noise lies below speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Noise {
    Clean,
    /// In decibels.
    Below(u32),
}

impl Noise {
    fn parse(word: &str) -> Result<Self> {
        match word {
            "clean" => Ok(Self::Clean),
            _ => Ok(Self::Below(word.parse().with_context(|| format!("`--noise {word}`: `clean` or decibels"))?)),
        }
    }

    /// For files and tables.
    fn name(self) -> String {
        match self {
            Self::Clean => "clean".to_owned(),
            Self::Below(decibels) => format!("{decibels}dB"),
        }
    }

    fn decibels(self) -> Option<f64> {
        match self {
            Self::Clean => None,
            Self::Below(decibels) => Some(f64::from(decibels)),
        }
    }
}

/// What is asked for.
struct Options {
    seed: u64,
    /// Films of each kind.
    films: usize,
    program: Option<PathBuf>,
    noise: Vec<Noise>,
    record: bool,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self> {
        let levels = words.iter().skip_while(|word| **word != "--noise").skip(1);
        let mut noise: Vec<Noise> =
            levels.take_while(|word| !word.starts_with("--")).map(|word| Noise::parse(word)).collect::<Result<_>>()?;
        if noise.is_empty() {
            noise = vec![Noise::Clean, Noise::Below(20), Noise::Below(10)];
        }
        let films = option(words, "--films")?.unwrap_or(100);
        ensure!((1..=100).contains(&films), "`--films {films}`: 1 to 100, there are no more sentences");
        let program = option::<PathBuf>(words, "--program")?.map(std::path::absolute).transpose()?;
        let seed = option(words, "--seed")?.unwrap_or(0);
        Ok(Self { seed, films, program, noise, record: words.contains(&"--record") })
    }
}

/// Makes the films, indexes them, asks, and prints tables; with `--record` they are written to `results/notes/`.
///
/// Holds when nine of ten films come first for their own words without noise, where that level was asked for.
pub(crate) fn run(words: &[&str]) -> Result<bool> {
    let options = Options::parse(words)?;
    let machine = Machine::here();
    let study = study(&options)?;
    let text = study.report(&machine, &options);
    print!("\n{text}");
    if options.record {
        let stem = workspace().join("results/notes").join(format!("tracks-{}", machine.date));
        std::fs::write(stem.with_extension("md"), &text)?;
        std::fs::write(stem.with_extension("json"), format!("{:#}\n", study.to_json(&machine, &options)))?;
        println!("\nwritten to {}.md and .json", stem.display());
    }
    Ok(study.rows.iter().filter(|row| row.is_judged()).all(|row| row.share(row.first) >= WANTED))
}

/// What was found out.
#[derive(Default)]
struct Study {
    rows: Vec<Row>,
    indexing: Vec<Indexing>,
    /// Questions in a film's own words whose film did not come first.
    missed: Vec<Value>,
}

fn study(options: &Options) -> Result<Study> {
    let &Options { seed, films, .. } = options;
    let stage = Stage::prepare(options)?;
    let written = films::written(&stage.films, seed, films)?;
    let others = films::others(&stage.films, seed, films)?;
    let files: Vec<&Path> =
        written.iter().map(|film| film.file.as_path()).chain(others.iter().map(PathBuf::as_path)).collect();
    let mut study = Study::default();
    study.indexing.extend(stage.add("shared", None, &files)?);
    for &noise in &options.noise {
        let said = films::said(&stage.films, seed, films, noise)?;
        let files: Vec<&Path> = said.iter().map(|film| film.file.as_path()).collect();
        study.indexing.extend(stage.add(&noise.name(), Some("shared"), &files)?);
        let index = stage.index(&noise.name())?;
        let server = Server::start(&mut stage.cuemark(&["serve", &index, "--listen", "127.0.0.1:0", "--read-only"]))?;
        for asked in Asked::ALL {
            let began = Instant::now();
            let films = if asked.is_written() { &written } else { &said };
            let (row, missed) = Row::ask(&server, asked, noise, films)?;
            println!("tracks: {}, {}: {:.0} s", noise.name(), asked.name(), began.elapsed().as_secs_f64());
            study.rows.push(row);
            study.missed.extend(missed);
        }
    }
    Ok(study)
}

impl Study {
    fn report(&self, machine: &Machine, options: &Options) -> String {
        let Options { seed, films, .. } = options;
        let mut text = format!("# cargo xtask verify tracks\n\n{}\n\n", machine.describe());
        text += &format!("{films} films with a sentence said, {films} with a caption, {films} without words, ");
        text += &format!(
            "{} s each ({} s those without words); seed {seed}. By chance a film comes first ",
            films::DURATION,
            films::SHORT
        );
        text += &format!(
            "for {:.1} % of questions, among five for {:.1} %.\n\n",
            100.0 / (3 * films) as f64,
            500.0 / (3 * films) as f64
        );
        text += "| sound | asked for | questions | R@1 (95 %) | R@5 (95 %) | first, and the span meets the truth | first among what is shown |\n";
        text += "| --- | --- | --- | --- | --- | --- | --- |\n";
        self.rows.iter().for_each(|row| text += &row.to_markdown());
        text += "\n| indexing | films | of film | wall | of film in a second |\n| --- | --- | --- | --- | --- |\n";
        self.indexing.iter().for_each(|indexing| text += &indexing.to_markdown());
        if !self.missed.is_empty() {
            text += "\nNot first for its own words:\n\n";
        }
        for missed in &self.missed {
            let [question, read, first] =
                ["question", "read", "first"].map(|name| missed[name].as_str().unwrap_or("nothing"));
            let noise = missed["noise"].as_str().unwrap_or_default();
            text += &format!("- {noise}: \"{question}\", read as \"{read}\"; first came {first}\n");
        }
        text
    }

    fn to_json(&self, machine: &Machine, options: &Options) -> Value {
        json!({
            "verify": "tracks", "machine": machine.to_json(), "seed": options.seed, "films": options.films,
            "rows": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
            "indexing": self.indexing,
            "missed": self.missed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_noise_are_read_and_wrong_ones_refused() {
        let options = Options::parse(&["--noise", "clean", "10", "--films", "6"]).unwrap();
        assert_eq!(options.noise, [Noise::Clean, Noise::Below(10)]);
        assert_eq!((options.films, options.seed, options.record), (6, 0, false));
        assert_eq!(Options::parse(&[]).unwrap().noise.len(), 3);
        assert!(Options::parse(&["--noise", "loud"]).is_err());
        assert!(Options::parse(&["--films", "101"]).is_err());
    }
}
