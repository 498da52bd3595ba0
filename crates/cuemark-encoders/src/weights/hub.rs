//! Model hubs: what their own client has cached, and fetching into the same cache.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::ReadError;

use super::Pulling;
use super::https::Refused;
use super::mirror::Mirror;
use crate::{EncodeError, Result};

/// Where the hub's own clients keep what they fetched: `HF_HUB_CACHE`, `HF_HOME/hub`, `~/.cache/huggingface/hub`.
pub(super) fn clients_cache() -> Option<Utf8PathBuf> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty()).map(Utf8PathBuf::from);
    variable("HF_HUB_CACHE")
        .or_else(|| Some(variable("HF_HOME")?.join("hub")))
        .or_else(|| Some(variable("HOME")?.join(".cache/huggingface/hub")))
}

/// The files of `repo` that the hub's client keeps below `cache`, when all that are needed are there.
///
/// `models--OWNER--NAME/refs/main` names the revision, `snapshots/REVISION` holds its files.
pub(super) fn snapshot(cache: &Utf8Path, repo: &str, files: &[&[&str]]) -> Option<Utf8PathBuf> {
    let folder = cache.join(format!("models--{}", repo.replace('/', "--")));
    let revision = std::fs::read_to_string(folder.join("refs/main")).ok()?;
    let revision = revision.trim();
    // A name made of anything else would be a way out of the folder.
    if revision.is_empty() || !revision.chars().all(|c| c.is_ascii_alphanumeric()) {
        return None;
    }
    let snapshot = folder.join("snapshots").join(revision);
    complete(&snapshot, files).then_some(snapshot)
}

/// Whether one of each kind of file is in `folder`.
pub(super) fn complete(folder: &Utf8Path, files: &[&[&str]]) -> bool {
    files.iter().all(|names| names.iter().any(|name| folder.join(name).is_file()))
}

/// Fetches one of each kind of file from `from` into the hub client's own cache at `cache`.
///
/// Files lie below `parts` until all of them are there; a fetch that was cut short is taken up again. Only then do they become
/// a snapshot, and the last thing that is written is which one is meant.
pub(super) fn fetch(
    repo: &'static str,
    files: &[&'static [&'static str]],
    (from, cache): (&Mirror, &Utf8Path),
    each: &mut dyn FnMut(Pulling),
) -> Result<()> {
    let folder = cache.join(format!("models--{}", repo.replace('/', "--")));
    let parts = folder.join("parts");
    make_folder(&parts)?;
    let (mut fetched, mut revision) = (Vec::new(), None);
    for names in files {
        let mut refused = None;
        let mut there = None;
        for name in *names {
            each(Pulling::File(name));
            let part = parts.join(name.replace('/', "--"));
            let count = &mut |bytes, of: Option<u64>| each(Pulling::Fetching { bytes, of: of.unwrap_or(0) });
            match from.of_repository((repo, name), &part, count) {
                Ok(stated) => {
                    there = Some((*name, part));
                    revision = revision.or(stated.revision);
                    break;
                }
                Err(Refused::NotThere) => {}
                Err(Refused::Problem(problem)) => {
                    refused = Some(problem);
                    break;
                }
            }
        }
        let Some(there) = there else {
            let problem = refused.unwrap_or_else(|| format!("`{from}` has no such file"));
            // The first of the names is the one people expect, so it is the one that an error shows.
            let file = names.first().copied().unwrap_or_default().to_owned();
            return Err(EncodeError::Hub { repo, file, problem, files: expected_names(files) });
        };
        fetched.push(there);
    }
    let is_plain = |revision: &String| !revision.is_empty() && revision.chars().all(|c| c.is_ascii_alphanumeric());
    let revision = revision.filter(is_plain).unwrap_or_else(|| "mirror".to_owned());
    let snapshot = folder.join("snapshots").join(&revision);
    for (name, part) in fetched {
        let path = snapshot.join(name);
        if let Some(above) = path.parent() {
            make_folder(above)?;
        }
        std::fs::rename(&part, &path).map_err(|source| ReadError::Write { path, source })?;
    }
    // It is empty now, unless a name was refused half-way; then it is of use to the next fetch.
    let _ = std::fs::remove_dir(&parts);
    let refs = folder.join("refs");
    make_folder(&refs)?;
    let (new, main) = (refs.join("main.part"), refs.join("main"));
    let write = |source| ReadError::Write { path: main.clone(), source };
    std::fs::write(&new, &revision).map_err(write)?;
    std::fs::rename(&new, &main).map_err(write)?;
    Ok(())
}

/// The file of each kind that people expect.
pub(super) fn expected_names(files: &[&'static [&'static str]]) -> Vec<&'static str> {
    files.iter().filter_map(|names| names.first().copied()).collect()
}

fn make_folder(path: &Utf8Path) -> Result<()> {
    Ok(std::fs::create_dir_all(path).map_err(|source| ReadError::Write { path: path.to_owned(), source })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[&[&str]] = &[&["config.json"], &["model.safetensors", "pytorch_model.bin"]];

    #[test]
    fn what_the_hubs_client_has_cached_is_found() {
        let keep = tempfile::tempdir().unwrap();
        let cache = Utf8Path::from_path(keep.path()).unwrap();
        let model = cache.join("models--owner--name");
        let revision = model.join("snapshots/abc123");
        std::fs::create_dir_all(&revision).unwrap();
        std::fs::create_dir_all(model.join("refs")).unwrap();
        std::fs::write(model.join("refs/main"), "abc123\n").unwrap();
        std::fs::write(revision.join("config.json"), "{}").unwrap();
        assert_eq!(snapshot(cache, "owner/name", FILES), None, "the weights are still missing");
        std::fs::write(revision.join("pytorch_model.bin"), "").unwrap();
        assert_eq!(snapshot(cache, "owner/name", FILES), Some(revision));
        assert_eq!(snapshot(cache, "owner/other", FILES), None);
    }

    #[test]
    fn a_revision_that_leads_elsewhere_is_not_followed() {
        let keep = tempfile::tempdir().unwrap();
        let cache = Utf8Path::from_path(keep.path()).unwrap();
        let model = cache.join("models--owner--name");
        std::fs::create_dir_all(model.join("refs")).unwrap();
        std::fs::create_dir_all(model.join("snapshots")).unwrap();
        std::fs::write(model.join("refs/main"), "..").unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::write(model.join(file), "{}").unwrap();
        }
        assert_eq!(snapshot(cache, "owner/name", FILES), None);
    }
}
