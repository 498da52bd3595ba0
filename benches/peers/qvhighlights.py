"""QVHighlights, moments in four length ranges and highlights: qvhighlights.py TRUTH.jsonl PREDICTIONS.jsonl [--lean]

As the public script does it, scikit-learn draws the precision-recall curve of every rater. With --lean a few lines of
NumPy do the same, several times faster; both give the same figures.
"""

import sys

import numpy as np

from peer import read_jsonl, report

THRESHOLDS = [round(0.5 + 0.05 * step, 2) for step in range(10)]
RANGES = {"full": (0, 150), "short": (0, 10), "middle": (10, 30), "long": (30, 150)}
MOST_WINDOWS = 10
CLIP_SECONDS = 2
GRADES = {"Fair": 2, "Good": 3, "VeryGood": 4}


def overlaps(window, true):
    """Intersection over true union of one predicted window with every true one."""
    inter = np.maximum(np.minimum(window[1], true[:, 1]) - np.maximum(window[0], true[:, 0]), 0)
    return inter / ((window[1] - window[0]) + (true[:, 1] - true[:, 0]) - inter)


def interpolated_ap(precision, recall):
    """Area under the curve after precision is made non-increasing from the right."""
    precision = np.concatenate([[0.0], precision, [0.0]])
    recall = np.concatenate([[0.0], recall, [1.0]])
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    steps = np.where(recall[1:] != recall[:-1])[0] + 1
    return np.sum((recall[steps] - recall[steps - 1]) * precision[steps])


def average_precisions(windows, true):
    """One AP per threshold for one query; `windows` are [start, end, score] in file order."""
    ranked = sorted(windows[:MOST_WINDOWS], key=lambda window: -window[2])
    true_windows = np.array(true, dtype=float)
    taken = np.zeros((len(THRESHOLDS), len(true)), dtype=bool)
    right = np.zeros((len(THRESHOLDS), len(ranked)))
    for rank in range(len(ranked)):
        ious = overlaps(np.array(ranked[rank][:2], dtype=float), true_windows)
        best_first = ious.argsort()[::-1]
        for level, threshold in enumerate(THRESHOLDS):
            for window in best_first:
                if ious[window] < threshold:
                    break
                if not taken[level, window]:
                    taken[level, window] = True
                    right[level, rank] = 1
                    break
    found = np.cumsum(right, axis=1)
    recall = found / len(true)
    precision = found / np.arange(1, len(ranked) + 1)
    return [interpolated_ap(precision[level], recall[level]) for level in range(len(THRESHOLDS))]


def first_window_overlap(window, true):
    """Hull overlap of one window with the best true one."""
    best = 0.0
    for start, end in true:
        inter = max(0.0, min(window[1], end) - max(window[0], start))
        hull = max(window[1], end) - min(window[0], start)
        best = max(best, inter / hull if hull != 0 else 0.0)
    return best


def moments(truth, predictions, low, high):
    """mAP and R1 of the queries that have a true window longer than `low` and at most `high` seconds."""
    precisions, firsts = [], []
    for query in truth:
        true = [window for window in query["relevant_windows"] if low < window[1] - window[0] <= high]
        if true:
            windows = predictions[query["qid"]]["pred_relevant_windows"]
            precisions.append(average_precisions(windows, true))
            firsts.append(first_window_overlap(windows[0], true))
    firsts = np.array(firsts)
    recalls = [float((firsts >= threshold).mean()) for threshold in THRESHOLDS]
    return np.array(precisions).mean(axis=0), recalls


def curve_by_sklearn(labels, scores):
    """Precision at each distinct recall above 0, highest recall last."""
    from sklearn.metrics import precision_recall_curve

    precision, recall, _ = precision_recall_curve(labels, scores)
    precision, recall = precision[::-1], recall[::-1]
    new_level = np.diff(recall, prepend=0.0) > 0
    return np.maximum.accumulate(precision[::-1])[::-1][new_level]


def curve_by_numpy(labels, scores):
    """The same without scikit-learn: tied scores form one level."""
    order = np.argsort(-scores, kind="stable")
    ranked, scores = labels[order], scores[order]
    level_ends = np.append(np.where(np.diff(scores))[0], len(scores) - 1)
    found = np.cumsum(ranked)[level_ends]
    precision = found / (level_ends + 1)
    new_level = np.diff(found, prepend=0) > 0
    return np.maximum.accumulate(precision[::-1])[::-1][new_level]


def highlight_ap(labels, scores, curve):
    """Interpolated precision averaged over the distinct recall levels."""
    if not labels.any():
        return 0.0
    if labels.all():
        return 1.0
    return curve(labels, scores).mean()


def highlights(truth, predictions, grade, curve):
    hits, precisions = [], []
    for query in truth:
        clips = int(query["duration"] / CLIP_SECONDS)
        ratings = np.zeros((clips, 3))
        ratings[np.array(query["relevant_clip_ids"])] = np.array(query["saliency_scores"])
        labels = ratings >= grade
        scores = np.array(predictions[query["qid"]]["pred_saliency_scores"], dtype=float)
        best = int(np.argmax(scores))
        hits.append(float(best < clips and labels[best].any()))
        fitted = np.zeros(clips)
        fitted[: min(clips, len(scores))] = scores[:clips]
        for rater in range(labels.shape[1]):
            precisions.append(highlight_ap(labels[:, rater], fitted, curve))
    return float(np.mean(precisions)), float(np.mean(hits))


def evaluate(truth, predictions, curve):
    metrics = {}
    for name, (low, high) in RANGES.items():
        ending = "" if name == "full" else f"/{name}"
        precisions, recalls = moments(truth, predictions, low, high)
        for threshold, precision, recall in zip(THRESHOLDS, precisions, recalls):
            metrics[f"mAP@{threshold}{ending}"] = float(precision)
            metrics[f"R@1,IoU={threshold}{ending}"] = recall
        metrics[f"mAP{ending}"] = float(np.mean(precisions))
    for name, grade in GRADES.items():
        metrics[f"HL-mAP/{name}"], metrics[f"HL-Hit1/{name}"] = highlights(truth, predictions, grade, curve)
    return metrics


def read(truth, predictions):
    return read_jsonl(truth), {line["qid"]: line for line in read_jsonl(predictions)}


if __name__ == "__main__":
    if "--lean" in sys.argv:
        chosen = curve_by_numpy
    else:
        import sklearn.metrics  # loaded here, so that it does not count as evaluating

        chosen = curve_by_sklearn
    report(lambda: read(*sys.argv[1:3]), lambda *inputs: evaluate(*inputs, chosen))
