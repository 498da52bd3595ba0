//! Weights by plain HTTP from a server of our own, and from a folder.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise as _, Dialect};
use cuemark_encoders::weights::{Cache, Mirror, Pulled, Pulling, Standing, find};
use sha2::{Digest as _, Sha256};

const REPO: &str = "princeton-nlp/sup-simcse-bert-base-uncased";

/// What the server does with one path.
#[derive(Clone)]
enum Gives {
    /// The file, with the checksum that it states.
    File { bytes: Vec<u8>, stated: Option<String> },
    /// Another place.
    Elsewhere { to: String, stated: Option<String> },
    /// So many bytes of the file the first time, then the connection ends; later what is asked for.
    CutShort { bytes: Vec<u8>, after: usize },
}

/// What a server was asked for: each path, and from which byte on.
type Asked = Arc<Mutex<Vec<(String, Option<u64>)>>>;

/// A server of files, and what it was asked for.
struct Server {
    address: String,
    asked: Asked,
}

impl Server {
    fn new(files: HashMap<String, Gives>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Asked::default();
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { break };
                // Whoever asks may go away in the middle.
                let _ = answer(stream, &files, &heard);
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<(String, Option<u64>)> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    files: &HashMap<String, Gives>,
    heard: &Mutex<Vec<(String, Option<u64>)>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let path = lines.next().transpose()?.unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    let mut from = None;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().ok();
        }
        if line.is_empty() {
            break;
        }
    }
    let again = heard.lock().unwrap().iter().any(|(known, _)| *known == path);
    heard.lock().unwrap().push((path.clone(), from));
    let state = |stated: &Option<String>| {
        let sum = stated.as_ref().map_or_else(String::new, |sum| format!("X-Linked-Etag: \"{sum}\"\r\n"));
        format!("X-Repo-Commit: 0f1e2d\r\nConnection: close\r\n{sum}")
    };
    match files.get(&path) {
        None => write!(stream, "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
        Some(Gives::Elsewhere { to, stated }) => {
            write!(stream, "HTTP/1.1 302 Found\r\nLocation: {to}\r\n{}Content-Length: 0\r\n\r\n", state(stated))
        }
        Some(Gives::CutShort { bytes, after }) if !again => {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{}\r\n", bytes.len(), state(&None))?;
            stream.write_all(&bytes[..*after])
        }
        Some(Gives::File { bytes, stated }) => whole(&mut stream, bytes, &state(stated), from),
        Some(Gives::CutShort { bytes, .. }) => whole(&mut stream, bytes, &state(&None), from),
    }
}

fn whole(stream: &mut TcpStream, bytes: &[u8], headers: &str, from: Option<u64>) -> std::io::Result<()> {
    let rest = &bytes[from.unwrap_or(0) as usize..];
    let (status, range) = match from {
        Some(from) => {
            ("206 Partial Content", format!("Content-Range: bytes {from}-{}/{}\r\n", bytes.len() - 1, bytes.len()))
        }
        None => ("200 OK", String::new()),
    };
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{range}{headers}\r\n", rest.len())?;
    stream.write_all(rest)
}

fn sum(bytes: &[u8]) -> String {
    cuemark_core::digest::hex(&Sha256::digest(bytes))
}

fn at(file: &str) -> String {
    format!("/{REPO}/resolve/main/{file}")
}

/// A repository whose weights are `weights`.
fn repository(weights: Gives) -> HashMap<String, Gives> {
    let plain = |text: &str| Gives::File { bytes: text.as_bytes().to_vec(), stated: None };
    HashMap::from([
        (at("config.json"), plain("{}")),
        (at("vocab.txt"), plain("[PAD]")),
        (at("model.safetensors"), weights),
    ])
}

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    (guard, path)
}

fn numbers() -> Vec<u8> {
    (0..300_000u32).flat_map(u32::to_le_bytes).collect()
}

#[test]
fn a_repository_is_fetched_through_a_redirect_and_held_to_what_the_hub_states() {
    let bytes = numbers();
    let mut files = repository(Gives::Elsewhere { to: "/store/abc?x=1".to_owned(), stated: Some(sum(&bytes)) });
    // The store's own mark is no checksum of the content, and the hub's comes first.
    files.insert("/store/abc?x=1".to_owned(), Gives::File { bytes: bytes.clone(), stated: Some(sum(b"another")) });
    let (server, (_guard, root)) = (Server::new(files), folder());
    let cache = Cache::at(&root).mirrored(Mirror::new(&server.address));
    let card = find("simcse").unwrap();
    let mut told = Vec::new();
    let (found, pulled) = cache.pull(card, &mut |pulling| told.push(pulling)).unwrap();
    assert_eq!(pulled, Pulled::Fetched);
    assert!(found.path().ends_with("snapshots/0f1e2d"), "{}", found.path());
    assert_eq!(std::fs::read(found.path().join("model.safetensors")).unwrap(), bytes);
    assert!(found.path().join("vocab.txt").is_file(), "the second name will do where the first is not there");
    assert!(told.contains(&Pulling::Fetching { bytes: 1_200_000, of: 1_200_000 }));
    let before = server.asked().len();
    assert_eq!(cache.pull(card, &mut |_| ()).unwrap().1, Pulled::AlreadyHere);
    assert_eq!(server.asked().len(), before, "what is here is not asked for");
}

#[test]
fn a_file_that_is_not_what_the_hub_states_is_not_kept() {
    let files = repository(Gives::File { bytes: numbers(), stated: Some(sum(b"something else")) });
    let (server, (_guard, root)) = (Server::new(files), folder());
    let cache = Cache::at(&root).mirrored(Mirror::new(&server.address));
    let card = find("simcse").unwrap();
    let error = cache.pull(card, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("model.safetensors") && error.to_string().contains("SHA-256"), "{error}");
    let hint = error.advice_in(Dialect::Terminal).unwrap();
    assert!(hint.contains(&format!("hf download {REPO} config.json tokenizer.json model.safetensors")), "{hint}");
    assert_eq!(cache.standing(card), Standing::Absent);
    let parts = root.join("hub/models--princeton-nlp--sup-simcse-bert-base-uncased/parts");
    assert!(!parts.join("model.safetensors").exists(), "the wrong bytes are gone");
}

#[test]
fn a_fetch_that_was_cut_short_is_taken_up_where_it_ended() {
    let bytes = numbers();
    let files = repository(Gives::CutShort { bytes: bytes.clone(), after: 500_000 });
    let (server, (_guard, root)) = (Server::new(files), folder());
    let cache = Cache::at(&root).mirrored(Mirror::new(&server.address));
    let card = find("simcse").unwrap();
    let error = cache.pull(card, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("cut short"), "{error}");
    assert_eq!(cache.standing(card), Standing::Absent, "whole or not at all");
    let (found, _) = cache.pull(card, &mut |_| ()).unwrap();
    assert_eq!(std::fs::read(found.path().join("model.safetensors")).unwrap(), bytes);
    let asked = server.asked();
    let (_, from) = asked.iter().rfind(|(path, _)| *path == at("model.safetensors")).unwrap();
    assert!(from.is_some_and(|from| from > 0), "{asked:?}");
}

#[test]
fn a_server_that_is_not_there_or_leads_astray_is_said_with_the_command() {
    let (_guard, root) = folder();
    let card = find("simcse").unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error =
        Cache::at(&root).mirrored(Mirror::new(&format!("http://{nobody}/"))).pull(card, &mut |_| ()).unwrap_err();
    assert!(error.advice_in(Dialect::Terminal).unwrap().contains("CUEMARK_MIRROR"), "{error}");
    let mut files = repository(Gives::File { bytes: numbers(), stated: None });
    files.insert(at("config.json"), Gives::Elsewhere { to: "file:///etc/passwd".to_owned(), stated: None });
    let server = Server::new(files);
    let error = Cache::at(&root).mirrored(Mirror::new(&server.address)).pull(card, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("is not followed"), "{error}");
    let around = Gives::Elsewhere { to: at("config.json"), stated: None };
    let server = Server::new(HashMap::from([(at("config.json"), around)]));
    let error = Cache::at(&root).mirrored(Mirror::new(&server.address)).pull(card, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("redirects"), "{error}");
}

#[test]
fn a_folder_is_a_mirror_too_of_repositories_and_of_pinned_files() {
    let (_one, mirror) = folder();
    let (_two, root) = folder();
    let put = |name: &str, bytes: &[u8]| {
        let path = mirror.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    for file in ["config.json", "tokenizer.json", "pytorch_model.bin"] {
        put(&format!("{REPO}/{file}"), b"x");
    }
    let cache = Cache::at(&root).mirrored(Mirror::new(mirror.as_str()));
    let (found, _) = cache.pull(find("simcse").unwrap(), &mut |_| ()).unwrap();
    assert!(found.path().join("pytorch_model.bin").is_file());
    // What is pinned is held to its checksum wherever it comes from.
    put("silero-vad/silero_vad_16k.safetensors", &vec![0; 1_239_748]);
    let card = find("silero-vad").unwrap();
    let error = cache.pull(card, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("SHA-256") && error.to_string().contains(mirror.as_str()), "{error}");
    assert_eq!(cache.standing(card), Standing::Absent);
    let error = cache.pull(find("minilm").unwrap(), &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("it is not there"), "{error}");
    assert!(Utf8Path::new(&mirror).is_dir());
}
