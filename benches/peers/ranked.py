"""NDCG of ranked moment retrieval: ranked.py TRUTH.json PREDICTIONS.json VIDEO_INDEX.json

Exponential gain and strict threshold, as the published code has it.
"""

import copy
import sys

import numpy as np

from peer import read_json, report

DEPTHS = (10, 20, 40)
THRESHOLDS = (0.3, 0.5, 0.7)


def overlap(predicted, true):
    """Intersection over true union of two spans."""
    inter = max(0.0, min(predicted[1], true[1]) - max(predicted[0], true[0]))
    union = (predicted[1] - predicted[0]) + (true[1] - true[0]) - inter
    return inter / union if union > 0 else 0.0


def matched_relevances(predictions, true, threshold):
    """The relevance that each prediction earns; every true moment is given away once."""
    free = copy.deepcopy(true)
    earned = []
    for video, start, end in predictions:
        candidates = [moment for moment in free if moment["video_name"] == video]
        relevance = 0
        if candidates:
            ious = [overlap((start, end), moment["timestamp"]) for moment in candidates]
            best = int(np.argmax(ious))
            if ious[best] > threshold:
                relevance = candidates[best]["relevance"]
                free.remove(candidates[best])
        earned.append(relevance)
    return earned


def discounted_gain(relevances):
    return sum((2**relevance - 1) / np.log2(rank + 2) for rank, relevance in enumerate(relevances))


def evaluate(truth, predictions, videos, depths=DEPTHS):
    by_query = {}
    for moment in truth:
        by_query.setdefault(moment["query_id"], []).append(moment)
    scores = {(depth, threshold): [] for depth in depths for threshold in THRESHOLDS}
    for entry in predictions:
        true = sorted(by_query[entry["query_id"]], key=lambda moment: -moment["relevance"])
        ranked = [(videos[video], start, end) for video, start, end, _ in entry["predictions"]]
        ideal = [moment["relevance"] for moment in true]
        for threshold in THRESHOLDS:
            earned = matched_relevances(ranked, true, threshold)
            for depth in depths:
                best = discounted_gain(ideal[:depth])
                score = discounted_gain(earned[:depth]) / best if best > 0 else 0.0
                scores[depth, threshold].append(score)
    return {f"NDCG@{depth},IoU={level}": float(np.mean(values)) for (depth, level), values in scores.items()}


def read(truth, predictions, index):
    videos = {number: name for name, (_, number) in read_json(index).items()}
    return read_json(truth), read_json(predictions), videos


if __name__ == "__main__":
    report(lambda: read(*sys.argv[1:4]), evaluate)
