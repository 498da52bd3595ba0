//! `docs/scale.md`: the same five commands on a folder and on a Milvus server, run as they stand there.
//!
//! The server is the Python package `milvus`, which `cargo xtask test` installs.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cuemark_testkit::{fixture, python, scratch};
use serde_json::Value;

/// The address that the page names.
const ADDRESS: &str = "127.0.0.1:19530";

/// A server that takes longer to start or to answer does not.
const PATIENCE: Duration = Duration::from_secs(300);

/// A process that goes with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Milvus stops when its input ends; the page's server is told.
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a Milvus server; one that another test of this machine keeps from starting is tried again.
fn milvus(python: &str, folder: &Path, port: u16) -> Running {
    let script = fixture("../crates/cuemark-search/tests/it/milvus_server.py");
    let begin = Instant::now();
    loop {
        let mut child = Command::new(python)
            .args([script.as_str(), folder.to_str().unwrap(), &port.to_string(), scratch("milvus").as_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.starts_with("READY ") {
            return Running(child);
        }
        assert!(begin.elapsed() < PATIENCE, "the server said {line:?}");
        child.wait().unwrap();
        std::thread::sleep(Duration::from_secs(5));
    }
}

/// The commands of the blocks of the page below the mark that names this file.
fn blocks() -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(fixture("../docs/scale.md")).unwrap();
    let below = page.split("<!-- run by crates/cuemark-cli/tests/it/scale.rs -->\n```console\n").skip(1);
    let inside = below.map(|rest| rest.split("```").next().unwrap());
    inside.map(|block| block.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()).collect()
}

fn cuemark(words: &str, folder: &Path) -> Command {
    let mut shell = Command::new("sh");
    let words = words.strip_prefix("cuemark ").unwrap();
    shell.args(["-c", &format!("exec \"$0\" {words}"), env!("CARGO_BIN_EXE_cuemark")]);
    shell.current_dir(folder).env("CUEMARK_CACHE", "/nowhere");
    shell
}

/// What a command prints; it has to end well.
fn run(words: &str, folder: &Path) -> String {
    let begin = Instant::now();
    loop {
        let output = cuemark(words, folder).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return String::from_utf8(output.stdout).unwrap();
        }
        // A new server opens its port before it can be asked anything.
        assert!(words.contains("milvus://") && begin.elapsed() < PATIENCE, "{words}\n{told}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn health(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Runs the last command, which serves, until it has answered.
fn serve(words: &str, folder: &Path) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Running(cuemark(&format!("{words} --listen {port}"), folder).spawn().unwrap());
    let begin = Instant::now();
    loop {
        assert_eq!(server.0.try_wait().unwrap(), None, "{words}");
        if let Ok(answer) = health(port) {
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{words}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The films and spans that were found, without how good they are: numbers of 16 bits here are of 32 there.
fn moments(answers: &Value) -> Vec<(String, i64, i64)> {
    let tenths = |value: &Value| (10.0 * value.as_f64().unwrap()).round() as i64;
    let list = answers["answers"].as_array().unwrap_or_else(|| panic!("{answers}"));
    list.iter()
        .map(|one| (one["video"].as_str().unwrap().to_owned(), tenths(&one["start"]), tenths(&one["end"])))
        .collect()
}

#[test]
fn the_same_five_commands_give_the_same_answers_on_a_folder_and_on_a_server() {
    let Some(python) = python("milvus") else { return };
    let guard = tempfile::tempdir().unwrap();
    let folder = guard.path();
    let blocks = blocks();
    assert_eq!(blocks.len(), 3, "the demo, the folder and the server");
    for command in &blocks[0] {
        run(command, folder);
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _server = milvus(python.as_str(), &folder.join("milvus"), port);
    let own = |command: &String| command.replace(ADDRESS, &format!("127.0.0.1:{port}"));
    let mut found = Vec::new();
    for block in &blocks[1..] {
        let block: Vec<String> = block.iter().map(own).collect();
        let [create, add, status, search, serving] = block.as_slice() else { panic!("five commands: {block:#?}") };
        run(create, folder);
        run(add, folder);
        run(status, folder);
        found.push(moments(&serde_json::from_str(&run(&format!("{search} --json"), folder)).unwrap()));
        serve(serving, folder);
    }
    assert!(!found[0].is_empty());
    assert_eq!(found[0], found[1]);
}
