"""`cuemark.evaluate` and a peer on the same predictions in memory, in turns: evaluate.py CASE REPEAT FILES…

Nothing that reads files is timed: the peer gets the lists and dicts it reads, cuemark the same as arrays. Prints one JSON
object with the seconds of every run; fails when the two disagree on a figure.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

import cuemark

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benches/peers"))


def tvr(truth_file, predictions_file):
    import tvr

    truth, submission = tvr.read(truth_file, predictions_file)
    numbers = submission["video2idx"]
    table = {
        "qid": np.array([query["desc_id"] for query in truth]),
        "video": np.array([numbers[query["vid_name"]] for query in truth]),
        "start": np.array([query["ts"][0] for query in truth]),
        "end": np.array([query["ts"][1] for query in truth]),
        "kind": [query["type"] for query in truth],
    }
    tasks = {}
    for task in ("VCMR", "SVMR", "VR"):
        entries = submission[task]
        rows = np.array([prediction for entry in entries for prediction in entry["predictions"]])
        qid = np.repeat([entry["desc_id"] for entry in entries], [len(entry["predictions"]) for entry in entries])
        columns = dict(zip(["start", "end", "score"], np.ascontiguousarray(rows[:, 1:].T)))
        tasks[task] = {"qid": qid, "video": rows[:, 0].astype(np.int64), **columns}
    return lambda: tvr.evaluate(truth, submission), lambda: cuemark.evaluate(table, tasks, preset="tvr")


def qvhighlights(truth_file, predictions_file):
    import qvhighlights
    import sklearn.metrics  # noqa: F401  loaded here, so that it does not count as evaluating

    truth, predictions = qvhighlights.read(truth_file, predictions_file)
    arrays = ("pred_relevant_windows", "pred_saliency_scores")
    answers = [{key: np.array(value, dtype=float) if key in arrays else value for key, value in line.items()}
               for line in predictions.values()]
    return (
        lambda: qvhighlights.evaluate(truth, predictions, qvhighlights.curve_by_sklearn),
        lambda: cuemark.evaluate(truth, answers, preset="qvhighlights"),
    )


def ranked(truth_file, predictions_file, index):
    import ranked

    truth, predictions, videos = ranked.read(truth_file, predictions_file, index)
    numbers = {name: number for number, name in videos.items()}
    table = {
        "qid": np.array([moment["query_id"] for moment in truth]),
        "video": np.array([numbers[moment["video_name"]] for moment in truth]),
        "start": np.array([moment["timestamp"][0] for moment in truth]),
        "end": np.array([moment["timestamp"][1] for moment in truth]),
        "relevance": np.array([moment["relevance"] for moment in truth], dtype=float),
    }
    rows = np.array([prediction for entry in predictions for prediction in entry["predictions"]])
    lengths = [len(entry["predictions"]) for entry in predictions]
    columns = {
        "qid": np.repeat([entry["query_id"] for entry in predictions], lengths),
        "video": rows[:, 0].astype(np.int64),
        **dict(zip(["start", "end", "score"], np.ascontiguousarray(rows[:, 1:].T))),
    }
    return (
        lambda: ranked.evaluate(truth, predictions, videos),
        lambda: cuemark.evaluate(table, columns, preset="tvr-ranking"),
    )


def seconds(call):
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def main(case, repeat, *files):
    peer, ours = {"tvr": tvr, "qvhighlights": qvhighlights, "ranked": ranked}[case](*files)
    theirs, mine = peer(), ours().metrics  # a run that does not count, and the check that both do the same
    for name, figure in theirs.items():
        assert abs(figure - mine[name]) < 1e-9, f"{name}: {figure} and {mine[name]}"
    runs = [(seconds(peer)[0], seconds(ours)[0]) for _ in range(int(repeat))]
    print(json.dumps({"peer_s": [a for a, _ in runs], "cuemark_s": [b for _, b in runs], "figures": len(theirs)}))


main(*sys.argv[1:])
