//! What the documentation says: every block of commands is run, or says why not and is at least understood by the program; the
//! pages that come from code are what the code says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cuemark_testkit::fixture;

#[path = "../../examples/reference/pages.rs"]
mod pages;

fn root() -> PathBuf {
    fixture("..").canonicalize_utf8().unwrap().into()
}

/// What a page says to do, in its order.
#[derive(Debug, PartialEq)]
enum Part {
    /// Keep this text as a file.
    File(String, String),
    /// A block of commands.
    Block(Block),
}

/// A block of commands and what the mark above it says about them.
#[derive(Debug, PartialEq)]
struct Block {
    line: usize,
    mark: Mark,
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq)]
enum Mark {
    Run,
    /// They are shown because they are refused.
    Fails,
    /// Another test runs them: its file.
    Elsewhere(String),
    /// With the reason.
    Not(String),
    Missing,
}

/// A command, and lines that it has to print.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    wanted: Vec<String>,
}

/// The parts of a page: blocks of `console`, and blocks below `<!-- file: NAME -->`.
fn parts(page: &str) -> Vec<Part> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    let mut above = "";
    while let Some((number, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            let comment = above.trim().strip_prefix("<!--").and_then(|text| text.strip_suffix("-->")).map(str::trim);
            if let Some(name) = comment.and_then(|comment| comment.strip_prefix("file: ")) {
                found.push(Part::File(name.to_owned(), inside.join("\n") + "\n"));
            } else if language == "console" {
                let mark = match comment {
                    Some("run") => Mark::Run,
                    Some("run: fails") => Mark::Fails,
                    comment => comment.map_or(Mark::Missing, marked),
                };
                found.push(Part::Block(Block { line: number + 1, mark, steps: steps(&inside) }));
            }
            above = "";
        } else if !line.trim().is_empty() {
            above = line;
        }
    }
    found
}

/// The marks that say more than that.
fn marked(comment: &str) -> Mark {
    match (comment.strip_prefix("not run: "), comment.strip_prefix("run by ")) {
        (Some(reason), _) => Mark::Not(reason.to_owned()),
        (None, Some(file)) => Mark::Elsewhere(file.to_owned()),
        (None, None) => Mark::Missing,
    }
}

/// Commands begin with `$ ` and go on behind a backslash; what follows is what they print, `…` where something is left out.
fn steps(lines: &[&str]) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push(Step { command: command.to_owned(), wanted: Vec::new() });
        } else if let Some(step) = found.last_mut() {
            if goes_on {
                step.command += &format!("\n{line}");
            } else if *line != "…" && !line.trim().is_empty() {
                step.wanted.push(line.trim().to_owned());
            }
        }
        goes_on = line.ends_with('\\') && (goes_on || line.starts_with("$ "));
    }
    found
}

/// Every page with commands: those of docs/, and the first one.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A shell in `folder` in which `cuemark` is the program that was built.
fn shell(command: &str, folder: &Path) -> Output {
    let programs = folder.join("bin");
    if !programs.exists() {
        std::fs::create_dir(&programs).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cuemark"), programs.join("cuemark")).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-ec", command]).current_dir(folder).env("PATH", path).env("CUEMARK_CACHE", "/nowhere");
    shell.env("COLUMNS", "110").output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Does what a page says in a folder of its own, which has the fixtures and run files of the repository.
fn follow(page: &Path) -> usize {
    let guard = tempfile::tempdir().unwrap();
    let folder = guard.path();
    for name in ["fixtures", "runs"] {
        std::os::unix::fs::symlink(root().join(name), folder.join(name)).unwrap();
    }
    let mut run = 0;
    for part in parts(&std::fs::read_to_string(page).unwrap()) {
        match part {
            Part::File(name, text) => std::fs::write(folder.join(name), text).unwrap(),
            Part::Block(Block { mark: Mark::Elsewhere(_) | Mark::Not(_) | Mark::Missing, .. }) => {}
            Part::Block(Block { line, mark, steps }) => {
                for step in steps {
                    let place = format!("{}:{line}: {}", page.display(), step.command);
                    let output = shell(&step.command, folder);
                    let told = said(&output);
                    assert_eq!(output.status.success(), mark == Mark::Run, "{place}\n{told}");
                    for line in &step.wanted {
                        assert!(told.contains(line.as_str()), "{place}\nshould say: {line}\nsaid:\n{told}");
                    }
                    run += 1;
                }
            }
        }
    }
    run
}

#[test]
fn the_tutorial_on_scoring_does_what_it_says() {
    assert!(follow(&root().join("docs/tutorials/score.md")) >= 6);
}

#[test]
fn the_tutorial_on_searching_does_what_it_says() {
    assert!(follow(&root().join("docs/tutorials/search.md")) >= 4);
}

#[test]
fn the_tutorial_on_methods_does_what_it_says() {
    assert!(follow(&root().join("docs/tutorials/method.md")) >= 5);
}

#[test]
fn every_other_page_does_what_it_says() {
    let others = documents().into_iter().filter(|page| !page.parent().unwrap().ends_with("tutorials"));
    assert!(others.map(|page| follow(&page)).sum::<usize>() > 0);
}

#[test]
fn every_block_of_commands_is_run_or_says_why_not_and_is_understood() {
    let guard = tempfile::tempdir().unwrap();
    let mut wrong = BTreeSet::new();
    let mut understood = 0;
    for page in documents() {
        for part in parts(&std::fs::read_to_string(&page).unwrap()) {
            let Part::Block(Block { line, mark, steps }) = part else { continue };
            let place = format!("{}:{line}", page.display());
            // Every word of the README counts; what it shows is understood at least.
            let mark = if page.ends_with("README.md") { Mark::Not("no room".to_owned()) } else { mark };
            if mark == Mark::Missing {
                wrong.insert(format!("{place}: no `<!-- run -->` or `<!-- not run: why -->` above it"));
            }
            if let Mark::Elsewhere(file) = &mark {
                let test = std::fs::read_to_string(root().join(file)).unwrap_or_default();
                let name = page.file_name().unwrap().to_str().unwrap();
                if !test.contains(name) {
                    wrong.insert(format!("{place}: `{file}` does not run it"));
                }
            }
            if !matches!(mark, Mark::Not(_)) {
                continue;
            }
            for command in steps.iter().flat_map(|step| own_commands(&step.command)) {
                // Help is shown where everything before it was understood.
                let output = shell(&format!("{command} --help"), guard.path());
                if !output.status.success() {
                    wrong.insert(format!("{place}: {command}: {}", said(&output)));
                }
                understood += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(understood > 30, "{understood} commands");
}

/// The commands of ours in a line for the shell, without what follows them.
fn own_commands(line: &str) -> Vec<String> {
    let line = line.replace("\\\n", " ");
    let line = line.split(" #").next().unwrap_or_default();
    let pieces =
        line.split("&&").flat_map(|piece| piece.split(" | ")).map(|piece| piece.trim().trim_end_matches('&').trim());
    pieces.filter(|piece| piece.starts_with("cuemark ")).map(str::to_owned).collect()
}

#[test]
fn a_page_is_taken_apart_as_it_is_written() {
    let page = "<!-- file: a.json -->\n```json\n{}\n```\n\n<!-- run -->\n```console\n$ one \\\n  --more\n  printed\n…\n$ two\n```\n\n\
                words\n```console\n$ three\n```\n<!-- not run: far away -->\n```console\n$ four\n```\n";
    let found = parts(page);
    assert_eq!(found[0], Part::File("a.json".to_owned(), "{}\n".to_owned()));
    let step = |command: &str, wanted: &[&str]| Step {
        command: command.to_owned(),
        wanted: wanted.iter().map(|line| (*line).to_owned()).collect(),
    };
    let first = vec![step("one \\\n  --more", &["printed"]), step("two", &[])];
    assert_eq!(found[1], Part::Block(Block { line: 7, mark: Mark::Run, steps: first }));
    let marks: Vec<&Mark> =
        found[2..].iter().map(|part| if let Part::Block(block) = part { &block.mark } else { panic!() }).collect();
    assert_eq!(marks, [&Mark::Missing, &Mark::Not("far away".to_owned())]);
    assert_eq!(own_commands("printf x | cuemark mcp --root films & # words"), ["cuemark mcp --root films"]);
}

#[test]
fn reference_pages_say_what_the_code_says() {
    for page in pages::all().unwrap() {
        let path = root().join("docs/reference").join(page.name);
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == page.text, "{} is stale: run `cargo xtask site --write`", path.display());
    }
    let names: BTreeSet<&str> = cuemark_models::registry::MODELS.iter().map(|card| card.name).collect();
    assert!(pages::REDERIVED.iter().all(|name| names.contains(name)));
}
