//! Links between documents lead somewhere. Tests only.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::workspace;

/// Markdown below `folder`, build folders and corpora left out.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && !name.starts_with("target") && name != "corpus" {
            documents(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// What stands in round brackets behind square ones: `[words](target)`. Code blocks show, they do not link.
fn targets(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if !fenced {
            let behind = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(behind.map(str::to_owned));
        }
    }
    found
}

#[test]
fn targets_are_found_outside_of_code() {
    assert_eq!(targets("see [a](b.md) and [c](d.md#e)\n```\n[x](y)\n```\n![p](q.png)"), ["b.md", "d.md#e", "q.png"]);
}

#[test]
fn every_link_to_a_file_of_ours_leads_to_one() {
    let mut all = Vec::new();
    documents(workspace(), &mut all);
    let mut dead = Vec::new();
    let mut looked_at = 0;
    for document in &all {
        for target in targets(&fs::read_to_string(document).unwrap()) {
            let path = target.split(['#', ' ']).next().unwrap_or_default();
            // Names in our own documentation comments are rustdoc's to check, addresses the reader's.
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") || path.contains("::") {
                continue;
            }
            looked_at += 1;
            if !document.parent().unwrap().join(path).exists() {
                dead.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(looked_at > 50, "{looked_at} links");
    assert!(dead.is_empty(), "{dead:#?}");
}
