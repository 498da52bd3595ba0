//! Links between documents lead somewhere.

/// What stands in round brackets behind square ones: `[words](target)`. Code shows, it does not link.
pub(crate) fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        let line = without_code(line);
        let behind = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(behind.map(str::to_owned));
    }
    found
}

/// The headings of a page, first the title.
pub(crate) fn headings(text: &str) -> Vec<String> {
    let lines = prose(text).filter(|line| line.starts_with('#'));
    lines.map(|line| line.trim_start_matches('#').trim().to_owned()).collect()
}

/// Lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// A line without what stands between backticks, where brackets are code.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    // The last one is prose too where a backtick has no other.
    let is_prose =
        |place: usize| place.is_multiple_of(2) || (place + 1 == parts.len() && parts.len().is_multiple_of(2));
    let kept = parts.iter().enumerate().map(|(place, part)| if is_prose(place) { part } else { "" });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::process::workspace;

    /// Markdown below `folder`, build folders and corpora left out.
    fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_link = fs::symlink_metadata(&path).unwrap().is_symlink();
            if path.is_dir() && !is_link && !name.starts_with('.') && !name.starts_with("target") && name != "corpus" {
                documents(&path, found);
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }

    /// The names that headings can be linked to by: small letters, digits, `-` for blanks; a number where one is there already.
    fn anchors(text: &str) -> Vec<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let slug = |heading: &String| -> String {
            let kept = heading.trim().to_lowercase();
            let kept = kept.chars().filter(|c| c.is_alphanumeric() || ['-', '_', ' '].contains(c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        };
        headings(text)
            .iter()
            .map(|heading| {
                let slug = slug(heading);
                let before = seen.entry(slug.clone()).or_default();
                *before += 1;
                if *before == 1 { slug } else { format!("{slug}-{}", *before - 1) }
            })
            .collect()
    }

    #[test]
    fn targets_are_found_outside_of_code() {
        let text = "see [a](b.md) and [c](d.md#e)\n```\n[x](y)\n```\n![p](q.png) `v[0](1)` [f](g)";
        assert_eq!(targets(text), ["b.md", "d.md#e", "q.png", "g"]);
    }

    #[test]
    fn a_heading_has_a_name_and_its_double_another() {
        let text = "# What is it?\n```\n# not one\n```\n## R@1, `IoU`\n## What is it\n";
        assert_eq!(anchors(text), ["what-is-it", "r1-iou", "what-is-it-1"]);
    }

    #[test]
    fn every_link_to_a_file_of_ours_leads_to_one_and_to_a_heading_of_it() {
        let mut all = Vec::new();
        documents(workspace(), &mut all);
        let (mut dead, mut looked_at, mut at_headings) = (Vec::new(), 0, 0);
        for document in &all {
            let text = fs::read_to_string(document).unwrap();
            for target in targets(&text) {
                let target = target.split(' ').next().unwrap_or_default();
                // Names in our own documentation comments are rustdoc's to check, addresses the reader's.
                if target.is_empty() || target.contains("://") || target.starts_with("mailto:") || target.contains("::")
                {
                    continue;
                }
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                looked_at += 1;
                let place = if path.is_empty() { document.clone() } else { document.parent().unwrap().join(path) };
                let mut held = place.exists();
                if held && !anchor.is_empty() && place.extension().is_some_and(|end| end == "md") {
                    held = anchors(&fs::read_to_string(&place).unwrap()).iter().any(|name| name == anchor);
                    at_headings += 1;
                }
                if !held {
                    dead.push(format!("{}: {target}", document.display()));
                }
            }
        }
        assert!(looked_at > 50 && at_headings > 3, "{looked_at} links, {at_headings} of them to headings");
        assert!(dead.is_empty(), "{dead:#?}");
    }
}
