//! Workflow files call chores, and chores that there are. Tests only.

use std::fs;
use std::path::PathBuf;

use yaml_rust2::{Yaml, YamlLoader};

use crate::process::workspace;

/// The workflow files, parsed.
fn workflows() -> Vec<(PathBuf, Yaml)> {
    let files = fs::read_dir(workspace().join(".github/workflows")).unwrap();
    files
        .map(|file| {
            let path = file.unwrap().path();
            let mut parsed = YamlLoader::load_from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(parsed.len(), 1, "{}", path.display());
            (path, parsed.remove(0))
        })
        .collect()
}

/// Every command that the steps of a workflow run, line by line.
fn commands(workflow: &Yaml) -> Vec<String> {
    let jobs = workflow["jobs"].as_hash().expect("a workflow has jobs");
    let steps = jobs.values().flat_map(|job| job["steps"].as_vec().expect("a job has steps"));
    let runs =
        steps.filter(|step| !step["run"].is_badvalue()).map(|step| step["run"].as_str().expect("a command is text"));
    runs.flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// What is wrong with a command, if anything: chores only, by the names and options that `cargo xtask help` lists.
fn wrong(command: &str, chores: &[&str]) -> Option<String> {
    let Some(words) = command.strip_prefix("cargo xtask ") else { return Some(format!("`{command}` is no chore")) };
    // `verify fuzz --minutes 120` is `verify fuzz [--minutes N …]`.
    let name: Vec<&str> = words.split(' ').take_while(|word| !word.starts_with('-')).collect();
    let listed = |chore: &&&str| chore.split(' ').take(name.len()).eq(name.iter().copied());
    let Some(chore) = chores.iter().find(listed) else { return Some(format!("`{command}`: there is no such chore")) };
    let known: Vec<&str> = chore.split(['[', ']', ' ', '|']).filter(|word| word.starts_with("--")).collect();
    let unknown = words.split(' ').find(|word| word.starts_with("--") && !known.contains(word));
    unknown.map(|option| format!("`{command}`: the chore knows no `{option}`"))
}

/// Jobs that a job waits for and that are not there.
fn waits_for_nothing(workflow: &Yaml) -> Vec<String> {
    let jobs = workflow["jobs"].as_hash().expect("a workflow has jobs");
    let names: Vec<&str> = jobs.keys().filter_map(Yaml::as_str).collect();
    let needs = jobs.values().flat_map(|job| job["needs"].as_vec().cloned().unwrap_or_default());
    needs.filter_map(Yaml::into_string).filter(|need| !names.contains(&need.as_str())).collect()
}

#[test]
fn every_command_of_every_workflow_is_a_chore_that_there_is() {
    let help = crate::help();
    let chores: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("cargo xtask ")).collect();
    let mut looked_at = 0;
    for (path, workflow) in workflows() {
        for command in commands(&workflow) {
            assert_eq!(wrong(&command, &chores), None, "{}", path.display());
            looked_at += 1;
        }
        assert!(waits_for_nothing(&workflow).is_empty(), "{}", path.display());
    }
    assert!(looked_at > 9, "{looked_at} commands");
}

#[test]
fn there_is_a_workflow_for_everything_that_is_promised() {
    let all: Vec<String> = workflows().iter().flat_map(|(_, workflow)| commands(workflow)).collect();
    for wanted in ["test", "build", "advisories", "registry", "dist", "site", "verify fuzz"] {
        assert!(all.iter().any(|command| command.starts_with(&format!("cargo xtask {wanted}"))), "{wanted}");
    }
}

#[test]
fn commands_are_found_in_blocks_too_and_bad_ones_are_told() {
    let text = "jobs:\n  a:\n    steps:\n      - uses: x@v1\n      - run: |\n          cargo xtask one\n          rm -rf /\n      - {run: cargo xtask two --far}\n";
    let workflow = YamlLoader::load_from_str(text).unwrap().remove(0);
    let found = commands(&workflow);
    assert_eq!(found, ["cargo xtask one", "rm -rf /", "cargo xtask two --far"]);
    let chores = ["one", "two [--near]"];
    let told: Vec<Option<String>> = found.iter().map(|command| wrong(command, &chores)).collect();
    assert_eq!(told[0], None);
    assert_eq!(told[1].as_deref(), Some("`rm -rf /` is no chore"));
    assert_eq!(told[2].as_deref(), Some("`cargo xtask two --far`: the chore knows no `--far`"));
    assert!(wrong("cargo xtask three", &chores).is_some());
}
