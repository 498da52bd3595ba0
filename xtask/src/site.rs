//! `cargo xtask site`: the site, from docs/ and from everything that its pages lead to, with every link of every page checked.
//!
//! mdBook makes pages of what its summary lists and of nothing else, and docs/ leads to results and notes outside of it. So the
//! book is staged first: docs/, the pages behind its links, and the files that those show.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::links::{headings, targets};
use crate::needs::find_program;
use crate::plots::with_plots;
use crate::process::{cargo, scratch_folder, target_folder, watch, workspace};
use crate::{chore, test};

/// Where the pages begin that are not in the summary.
const BEHIND: &str = "Results and notes";

pub(crate) fn run(options: &[&str]) -> Result<ExitCode> {
    match options {
        [] => build(),
        ["--write"] => write(),
        _ => bail!("`cargo xtask site` takes no option but --write"),
    }
}

/// Writes the pages that come from code; what they say is known where the cards are.
fn write() -> Result<ExitCode> {
    // Built as the tests build it, so that nothing is compiled twice.
    if chore(&["build", "--workspace", "--example", "reference", test::FEATURES])? != ExitCode::SUCCESS {
        return Ok(ExitCode::FAILURE);
    }
    let made = watch(&mut Command::new(target_folder()?.join("debug/examples/reference")))?;
    Ok(ExitCode::from(u8::from(!made.ok)))
}

fn build() -> Result<ExitCode> {
    let (staged, site) = (scratch_folder("site")?, target_folder()?.join("site"));
    stage(workspace(), &staged)?;
    if !watch(Command::new(mdbook()?).arg("build").arg("--dest-dir").arg(&site).arg(&staged))?.ok {
        return Ok(ExitCode::FAILURE);
    }
    let (pages, dead) = dead_links(&site)?;
    for link in &dead {
        println!("{link}");
    }
    println!("{}: {pages} pages, {} dead links", site.display(), dead.len());
    Ok(ExitCode::from(u8::from(!dead.is_empty())))
}

/// mdBook: the one on the search path, or one that is compiled once and kept.
fn mdbook() -> Result<PathBuf> {
    if let Some(found) = find_program("mdbook") {
        return Ok(found);
    }
    let tools = scratch_folder("tools")?;
    let program = tools.join("bin/mdbook");
    if !program.exists() {
        let mut install = cargo(&["install", "mdbook", "--locked", "--root"]);
        if !watch(install.arg(&tools))?.ok {
            bail!("mdBook cannot be installed");
        }
    }
    Ok(program)
}

/// Lays the book out below `to`.
fn stage(from: &Path, to: &Path) -> Result<()> {
    let source = to.join("src");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    let summary = fs::read_to_string(from.join("docs/SUMMARY.md"))?;
    let mut listed: Vec<PathBuf> = Vec::new();
    for target in targets(&summary) {
        listed.push(joined(Path::new("docs"), &target).with_context(|| format!("SUMMARY.md: {target}"))?);
    }
    let mut titles = BTreeMap::new();
    let mut seen: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    let mut waiting = listed.clone();
    while let Some(page) = waiting.pop() {
        let text = fs::read_to_string(from.join(&page)).with_context(|| page.display().to_string())?;
        titles.insert(page.clone(), headings(&text).into_iter().next().unwrap_or_else(|| page.display().to_string()));
        for target in targets(&text) {
            let Some(path) = joined(page.parent().unwrap_or(Path::new("")), &target) else { continue };
            if from.join(&path).is_file() && seen.insert(path.clone()) {
                if path.extension().is_some_and(|end| end == "md") {
                    waiting.push(path);
                } else {
                    copy(&from.join(&path), &source.join(&path))?;
                }
            }
        }
        let place = source.join(as_index(&page));
        fs::create_dir_all(place.parent().context("a page lies nowhere")?)?;
        fs::write(place, with_plots(&with_index_links(&text)))?;
    }
    let behind = titles.iter().filter(|(page, _)| !listed.contains(page));
    fs::write(source.join("SUMMARY.md"), whole_summary(&summary, behind))?;
    for file in ["book.toml", "site.css"] {
        copy(&from.join("docs").join(file), &to.join(file))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file lies nowhere")?)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

/// The summary seen from the root of the repository, with the pages behind the others at its end.
fn whole_summary<'a>(summary: &str, behind: impl Iterator<Item = (&'a PathBuf, &'a String)>) -> String {
    let mut whole = String::new();
    for line in summary.lines() {
        match line.split_once("](").and_then(|(before, rest)| Some((before, rest.strip_suffix(')')?))) {
            Some((before, target)) => {
                let path = joined(Path::new("docs"), target).unwrap_or_default();
                whole += &format!("{before}]({})\n", as_index(&path).display());
            }
            None => whole += &format!("{line}\n"),
        }
    }
    whole += &format!("\n# {BEHIND}\n\n");
    for (page, title) in behind {
        let title = title.replace(['[', ']'], "");
        whole += &format!("- [{title}]({})\n", as_index(page).display());
    }
    whole
}

/// Where a link of a page in `folder` leads, from the root; `None` for one that leaves the repository or stays on its page.
fn joined(folder: &Path, target: &str) -> Option<PathBuf> {
    let path = target.split(['#', ' ']).next().filter(|path| !path.is_empty() && !path.contains(':'))?;
    let mut clean = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir if !clean.pop() => return None,
            Component::Normal(part) => clean.push(part),
            _ => {}
        }
    }
    Some(clean)
}

/// A folder's README is its first page.
fn as_index(page: &Path) -> PathBuf {
    if page.file_name().is_some_and(|name| name == "README.md") {
        page.with_file_name("index.md")
    } else {
        page.to_owned()
    }
}

fn with_index_links(text: &str) -> String {
    text.replace("README.md)", "index.md)").replace("README.md#", "index.md#")
}

/// How many pages there are, and every link of theirs that leads nowhere.
fn dead_links(site: &Path) -> Result<(usize, Vec<String>)> {
    let mut pages = Vec::new();
    collect(site, &mut pages)?;
    let mut texts = BTreeMap::new();
    for page in &pages {
        texts.insert(page.clone(), fs::read_to_string(page)?);
    }
    let mut dead = Vec::new();
    for (page, text) in texts.iter().filter(|(page, _)| !page.ends_with("404.html") && !page.ends_with("toc.html")) {
        for link in links(text) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let place = if path.is_empty() { page.clone() } else { page.parent().unwrap_or(site).join(path) };
            let place = if place.is_dir() { place.join("index.html") } else { place };
            let place = place.canonicalize().unwrap_or(place);
            let is_there = match texts.get(&place) {
                Some(text) => anchor.is_empty() || text.contains(&format!("id=\"{anchor}\"")),
                None => place.is_file(),
            };
            if !is_there {
                dead.push(format!("{}: {link}", page.strip_prefix(site).unwrap_or(page).display()));
            }
        }
    }
    Ok((texts.len(), dead))
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path().canonicalize()?;
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|end| end == "html") {
            pages.push(path);
        }
    }
    Ok(())
}

/// What a page links to or shows, as far as it is ours.
fn links(page: &str) -> Vec<&str> {
    let of = |attribute: &'static str| page.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
    let all = of(" href=\"").chain(of(" src=\""));
    all.filter(|link| {
        !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:") && !link.starts_with("data:")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_behind_a_link_comes_along_and_a_readme_is_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let write = |name: &str, text: &str| {
            let path = from.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("docs/SUMMARY.md", "# Summary\n\n[cuemark](../README.md)\n\n- [A](a.md)\n");
        write("docs/book.toml", "[book]\n");
        write("docs/site.css", "table {}\n");
        write("docs/a.md", "# A\n[notes](../results/README.md#x) ![p](p.png) [not there](gone.md)\n");
        write("docs/p.png", "png");
        write("docs/alone.md", "# nobody leads here\n");
        write("results/README.md", "# Results [2]\n[one](one.md) [two](../README.md)\n");
        write("results/one.md", "# One\n");
        write("README.md", "# cuemark\n[a](docs/a.md)\n");
        stage(&from, &to).unwrap();
        let summary = fs::read_to_string(to.join("src/SUMMARY.md")).unwrap();
        let behind = format!("# {BEHIND}\n\n- [Results 2](results/index.md)\n- [One](results/one.md)\n");
        assert_eq!(summary, format!("# Summary\n\n[cuemark](index.md)\n\n- [A](docs/a.md)\n\n{behind}"));
        assert!(fs::read_to_string(to.join("src/docs/a.md")).unwrap().contains("../results/index.md#x"));
        assert!(to.join("site.css").is_file());
        assert!(to.join("src/docs/p.png").is_file() && !to.join("src/docs/alone.md").exists());
    }

    #[test]
    fn dead_pages_and_dead_anchors_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().canonicalize().unwrap();
        fs::create_dir(site.join("docs")).unwrap();
        let links = ["b.html", "b.html#there", "b.html#gone", "c.html", "#top", "../index.html", "http://far.away/"];
        let page: String = links.iter().map(|link| format!("<a href=\"{link}\">x</a>")).collect();
        fs::write(site.join("docs/a.html"), format!("<h1 id=\"top\">A</h1>{page}")).unwrap();
        fs::write(site.join("docs/b.html"), "<h1 id=\"there\">B</h1>").unwrap();
        fs::write(site.join("index.html"), "<a href=\"docs/\">all</a>").unwrap();
        let (pages, dead) = dead_links(&site).unwrap();
        assert_eq!(pages, 3);
        let dead: BTreeSet<String> = dead.into_iter().collect();
        assert_eq!(
            dead,
            BTreeSet::from(["docs/a.html: b.html#gone", "docs/a.html: c.html", "index.html: docs/"].map(str::to_owned))
        );
    }
}
