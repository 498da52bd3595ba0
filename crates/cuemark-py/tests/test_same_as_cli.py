"""Everything that the program computes comes out the same from Python: random inputs, every digit."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuemark

PRESETS = [None, None, "2d-tan", "molef", "charades-cd"]
METRICS = ["R@1,IoU=0.5", "R@5,IoU=0.3", "dR@1,IoU=0.5", "mIoU", "mAP", "mAP@0.5", "R@1,IoU=0.7/short"]


def make(rng: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Truth and answers with everything that files have: gaps, strangers, ties, reversed and overlong spans."""
    def span(duration: float) -> list[float]:
        ends = [round(rng.uniform(0, duration * 1.1), 1), round(rng.uniform(0, duration * 1.1), 1)]
        return ends if rng.random() < 0.1 else sorted(ends)

    truth, answers = [], []
    for qid in range(rng.randint(1, 40)):
        duration = round(rng.uniform(5, 60), 2)
        spans = [span(duration) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        truth.append({"qid": qid, "query": rng.choice(["opens it", "runs fast", "sits"]), "video": f"v{qid % 7}-{qid}",
                      "duration": duration, "spans": spans})
        if rng.random() < 0.9:
            listed = [{"span": rng.choice([span(duration), spans[0]]), "score": rng.choice([0.5, round(rng.random(), 2)])}
                      for _ in range(rng.randint(0, 12))]
            answers.append({"qid": qid, "predictions": listed})
    rng.shuffle(answers)
    answers.append({"qid": "stranger", "predictions": []})
    if len(answers) == 1:
        answers.append({"qid": 0, "predictions": []})
    return truth, answers


@pytest.mark.parametrize("seed", range(12))
def test_an_evaluation_of_random_files(seed: int, program: Any, tmp_path: Path) -> None:
    rng = random.Random(seed)
    truth, answers = make(rng)
    files = [tmp_path / "truth.jsonl", tmp_path / "answers.jsonl"]
    for file, records in zip(files, (truth, answers)):
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
    options: dict[str, Any] = {}
    flags: list[str] = []

    def either(name: str, value: Any, *words: str) -> None:
        if rng.random() < 0.4:
            options[name] = value
            flags.extend(words)

    preset = rng.choice(PRESETS)
    if preset is None:
        chosen = rng.sample(METRICS, rng.randint(1, 4))
        options["metrics"] = chosen
        flags.extend(["--metrics", ",".join(chosen)])
    else:
        options["preset"] = preset
        flags.extend(["--preset", preset])
    either("nms", 0.4, "--nms", "0.4")
    either("order", "score", "--order", "score")
    either("strict", True, "--strict")
    either("clip_truth", True, "--clip-truth")
    either("bad_rows", "clamp", "--bad-rows", "clamp")
    either("group_by", ["length", "verb"], "--group-by", "length,verb")
    told = program.run("eval", "--truth", files[0], "--pred", files[1], *flags, "--json", "--ci", 90, "--resamples", 50, "--seed", seed)
    for forms in (files, (truth, answers)):
        if told.returncode != 0:
            with pytest.raises(cuemark.CuemarkError) as caught:
                cuemark.evaluate(*forms, **options)
            assert told.stderr.splitlines()[-1 if caught.value.hint is None else -2] == f"error: {caught.value.message}"
            continue
        found = cuemark.evaluate(*forms, **options)
        expected = json.loads(told.stdout)
        if forms is not files:
            # Records have no file: notes name the argument instead.
            named = [note.replace(str(files[0]), "truth").replace(str(files[1]), "predictions") for note in expected["notes"]]
            expected["notes"] = named
        assert found.to_dict(90, resamples=50, seed=seed) == expected


def test_columns_of_random_files_give_the_same_as_their_records() -> None:
    for seed in range(100, 130):
        truth, answers = make(random.Random(seed))
        flat = [(a["qid"], *p["span"], p["score"]) for a in answers for p in a["predictions"]]
        if not flat:
            continue
        qid, start, end, score = zip(*flat)
        columns = {"qid": [str(q) for q in qid], "start": np.array(start), "end": np.array(end), "score": np.array(score)}
        moments = [(t["qid"], t["query"], t["video"], t["duration"], *s) for t in truth for s in t["spans"]]
        names = ["qid", "query", "video", "duration", "start", "end"]
        table = dict(zip(names, map(list, zip(*moments))))
        listed = [a for a in answers if a["predictions"]]
        expected = cuemark.evaluate(truth, listed, metrics=METRICS[:6])
        found = cuemark.evaluate(table, columns, metrics=METRICS[:6])
        def without_places(evaluation: cuemark.Evaluation) -> dict[str, Any]:
            # Columns have no lines that a note could name.
            told = evaluation.to_dict()
            return {**told, "notes": [note.split(" (first: ")[0] for note in told["notes"]]}

        assert without_places(found) == without_places(expected)


@pytest.mark.parametrize("seed", range(3))
def test_a_comparison_of_random_files(seed: int, program: Any, tmp_path: Path) -> None:
    rng = random.Random(1_000 + seed)
    truth, a = make(rng)
    b = [{**answer, "predictions": answer["predictions"][::-1]} for answer in a]
    paths = []
    for name, records in (("truth", truth), ("a", a), ("b", b)):
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(record) + "\n" for record in records))
    told = program.json("compare", "--truth", *paths, "--metric", "mIoU,R@1,IoU=0.3", "--resamples", 200, "--seed", seed)
    found = cuemark.compare(*paths, metrics="mIoU,R@1,IoU=0.3", resamples=200, seed=seed)
    for name, figures in told["comparisons"].items():
        figures["interval"] = tuple(figures["interval"])
        # Two files make one test of a metric, which Holm's correction leaves as it is.
        assert figures.pop("p_corrected") == figures["p_value"]
        assert {field: getattr(found[name], field) for field in figures} == figures


def test_splits_are_the_same_files(program: Any, fixtures: Path, tmp_path: Path) -> None:
    source = write_world(tmp_path / "data")
    dataset = cuemark.load("cuemark-jsonl", source)
    for protocol, flags, options in [
        ("cd", ["--ood-share", "0.3", "--ties", "iid"], {"ood_share": 0.3, "ties": "iid"}),
        ("cd", ["--ood-cut", "preliminary", "--max-ood-length", "0.6"], {"ood_cut": "preliminary", "max_ood_length": 0.6}),
        ("centre", ["--centre", "pair"], {"centre": "pair"}),
    ]:
        theirs, ours = tmp_path / f"theirs-{len(flags)}-{protocol}-{flags[0]}", tmp_path / f"ours-{protocol}-{flags[0]}"
        told = program.json("split", "make", "--protocol", protocol, "--dataset", "cuemark-jsonl", "--root", source,
                            "--out", theirs, "--seed", 5, *flags)
        made = getattr(cuemark.split, protocol)(dataset, seed=5, **options)
        assert made.write(ours) == told
        for name in made:
            assert (ours / f"{name}.jsonl").read_bytes() == (theirs / f"{name}.jsonl").read_bytes()
            assert len(made[name]) == sum(1 for _ in open(ours / f"{name}.jsonl"))
        assert cuemark.split.audit(ours, seed=2) == program.json("split", "audit", theirs, "--seed", 2)


def write_world(folder: Path) -> Path:
    """A dataset with one split of 120 videos in cuemark's own layout."""
    rng = random.Random(11)
    folder.mkdir()
    with open(folder / "train.jsonl", "w") as file:
        for qid in range(240):
            duration = 10.0 + qid // 2 % 50
            start = round(rng.random() ** 2 * duration * 0.8, 2)
            end = round(start + rng.uniform(0.05, 0.2) * duration, 2)
            record = {"qid": qid, "query": rng.choice(["she opens it", "he runs"]), "video": f"v{qid // 2}",
                      "duration": duration, "spans": [[start, end]]}
            file.write(json.dumps(record) + "\n")
    return folder


def test_baselines_are_the_same_files(program: Any, tmp_path: Path) -> None:
    truth = write_world(tmp_path / "data") / "train.jsonl"
    for name in ["predict-all", "bias-draw", "bias-density", "bias-mode", "bias-verb"]:
        theirs, ours = tmp_path / f"{name}-theirs.jsonl", tmp_path / f"{name}-ours.jsonl"
        program.json("predict", "--baseline", name, "--truth", truth, "--train", truth, "--out", theirs, "--seed", 3)
        cuemark.baseline(name, truth, train=truth, seed=3).write(ours)
        assert ours.read_bytes() == theirs.read_bytes()


def test_ratings_come_to_the_same(program: Any, tmp_path: Path) -> None:
    rng = random.Random(2)
    rows = [(pair, worker, min(4, max(0, rng.randint(0, 4) // 2 + pair % 3))) for pair in range(60)
            for worker in rng.sample(range(6), 4 if pair % 3 else 2)]
    path = tmp_path / "ratings.csv"
    path.write_text("pair_id,worker,relevance\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    columns = dict(zip(["pair_id", "worker", "relevance"], map(list, zip(*rows))))
    for ratings in (path, columns):
        consensus = cuemark.rank.consensus(ratings)
        assert consensus.to_dict() == program.json("rank", "consensus", "--in", path)
        agreement = program.json("rank", "agreement", "--in", path, "--least-shared", 5)["agreement"]
        assert cuemark.rank.agreement(ratings, least_shared=5) == agreement
    assert len(consensus.grades) + len(consensus.discarded) == 60
