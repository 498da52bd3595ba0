//! Requests and ranges: a whole server without its sockets hears the bytes as a client's.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, Span, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::{
    EmbeddedVideo, Embedding, Encoder, EngineUrl, Index, IndexedMoment, Result, SearchError, VideoEntry,
};
use cuemark_server::{Rehearsal, ServerOptions, Wanted};

use crate::Turn;

/// A server over one video, and the folder where it lies.
struct Stage {
    server: Rehearsal,
    _folder: tempfile::TempDir,
}

thread_local! {
    /// Made once: a server takes longer to make than to ask.
    static STAGE: Option<Stage> = stage();
}

/// The bytes as all that a client says, as the address and as a header of an otherwise good request, and as a range. Nothing
/// may panic, an answer is HTTP, no fault of ours (500) is among them, and no range lies outside of its file.
pub fn http(path: &Utf8Path, turn: Turn) {
    let Ok(bytes) = std::fs::read(path) else { return };
    let line: Vec<u8> = bytes.iter().copied().filter(|byte| !b"\r\n".contains(byte)).take(4096).collect();
    let good = |address: &[u8], header: &[u8]| {
        let head: [&[u8]; 5] =
            [b"GET ", address, b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", header, b"\r\n\r\n"];
        head.concat()
    };
    let header = |name: &[u8]| [name, &line].concat();
    let requests = [
        bytes.clone(),
        good(&line, b"Accept: */*"),
        good(&[b"/api/v1/search?q=", &line[..]].concat(), b"Accept: */*"),
        good(b"/api/v1/videos/film/media", &header(b"Range: ")),
        good(b"/api/v1/videos/film", &line),
    ];
    STAGE.with(|stage| {
        let Some(stage) = stage else { return };
        for request in turn.of(requests) {
            let answer = stage.server.answer(&request);
            assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "an answer that is no HTTP");
            assert!(!answer.starts_with(b"HTTP/1.1 500"), "{}", String::from_utf8_lossy(&answer));
        }
    });
    let range = String::from_utf8_lossy(&line);
    for length in [0, 1, 1000, u64::MAX] {
        if let Wanted::Part(part) = Wanted::read(&range, length) {
            assert!(part.start < part.end && part.end <= length, "{part:?} of {length}");
        }
    }
}

fn stage() -> Option<Stage> {
    let folder = tempfile::tempdir().ok()?;
    let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().ok()?).ok()?;
    let film = root.join("film.mp4");
    std::fs::write(&film, [7; 1000]).ok()?;
    let data = std::fs::metadata(&film).ok()?;
    let modified = data.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis() as i64;
    let index = Index::create(&EngineUrl::File(root.join("index")), Box::new(Axis), Overwrite::Never).ok()?;
    let entry = VideoEntry { path: Some(film), bytes: data.len(), modified, ..VideoEntry::without_file("film", 9.0) };
    let moment = IndexedMoment { span: Span::new(0.0, 4.0).ok()?, embedding: Embedding::unit(vec![1.0, 0.0])? };
    index.engine().put(&entry, &[moment]).ok()?;
    Some(Stage { server: Rehearsal::new(index, ServerOptions::default()).ok()?, _folder: folder })
}

/// Knows two kinds of sentences: short ones and long ones.
struct Axis;

impl Encoder for Axis {
    fn name(&self) -> &str {
        "axis"
    }

    fn width(&self) -> usize {
        2
    }

    fn sentences(&self, sentences: &[&str]) -> Result<Vec<Embedding>> {
        Ok(sentences.iter().filter_map(|text| Embedding::unit(vec![1.0, text.len() as f32])).collect())
    }

    fn video(&self, id: &VideoId, _: Option<&Utf8Path>, _: &Progress) -> Result<EmbeddedVideo> {
        Err(SearchError::UnknownVideo { video: id.clone() })
    }
}
