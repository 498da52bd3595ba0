//! Questions to a server at a steady rate, whatever becomes of them: `http_load ADDRESS RATE SECONDS SENTENCES CONNECTIONS [FIRST]`.
//!
//! SENTENCES is a file with one sentence a line, asked over and over from the line FIRST on; it prints one line of JSON.
//!
//! An open loop: question `n` is due `n / RATE` seconds after the beginning and its time counts from then, so one that waits
//! because the server is behind is not forgotten. With RATE 0 every connection asks again as soon as it has its answer, which
//! finds out how many a server can answer. A thread for each connection: they do little but wait.
#![allow(clippy::print_stdout)] // a program of its own

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a thread that only waits needs.
const STACK: usize = 256 << 10;

/// How to ask.
#[derive(Debug, Clone, Copy)]
struct Load {
    /// Questions a second; 0 for as many as are answered.
    rate: f64,
    seconds: f64,
    connections: usize,
    /// Of the sentences, where to begin: what was asked before is known to the server.
    first: usize,
}

/// What became of a question.
struct Asked {
    status: u16,
    /// Whether it was told when to come again.
    told_when: bool,
    took: Duration,
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, rate, seconds, sentences, connections, rest @ ..] = words.as_slice() else {
        bail!("http_load ADDRESS RATE SECONDS SENTENCES CONNECTIONS [FIRST]");
    };
    let text = std::fs::read_to_string(sentences).context(sentences.clone())?;
    let sentences: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let first = rest.first().map_or(Ok(0), |first| first.parse())?;
    let load = Load { rate: rate.parse()?, seconds: seconds.parse()?, connections: connections.parse()?, first };
    println!("{}", ask(address, &sentences, load)?);
    Ok(())
}

/// Asks `sentences` in their order, over and over, and tells how long it took.
fn ask(address: &str, sentences: &[&str], load: Load) -> Result<Value> {
    if sentences.is_empty() || load.connections == 0 {
        bail!("nothing to ask, or nobody to ask it");
    }
    let next = AtomicUsize::new(0);
    // The threads are there before the first question is due.
    let begin = Instant::now() + Duration::from_millis(500);
    let all: Vec<Asked> = std::thread::scope(|scope| {
        let asking = || {
            let ask = || one_connection(address, sentences, load, begin, &next);
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, ask)
        };
        let threads = (0..load.connections).map(|_| asking()).collect::<std::io::Result<Vec<_>>>()?;
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().ok().context("a connection panicked")?);
        }
        anyhow::Ok(all)
    })?;
    Ok(told(&all, begin.elapsed().as_secs_f64(), load))
}

fn one_connection(address: &str, sentences: &[&str], load: Load, begin: Instant, next: &AtomicUsize) -> Vec<Asked> {
    let mut asked = Vec::new();
    let mut connection = None;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let due = if load.rate > 0.0 {
            begin + Duration::from_secs_f64(number as f64 / load.rate)
        } else {
            begin.max(Instant::now())
        };
        if due >= begin + Duration::from_secs_f64(load.seconds) {
            return asked;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let sentence = sentences[(load.first + number) % sentences.len()];
        let (status, told_when) = match exchange(&mut connection, address, sentence) {
            Ok(told) => told,
            // A connection that broke is made anew for the next; this question failed.
            Err(_) => {
                connection = None;
                (0, false)
            }
        };
        asked.push(Asked { status, told_when, took: due.elapsed() });
    }
}

/// One question over a connection that is kept; its status, and whether it says when to come again.
fn exchange(connection: &mut Option<BufReader<TcpStream>>, address: &str, sentence: &str) -> Result<(u16, bool)> {
    let stream = match connection {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            connection.insert(BufReader::new(stream))
        }
    };
    let request = format!("GET /api/v1/search?q={} HTTP/1.1\r\nHost: localhost\r\n\r\n", escaped(sentence));
    stream.get_mut().write_all(request.as_bytes())?;
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
    let (mut length, mut told_when) = (None, false);
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            bail!("the head does not end");
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse::<usize>().ok(),
            "retry-after" => told_when = true,
            _ => {}
        }
    }
    let mut body = vec![0; length.context("no length")?];
    stream.read_exact(&mut body)?;
    Ok((status, told_when))
}

/// A sentence as part of an address.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn told(all: &[Asked], seconds: f64, load: Load) -> Value {
    let times = |wanted: &dyn Fn(u16) -> bool| {
        let mut times: Vec<f64> =
            all.iter().filter(|asked| wanted(asked.status)).map(|asked| 1e3 * asked.took.as_secs_f64()).collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get(((share * times.len() as f64) as usize).min(times.len().saturating_sub(1)));
        json!({ "count": times.len(), "median_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99), "p999_ms": at(0.999), "worst_ms": times.last() })
    };
    let refused = all.iter().filter(|asked| asked.status == 429);
    json!({
        "rate": load.rate, "connections": load.connections, "seconds": seconds, "asked": all.len(),
        "answered_a_second": all.iter().filter(|asked| asked.status == 200).count() as f64 / seconds,
        "answered": times(&|status| status == 200),
        "refused": times(&|status| status == 429),
        "refused_and_told_when": refused.filter(|asked| asked.told_when).count(),
        "failed": times(&|status| status != 200 && status != 429),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A server that answers every other question and sends the rest away.
    fn server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || {
                    let mut stream = BufReader::new(stream);
                    let (mut line, mut count) = (String::new(), 0);
                    while stream.read_line(&mut line).is_ok_and(|read| read > 0) {
                        if line == "\r\n" {
                            count += 1;
                            let head = if count % 2 == 0 { "429 No\r\nRetry-After: 1" } else { "200 OK" };
                            let answer = format!("HTTP/1.1 {head}\r\nContent-Length: 2\r\n\r\nok");
                            stream.get_mut().write_all(answer.as_bytes()).unwrap();
                        }
                        line.clear();
                    }
                });
            }
        });
        address
    }

    #[test]
    fn questions_come_at_the_rate_that_was_asked_for_and_refusals_are_counted_apart() {
        let load = Load { rate: 200.0, seconds: 1.0, connections: 1, first: 0 };
        let told = ask(&server(), &["a red ball", "b"], load).unwrap();
        assert_eq!((told["asked"].as_u64(), told["answered"]["count"].as_u64()), (Some(200), Some(100)), "{told}");
        assert_eq!((told["refused"]["count"].as_u64(), told["refused_and_told_when"].as_u64()), (Some(100), Some(100)));
        assert_eq!(told["failed"]["count"], 0);
    }

    #[test]
    fn a_server_that_is_not_there_fails_every_question() {
        let load = Load { rate: 50.0, seconds: 0.2, connections: 2, first: 0 };
        let told = ask("127.0.0.1:1", &["a"], load).unwrap();
        assert_eq!((told["asked"].as_u64(), told["failed"]["count"].as_u64()), (Some(10), Some(10)), "{told}");
    }

    #[test]
    fn sentences_are_parts_of_an_address() {
        assert_eq!(escaped("a red-ball & é"), "a%20red-ball%20%26%20%C3%A9");
    }
}
