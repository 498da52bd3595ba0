//! Queries rewritten by a language model behind HTTP: a small server that answers by rule, slowly, at length, with garbage, and not at
//! all.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use cuemark_core::{Progress, Query, Span, Truth, Video};
use cuemark_protocols::ranked::rewrite::{
    Asking, Endpoint, EndpointNames, KeptAnswers, NameRecogniser as _, PROMPT, RewriteFault, RewriteSettings, Rewrites,
    rewrite_by,
};
use cuemark_protocols::{ProtocolError, Result};
use cuemark_text::names::NameList;
use serde_json::{Value, json};

/// What the server says to a request: a status and a body; an empty body closes the door without a word.
type Rule = dyn Fn(&Value) -> (u16, String) + Send + Sync;

struct Server {
    url: String,
    /// Every request's body, in the order in which they came.
    heard: Arc<Mutex<Vec<Value>>>,
    /// Most requests that were open at a time.
    most_open: Arc<AtomicUsize>,
}

impl Server {
    fn new(rule: impl Fn(&Value) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (open, most_open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let rule: Arc<Rule> = Arc::new(rule);
        let (hears, most) = (Arc::clone(&heard), Arc::clone(&most_open));
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (rule, heard, open, most) =
                    (Arc::clone(&rule), Arc::clone(&hears), Arc::clone(&open), Arc::clone(&most));
                std::thread::spawn(move || {
                    most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    serve(stream, &*rule, &heard);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { url, heard, most_open }
    }

    fn endpoint(&self, timeout: Duration) -> Endpoint {
        Endpoint::new(&self.url, "small", Some("secret".to_owned()), timeout).unwrap()
    }

    fn heard(&self) -> Vec<Value> {
        self.heard.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, rule: &Rule, heard: &Mutex<Vec<Value>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut length, mut line, mut known) = (0, String::new(), false);
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        known |= lower.starts_with("authorization: bearer secret");
        line.clear();
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let request: Value = serde_json::from_slice(&body).unwrap();
    heard.lock().unwrap().push(request.clone());
    let (status, answer) = if known { rule(&request) } else { (401, "who are you?".to_owned()) };
    if answer.is_empty() {
        return;
    }
    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes()));
}

/// A chat completion that says `text`.
fn says(text: &str) -> (u16, String) {
    (200, json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] }).to_string())
}

fn messages(request: &Value) -> Vec<String> {
    request["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap().to_owned()).collect()
}

/// The sentence that a request is about: the prompt's last line.
fn asked(request: &Value) -> String {
    messages(request)[0].trim().rsplit_once("The sentence: ").unwrap().1.to_owned()
}

fn query(id: usize, text: &str) -> Truth {
    let query = Query { id: id.to_string().as_str().into(), text: text.to_owned() };
    Truth::single(query, Video::new("v", 30.0), [Span::new(1.0, 4.5).unwrap()])
}

fn queries(number: usize) -> Vec<Truth> {
    (0..number).map(|n| query(n, &format!("Blorp opens door number {n}"))).collect()
}

fn alike(originals: &[String], _: &[String]) -> Result<Vec<f32>> {
    Ok(vec![1.0; originals.len()])
}

fn run(endpoint: &Endpoint, queries: &[Truth], kept: &KeptAnswers, progress: &Progress) -> Result<Rewrites> {
    let names = NameList::new(["Blorp"]);
    let asking = Asking { rewriter: endpoint, prompt: PROMPT, parallel: 3, kept };
    rewrite_by(queries, &names, &alike, &RewriteSettings::default(), &asking, progress)
}

const SOON: Duration = Duration::from_secs(20);

#[test]
fn every_query_is_asked_and_asked_again_with_its_fault_named() {
    let server = Server::new(|request| {
        let sentence = asked(request);
        match messages(request).len() {
            // The first answer to every second query leaves the name in.
            1 if sentence.ends_with(['1', '3']) => says(&sentence),
            1 => says(&format!("\"{}\"", sentence.replace("Blorp", "A man"))),
            _ => says(&sentence.replace("Blorp", "Somebody")),
        }
    });
    let (queries, kept) = (queries(5), KeptAnswers::nowhere());
    let done = run(&server.endpoint(SOON), &queries, &kept, &Progress::new()).unwrap();
    let rewritten: Vec<&str> = done.accepted.iter().map(|rewrite| rewrite.rewritten.as_str()).collect();
    assert_eq!(rewritten[..2], ["A man opens door number 0", "Somebody opens door number 1"]);
    assert_eq!((done.accepted.len(), done.review.len()), (5, 0));
    let heard = server.heard();
    assert_eq!(heard.len(), 7, "five first questions and two more");
    for request in &heard {
        let again = messages(request).len() > 1;
        assert_eq!(request["temperature"], if again { 0.2 } else { 0.0 });
        assert_eq!(request["model"], "small");
        if again {
            let messages = messages(request);
            assert!(messages[1].starts_with("Blorp") && messages[2].contains("still names somebody"), "{messages:?}");
        }
    }
    let by: Vec<_> = done.accepted.iter().map(|rewrite| (rewrite.attempts, rewrite.temperature.unwrap())).collect();
    assert_eq!(by[..2], [(1, 0.0), (2, 0.2)]);
    let recorded = done.asked.unwrap();
    assert!(recorded.rewriter.starts_with("model small at http://") && recorded.names == "list", "{recorded:?}");
    assert!(server.most_open.load(Ordering::SeqCst) <= 3, "no more than asked for at a time");
}

#[test]
fn what_stays_wrong_goes_to_a_person_and_what_is_no_sentence_to_another_try() {
    for (rule, fault) in [
        (says("Blorp again"), RewriteFault::NameLeft),
        (says(&"word ".repeat(1_000)), RewriteFault::NoAnswer),
        (says("Sure! Here it is:\n\nA man opens a door."), RewriteFault::NoAnswer),
        (says("???"), RewriteFault::NoAnswer),
        ((200, "<html>garbage</html>".to_owned()), RewriteFault::NoAnswer),
        ((200, json!({ "choices": [] }).to_string()), RewriteFault::NoAnswer),
        // Two megabytes are read no further than one.
        ((200, " ".repeat(2 << 20)), RewriteFault::NoAnswer),
        // The door is shut without a word.
        ((200, String::new()), RewriteFault::NoAnswer),
    ] {
        let told = rule.1.chars().take(60).collect::<String>();
        let server = Server::new(move |_| rule.clone());
        let done = run(&server.endpoint(SOON), &queries(1), &KeptAnswers::nowhere(), &Progress::new()).unwrap();
        let queue = if fault == RewriteFault::NameLeft { &done.review } else { &done.retry };
        assert_eq!(queue.first().map(|rewrite| &rewrite.faults[..]), Some(&[fault][..]), "{told}");
    }
}

#[test]
fn a_slow_server_is_not_waited_for_and_given_up_after_a_few_silences() {
    let server = Server::new(|_| {
        std::thread::sleep(Duration::from_secs(5));
        says("A man opens a door")
    });
    let started = Instant::now();
    let endpoint = server.endpoint(Duration::from_millis(200));
    let done = run(&endpoint, &queries(60), &KeptAnswers::nowhere(), &Progress::new()).unwrap();
    assert_eq!(done.retry.len(), 60);
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert!(server.heard().len() <= 3 * 3 * 2, "three askers, three silences each, two attempts");
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    let asked = AtomicUsize::new(0);
    let server = Server::new(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => (429, "later".to_owned()),
        1 => (503, "later".to_owned()),
        _ => says("A man opens a door"),
    });
    let done = run(&server.endpoint(SOON), &queries(1), &KeptAnswers::nowhere(), &Progress::new()).unwrap();
    assert_eq!((done.accepted.len(), server.heard().len()), (1, 3));
}

#[test]
fn a_wrong_key_an_unknown_model_and_no_address_are_errors_that_say_so() {
    let server = Server::new(|_| (404, "no such model".to_owned()));
    let stranger = Endpoint::new(&server.url, "small", None, SOON).unwrap();
    let kept = KeptAnswers::nowhere();
    let error = run(&stranger, &queries(2), &kept, &Progress::new()).unwrap_err().to_string();
    assert!(error.contains("answers 401: who are you?"), "{error}");
    let error = run(&server.endpoint(SOON), &queries(2), &kept, &Progress::new()).unwrap_err().to_string();
    assert!(error.contains("answers 404: no such model"), "{error}");
    assert!(Endpoint::new("ftp://nowhere", "small", None, SOON).is_err());
    assert!(!format!("{:?}", server.endpoint(SOON)).contains("secret"));
}

#[test]
fn a_stopped_run_goes_on_where_it_was_and_asks_nothing_twice() {
    let server = Server::new(|request| says(&asked(request).replace("Blorp", "A man")));
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("out/answers.jsonl")).unwrap();
    let (endpoint, queries) = (server.endpoint(SOON), queries(20));
    let progress = Progress::new();
    progress.stop_at(7);
    let stopped = run(&endpoint, &queries, &KeptAnswers::open(&path).unwrap(), &progress);
    assert!(matches!(stopped.unwrap_err(), ProtocolError::Stopped(_)));
    let before = server.heard().len();
    assert!((7..20).contains(&before), "{before}");

    // The plug is pulled in the middle of a line.
    let mut text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), before);
    text.truncate(text.len() - 10);
    std::fs::write(&path, &text).unwrap();
    let kept = KeptAnswers::open(&path).unwrap();
    assert_eq!((kept.len(), kept.damaged()), (before - 1, 1));
    let done = run(&endpoint, &queries, &kept, &Progress::new()).unwrap();
    assert_eq!(done.accepted.len(), 20);
    assert_eq!(server.heard().len(), before + (20 - (before - 1)), "what was kept is not asked again");

    let kept = KeptAnswers::open(&path).unwrap();
    assert_eq!((kept.len(), kept.damaged()), (20, 1), "the new lines are not glued to the cut one");
    let heard = server.heard().len();
    assert_eq!(run(&endpoint, &queries, &kept, &Progress::new()).unwrap().accepted.len(), 20);
    assert_eq!(server.heard().len(), heard);
    // Another model's answers are its own.
    let other = Endpoint::new(&server.url, "large", Some("secret".to_owned()), SOON).unwrap();
    run(&other, &queries, &kept, &Progress::new()).unwrap();
    assert_eq!(server.heard().len(), heard + 20);
}

#[test]
fn a_model_can_look_for_names_too() {
    let server = Server::new(|request| {
        let sentence = asked(request);
        says(if sentence.contains("Blorp") { r#"{"names": ["Blorp"]}"# } else { r#"{"names": []}"# })
    });
    let endpoint = server.endpoint(SOON);
    let names = EndpointNames(&endpoint);
    assert_eq!(names.highest("Blorp sighs").unwrap(), Some(1.0));
    assert_eq!(names.highest("a man sighs").unwrap(), Some(0.0));
}

#[test]
fn a_prompt_without_a_place_for_the_sentence_is_refused_before_anybody_is_asked() {
    let server = Server::new(|_| says("A man"));
    let (endpoint, kept) = (server.endpoint(SOON), KeptAnswers::nowhere());
    let asking = Asking { rewriter: &endpoint, prompt: "Rewrite it.", parallel: 1, kept: &kept };
    let (names, settings) = (NameList::embedded(), RewriteSettings::default());
    let refused = rewrite_by(&queries(1), names, &alike, &settings, &asking, &Progress::new());
    assert!(refused.unwrap_err().to_string().contains("{sentence}"));
    assert!(server.heard().is_empty());
}
