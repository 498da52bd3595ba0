//! Files of parses: read as documented, refused with the line and the field.

use camino::Utf8PathBuf;
use cuemark_core::Advise as _;
use cuemark_core::Query;
use cuemark_formats::{Overwrite, Source};
use cuemark_text::{ParseFile, ParseProvider, Relation, ShallowParser, TextError, write_parses};

fn query(id: &str) -> Query {
    Query { id: id.into(), text: "the man in the hat opens a crate".to_owned() }
}

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

fn fault(line: &str) -> String {
    let (_guard, folder) = folder();
    let path = folder.join("parses.jsonl");
    let good = r#"{"qid":"ok","tokens":[]}"#;
    std::fs::write(&path, format!("{good}\n{line}\n")).unwrap();
    let error = ParseFile::read(&Source::new(path)).unwrap_err().to_string();
    error.rsplit_once("parses.jsonl").unwrap().1.to_owned()
}

#[test]
fn a_file_of_an_external_parser_is_read_by_query() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/text/parses.jsonl");
    let file = ParseFile::read(&Source::new(path)).unwrap();
    assert_eq!(file.len(), 3);
    let open = file.parse(&query("7")).unwrap();
    assert_eq!(open.phrases[0].nouns, [0, 3]);
    assert_eq!(open.dependencies[2].relation, Relation::Dobj);
    assert_eq!(file.parse(&query("8")).unwrap().tokens[3].bytes, Some((12, 18)));
    assert!(file.parse(&query("none")).unwrap().phrases.is_empty());
}

#[test]
fn a_missing_query_is_named() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/text/parses.jsonl");
    let file = ParseFile::read(&Source::new(path)).unwrap();
    let error = file.parse(&query("404")).unwrap_err();
    assert!(matches!(&error, TextError::MissingParse { qid, .. } if qid.as_str() == "404"));
    assert!(error.to_string().ends_with("parses.jsonl: no parse for query `404`"));
    assert!(error.advice().is_some());
}

#[test]
fn bad_lines_are_refused_with_line_and_field() {
    let tokens = r#""tokens":[{"text":"a","tag":"DET"},{"text":"b","tag":"NOUN"}]"#;
    for (line, message) in [
        (
            format!(r#"{{"qid":1,{tokens},"phrases":[{{"verb":2,"nouns":[]}}]}}"#),
            ":2: `phrases[0].verb`: 2 is no token: there are 2",
        ),
        (
            format!(r#"{{"qid":1,{tokens},"dependencies":[{{"head":0,"dependent":1,"relation":"likes"}}]}}"#),
            ":2: `dependencies[0].relation`: `likes` is no dependency relation",
        ),
        (r#"{"qid":"ok","tokens":[]}"#.to_owned(), ":2: `qid`: query `ok` stands in the file twice"),
    ] {
        assert_eq!(fault(&line), message);
    }
    // Either arc of a ring may be blamed.
    let ring =
        r#""dependencies":[{"head":0,"dependent":1,"relation":"det"},{"head":1,"dependent":0,"relation":"det"}]"#;
    assert!(fault(&format!(r#"{{"qid":1,{tokens},{ring}}}"#)).contains("hangs on itself"));
    for line in
        ["{", "[]", r#"{"tokens":[]}"#, r#"{"qid":1,"tokens":[{"text":"a","tag":"NN"}]}"#, r#"{"qid":[],"tokens":[]}"#]
    {
        assert!(fault(line).starts_with(":2: "), "{line}: {}", fault(line));
    }
}

#[test]
fn what_our_parser_finds_survives_a_file() {
    let (_guard, folder) = folder();
    let path = folder.join("out.jsonl");
    let query = query("42");
    let parse = ShallowParser.parse(&query).unwrap();
    write_parses(&path, Overwrite::Never, [(&query.id, parse.as_ref())]).unwrap();
    let back = ParseFile::read(&Source::new(path)).unwrap();
    assert_eq!(back.parse(&query).unwrap(), parse);
}

#[test]
fn the_schema_accepts_the_fixture_and_what_we_write_and_refuses_what_we_refuse() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/parse.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let valid = |line: &str| schema.is_valid(&serde_json::from_str(line).unwrap());

    let (_guard, folder) = folder();
    let (id, parse) = ("1".into(), ShallowParser.parse(&query("1")).unwrap());
    write_parses(folder.join("written.jsonl"), Overwrite::Never, [(&id, parse.as_ref())]).unwrap();
    for path in [cuemark_testkit::fixture("text/parses.jsonl"), folder.join("written.jsonl")] {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.lines().filter(|line| !line.trim().is_empty()).all(valid), "{text}");
    }
    for broken in [r#"{"tokens":[]}"#, r#"{"qid":"1","tokens":[{"text":"a"}]}"#, r#"{"qid":"1","tokens":"none"}"#] {
        assert!(!valid(broken) && !fault(broken).is_empty(), "{broken}");
    }
}
