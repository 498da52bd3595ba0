"""TVR's three tasks: tvr.py TRUTH.jsonl PREDICTIONS.json

Single precision throughout, file order is the ranking, only the first 100 predictions of a query are looked at.
"""

import sys

import numpy as np

from peer import read_json, read_jsonl, report

THRESHOLDS = (0.5, 0.7)
DEPTHS = (1, 5, 10, 100)
MOST = 100
TYPES = ("v", "t", "vt")


def overlaps(predicted, start, end):
    """IoU over the hull of every row of `predicted` with one true span; 0 where the hull is empty."""
    inter = np.minimum(predicted[:, 1], end) - np.maximum(predicted[:, 0], start)
    hull = np.maximum(predicted[:, 1], end) - np.minimum(predicted[:, 0], start)
    inter = np.maximum(inter, 0)
    return np.divide(inter, hull, out=np.zeros_like(inter), where=hull != 0)


def judge(truth, entries, video_index):
    """Which rank of which query names the right video, and which is right at each threshold.

    `[queries, MOST]` and, per threshold, `[queries, MOST]`; ranks that a list does not reach are wrong.
    """
    by_query = {entry["desc_id"]: entry for entry in entries}
    same_video = np.zeros((len(truth), MOST), dtype=bool)
    right = {threshold: np.zeros((len(truth), MOST), dtype=bool) for threshold in THRESHOLDS}
    for row, query in enumerate(truth):
        ranked = by_query[query["desc_id"]]["predictions"]
        ranked = np.array([prediction[:3] for prediction in ranked][:MOST], dtype=np.float32)
        same = ranked[:, 0] == video_index[query["vid_name"]]
        start, end = np.array(query["ts"], dtype=np.float32)
        ious = overlaps(ranked[:, 1:3], start, end) * same
        same_video[row, : len(same)] = same
        for threshold in THRESHOLDS:
            right[threshold][row, : len(same)] = ious >= np.float32(threshold)
    return same_video, right


def found_in_own_video(right, same_video, depth):
    """SVMR: whether one of the first `depth` predictions *of the right video* is right, query by query."""
    return np.array([right[row][same_video[row]][:depth].any() for row in range(len(right))])


def evaluate(truth, submission):
    metrics = {}
    kinds = np.array([query["type"] for query in truth])
    for task in ("VCMR", "SVMR", "VR"):
        same_video, right = judge(truth, submission[task], submission["video2idx"])
        # The public script computes everything once over all queries and once more for each type.
        for kind in (None, *TYPES):
            members = kinds == kind if kind else np.ones(len(truth), dtype=bool)
            ending = f"/type={kind}" if kind else ""
            for depth in DEPTHS:
                if task == "VR":
                    found = same_video[:, :depth].sum(axis=1) >= 1
                    metrics[f"VR:R@{depth}{ending}"] = float((found & members).sum() / members.sum())
                    continue
                for threshold in THRESHOLDS:
                    if task == "SVMR":
                        found = found_in_own_video(right[threshold], same_video, depth)
                    else:
                        found = right[threshold][:, :depth].sum(axis=1) >= 1
                    name = f"{task}:R@{depth},IoU={threshold}{ending}"
                    metrics[name] = float((found & members).sum() / members.sum())
    return metrics


def read(truth, predictions):
    return read_jsonl(truth), read_json(predictions)


if __name__ == "__main__":
    report(lambda: read(*sys.argv[1:3]), evaluate)
