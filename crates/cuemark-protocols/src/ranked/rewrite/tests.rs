use std::time::{Duration, Instant};

use super::*;
use camino::Utf8PathBuf;
use cuemark_core::{Query, RowPolicy, Span, Video};

fn query(id: &str, text: &str) -> Truth {
    let query = Query { id: id.into(), text: text.to_owned() };
    Truth::single(query, Video::new("v", 30.0), [Span::new(1.0, 4.5).unwrap()])
}

fn stand_ins() -> StandIns {
    StandIns::new([("Phoebe", "woman"), ("Rachel", "woman"), ("Ross", "man"), ("Sherlock Holmes", "investigator")])
}

fn replaced(sentence: &str) -> String {
    stand_ins().replace(sentence, NameList::embedded(), 0.8)
}

/// Everything is alike, so that only names decide.
fn alike(originals: &[String], _: &[String]) -> Result<Vec<f32>> {
    Ok(vec![1.0; originals.len()])
}

fn program(script: &str, timeout: Duration) -> Program {
    Program { command: ["sh", "-c", script].map(str::to_owned).to_vec(), timeout }
}

#[test]
fn names_become_nouns_and_the_rest_stays_as_it_is() {
    assert_eq!(replaced("Ross puts on his coat."), "A man puts on his coat.");
    assert_eq!(replaced("The dog bites Ross's leg,  twice."), "The dog bites a man's leg,  twice.");
    assert_eq!(replaced("a dog barks"), "a dog barks");
    assert_eq!(replaced("Sherlock Holmes sighs"), "An investigator sighs");
}

#[test]
fn two_people_are_told_apart_and_one_person_is_recognised_again() {
    let text = replaced("Phoebe hugs Rachel. Rachel thanks Phoebe.");
    assert_eq!(text, "A woman hugs another woman. The other woman thanks the woman.");
}

#[test]
fn names_on_no_list_become_a_person() {
    assert_eq!(replaced("A man tells Quuxley a joke."), "A man tells a person a joke.");
    assert_eq!(replaced("The nurse greets Mrs. Xyzzy at the door."), "The nurse greets a person at the door.");
}

#[test]
fn a_list_that_is_no_list_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("names.csv")).unwrap();
    std::fs::write(&path, "Phoebe,woman\nRachel\n").unwrap();
    let message = StandIns::read(&Source::new(path)).unwrap_err().to_string();
    assert!(message.ends_with("names.csv:2: `name`: `Rachel` is not `name,noun`"), "{message}");
}

#[test]
fn a_rewrite_that_lost_its_meaning_goes_to_a_person() {
    let queries = [query("0", "Ross puts the red cup on the table"), query("1", "Ross")];
    let settings = RewriteSettings::default();
    let done = rewrite(&queries, &stand_ins(), NameList::embedded(), &compare_by_words, &settings).unwrap();
    assert_eq!(done.accepted[0].rewritten, "A man puts the red cup on the table");
    assert_eq!((done.review[0].qid.as_str(), &done.review[0].faults[..]), ("1", &[RewriteFault::MeaningLost][..]));
    assert_eq!(done.report(), RewriteReport { accepted: 1, retry: 0, review: 1, changed: 1 });
}

/// Only `Blorp` is a name.
fn with_program(program: &Program, attempts: usize) -> Rewrites {
    let names = NameList::new(["Blorp"]);
    let settings = RewriteSettings { attempts, ..RewriteSettings::default() };
    let queries = [query("0", "the dog sees Blorp")];
    let kept = KeptAnswers::nowhere();
    let asking = Asking { rewriter: program, prompt: PROMPT, parallel: 2, kept: &kept };
    rewrite_by(&queries, &names, &alike, &settings, &asking, &Progress::new()).unwrap()
}

#[test]
fn the_program_is_asked_about_every_query_also_one_that_needs_nothing() {
    let script = r#"while read -r line; do
        case "$line" in *'"0"'*) echo '{"qid":"0","query":"the dog sees a man"}';; *) echo '{"qid":"1","query":"a dog barks"}';; esac
    done"#;
    let queries = [query("0", "the dog sees Blorp"), query("1", "the dog barks")];
    let kept = KeptAnswers::nowhere();
    let program = program(script, Duration::from_secs(20));
    let asking = Asking { rewriter: &program, prompt: PROMPT, parallel: 2, kept: &kept };
    let settings = RewriteSettings::default();
    let names = NameList::new(["Blorp"]);
    let done = rewrite_by(&queries, &names, &alike, &settings, &asking, &Progress::new()).unwrap();
    let rewritten: Vec<&str> = done.accepted.iter().map(|rewrite| rewrite.rewritten.as_str()).collect();
    assert_eq!(rewritten, ["the dog sees a man", "a dog barks"]);
    assert!(done.accepted.iter().all(|rewrite| (rewrite.attempts, rewrite.temperature) == (1, Some(0.0))));
}

#[test]
fn a_program_that_leaves_names_in_sends_the_query_to_a_person() {
    let script = r#"while read -r line; do echo '{"qid":"0","query":"the dog sees Blorp again"}'; done"#;
    let done = with_program(&program(script, Duration::from_secs(20)), 2);
    assert_eq!((done.review[0].attempts, &done.review[0].faults[..]), (2, &[RewriteFault::NameLeft][..]));
    assert_eq!(done.review[0].temperature, Some(0.2));
}

#[test]
fn a_program_that_is_silent_or_talks_nonsense_fills_the_queue_for_retries() {
    let started = Instant::now();
    for script in ["sleep 30", "cat > /dev/null", "while read -r line; do echo nonsense; done", "exit 0"] {
        let done = with_program(&program(script, Duration::from_millis(300)), 1);
        assert_eq!(done.retry[0].faults, [RewriteFault::NoAnswer], "{script}");
    }
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_answer_about_another_query_is_not_taken() {
    let script = r#"while read -r line; do echo '{"qid":"9","query":"the dog sees a man"}'; done"#;
    assert_eq!(with_program(&program(script, Duration::from_secs(20)), 1).retry.len(), 1);
}

#[test]
fn a_program_that_does_not_exist_is_an_error() {
    let missing = Program { command: vec!["/no/such/rewriter".to_owned()], timeout: Duration::from_secs(1) };
    let (queries, kept) = ([query("0", "x")], KeptAnswers::nowhere());
    let asking = Asking { rewriter: &missing, prompt: PROMPT, parallel: 2, kept: &kept };
    let (names, settings) = (NameList::embedded(), RewriteSettings::default());
    let result = rewrite_by(&queries, names, &alike, &settings, &asking, &Progress::new());
    assert!(result.unwrap_err().to_string().starts_with("`/no/such/rewriter`: "));
}

#[test]
fn a_program_can_look_for_names() {
    let script = r#"while read -r line; do
        case "$line" in *Blorp*) echo '{"names":["Blorp"]}';; *silence*) echo '?';; *) echo '{"score":0.1}';; esac
    done"#;
    let program = program(script, Duration::from_secs(20));
    let names = ProgramNames::start(&program).unwrap();
    assert_eq!(names.highest("the dog sees Blorp").unwrap(), Some(1.0));
    assert_eq!(names.highest("silence").unwrap(), None);
    assert_eq!(names.highest("the dog barks").unwrap(), Some(0.1));
}

#[test]
fn a_person_settles_what_the_queue_holds() {
    let queries = [query("0", "Ross puts the red cup on the table"), query("1", "Ross")];
    let settings = RewriteSettings::default();
    let mut done = rewrite(&queries, &stand_ins(), NameList::embedded(), &compare_by_words, &settings).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    done.write(&queries, &settings, &folder, Overwrite::Never).unwrap();
    assert!(done.write(&queries, &settings, &folder, Overwrite::Never).is_err());
    let mut reviewed = read_queue(&Source::new(folder.join("review.jsonl"))).unwrap();
    assert_eq!(reviewed, done.review);
    reviewed[0].approved = Some("a man".to_owned());
    done.approve(&reviewed);
    assert!(done.review.is_empty());
    done.write(&queries, &settings, &folder, Overwrite::Force).unwrap();
    let read = cuemark_formats::read_truth(&Source::new(folder.join("queries.jsonl")), RowPolicy::Error).unwrap();
    let sentences: Vec<&str> = read.queries.iter().map(|truth| truth.query.text.as_str()).collect();
    assert_eq!(sentences, ["A man puts the red cup on the table", "a man"]);
    assert_eq!(read.queries[1].extra.get("original").unwrap(), "Ross");
}
