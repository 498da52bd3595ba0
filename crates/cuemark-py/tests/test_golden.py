"""The published evaluators' figures, from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cuemark


def expected(folder: Path) -> Any:
    return json.loads((folder / "expected.json").read_text())


def test_tvr(shared: Path) -> None:
    folder = shared / "golden/tvr-val"
    found = cuemark.evaluate(folder / "ground_truth.jsonl.gz", folder / "predictions.json.gz", preset="tvr").metrics
    figures = expected(folder)["expected"]
    checked = 0
    for task, keys in figures.items():
        for key, figure in keys.items():
            iou, _, recall = key.rpartition("-")
            name = f"{task}:R@{recall.removeprefix('r')}" + (f",IoU={iou}" if iou else "")
            assert found[name] == pytest.approx(figure["percent"] / 100, abs=1e-9), name
            checked += 1
    assert checked >= 20


def test_qvhighlights(shared: Path) -> None:
    folder = shared / "golden/qvhighlights-val"
    found = cuemark.evaluate(folder / "ground_truth.jsonl", folder / "predictions.jsonl.gz", preset="qvhighlights").metrics
    figures = expected(folder)["expected"]
    checked = 0
    for part in ("full", "short", "middle", "long"):
        ending = "" if part == "full" else f"/{part}"
        for key, figure in figures[part]["MR-mAP"].items():
            name = f"mAP{ending}" if key == "average" else f"mAP@{float(key):g}{ending}"
            assert 100 * found[name] == pytest.approx(figure, abs=1e-7), name
            checked += 1
        for key, figure in figures[part]["MR-R1"].items():
            assert 100 * found[f"R@1,IoU={float(key):g}{ending}"] == pytest.approx(figure, abs=1e-7)
            checked += 1
    for level in ("Fair", "Good", "VeryGood"):
        highlights = figures[f"HL-min-{level}"]
        assert 100 * found[f"HL-mAP/{level}"] == pytest.approx(highlights["HL-mAP"], abs=1e-7)
        assert 100 * found[f"HL-Hit1/{level}"] == pytest.approx(highlights["HL-Hit1"], abs=1e-7)
        checked += 2
    assert checked >= 80


@pytest.mark.parametrize("case", ["activitynet-val2", "charades-sta-test", "tacos-2dtan-test"])
def test_single_video_recalls(case: str, shared: Path) -> None:
    folder = shared / "golden" / case
    truth = next(folder.glob("ground_truth.*"))
    options: dict[str, Any] = {}
    if case == "charades-sta-test":
        options["truth_format"] = "charades-sta"
    figures = expected(folder)
    checked = 0
    for section, flags in [
        ("videox_nms", {"preset": "2d-tan", "nms": figures["videox_nms"]["nms_threshold"]}),
        ("videox_no_nms", {"preset": "2d-tan", "nms": "none"}),
        ("molef_nms", {"preset": "molef"}),
    ]:
        found = cuemark.evaluate(truth, folder / "predictions.jsonl.gz", **flags, **options).metrics
        for key, figure in figures[section].items():
            name = key.replace("IoU>=", "IoU=").replace("IoU>", "IoU=")
            if name in found and isinstance(figure, dict):
                value = figure["percent"] / 100 if "percent" in figure else figure["fraction"]
                assert found[name] == pytest.approx(value, abs=1e-9), (section, name)
                checked += 1
    assert checked >= 16, sorted(figures["videox_nms"])


def test_ranked_lists(shared: Path) -> None:
    folder = shared / "golden/ranked-synthetic"
    videos = shared / "data/tvr-ranking/video_name_duration_id.json"
    figures = expected(folder)["expected"]
    found = cuemark.evaluate(
        folder / "ground_truth.json.gz", folder / "predictions.json.gz", preset="tvr-ranking", video_index=videos,
        metrics=list(figures),
    ).metrics
    assert len(found) == len(figures) >= 9
    assert found == pytest.approx(figures, abs=1e-9)
