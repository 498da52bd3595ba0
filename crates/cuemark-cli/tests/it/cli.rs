//! The command as a person meets it: what it prints, where, and with which exit code.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use cuemark_testkit::{fixture, program, shared, succeed};
use serde_json::Value;

fn cuemark(arguments: &[&str]) -> Output {
    program(env!("CARGO_BIN_EXE_cuemark")).args(arguments).output().unwrap()
}

/// Exit code, standard output and standard error, with paths of this machine taken out.
fn told(arguments: &[&str]) -> String {
    cuemark_testkit::told(&cuemark(arguments))
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(program(env!("CARGO_BIN_EXE_cuemark")).args(arguments))).unwrap()
}

fn path(name: &str) -> String {
    fixture(name).into_string()
}

#[test]
fn help_lists_every_command() {
    insta::assert_snapshot!(told(&["--help"]));
}

#[test]
fn an_evaluation_is_a_table_with_its_conventions() {
    let (truth, pred) = (path("cli/truth.jsonl"), path("cli/a.jsonl"));
    insta::assert_snapshot!(told(&["eval", "--truth", &truth, "--pred", &pred, "--ci", "95"]));
}

#[test]
fn an_evaluation_as_json_holds_fractions() {
    let (truth, pred) = (path("cli/truth.jsonl"), path("cli/a.jsonl"));
    let found =
        json(&["eval", "--truth", &truth, "--pred", &pred, "--metrics", "R@1,IoU=0.5,R@5,IoU=0.5,mIoU", "--json"]);
    // By hand: the overlaps of the first answers are 1, 0.5, 0 and none; query 3 is found second with 0.8.
    assert_eq!(found["metrics"]["R@1,IoU=0.5"], 0.5);
    assert_eq!(found["metrics"]["R@5,IoU=0.5"], 0.75);
    assert_eq!(found["metrics"]["mIoU"], 1.5 / 4.0);
    assert_eq!((found["queries"].as_u64(), found["missing"].as_u64()), (Some(4), Some(1)));
}

#[test]
fn groups_divide_the_queries() {
    let (truth, pred) = (path("cli/truth.jsonl"), path("cli/a.jsonl"));
    let found = json(&[
        "eval",
        "--truth",
        &truth,
        "--pred",
        &pred,
        "--metrics",
        "R@1,IoU=0.5",
        "--group-by",
        "verb,words",
        "--json",
    ]);
    assert_eq!(found["metrics"]["R@1,IoU=0.5/verb=open"], 1.0);
    assert_eq!(found["metrics"]["R@1,IoU=0.5/verb=jump"], 0.0);
    assert_eq!(found["metrics"]["R@1,IoU=0.5/words=1-5"], 2.0 / 3.0);
}

#[test]
fn a_comparison_names_both_files_and_the_test() {
    let (truth, a, b) = (path("cli/truth.jsonl"), path("cli/a.jsonl"), path("cli/b.jsonl"));
    insta::assert_snapshot!(told(&["compare", "--truth", &truth, &a, &b, "--metric", "mIoU"]));
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    let truth = path("cli/truth.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.txt");
    std::fs::write(&bad, "3MSZA 5.0 3.5##person turn a light on.\n").unwrap();
    let bad = bad.to_str().unwrap();
    let told = |arguments: &[&str]| told(arguments).replace(folder.path().to_str().unwrap(), "TMP");
    insta::assert_snapshot!(
        "misspelt_metric",
        told(&["eval", "--truth", &truth, "--pred", &path("cli/a.jsonl"), "--metrics", "R@1,IuO=0.5"])
    );
    insta::assert_snapshot!("absent_file", told(&["eval", "--truth", "nowhere.jsonl", "--pred", &path("cli/a.jsonl")]));
    insta::assert_snapshot!(
        "bad_row",
        told(&["eval", "--truth", bad, "--pred", &path("cli/a.jsonl"), "--bad-rows", "error"])
    );
    insta::assert_snapshot!("unknown_dataset", told(&["data", "check", "charade-sta", "--root", "."]));
    insta::assert_snapshot!(
        "refused_by_preset",
        told(&["eval", "--truth", &truth, "--pred", &path("cli/a.jsonl"), "--preset", "qvhighlights"])
    );
}

#[test]
fn wrong_usage_is_exit_2() {
    assert_eq!(cuemark(&["eval"]).status.code(), Some(2));
    assert_eq!(cuemark(&["eval", "--truth", "x", "--pred", "y", "--ci", "120"]).status.code(), Some(2));
    assert_eq!(cuemark(&["fly"]).status.code(), Some(2));
}

#[test]
fn nothing_is_overwritten_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("per-query.jsonl");
    let out = out.to_str().unwrap();
    let (truth, pred) = (path("cli/truth.jsonl"), path("cli/a.jsonl"));
    let arguments = ["eval", "--truth", &truth, "--pred", &pred, "--per-query", out];
    assert!(cuemark(&arguments).status.success());
    let first = std::fs::read_to_string(out).unwrap();
    assert_eq!(first.lines().count(), 4);
    assert_eq!(cuemark(&arguments).status.code(), Some(1));
    assert!(cuemark(&[&arguments[..], &["--force"]].concat()).status.success());
    assert_eq!(std::fs::read_to_string(out).unwrap(), first);
}

#[test]
fn every_dataset_fixture_converts_to_json_lines_and_back() {
    let folder = tempfile::tempdir().unwrap();
    for (name, root) in
        [("charades-sta", "datasets/charades-sta"), ("qvhighlights", "datasets/qvhighlights"), ("tvr", "datasets/tvr")]
    {
        let out = folder.path().join(format!("{name}.jsonl.gz"));
        let out = out.to_str().unwrap();
        let output = cuemark(&["data", "convert", name, "--root", &path(root), "--out", out]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let again = folder.path().join(format!("{name}-again.parquet"));
        let output = cuemark(&["data", "convert", name, "--root", &path(root), "--out", again.to_str().unwrap()]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Published, and determined by the annotations alone; cut off, not rounded, after two decimals.
#[test]
fn predict_all_reaches_the_published_discounted_recall() {
    let Some(folder) = shared("data/charades-cd") else { return };
    let published = [("test_iid", [31.04, 10.93, 0.0, 0.0, 0.0]), ("test_ood", [37.43, 27.13, 0.06, 0.0, 0.0])];
    for (split, expected) in published {
        let truth = folder.join(format!("charades_{split}.json"));
        let out = tempfile::tempdir().unwrap();
        let pred = out.path().join("all.jsonl");
        let pred = pred.to_str().unwrap();
        assert!(
            cuemark(&["predict", "--baseline", "predict-all", "--truth", truth.as_str(), "--out", pred])
                .status
                .success()
        );
        let found = json(&["eval", "--truth", truth.as_str(), "--pred", pred, "--preset", "charades-cd", "--json"]);
        for (m, expected) in ["0.1", "0.3", "0.5", "0.7", "0.9"].iter().zip(expected) {
            let percent = 100.0 * found["metrics"][format!("dR@1,IoU={m}")].as_f64().unwrap();
            assert_eq!((percent * 100.0).trunc() / 100.0, expected, "{split} {m}: {percent}");
        }
    }
}

#[test]
fn predict_all_on_activitynet_is_the_share_of_long_moments() {
    let Some(folder) = shared("data/activitynet-captions") else { return };
    let out = tempfile::tempdir().unwrap();
    let (truth, pred) = (out.path().join("val.jsonl"), out.path().join("all.jsonl"));
    let (truth, pred) = (truth.to_str().unwrap(), pred.to_str().unwrap());
    let root = folder.as_str();
    assert!(
        cuemark(&["data", "convert", "activitynet-captions", "--root", root, "--file", "val_1+val_2", "--out", truth])
            .status
            .success()
    );
    assert!(cuemark(&["predict", "--baseline", "predict-all", "--truth", truth, "--out", pred]).status.success());
    let found = json(&["eval", "--truth", truth, "--pred", pred, "--metrics", "R@1,IoU=0.7", "--json"]);
    let percent = 100.0 * found["metrics"]["R@1,IoU=0.7"].as_f64().unwrap();
    assert!((percent - 11.89).abs() < 0.005, "{percent}");
}

#[test]
fn commands_whose_hint_names_the_truth_format_take_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("queries.txt"), "AO8RW 0.0 6.9##a person puts a book down\n").unwrap();
    std::fs::write(at("gibberish.txt"), "what is this\n").unwrap();
    let commands: [&[&str]; 5] = [
        &["text", "parse"],
        &["text-bias", "--mode", "mask-verb"],
        &["rank", "rewrite"],
        &["rank", "candidates", "--captions", &at("queries.txt")],
        &["pool", "make"],
    ];
    for (number, command) in commands.into_iter().enumerate() {
        let (input, out) = (at("gibberish.txt"), at(&format!("out-{number}")));
        let refused = cuemark(&[command, &["--in", &input, "--out", &out]].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            refused.status.code() == Some(1) && said.contains("hint: name the layout with `--truth-format`"),
            "{said}"
        );
        let named = [command, &["--in", &input, "--out", &out, "--truth-format", "charades-sta"]].concat();
        let refused = cuemark(&named);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && said.contains("gibberish.txt:1"), "{said}");
    }
    let found = json(&[
        "text",
        "parse",
        "--in",
        &at("queries.txt"),
        "--truth-format",
        "charades-sta",
        "--out",
        &at("p"),
        "--json",
    ]);
    assert_eq!(found["queries"], 1);
}

#[test]
fn the_quick_demo_shows_a_gap_for_guesses_and_answers_from_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let found = json(&["demo", "--quick", "--out", out, "--json"]);
    let of = |name: &str, split: &str| {
        let runs = found["results"].as_array().unwrap();
        let tests = runs.iter().find(|run| run["model"] == name).unwrap()["tests"].as_array().unwrap();
        let test = tests.iter().find(|test| test["test"] == split).unwrap();
        test["metrics"]["R@1,IoU=0.5"]["value"].as_f64().unwrap()
    };
    assert!(of("bias-mode", "test-iid") > of("bias-mode", "test-ood") + 0.1);
    assert_eq!((of("oracle", "test-iid"), of("oracle", "test-ood")), (1.0, 1.0));
    // The index has the test videos as files that can be played, and was asked three sentences, some of which it answers, mostly
    // rightly; a fourth asks for what no film shows.
    let videos = found["index"]["status"]["videos"].as_u64().unwrap();
    let answers = found["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 4);
    let answered: Vec<&Value> =
        answers[..3].iter().filter(|asked| !asked["answers"].as_array().unwrap().is_empty()).collect();
    assert!(answered.iter().any(|asked| asked["answers"][0]["right"] == true), "{answers:?}");
    assert!(answered.iter().all(|asked| asked["answers"][0]["probability"].as_f64().unwrap() >= 0.5), "{answers:?}");
    assert_eq!(answers[3]["answers"].as_array().unwrap().len(), 0, "nothing good enough: {}", answers[3]);
    let index = format!("{out}/index");
    let sentence = answered[0]["sentence"].as_str().unwrap();
    let asked = json(&["search", &index, sentence, "--least", "0", "--json"]);
    assert_eq!(asked["answers"][0]["span"], answered[0]["answers"][0]["span"]);
    assert!(Path::new(asked["answers"][0]["path"].as_str().unwrap()).is_file());

    // A second run uses what is finished, and serves it when asked to.
    let mut again = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    again.args(["demo", "--quick", "--out", out, "--serve", "--listen", "127.0.0.1:0"]);
    let mut again = again.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(again.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address = said.find_map(|line| Some(line.split_once("the search page is at http://")?.1.to_owned())).unwrap();
    let mut connection = TcpStream::connect(address.split(' ').next().unwrap()).unwrap();
    connection.write_all(b"GET /api/v1/videos HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    connection.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert!(Command::new("kill").args(["-INT", &again.id().to_string()]).status().unwrap().success());
    let output = again.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("report: "), "the results come before the page");

    // Where there is no ffmpeg the index is made of features, and the demo says so.
    std::fs::remove_dir_all(&index).unwrap();
    let mut without = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    let without = without.args(["demo", "--quick", "--out", out, "--json"]).env("PATH", "").output().unwrap();
    let said = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(without.status.success() && said.contains("cannot run `ffmpeg`: it is not installed"), "{said}");
    let found: Value = serde_json::from_slice(&without.stdout).unwrap();
    assert_eq!(found["index"]["status"]["videos"], videos);
    assert!(json(&["search", &index, sentence, "--least", "0", "--json"])["answers"][0]["path"].is_null());
}

#[test]
fn models_are_quoted_with_their_results_in_any_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    let output = command.args(["models", "list", "--json"]).current_dir(folder.path()).output().unwrap();
    let models: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let quoted = models.iter().find(|model| model["name"] == "2d-tan").unwrap();
    assert!(quoted["world"]["value"].as_f64().is_some_and(|value| value > 0.1), "{quoted}");
}

#[cfg(unix)]
#[test]
fn without_ffmpeg_no_index_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("film.mp4"), "not looked at").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    command.args(["index", "create", "index", "film.mp4"]).current_dir(folder.path()).env("PATH", "/nowhere");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("it is not installed") && said.contains("apt-get install ffmpeg"), "{said}");
    assert!(!folder.path().join("index").exists(), "nothing stays behind");
}
