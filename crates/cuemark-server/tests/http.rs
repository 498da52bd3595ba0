//! The server over real sockets: what it answers, and what it does with requests that mean harm.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic, and one of them is a program of its own

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise as _, Dialect};
use cuemark_core::{Span, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::{
    EmbeddedVideo, Embedding, Encoder, EngineUrl, Index, Moment, Result, SearchError, VideoEntry, VideoState,
};
use cuemark_server::{Server, ServerError, ServerOptions};
use serde_json::Value;

const WORDS: [&str; 6] = ["red", "blue", "ball", "box", "spins", "stage"];

/// Each word is an axis.
struct Words;

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

    fn video(&self, id: &VideoId, _: Option<&Utf8Path>) -> Result<EmbeddedVideo> {
        Err(SearchError::UnknownVideo { video: id.clone() })
    }
}

struct Running {
    address: SocketAddr,
    folder: Utf8PathBuf,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    _guard: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// A server on a free port over two videos: `one` with a file of 1,000 bytes, `two` without.
fn running(token: Option<&str>) -> Running {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    std::fs::write(folder.join("secret.txt"), "nobody's business").unwrap();
    std::fs::create_dir(folder.join("videos")).unwrap();
    let file = folder.join("videos/one.mp4");
    std::fs::write(&file, (0..1000).map(|n| (n % 251) as u8).collect::<Vec<u8>>()).unwrap();
    let index = Index::create(&EngineUrl::File(folder.join("index")), Box::new(Words), Overwrite::Never).unwrap();
    let moment = |start: f64, text: &str| Moment {
        span: Span::new(start, start + 4.0).unwrap(),
        embedding: Embedding::unit(embed(text)).unwrap(),
    };
    for (id, path, moments) in [
        ("one", Some(file), vec![moment(0.0, "red ball spins stage"), moment(10.0, "stage")]),
        ("two", None, vec![moment(2.0, "blue box stage"), moment(12.0, "stage")]),
    ] {
        let entry = VideoEntry {
            id: id.into(),
            path,
            duration: 20.0,
            bytes: 0,
            modified: 0,
            tags: vec![format!("tag-{id}")],
            state: VideoState::Present,
        };
        index.engine().put(&entry, &moments).unwrap();
    }
    index.settle(cuemark_search::Settling::WhenWorthIt, &mut |_, _| {}).unwrap();
    let options = ServerOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        token: token.map(str::to_owned),
        addable: vec![folder.join("videos")],
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

struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.head))
    }

    /// A problem with this status, said in the right form.
    fn is_problem(&self, status: u16) -> bool {
        self.status == status
            && self.head.contains("application/problem+json")
            && self.json()["status"] == status
            && self.json()["detail"].as_str().is_some_and(|detail| !detail.is_empty())
    }
}

impl Running {
    fn send(&self, request: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..split]).to_lowercase();
        let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Reply { status, head, body: bytes.get(split + 4..).unwrap_or_default().to_vec() }
    }

    fn get_with(&self, path: &str, headers: &str) -> Reply {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"))
    }

    fn get(&self, path: &str) -> Reply {
        self.get_with(path, "")
    }

    fn post(&self, path: &str, body: &str) -> Reply {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }
}

#[test]
fn a_question_gets_ranked_moments_with_spans_and_probabilities() {
    let server = running(None);
    let reply = server.get("/api/v1/search?q=red%20ball%20spins");
    assert_eq!(reply.status, 200);
    let best = &reply.json()["answers"][0];
    assert_eq!(
        (best["video"].as_str(), best["start"].as_f64(), best["end"].as_f64()),
        (Some("one"), Some(0.0), Some(4.0))
    );
    assert!(best["probability"].as_f64().is_some_and(|p| (0.0..=1.0).contains(&p)));
    let filtered = server.get("/api/v1/search?q=red%20ball&tag=tag-two").json();
    assert!(filtered["answers"].as_array().unwrap().iter().all(|answer| answer["video"] == "two"));
    let like = server.get("/api/v1/moments/like?video=one&start=10&end=14").json();
    assert_eq!((like["answers"][0]["video"].as_str(), like["answers"][0]["start"].as_f64()), (Some("two"), Some(12.0)));
    assert_eq!(server.get("/api/v1/videos/one/strip?q=red").json()["strip"].as_array().map(Vec::len), Some(64));
}

#[test]
fn videos_are_served_whole_and_in_ranges() {
    let server = running(None);
    let bytes: Vec<u8> = (0..1000).map(|n| (n % 251) as u8).collect();
    let whole = server.get("/api/v1/videos/one/media");
    assert_eq!((whole.status, &whole.body), (200, &bytes));
    let part = server.get_with("/api/v1/videos/one/media", "Range: bytes=100-299\r\n");
    assert_eq!((part.status, &part.body[..]), (206, &bytes[100..300]));
    assert!(part.head.contains("content-range: bytes 100-299/1000"), "{}", part.head);
    let last = server.get_with("/api/v1/videos/one/media", "Range: bytes=-10\r\n");
    assert_eq!((last.status, &last.body[..]), (206, &bytes[990..]));
    for range in ["bytes=2000-3000", "bytes=9-3", "bytes=99999999999999999999-"] {
        let refused = server.get_with("/api/v1/videos/one/media", &format!("Range: {range}\r\n"));
        assert!([416, 400, 200].contains(&refused.status), "{range}: {}", refused.status);
        assert!(refused.body.is_empty() || refused.body == bytes, "{range}");
    }
    assert_eq!(server.get_with("/api/v1/videos/one/media", "Range: bytes=2000-3000\r\n").status, 416);
    assert!(server.get("/api/v1/videos/two/media").is_problem(404));
}

#[test]
fn nothing_outside_the_index_can_be_read() {
    let server = running(None);
    let secret = server.folder.join("secret.txt");
    for path in [
        "/api/v1/videos/../secret.txt/media".to_owned(),
        "/api/v1/videos/..%2Fsecret.txt/media".to_owned(),
        "/api/v1/videos/%2e%2e%2f%2e%2e%2fsecret.txt/media".to_owned(),
        format!("/api/v1/videos/{}/media", secret.as_str().replace('/', "%2F")),
        "/api/v1/videos/one%00/media".to_owned(),
        "/api/v1/videos/one/../../secret.txt".to_owned(),
        "/../../../../etc/passwd".to_owned(),
        "/app.js/../../secret.txt".to_owned(),
        "/api/v1/videos/%ff%fe/media".to_owned(),
    ] {
        let reply = server.get(&path);
        assert!((400..500).contains(&reply.status), "{path}: {}", reply.status);
        let text = String::from_utf8_lossy(&reply.body);
        assert!(!text.contains("nobody's business"), "{path}: {text}");
        // A name that is not there may be repeated, but nothing of the server's own is told.
        assert!(!text.contains(server.folder.as_str()) || path.contains("%2Fsecret.txt"), "{path}: {text}");
    }
    for path in [secret.as_str(), "/etc", "videos/../../..", server.folder.join("videos/../secret.txt").as_str()] {
        let body = serde_json::json!({ "paths": [path] }).to_string();
        assert!(server.post("/api/v1/jobs", &body).is_problem(403), "{path}");
    }
}

#[test]
fn nonsense_gets_a_problem_and_the_server_lives_on() {
    let server = running(None);
    for (path, status) in [
        ("/api/v1/search", 400),
        ("/api/v1/search?q=", 400),
        ("/api/v1/search?q=ball&limit=0", 400),
        ("/api/v1/search?q=ball&limit=many", 400),
        ("/api/v1/search?q=ball&limit=101", 400),
        ("/api/v1/search?q=ball&within=9-3", 400),
        ("/api/v1/search?q=ball&within=NaN-inf", 400),
        ("/api/v1/search?q=ball&least=NaN", 400),
        ("/api/v1/search?q=ball&colour=red", 400),
        ("/api/v1/search?q=ball&video=nobody", 404),
        ("/api/v1/moments/like?video=nobody&start=0&end=1", 404),
        ("/api/v1/moments/like?video=one&start=5&end=1", 400),
        ("/api/v1/videos/nobody", 404),
        ("/api/v1/videos/nobody/thumbnail", 404),
        ("/api/v1/videos/one/thumbnail?width=99999999", 400),
        ("/api/v1/videos/one/thumbnail?at=-1", 400),
        ("/api/v1/jobs/7", 404),
        ("/api/v1/jobs/x/events", 404),
        ("/api/v1/nothing", 404),
        ("/nothing", 404),
    ] {
        let reply = server.get(path);
        assert!(reply.is_problem(status), "{path}: {} {}", reply.status, String::from_utf8_lossy(&reply.body));
    }
    assert!(server.get(&format!("/api/v1/search?q={}", "a".repeat(2000))).is_problem(400));
    assert!((400..500).contains(&server.get(&format!("/api/v1/search?q={}", "a".repeat(60_000))).status));
    for body in ["", "{", "[]", "{\"paths\":5}", "{\"paths\":[]}", "{\"paths\":[\"x\"],\"more\":1}", "\u{0}"] {
        let reply = server.post("/api/v1/jobs", body);
        assert!((400..500).contains(&reply.status), "{body}: {}", reply.status);
    }
    assert_eq!(server.post("/api/v1/jobs", &format!("{{\"paths\":[\"{}\"]}}", "x".repeat(200_000))).status, 413);
    for raw in [
        "\r\n\r\n",
        "GET\r\n\r\n",
        "BREW / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "\u{16}\u{3}\u{1}",
    ] {
        let status = server.send(raw).status;
        assert!(status == 0 || (400..500).contains(&status), "{raw:?}: {status}");
    }
    assert_eq!(server.get("/api/v1/health").status, 200);
}

#[test]
fn a_video_that_cannot_be_decoded_gives_no_picture_and_no_path() {
    let server = running(None);
    let reply = server.get("/api/v1/videos/one/thumbnail");
    assert!(reply.is_problem(500), "{}", reply.status);
    assert!(!String::from_utf8_lossy(&reply.body).contains(server.folder.as_str()));
}

#[test]
fn a_token_is_asked_for_everywhere_but_at_the_page_and_health() {
    let server = running(Some("right"));
    for path in
        ["/api/v1/search?q=ball", "/api/v1/videos", "/api/v1/videos/one/media", "/metrics", "/api/v1/openapi.json"]
    {
        assert!(server.get(path).is_problem(401), "{path}");
        assert!(server.get_with(path, "Authorization: Bearer wrong\r\n").is_problem(401), "{path}");
        assert_eq!(server.get_with(path, "Authorization: Bearer right\r\n").status, 200, "{path}");
        assert_eq!(server.get_with(path, "Cookie: a=b; cuemark_token=right\r\n").status, 200, "{path}");
    }
    for path in ["/", "/app.js", "/app.css", "/api/v1/health"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
}

#[test]
fn another_hosts_name_is_refused_without_a_token() {
    let server = running(None);
    let named =
        |host: &str| server.send(&format!("GET /api/v1/videos HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    assert!(named("evil.example").is_problem(403));
    assert_eq!(named("127.0.0.1:7878").status, 200);
}

#[test]
fn the_page_asks_nobody_else_for_anything() {
    let server = running(None);
    for path in ["/", "/app.css", "/app.js", "/icon.svg"] {
        let reply = server.get(path);
        assert!(reply.head.contains("content-security-policy: default-src 'none'"), "{path}");
        let text = String::from_utf8(reply.body).unwrap().replace("http://www.w3.org/2000/svg", "");
        assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("//cdn"), "{path}");
    }
}

#[test]
fn the_description_lists_every_path_and_metrics_count() {
    let server = running(None);
    let description = server.get("/api/v1/openapi.json").json();
    let paths: Vec<&String> = description["paths"].as_object().unwrap().keys().collect();
    for path in ["/api/v1/search", "/api/v1/videos/{id}/media", "/api/v1/jobs/{id}/events", "/api/v1/health"] {
        assert!(paths.iter().any(|known| *known == path), "{path} of {paths:?}");
    }
    server.get("/api/v1/search?q=ball");
    let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
    assert!(
        metrics.contains("cuemark_search_seconds_count 1\n") && metrics.contains("cuemark_videos 2\n"),
        "{metrics}"
    );
}

#[test]
fn a_job_adds_what_it_may_and_tells_how_far_it_is() {
    let server = running(None);
    let body = serde_json::json!({ "paths": [server.folder.join("videos")] }).to_string();
    let started = server.post("/api/v1/jobs", &body);
    assert_eq!(started.status, 202);
    let id = started.json()["id"].as_u64().unwrap();
    // The stream ends when the job does.
    let events = String::from_utf8(server.get(&format!("/api/v1/jobs/{id}/events")).body).unwrap();
    assert!(events.contains("event: job") && events.contains("\"phase\":\"finished\""), "{events}");
    // The toy encoder knows no file, so the one in the folder is listed as failed, by its name and not its path.
    let state = server.get(&format!("/api/v1/jobs/{id}")).json();
    assert_eq!((state["done"].as_u64(), state["failed"].as_array().map(Vec::len)), (Some(1), Some(1)));
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(1));
}

/// Slow clients at a time.
const HERD: usize = 5000;
/// Tells the process of slow clients whom to bother.
const HERD_OF: &str = "CUEMARK_TEST_HERD";

#[test]
fn five_thousand_clients_that_take_their_time_are_cut_off_and_others_are_served_meanwhile() {
    let server = running(None);
    // This very program, as another process: the function below.
    let mut herd = Command::new(std::env::current_exe().unwrap())
        .args(["the_herd_of_slow_clients", "--exact", "--nocapture"])
        .env(HERD_OF, server.address.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(herd.stdout.take().unwrap()).lines().map_while(std::io::Result::ok);
    // The harness may print on the same line.
    let mut told = lines.filter_map(|line| Some(line.split_once("herd: ")?.1.to_owned()));
    let connected: usize = told.next().unwrap().parse().unwrap();
    if connected < HERD {
        eprintln!("only {connected} slow clients: the system allows no more open files");
    }
    assert!(connected >= 200, "{connected}");
    for _ in 0..50 {
        assert_eq!(server.get("/api/v1/search?q=ball").status, 200);
        assert_eq!(server.get("/api/v1/videos/one/media").body.len(), 1000);
        assert!(server.get("/api/v1/videos/..%2Fsecret.txt/media").is_problem(404));
        assert!(server.post("/api/v1/jobs", "{").status >= 400);
    }
    // Every one of them is cut off although it keeps sending.
    assert_eq!(told.next().unwrap().parse::<usize>().unwrap(), connected);
    assert!(herd.wait().unwrap().success());
    assert_eq!(server.get("/api/v1/health").status, 200);
}

/// No test of its own: what the test above runs as another process.
#[test]
fn the_herd_of_slow_clients() {
    let Ok(address) = std::env::var(HERD_OF) else { return };
    let most = rlimit::increase_nofile_limit(HERD as u64 + 64).unwrap() as usize - 64;
    let mut herd = Vec::new();
    for _ in 0..HERD.min(most) {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
        stream.set_nonblocking(true).unwrap();
        herd.push(stream);
    }
    let connected = herd.len();
    println!("herd: {connected}");
    let began = Instant::now();
    while !herd.is_empty() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(200));
        // One more letter each; those that are told off, or find nobody listening, are gone.
        herd.retain_mut(|stream| {
            let heard = stream.read(&mut [0; 64]);
            let waits = heard.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
            waits && stream.write_all(b"x").is_ok()
        });
    }
    println!("herd: {}", connected - herd.len());
}

#[test]
fn an_address_that_others_can_reach_wants_a_token() {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    let index = Arc::new(Index::create(&EngineUrl::File(folder), Box::new(Words), Overwrite::Never).unwrap());
    let options = ServerOptions { listen: SocketAddr::from(([0, 0, 0, 0], 0)), ..ServerOptions::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(Server::bind(index, options)).err().unwrap();
    assert!(
        matches!(refused, ServerError::Open { .. })
            && refused.advice_in(Dialect::Terminal).unwrap().contains("CUEMARK_TOKEN")
    );
}
