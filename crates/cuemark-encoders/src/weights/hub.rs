//! Model hubs: what their own client has cached, and, behind the feature `hub`, fetching.

use camino::{Utf8Path, Utf8PathBuf};

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

/// Fetches one of each kind of file into the hub client's own cache at `cache`; `each` is told their names as they come.
#[cfg(feature = "hub")]
pub(super) fn fetch(
    _name: &'static str,
    repo: &'static str,
    files: &[&'static [&'static str]],
    cache: &Utf8Path,
    each: &mut dyn FnMut(&'static str),
) -> Result<()> {
    let fault = |file: &str, error: &hf_hub::api::sync::ApiError| EncodeError::Hub {
        repo,
        file: file.to_owned(),
        problem: error.to_string(),
    };
    let builder =
        hf_hub::api::sync::ApiBuilder::from_env().with_cache_dir(cache.as_std_path().to_owned()).with_progress(false);
    let api = builder.build().map_err(|error| fault("", &error))?;
    let repository = api.model(repo.to_owned());
    for names in files {
        let mut refused = None;
        for name in *names {
            each(name);
            match repository.get(name) {
                Ok(_) => {
                    refused = None;
                    break;
                }
                // The first of the names is the one people expect, so it is the one that an error shows.
                Err(error) => refused = refused.or(Some(fault(name, &error))),
            }
        }
        if let Some(error) = refused {
            return Err(error);
        }
    }
    Ok(())
}

/// This build has no client for a hub.
#[cfg(not(feature = "hub"))]
pub(super) fn fetch(
    name: &'static str,
    repo: &'static str,
    _files: &[&'static [&'static str]],
    _cache: &Utf8Path,
    _each: &mut dyn FnMut(&'static str),
) -> Result<()> {
    Err(EncodeError::HubNotBuilt { repo, name })
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
