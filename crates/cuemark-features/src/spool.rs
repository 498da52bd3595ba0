//! Rows of one video that go to disk as they are made, so that memory does not grow with the video.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Seek as _, Write as _};

use camino::Utf8PathBuf;
use cuemark_core::VideoId;
use cuemark_formats::{Overwrite, ReadError, WholeFile};

use crate::shard;
use crate::{FeatureError, Recipe, Result, StoreWriter};

/// Rows of one video in one stream, on their way into a shard of their own. Dropped before its end it leaves nothing behind.
#[derive(Debug)]
pub struct RowSpool {
    stream: String,
    width: usize,
    rows: usize,
    path: Utf8PathBuf,
    file: BufWriter<File>,
}

impl RowSpool {
    /// How many there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends one row.
    ///
    /// # Errors
    /// When it has another width than the recipe says, holds a number that is not finite, or the disk refuses.
    pub fn push(&mut self, video: &VideoId, row: &[f32]) -> Result<()> {
        let unfit = |problem: String| FeatureError::Unfit { video: video.clone(), problem };
        if row.len() != self.width {
            return Err(unfit(format!("`{}` is {} wide, its recipe says {}", self.stream, row.len(), self.width)));
        }
        if row.iter().any(|number| !number.is_finite()) {
            return Err(unfit(format!("`{}` row {} holds a number that is not finite", self.stream, self.rows)));
        }
        let bytes: Vec<u8> = row.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.file.write_all(&bytes).map_err(|source| ReadError::Write { path: self.path.clone(), source })?;
        self.rows += 1;
        Ok(())
    }
}

impl Drop for RowSpool {
    fn drop(&mut self) {
        // What stays behind after a crash is overwritten by the next attempt.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl StoreWriter {
    /// Begins the rows of a video that will have shard number `shard` to itself.
    ///
    /// # Errors
    /// When the stream has no recipe or the disk refuses.
    pub fn spool(&self, shard: usize, stream: &str) -> Result<RowSpool> {
        let path = self.folder().join(format!(".shard-{shard:05}.rows"));
        let problem = || ReadError::file(self.folder(), format!("stream `{stream}` has no recipe"));
        let recipe: &Recipe = self.recipes().get(stream).ok_or_else(problem)?;
        let file = File::options().create(true).truncate(true).read(true).write(true).open(&path);
        let file = file.map_err(|source| ReadError::Write { path: path.clone(), source })?;
        Ok(RowSpool { stream: stream.to_owned(), width: recipe.width, rows: 0, path, file: BufWriter::new(file) })
    }

    /// Writes shard number `shard` from the rows of `video`: whole or not at all, byte for byte what
    /// [`StoreWriter::write_shard`] writes.
    ///
    /// # Errors
    /// When the shard is there already, or the disk refuses.
    pub fn write_spooled(&self, shard: usize, video: &VideoId, mut spool: RowSpool) -> Result<()> {
        let of_spool = |source| ReadError::Write { path: spool.path.clone(), source };
        spool.file.flush().map_err(of_spool)?;
        let mut rows = spool.file.get_ref().try_clone().map_err(of_spool)?;
        rows.rewind().map_err(of_spool)?;
        let path = self.shard_path(shard);
        let shape = [spool.rows, spool.width];
        let mut whole = WholeFile::create(&path, Overwrite::Never)?;
        whole.put(&shard::header_of_one(&path, self.recipes(), &spool.stream, video, shape)?)?;
        let (mut rows, mut part) = (BufReader::new(rows), vec![0; 1 << 16]);
        loop {
            match rows.read(&mut part).map_err(of_spool)? {
                0 => break,
                count => whole.put(part.get(..count).unwrap_or_default())?,
            }
        }
        Ok(whole.finish()?)
    }

    /// The videos of all shards that are there, by shard number.
    ///
    /// # Errors
    /// When a shard is damaged.
    pub fn finished(&self) -> Result<BTreeMap<usize, Vec<VideoId>>> {
        let mut finished = BTreeMap::new();
        for number in self.shard_numbers()? {
            finished.insert(number, self.shard_videos(number)?.unwrap_or_default());
        }
        Ok(finished)
    }
}
