//! Asking one film, without an index to name.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Progress};
use cuemark_encoders::weights::Cache;
use cuemark_formats::Overwrite;
use cuemark_media::{Stamp, content_digest};
use cuemark_search::{EngineUrl, Index, SearchError, encoder};
use serde::{Deserialize, Serialize};

use super::{Asking, Found, Shown, Videos, words};
use crate::device::cpu;
use crate::{Error, Result};

/// Films whose moments are kept for the next question.
const KEPT: usize = 64;

/// Finds the moments of one film that a sentence describes, by what is seen, said and written in it.
///
/// The film is read once; what was made of it is kept in the cache folder, so that the next question is answered at once, wherever
/// the film lies by then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct FindInFilm {
    /// The film.
    #[cfg_attr(feature = "clap", arg(value_name = "FILM"))]
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub film: Utf8PathBuf,
    /// What to look for, as `cuemark search` takes it: `"these words"`, `said:`, `written:`, `seen:`, `-not`.
    #[cfg_attr(feature = "clap", arg(value_name = "SENTENCE"))]
    pub sentence: String,
    /// What looks at the film: `concepts`, `clip`, `clip-b16`, `auto` for the best of these whose weights are here, or the folder of a trained bi-encoder's run, which sees it as it was trained.
    #[serde(default = "auto")]
    #[cfg_attr(
        feature = "clap",
        arg(long, visible_alias = "run", value_name = "NAME|RUN_DIR", default_value = "auto")
    )]
    pub encoder: String,
    /// What to compute on: cpu, cuda, cuda:N.
    #[serde(default = "cpu")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DEVICE", default_value = "cpu"))]
    pub device: String,
    /// Answers, at most.
    #[serde(default = "few")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = FindInFilm::LIMIT))]
    pub limit: usize,
    /// Leave out answers that are less likely than this.
    #[serde(default = "least")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "P", default_value_t = Asking::LEAST))]
    pub least: f64,
    /// Read the film anew, whatever is kept of it, and keep nothing.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub fresh: bool,
}

fn auto() -> String {
    "auto".to_owned()
}

fn few() -> usize {
    FindInFilm::LIMIT
}

fn least() -> f64 {
    Asking::LEAST
}

impl FindInFilm {
    /// Answers unless somebody says otherwise: one film has few that are good.
    pub const LIMIT: usize = 5;

    /// `sentence` asked of `film`, everything else as usual.
    pub fn new(film: impl Into<Utf8PathBuf>, sentence: impl Into<String>) -> Self {
        let (film, sentence) = (film.into(), sentence.into());
        let (encoder, device, limit, least) = (auto(), cpu(), few(), least());
        Self { film, sentence, encoder, device, limit, least, fresh: false }
    }

    /// Reads the film where that is not done yet, and asks it. `progress` counts seconds of film meanwhile.
    ///
    /// # Errors
    /// When the question cannot be understood (before anything is read), the film cannot be read, and those of the encoder.
    pub fn run(&self, progress: &Progress) -> Result<Found> {
        let asking = Asking { limit: self.limit, least: self.least, ..Asking::sentence(self.sentence.as_str()) };
        asking.question()?;
        if !self.film.is_file() {
            let advice =
                Advice::say("name one film; a folder of them is searched with ").run("index create INDEX FOLDER");
            return Err(Error::setting("film", format!("`{}` is no file", self.film)).advise(advice));
        }
        progress.phase("opening", 0);
        if self.fresh {
            let folder = tempfile::tempdir().map_err(|source| temporary(&self.film, source))?;
            let path = Utf8Path::from_path(folder.path()).unwrap_or(Utf8Path::new(".")).join("index");
            return self.ask(&asking, &self.index(&path)?, progress);
        }
        let place = self.kept_at()?;
        let index = self.index(&place)?;
        let found = self.ask(&asking, &index, progress)?;
        if let Some(all) = place.parent() {
            forget_old(all, &place);
        }
        Ok(found)
    }

    /// Where what was made of the film by this encoder is kept: whatever it is called, and wherever it lies.
    fn kept_at(&self) -> Result<Utf8PathBuf> {
        let digest = content_digest(&self.film).map_err(SearchError::from)?;
        let name = encoder::chosen(&self.encoder);
        let whole = Utf8Path::new(name).canonicalize_utf8().map_or_else(|_| name.to_owned(), Utf8PathBuf::into_string);
        let by: String = whole.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        // The end of a path tells more than its beginning.
        let by: String = by.chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
        Ok(Cache::of_user()?.root().join("find").join(format!("{digest}-{by}")))
    }

    fn index(&self, place: &Utf8Path) -> Result<Index> {
        let url = EngineUrl::File(place.to_owned());
        let (device, name) = (cuemark_tensor::device(&self.device)?, encoder::chosen(&self.encoder));
        if let Ok(manifest) = Index::manifest_of(&url)
            && let Ok(encoder) = encoder::open_kept(&url, &manifest, None, &device)
            && let Ok(index) = Index::open(&url, encoder)
        {
            return Ok(index.reading(words::sources(name)));
        }
        let encoder = encoder::open(name, None, &device)?;
        // What is there and cannot be opened is of no use to anybody.
        Ok(Index::create(&url, encoder, Overwrite::Force)?.reading(words::sources(name)))
    }

    fn ask(&self, asking: &Asking, index: &Index, progress: &Progress) -> Result<Found> {
        let film = self.film.canonicalize_utf8().unwrap_or_else(|_| self.film.clone());
        // What is kept was made of these very bytes: only its place may be another by now.
        for entry in index.engine().videos()? {
            if entry.path.as_ref() != Some(&film) {
                let stamp = Stamp::of(&film).map_err(SearchError::from)?;
                let (bytes, modified) = (stamp.bytes, stamp.modified);
                let moved = cuemark_search::VideoEntry { path: Some(film.clone()), bytes, modified, ..entry };
                index.engine().amend(&moved, None)?;
            }
        }
        let what = Videos { videos: vec![film.clone()], ..Videos::default() };
        let added = what.add_to(index, progress)?;
        if added.stopped {
            return Err(cuemark_core::Stopped.into());
        }
        if let Some(cuemark_search::Became::Failed { reason }) = added.added.videos.first().map(|video| &video.became) {
            return Err(Error::setting("film", format!("`{}`: {reason}", self.film)));
        }
        progress.phase("searching", 0);
        asking.ask(index, Shown::Likely)
    }
}

fn temporary(film: &Utf8Path, source: std::io::Error) -> SearchError {
    SearchError::Io { what: "make a temporary folder for", path: film.to_owned(), source }
}

/// Removes what was longest not written to, beyond so many films, but never what is in use here.
fn forget_old(folder: &Utf8Path, in_use: &Utf8Path) {
    let Ok(entries) = folder.read_dir_utf8() else { return };
    let aged = entries.flatten().filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.into_path())));
    let mut kept: Vec<_> = aged.filter(|(_, path)| path != in_use).collect();
    kept.sort();
    let surplus = kept.len().saturating_sub(KEPT - 1);
    for (_, path) in kept.into_iter().take(surplus) {
        // What cannot be removed now is tried again the next time.
        let _ = std::fs::remove_dir_all(&path);
    }
}
