"""The program inside the wheel: the same command as the binary, however it is started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cuemark

TRUTH = {"qid": 1, "query": "a ball spins", "video": "v", "duration": 100.0, "spans": [[10.0, 20.0]]}
ANSWER = {"qid": 1, "predictions": [{"span": [10.0, 20.0], "score": 0.9}]}


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cuemark", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def write(folder: Path) -> None:
    (folder / "truth.jsonl").write_text(json.dumps(TRUTH) + "\n")
    (folder / "mine.jsonl").write_text(json.dumps(ANSWER) + "\n")


def test_a_file_is_scored_as_by_the_library(tmp_path: Path) -> None:
    write(tmp_path)
    done = run("eval", "--truth", "truth.jsonl", "--pred", "mine.jsonl", "--metrics", "mIoU", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = cuemark.evaluate(tmp_path / "truth.jsonl", tmp_path / "mine.jsonl", metrics=["mIoU"])
    assert json.loads(done.stdout)["metrics"]["mIoU"] == found.metrics["mIoU"] == 1.0


def test_mistakes_have_the_program_s_exit_codes_and_words(tmp_path: Path) -> None:
    write(tmp_path)
    absent = run("eval", "--truth", "nowhere", "--pred", "mine.jsonl", folder=tmp_path)
    assert absent.returncode == 1 and "hint: check the path" in absent.stderr
    assert "Traceback" not in absent.stderr
    unknown = run("eval", "--truth", "truth.jsonl", "--pred", "mine.jsonl", "--metrics", "foo@1", folder=tmp_path)
    assert unknown.returncode == 2 and "`foo@1` is not a metric" in unknown.stderr
    as_json = run("eval", "--json", "--truth", "nowhere", "--pred", "mine.jsonl", folder=tmp_path)
    assert json.loads(as_json.stderr)["exit"] == 1


def test_the_command_is_installed_beside_the_interpreter(tmp_path: Path) -> None:
    # Beside the interpreter itself: a link to it lies elsewhere in a virtual environment.
    script = shutil.which("cuemark", path=os.path.dirname(sys.executable))
    assert script is not None
    version = subprocess.run([script, "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert version.stdout.strip() == f"cuemark {cuemark.__version__}"


def test_cells_of_a_study_are_filled_by_the_interpreter_too(tmp_path: Path) -> None:
    made = run("world", "make", "--out", "world", "--videos", "12", "--seed", "1", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    (tmp_path / "small.toml").write_text(
        """name = "small"
about = "a test"
baselines = ["bias-mode"]
[[dataset]]
name = "world"
root = "world"
[[test]]
split = "test-iid"
"""
    )
    # No program of that name on the path: only the interpreter can start a cell.
    ran = run("bench", "small.toml", "--json", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr + ran.stdout


def test_a_reader_that_leaves_is_no_error_and_a_full_disk_is(tmp_path: Path) -> None:
    write(tmp_path)
    words = [sys.executable, "-m", "cuemark", "eval", "--truth", "truth.jsonl", "--pred", "mine.jsonl"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "cannot write the result" in done.stderr


def test_a_second_command_in_one_interpreter_is_the_second_one(tmp_path: Path) -> None:
    code = "from cuemark._native import run_command as run; run(['--version'], []); print(run(['eval', '--json'], []))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [f"cuemark {cuemark.__version__}", "2"]
    assert "--truth" in json.loads(done.stderr)["error"]
