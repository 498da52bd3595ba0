//! Files by plain HTTPS: fetched into a part file, taken up where a fetch was cut short, held to a checksum.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::time::Duration;

use camino::Utf8Path;
use cuemark_core::digest::hex;
use sha2::{Digest as _, Sha256};
use ureq::Agent;
use ureq::http::Response;

/// Redirects that are followed: a hub sends large files from elsewhere.
const REDIRECTS: usize = 5;
/// How long a server may take to be reached, and to say something.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes that are read at a time.
const PIECE: usize = 1 << 16;

/// A client for files.
pub(super) struct Client {
    agent: Agent,
}

/// What a server says about a file before it sends it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stated {
    /// SHA-256 of its content, where the server states one.
    pub(super) sha256: Option<String>,
    /// The revision of the repository that it is of.
    pub(super) revision: Option<String>,
}

/// What a file must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Expected<'a> {
    /// SHA-256 of its content; beside what the server states.
    pub(super) sha256: Option<&'a str>,
    /// Its size in bytes.
    pub(super) bytes: Option<u64>,
}

/// A file that cannot be had, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// The server has no such file: another name may do.
    NotThere,
    /// Anything else.
    Problem(String),
}

impl Client {
    pub(super) fn new() -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE));
        Self { agent: config.build().new_agent() }
    }

    /// Fetches the file at `url` to `part`; what is there already is taken for its beginning. `each` is told the bytes that are here
    /// and, where known, of how many.
    ///
    /// The part file stays after a fetch that was cut short, for the next one. It goes when its content is wrong.
    pub(super) fn fetch(
        &self,
        url: &str,
        part: &Utf8Path,
        expected: Expected<'_>,
        each: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Stated, Refused> {
        let here = part.metadata().map_or(0, |metadata| metadata.len());
        let (stated, mut response) = self.ask(url, here)?;
        let status = response.status().as_u16();
        let written = |error: std::io::Error| Refused::Problem(format!("`{part}` cannot be written: {error}"));
        let (file, mut bytes) = match status {
            206 if starts_at(&response) == Some(here) => (OpenOptions::new().append(true).open(part), here),
            200 => (File::create(part), 0),
            // What is here may be all of it: the checksum says.
            416 if here > 0 => (OpenOptions::new().append(true).open(part), here),
            404 | 410 => return Err(Refused::NotThere),
            401 | 403 => {
                return Err(Refused::Problem(format!("the server answers {status}: it wants to know who asks")));
            }
            _ => return Err(Refused::Problem(format!("the server answers {status}"))),
        };
        let mut file = file.map_err(written)?;
        if status != 416 {
            let of = length(&response).map(|rest| bytes + rest).or(expected.bytes);
            let (mut reader, mut piece) = (response.body_mut().as_reader(), vec![0; PIECE]);
            loop {
                let cut = |error| Refused::Problem(format!("cut short after {bytes} bytes: {error}"));
                let count = reader.read(&mut piece).map_err(cut)?;
                if count == 0 {
                    break;
                }
                file.write_all(piece.get(..count).unwrap_or_default()).map_err(written)?;
                bytes += count as u64;
                each(bytes, of);
            }
            if let Some(of) = of.filter(|of| bytes < *of) {
                return Err(Refused::Problem(format!("cut short after {bytes} of {of} bytes")));
            }
        }
        file.sync_all().map_err(written)?;
        let sums = [expected.sha256, stated.sha256.as_deref()];
        if let Err(problem) = check(part, expected.bytes, &sums) {
            // The next fetch begins anew: no more bytes would make it right.
            let _ = std::fs::remove_file(part);
            return Err(Refused::Problem(problem));
        }
        Ok(stated)
    }

    /// Asks for a file from a byte on, and follows where the server sends us; what it states is what the first says that does.
    fn ask(&self, url: &str, from: u64) -> Result<(Stated, Response<ureq::Body>), Refused> {
        let (mut url, mut stated) = (url.to_owned(), Stated::default());
        for _ in 0..=REDIRECTS {
            let mut request = self.agent.get(&url);
            if from > 0 {
                request = request.header("range", format!("bytes={from}-"));
            }
            let response = request.call().map_err(|error| Refused::Problem(format!("`{url}`: {error}")))?;
            let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
            let sum = || header("x-linked-etag").or_else(|| header("etag"));
            let digest = |etag: String| {
                let bare = etag.trim_start_matches("W/").trim_matches('"').to_ascii_lowercase();
                // An etag of another length is no SHA-256, but whatever the server numbers its files by.
                (bare.len() == 64 && bare.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(bare)
            };
            stated.sha256 = stated.sha256.or_else(|| sum().and_then(digest));
            stated.revision = stated.revision.or_else(|| header("x-repo-commit"));
            if !response.status().is_redirection() {
                return Ok((stated, response));
            }
            let Some(to) = header("location") else {
                return Err(Refused::Problem(format!("`{url}` is elsewhere, and the server does not say where")));
            };
            url = moved(&url, &to)?;
        }
        Err(Refused::Problem(format!("more than {REDIRECTS} redirects")))
    }
}

/// Holds a file to its size and its checksums.
pub(super) fn check(path: &Utf8Path, bytes: Option<u64>, sums: &[Option<&str>]) -> Result<(), String> {
    let mut file = File::open(path).map_err(|error| format!("`{path}` cannot be read: {error}"))?;
    let (mut hash, mut count, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
    loop {
        let read = file.read(&mut piece).map_err(|error| format!("`{path}` cannot be read: {error}"))?;
        if read == 0 {
            break;
        }
        hash.update(piece.get(..read).unwrap_or_default());
        count += read as u64;
    }
    if let Some(bytes) = bytes.filter(|bytes| *bytes != count) {
        return Err(format!("it has {count} bytes instead of {bytes}"));
    }
    let found = hex(&hash.finalize());
    match sums.iter().flatten().find(|sum| **sum != found) {
        Some(sum) => Err(format!("its SHA-256 is {found} instead of {sum}")),
        None => Ok(()),
    }
}

/// Where a redirect leads: a whole address, or a path on the same server. A safe address leads to no unsafe one.
fn moved(from: &str, to: &str) -> Result<String, Refused> {
    let server_ends = from.find("://").map_or(0, |at| at + 3);
    let server_ends = from.get(server_ends..).and_then(|rest| rest.find('/')).map_or(from.len(), |at| at + server_ends);
    let server = from.get(..server_ends).unwrap_or(from);
    if to.starts_with('/') && !to.starts_with("//") {
        return Ok(format!("{server}{to}"));
    }
    let is_safe = to.starts_with("https://") || (to.starts_with("http://") && from.starts_with("http://"));
    if is_safe {
        Ok(to.to_owned())
    } else {
        Err(Refused::Problem(format!("`{from}` leads to `{to}`, which is not followed")))
    }
}

/// The first byte of a partial answer.
fn starts_at(response: &Response<ureq::Body>) -> Option<u64> {
    let range = response.headers().get("content-range")?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

fn length(response: &Response<ureq::Body>) -> Option<u64> {
    response.headers().get("content-length")?.to_str().ok()?.parse().ok()
}
