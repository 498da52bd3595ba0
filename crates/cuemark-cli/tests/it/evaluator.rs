//! The evaluator as a person with a prediction file meets it: files that do not belong together, pipes, names, tables.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use cuemark_testkit::fixture;
use serde_json::{Value, json};

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// Twenty queries about twenty videos of 100 s, each with its moment from 10 to 20 s.
    fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let truth = |n: usize| {
            json!({ "qid": n, "query": format!("a ball spins {n} times"), "video": format!("v{n}"), "duration": 100.0,
                    "spans": [[10.0, 20.0]] })
        };
        scene.write("truth.jsonl", (0..20).map(truth));
        scene.answers("good.jsonl", 0..20, &[(10.0, 20.0, 0.9), (40.0, 50.0, 0.2)]);
        scene.answers("bad.jsonl", 0..20, &[(60.0, 70.0, 0.9), (80.0, 90.0, 0.2)]);
        scene.write(
            "fair.jsonl",
            (0..20).map(|n| {
                let start = if n % 2 == 0 { 10.0 } else { 70.0 };
                json!({ "qid": n, "vid": format!("v{n}"), "pred_relevant_windows": [[start, start + 10.0, 0.5]] })
            }),
        );
        scene
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, lines: impl Iterator<Item = Value>) {
        let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
        std::fs::write(self.path(name), lines.join("\n") + "\n").unwrap();
    }

    /// QVHighlights' layout, every query answered alike.
    fn answers(&self, name: &str, ids: std::ops::Range<usize>, windows: &[(f64, f64, f64)]) {
        let line = |n| json!({ "qid": n, "vid": format!("v{n}"), "pred_relevant_windows": windows });
        self.write(name, ids.map(line));
    }

    fn eval(&self, pred: &str, more: &[&str]) -> Output {
        let (truth, pred) = (self.path("truth.jsonl"), self.path(pred));
        cuemark(&[&["eval", "--truth", &truth, "--pred", &pred], more].concat())
    }
}

fn cuemark(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = cuemark_testkit::program(env!("CARGO_BIN_EXE_cuemark"));
    command.args(arguments);
    command
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[test]
fn eval_compare_and_report_refuse_a_file_for_other_queries() {
    let scene = Scene::new();
    scene.answers("other.jsonl", 100..120, &[(10.0, 20.0, 0.9)]);
    let refused = scene.eval("other.jsonl", &[]);
    assert_eq!(code(&refused), 1);
    assert!(
        err(&refused).contains("none of its queries is in the truth, and 0 of the truth's 20 queries are answered")
    );
    assert!(err(&refused).contains("hint: ") && err(&refused).contains("`--lenient`"), "{}", err(&refused));
    let (truth, good, other) = (scene.path("truth.jsonl"), scene.path("good.jsonl"), scene.path("other.jsonl"));
    assert_eq!(code(&cuemark(&["compare", "--truth", &truth, &good, &other])), 1);
    let report = scene.path("report");
    let arguments = ["report", "--truth", &truth, "--pred", &other, "--out", &report];
    assert_eq!(code(&cuemark(&arguments)), 1);
    assert!(!Path::new(&report).exists(), "nothing is written");
    let lenient = scene.eval("other.jsonl", &["--lenient"]);
    assert_eq!(code(&lenient), 0);
    assert!(err(&lenient).contains("scored all the same"));
}

#[test]
fn a_misspelt_key_is_named_in_predictions_and_in_truth() {
    let scene = Scene::new();
    scene.write("slip.jsonl", (0..20).map(|n| json!({ "qid": n, "pred_relevant_window": [[1, 2, 0.5]] })));
    let refused = scene.eval("slip.jsonl", &[]);
    assert_eq!(code(&refused), 1);
    assert!(err(&refused).contains("did you mean `pred_relevant_windows`?"), "{}", err(&refused));
    // Saliency beside it is nothing that a span's metric could score.
    let salient = |n: usize| json!({ "qid": n, "pred_relevant_window": [[1, 2, 0.5]], "pred_saliency_scores": [0.5] });
    scene.write("salient.jsonl", (0..20).map(salient));
    let refused = scene.eval("salient.jsonl", &["--metrics", "mIoU"]);
    assert_eq!(code(&refused), 1);
    assert!(err(&refused).contains("did you mean `pred_relevant_windows`?"), "{}", err(&refused));
    let unread = |n: usize| json!({ "qid": n, "query": "x", "vid": format!("v{n}"), "duratoin": 100.0, "relevant_windows": [[10, 20]] });
    scene.write("truth.jsonl", (0..20).map(unread));
    let refused = scene.eval("good.jsonl", &[]);
    assert_eq!(code(&refused), 1);
    let slip = "20 lines have a field `duratoin` (first: line 1): did you mean `duration`?";
    assert!(err(&refused).contains(slip), "{}", err(&refused));
    let truth = |n: usize| json!({ "qid": n, "query": "x", "video": format!("v{n}"), "duratoin": 100.0, "spans": [[10.0, 20.0]] });
    scene.write("truth.jsonl", (0..20).map(truth));
    let noted = scene.eval("good.jsonl", &["--metrics", "mIoU"]);
    assert_eq!(code(&noted), 0);
    let note = "20 lines have an unknown field `duratoin`, which was ignored; did you mean `duration`? (first: line 1, query `0`)";
    assert!(err(&noted).contains(note), "{}", err(&noted));
}

#[test]
fn units_order_and_reversed_spans_are_noted_with_their_first_place() {
    let scene = Scene::new();
    scene.answers("ms.jsonl", 0..20, &[(10_000.0, 20_000.0, 0.9)]);
    let said = err(&scene.eval("ms.jsonl", &[]));
    assert!(said.contains("look like milliseconds") && said.contains("(first: line 1, query `0`)"), "{said}");
    scene.answers("turned.jsonl", 0..20, &[(40.0, 50.0, 0.2), (10.0, 20.0, 0.9)]);
    assert!(err(&scene.eval("turned.jsonl", &[])).contains("in 20 of 20 lists a later answer has a higher score"));
    assert!(!err(&scene.eval("turned.jsonl", &["--order", "score"])).contains("higher score"));
    scene.answers("reversed.jsonl", 0..20, &[(20.0, 10.0, 0.9)]);
    let said = err(&scene.eval("reversed.jsonl", &[]));
    assert!(said.contains("20 predicted spans end before they start; reversed spans keep their rank and hit nothing"));
    assert!(said.contains("`R@5,IoU=0.3` looks at no more than R@1 does"), "{said}");
    let json: Value = serde_json::from_slice(&scene.eval("reversed.jsonl", &["--json"]).stdout).unwrap();
    assert_eq!(json["notes"].as_array().unwrap().len(), 2, "{json:#}");
}

#[test]
fn ids_that_are_row_numbers_do_not_join_files_of_different_videos() {
    let scene = Scene::new();
    let elsewhere = |n: usize| json!({ "qid": n, "vid": format!("x{n}"), "pred_relevant_windows": [[10, 20, 0.5]] });
    scene.write("elsewhere.jsonl", (0..20).map(elsewhere));
    let refused = scene.eval("elsewhere.jsonl", &[]);
    assert_eq!(code(&refused), 1);
    assert!(err(&refused).contains("query `0` is answered in `x0`, its truth lies in `v0`"), "{}", err(&refused));
}

#[test]
fn an_array_of_records_is_diagnosed_as_one() {
    let scene = Scene::new();
    let rows = json!([{ "qid": 0, "vid": "v0", "pred_relevant_windows": [[10, 20, 0.5]] }]);
    std::fs::write(scene.path("rows.json"), rows.to_string()).unwrap();
    let refused = err(&scene.eval("rows.json", &[]));
    assert!(refused.contains("the file is one JSON array") && refused.contains("jq -c"), "{refused}");
}

#[test]
fn predictions_come_through_a_pipe_and_through_a_shells_substitution() {
    let scene = Scene::new();
    let expected = out(&scene.eval("good.jsonl", &["--metrics", "mIoU"]));
    let truth = scene.path("truth.jsonl");
    let mut child = command(&["eval", "--truth", &truth, "--pred", "-", "--metrics", "mIoU"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&std::fs::read(scene.path("good.jsonl")).unwrap()).unwrap();
    assert_eq!(out(&child.wait_with_output().unwrap()), expected);
    let script = format!(
        "{} eval --truth <(cat {truth}) --pred <(gzip -c {}) --metrics mIoU",
        env!("CARGO_BIN_EXE_cuemark"),
        scene.path("good.jsonl")
    );
    let substituted = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(out(&substituted), expected, "{}", err(&substituted));
    let both = cuemark(&["eval", "--truth", "-", "--pred", "-"]);
    assert_eq!(code(&both), 2);
}

#[test]
fn a_result_that_cannot_be_written_is_exit_1_and_a_closed_pipe_is_none() {
    let scene = Scene::new();
    let (truth, pred) = (scene.path("truth.jsonl"), scene.path("good.jsonl"));
    let arguments = ["eval", "--truth", &truth, "--pred", &pred];
    let full = command(&arguments).stdout(File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(code(&full), 1);
    assert!(err(&full).contains("cannot write the result to standard output"), "{}", err(&full));
    let mut child = command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn names_that_do_not_exist_are_exit_2_and_errors_are_json_where_json_was_asked_for() {
    let scene = Scene::new();
    for wrong in [
        &["--metrics", "R@1,IuO=0.5"][..],
        &["--metrics", ""],
        &["--preset", "qvhighlight"],
        &["--pred-format", "qvh"],
        &["--truth-format", "qvh"],
    ] {
        assert_eq!(code(&scene.eval("good.jsonl", wrong)), 2, "{wrong:?}");
    }
    let refused = scene.eval("good.jsonl", &["--metrics", "R@1,IuO=0.5", "--json"]);
    assert!(refused.stdout.is_empty());
    let error: Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!((&error["exit"], &error["hint"]), (&json!(2), &json!("did you mean `R@1,IoU=0.5`?")));
    let usage: Value = serde_json::from_slice(&cuemark(&["eval", "--json"]).stderr).unwrap();
    assert_eq!(usage["exit"], 2);
    let gone = scene.eval("gone.jsonl", &["--format", "json"]);
    let error: Value = serde_json::from_slice(&gone.stderr).unwrap();
    assert_eq!((code(&gone), &error["exit"]), (1, &json!(1)));
}

#[test]
fn quiet_leaves_notes_out_and_errors_in() {
    let scene = Scene::new();
    assert!(!scene.eval("fair.jsonl", &[]).stderr.is_empty(), "one answer a query is noted");
    let quiet = scene.eval("fair.jsonl", &["--quiet"]);
    assert_eq!((code(&quiet), err(&quiet)), (0, String::new()));
    assert!(err(&scene.eval("gone.jsonl", &["-q"])).starts_with("error: "));
}

#[test]
fn metrics_go_by_the_names_that_people_know() {
    let scene = Scene::new();
    let shown = out(&scene.eval("good.jsonl", &["--metrics", "R1@0.5,MR-full-mAP,Recall@5,miou"]));
    for name in ["R@1,IoU=0.5", "mAP", "R@5,IoU=0.3", "R@5,IoU=0.5", "R@5,IoU=0.7", "mIoU"] {
        assert!(shown.lines().any(|line| line.starts_with(&format!("{name} "))), "{name} in\n{shown}");
    }
    let list = cuemark(&["eval", "--list-metrics"]);
    assert_eq!(code(&list), 0);
    assert!(out(&list).contains("MR-full-mAP") && out(&list).contains("video-llm"));
    let list: Value = serde_json::from_slice(&cuemark(&["eval", "--list-metrics", "--json"]).stdout).unwrap();
    assert_eq!(list["presets"].as_array().unwrap().len(), 15);
}

#[test]
fn a_preset_shows_its_headline_and_the_rest_on_demand() {
    let (truth, pred) = (
        fixture("datasets/qvhighlights/highlight_val_release.jsonl").into_string(),
        fixture("predictions/qvhighlights.jsonl").into_string(),
    );
    let lenient = ["eval", "--truth", &truth, "--pred", &pred, "--preset", "video-llm", "--lenient"];
    let shown = cuemark(&lenient);
    assert_eq!(code(&shown), 0, "{}", err(&shown));
    assert!(out(&shown).contains("a query without a span counts as 0"), "{}", out(&shown));
    let scene = Scene::new();
    let brief = out(&scene.eval("good.jsonl", &["--preset", "moment-detr"]));
    let whole = out(&scene.eval("good.jsonl", &["--preset", "moment-detr", "--all"]));
    assert!(brief.contains("more: pass `--all`") && brief.lines().count() < 20, "{brief}");
    assert!(!whole.contains("pass `--all`") && whole.lines().count() > 25, "{whole}");
    let same = out(&scene.eval("good.jsonl", &["--preset", "qvhighlights", "--json"]));
    let alias = out(&scene.eval("good.jsonl", &["--preset", "Moment-DETR", "--json"]));
    let metrics = |text: &str| serde_json::from_str::<Value>(text).unwrap()["metrics"].clone();
    assert_eq!(metrics(&same), metrics(&alias));
}

#[test]
fn a_level_of_confidence_is_a_percentage_or_a_fraction() {
    let scene = Scene::new();
    let percent = out(&scene.eval("fair.jsonl", &["--metrics", "mIoU", "--ci", "95"]));
    assert_eq!(out(&scene.eval("fair.jsonl", &["--metrics", "mIoU", "--ci", "0.95"])), percent);
    assert!(percent.contains("95 % interval"), "{percent}");
}

#[test]
fn any_number_of_files_is_compared_and_missing_answers_are_named() {
    let scene = Scene::new();
    scene.answers("part.jsonl", 0..12, &[(10.0, 20.0, 0.9)]);
    let [truth, a, b, c] = ["truth.jsonl", "bad.jsonl", "good.jsonl", "part.jsonl"].map(|name| scene.path(name));
    let compared = cuemark(&["compare", "--truth", &truth, &a, &b, &c, "--metrics", "R1@0.5,mIoU"]);
    assert_eq!(code(&compared), 0, "{}", err(&compared));
    let text = out(&compared);
    assert!(err(&compared).contains("8 of 20 queries are without an answer"), "{}", err(&compared));
    for expected in ["p, Holm", "C - A", "wins in R@1,IoU=0.5 of", "100.00 *"] {
        assert!(text.contains(expected), "{expected} in\n{text}");
    }
    let json: Value =
        serde_json::from_slice(&cuemark(&["compare", "--truth", &truth, &a, &b, &c, "--json"]).stdout).unwrap();
    assert_eq!(json["files"][2]["missing"], 8);
    let corrected = &json["pairs"][0]["comparisons"]["R@1,IoU=0.5"];
    assert!(corrected["p_corrected"].as_f64().unwrap() > corrected["p_value"].as_f64().unwrap());
    let many = cuemark(&["compare", "--truth", &truth, &a, &b, "--resamples", "100000"]);
    assert!(out(&many).contains("< 0.0001"), "{}", out(&many));
}

#[test]
fn tables_come_as_markdown_latex_and_csv_with_the_same_numbers() {
    let scene = Scene::new();
    let [truth, a, b] = ["truth.jsonl", "bad.jsonl", "good.jsonl"].map(|name| scene.path(name));
    let compare = |format: &str| {
        out(&cuemark(&[
            "compare",
            "--truth",
            &truth,
            &a,
            &b,
            "--metrics",
            "R1@0.5,mIoU",
            "--marks",
            "--format",
            format,
        ]))
    };
    assert!(compare("markdown").contains("| b good | **100.00**<sup>a</sup> | **100.00**<sup>a</sup> |"));
    assert!(compare("latex").contains("b good & \\textbf{100.00}$^{\\mathrm{a}}$ &"), "{}", compare("latex"));
    assert!(compare("csv").contains("b good,100.00,a,100.00,a\n"), "{}", compare("csv"));
    let eval = |format: &str| out(&scene.eval("good.jsonl", &["--metrics", "mIoU", "--ci", "95", "--format", format]));
    assert!(eval("markdown").contains("| mIoU | 100.00 | 100.00 – 100.00 | 20 |"));
    assert!(eval("latex").contains("mIoU & 100.00 & 100.00 -- 100.00 & 20 \\\\"));
    assert!(eval("csv").contains("mIoU,1.000000,1.000000,1.000000,20\n"));
}

#[test]
fn latex_fits_the_column_of_a_paper() {
    if Command::new("pdflatex").arg("--version").output().is_err() {
        eprintln!(
            "SKIPPED, LOUDLY: there is no `pdflatex` here, so no table was set (apt-get install texlive-latex-recommended)"
        );
        return;
    }
    let scene = Scene::new();
    let [truth, a, b, c] = ["truth.jsonl", "bad.jsonl", "good.jsonl", "fair.jsonl"].map(|name| scene.path(name));
    let metrics = "R1,R5,mIoU,mAP,mAP@0.5,mAP@0.75,mAP/short,dR@1,IoU=0.5";
    let report = |name: &str, more: [&str; 2]| {
        let out = scene.path(name);
        let words = ["report", "--truth", &truth, "--pred", &a, "--pred", &b, "--out", &out];
        let reported = cuemark(&[&words[..], &more].concat());
        assert_eq!(code(&reported), 0, "{}", err(&reported));
        std::fs::read_to_string(format!("{out}/report.tex")).unwrap()
    };
    let tables = [
        report("plain", ["--model", "A method with quite a long name"]),
        // A preset's evaluator prints ninety numbers; a page has room for its headline.
        report("preset", ["--preset", "qvhighlights"]),
        out(&cuemark(&[
            "compare",
            "--truth",
            &truth,
            &a,
            &b,
            &c,
            "--metrics",
            metrics,
            "--marks",
            "--format",
            "latex",
        ])),
        out(&scene.eval("good.jsonl", &["--metrics", metrics, "--ci", "95", "--format", "latex"])),
        out(&scene.eval("good.jsonl", &["--preset", "qvhighlights", "--format", "latex"])),
    ];
    let paper = format!(
        "\\documentclass[twocolumn]{{article}}\n\\usepackage{{booktabs}}\n\\begin{{document}}\n{}\n\\end{{document}}\n",
        tables.join("\n\n\\clearpage\n\n")
    );
    std::fs::write(scene.path("paper.tex"), paper).unwrap();
    let set = Command::new("pdflatex")
        .args(["-interaction=nonstopmode", "-halt-on-error", "paper.tex"])
        .current_dir(scene.folder.path())
        .output()
        .unwrap();
    let log = out_lossy(&set);
    assert!(set.status.success(), "{log}");
    for overflow in ["Overfull \\hbox", "Overfull \\vbox", "Float too large"] {
        assert!(!log.contains(overflow), "{log}");
    }
    if let Ok(keep) = std::env::var("CUEMARK_KEEP_PAPER") {
        std::fs::copy(scene.path("paper.pdf"), keep).unwrap();
    }
}

fn out_lossy(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_report_on_part_of_the_queries_says_so_in_its_title_and_takes_metrics() {
    let scene = Scene::new();
    scene.answers("part.jsonl", 0..12, &[(10.0, 20.0, 0.9)]);
    let (truth, part, report) = (scene.path("truth.jsonl"), scene.path("part.jsonl"), scene.path("report"));
    let reported = cuemark(&[
        "report",
        "--truth",
        &truth,
        "--pred",
        &part,
        "--metrics",
        "R1@0.5,mIoU",
        "--no-intervals",
        "--format",
        "markdown",
        "--out",
        &report,
    ]);
    assert_eq!(code(&reported), 0, "{}", err(&reported));
    let page = std::fs::read_to_string(format!("{report}/report.md")).unwrap();
    assert!(page.starts_with("# Moment retrieval report: part (partial: 8 of 20 queries unanswered)"), "{page}");
    assert!(page.contains("| method | R@1,IoU=0.5 | mIoU |"), "{page}");
    assert!(out(&reported).contains("| part | **60.0** | **60.0** |"), "{}", out(&reported));
}
