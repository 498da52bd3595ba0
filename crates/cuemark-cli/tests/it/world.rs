//! The built-in world proves that our measurements measure what they say: what it guarantees by construction must show.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Makes a world of the given bias and returns its audit.
fn audited(folder: &Path, bias: &str) -> Value {
    let world = folder.join(format!("bias-{bias}"));
    let cuemark = |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_cuemark")).args(arguments).output().unwrap();
    let path = world.to_str().unwrap();
    assert!(
        cuemark(&["world", "make", "--out", path, "--videos", "1000", "--bias", bias, "--seed", "0"]).status.success()
    );
    let audit = cuemark(&["world", "audit", path, "--json"]);
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stderr));
    serde_json::from_slice(&audit.stdout).unwrap()
}

/// The gap of a baseline from test-iid to test-ood: its value and its 95 % interval.
fn gap(audit: &Value, baseline: &str) -> [f64; 3] {
    let gaps = audit["gaps"]["baselines"].as_array().unwrap();
    let found = gaps.iter().find(|gap| gap["baseline"] == baseline).unwrap();
    ["gap", "low", "high"].map(|figure| found[figure].as_f64().unwrap())
}

#[test]
fn guesses_lose_out_of_distribution_exactly_when_there_is_bias() {
    let folder = tempfile::tempdir().unwrap();
    let (without, with) = (audited(folder.path(), "0"), audited(folder.path(), "1"));
    for baseline in ["bias-draw", "bias-density", "bias-mode", "bias-verb"] {
        let [value, low, high] = gap(&without, baseline);
        assert!(low <= 0.0 && 0.0 <= high, "{baseline} at bias 0: {value} ({low} to {high})");
    }
    for baseline in ["bias-density", "bias-mode", "bias-verb"] {
        let [value, low, _] = gap(&with, baseline);
        assert!(low > 0.05, "{baseline} at bias 1: {value} (from {low})");
    }
    for audit in [&without, &with] {
        for oracle in audit["world"]["oracle"].as_array().unwrap() {
            assert_eq!(oracle["gap"]["value"].as_f64(), Some(0.0), "{oracle}");
        }
        assert_eq!(audit["world"]["pools"]["precision"]["value"], 1.0);
        assert_eq!(audit["world"]["graded"]["exact"]["value"], 1.0);
        assert!(audit["constructed"]["pools"]["pools"].as_u64().unwrap() > 0);
        // Words alone put better candidates first.
        let tens = audit["constructed"]["candidates"]["mean_by_tens"].as_array().unwrap();
        assert!(tens[0].as_f64() > tens[3].as_f64(), "{tens:?}");
    }
}
