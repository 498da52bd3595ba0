"""Exceptions name the argument and the row, and say what the command line says."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuemark

TRUTH = np.array([[0.0, 10.0], [5.0, 15.0]])
ANSWERS = np.array([[[0.0, 10.0]], [[5.0, 15.0]]])


def message(kind: type[Exception], *arguments: Any, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        cuemark.evaluate(*arguments, **options)
    assert isinstance(caught.value, cuemark.CuemarkError)
    return caught.value.message


def test_wrong_types_name_the_argument() -> None:
    assert message(TypeError, 3, ANSWERS) == "truth: a `int` is no truth"
    assert message(TypeError, TRUTH, object()) == "predictions: a `object` is no predictions"
    assert message(TypeError, TRUTH, np.array([["a", "b"]])).startswith("predictions: an array of <U1 is not")
    assert message(TypeError, [1, 2], ANSWERS) == "truth[0]: a `int` is no record"
    assert message(TypeError, TRUTH, ANSWERS, metrics=3).startswith("metrics: a `int` is neither text")
    assert message(TypeError, TRUTH, ANSWERS, progress=3).startswith("progress: a `int` is neither True")
    assert message(TypeError, [{"qid": 1, "query": object()}], ANSWERS).startswith("truth[0].query: a `object`")


def test_ragged_arrays_name_the_argument() -> None:
    ragged = np.array([[[0.0, 1.0]], [[0.0, 1.0], [1.0, 2.0]]], dtype=object)
    assert message(TypeError, TRUTH, ragged).startswith("predictions: an array of object is not")
    assert message(ValueError, TRUTH, np.zeros((2, 3, 4))).startswith("predictions: the shape is 2 × 3 × 4 where")
    assert message(ValueError, np.zeros((2, 3)), ANSWERS).startswith("truth: the shape is 2 × 3 where")
    assert message(ValueError, TRUTH, [ANSWERS[0], np.zeros((2, 5))]).startswith("predictions[1]: the shape is 2 × 5")
    columns = {"qid": [0, 1], "start": [0.0], "end": [1.0, 2.0]}
    assert message(ValueError, TRUTH, columns) == 'predictions["start"]: 1 rows where the columns before it have 2'


def test_nan_names_the_row() -> None:
    answers = np.full((2, 3, 2), 1.0)
    answers[1, 2, 0] = np.nan
    assert message(ValueError, TRUTH, answers) == "predictions[1, 2]: NaN is not a finite number of seconds"
    truth = TRUTH.copy()
    truth[1, 1] = np.inf
    assert message(ValueError, truth, ANSWERS) == "truth[1]: inf is not a finite number of seconds"
    columns = {"qid": [0, 1, 1], "start": [0.0, 1.0, np.nan], "end": [1.0, 2.0, 3.0]}
    assert message(ValueError, TRUTH, columns) == "predictions[2]: NaN is not a finite number of seconds"
    scores = {**columns, "start": [0.0, 1.0, 2.0], "score": [1.0, np.nan, 0.0]}
    assert message(ValueError, TRUTH, scores) == "predictions[1]: `score`: NaN is not a finite number"
    records = [{"qid": 0, "predictions": []}, {"qid": 1, "predictions": [{"span": [0.0, float("nan")]}]}]
    assert message(ValueError, TRUTH, records) == "predictions[1].predictions[0].span[1]: NaN is not a finite number"


def test_mismatched_ids_are_refused() -> None:
    columns = {"qid": ["x", "y"], "start": [0.0, 1.0], "end": [1.0, 2.0]}
    text = message(ValueError, TRUTH, columns)
    assert text.startswith("predictions: none of its queries is in the truth")
    mixed = {**columns, "qid": ["0", "y"]}
    assert cuemark.evaluate(TRUTH, mixed, metrics="mIoU").unknown == 1
    assert message(ValueError, TRUTH, mixed, unknown="error") == "predictions: list 1: query `y` is not in the truth"
    assert message(ValueError, TRUTH, ANSWERS[:1]) == "predictions: 1 lists for 2 queries"
    assert message(ValueError, TRUTH, ANSWERS, durations=np.ones(3)) == "durations: 3 durations for 2 queries"


def test_columns_that_are_not_there_are_named() -> None:
    assert message(ValueError, TRUTH, {"start": [0.0], "end": [1.0]}) == "predictions: there is no column `qid`"
    assert message(TypeError, TRUTH, {"qid": [0.5], "start": [0.0], "end": [1.0]}).startswith('predictions["qid"]: float64')
    assert message(TypeError, TRUTH, {"qid": [0], "start": ["a"], "end": [1.0]}).startswith('predictions["start"]: ')


def test_words_that_mean_nothing_are_refused() -> None:
    assert message(ValueError, TRUTH, ANSWERS, order="rank") == "order: `rank` is not file or score"
    assert message(ValueError, TRUTH, ANSWERS, bad_rows="drop").startswith("bad_rows: `drop` is not keep")
    assert message(ValueError, TRUTH, ANSWERS, nms=2).startswith("nms: 2 is not a threshold between 0 and 1")
    assert message(ValueError, TRUTH, ANSWERS, group_by="colour").startswith("group_by: `colour` is not one of length")
    with pytest.raises(ValueError, match="is not a percentage"):
        cuemark.evaluate(TRUTH, ANSWERS).interval(100)


def in_the_words_of_a_terminal(hint: str) -> str:
    """The hint with keyword arguments written as flags."""
    valued = re.sub(r'`(\w+)="(\w+)"`', lambda found: f"`--{found[1].replace('_', '-')} {found[2]}`", hint)
    return re.sub(r"`(\w+)=(?:True)?`", lambda found: f"`--{found[1].replace('_', '-')}`", valued)


def test_the_text_is_that_of_the_command_line_and_the_hint_speaks_python(program: Any, fixtures: Path, tmp_path: Path) -> None:
    truth, answers = fixtures / "cli/truth.jsonl", fixtures / "cli/a.jsonl"
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"qid": "1", "predictions": [{"span": [1.0]}]}\n')
    # 2 is for what the command line has wrong, 1 for what the files have wrong.
    cases: list[tuple[int, Any, Any, dict[str, Any], list[str]]] = [
        (2, truth, answers, {"metrics": "R@1,IoU=x"}, ["--metrics", "R@1,IoU=x"]),
        (2, truth, answers, {"preset": "qvhighlight"}, ["--preset", "qvhighlight"]),
        (1, truth, answers, {"preset": "qvhighlights"}, ["--preset", "qvhighlights"]),
        (2, truth, answers, {"pred_format": "cuemrk"}, ["--pred-format", "cuemrk"]),
        (1, truth, broken, {}, []),
        (1, truth, tmp_path / "none.jsonl", {}, []),
        (1, broken, answers, {"bad_rows": "error"}, ["--bad-rows", "error"]),
    ]
    for code, truth_file, predictions, options, flags in cases:
        told = program.run("eval", "--truth", truth_file, "--pred", predictions, *flags)
        assert told.returncode == code, told
        with pytest.raises(cuemark.CuemarkError) as caught:
            cuemark.evaluate(truth_file, predictions, **options)
        hint = caught.value.hint
        assert hint is None or "--" not in hint.replace("cuemark eval --help", ""), hint
        said = "" if hint is None else f"hint: {in_the_words_of_a_terminal(hint)}\n"
        assert told.stderr == f"error: {caught.value.message}\n{said}"


def test_the_same_mistake_side_by_side(program: Any, fixtures: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"qid": "1", "query": "x", "video": "v", "spans": [[5.0, 2.0]]}\n')
    answers = fixtures / "cli/a.jsonl"
    told = program.run("eval", "--truth", broken, "--pred", answers, "--bad-rows", "error")
    with pytest.raises(cuemark.CuemarkError) as caught:
        cuemark.evaluate(broken, answers, bad_rows="error")
    rest = "to swap such rows or `skip` to leave them out; either way they are counted"
    assert told.stderr.splitlines()[-1] == f"hint: pass `--bad-rows keep` {rest}"
    assert caught.value.hint == f'pass `bad_rows="keep"` {rest}'


def test_files_that_are_not_there_are_os_errors(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught:
        cuemark.evaluate(tmp_path / "none.jsonl", ANSWERS)
    assert isinstance(caught.value, cuemark.CuemarkFileError)
    split = cuemark.read_truth(TRUTH)
    split.write(tmp_path / "out.jsonl")
    with pytest.raises(OSError, match="exists already"):
        split.write(tmp_path / "out.jsonl")
    split.write(tmp_path / "out.jsonl", force=True)


def test_exceptions_travel_between_processes() -> None:
    with pytest.raises(cuemark.CuemarkError) as caught:
        cuemark.evaluate(TRUTH, ANSWERS, preset="qvhighlight")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.message, again.hint, str(again)) == (caught.value.message, caught.value.hint, str(caught.value))
