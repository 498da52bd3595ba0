//! `BigFile` (MS-SL): `feature.bin` with `f32` rows, `shape.txt` (`rows width`), `id.txt` (the name of each row) and
//! `video2frames.txt`, a Python dictionary from each video to the names of its rows in order.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::VideoId;
use cuemark_formats::json::weight;
use cuemark_formats::python_literal::{self, Literal};
use cuemark_formats::{ReadError, Source};

use super::Arrays;
use crate::foreign::OpenOptions;
use crate::number::{ByteOrder, Number};
use crate::{Features, Result};

#[derive(Debug)]
pub(super) struct BigFile {
    videos: Vec<VideoId>,
    /// The rows of each video in `feature.bin`.
    rows: BTreeMap<VideoId, Vec<u32>>,
    width: usize,
    path: Utf8PathBuf,
    file: File,
    /// The most that one video may take, in bytes.
    largest: u64,
}

pub(super) fn open(folder: &Utf8Path, options: &OpenOptions) -> Result<BigFile> {
    let (count, width) = shape(&options.source(folder.join("shape.txt")))?;
    let path = folder.join("feature.bin");
    let file = File::open(&path).map_err(|source| ReadError::Io { path: path.clone(), source })?;
    let length = file.metadata().map_err(|source| ReadError::Io { path: path.clone(), source })?.len();
    let wanted = (count as u64).checked_mul(width as u64).and_then(|numbers| numbers.checked_mul(4));
    if wanted != Some(length) {
        let problem = format!("is {length} bytes long, `shape.txt` says {count} rows of {width} numbers of 4 bytes");
        return Err(ReadError::file(&path, problem).into());
    }
    let ids = options.source(folder.join("id.txt"));
    let text = ids.text()?;
    // Every name: as it is found, and with its row.
    let each = 2 * size_of::<&str>() + 64;
    let most = text.len().div_ceil(2).min(count.saturating_add(1));
    ids.meter()
        .charge((each as u64).saturating_mul(most as u64))
        .map_err(|exceeded| ReadError::memory(ids.path(), format!("{count} names"), exceeded))?;
    let names = row_names(&text, count)
        .ok_or_else(|| ids.fault(format!("{} lines, `shape.txt` says {count} rows", text.lines().count())))?;
    let rows = videos(&options.source(folder.join("video2frames.txt")), &names)?;
    Ok(BigFile {
        videos: rows.keys().cloned().collect(),
        rows,
        width,
        path,
        file,
        largest: options.largest.min(options.budget.bytes()),
    })
}

fn shape(source: &Source) -> Result<(usize, usize)> {
    let text = source.text()?;
    let numbers: Vec<Option<usize>> = text.split_whitespace().map(|number| number.parse().ok()).collect();
    match numbers.as_slice() {
        [Some(rows), Some(width)] if *width > 0 && u32::try_from(*rows).is_ok() => Ok((*rows, *width)),
        _ => Err(source.record(1, "shape", "is not the number of rows and their width").into()),
    }
}

/// The row of every name. One name a line; older writers put them all on one line, apart by spaces.
fn row_names(text: &str, count: usize) -> Option<HashMap<&str, u32>> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let names = if lines.len() == count { lines } else { text.split_whitespace().collect() };
    if names.len() != count {
        return None;
    }
    Some(names.into_iter().zip(0..).collect())
}

fn videos(source: &Source, names: &HashMap<&str, u32>) -> Result<BTreeMap<VideoId, Vec<u32>>> {
    let fault = |problem: String| source.fault(problem);
    let text = source.text()?;
    let literals = source.meter().charge(weight(&text));
    literals.map_err(|exceeded| ReadError::memory(source.path(), "the dictionary", exceeded))?;
    let Literal::Entries(entries) = python_literal::parse(&text).map_err(fault)? else {
        return Err(fault("is not a dictionary".to_owned()).into());
    };
    let mut videos = BTreeMap::new();
    for (video, frames) in entries {
        let (Literal::Text(video), Literal::Items(frames)) = (video, frames) else {
            return Err(fault("is not a dictionary of videos and lists of names".to_owned()).into());
        };
        let rows = frames.iter().map(|frame| match frame {
            Literal::Text(name) => {
                let row = names.get(name.as_str()).copied();
                row.ok_or_else(|| fault(format!("`{name}` of video `{video}` is not in `id.txt`")))
            }
            _ => Err(fault(format!("video `{video}` lists something that is not a name"))),
        });
        let rows = rows.collect::<Result<Vec<u32>, ReadError>>()?;
        if videos.insert(VideoId::new(video.as_str()), rows).is_some() {
            return Err(fault(format!("video `{video}` stands there twice")).into());
        }
    }
    Ok(videos)
}

impl BigFile {
    /// Reads `row` into `bytes`.
    fn row(&self, row: u32, bytes: &mut [u8]) -> std::io::Result<()> {
        let offset = u64::from(row) * bytes.len() as u64;
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileExt;
            self.file.read_exact_at(bytes, offset)
        }
        #[cfg(not(unix))]
        {
            use std::io::{Read, Seek, SeekFrom};
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(bytes)
        }
    }
}

impl Arrays for BigFile {
    fn videos(&self) -> &[VideoId] {
        &self.videos
    }

    fn read(&self, video: &VideoId) -> Result<Features> {
        let rows = self.rows.get(video).map(Vec::as_slice).unwrap_or_default();
        let row_bytes = self.width * size_of::<f32>();
        if (rows.len() as u64).saturating_mul(row_bytes as u64) > self.largest {
            let (path, what) = (self.path.clone(), format!("video `{video}`"));
            return Err(ReadError::TooLarge { path, what, limit: self.largest }.into());
        }
        let mut bytes = vec![0; row_bytes];
        let mut data = Vec::with_capacity(rows.len() * self.width);
        for row in rows {
            self.row(*row, &mut bytes).map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
            data.extend(Number::F32.decode(&bytes, ByteOrder::Little));
        }
        Ok(Features::from_parts(rows.len(), self.width, data))
    }
}
