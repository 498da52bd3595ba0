"""Datasets and splits as Python sees them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cuemark


def test_a_dataset_is_its_splits_and_their_records(fixtures: Path) -> None:
    dataset = cuemark.load("charades-sta", fixtures / "datasets/charades-sta")
    assert dataset.name == "charades-sta"
    assert set(dataset.splits) >= {"train", "test"}
    split = dataset["test"]
    records = list(split)
    assert len(records) == len(split) > 0
    first = split[0]
    assert first.qid == records[0].qid and split[-1].qid == records[-1].qid
    assert first.spans.shape == (len(first.moments), 2)
    assert first.moments[0].start == first.spans[0, 0]
    assert "test" in dataset and "nonsense" not in dataset
    assert sum(1 for _ in dataset) == len(dataset)
    with pytest.raises(IndexError):
        split[len(split)]
    with pytest.raises(cuemark.CuemarkError, match="there is no split called `tests`\nhint: did you mean `test`"):
        dataset["tests"]
    with pytest.raises(cuemark.CuemarkError, match="did you mean `charades-sta`"):
        cuemark.load("charades-st", fixtures)
    with pytest.raises(OSError, match="none of the files of `charades-sta` is here"):
        cuemark.load("charades-sta", fixtures / "cli")


def test_a_published_dataset_is_read_whole(shared: Path) -> None:
    dataset = cuemark.load("charades-sta", shared / "data/charades-sta")
    assert len(dataset["train"]) == 12_408 and len(dataset["test"]) == 3_720
    assert len(dataset["train"].videos) == 5_338


def test_frames_hold_every_moment(fixtures: Path) -> None:
    pytest.importorskip("pandas")
    dataset = cuemark.load("charades-sta", fixtures / "datasets/charades-sta")
    frame = dataset.to_pandas()
    moments = sum(len(record.moments) for name in dataset.splits for record in dataset[name])
    assert len(frame) >= moments and set(frame["split"]) == set(dataset.splits)
    assert {"qid", "query", "video", "start", "end"} <= set(frame.columns)


def test_a_written_split_reads_back(tmp_path: Path) -> None:
    truth = np.array([[0.0, 10.0], [5.0, 4.0]])
    split = cuemark.read_truth(truth)
    assert split.rows == {"reversed": 1, "changed": 1, "dropped": 0}
    assert split[1].spans.tolist() == [[4.0, 5.0]]
    split.write(tmp_path / "truth.jsonl")
    again = cuemark.read_truth(tmp_path / "truth.jsonl")
    assert [record.spans.tolist() for record in again] == [record.spans.tolist() for record in split]
    assert repr(again) == "<cuemark.Split `truth`: 2 queries, 2 videos>"
    assert repr(split[0]) == "<cuemark.Record `0`: \"\" in 0, 1 moment(s)>"


def test_predictions_have_columns(fixtures: Path, tmp_path: Path) -> None:
    read = cuemark.read_predictions(fixtures / "predictions/tvr.json")
    assert set(read.tasks) <= {"VCMR", "SVMR", "VR"} and len(read) > 0
    columns = read.columns()
    assert columns["rank"].min() == 1 and len(columns["qid"]) == len(columns["start"]) == len(columns["task"])
    plain = cuemark.read_predictions({"qid": [3, 3], "start": [0.0, 1.0], "end": [2.0, 2.0]})
    assert plain.tasks == ["any"] and plain.columns()["qid"] == ["3", "3"]
    plain.write(tmp_path / "p.csv", format="csv")
    assert list(cuemark.read_predictions(tmp_path / "p.csv").columns()) == ["qid", "rank", "start", "end"]


def test_grades_by_hand() -> None:
    ratings = {"pair_id": [1, 1, 2, 2, 3, 3, 3, 3], "worker": [0, 1] * 4, "relevance": [2, 3, 1, 3, 0, 4, 2, 1]}
    consensus = cuemark.rank.consensus(ratings)
    assert consensus.grades == {1: 3, 3: 2} and consensus.discarded == [2]
    with pytest.raises(cuemark.CuemarkError, match=r"ratings\[1\]: `relevance`: 9 is not"):
        cuemark.rank.consensus({"pair_id": [1, 1], "worker": [0, 1], "relevance": [2, 9]})
