//! A real server over a toy encoder, and a client of a few lines.
#![allow(dead_code, unreachable_pub)] // each test program uses what it needs

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, Span, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::{
    EmbeddedVideo, Embedding, Encoder, EngineUrl, Index, IndexedMoment, Result, SearchError, VideoEntry,
};
use cuemark_server::{Keeping, Limits, Server, ServerOptions};
use serde_json::Value;

const WORDS: [&str; 6] = ["red", "blue", "ball", "box", "spins", "stage"];

/// Each word is an axis. A film called `panic` panics it, one called `slow` takes its time.
pub struct Words;

fn embed(text: &str) -> Vec<f32> {
    WORDS.iter().map(|word| if text.split_whitespace().any(|said| said == *word) { 1.0 } else { 0.05 }).collect()
}

impl Encoder for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn width(&self) -> usize {
        WORDS.len()
    }

    fn sentences(&self, sentences: &[&str]) -> Result<Vec<Embedding>> {
        Ok(sentences.iter().filter_map(|text| Embedding::unit(embed(text))).collect())
    }

    fn video(&self, id: &VideoId, _: Option<&Utf8Path>, _: &Progress) -> Result<EmbeddedVideo> {
        assert!(!id.as_str().contains("panic"), "a film that the encoder was not made for");
        if id.as_str().contains("slow") {
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(SearchError::UnknownVideo { video: id.clone() })
    }
}

/// A server that ends with the test.
pub struct Running {
    pub address: SocketAddr,
    pub folder: Utf8PathBuf,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    _guard: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// What a test wants of its server.
#[derive(Default)]
pub struct Setup {
    pub token: Option<&'static str>,
    pub limits: Limits,
    pub keeping: Keeping,
    /// Films besides `one`: a name, and who makes the file.
    pub films: Vec<(&'static str, Maker)>,
}

/// Makes the file of a film at a path.
pub type Maker = fn(&Utf8Path);

/// A server on a free port over two videos: `one` with a file of 1,000 bytes, `two` without.
pub fn running(token: Option<&'static str>) -> Running {
    running_with(Setup { token, ..Setup::default() })
}

/// As [`running`], with more of everything.
pub fn running_with(setup: Setup) -> Running {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
    std::fs::write(folder.join("secret.txt"), "nobody's business").unwrap();
    std::fs::create_dir(folder.join("videos")).unwrap();
    let file = folder.join("videos/one.mp4");
    std::fs::write(&file, (0..1000).map(|n| (n % 251) as u8).collect::<Vec<u8>>()).unwrap();
    let url = EngineUrl::File(folder.join("index"));
    let index = Index::create(&url, Box::new(Words), Overwrite::Never).unwrap();
    put(&index, "one", Some(file), &[(0.0, "red ball spins stage"), (10.0, "stage")]);
    put(&index, "two", None, &[(2.0, "blue box stage"), (12.0, "stage")]);
    for (id, make) in setup.films {
        let file = folder.join(format!("videos/{id}.mp4"));
        make(&file);
        put(&index, id, Some(file), &[(5.0, "box")]);
    }
    index.settle(cuemark_search::Settling::WhenWorthIt, &Progress::new()).unwrap();
    let options = ServerOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        token: setup.token.map(str::to_owned),
        addable: vec![folder.join("videos")],
        limits: setup.limits,
        keeping: setup.keeping,
    };
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::bind(Arc::new(index), options).await.unwrap();
            tell.send(server.address().unwrap()).unwrap();
            server
                .run(async {
                    let _ = stopped.await;
                })
                .await;
        });
    });
    Running { address: told.recv().unwrap(), folder, stop: Some(stop), thread: Some(thread), _guard: guard }
}

/// Puts a video of 20 s with its stamp into the index.
fn put(index: &Index, id: &str, path: Option<Utf8PathBuf>, moments: &[(f64, &str)]) {
    let data = path.as_ref().map(|path| path.metadata().unwrap());
    let modified = data.as_ref().map(|data| data.modified().unwrap().duration_since(UNIX_EPOCH).unwrap());
    let entry = VideoEntry {
        path,
        bytes: data.map_or(0, |data| data.len()),
        modified: modified.map_or(0, |since| since.as_millis() as i64),
        tags: vec![format!("tag-{id}")],
        ..VideoEntry::without_file(id, 20.0)
    };
    let moment = |(start, text): &(f64, &str)| IndexedMoment {
        span: Span::new(*start, start + 4.0).unwrap(),
        embedding: Embedding::unit(embed(text)).unwrap(),
    };
    index.engine().put(&entry, &moments.iter().map(moment).collect::<Vec<_>>()).unwrap();
}

/// What came back.
pub struct Reply {
    pub status: u16,
    /// In small letters.
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.head))
    }

    /// A problem with this status, said in the right form.
    pub fn is_problem(&self, status: u16) -> bool {
        self.status == status
            && self.head.contains("application/problem+json")
            && self.json()["status"] == status
            && self.json()["detail"].as_str().is_some_and(|detail| !detail.is_empty())
    }
}

impl Running {
    /// Asks the server to stop, without waiting.
    pub fn stop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
    }

    /// Whether the server has ended.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(std::thread::JoinHandle::is_finished)
    }

    /// A connection on which `request` was sent and nothing read.
    pub fn asked(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    pub fn send(&self, request: &str) -> Reply {
        let mut stream = self.asked(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..split]).to_lowercase();
        let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Reply { status, head, body: bytes.get(split + 4..).unwrap_or_default().to_vec() }
    }

    pub fn get_with(&self, path: &str, headers: &str) -> Reply {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"))
    }

    pub fn get(&self, path: &str) -> Reply {
        self.get_with(path, "")
    }

    pub fn post(&self, path: &str, body: &str) -> Reply {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }
}
