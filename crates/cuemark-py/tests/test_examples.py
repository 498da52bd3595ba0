"""What the documentation shows, run."""

from __future__ import annotations

import json
import random
import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import WORKSPACE

EXAMPLES = WORKSPACE / "crates/cuemark-py/examples"


@pytest.fixture
def files(tmp_path: Path, fixtures: Path, searched: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the documentation speaks of, in a folder to run it in."""
    for name in ("truth", "a", "b"):
        shutil.copy(fixtures / f"cli/{name}.jsonl", tmp_path)
    shutil.copytree(fixtures / "datasets/charades-sta", tmp_path / "data/charades-sta")
    shutil.copytree(searched / "index", tmp_path / "films")
    rng = random.Random(0)
    (tmp_path / "mine").mkdir()
    with open(tmp_path / "mine/train.jsonl", "w") as file:
        for qid in range(200):
            start = round(rng.random() ** 2 * 15, 2)
            record = {"qid": qid, "query": "she opens it", "video": f"v{qid}", "duration": 20.0, "spans": [[start, start + 3]]}
            file.write(json.dumps(record) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_block_of_the_guide_runs(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (WORKSPACE / "docs/python.md").read_text(), re.DOTALL)
    assert len(blocks) >= 9
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/python.md, block {number}", "exec"), names)
    told = capsys.readouterr().out
    assert "predictions[0, 0]: NaN is not a finite number of seconds" in told
    assert "{1: 4}" in told  # the grades that two pairs of ratings come to


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("score", ["truth.jsonl", "a.jsonl"], "hardest queries: "),
        ("arrays", [], "the best overlaps the truth by"),
        ("splits", ["cuemark-jsonl", "mine", "made"], "test-ood guessing reaches"),
        ("search", ["films", "the red ball spins"], " in 24 videos"),
    ],
)
def test_examples_run(
    name: str, arguments: list[str], told: str, files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert told in capsys.readouterr().out
