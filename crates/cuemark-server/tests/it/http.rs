//! The server over real sockets: what it answers.

use std::net::SocketAddr;
use std::sync::Arc;

use camino::Utf8PathBuf;
use cuemark_core::{Advise as _, Dialect};
use cuemark_formats::Overwrite;
use cuemark_search::{EngineUrl, Index};
use cuemark_server::{Server, ServerError, ServerOptions};

use crate::kit::{Words, running};

#[test]
fn a_question_gets_ranked_moments_with_spans_and_probabilities() {
    let server = running(None);
    let reply = server.get("/api/v1/search?q=red%20ball%20spins");
    assert_eq!(reply.status, 200);
    let best = &reply.json()["answers"][0];
    assert_eq!(
        (best["video"].as_str(), best["start"].as_f64(), best["end"].as_f64()),
        (Some("one"), Some(0.0), Some(4.0))
    );
    assert!(best["probability"].as_f64().is_some_and(|p| (0.0..=1.0).contains(&p)));
    let filtered = server.get("/api/v1/search?q=red%20ball&tag=tag-two").json();
    assert!(filtered["answers"].as_array().unwrap().iter().all(|answer| answer["video"] == "two"));
    let like = server.get("/api/v1/moments/like?video=one&start=10&end=14").json();
    assert_eq!((like["answers"][0]["video"].as_str(), like["answers"][0]["start"].as_f64()), (Some("two"), Some(12.0)));
    assert_eq!(server.get("/api/v1/videos/one/strip?q=red").json()["strip"].as_array().map(Vec::len), Some(64));
}

#[test]
fn videos_are_served_whole_and_in_ranges() {
    let server = running(None);
    let bytes: Vec<u8> = (0..1000).map(|n| (n % 251) as u8).collect();
    let whole = server.get("/api/v1/videos/one/media");
    assert_eq!((whole.status, &whole.body), (200, &bytes));
    let part = server.get_with("/api/v1/videos/one/media", "Range: bytes=100-299\r\n");
    assert_eq!((part.status, &part.body[..]), (206, &bytes[100..300]));
    assert!(part.head.contains("content-range: bytes 100-299/1000"), "{}", part.head);
    let last = server.get_with("/api/v1/videos/one/media", "Range: bytes=-10\r\n");
    assert_eq!((last.status, &last.body[..]), (206, &bytes[990..]));
    for range in ["bytes=2000-3000", "bytes=9-3", "bytes=99999999999999999999-"] {
        let refused = server.get_with("/api/v1/videos/one/media", &format!("Range: {range}\r\n"));
        assert!(refused.is_problem(416) || refused.body == bytes, "{range}: {}", refused.status);
    }
    assert_eq!(server.get_with("/api/v1/videos/one/media", "Range: bytes=2000-3000\r\n").status, 416);
    assert!(server.get("/api/v1/videos/two/media").is_problem(404));
}

#[test]
fn nothing_outside_the_index_can_be_read() {
    let server = running(None);
    let secret = server.folder.join("secret.txt");
    for path in [
        "/api/v1/videos/../secret.txt/media".to_owned(),
        "/api/v1/videos/..%2Fsecret.txt/media".to_owned(),
        "/api/v1/videos/%2e%2e%2f%2e%2e%2fsecret.txt/media".to_owned(),
        format!("/api/v1/videos/{}/media", secret.as_str().replace('/', "%2F")),
        "/api/v1/videos/one%00/media".to_owned(),
        "/api/v1/videos/one/../../secret.txt".to_owned(),
        "/../../../../etc/passwd".to_owned(),
        "/app.js/../../secret.txt".to_owned(),
        "/api/v1/videos/%ff%fe/media".to_owned(),
    ] {
        let reply = server.get(&path);
        assert!((400..500).contains(&reply.status), "{path}: {}", reply.status);
        let text = String::from_utf8_lossy(&reply.body);
        assert!(!text.contains("nobody's business"), "{path}: {text}");
        // A name that is not there may be repeated, but nothing of the server's own is told.
        assert!(!text.contains(server.folder.as_str()) || path.contains("%2Fsecret.txt"), "{path}: {text}");
    }
    for path in [secret.as_str(), "/etc", "videos/../../..", server.folder.join("videos/../secret.txt").as_str()] {
        let body = serde_json::json!({ "paths": [path] }).to_string();
        assert!(server.post("/api/v1/jobs", &body).is_problem(403), "{path}");
    }
}

#[test]
fn nonsense_gets_a_problem_and_the_server_lives_on() {
    let server = running(None);
    for (path, status) in [
        ("/api/v1/search", 400),
        ("/api/v1/search?q=", 400),
        ("/api/v1/search?q=ball&limit=0", 400),
        ("/api/v1/search?q=ball&limit=many", 400),
        ("/api/v1/search?q=ball&limit=101", 400),
        ("/api/v1/search?q=ball&within=9-3", 400),
        ("/api/v1/search?q=ball&within=NaN-inf", 400),
        ("/api/v1/search?q=ball&least=NaN", 400),
        ("/api/v1/search?q=ball&colour=red", 400),
        ("/api/v1/search?q=ball&video=nobody", 404),
        ("/api/v1/moments/like?video=nobody&start=0&end=1", 404),
        ("/api/v1/moments/like?video=one&start=5&end=1", 400),
        ("/api/v1/videos/nobody", 404),
        ("/api/v1/videos/nobody/thumbnail", 404),
        ("/api/v1/videos/one/thumbnail?width=99999999", 400),
        ("/api/v1/videos/one/thumbnail?at=-1", 400),
        ("/api/v1/jobs/7", 404),
        ("/api/v1/jobs/x/events", 404),
        ("/api/v1/nothing", 404),
        ("/nothing", 404),
    ] {
        let reply = server.get(path);
        assert!(reply.is_problem(status), "{path}: {} {}", reply.status, String::from_utf8_lossy(&reply.body));
    }
    assert!(server.get(&format!("/api/v1/search?q={}", "a".repeat(2000))).is_problem(400));
    assert!((400..500).contains(&server.get(&format!("/api/v1/search?q={}", "a".repeat(60_000))).status));
    for body in ["", "{", "[]", "{\"paths\":5}", "{\"paths\":[]}", "{\"paths\":[\"x\"],\"more\":1}", "\u{0}"] {
        let reply = server.post("/api/v1/jobs", body);
        assert!((400..500).contains(&reply.status), "{body}: {}", reply.status);
    }
    assert_eq!(server.post("/api/v1/jobs", &format!("{{\"paths\":[\"{}\"]}}", "x".repeat(200_000))).status, 413);
    for raw in [
        "\r\n\r\n",
        "GET\r\n\r\n",
        "BREW / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "\u{16}\u{3}\u{1}",
    ] {
        let status = server.send(raw).status;
        assert!(status == 0 || (400..500).contains(&status), "{raw:?}: {status}");
    }
    assert_eq!(server.get("/api/v1/health").status, 200);
}

#[test]
fn every_refusal_is_a_problem_of_the_right_type() {
    let server = running(None);
    let send = |line: &str, rest: &str| {
        server.send(&format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{rest}"))
    };
    let large = format!("Content-Type: application/json\r\nContent-Length: 200000\r\n\r\n{}", "x".repeat(200_000));
    let json = |body: &str| format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    for (line, rest, status, kind) in [
        ("PUT /api/v1/search", "\r\n", 405, "method-not-allowed"),
        ("BREW /", "\r\n", 405, "method-not-allowed"),
        ("DELETE /api/v1/jobs", "\r\n", 405, "method-not-allowed"),
        ("GET /nothing", "\r\n", 404, "not-found"),
        ("GET /api/v1/videos/%ff%fe", "\r\n", 400, "bad-request"),
        ("GET /api/v1/videos/%ff%fe/media", "\r\n", 400, "bad-request"),
        ("GET /api/v1/jobs/%ff", "\r\n", 400, "bad-request"),
        ("GET /api/v1/videos/one/media", "Range: bytes=2000-\r\n\r\n", 416, "range-not-satisfiable"),
        ("POST /api/v1/jobs", "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415, "unsupported-media-type"),
        ("POST /api/v1/jobs", json("{\"paths\":5}").as_str(), 422, "unprocessable"),
        ("POST /api/v1/jobs", json("{").as_str(), 400, "bad-request"),
        ("POST /api/v1/jobs", large.as_str(), 413, "too-large"),
    ] {
        let reply = send(line, rest);
        assert!(reply.is_problem(status), "{line}: {} {}", reply.head, String::from_utf8_lossy(&reply.body));
        assert_eq!(reply.json()["type"], kind, "{line}");
    }
    assert!(send("PUT /api/v1/search", "\r\n").head.contains("allow: get,head"));
    let outside = send("GET /api/v1/videos/one/media", "Range: bytes=2000-\r\n\r\n");
    assert!(outside.head.contains("content-range: bytes */1000"), "{}", outside.head);
}

#[test]
fn advice_comes_in_the_words_of_http_with_its_settings_as_data() {
    let server = running(None);
    let refused = server.post("/api/v1/jobs", "{\"paths\":[\"/etc\"]}");
    assert!(refused.is_problem(403));
    let problem = refused.json();
    assert!(problem["hint"].as_str().is_some_and(|hint| !hint.contains("--")), "{problem}");
    assert_eq!(problem["settings"], serde_json::json!({ "allow_add": null }));
}

#[test]
fn a_film_that_was_fetched_already_is_not_sent_again() {
    let server = running(None);
    let head = server.get("/api/v1/videos/one/media").head;
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let again = server.get_with("/api/v1/videos/one/media", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((again.status, again.body.len()), (304, 0));
    let range = |version: &str| {
        let part = format!("Range: bytes=0-9\r\nIf-Range: {version}\r\n");
        server.get_with("/api/v1/videos/one/media", &part).body.len()
    };
    assert_eq!((range(&tag), range("\"another\"")), (10, 1000));
    let head = server.send("HEAD /api/v1/videos/one/media HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(head.status == 200 && head.head.contains("content-length: 1000") && head.body.is_empty());
}

#[test]
fn a_video_that_cannot_be_decoded_gives_no_picture_and_no_path() {
    let server = running(None);
    let reply = server.get("/api/v1/videos/one/thumbnail");
    assert!(reply.is_problem(422), "{}", reply.status);
    assert!(!String::from_utf8_lossy(&reply.body).contains(server.folder.as_str()));
}

#[test]
fn a_token_is_asked_for_everywhere_but_at_the_page_and_health() {
    let server = running(Some("right"));
    for path in
        ["/api/v1/search?q=ball", "/api/v1/videos", "/api/v1/videos/one/media", "/metrics", "/api/v1/openapi.json"]
    {
        assert!(server.get(path).is_problem(401), "{path}");
        assert!(server.get_with(path, "Authorization: Bearer wrong\r\n").is_problem(401), "{path}");
        assert_eq!(server.get_with(path, "Authorization: Bearer right\r\n").status, 200, "{path}");
        assert_eq!(server.get_with(path, "Cookie: a=b; cuemark_token=right\r\n").status, 200, "{path}");
    }
    for path in ["/", "/app.js", "/app.css", "/page/api.js", "/page/player.css", "/api/v1/health"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
}

#[test]
fn another_hosts_name_is_refused_without_a_token() {
    let server = running(None);
    let named =
        |host: &str| server.send(&format!("GET /api/v1/videos HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    assert!(named("evil.example").is_problem(403));
    assert_eq!(named("127.0.0.1:7878").status, 200);
}

#[test]
fn the_page_asks_nobody_else_for_anything() {
    let server = running(None);
    let page = String::from_utf8(server.get("/app.js").body).unwrap();
    let modules = page.split("\"./page/").skip(1).filter_map(|part| part.split('"').next());
    let modules: Vec<String> = modules.map(|name| format!("/page/{name}")).collect();
    assert!(modules.len() >= 7, "{modules:?}");
    let fixed = ["/", "/app.css", "/app.js", "/icon.svg", "/page/player.css"].map(str::to_owned);
    for path in fixed.iter().chain(&modules) {
        let reply = server.get(path);
        assert_eq!(reply.status, 200, "{path}");
        assert!(reply.head.contains("content-security-policy: default-src 'none'"), "{path}");
        let text = String::from_utf8(reply.body).unwrap().replace("http://www.w3.org/2000/svg", "");
        assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("//cdn"), "{path}");
    }
}

#[test]
fn the_description_lists_every_path_and_metrics_count() {
    let server = running(None);
    let description = server.get("/api/v1/openapi.json").json();
    let paths: Vec<&String> = description["paths"].as_object().unwrap().keys().collect();
    for path in ["/api/v1/search", "/api/v1/videos/{id}/media", "/api/v1/jobs/{id}/events", "/api/v1/health"] {
        assert!(paths.iter().any(|known| *known == path), "{path} of {paths:?}");
    }
    server.get("/api/v1/search?q=ball");
    let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
    assert!(
        metrics.contains("cuemark_search_seconds_count 1\n") && metrics.contains("cuemark_videos 2\n"),
        "{metrics}"
    );
}

#[test]
fn a_job_adds_what_it_may_and_tells_how_far_it_is() {
    let server = running(None);
    std::fs::write(server.folder.join("videos/new.mp4"), "film").unwrap();
    let body = serde_json::json!({ "paths": [server.folder.join("videos")] }).to_string();
    let started = server.post("/api/v1/jobs", &body);
    assert_eq!(started.status, 202);
    let id = started.json()["id"].as_u64().unwrap();
    // The stream ends when the job does.
    let events = String::from_utf8(server.get(&format!("/api/v1/jobs/{id}/events")).body).unwrap();
    assert!(events.contains("event: job") && events.contains("\"phase\":\"finished\""), "{events}");
    // One is there already. The toy encoder knows no file, so the new one is listed as failed.
    let state = server.get(&format!("/api/v1/jobs/{id}")).json();
    assert_eq!((state["done"].as_u64(), state["unchanged"].as_u64()), (Some(2), Some(1)));
    assert_eq!(state["failed"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_address_that_others_can_reach_wants_a_token() {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    let index = Arc::new(Index::create(&EngineUrl::File(folder), Box::new(Words), Overwrite::Never).unwrap());
    let options = ServerOptions { listen: SocketAddr::from(([0, 0, 0, 0], 0)), ..ServerOptions::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(Server::bind(index, options)).err().unwrap();
    assert!(matches!(refused, ServerError::Open { .. }));
    assert!(refused.advice().unwrap().render(Dialect::Terminal).contains("CUEMARK_TOKEN"));
}
