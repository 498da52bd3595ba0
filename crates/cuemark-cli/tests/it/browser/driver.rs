//! Processes, and the few calls of the WebDriver protocol that these tests make.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use serde_json::{Value, json};

/// A process of ours that ends with the test.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn cuemark(arguments: &[&str]) -> String {
    cuemark_testkit::succeed(Command::new(env!("CARGO_BIN_EXE_cuemark")).args(arguments))
}

/// Starts a program and waits for the line that has `mark` in it.
pub(crate) fn start(command: &mut Command, mark: &str) -> (Running, String) {
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
pub(crate) struct Browser {
    port: u16,
    session: String,
}

impl Browser {
    pub(crate) fn open(port: u16) -> Self {
        let mut browser = Self { port, session: String::new() };
        let options = json!({ "args": ["--headless=new", "--no-sandbox", "--disable-background-networking", "--disable-gpu", "--mute-audio",
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

    pub(crate) fn go(&self, url: &str) {
        self.call("POST", &format!("{}/url", self.session), &json!({ "url": url }));
    }

    pub(crate) fn run(&self, script: &str) -> Value {
        self.call("POST", &format!("{}/execute/sync", self.session), &json!({ "script": script, "args": [] }))
    }

    /// Types into whatever has the focus.
    pub(crate) fn keys(&self, text: &str) {
        let keys: Vec<Value> = text
            .chars()
            .flat_map(|key| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })])
            .collect();
        let actions = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": keys }] });
        self.call("POST", &format!("{}/actions", self.session), &actions);
    }

    pub(crate) fn size(&self, width: usize, height: usize) {
        let rect = json!({ "width": width, "height": height });
        self.call("POST", &format!("{}/window/rect", self.session), &rect);
    }

    /// As [`Browser::run`], for a script that ends by calling `done`.
    pub(crate) fn run_later(&self, script: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1]; {script}");
        self.call("POST", &format!("{}/execute/async", self.session), &json!({ "script": script, "args": [] }))
    }

    /// Takes what is at one selector, drags it to the right and lets it go there.
    pub(crate) fn drag(&self, selector: &str, pixels: i64) {
        let centre = format!(
            "const b = document.querySelector('{selector}').getBoundingClientRect(); \
             return [Math.round(b.x + b.width / 2), Math.round(b.y + b.height / 2)]"
        );
        let at = self.run(&centre);
        let (x, y) = (at[0].as_i64().unwrap(), at[1].as_i64().unwrap());
        let to = |x: i64| json!({ "type": "pointerMove", "duration": 50, "x": x, "y": y });
        let steps = json!([to(x), { "type": "pointerDown", "button": 0 }, to(x + pixels / 2), to(x + pixels), { "type": "pointerUp", "button": 0 }]);
        let actions = json!({ "actions": [{ "type": "pointer", "id": "mouse", "actions": steps }] });
        self.call("POST", &format!("{}/actions", self.session), &actions);
    }

    /// Which colours the person in front of it prefers: `light` or `dark`.
    pub(crate) fn scheme(&self, scheme: &str) {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        let command = json!({ "cmd": "Emulation.setEmulatedMedia", "params": media });
        self.call("POST", &format!("{}/goog/cdp/execute", self.session), &command);
    }

    /// Asks again until the script gives something other than `null` or `false`.
    pub(crate) fn wait(&self, what: &str, script: &str) -> Value {
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

    pub(crate) fn screenshot(&self, folder: Option<&Utf8Path>, name: &str) {
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

/// Chrome's driver on a port of its own, and a browser.
pub(crate) fn browser() -> (Running, Browser) {
    let mut driver = Command::new("chromedriver");
    driver.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
    let (running, line) = start(&mut driver, "successfully on port ");
    let digits = line.rsplit("on port ").next().unwrap();
    (running, Browser::open(digits.trim_end_matches('.').trim().parse().unwrap()))
}

/// Serves an index on a port of its own, or on the one that is named.
pub(crate) fn serve(index: &Utf8Path, cache: Option<&Utf8Path>, more: &[&str]) -> (Running, String) {
    let mut serve = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    serve.args(["serve", index.as_str()]).args(more).stderr(Stdio::piped()).stdout(Stdio::null());
    if !more.contains(&"--listen") {
        serve.args(["--listen", "127.0.0.1:0"]);
    }
    serve.envs(cache.map(|cache| ("CUEMARK_CACHE", cache)));
    let (server, line) = start(&mut serve, "listening on ");
    (server, line.split("listening on ").nth(1).unwrap().trim().to_owned())
}
