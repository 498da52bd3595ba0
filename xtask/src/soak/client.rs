//! A client of a few lines.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// How long a client waits for anything.
const PATIENCE: Duration = Duration::from_secs(40);

/// What came back.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn json(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

/// A connection on which `request` was sent.
pub(super) fn asked(address: &str, request: &[u8]) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    Ok(stream)
}

/// The head of a request that a well-behaved client sends.
pub(super) fn head(line: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}")
}

/// Asks and reads the whole answer.
pub(super) fn ask(address: &str, line: &str, headers: &str, body: &str) -> Result<Reply> {
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
pub(super) fn get(address: &str, path: &str) -> Result<Reply> {
    ask(address, &format!("GET {path}"), "", "")
}
