//! `cuemark serve` as a process that a chore starts, and a client of a few lines.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// How long a client waits for anything.
const PATIENCE: Duration = Duration::from_secs(40);

/// A server that ends with this value, and where it listens.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Served {
    /// Starts `command`, a `cuemark serve` on any port, and waits until it listens.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stderr(Stdio::piped()).spawn().context("cuemark serve")?;
        let mut lines = BufReader::new(child.stderr.take().context("the server says nothing")?).lines();
        let mut said = Vec::new();
        for line in lines.by_ref().map_while(Result::ok) {
            let Some((_, address)) = line.split_once("http://") else {
                said.push(line);
                continue;
            };
            let address = address.trim().to_owned();
            // Kept from filling the pipe; a panic is told of.
            std::thread::spawn(move || {
                let panics = lines.map_while(Result::ok).filter(|line| line.contains("panicked"));
                panics.for_each(|line| eprintln!("the server says: {line}"));
            });
            return Ok(Self { child, address });
        }
        let _ = child.wait();
        bail!("the server does not start: {}", said.join("; "))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

/// A connection on which `request` was sent.
pub(crate) fn asked(address: &str, request: &[u8]) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    Ok(stream)
}

/// The head of a request that a well-behaved client sends.
pub(crate) fn head(line: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}")
}

/// Asks and reads the whole answer.
pub(crate) fn ask(address: &str, line: &str, headers: &str, body: &str) -> Result<Reply> {
    let length = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
    };
    let request = format!("{}{length}\r\n{body}", head(line, headers));
    let mut stream = asked(address, request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").context("no head")?;
    let head = String::from_utf8_lossy(bytes.get(..split).unwrap_or_default()).to_ascii_lowercase();
    let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok()).context("no status")?;
    let body = bytes.get(split + 4..).unwrap_or_default().to_vec();
    let said = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    anyhow::ensure!(said.is_none_or(|said| said == body.len()), "{} of {said:?} bytes", body.len());
    Ok(Reply { status, body })
}

/// `GET`.
pub(crate) fn get(address: &str, path: &str) -> Result<Reply> {
    ask(address, &format!("GET {path}"), "", "")
}
