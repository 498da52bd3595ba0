//! `cuemark mcp`, spoken to by a client of the protocol: the real program over its standard input and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cuemark");

/// A folder `in` that is allowed, with a film of six seconds, and things beside it that are nobody's business.
struct Home {
    _guard: tempfile::TempDir,
    path: Utf8PathBuf,
}

impl Home {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir(path.join("in")).unwrap();
        std::fs::create_dir(path.join("outside")).unwrap();
        film(&path.join("in/film.mp4"));
        std::fs::copy(path.join("in/film.mp4"), path.join("outside/film.mp4")).unwrap();
        Self { _guard: guard, path }
    }

    fn allowed(&self) -> Utf8PathBuf {
        self.path.join("in")
    }
}

fn film(out: &Utf8Path) {
    let made = Command::new("ffmpeg")
        .args(["-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=6"])
        .args(["-c:v", "mpeg4", out.as_str()])
        .status();
    assert!(made.unwrap().success());
}

type Client = RunningService<RoleClient, ()>;

async fn client(arguments: &[&str]) -> Client {
    let mut command = tokio::process::Command::new(PROGRAM);
    command.arg("mcp").args(arguments);
    ().serve(TokioChildProcess::new(command).unwrap()).await.unwrap()
}

async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().unwrap().clone();
    client.call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)).await.unwrap()
}

async fn answer(client: &Client, tool: &str, arguments: Value) -> Value {
    let result = call(client, tool, arguments).await;
    assert_ne!(result.is_error, Some(true), "{tool}: {:?}", result.content);
    result.structured_content.unwrap()
}

/// What a tool says against a call, advice included.
async fn refusal(client: &Client, tool: &str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{tool}: {:?}", result.content);
    result.content[0].as_text().unwrap().text.clone()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn cuemark(folder: &Utf8Path, arguments: &[&str]) -> String {
    cuemark_testkit::succeed(Command::new(PROGRAM).args(arguments).current_dir(folder))
}

#[test]
fn a_client_searches_an_index_finds_in_a_film_and_hears_what_the_terminal_says() {
    let guard = tempfile::tempdir().unwrap();
    let home = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
    cuemark(&home, &["world", "make", "--out", "world", "--videos", "8", "--mp4", "--seed", "4"]);
    let recipe = cuemark_testkit::fixture("runs/small-mmn.toml").canonicalize_utf8().unwrap();
    let root = format!("data.root={}", home.join("world"));
    cuemark(&home, &["train", recipe.as_str(), "--set", &root, "--out", "run"]);
    let mut films: Vec<Utf8PathBuf> =
        home.join("world/videos").read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).collect();
    films.retain(|film| film.extension() == Some("mp4"));
    films.sort();
    std::fs::create_dir_all(home.join("in/films")).unwrap();
    std::fs::copy(&films[0], home.join("in/films/a.mp4")).unwrap();
    std::fs::write(home.join("in/films/a.srt"), "1\n00:00:01,000 --> 00:00:02,500\nthank you very much\n").unwrap();
    // A film of the index that lies outside of what will be allowed.
    std::fs::copy(&films[1], home.join("b.mp4")).unwrap();
    cuemark(&home, &["index", "create", "in/index", "--encoder", "run", "in/films/a.mp4", "b.mp4"]);
    std::fs::rename(home.join("run"), home.join("in/run")).unwrap();
    let question = "the red ball spins";
    let told = cuemark(&home, &["search", "in/index", question, "--least", "0", "--json"]);
    let mut told: Value = serde_json::from_str(&told).unwrap();
    for answer in told["answers"].as_array_mut().unwrap() {
        if answer["video"] == "b" {
            (answer["path"], answer["playable"]) = (Value::Null, false.into());
        }
    }

    runtime().block_on(async {
        let client = client(&["--root", home.join("in").as_str()]).await;
        let listed = answer(&client, "films", json!({})).await;
        assert_eq!(listed["indexes"], json!([home.join("in/index")]));
        assert_eq!(listed["films"], json!([home.join("in/films/a.mp4")]));

        let status = answer(&client, "index_status", json!({ "index": "index", "videos": true })).await;
        let paths: Vec<&Value> = status["videos"].as_array().unwrap().iter().map(|video| &video["path"]).collect();
        assert_eq!(paths, [&json!(home.join("in/films/a.mp4")), &Value::Null]);

        let found = answer(&client, "search", json!({ "index": "index", "sentence": question, "least": 0 })).await;
        assert_eq!(found, told);
        let said = answer(&client, "search", json!({ "index": "index", "sentence": "said: \"thank you\"" })).await;
        assert_eq!(said["answers"][0]["video"], "a");
        assert!(said["answers"][0]["because"][0]["text"].as_str().unwrap().contains("thank you"), "{said:#}");

        let one = json!({ "film": "films/a.mp4", "sentence": question, "encoder": "run", "fresh": true, "least": 0 });
        let one = answer(&client, "find", one).await;
        assert!(!one["answers"].as_array().unwrap().is_empty(), "{one:#}");
        assert_eq!(one["answers"][0]["path"], json!(home.join("in/films/a.mp4")));
        client.cancel().await.unwrap();
    });
}

#[test]
fn predictions_are_scored_as_by_hand() {
    let folder = cuemark_testkit::fixture("cli").canonicalize_utf8().unwrap();
    runtime().block_on(async {
        let client = client(&["--root", folder.as_str()]).await;
        let arguments = json!({
            "truth": { "path": "truth.jsonl" }, "predictions": { "path": "a.jsonl" },
            "scoring": { "metrics": "R@1,IoU=0.5,mIoU" },
        });
        let scored = answer(&client, "eval", arguments.clone()).await;
        // By hand: the overlaps of the first answers are 1, 0.5, 0 and none.
        assert_eq!(scored["metrics"]["R@1,IoU=0.5"], 0.5);
        assert_eq!(scored["metrics"]["mIoU"], 1.5 / 4.0);
        let mut wrong = arguments.clone();
        wrong["scoring"]["metrics"] = json!("R@1,IoUU=0.5");
        assert!(refusal(&client, "eval", wrong).await.contains("hint:"));
        for (field, value) in [("per_query", json!("x.jsonl")), ("force", json!(true)), ("sead", json!(1))] {
            let mut wrong = arguments.clone();
            wrong[field] = value;
            assert!(refusal(&client, "eval", wrong).await.contains(field), "{field}");
        }
        // Standard input is the protocol's: `-` is a name like any other.
        let mut piped = arguments;
        piped["predictions"]["path"] = json!("-");
        assert!(refusal(&client, "eval", piped).await.contains("not in the allowed folders"));
        client.cancel().await.unwrap();
    });
}

#[test]
fn tools_describe_themselves_by_the_fields_of_the_requests() {
    let home = Home::new();
    runtime().block_on(async {
        let client = client(&["--root", home.allowed().as_str()]).await;
        let told = client.peer_info().unwrap();
        assert!(told.instructions.as_ref().unwrap().contains(home.allowed().as_str()));
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["films", "search", "find", "clip", "index_status", "eval"]);
        for tool in &tools {
            let schema = tool.schema_as_json_value();
            assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
            assert!(schema["properties"].get("device").is_none() && schema["properties"].get("force").is_none());
            let writes = tool.annotations.as_ref().unwrap().read_only_hint == Some(false);
            assert_eq!(writes, tool.name == "clip");
        }
        let search = tools[1].schema_as_json_value();
        assert_eq!(search["required"], json!(["index"]));
        assert!(search["properties"]["within"]["description"].as_str().unwrap().contains("START-END"));
        let unknown = client.call_tool(CallToolRequestParams::new("delete")).await.unwrap_err();
        assert!(unknown.to_string().contains("there is no such tool"), "{unknown}");
        client.cancel().await.unwrap();
    });
}

#[test]
fn nothing_outside_the_folders_is_read_or_written_whatever_the_path_looks_like() {
    let home = Home::new();
    let (allowed, outside) = (home.allowed(), home.path.join("outside"));
    symlink(outside.join("film.mp4"), allowed.join("link.mp4")).unwrap();
    symlink(&outside, allowed.join("folder")).unwrap();
    std::fs::copy(allowed.join("film.mp4"), allowed.join("said.mp4")).unwrap();
    std::fs::write(outside.join("secret.srt"), "1\n00:00:01,000 --> 00:00:02,500\nthe key is 1234\n").unwrap();
    symlink(outside.join("secret.srt"), allowed.join("said.srt")).unwrap();
    runtime().block_on(async {
        let client = client(&["--root", allowed.as_str(), "--allow-write"]).await;
        let beside = outside.join("film.mp4");
        let paths = ["../outside/film.mp4", beside.as_str(), "link.mp4", "folder/film.mp4", "no.mp4", "", "a\0b"];
        for path in paths {
            let cut = json!({ "film": path, "start": 0, "end": 1 });
            assert!(refusal(&client, "clip", cut).await.contains("not in the allowed folders"), "{path}");
            let find = json!({ "film": path, "sentence": "a ball" });
            assert!(refusal(&client, "find", find).await.contains("not in the allowed folders"), "{path}");
            let score = json!({ "truth": { "path": path }, "predictions": { "path": "film.mp4" } });
            assert!(refusal(&client, "eval", score).await.contains("not in the allowed folders"), "{path}");
            let search = json!({ "index": path, "sentence": "a ball" });
            refusal(&client, "search", search).await;
        }
        let subtitles = json!({ "film": "said.mp4", "sentence": "said: \"the key\"" });
        assert!(refusal(&client, "find", subtitles).await.contains("not in the allowed folders"));
        for encoder in ["../outside", "clip:../outside", "concepts:/etc", "folder"] {
            let run = json!({ "film": "film.mp4", "sentence": "a ball", "encoder": encoder });
            assert!(refusal(&client, "find", run).await.contains("`encoder`"), "{encoder}");
        }
        for index in ["milvus://127.0.0.1:1/films", "../outside", "file:/", "folder"] {
            let said = refusal(&client, "index_status", json!({ "index": index })).await;
            assert!(said.contains("allowed folders"), "{index}: {said}");
        }
        for folder in ["..", "folder", "/"] {
            refusal(&client, "films", json!({ "folders": [folder] })).await;
        }
        for out in ["../new.mp4", "folder/new.mp4", "film.mp4", "link.mp4", "new.sh", "no/new.mp4", "/tmp/x/new.mp4"] {
            refusal(&client, "clip", json!({ "film": "film.mp4", "start": 0, "end": 1, "out": out })).await;
        }
        assert_eq!(outside.read_dir_utf8().unwrap().count(), 2);
        let cut = json!({ "film": "film.mp4", "start": 1, "end": 2.5, "out": "new.mp4" });
        let cut = answer(&client, "clip", cut).await;
        assert_eq!(cut["clip"], json!(allowed.join("new.mp4")));
        assert!(allowed.join("new.mp4").is_file());
        client.cancel().await.unwrap();
    });
}

#[test]
fn without_leave_to_write_a_clip_lies_in_a_folder_that_goes_with_the_server() {
    let home = Home::new();
    let mut raw = Raw::start(&["--root", home.allowed().as_str()], None);
    raw.greet();
    let refused = raw.answer("clip", &json!({ "film": "film.mp4", "start": 0, "end": 1, "out": "new.mp4" }));
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("--allow-write"), "{refused}");
    let cut = raw.answer("clip", &json!({ "film": "film.mp4", "start": 4, "end": 99 }))["structuredContent"].clone();
    // The film has six seconds.
    assert_eq!((&cut["start"], &cut["end"]), (&json!(4.0), &json!(6.0)));
    let clip = Utf8PathBuf::from(cut["clip"].as_str().unwrap());
    assert_eq!(clip.metadata().unwrap().len(), cut["bytes"].as_u64().unwrap());
    assert!(clip.parent().unwrap().metadata().unwrap().permissions().mode().trailing_zeros() >= 6, "others may look");
    for (start, end) in [(7, 8), (2, 2), (3, 1), (0, 601)] {
        let refused = raw.answer("clip", &json!({ "film": "film.mp4", "start": start, "end": end }));
        assert_eq!(refused["isError"], true, "{refused}");
    }
    drop(raw.child.stdin.take());
    assert!(raw.child.wait().unwrap().success());
    assert_eq!(home.allowed().read_dir_utf8().unwrap().count(), 1);
    assert!(!clip.exists());
}

#[test]
fn inputs_that_are_too_large_are_refused_by_name_and_the_server_goes_on() {
    let home = Home::new();
    runtime().block_on(async {
        let client = client(&["--root", home.allowed().as_str()]).await;
        let long = "word ".repeat(100_000);
        let said = refusal(&client, "find", json!({ "film": "film.mp4", "sentence": long })).await;
        assert!(said.contains("`sentence`") && said.len() < 1000, "{said}");
        let said = refusal(&client, "find", json!({ "film": long, "sentence": "a ball" })).await;
        assert!(said.len() < 2000, "{said}");
        for limit in [json!(51), json!(1e300), json!(-1), json!("many")] {
            let said = refusal(&client, "find", json!({ "film": "film.mp4", "sentence": "a", "limit": limit })).await;
            assert!(said.contains("`limit`"), "{said}");
        }
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        refusal(&client, "films", json!({ "folders": deep })).await;
        answer(&client, "films", json!({})).await;
        client.cancel().await.unwrap();
    });
}

/// The program with plain pipes, for what no client would say.
struct Raw {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Raw {
    fn start(arguments: &[&str], path: Option<&str>) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("mcp").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    /// The next message; everything on standard output must be one.
    fn hear(&mut self) -> Value {
        let message: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    fn greet(&mut self) {
        let client = json!({ "name": "test", "version": "0" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        self.say(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string());
        assert_eq!(self.hear()["result"]["serverInfo"]["name"], "cuemark");
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn call(&mut self, id: usize, tool: &str, arguments: &Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    }
}

impl Raw {
    fn answer(&mut self, tool: &str, arguments: &Value) -> Value {
        self.call(9, tool, arguments);
        self.hear()["result"].clone()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn lines_that_are_no_messages_are_passed_over_and_standard_output_stays_clean() {
    let home = Home::new();
    let mut raw = Raw::start(&["--root", home.allowed().as_str()], None);
    for line in ["", "{", "not json at all", "\u{0}\u{1}", "[[[[[[", &"[".repeat(100_000)] {
        raw.say(line);
    }
    raw.greet();
    for line in ["}", "\"", "{\"jsonrpc\":\"2.0\",\"id\":7,", &"x".repeat(3 << 20)] {
        raw.say(line);
    }
    // Longer than any message may be, and well formed: left out, and what follows is heard.
    raw.call(1, "films", &json!({ "folders": ["y".repeat(2 << 20)] }));
    raw.call(2, "films", &json!({}));
    let heard = raw.hear();
    assert_eq!(heard["id"], 2, "{heard}");
    assert_eq!(heard["result"]["structuredContent"]["films"][0], json!(home.allowed().join("film.mp4")));
    drop(raw.child.stdin.take());
    assert!(raw.lines.next().is_none());
    assert!(raw.child.wait().unwrap().success());
}

/// A folder with an `ffmpeg` that writes its number down and then does nothing for ten minutes, and the real `ffprobe`.
fn slow_ffmpeg(home: &Home) -> (String, Utf8PathBuf) {
    let (programs, number) = (home.path.join("programs"), home.path.join("number"));
    std::fs::create_dir(&programs).unwrap();
    let script = format!("#!/bin/sh\necho $$ > {number}.new && mv {number}.new {number}\nexec sleep 600\n");
    std::fs::write(programs.join("ffmpeg"), script).unwrap();
    std::fs::set_permissions(programs.join("ffmpeg"), std::fs::Permissions::from_mode(0o755)).unwrap();
    (format!("{programs}:{}", std::env::var("PATH").unwrap()), number)
}

fn is_running(number: &Utf8Path) -> bool {
    let process = std::fs::read_to_string(number).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

#[test]
fn a_client_that_hangs_up_ends_the_server_and_the_program_that_it_started() {
    let home = Home::new();
    let (path, number) = slow_ffmpeg(&home);
    let mut raw = Raw::start(&["--root", home.allowed().as_str()], Some(&path));
    raw.greet();
    raw.call(1, "clip", &json!({ "film": "film.mp4", "start": 0, "end": 1 }));
    wait_until("ffmpeg runs", || number.exists());
    assert!(is_running(&number));
    drop(raw.child.stdin.take());
    wait_until("the server has ended", || raw.child.try_wait().unwrap().is_some());
    assert!(!is_running(&number));
}

#[test]
fn a_call_that_is_called_off_stops_its_work_and_the_next_is_answered() {
    let home = Home::new();
    let (path, number) = slow_ffmpeg(&home);
    let mut raw = Raw::start(&["--root", home.allowed().as_str()], Some(&path));
    raw.greet();
    raw.call(1, "clip", &json!({ "film": "film.mp4", "start": 0, "end": 1 }));
    wait_until("ffmpeg runs", || number.exists());
    raw.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}"#);
    wait_until("ffmpeg has ended", || !is_running(&number));
    raw.call(2, "films", &json!({}));
    assert_eq!(raw.hear()["id"], 2);
}

#[test]
fn a_call_that_takes_too_long_is_told_so_and_its_work_ends() {
    let home = Home::new();
    let (path, number) = slow_ffmpeg(&home);
    let mut raw = Raw::start(&["--root", home.allowed().as_str(), "--time", "3"], Some(&path));
    raw.greet();
    raw.call(1, "clip", &json!({ "film": "film.mp4", "start": 0, "end": 1 }));
    let heard = raw.hear();
    let said = heard["result"]["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("longer than 3 s") && said.contains("hint:"), "{said}");
    // On a machine that is busy elsewhere the time may be over before it was started.
    wait_until("ffmpeg has ended", || !number.exists() || !is_running(&number));
}

#[test]
fn a_folder_that_is_not_there_is_no_folder_to_allow() {
    let output =
        Command::new(PROGRAM).args(["mcp", "--root", "/no/such/folder"]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("/no/such/folder") && said.contains("hint: ") && output.stdout.is_empty(), "{said}");
}
