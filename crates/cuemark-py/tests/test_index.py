"""`cuemark.Index`: what the program finds, as typed records, with its words where something is wrong."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuemark

@pytest.fixture
def index(searched: Path) -> cuemark.Index:
    return cuemark.Index(searched / "index")


def test_answers_are_those_of_the_program(index: cuemark.Index, searched: Path, program: Any) -> None:
    one, two = index.videos[:2]
    asked: list[tuple[str | None, dict[str, Any], list[Any]]] = [
        ("the red ball spins", {}, []),
        ("a big square jumps -blue", {"top": 3, "least": 0.0}, ["--limit", 3, "--least", 0]),
        ("something frobnicates slowly", {"least": 0.0}, ["--least", 0]),
        ("it leaves", {"video": one, "least": 0.0}, ["--video", one, "--least", 0]),
        ("it leaves", {"video": [one, two], "nms": 0.2, "least": 0.0},
         ["--video", one, "--video", two, "--nms", 0.2, "--least", 0]),
        ("a ball slides", {"tags": ["night"], "exact": True, "least": 0.0}, ["--tag", "night", "--exact", "--least", 0]),
        ("a ball slides", {"within": (2.0, 12.5), "unwanted": ["green"], "least": 0.0},
         ["--within", "2-12.5", "--not", "green", "--least", 0]),
        ("a ball slides", {"two_stage": 4, "least": 0.0}, ["--two-stage", 4, "--least", 0]),
        (None, {"like": (one, 0.0, 5.0), "least": 0.0}, ["--like", f"{one}:0-5", "--least", 0]),
    ]
    for sentence, options, flags in asked:
        told = program.json("search", searched / "index", *([sentence] if sentence else []), *flags)
        found = index.search(sentence, **options)
        assert found.to_dict() == told, sentence
        assert len(found) == len(told["answers"])
        for answer, told_answer in zip(found, told["answers"]):
            assert [answer.start, answer.end] == told_answer["span"]
            assert (answer.video, answer.probability, answer.score) == tuple(
                told_answer[name] for name in ("video", "probability", "score")
            )
            assert list(answer.words.items()) == [(word["word"], word["share"]) for word in told_answer["words"]]
            assert list(answer.concepts.items()) == [(seen["concept"], seen["share"]) for seen in told_answer["concepts"]]
            assert answer.path is None is told_answer["path"]
        assert (found.below_least, found.best_probability) == (told["below_least"], told["best_probability"])
        assert found.unknown_words == told["unknown_words"]


def test_answers_are_best_first_and_where_they_were_looked_for(index: cuemark.Index) -> None:
    found = index.search("the red ball spins", top=5, least=0.0)
    likely = [answer.probability for answer in found]
    assert len(found) == 5 and likely == sorted(likely, reverse=True) and found.best_probability == likely[0]
    assert found[0].video == list(found)[0].video and found[-1].probability == likely[-1]
    with pytest.raises(IndexError):
        found[5]
    night = index.search("the red ball spins", tags="night", least=0.0)
    assert {answer.video for answer in night} <= set(index.videos[::2])
    assert all(3.0 <= answer.start < answer.end <= 9.0 for answer in index.search("it", within=(3.0, 9.0), least=0.0))
    more = index.search(like=found[0], least=0.0)
    assert len(more) > 0
    spans = [(answer.start, answer.end) for answer in more if answer.video == found[0].video]
    itself = np.array([(found[0].start, found[0].end)])
    assert (cuemark.iou(np.array(spans).reshape(-1, 2), itself) <= 0.5).all()
    nothing = index.search("the red ball spins", least=1.0)
    assert len(nothing) == 0 and nothing.below_least == 10 and nothing.best_probability == likely[0]


def test_an_index_tells_what_is_in_it(index: cuemark.Index, searched: Path, program: Any) -> None:
    told = program.json("index", "status", searched / "index", "--videos")
    assert index.status() == told["status"]
    assert index.videos == [video["id"] for video in told["videos"]]
    assert (len(index), index.encoder) == (24, str(searched / "run"))
    frame = index.to_pandas()
    assert list(frame["video"]) == index.videos and set(frame["state"]) == {"present"}
    assert frame["tags"][0] == ["night"]
    answers = index.search("a ball slides", least=0.0).to_pandas()
    assert list(answers.columns) == ["video", "start", "end", "probability", "score", "path"] and len(answers) == 10


def test_what_is_wrong_is_said_as_the_program_says_it(index: cuemark.Index, searched: Path, program: Any, tmp_path: Path) -> None:
    stranded = tmp_path / "stranded"
    shutil.copytree(searched / "index", stranded)
    # It keeps what it needs of its run, so only without that is it stranded.
    shutil.rmtree(stranded / "encoder")
    cases: list[tuple[Any, list[Any], type[Exception]]] = [
        (lambda: cuemark.Index(tmp_path), [tmp_path, "x"], OSError),
        (lambda: cuemark.Index(stranded), [stranded, "x"], ValueError),
        (lambda: cuemark.Index(searched / "index", device="cuda"), [searched / "index", "x", "--device", "cuda"], ValueError),
        (lambda: index.search(""), [searched / "index", ""], ValueError),
        (lambda: index.search("it", video="nobody"), [searched / "index", "it", "--video", "nobody"], ValueError),
    ]
    for call, words, kind in cases:
        done = program.run("search", *words)
        assert done.returncode == 1, done.stdout
        with pytest.raises(kind) as caught:
            call()
        assert isinstance(caught.value, cuemark.CuemarkError)
        said = f"error: {caught.value.message}\n"
        assert done.stderr == said + (f"hint: {caught.value.hint}\n" if caught.value.hint else "")


def test_wrong_arguments_are_named(index: cuemark.Index) -> None:
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"within": "2-3"}, TypeError, "within: a `str` is not (start, end)"),
        ({"within": (5.0, 2.0)}, ValueError, "within: "),
        ({"like": 3}, TypeError, "like: a `int` is neither an Answer nor (video, start, end)"),
        ({"like": ("a", float("nan"), 2.0)}, ValueError, "like: "),
        ({"video": 3}, TypeError, "video: a `int` is neither text nor a list of texts"),
        ({"tags": ["a", 3]}, TypeError, "tags[1]: a `int` is neither text nor a list of texts"),
    ]
    for options, kind, message in cases:
        with pytest.raises(kind) as caught:
            index.search("a ball", **options)
        assert isinstance(caught.value, cuemark.CuemarkError)
        assert caught.value.message.startswith(message), caught.value.message
    with pytest.raises(TypeError, match="path: a `int` is not a path"):
        cuemark.Index(3)  # type: ignore[arg-type]


def test_an_open_index_follows_what_others_do_to_it(searched: Path, program: Any, tmp_path: Path) -> None:
    shutil.copytree(searched / "index", tmp_path / "index")
    index = cuemark.Index(tmp_path / "index")
    before = index.search("the red ball spins", least=0.0)
    gone = before[0].video
    assert len(index) == 24
    program.json("index", "remove", tmp_path / "index", gone)
    time.sleep(1.0)
    assert len(index) == 23 and gone not in index.videos
    assert gone not in {answer.video for answer in index.search("the red ball spins", least=0.0)}


def test_threads_share_an_index(index: cuemark.Index) -> None:
    sentences = ["the red ball spins", "a square jumps", "it leaves", "a star grows"]
    expected = [index.search(sentence, least=0.0).to_dict() for sentence in sentences]
    found: dict[int, Any] = {}

    def ask(number: int) -> None:
        found[number] = index.search(sentences[number], least=0.0).to_dict()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(sentences))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in range(len(sentences))] == expected
