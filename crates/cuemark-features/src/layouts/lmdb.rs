//! LMDB (CONQUER): keys are videos, values MessagePack maps or `.npz` bytes.
//!
//! LMDB is C code that maps the file into memory and trusts it: read only databases whose writer you trust. That is why it
//! stands behind a cargo feature.

use std::io::Cursor;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::VideoId;
use cuemark_formats::ReadError;
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};

use super::{Arrays, files, msgpack, npz};
use crate::foreign::OpenOptions;
use crate::{Features, Result};

#[derive(Debug)]
pub(super) struct Lmdb {
    videos: Vec<VideoId>,
    path: Utf8PathBuf,
    env: Env<WithoutTls>,
    options: OpenOptions,
}

pub(super) fn open(path: &Utf8Path, options: &OpenOptions) -> Result<Lmdb> {
    let is_file = path.is_file();
    let mut settings = EnvOpenOptions::new().read_txn_without_tls();
    // SAFETY: the database is opened to read only, and without a lock because its folder may not be writable. As with every
    // mapped file, nobody may change it meanwhile; published features are never changed in place.
    #[allow(unsafe_code)]
    let env = unsafe {
        settings.flags(EnvFlags::READ_ONLY | EnvFlags::NO_LOCK);
        if is_file {
            settings.flags(EnvFlags::NO_SUB_DIR);
        }
        settings.open(path)
    };
    let env = env.map_err(|error| ReadError::file(path, format!("LMDB: {error}")))?;
    let videos = videos(&env).map_err(|problem| ReadError::file(path, format!("LMDB: {problem}")))?;
    Ok(Lmdb { videos, path: path.to_owned(), env, options: options.clone() })
}

/// The database without a name. Opening it is a look into a table, so it is done for every read.
fn database(env: &Env<WithoutTls>) -> Result<Database<'_, Bytes, Bytes>, String> {
    let opened = env.open_databases_and_commit(env.read_txn().map_err(text)?, |opener, transaction| {
        opener.open_database::<Bytes, Bytes>(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
    });
    opened.map_err(text)?.commit().flatten().ok_or_else(|| "there is no database without a name".to_owned())
}

/// Every key, sorted.
fn videos(env: &Env<WithoutTls>) -> Result<Vec<VideoId>, String> {
    let (database, transaction) = (database(env)?, env.read_txn().map_err(text)?);
    let mut videos = Vec::new();
    for entry in database.iter(&transaction).map_err(text)? {
        let (key, _) = entry.map_err(text)?;
        let video = std::str::from_utf8(key).map_err(|_| format!("key {} is not UTF-8", key.escape_ascii()))?;
        videos.push(VideoId::new(video));
    }
    videos.sort_unstable();
    Ok(videos)
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
fn text(error: heed::Error) -> String {
    error.to_string()
}

impl Arrays for Lmdb {
    fn videos(&self) -> &[VideoId] {
        &self.videos
    }

    fn read(&self, video: &VideoId) -> Result<Features> {
        let fault = |problem: String| ReadError::file(&self.path, format!("`{video}`: {problem}"));
        let (database, transaction) =
            (database(&self.env).map_err(fault)?, self.env.read_txn().map_err(text).map_err(fault)?);
        let value = database.get(&transaction, video.as_str().as_bytes()).map_err(text).map_err(fault)?;
        let value = value.ok_or_else(|| fault("is not there".to_owned()))?;
        if value.starts_with(b"PK") {
            return npz::read_archive(Cursor::new(value), &self.path, &self.options);
        }
        let name = self.options.array.as_deref().unwrap_or("features");
        let meter = self.options.meter();
        let features = msgpack::parse(value, name, &files::room(&meter, &self.options));
        Ok(features.map_err(|fault| fault.of(video.as_str()).at(&self.path, &format!("`{video}`")))?)
    }
}
