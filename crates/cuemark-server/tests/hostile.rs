//! Clients that mean harm, over real sockets: slow ones, those that do not read or hang up, other people's pages, and files
//! that are not what they were.
#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod kit;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use cuemark_server::Limits;

use kit::{Running, Setup, running, running_with};

const LONG: &str = "GET /api/v1/videos/long/media HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// More than the system keeps for a client that does not read; takes no room on the disk.
fn long(path: &Utf8Path) {
    std::fs::File::create(path).unwrap().set_len(64 << 20).unwrap();
}

fn with_long(limits: Limits) -> Running {
    running_with(Setup { limits, films: vec![("long", long)], ..Setup::default() })
}

/// Asks again until it holds.
fn wait(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < limit, "waited {limit:?} for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn pages_of_other_origins_are_refused_and_no_answer_may_be_shown_by_them() {
    let server = running(None);
    for path in ["/api/v1/videos/one/media", "/api/v1/videos/one/thumbnail", "/api/v1/search?q=ball", "/api/v1/health"]
    {
        for foreign in [
            "Sec-Fetch-Site: cross-site\r\n",
            "Sec-Fetch-Site: same-site\r\n",
            "Origin: http://localhost:19999\r\n",
            "Origin: null\r\n",
        ] {
            let refused = server.get_with(path, foreign);
            assert!(refused.is_problem(403), "{path} {foreign}: {}", refused.head);
        }
    }
    for (path, own) in [
        ("/api/v1/videos/one/media", "Sec-Fetch-Site: same-origin\r\n"),
        ("/api/v1/videos/one/media", "Origin: http://localhost\r\n"),
        ("/", "Sec-Fetch-Site: none\r\n"),
        ("/", ""),
    ] {
        assert_eq!(server.get_with(path, own).status, 200, "{path} {own}");
    }
    for path in ["/", "/app.js", "/api/v1/videos/one/media", "/api/v1/health", "/nothing", "/api/v1/videos/%ff/media"] {
        let reply = server.get(path);
        assert!(reply.head.contains("\r\ncross-origin-resource-policy: same-origin"), "{path}: {}", reply.head);
    }
    // A form on another page can post without asking first.
    let foreign = server.send(
        "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nSec-Fetch-Site: cross-site\r\n\
         Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    );
    assert!(foreign.is_problem(403));
}

#[test]
fn hosts_that_are_odd_absent_or_double_are_refused() {
    let server = running(None);
    let ask = |version: &str, hosts: &str| {
        server.send(&format!("GET /api/v1/videos {version}\r\n{hosts}Connection: close\r\n\r\n"))
    };
    assert!(ask("HTTP/1.1", "").is_problem(400));
    assert!(ask("HTTP/1.0", "").is_problem(403));
    assert!(ask("HTTP/1.1", "Host: localhost\r\nHost: evil.example\r\n").is_problem(400));
    assert!(ask("HTTP/1.1", "Host: localhost\r\nHost: localhost\r\n").is_problem(400));
    assert!(ask("HTTP/1.1", "Host: localh\u{f6}st\r\n").is_problem(400));
    assert!(ask("HTTP/1.1", "Host: evil.example\r\n").is_problem(403));
    assert!(ask("HTTP/1.1", "Host: \r\n").is_problem(403));
    assert_eq!(ask("HTTP/1.1", "Host: 127.0.0.1:7878\r\n").status, 200);
}

#[cfg(unix)]
#[test]
fn a_film_that_was_replaced_is_neither_served_nor_pictured() {
    let server = running(None);
    let file = server.folder.join("videos/one.mp4");
    let both = |what: &str, status: u16, kind: &str| {
        for path in ["/api/v1/videos/one/media", "/api/v1/videos/one/thumbnail"] {
            let began = Instant::now();
            let reply = server.get(path);
            let text = String::from_utf8_lossy(&reply.body).into_owned();
            assert!(reply.is_problem(status) && reply.json()["type"] == kind, "{what} {path}: {} {text}", reply.status);
            assert!(began.elapsed() < Duration::from_secs(5), "{what} {path} took {:?}", began.elapsed());
            assert!(!text.contains("nobody's business") && !text.contains(server.folder.as_str()), "{text}");
        }
    };
    assert_eq!(server.get("/api/v1/videos/one/media").body.len(), 1000);
    std::fs::write(&file, "another film").unwrap();
    both("another film", 410, "video-replaced");
    std::fs::remove_file(&file).unwrap();
    both("nothing", 404, "not-found");
    std::os::unix::fs::symlink(server.folder.join("secret.txt"), &file).unwrap();
    both("a link", 410, "video-replaced");
    std::fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    both("a pipe", 410, "video-replaced");
    std::fs::remove_file(&file).unwrap();
    std::fs::rename(server.folder.join("videos"), server.folder.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(server.folder.join("elsewhere"), server.folder.join("videos")).unwrap();
    both("a linked folder", 410, "video-replaced");
}

#[test]
fn clients_that_do_not_read_are_cut_off_and_give_their_places_back() {
    let limits = Limits { connections: 24, unread: Duration::from_secs(1), ..Limits::default() };
    let server = with_long(limits);
    let stalled: Vec<TcpStream> = (0..24).map(|_| server.asked(LONG)).collect();
    // All places are taken; whoever comes now waits until the first are cut off.
    let began = Instant::now();
    assert_eq!(server.get("/api/v1/health").status, 200);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    // Whoever begins to read before it is cut off is a slow client and nothing worse.
    std::thread::sleep(Duration::from_secs(3));
    for mut stream in stalled {
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        assert!(heard.len() < 64 << 20, "{} bytes for a client that did not read", heard.len());
    }
}

#[test]
fn a_slow_client_that_reads_on_gets_the_whole_film() {
    let server = with_long(Limits { unread: Duration::from_millis(500), ..Limits::default() });
    let mut stream = server.asked(&LONG.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    let (mut piece, mut heard, mut naps) = (vec![0; 4 << 20], 0, 0);
    loop {
        let read = stream.read(&mut piece).unwrap();
        heard += read;
        if read == 0 {
            break;
        }
        // Some three seconds in all: far longer than a client may stand still.
        if heard > naps * (6 << 20) {
            naps += 1;
            std::thread::sleep(Duration::from_millis(250));
        }
    }
    assert!(heard > 64 << 20, "{heard}");
}

#[test]
fn the_end_is_heard_while_every_place_is_held_by_a_client_that_does_not_read() {
    let limits = Limits { connections: 16, unread: Duration::from_secs(600), ..Limits::default() };
    let mut server = with_long(limits);
    let stalled: Vec<TcpStream> = (0..16).map(|_| server.asked(LONG)).collect();
    let waiting: Vec<TcpStream> = (0..8).map(|_| server.asked(LONG)).collect();
    std::thread::sleep(Duration::from_millis(300));
    server.stop();
    wait("the server to end", Duration::from_secs(5), || server.is_over());
    drop((stalled, waiting));
}

#[test]
fn a_job_that_panics_fails_alone_and_the_next_one_runs() {
    let server = running(None);
    let start = |name: &str| {
        let file = server.folder.join("videos").join(name);
        std::fs::write(&file, "x").unwrap();
        let body = serde_json::json!({ "paths": [file] }).to_string();
        server.post("/api/v1/jobs", &body)
    };
    let first = start("panic.mp4");
    assert_eq!(first.status, 202);
    let state = || server.get("/api/v1/jobs/1").json();
    wait("the job to end", Duration::from_secs(10), || state()["phase"] == "failed");
    assert!(state()["error"].as_str().unwrap().contains("fault"), "{}", state());
    assert_eq!(start("fine.mp4").status, 202);
    wait("the next job", Duration::from_secs(10), || server.get("/api/v1/jobs/2").json()["phase"] == "finished");
}

#[test]
fn a_job_can_be_stopped_in_the_middle_and_another_started() {
    let server = running(None);
    for number in 0..100 {
        std::fs::write(server.folder.join(format!("videos/slow-{number}.mp4")), "x").unwrap();
    }
    let body = serde_json::json!({ "paths": [server.folder.join("videos")] }).to_string();
    assert_eq!(server.post("/api/v1/jobs", &body).status, 202);
    assert!(server.post("/api/v1/jobs", &body).is_problem(409));
    let stopped = server.send("DELETE /api/v1/jobs/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(stopped.status, 202);
    wait("the job to stop", Duration::from_secs(3), || server.get("/api/v1/jobs/1").json()["phase"] == "stopped");
    assert_eq!(server.post("/api/v1/jobs", &body).status, 202);
}

/// Twenty seconds of film with one key frame: a picture near its end takes the decoder a while.
fn film(path: &Utf8Path) {
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=50:duration=20"])
        .args(["-c:v", "libx264", "-preset", "ultrafast", "-g", "100000", "-keyint_min", "100000", "-y"])
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
}

/// Decoders of pictures that are running, ours by the file that they inherit.
#[cfg(target_os = "linux")]
fn decoders() -> usize {
    let parent = format!("PPid:\t{}\n", std::process::id());
    let is_one = |folder: &std::path::Path| {
        let read = |name| std::fs::read(folder.join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        // One that has ended and was not yet waited for has no command line.
        read("status").is_ok_and(|status| status.contains(&parent))
            && read("cmdline").is_ok_and(|line| line.starts_with("ffmpeg") && line.contains("/fd/0"))
    };
    std::fs::read_dir("/proc").unwrap().filter(|entry| entry.as_ref().is_ok_and(|entry| is_one(&entry.path()))).count()
}

#[cfg(target_os = "linux")]
#[test]
fn forty_clients_that_hang_up_leave_no_more_decoders_than_there_may_be() {
    let limits = Limits { decoders: 2, ..Limits::default() };
    let server = running_with(Setup { limits, films: vec![("film", film)], ..Setup::default() });
    let (mut most, mut seen) = (0, 0);
    for number in 0..40 {
        let at = 18.0 + 0.01 * f64::from(number);
        let path = format!("/api/v1/videos/film/thumbnail?at={at}&width={}", 64 + number);
        let gone = server.asked(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(15));
            let now = decoders();
            (most, seen) = (most.max(now), seen + now);
        }
        drop(gone);
    }
    assert!(seen > 0, "no decoder was ever seen");
    assert!(most <= 2, "{most} decoders at a time");
    // Their work is stopped, not only forgotten: a picture near the end takes longer than this.
    wait("the decoders to end", Duration::from_millis(500), || decoders() == 0);
    let picture = server.get("/api/v1/videos/film/thumbnail?at=1&width=64");
    assert!(picture.status == 200 && picture.body.starts_with(&[0xff, 0xd8]), "{}", picture.head);
}

#[test]
fn a_picture_past_the_end_is_not_found_and_says_why() {
    let server = running_with(Setup { films: vec![("film", film)], ..Setup::default() });
    for at in ["20", "999", "19.9999"] {
        let reply = server.get(&format!("/api/v1/videos/film/thumbnail?at={at}"));
        assert!(reply.is_problem(404), "{at}: {} {}", reply.status, String::from_utf8_lossy(&reply.body));
        assert_eq!(reply.json()["type"], "past-the-end");
        assert!(reply.json()["detail"].as_str().unwrap().contains("20 s"), "{}", reply.json());
    }
}

/// Slow clients at a time.
const HERD: usize = 5000;
/// Tells the process of slow clients whom to bother.
const HERD_OF: &str = "CUEMARK_TEST_HERD";
/// Clients that ask for a film and do not read it, at a time.
const STALLED: usize = 4000;
/// Tells the process of clients that do not read whom to bother.
const STALLED_AT: &str = "CUEMARK_TEST_STALLED";

/// Resident memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn thousands_of_clients_that_do_not_read_hold_little_memory_and_are_gone_soon() {
    let server = with_long(Limits { unread: Duration::from_secs(6), ..Limits::default() });
    assert_eq!(server.get("/api/v1/search?q=ball").status, 200);
    let before = resident();
    let mut herd = Command::new(std::env::current_exe().unwrap())
        .args(["the_herd_that_does_not_read", "--exact", "--nocapture"])
        .env(STALLED_AT, server.address.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(herd.stdout.take().unwrap()).lines().map_while(std::io::Result::ok);
    let mut told = lines.filter_map(|line| Some(line.split_once("herd: ")?.1.to_owned()));
    let connected: usize = told.next().unwrap().parse().unwrap();
    assert!(connected >= 200, "{connected}");
    let held = resident().saturating_sub(before) / connected;
    eprintln!("{connected} clients that do not read hold {held} bytes each");
    // Eight thousand would hold less than 400 MB.
    assert!(held < 48 << 10, "{held} bytes for each of {connected}");
    assert_eq!(server.get("/api/v1/search?q=ball").status, 200);
    assert_eq!(told.next().unwrap().parse::<usize>().unwrap(), connected);
    assert!(herd.wait().unwrap().success());
    assert_eq!(server.get("/api/v1/health").status, 200);
}

/// No test of its own: what the test above runs as another process.
#[test]
fn the_herd_that_does_not_read() {
    let Ok(address) = std::env::var(STALLED_AT) else { return };
    let most = rlimit::increase_nofile_limit(STALLED as u64 + 64).unwrap() as usize - 64;
    let mut herd = Vec::new();
    for _ in 0..STALLED.min(most) {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(LONG.as_bytes()).unwrap();
        herd.push(stream);
    }
    // The first letters of each answer: a connection that found the queue full is made seconds later than its client thinks.
    herd.iter_mut().for_each(|stream| stream.read_exact(&mut [0; 9]).unwrap());
    std::thread::sleep(Duration::from_secs(1));
    println!("herd: {}", herd.len());
    // Whoever was cut off reads what lay in the system's buffers and then an end, far from the whole film.
    std::thread::sleep(Duration::from_secs(20));
    let mut cut_off = 0;
    for mut stream in herd {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (mut heard, mut piece) = (0, vec![0; 1 << 20]);
        loop {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => heard += read,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                Err(_) => heard = usize::MAX / 2, // waits for more: it was not cut off
            }
            if heard >= 64 << 20 {
                break;
            }
        }
        cut_off += usize::from(heard < 64 << 20);
    }
    println!("herd: {cut_off}");
}

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
