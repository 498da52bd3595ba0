//! A matrix as a person meets it: filled, failing, killed, stopped, on a full disk; and finished by the next run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A folder with a small world, a small run file and a matrix of two guesses and a model.
struct Scene(tempfile::TempDir);

const RUN: &str = "
[model]
name = '2d-tan'
map = { pre_clips = 8, clips = 8, counts = [7] }
hidden = 16
lstm_layers = 1
kernel = 3
layers = 2
[data]
dataset = 'world'
root = 'world'
word_width = 12
[train]
epochs = 1
batch = 8
rate = 3e-3
[eval]
every = 1.0
";

impl Scene {
    fn new(epochs: usize, more: &str) -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        std::fs::write(scene.path("run.toml"), RUN).unwrap();
        let made = scene.cuemark(&["world", "make", "--out", "world", "--videos", "24"]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        scene.write_matrix(epochs, more);
        scene
    }

    fn write_matrix(&self, epochs: usize, more: &str) {
        let text = format!(
            "name = 'small'\nabout = 'a test'\nbaselines = ['bias-mode', 'oracle']\n\
             [[dataset]]\nname = 'world'\nroot = 'world'\n\
             [[model]]\nname = '2d-tan'\nrun = 'run.toml'\nset = {{ train.epochs = {epochs} }}\n{more}\n\
             [[test]]\nsplit = 'test-iid'\n[[test]]\nsplit = 'test-ood'\ntext = 'mask-verb'\n"
        );
        std::fs::write(self.path("small.toml"), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuemark"));
        command.args(arguments).current_dir(self.0.path());
        command
    }

    fn cuemark(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs the matrix; its exit code and what `--json` says.
    fn bench(&self, more: &[&str]) -> (i32, Value) {
        let output = self.cuemark(&[&["bench", "small.toml", "--out", "out", "--json"], more].concat());
        read(&output)
    }

    fn account(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.path("out/account.json")).unwrap()).unwrap()
    }
}

fn read(output: &Output) -> (i32, Value) {
    let told = serde_json::from_slice(&output.stdout);
    (output.status.code().unwrap(), told.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
}

/// The states of an account, in the order of its cells.
fn states(account: &Value) -> Vec<&str> {
    account["cells"].as_array().unwrap().iter().map(|cell| cell["state"].as_str().unwrap()).collect()
}

/// Waits until `done`; a test that waits for ever says nothing.
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(300), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// The process that fills `cell`, started by `parent`.
fn process_of(parent: u32, cell: &str) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().filter_map(|id| id.parse().ok()).find(|id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(cell)
    })
}

const MODEL: &str = "world.2d-tan.motion.seed0";

fn has_begun(scene: &Scene) -> bool {
    Path::new(&scene.path(&format!("out/cells/{MODEL}/checkpoints/last.safetensors"))).is_file()
}

#[test]
fn a_failing_cell_is_said_and_the_next_run_does_only_what_is_left() {
    let broken =
        "[[model]]\nname = '2d-tan'\nvariant = 'broken'\nrun = 'run.toml'\nset = { train.weights = 'nowhere.pt' }";
    let scene = Scene::new(1, broken);
    let (code, told) = scene.bench(&[]);
    assert_eq!((code, states(&told["account"])), (1, vec!["done", "done", "done", "failed"]));
    let why = told["account"]["cells"][3]["why"].as_str().unwrap();
    assert!(why.contains("nowhere.pt"), "{why}");
    assert_eq!(scene.account()["cells"], told["account"]["cells"], "the file says the same");
    let model = told["results"].as_array().unwrap().iter().find(|run| run["kind"] == "model").unwrap();
    assert_eq!(model["tests"].as_array().unwrap().len(), 2);
    assert!(model["parameters"].as_u64().unwrap() > 1000);

    scene.write_matrix(1, &broken.replace("set = { train.weights = 'nowhere.pt' }", ""));
    let (code, told) = scene.bench(&["--resume"]);
    assert_eq!((code, states(&told["account"])), (0, vec!["before", "before", "before", "done"]));

    // Settings that changed are refused, not trained over; tests that changed are asked again.
    scene.write_matrix(2, "");
    let (code, told) = scene.bench(&[]);
    assert_eq!((code, states(&told["account"])), (1, vec!["before", "before", "failed"]));
    assert!(told["account"]["cells"][2]["hint"].as_str().unwrap().contains("--force"));
    let (code, told) = scene.bench(&["--force"]);
    assert_eq!((code, states(&told["account"])), (0, vec!["before", "before", "done"]));
}

#[test]
fn a_killed_cell_takes_nobody_with_it() {
    let scene = Scene::new(400, "[[model]]\nname = '2d-tan'\nvariant = 'other'\nrun = 'run.toml'");
    let child = scene
        .command(&["bench", "small.toml", "--out", "out", "--json", "--jobs", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut cell = None;
    wait_for("the cell's process", || {
        cell = process_of(child.id(), MODEL).filter(|_| has_begun(&scene));
        cell.is_some()
    });
    signal("-KILL", cell.unwrap());
    let (code, told) = read(&child.wait_with_output().unwrap());
    assert_eq!((code, states(&told["account"])), (1, vec!["done", "done", "failed", "done"]));
    let why = told["account"]["cells"][2]["why"].as_str().unwrap();
    assert!(why.contains("signal 9"), "{why}");
}

#[test]
fn ctrl_c_leaves_a_correct_account_and_the_next_run_finishes() {
    let scene = Scene::new(60, "");
    let child = scene
        .command(&["bench", "small.toml", "--out", "out", "--json", "--jobs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the first checkpoint", || has_begun(&scene));
    signal("-INT", child.id());
    let (code, told) = read(&child.wait_with_output().unwrap());
    assert_eq!((code, states(&told["account"])), (1, vec!["done", "done", "stopped"]));
    let steps = |scene: &Scene| {
        let note = std::fs::read(scene.path(&format!("out/cells/{MODEL}/trained.json"))).unwrap();
        serde_json::from_slice::<Value>(&note).unwrap()["steps"].as_u64().unwrap()
    };
    let before = steps(&scene);
    let (code, told) = scene.bench(&[]);
    assert_eq!((code, states(&told["account"])), (0, vec!["before", "before", "done"]));
    assert!(0 < before && before < steps(&scene));
}

#[test]
fn a_cell_too_many_for_the_memory_is_set_back_and_finished_later() {
    let scene = Scene::new(60, "");
    assert_eq!(scene.bench(&[]).0, 0);
    // Two more like the finished one. Its note says that a cell needs next to nothing, so both begin; side by side they
    // need more than there is, and one has to wait for the other.
    let note = scene.path(&format!("out/cells/{MODEL}/done.json"));
    let mut done: Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
    let peak = done["peak_mib"].as_u64().unwrap();
    done["peak_mib"] = 1.into();
    std::fs::write(&note, done.to_string()).unwrap();
    let more = |name: &str| {
        format!("[[model]]\nname = '2d-tan'\nvariant = '{name}'\nrun = 'run.toml'\nset = {{ train.epochs = 60 }}\n")
    };
    scene.write_matrix(60, &(more("one") + &more("two")));
    let memory = format!("{}MiB", peak + peak / 5);
    let output = scene.cuemark(&["bench", "small.toml", "--out", "out", "--json", "--jobs", "2", "--memory", &memory]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (code, told) = read(&output);
    assert_eq!((code, states(&told["account"])), (0, vec!["before", "before", "before", "done", "done"]), "{said}");
    assert_eq!(said.matches("set back for want of memory").count(), 1, "{said}");
}

#[test]
fn a_full_disk_fails_cells_and_not_the_account() {
    let scene = Scene::new(1, "");
    // No file may grow past 16 KiB: notes and small answers fit, a checkpoint does not. As on a full disk, writing fails.
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" bench small.toml --out out --json";
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_cuemark")])
        .current_dir(scene.0.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let account = scene.account();
    let cells = account["cells"].as_array().unwrap();
    assert_eq!(cells[2]["state"], "failed", "{account}");
    let (code, told) = scene.bench(&[]);
    assert_eq!(code, 0, "{told}");
    assert!(states(&told["account"]).iter().all(|state| ["done", "before"].contains(state)));
}

#[test]
fn a_matrix_can_be_looked_at_without_running_it() {
    let scene = Scene::new(1, "");
    let output = scene.cuemark(&["bench", "small.toml", "--dry-run", "--json"]);
    let (code, told) = read(&output);
    assert_eq!((code, told["cells"].as_array().unwrap().len()), (0, 3));
    assert!(!scene.path("out").exists());
    let missing = scene.cuemark(&["bench", "no-such-matrix"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("--list"));
}

#[test]
fn shares_of_one_folder_that_are_filled_at_once_come_to_the_whole() {
    let scene = Scene::new(1, "[[model]]\nname = '2d-tan'\nvariant = 'other'\nrun = 'run.toml'\n");
    // The matrix films its own world: both shares want it, and neither may spoil the other's.
    let text = std::fs::read_to_string(scene.path("small.toml")).unwrap();
    std::fs::write(scene.path("small.toml"), text.replace("root = 'world'", "world = { videos = 24 }")).unwrap();
    let shares = ["1/2", "2/2"].map(|share| {
        let words = ["bench", "small.toml", "--out", "out", "--json", "--shard", share];
        scene.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for share in shares {
        let (code, told) = read(&share.wait_with_output().unwrap());
        assert_eq!((code, states(&told["account"])), (0, vec!["done", "done"]));
    }
    let results = |name: &str| -> Value { serde_json::from_slice(&std::fs::read(scene.path(name)).unwrap()).unwrap() };
    let models = |file: &Value| {
        let run = |run: &Value| format!("{} {}", run["model"].as_str().unwrap(), run["variant"].as_str().unwrap());
        let mut found: Vec<String> = file["results"].as_array().unwrap().iter().map(run).collect();
        found.sort();
        found
    };
    let whole = results("out/results.json");
    assert_eq!(models(&whole), ["2d-tan ", "2d-tan other", "bias-mode ", "oracle "]);
    assert_eq!(results("out/results-2-of-2.json")["shard"], "2/2");
    let data: Vec<_> =
        std::fs::read_dir(scene.path("out/data")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(data, ["world-24-bias0.8-seed0"], "what was made beside it is gone");

    // A share that was cut off is named and left out; filling it again mends it without training anything.
    std::fs::write(scene.path("out/results-1-of-2.json"), "{\"runs\": 1, \"name\": \"sma").unwrap();
    let output = scene.cuemark(&["bench", "small.toml", "--out", "out", "--shard", "2/2"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("results-1-of-2.json is damaged and left out"), "{said}");
    assert_eq!(models(&results("out/results.json")).len(), 2);
    let (code, told) = scene.bench(&["--shard", "1/2"]);
    assert_eq!((code, states(&told["account"])), (0, vec!["before", "before"]));
    assert_eq!(results("out/results.json")["results"].as_array().unwrap().len(), 4);

    let refused = scene.cuemark(&["bench", "small.toml", "--shard", "3/2"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn guesses_over_one_corpus_stand_in_their_order() {
    let scene = Scene::new(1, "");
    let text = "name = 'corpus'\nabout = 'a test'\n\
                baselines = ['random-spans', 'random-moments', 'caption-order', 'perfect-reader', 'bias-mode']\n\
                [[dataset]]\nname = 'world'\nprotocol = 'ranked'\nworld = { videos = 150, strengths = ['weak'] }\n\
                [[test]]\nsplit = 'test'\namong = 'pool'\nmetrics = ['NDCG@20,IoU=0.5']\nanswers = 40\n";
    std::fs::write(scene.path("corpus.toml"), text).unwrap();
    let (code, told) = read(&scene.cuemark(&["bench", "corpus.toml", "--out", "corpus", "--json"]));
    assert_eq!(code, 0, "{told}");
    let figure = |name: &str| {
        let run = told["results"].as_array().unwrap().iter().find(|run| run["model"] == name).unwrap();
        assert_eq!(run["protocol"], "ranked");
        run["tests"][0]["metrics"]["NDCG@20,IoU=0.5"]["value"].as_f64().unwrap()
    };
    let [spans, moments, captions, reader] =
        ["random-spans", "random-moments", "caption-order", "perfect-reader"].map(figure);
    assert!(spans < moments && 3.0 * moments < captions, "{spans} {moments} {captions} {reader}");
    assert!(reader > 2.0 * moments, "{reader}: who knows everything but not what was graded");
    assert_eq!(told["results"].as_array().unwrap().len(), 4, "a guess of one video has nothing to say here");
}
