//! `cuemark find`: one film and a sentence in, moments out.

use camino::Utf8PathBuf;
use cuemark::FindInFilm;

use super::search::{Taking, play_or_cut, say_what_is_not_understood, text};
use crate::input::Force;
use crate::output::{Outcome, Print};
use crate::progress::watched;

/// Find the moments of one film that a sentence describes, without an index to name.
///
/// What is seen, said and written in the film counts; subtitles beside it (`film.srt`, `film.en.vtt`) are read. The film is read
/// once: what was made of it is kept in the cache folder, and the next question is answered at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    find: FindInFilm,
    /// Play the best answer with `ffplay`.
    #[arg(long)]
    open: bool,
    /// Cut the best answer into this file.
    #[arg(long, value_name = "OUT.mp4")]
    clip: Option<Utf8PathBuf>,
    #[command(flatten)]
    print: Print,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if let Some(out) = &args.clip {
        args.force.overwrite().check(out)?;
    }
    let found = watched("reading the film", |progress| args.find.run(progress))?;
    say_what_is_not_understood(&found);
    if let Some(best) = found.answers.first() {
        let (play, clip, overwrite) = (args.open, args.clip.as_deref(), args.force.overwrite());
        play_or_cut(best, &Taking { play, clip, overwrite })?;
    }
    args.print.result(&found, || text(&found))
}
