"""Holds the peers to what the public evaluators gave on the golden cases: golden.py SHARED_FOLDER

Prints one line per case and exits 1 when a figure is off.
"""

import gzip
import json
import sys
from pathlib import Path

import qvhighlights
import ranked
import tvr


def open_text(path):
    return gzip.open(path, "rt") if path.suffix == ".gz" else open(path)


def load(path):
    with open_text(path) as file:
        return json.load(file)


def load_lines(path):
    with open_text(path) as file:
        return [json.loads(line) for line in file]


def tvr_case(folder):
    """Every recall, overall and by query type, to the number of hits."""
    metrics = tvr.evaluate(load_lines(folder / "ground_truth.jsonl.gz"), load(folder / "predictions.json.gz"))
    expected = load(folder / "expected.json")
    for section in ("expected", "expected_by_type"):
        for task, figures in expected[section].items():
            for key, figure in figures.items():
                *level, depth = key.split("-")
                kind = f"/type={level.pop(0)}" if section == "expected_by_type" else ""
                name = f"{task}:R@{depth[1:]}" + "".join(f",IoU={threshold}" for threshold in level) + kind
                yield name, figure["percent"] / 100, metrics[name], 1e-9


def qvhighlights_case(folder, curve):
    predictions = {line["qid"]: line for line in load_lines(folder / "predictions.jsonl.gz")}
    metrics = qvhighlights.evaluate(load_lines(folder / "ground_truth.jsonl"), predictions, curve)
    for section, figures in load(folder / "expected.json")["expected"].items():
        if section.startswith("HL-min-"):
            for kind, percent in figures.items():
                name = f"{kind}/{section.removeprefix('HL-min-')}"
                yield name, percent / 100, metrics[name], 1e-9
            continue
        ending = "" if section == "full" else f"/{section}"
        for kind, stem in (("MR-mAP", "mAP@"), ("MR-R1", "R@1,IoU=")):
            for level, percent in figures[kind].items():
                name = f"mAP{ending}" if level == "average" else f"{stem}{level}{ending}"
                yield name, percent / 100, metrics[name], 1e-9


def ranked_case(folder):
    index = load(folder / "../../data/tvr-ranking/video_name_duration_id.json")
    videos = {number: name for name, (_, number) in index.items()}
    truth, predictions = load(folder / "ground_truth.json.gz"), load(folder / "predictions.json.gz")
    metrics = ranked.evaluate(truth, predictions, videos, depths=(10, 20, 40, 100))
    for name, fraction in load(folder / "expected.json")["expected"].items():
        yield name, fraction, metrics[name], 1e-9


def main(shared):
    golden = Path(shared) / "golden"
    cases = {
        "tvr": tvr_case(golden / "tvr-val"),
        "qvhighlights": qvhighlights_case(golden / "qvhighlights-val", qvhighlights.curve_by_sklearn),
        "qvhighlights --lean": qvhighlights_case(golden / "qvhighlights-val", qvhighlights.curve_by_numpy),
        "ranked": ranked_case(golden / "ranked-synthetic"),
    }
    wrong = 0
    for name, case in cases.items():
        figures = list(case)
        off = [figure for figure in figures if abs(figure[1] - figure[2]) > figure[3]]
        for metric, expected, found, _ in off:
            print(f"{name}: {metric}: expected {expected}, found {found}")
        print(f"{name}: {len(figures) - len(off)} of {len(figures)} figures agree")
        wrong += len(off)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
