//! An index made with a trained run needs neither the run, nor its data, nor the working folder that it was made in (D19); and what
//! is stopped while films are added to it says so.

use std::process::{Command, Output};
#[cfg(unix)]
use std::{os::unix::fs::PermissionsExt as _, process::Stdio, time::Duration};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

fn call(folder: &Utf8Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cuemark")).args(arguments).current_dir(folder).output().unwrap()
}

fn cuemark(folder: &Utf8Path, arguments: &[&str]) -> String {
    cuemark_testkit::succeed(Command::new(env!("CARGO_BIN_EXE_cuemark")).args(arguments).current_dir(folder))
}

fn refused(folder: &Utf8Path, arguments: &[&str]) -> String {
    let output = call(folder, arguments);
    assert!(!output.status.success(), "cuemark {arguments:?} should fail");
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

fn json(folder: &Utf8Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&cuemark(folder, &[arguments, &["--json"]].concat())).unwrap()
}

/// The moments of an answer, without the time that it took.
fn found(folder: &Utf8Path, index: &str) -> Value {
    let answers = json(folder, &["search", index, "the red ball spins"]);
    assert!(answers["answers"].as_array().is_some_and(|answers| !answers.is_empty()), "{answers:#}");
    answers["answers"].clone()
}

/// Three films, the last of which is not in the index.
const FILMS: [&str; 3] = ["films/a.mp4", "films/b.mp4", "films/c.mp4"];

/// A folder with a run, [`FILMS`] and an index.
fn home() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let home = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
    cuemark(&home, &["world", "make", "--out", "world", "--videos", "10", "--mp4", "--seed", "4"]);
    // Everything by names that mean something in this working folder only.
    let recipe = cuemark_testkit::fixture("runs/small-mmn.toml").canonicalize_utf8().unwrap();
    cuemark(&home, &["train", recipe.as_str(), "--set", "data.root=world", "--out", "run"]);
    std::fs::create_dir(home.join("films")).unwrap();
    let mut films: Vec<Utf8PathBuf> =
        home.join("world/videos").read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).collect();
    films.retain(|film| film.extension() == Some("mp4"));
    films.sort();
    for (film, name) in films.iter().zip(FILMS) {
        std::fs::copy(film, home.join(name)).unwrap();
    }
    cuemark(&home, &["index", "create", "index", "--encoder", "run", FILMS[0], FILMS[1]]);
    (guard, home)
}

#[test]
fn an_index_is_searched_and_added_to_after_its_run_and_data_are_gone_from_any_working_folder() {
    let (_guard, home) = home();
    let before = found(&home, "index");

    std::fs::remove_dir_all(home.join("run")).unwrap();
    std::fs::remove_dir_all(home.join("world")).unwrap();
    std::fs::create_dir(home.join("elsewhere")).unwrap();
    std::fs::rename(home.join("index"), home.join("elsewhere/index")).unwrap();
    let (root, index) = (Utf8Path::new("/"), home.join("elsewhere/index"));
    assert_eq!(found(root, index.as_str()), before);
    let added = json(root, &["index", "add", index.as_str(), home.join(FILMS[2]).as_str()]);
    assert!(added.to_string().contains("\"new\":1"), "{added:#}");
    cuemark(root, &["index", "verify", index.as_str()]);

    // A salvaged index keeps its encoder as well.
    let rescued = home.join("rescued");
    cuemark(root, &["index", "salvage", index.as_str(), "--out", rescued.as_str()]);
    found(root, rescued.as_str());

    // What is kept is checked before it is used.
    let weights = index.join("encoder/checkpoints/best.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x40;
    std::fs::write(&weights, bytes).unwrap();
    for arguments in [["search", index.as_str(), "a ball"].as_slice(), &["index", "verify", index.as_str()]] {
        let said = refused(root, arguments);
        assert!(said.contains("best.safetensors") && said.contains("checksum"), "{said}");
    }
    found(root, rescued.as_str());
}

#[cfg(unix)]
#[test]
fn adding_that_is_stopped_says_so_by_its_exit_code_and_goes_on_with_the_same_command() {
    let (_guard, home) = home();
    // A decoder that never comes to an end, in the place of the real one.
    let (programs, begun) = (home.join("programs"), home.join("begun"));
    std::fs::create_dir(&programs).unwrap();
    let decoder = programs.join("ffmpeg");
    let asked_for_version = "case \"$*\" in *-version*) echo ffmpeg version 0; exit;; esac";
    std::fs::write(&decoder, format!("#!/bin/sh\n{asked_for_version}\n: > '{begun}'\nexec /bin/sleep 600\n")).unwrap();
    std::fs::set_permissions(&decoder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let add = ["index", "add", "index", FILMS[2]];
    let mut adding = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    adding.args(add).current_dir(&home).env("PATH", &path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut adding = adding.spawn().unwrap();
    while !begun.exists() {
        assert!(adding.try_wait().unwrap().is_none(), "it ended before it was stopped");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &adding.id().to_string()]).status().unwrap().success());
    let output = adding.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(130), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("0 new") && said.contains("stopped; the same command goes on"), "{said}");
    assert!(json(&home, &add).to_string().contains("\"new\":1"));
}
