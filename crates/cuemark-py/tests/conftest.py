"""Where tests find their files: fixtures of our own making, published files beside the checkout, the program itself."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import cuemark

WORKSPACE = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return WORKSPACE / "fixtures"


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> Path:
    """The published files; a test that wants them is listed as skipped where they are not."""
    root = Path(os.environ.get("CUEMARK_SHARED", WORKSPACE.parent / "shared"))
    if not root.is_dir():
        log = os.environ.get("CUEMARK_SKIPPED_LOG")
        if log:
            with open(log, "a") as file:
                file.write(f"python {request.node.name}\n")
        pytest.skip("SKIPPED (no shared files)")
    return root


class Program:
    """The `cuemark` program, for tests that hold the package to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *arguments: Any) -> "subprocess.CompletedProcess[str]":
        words = [str(self.path), *map(str, arguments)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def json(self, *arguments: Any) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def program() -> Program:
    places = [os.environ.get("CUEMARK_CLI"), WORKSPACE / "target/debug/cuemark", WORKSPACE / "target/release/cuemark"]
    for place in places:
        if place and Path(place).is_file():
            return Program(Path(place))
    raise FileNotFoundError("build the program first (cargo build), or say where it lies in CUEMARK_CLI")


@pytest.fixture(scope="session")
def searched(program: Any, fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world, a bi-encoder trained on it, and an index of its videos, half of them tagged."""
    root = tmp_path_factory.mktemp("searched")
    program.json("world", "make", "--out", root / "world", "--videos", 24, "--seed", 4)
    run = fixtures / "runs/small-mmn.toml"
    program.json("train", run, "--set", f"data.root={root / 'world'}", "--set", "train.epochs=1", "--out", root / "run")
    store = root / "world/features-motion"
    program.json("index", "create", root / "index", "--encoder", root / "run", "--features", store, "--tag", "day")
    half = [word for name in cuemark.Index(root / "index").videos[::2] for word in ("--only", name)]
    program.json("index", "create", root / "index", "--encoder", root / "run", "--features", store, "--tag", "night",
                 *half, "--force")
    program.json("index", "add", root / "index", "--features", store, "--tag", "day")
    return root
