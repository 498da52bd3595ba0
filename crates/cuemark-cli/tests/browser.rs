//! The page in a real browser: world videos are filmed, indexed, served; a question is typed, a moment played. Then the same
//! with three real videos and ten of the world, indexed by what is recognised in them.
//!
//! Needs Debian's `chromium` and `chromium-driver`; `cargo xtask test` installs them. With `CUEMARK_SCREENSHOTS=DIR` the
//! pictures of the page are kept there.
#![allow(clippy::unwrap_used)] // a test may panic

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

/// A process of ours that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn cuemark(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cuemark")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Starts a program and waits for the line that has `mark` in it.
fn start(command: &mut Command, mark: &str) -> (Running, String) {
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let pipe: Box<dyn Read + Send> = match child.stderr.take() {
        Some(stderr) => Box::new(stderr),
        None => Box::new(child.stdout.take().unwrap()),
    };
    let mut lines = BufReader::new(pipe).lines();
    let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains(mark)).unwrap_or_default();
    // Whatever it says later must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    (Running(child), line)
}

/// The few calls of the WebDriver protocol that this test makes.
struct Browser {
    port: u16,
    session: String,
}

impl Browser {
    fn open(port: u16) -> Self {
        let mut browser = Self { port, session: String::new() };
        let options = json!({ "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--mute-audio",
            "--autoplay-policy=no-user-gesture-required", "--force-device-scale-factor=1", "--window-size=1280,900"] });
        let asked =
            json!({ "capabilities": { "alwaysMatch": { "browserName": "chrome", "goog:chromeOptions": options } } });
        let told = browser.call("POST", "/session", &asked);
        browser.session = format!("/session/{}", told["sessionId"].as_str().unwrap());
        browser
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        // The driver may keep the connection: what it says of the length counts.
        let mut reply = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reply.read_line(&mut line).unwrap();
            let line = line.trim().to_ascii_lowercase();
            match line.strip_prefix("content-length:") {
                Some(digits) => length = digits.trim().parse().unwrap(),
                None if line.is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        reply.read_exact(&mut body).unwrap();
        let value: Value = serde_json::from_slice(&body).unwrap();
        assert!(value["value"]["error"].is_null(), "{method} {path}: {value:#}");
        value["value"].clone()
    }

    fn go(&self, url: &str) {
        self.call("POST", &format!("{}/url", self.session), &json!({ "url": url }));
    }

    fn run(&self, script: &str) -> Value {
        self.call("POST", &format!("{}/execute/sync", self.session), &json!({ "script": script, "args": [] }))
    }

    /// Types into whatever has the focus.
    fn keys(&self, text: &str) {
        let keys: Vec<Value> = text
            .chars()
            .flat_map(|key| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })])
            .collect();
        let actions = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": keys }] });
        self.call("POST", &format!("{}/actions", self.session), &actions);
    }

    fn size(&self, width: usize, height: usize) {
        let rect = json!({ "width": width, "height": height });
        self.call("POST", &format!("{}/window/rect", self.session), &rect);
    }

    /// Asks again until the script gives something other than `null` or `false`.
    fn wait(&self, what: &str, script: &str) -> Value {
        let began = Instant::now();
        loop {
            let found = self.run(script);
            if !(found.is_null() || found == Value::Bool(false)) {
                return found;
            }
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "waited for {what}: {}",
                self.run("return document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn screenshot(&self, folder: Option<&Utf8Path>, name: &str) {
        let Some(folder) = folder else { return };
        let picture = self.call("GET", &format!("{}/screenshot", self.session), &Value::Null);
        std::fs::write(folder.join(name), base64(picture.as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.call("DELETE", &self.session.clone(), &json!({}));
        }
    }
}

fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for letter in text.bytes() {
        let Some(value) = LETTERS.iter().position(|known| *known == letter) else { continue };
        bits = (bits << 6) | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

const ENTER: char = '\u{E007}';
const DOWN: char = '\u{E015}';

#[test]
fn a_question_typed_into_the_page_finds_moments_and_plays_exactly_one() {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    let at = |name: &str| folder.join(name).into_string();
    cuemark(&["world", "make", "--out", &at("world"), "--videos", "24", "--mp4", "--seed", "4"]);
    let run = cuemark_testkit::fixture("runs/small-mmn.toml");
    cuemark(&["train", run.as_str(), "--set", &format!("data.root={}", at("world")), "--out", &at("run")]);
    let made = cuemark(&["index", "create", &at("index"), "--encoder", &at("run"), &at("world/videos"), "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["added"]["failed"], 0, "{made:#}");
    assert!(made["status"]["videos"].as_u64().unwrap() >= 10, "{made:#}");

    let (_server, url) = serve(&folder.join("index"), None);
    let mut driver = Command::new("chromedriver");
    driver.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
    let (_driver, line) = start(&mut driver, "successfully on port ");
    let digits = line.rsplit("on port ").next().unwrap();
    let port = digits.trim_end_matches('.').trim().parse().unwrap();
    let browser = Browser::open(port);
    let pictures = std::env::var("CUEMARK_SCREENSHOTS").ok().map(Utf8PathBuf::from);

    browser.go(&url);
    browser.wait("the box to have the focus", "return document.activeElement.id === 'q'");
    browser.keys(&format!("the red ball spins{ENTER}"));
    browser.wait("ranked moments", "return document.querySelectorAll('#results .card').length >= 3");
    let chances = browser.run("return [...document.querySelectorAll('.chance')].map(e => parseInt(e.textContent))");
    let chances: Vec<i64> = chances.as_array().unwrap().iter().map(|chance| chance.as_i64().unwrap()).collect();
    assert!(chances.windows(2).all(|pair| pair[0] >= pair[1]), "not best first: {chances:?}");
    let address = browser.run("return location.search");
    assert_eq!(address, "?q=the+red+ball+spins");
    let loaded =
        "return [...document.querySelectorAll('.card img')].slice(0, 3).every(i => i.complete && i.naturalWidth > 0)";
    browser.wait("thumbnails", loaded);
    browser.wait("strips", "return document.querySelectorAll('.strip .bar').length > 0");
    browser.screenshot(pictures.as_deref(), "search-desktop.png");

    // By the keyboard alone: down to the first answer, and play it.
    browser.keys(&format!("{DOWN}{ENTER}"));
    let end = plays_inside_its_span(&browser);
    let stopped =
        format!("const v = document.getElementById('video'); return v.paused && v.currentTime >= {}", end - 0.5);
    browser.wait("the moment to end", &stopped);
    browser.screenshot(pictures.as_deref(), "search-playing.png");

    // A shared link shows the same, at phone width and without anything to scroll sideways.
    let first = "return document.querySelector('#results li').dataset.video + document.querySelector('#results li').dataset.start";
    let before = browser.run(first);
    browser.size(390, 844);
    browser.go(&format!("{url}/?q=the+red+ball+spins"));
    browser.wait("ranked moments again", "return document.querySelectorAll('#results .card').length >= 3");
    assert_eq!(browser.run(first), before);
    assert_eq!(browser.run("return document.documentElement.scrollWidth <= window.innerWidth"), true);
    browser.wait("thumbnails", loaded);
    browser.wait("strips", "return document.querySelectorAll('.strip .bar').length > 0");
    browser.screenshot(pictures.as_deref(), "search-phone.png");

    // Nothing to find and nothing to understand are said, not left blank.
    browser.go(&format!("{url}/?like=nobody:1-2"));
    browser.wait("the error", "return document.querySelector('#status.error')?.textContent.includes('nobody')");

    real_videos(&browser, &folder);
}

/// Three real videos and ten of the world: one command indexes, one serves; the question is about a real one.
fn real_videos(browser: &Browser, folder: &Utf8Path) {
    let cache: Option<Vec<Utf8PathBuf>> =
        ["minilm", "i3d", "efficientnet-lite0"].into_iter().map(cuemark_testkit::weights).collect();
    let cache = cache.and_then(|mut caches| caches.pop());
    let (Some(videos), Some(cache)) = (cuemark_testkit::shared("data/videos"), cache) else {
        return;
    };
    let (films, short) = (folder.join("films"), folder.join("short"));
    cuemark(&["world", "make", "--out", films.as_str(), "--videos", "10", "--length", "10", "--mp4", "--seed", "5"]);
    std::fs::create_dir(&short).unwrap();
    for film in films.join("videos").read_dir_utf8().unwrap() {
        // Four seconds of each: looking at them is what takes this test its time.
        let film = film.unwrap().into_path();
        let mut cut = Command::new("ffmpeg");
        cut.args(["-v", "error", "-i", film.as_str(), "-t", "4", "-c", "copy"]);
        assert!(cut.arg(short.join(film.file_name().unwrap())).status().unwrap().success());
    }
    let index = folder.join("real");
    let mut create = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    create.args(["index", "create", index.as_str(), videos.as_str(), short.as_str(), "--json"]);
    let made = create.env("CUEMARK_CACHE", &cache).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!((&made["added"]["new"], &made["added"]["failed"]), (&json!(13), &json!(0)), "{made:#}");

    let (_server, url) = serve(&index, Some(&cache));
    browser.size(1280, 900);
    browser.go(&url);
    browser.wait("the box to have the focus", "return document.activeElement.id === 'q'");
    browser.keys(&format!("two men arm wrestling{ENTER}"));
    browser.wait("ranked moments", "return document.querySelectorAll('#results .card').length >= 1");
    // The one of the three in which two men wrestle.
    let first = "return document.querySelector('#results li').dataset.video";
    assert_eq!(browser.run(first), "mmaction2_demo");
    browser.keys(&format!("{DOWN}{ENTER}"));
    plays_inside_its_span(browser);
}

/// Serves an index on a port of its own.
fn serve(index: &Utf8Path, cache: Option<&Utf8Path>) -> (Running, String) {
    let mut serve = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    serve.args(["serve", index.as_str(), "--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).stdout(Stdio::null());
    serve.envs(cache.map(|cache| ("CUEMARK_CACHE", cache)));
    let (server, line) = start(&mut serve, "listening on ");
    (server, line.split("listening on ").nth(1).unwrap().trim().to_owned())
}

/// Watches the first answer play, and says where it should end.
fn plays_inside_its_span(browser: &Browser) -> f64 {
    let playing = "const v = document.getElementById('video'); return v.readyState >= 2 && v.currentTime > 0";
    browser.wait("the video to play", playing);
    let span = browser.run("const d = document.querySelector('#results li').dataset; return [+d.start, +d.end]");
    let (start, end) = (span[0].as_f64().unwrap(), span[1].as_f64().unwrap());
    let mut seen = Vec::new();
    for _ in 0..20 {
        let now = browser.run("return document.getElementById('video').currentTime").as_f64().unwrap();
        assert!(start - 0.05 <= now && now <= end + 0.3, "at {now} s, outside {start} – {end}");
        seen.push(now);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(seen.last() > seen.first() || *seen.last().unwrap() >= end - 0.5, "it stands still: {seen:?}");
    end
}
