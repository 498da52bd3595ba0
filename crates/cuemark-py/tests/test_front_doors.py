"""One question through three doors (terminal, Python, HTTP): the same answers, and for the same mistake the same advice in the
words of each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest

import cuemark


class Server:
    def __init__(self, address: str) -> None:
        self.address = address

    def search(self, **fields: Any) -> tuple[int, Any]:
        try:
            with urlopen(f"{self.address}/api/v1/search?{urlencode(fields)}", timeout=60) as answer:
                return answer.status, json.load(answer)
        except HTTPError as refused:
            return refused.code, json.load(refused)


@pytest.fixture(scope="module")
def server(searched: Path, program: Any) -> Iterator[Server]:
    words = [program.path, "serve", searched / "index", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "listening on " in line:
                break
        else:
            raise AssertionError("".join(lines))
        yield Server(line.split("listening on ")[1].strip())
        process.terminate()


@pytest.mark.parametrize("sentence", ["the red ball spins", "a big square jumps -blue", "something frobnicates slowly"])
def test_the_three_give_the_same_fields(sentence: str, server: Server, searched: Path, program: Any) -> None:
    index = cuemark.Index(searched / "index")
    status, over_http = server.search(q=sentence, limit=4, least=0)
    assert status == 200, over_http
    # What it took is the server's own; everything else is one answer.
    assert over_http.pop("took_ms") >= 0.0
    in_terminal = program.json("search", searched / "index", sentence, "--limit", 4, "--least", 0)
    in_python = index.search(sentence, top=4, least=0.0).to_dict()
    assert in_terminal == in_python
    for told, here in zip(over_http["answers"], in_terminal["answers"], strict=True):
        # Scores are of single precision, which the server writes with as few digits as name the number.
        assert np.float32(told["score"]) == np.float32(here["score"])
        told["score"] = here["score"]
        assert {name: (told[name], here[name]) for name in here if told[name] != here[name]} == {}
    assert over_http == in_terminal
    assert len(over_http["answers"]) == 4


def test_the_same_mistake_is_answered_in_the_words_of_each(server: Server, searched: Path, program: Any) -> None:
    index = cuemark.Index(searched / "index")
    done = program.run("search", searched / "index", "the red ball spins", "--two-stage", 0)
    assert done.returncode == 2
    with pytest.raises(cuemark.CuemarkError) as caught:
        index.search("the red ball spins", two_stage=0)
    status, problem = server.search(q="the red ball spins", two_stage=0)
    wrong = "`two_stage`: 0 is not in 1 to 1000"
    assert (status, problem["detail"]) == (400, wrong)
    assert caught.value.message == wrong.replace("`", "")
    assert done.stderr == f"error: {wrong}\nhint: pass at least `--two-stage 1`\n"
    assert caught.value.hint == "pass at least `two_stage=1`"
    assert problem["hint"] == 'pass at least `"two_stage": 1`'
    assert problem["settings"] == {"two_stage": "1"}


def test_a_film_that_is_not_there_is_looked_up_where_each_can(server: Server, searched: Path, program: Any) -> None:
    index = cuemark.Index(searched / "index")
    done = program.run("search", searched / "index", "it", "--video", "nobody")
    with pytest.raises(cuemark.CuemarkError) as caught:
        index.search("it", video="nobody")
    status, problem = server.search(q="it", video="nobody")
    assert (done.returncode, status) == (1, 404)
    assert caught.value.message == problem["detail"] == done.stderr.splitlines()[0].removeprefix("error: ")
    assert done.stderr.splitlines()[1] == "hint: `cuemark index status INDEX --videos` lists those that are"
    assert problem["hint"] == "`GET /api/v1/videos` lists those that are"
