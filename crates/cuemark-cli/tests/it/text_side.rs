//! Asking an index of `concepts` takes the side of sentences only: it is asked where nothing else is on the machine.

use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

fn cuemark(cache: &Utf8Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    command.args(arguments).env("CUEMARK_CACHE", cache).output().unwrap()
}

fn json(cache: &Utf8Path, arguments: &[&str]) -> Value {
    let output = cuemark(cache, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "cuemark {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn make_film(path: &Utf8Path, source: &str) {
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-y", "-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p", path.as_str()])
        .status();
    assert!(made.unwrap().success());
}

#[test]
fn a_question_opens_no_network_that_looks_hears_or_reads_and_a_film_says_which_it_needs() {
    let looking = ["i3d", "efficientnet-lite0"];
    let [Some(weights), Some(_), Some(_)] = ["minilm", looking[0], looking[1]].map(cuemark_testkit::weights) else {
        return;
    };
    let guard = tempfile::tempdir().unwrap();
    let home = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
    // A cache of our own, from which weights can be taken away. Those that hear and read were never pulled here.
    let (cache, index) = (home.join("cache"), home.join("index"));
    std::fs::create_dir_all(cache.join("weights")).unwrap();
    for name in ["minilm", looking[0], looking[1]] {
        symlink(weights.join("weights").join(name), cache.join("weights").join(name)).unwrap();
    }
    make_film(&home.join("bars.mp4"), "smptebars=s=64x48:r=8:d=2");
    make_film(&home.join("grey.mp4"), "color=gray:s=64x48:r=8:d=2");
    json(&cache, &["index", "create", index.as_str(), home.join("bars.mp4").as_str()]);
    let ask = || json(&cache, &["search", index.as_str(), "a television screen with a yellow qqqqx", "--least", "0"]);
    let before = ask();
    assert_eq!(before["answers"][0]["video"], "bars");
    assert_eq!((&before["calibrated"], &before["unknown_words"]), (&false.into(), &serde_json::json!(["qqqqx"])));
    assert_eq!(before["unseen"][0]["word"], "yellow", "no class name is a colour: {before:#}");

    for name in looking {
        std::fs::remove_file(cache.join("weights").join(name)).unwrap();
    }
    assert_eq!(ask(), before, "the same answers without the networks that look");
    let status = json(&cache, &["index", "status", index.as_str()]);
    assert_eq!(status["status"]["videos"], 1);
    let refused = cuemark(&cache, &["index", "add", index.as_str(), home.join("grey.mp4").as_str()]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && looking.iter().all(|name| said.contains(name)), "{said}");
    assert!(said.contains("weights pull i3d efficientnet-lite0"), "{said}");
    // The names' vectors lie in the index; damaged ones are encoded again rather than believed.
    let names = index.join("encoder/names");
    let mut bytes = std::fs::read(&names).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x40;
    std::fs::write(&names, bytes).unwrap();
    assert_eq!(ask(), before);
    std::fs::remove_file(cache.join("weights/minilm")).unwrap();
    let refused = cuemark(&cache, &["search", index.as_str(), "a screen"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("minilm"), "{said}");
}
