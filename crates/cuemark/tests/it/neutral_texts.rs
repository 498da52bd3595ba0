//! No text of a library names a flag of the command line: who reads it may be a person at a terminal, a Python program or a server.

use std::path::{Path, PathBuf};

/// What readers meet only in the terms of the front end itself.
const FRONT_ENDS: [&str; 5] = ["cuemark-cli", "cuemark-mcp", "cuemark-py", "cuemark-server", "cuemark-testkit"];

/// Files whose flags are those of other programs, or of a child of ours, and are never shown.
const STARTS_PROGRAMS: [&str; 2] = ["cuemark-encoders/src/weights/pip.rs", "cuemark/src/study/opened.rs"];

/// A string of a source file, and the code right before it.
struct Text {
    line: usize,
    before: String,
    text: String,
}

/// Every string literal of a file that is no comment and no part of its tests.
fn texts(source: &str) -> Vec<Text> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let bytes = source.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = &source[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            at += 3;
        } else if let Some(raw) = rest.strip_prefix("r#\"") {
            at += 3 + raw.find("\"#").unwrap() + 2;
        } else if bytes[at] == b'"' {
            let mut end = at + 1;
            while bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            let before = source[..at].trim_end();
            let before = before.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
            let line = 1 + source[..at].matches('\n').count();
            found.push(Text { line, before, text: source[at + 1..end].to_owned() });
            at = end + 1;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// Whether a text names a flag outside a whole command: `` `cuemark features list --dataset NAME` `` can be typed by anybody.
fn names_a_flag(text: &str) -> bool {
    text.split('`').any(|part| {
        let is_command = ["cuemark ", "cargo ", "hf "].iter().any(|program| part.starts_with(program));
        let mut words = part.split(|c: char| c.is_whitespace() || "([,;".contains(c));
        !is_command
            && words.any(|word| {
                word.strip_prefix("--").is_some_and(|flag| flag.starts_with(|c: char| c.is_ascii_lowercase()))
            })
    })
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_library_names_a_flag() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut named, mut read) = (Vec::new(), 0);
    for entry in std::fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        if FRONT_ENDS.contains(&name) || !folder.join("src").is_dir() {
            continue;
        }
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            let short = file.strip_prefix(crates).unwrap().to_str().unwrap();
            if STARTS_PROGRAMS.contains(&short) || short.ends_with("tests.rs") || short.contains("/tests/") {
                continue;
            }
            read += 1;
            for Text { line, before, text } in texts(&std::fs::read_to_string(&file).unwrap()) {
                // A command as a piece of advice is data: each front end says it in its own way.
                let is_command = before.ends_with(".run(") || before.ends_with("::command(");
                if !is_command && names_a_flag(&text) {
                    named.push(format!("{short}:{line}: {text}"));
                }
            }
        }
    }
    assert!(read > 400, "only {read} files were read");
    assert!(named.is_empty(), "say it with `Advice::set` and its like:\n{}", named.join("\n"));
}

#[test]
fn flags_are_known_from_commands_and_dashes() {
    for text in ["pass `--force`", "with --bad-rows keep", "(--out FILE)"] {
        assert!(names_a_flag(text), "{text}");
    }
    for text in [
        "`cuemark split make --val 0.1` draws one",
        "a -- b",
        "--",
        "2020--21",
        "well-known",
        "`cargo install --path x`",
    ] {
        assert!(!names_a_flag(text), "{text}");
    }
    let found = texts("// \"--no\"\nlet a = '\"'; let b = say(\"one \\\" two\"); run(\"three\")");
    let found: Vec<(&str, usize)> = found.iter().map(|text| (text.text.as_str(), text.line)).collect();
    assert_eq!(found, [("one \\\" two", 2), ("three", 2)]);
}
