"""What `evaluate` and `compare` give, by hand and in every form that arguments may have."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuemark

# Four queries about one video each, 20 s long. Overlaps of the first answers: 1, 0.5, 0 and none.
TRUTH = [
    {"qid": "1", "query": "opens", "video": "a", "duration": 20.0, "spans": [[0.0, 10.0]]},
    {"qid": "2", "query": "closes", "video": "b", "duration": 20.0, "spans": [[5.0, 15.0]]},
    {"qid": "3", "query": "runs", "video": "c", "duration": 20.0, "spans": [[10.0, 20.0]]},
    {"qid": "4", "query": "sits", "video": "d", "duration": 20.0, "spans": [[0.0, 4.0]]},
]
ANSWERS = [
    {"qid": "1", "predictions": [{"span": [0.0, 10.0], "score": 0.9}, {"span": [2.0, 4.0], "score": 0.2}]},
    {"qid": "2", "predictions": [{"span": [5.0, 10.0], "score": 0.8}, {"span": [0.0, 1.0], "score": 0.1}]},
    {"qid": "3", "predictions": [{"span": [0.0, 5.0], "score": 0.7}, {"span": [10.0, 18.0], "score": 0.6}]},
]
METRICS = ["R@1,IoU=0.5", "R@5,IoU=0.5", "mIoU"]
BY_HAND = {"R@1,IoU=0.5": 2 / 4, "R@5,IoU=0.5": 3 / 4, "mIoU": 1.5 / 4}


def rows(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The same as columns."""
    flat = [(a["qid"], *p["span"], p["score"]) for a in answers for p in a["predictions"]]
    qid, start, end, score = zip(*flat)
    return {"qid": list(qid), "start": np.array(start), "end": np.array(end), "score": np.array(score)}


def columns() -> dict[str, Any]:
    return {
        "qid": [t["qid"] for t in TRUTH],
        "query": [t["query"] for t in TRUTH],
        "video": [t["video"] for t in TRUTH],
        "duration": np.full(4, 20.0),
        "start": np.array([t["spans"][0][0] for t in TRUTH]),
        "end": np.array([t["spans"][0][1] for t in TRUTH]),
    }


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_metrics_are_those_worked_out_by_hand() -> None:
    found = cuemark.evaluate(TRUTH, ANSWERS, metrics=METRICS)
    assert found.metrics == BY_HAND
    assert list(found.metrics) == METRICS
    assert (found.queries, found.missing, found.unknown) == (4, 1, 0)
    assert found.qids == ["1", "2", "3", "4"]
    assert found.per_query["mIoU"].tolist() == [1.0, 0.5, 0.0, 0.0]


@pytest.mark.parametrize("form", ["paths", "strings", "records", "columns", "numpy text", "integers", "frame", "read"])
def test_every_form_gives_the_same(form: str, tmp_path: Path) -> None:
    truth: Any = TRUTH
    answers: Any = ANSWERS
    if form in ("paths", "strings", "read"):
        truth, answers = write(tmp_path / "t.jsonl", TRUTH), write(tmp_path / "p.jsonl", ANSWERS)
    if form == "strings":
        truth, answers = str(truth), str(answers)
    if form == "read":
        truth, answers = cuemark.read_truth(truth), cuemark.read_predictions(answers)
    if form == "columns":
        truth, answers = columns(), rows(ANSWERS)
    if form == "numpy text":
        truth, answers = columns(), rows(ANSWERS)
        truth["qid"], truth["video"] = np.array(truth["qid"]), np.array(truth["video"])
        answers["qid"] = np.array(answers["qid"])
    if form == "integers":
        truth, answers = columns(), rows(ANSWERS)
        truth["qid"] = np.array(truth["qid"], dtype=np.int32)
        answers["qid"] = [int(qid) for qid in answers["qid"]]
    if form == "frame":
        pandas = pytest.importorskip("pandas")
        truth, answers = pandas.DataFrame(columns()), pandas.DataFrame(rows(ANSWERS))
    found = cuemark.evaluate(truth, answers, metrics=METRICS)
    assert found.metrics == BY_HAND
    assert found.to_dict() == cuemark.evaluate(TRUTH, ANSWERS, metrics=METRICS).to_dict()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_arrays_answer_queries_in_order(dtype: Any) -> None:
    truth = np.array([[0, 10], [5, 15], [10, 20]], dtype=dtype)
    answers = np.array([[[0, 10], [2, 4]], [[5, 10], [0, 1]], [[0, 5], [10, 18]]], dtype=dtype)
    expected = {"R@1,IoU=0.5": 2 / 3, "R@5,IoU=0.5": 1.0, "mIoU": 0.5}
    assert cuemark.evaluate(truth, answers, metrics=METRICS).metrics == pytest.approx(expected, abs=1e-15)
    assert cuemark.evaluate(truth, list(answers), metrics=METRICS).metrics == pytest.approx(expected, abs=1e-15)
    several = [truth[:1], truth[1:2], np.array([[10, 20], [0, 5]], dtype=dtype)]
    best = cuemark.evaluate(several, answers, metrics=METRICS).metrics
    assert best["R@1,IoU=0.5"] == 1.0  # the third query's second moment is answered first


def test_views_with_steps_are_read_as_they_are() -> None:
    wide = np.zeros((3, 8))
    wide[:, 1::4] = [[0, 10], [5, 15], [10, 20]]
    answers = np.asfortranarray(np.array([[[0, 10], [2, 4]], [[5, 10], [0, 1]], [[0, 5], [10, 18]]], dtype=float))
    assert cuemark.evaluate(wide[:, 1::4], answers[::1], metrics="mIoU").metrics["mIoU"] == 0.5
    assert cuemark.evaluate(wide[::-1, 1::4], answers[::-1], metrics="mIoU").metrics["mIoU"] == 0.5


def test_scores_sort_only_when_asked_to() -> None:
    truth = np.array([[0.0, 10.0]])
    answers = np.array([[[5.0, 6.0, 0.1], [0.0, 10.0, 0.9]]])
    assert cuemark.evaluate(truth, answers, metrics="mIoU").metrics["mIoU"] == 0.1
    assert cuemark.evaluate(truth, answers, metrics="mIoU", order="score").metrics["mIoU"] == 1.0


def test_durations_come_from_columns_dicts_or_rows() -> None:
    truth, answers = np.array([[0.0, 10.0]]), np.array([[[0.0, 5.0]]])
    # |0 - 0| = 0 and |5 - 10| / 20 = 0.25, so a hit is worth 0.75.
    found = cuemark.evaluate(truth, answers, metrics="dR@1,IoU=0.5", durations=np.array([20.0]))
    assert found.metrics["dR@1,IoU=0.5"] == pytest.approx(0.75)
    table = {"qid": [0], "video": ["v"], "start": [0.0], "end": [10.0]}
    found = cuemark.evaluate(table, answers, metrics="dR@1,IoU=0.5", durations={"v": 20.0})
    assert found.metrics["dR@1,IoU=0.5"] == pytest.approx(0.75)


def test_tasks_have_columns_of_their_own() -> None:
    truth = {"qid": [0, 1], "video": ["a", "b"], "start": [0.0, 5.0], "end": [10.0, 9.0], "kind": ["v", "t"]}
    vcmr = {"qid": [0, 0, 1], "video": ["b", "a", "b"], "start": [0.0, 0.0, 5.0], "end": [10.0, 10.0, 9.0]}
    vr = {"qid": [1, 0], "video": ["a", "a"], "start": [0.0, 0.0], "end": [0.0, 0.0]}
    metrics = ["VCMR:R@1,IoU=0.5", "VCMR:R@5,IoU=0.5", "VR:R@1"]
    found = cuemark.evaluate(truth, {"VCMR": vcmr, "VR": vr}, metrics=metrics, group_by="type")
    assert found.metrics["VCMR:R@1,IoU=0.5"] == 0.5
    assert found.metrics["VCMR:R@5,IoU=0.5"] == 1.0
    assert found.metrics["VR:R@1"] == 0.5
    assert found.metrics["VCMR:R@1,IoU=0.5/type=t"] == 1.0
    assert found.counted["VCMR:R@1,IoU=0.5/type=t"] == 1


def test_rows_of_a_query_need_not_stand_together() -> None:
    answers = rows(ANSWERS)
    order = [0, 2, 4, 1, 3, 5]
    mixed = {name: np.asarray(column)[order] for name, column in answers.items()}
    assert cuemark.evaluate(TRUTH, mixed, metrics=METRICS).metrics == BY_HAND


def test_a_table_for_papers() -> None:
    found = cuemark.evaluate(TRUTH, ANSWERS, metrics=METRICS)
    assert "| R@1,IoU=0.5 | 50.00 | 4 |" in found.to_markdown()
    low, high = found.interval(95)["mIoU"]
    assert 0.0 <= low <= 1.5 / 4 <= high <= 1.0
    assert f"{100 * low:.2f} – {100 * high:.2f}" in found.to_markdown(interval=95)
    assert r"\begin{tabular}{@{}lrcr@{}}" in found.to_latex(interval=95)
    assert repr(found).startswith("<cuemark.Evaluation of 4 queries: R@1,IoU=0.5: 50.00 %")


def test_queries_that_do_not_count_are_nan() -> None:
    found = cuemark.evaluate(TRUTH, ANSWERS, metrics="R@1,IoU=0.5/verb=open")
    scores = found.per_query["R@1,IoU=0.5/verb=open"]
    assert scores[0] == 1.0 and all(math.isnan(score) for score in scores[1:])


def test_frames_come_back() -> None:
    pytest.importorskip("pandas")
    found = cuemark.evaluate(TRUTH, ANSWERS, metrics=METRICS)
    frame = found.to_pandas()
    assert list(frame.columns) == ["qid", *METRICS]
    assert frame["mIoU"].tolist() == [1.0, 0.5, 0.0, 0.0]
    truth = cuemark.read_truth(TRUTH).to_pandas()
    assert cuemark.evaluate(truth, cuemark.read_predictions(ANSWERS).to_pandas(), metrics=METRICS).metrics == BY_HAND


def test_comparing_a_method_with_itself_finds_nothing() -> None:
    same = cuemark.compare(TRUTH, ANSWERS, ANSWERS)["R@1,IoU=0.5"]
    assert (same.a, same.b, same.difference, same.p_value) == (0.5, 0.5, 0.0, 1.0)
    assert (same.wins, same.ties, same.losses, same.queries) == (0, 4, 0, 4)
    better = [*ANSWERS, {"qid": "4", "predictions": [{"span": [0.0, 4.0], "score": 1.0}]}]
    gain = cuemark.compare(TRUTH, ANSWERS, better, metrics=["R@1,IoU=0.5", "mIoU"])["mIoU"]
    assert (gain.difference, gain.wins, gain.losses) == (0.25, 1, 0)
    # One query of four differs, and either sign of it is as large as what was seen: p is 1.
    assert gain.p_value == 1.0


def test_records_may_hold_arrays() -> None:
    answers = [{"qid": 1, "predictions": np.array([[0.0, 10.0, 0.9], [2.0, 4.0, 0.2]])}]
    assert cuemark.evaluate(TRUTH[:1], answers, metrics="mIoU").metrics["mIoU"] == 1.0


def test_foreign_records_are_understood() -> None:
    truth = [{"qid": 7, "query": "q", "vid": "v_0_150", "duration": 150, "relevant_windows": [[0, 10]],
              "relevant_clip_ids": [0, 1], "saliency_scores": [[4, 4, 4], [2, 2, 2]]}]
    answers = [{"qid": 7, "query": "q", "vid": "v_0_150", "pred_relevant_windows": [[0, 10, 0.9]],
                "pred_saliency_scores": np.linspace(1, 0, 75).tolist()}]
    found = cuemark.evaluate(truth, answers, preset="qvhighlights")
    assert found.metrics["R@1,IoU=0.7"] == 1.0 and found.metrics["HL-Hit1/VeryGood"] == 1.0
    assert found.preset == "qvhighlights"
