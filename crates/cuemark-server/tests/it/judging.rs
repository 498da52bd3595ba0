//! What the page needs beside answers: judgements that are kept, what the index is, clips, folders to add from.

use std::io::Read as _;
use std::process::Command;

use camino::Utf8Path;
use cuemark_server::Keeping;
use serde_json::{Value, json};

use crate::kit::{Reply, Running, Setup, running, running_with};

fn said(verdict: &str) -> Value {
    json!({ "query": "red ball", "video": "one", "start": 0.0, "end": 4.0, "verdict": verdict })
}

fn judge(server: &Running, body: &Value) -> Reply {
    server.post("/api/v1/judged", &body.to_string())
}

fn judged(server: &Running, query: &str) -> Value {
    server.get(&format!("/api/v1/judged?q={}", query.replace(' ', "%20"))).json()
}

#[test]
fn the_last_word_on_an_answer_is_kept_in_the_folder_of_the_index_and_can_be_taken_back() {
    let server = running(None);
    assert_eq!(judged(&server, "red ball"), json!({ "judged": [], "total": 0, "damaged": 0 }));
    assert_eq!(judge(&server, &said("wrong")).status, 201);
    let mut right = said("right");
    right["span"] = json!([0.5, 5.0]);
    let kept = judge(&server, &right);
    assert_eq!((kept.status, &kept.json()["span"]), (201, &json!([0.5, 5.0])));
    let list = judged(&server, "Red  BALL");
    assert_eq!(
        list["judged"],
        json!([{ "video": "one", "start": 0.0, "end": 4.0, "verdict": "right", "span": [0.5, 5.0] }])
    );
    let lines = std::fs::read_to_string(server.folder.join("index/judged.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert_eq!(judge(&server, &said("none")).status, 201);
    assert_eq!(judged(&server, "red ball")["judged"], json!([]));
}

#[test]
fn judgements_that_cannot_be_are_refused_and_nothing_is_written() {
    let server = running(None);
    let with = |field: &str, value: Value| {
        let mut body = said("right");
        body[field] = value;
        body
    };
    for (body, status) in [
        (with("video", json!("nobody")), 404),
        (with("query", json!("  ")), 400),
        (with("query", json!("x".repeat(1001))), 400),
        (with("end", json!(-1.0)), 400),
        (with("end", json!(0.0)), 400),
        (with("end", json!(1e9)), 400),
        (with("span", json!([3.0, 1.0])), 400),
        (with("span", json!([0.0, 99.0])), 400),
        (with("span", json!([0.0])), 422),
        (with("verdict", json!("perhaps")), 422),
        (with("more", json!(1)), 422),
        (
            json!({ "query": "a", "video": "one", "start": 0.0, "end": 4.0, "verdict": "wrong", "span": [0.0, 1.0] }),
            400,
        ),
    ] {
        let reply = judge(&server, &body);
        assert!(reply.is_problem(status), "{body}: {} {}", reply.status, String::from_utf8_lossy(&reply.body));
    }
    let plain = "POST /api/v1/judged HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}";
    assert!(server.send(plain).is_problem(415));
    let large = json!({ "query": "x".repeat(100_000) });
    assert!(judge(&server, &large).is_problem(413));
    assert!(!server.folder.join("index/judged.jsonl").exists());
}

#[test]
fn judging_stands_behind_the_same_doors_as_every_other_write() {
    let body = said("right").to_string();
    let post = |server: &Running, headers: &str| {
        let length = body.len();
        server.send(&format!(
            "POST /api/v1/judged HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        ))
    };
    let locked = running(Some("right"));
    assert!(post(&locked, "").is_problem(401));
    assert_eq!(post(&locked, "Authorization: Bearer right\r\n").status, 201);
    for path in ["/api/v1/about", "/api/v1/offers", "/api/v1/judged?q=a", "/api/v1/videos/one/clip?start=0&end=1"] {
        assert!(locked.get(path).is_problem(401), "{path}");
    }
    let open = running(None);
    for headers in ["Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: none\r\n", "Origin: https://evil.example\r\n"] {
        assert!(post(&open, headers).is_problem(403), "{headers}");
    }
    assert_eq!(post(&open, "Sec-Fetch-Site: same-origin\r\n").status, 201);
    let mute = running_with(Setup { keeping: Keeping::Nothing, ..Setup::default() });
    assert!(post(&mute, "").is_problem(403));
    assert_eq!(mute.get("/api/v1/about").json()["judging"], false);
    assert!(!mute.folder.join("index/judged.jsonl").exists());
}

#[test]
fn a_damaged_file_is_read_as_far_as_it_goes_and_a_full_one_says_so() {
    let server = running(None);
    judge(&server, &said("right"));
    let file = server.folder.join("index/judged.jsonl");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, [b"\xff\xfe nonsense\n".as_slice(), &whole, b"{\"qid\":\"cut o"].concat()).unwrap();
    let list = judged(&server, "red ball");
    assert_eq!((list["judged"].as_array().unwrap().len(), &list["damaged"]), (1, &json!(2)));
    assert_eq!(judge(&server, &said("wrong")).status, 201);
    assert_eq!(judged(&server, "red ball")["damaged"], 1, "what was cut off is gone, what is damaged stays");
    // Eight mebibytes are the most.
    std::fs::write(&file, vec![b'\n'; 8 << 20]).unwrap();
    let full = judge(&server, &said("wrong"));
    assert!(full.is_problem(507) && full.json()["type"] == "full", "{}", full.status);
    assert!(!String::from_utf8_lossy(&full.body).contains(server.folder.as_str()));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let odd = judge(&server, &said("wrong"));
    assert!(odd.is_problem(500) && !String::from_utf8_lossy(&odd.body).contains(server.folder.as_str()));
    assert_eq!(server.get("/api/v1/search?q=ball").status, 200, "answers do not hang on it");
}

#[test]
fn a_page_learns_what_the_index_is_and_no_path_of_the_disk() {
    let server = running(None);
    let reply = server.get("/api/v1/about");
    let about = reply.json();
    assert_eq!((&about["videos"], &about["calibrated"], &about["judging"]), (&json!(2), &json!(false), &json!(true)));
    assert_eq!(about["tags"], json!([{ "tag": "tag-one", "videos": 1 }, { "tag": "tag-two", "videos": 1 }]));
    assert_eq!(about["folders"], json!(["videos"]));
    assert!(!String::from_utf8_lossy(&reply.body).contains(server.folder.as_str()));
    assert_eq!(server.get("/api/v1/offers").json(), json!({ "concepts": [], "asked": [] }));
    judge(&server, &said("right"));
    let mut other = said("wrong");
    other["query"] = json!("blue box");
    judge(&server, &other);
    assert_eq!(server.get("/api/v1/offers").json()["asked"], json!(["red ball"]), "what was found, and only that");
}

#[test]
fn folders_are_added_from_by_name_and_nothing_is_reached_through_them() {
    let server = running(None);
    std::fs::create_dir(server.folder.join("videos/deep")).unwrap();
    let add = |path: &str| server.post("/api/v1/jobs", &json!({ "paths": [path] }).to_string());
    for path in
        ["videos/..", "videos/../secret.txt", "videos/deep/../../secret.txt", "index", "videos/nothing", "./videos", ""]
    {
        assert!(add(path).is_problem(403), "{path}");
    }
    let begun = add("videos/deep");
    assert_eq!(begun.status, 202);
    let events = server.get(&format!("/api/v1/jobs/{}/events", begun.json()["id"]));
    assert!(String::from_utf8_lossy(&events.body).contains("\"phase\":\"finished\""));
}

#[test]
fn a_client_that_hangs_up_while_it_watches_a_job_ends_nothing_but_itself() {
    let server = running(None);
    for number in 0..12 {
        std::fs::write(server.folder.join(format!("videos/slow{number}.mp4")), "film").unwrap();
    }
    let begun = server.post("/api/v1/jobs", "{\"paths\":[\"videos\"]}").json();
    let path = format!("/api/v1/jobs/{}/events", begun["id"]);
    for _ in 0..5 {
        let mut watching = server.asked(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let mut some = [0; 200];
        assert!(watching.read(&mut some).unwrap() > 0);
    }
    let events = server.get(&path);
    let told = String::from_utf8_lossy(&events.body).into_owned();
    assert!(told.contains("\"phase\":\"finished\"") && told.contains("\"done\":13"), "{told}");
}

/// Three seconds of colour bars.
fn bars(path: &Utf8Path) {
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i", "testsrc=d=3:s=64x48:r=10", "-pix_fmt", "yuv420p"])
        .arg(path)
        .status();
    assert!(made.unwrap().success());
}

#[test]
fn a_stretch_of_a_film_is_a_file_of_its_own_and_nothing_is_left_behind() {
    let server = running_with(Setup { films: vec![("bars, and more", bars)], ..Setup::default() });
    let path = "/api/v1/videos/bars,%20and%20more/clip";
    let clip = server.get(&format!("{path}?start=0.5&end=1.5"));
    assert_eq!(clip.status, 200, "{}", String::from_utf8_lossy(&clip.body));
    assert!(clip.head.contains("content-type: video/mp4"), "{}", clip.head);
    assert!(clip.head.contains("attachment; filename=\"bars--and-more-0.5-1.5.mp4\""), "{}", clip.head);
    assert_eq!(&clip.body[4..8], b"ftyp");
    let file = server.folder.join("clip.mp4");
    std::fs::write(&file, &clip.body).unwrap();
    let asked = ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0"];
    let probed = Command::new("ffprobe").args(asked).arg(&file).output().unwrap();
    let seconds: f64 = String::from_utf8(probed.stdout).unwrap().trim().parse().unwrap();
    assert!((seconds - 1.0).abs() < 0.15, "{seconds} s");
    for (query, status) in [
        ("start=1&end=1", 400),
        ("start=2&end=1", 400),
        ("start=-1&end=1", 400),
        ("start=NaN&end=1", 400),
        ("start=0&end=121", 400),
        ("start=25&end=26", 400),
        ("start=1", 400),
    ] {
        assert!(server.get(&format!("{path}?{query}")).is_problem(status), "{query}");
    }
    assert!(server.get("/api/v1/videos/two/clip?start=0&end=1").is_problem(404), "no file");
    assert!(server.get("/api/v1/videos/nobody/clip?start=0&end=1").is_problem(404));
    let film = server.get("/api/v1/search?q=box&video=bars%5C,%20and%20more").json();
    assert_eq!(film["answers"][0]["video"], "bars, and more", "a comma of a name is no separator");
}
