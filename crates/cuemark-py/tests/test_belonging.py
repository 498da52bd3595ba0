"""Files that do not belong together, notes, names and reports: what the program says, Python says too."""

from __future__ import annotations

import json
from pathlib import Path

import cuemark
import pytest

TRUTH = [
    {"qid": n, "query": f"a ball spins {n} times", "video": f"v{n}", "duration": 100.0, "spans": [[10.0, 20.0]]}
    for n in range(20)
]


def answers(ids: range, start: float = 10.0, video: str = "v{}") -> list[dict[str, object]]:
    return [
        {"qid": n, "vid": video.format(n), "pred_relevant_windows": [[start, start + 10.0, 0.9], [50.0, 60.0, 0.1]]}
        for n in ids
    ]


def test_predictions_for_other_queries_or_videos_are_refused_unless_lenient() -> None:
    with pytest.raises(cuemark.CuemarkError, match="none of its queries is in the truth") as refused:
        cuemark.evaluate(TRUTH, answers(range(100, 120)))
    assert "lenient=True" in str(refused.value.hint)
    with pytest.raises(cuemark.CuemarkError, match="none of its 20 lists names the video of its query"):
        cuemark.evaluate(TRUTH, answers(range(20), video="x{}"))
    found = cuemark.evaluate(TRUTH, answers(range(100, 120)), lenient=True)
    assert found.notes[0].endswith("scored all the same")


def test_notes_say_what_how_often_where_and_what_was_done() -> None:
    found = cuemark.evaluate(TRUTH, answers(range(20), start=10_000.0))
    assert any("look like milliseconds" in note and "query `0`" in note for note in found.notes)
    reversed_spans = [{"qid": n, "predictions": [[20.0, 10.0]]} for n in range(20)]
    notes = cuemark.evaluate(TRUTH, reversed_spans).notes
    assert any("20 predicted spans end before they start" in note for note in notes)
    assert cuemark.evaluate(TRUTH, reversed_spans).to_dict()["notes"] == notes


def test_names_that_people_know_and_levels_as_fractions() -> None:
    found = cuemark.evaluate(TRUTH, answers(range(20)), metrics=["R1@0.5", "MR-full-mAP"])
    assert list(found.metrics) == ["R@1,IoU=0.5", "mAP"]
    assert found.interval(0.95) == found.interval(95)
    assert "R@n,IoU=m" in cuemark.METRICS
    assert "video-llm" in cuemark.PRESETS
    assert "charades-sta" in cuemark.DATASETS


def test_a_comparison_is_a_table_for_papers() -> None:
    compared = cuemark.compare(TRUTH, answers(range(20), start=70.0), answers(range(20)))["R@1,IoU=0.5"]
    assert "R@1,IoU=0.5 & 0.00 & 100.00" in compared.to_latex()
    assert compared.to_markdown().count("\n") >= 3
    assert compared.to_dict()["wins"] == 20


def test_a_report_is_written_and_summed_up(tmp_path: Path) -> None:
    def lines(name: str, records: list[dict[str, object]]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    truth, good = lines("truth.jsonl", TRUTH), lines("good.jsonl", answers(range(20)))
    part = lines("part.jsonl", answers(range(12)))
    made = cuemark.report(truth, [good, part], tmp_path / "report", metrics="R1@0.5,mIoU", intervals=False)
    assert made["title"].endswith("(partial: 8 of 20 queries unanswered)")
    assert {Path(file).name for file in made["files"]} >= {"report.html", "report.tex"}
    rows = {row["name"]["model"]: row["metrics"] for row in made["boards"][0]["rows"]}
    assert rows["good"] == {"R@1,IoU=0.5": 1.0, "mIoU": 1.0}
    with pytest.raises(cuemark.CuemarkFileError, match="exists already"):
        cuemark.report(truth, good, tmp_path / "report")
