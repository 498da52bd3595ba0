//! `SECURITY.md` names the test that holds each promise: they are there. Tests only.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::process::workspace;

/// Pages that say by name which test holds what.
const PAGES: &[&str] = &["SECURITY.md", "results/notes/faults-2026-11-17.md"];

/// Test functions that a text names between backquotes; one that ends in `…` is the beginning of a name.
fn named(text: &str) -> BTreeSet<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    // Options, files and types are quoted, too; a test is a sentence of at least four words.
    let sentence = |name: &str| {
        let words = name.trim_end_matches('…');
        words.matches('_').count() >= 3 && words.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
    };
    quoted.filter(|name| sentence(name)).collect()
}

/// Functions of all Rust files below a folder.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
}

/// Whether there is a function of that name, or one that begins so.
fn is_there(name: &str, functions: &BTreeSet<String>) -> bool {
    match name.strip_suffix('…') {
        Some(begins) => functions.range(begins.to_owned()..).next().is_some_and(|next| next.starts_with(begins)),
        None => functions.contains(name),
    }
}

#[test]
fn every_test_that_a_promise_names_is_there() {
    let mut known = BTreeSet::new();
    functions(&workspace().join("crates"), &mut known);
    let mut looked_at = 0;
    for page in PAGES {
        let text = fs::read_to_string(workspace().join(page)).unwrap();
        for name in named(&text) {
            assert!(is_there(name, &known), "{page}: there is no test `{name}`");
            looked_at += 1;
        }
    }
    assert!(looked_at > 50, "{looked_at} names");
}

#[test]
fn beginnings_and_whole_names_are_told_from_files_and_options() {
    let text =
        "`a_film_that_was_replaced…`, `hostile.rs` `--read-only` `verify kills`; `the_end_is_heard`, `Sec-Fetch-Site`";
    assert_eq!(named(text), BTreeSet::from(["a_film_that_was_replaced…", "the_end_is_heard"]));
    let known = BTreeSet::from(["a_film_that_was_replaced_is_gone".to_owned(), "the_end_is_heard_late".to_owned()]);
    assert!(is_there("a_film_that_was_replaced…", &known));
    assert!(!is_there("the_end_is_heard", &known));
    assert!(!is_there("a_film_that_was_kept…", &known));
}
