//! Clients that mean harm. What they are told does not matter; that others are served meanwhile does.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use anyhow::Result;
use cuemark_core::Rng;

use super::Soak;
use crate::client::{ask, asked, head};

/// Connections of one attack.
const HERD: usize = 60;
/// Those that stall are kept for so long, in attacks of any kind.
const KEPT: usize = 600;

/// One attack after another until the soak ends.
pub(super) fn harm(soak: &Soak, mut rng: Rng) {
    let mut kept: Vec<TcpStream> = Vec::new();
    while soak.goes_on() {
        let Some((address, _)) = soak.servers.address() else {
            soak.nap(Duration::from_millis(50));
            continue;
        };
        // A server that is killed meanwhile is an error that nobody minds.
        let _ = match rng.below(6) {
            0 => slow_heads(soak, &address, &mut kept),
            1 => stalled(soak, &address, &mut kept),
            2 => hang_ups(soak, &address, &mut rng),
            3 => garbage(soak, &address, &mut rng),
            4 => ranges(soak, &address),
            _ => foreign(soak, &address),
        };
        // A byte more for those that are slow.
        kept.iter_mut().for_each(|stream| drop(stream.write_all(b"x")));
        let extra = kept.len().saturating_sub(KEPT);
        kept.drain(..extra);
        soak.nap(Duration::from_millis(100));
    }
}

fn slow_heads(soak: &Soak, address: &str, kept: &mut Vec<TcpStream>) -> Result<()> {
    for _ in 0..HERD {
        let stream = asked(address, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")?;
        stream.set_nonblocking(true)?;
        kept.push(stream);
        soak.count("clients with slow heads");
    }
    Ok(())
}

fn stalled(soak: &Soak, address: &str, kept: &mut Vec<TcpStream>) -> Result<()> {
    for _ in 0..HERD {
        let stream = asked(address, b"GET /api/v1/videos/large/media HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        stream.set_nonblocking(true)?;
        kept.push(stream);
        soak.count("clients that did not read");
    }
    Ok(())
}

fn hang_ups(soak: &Soak, address: &str, rng: &mut Rng) -> Result<()> {
    for _ in 0..HERD / 2 {
        let (at, width) = (rng.between(0.0, 18.0), 64 + rng.below(1000));
        let path = match rng.below(2) {
            0 => format!("/api/v1/videos/large/thumbnail?at={at:.1}&width={width}"),
            _ => format!("/api/v1/search?q=ball%20{width}&mode=exact"),
        };
        let gone = asked(address, format!("{}\r\n", head(&format!("GET {path}"), "")).as_bytes())?;
        std::thread::sleep(Duration::from_millis(10));
        drop(gone);
        soak.count("clients that hung up");
    }
    Ok(())
}

fn garbage(soak: &Soak, address: &str, rng: &mut Rng) -> Result<()> {
    for _ in 0..HERD / 2 {
        let noise: Vec<u8> = (0..rng.below(4000)).map(|_| rng.bits() as u8).collect();
        drop(asked(address, &noise)?);
        let line = format!("GET /{} HTTP/1.1\r\n", String::from_utf8_lossy(&noise).replace(['\r', '\n'], ""));
        drop(asked(address, line.as_bytes())?);
        soak.count("clients that talked nonsense");
    }
    Ok(())
}

fn ranges(soak: &Soak, address: &str) -> Result<()> {
    for range in ["0-99999999999999999999", "99999999999999999999-", "-99999999999999999999", "0-0,1-1,2-2", "5-1"] {
        let gone = asked(
            address,
            format!("{}Range: bytes={range}\r\n\r\n", head("GET /api/v1/videos/large/media", "")).as_bytes(),
        )?;
        drop(gone);
        soak.count("ranges out of proportion");
    }
    Ok(())
}

/// Pages of others and files that nobody may see.
fn foreign(soak: &Soak, address: &str) -> Result<()> {
    for (line, headers) in [
        ("GET /api/v1/videos/large/media", "Sec-Fetch-Site: cross-site\r\n"),
        ("GET /api/v1/videos", "Origin: http://evil.example\r\n"),
        ("GET /api/v1/videos/..%2F..%2Fetc%2Fpasswd/media", ""),
    ] {
        let reply = ask(address, line, headers, "")?;
        if !(400..500).contains(&reply.status) {
            soak.complain(format!("{line} {}: {}", headers.trim(), reply.status));
        }
        soak.count("requests that must be refused");
    }
    Ok(())
}
