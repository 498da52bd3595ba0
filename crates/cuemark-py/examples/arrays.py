"""Scores what a model has just predicted, without a file in between."""

import numpy as np
from numpy.typing import NDArray

import cuemark


def predict(queries: int, answers: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Stands for a model: queries × answers × [start, end, score]."""
    spans = np.sort(rng.uniform(0, 30, (queries, answers, 2)), axis=2)
    scores = np.sort(rng.uniform(0, 1, (queries, answers, 1)), axis=1)[:, ::-1]
    return np.concatenate([spans, scores], axis=2)


def main() -> None:
    rng = np.random.default_rng(0)
    truth = np.sort(rng.uniform(0, 30, (200, 2)), axis=1)
    predictions = predict(200, 20, rng)

    found = cuemark.evaluate(truth, predictions, metrics=["R@1,IoU=0.5", "R@5,IoU=0.5", "mIoU"])
    for name, (low, high) in found.interval().items():
        print(f"{name:14} {found.metrics[name]:.3f}  ({low:.3f} to {high:.3f})")

    first = predictions[0]
    kept = cuemark.nms(first[:, :2], first[:, 2], threshold=0.4)
    print("of the first list", len(kept), "answers survive suppression;")
    print("the best overlaps the truth by", cuemark.iou(first[kept[:1], :2], truth[:1])[0, 0])


if __name__ == "__main__":
    main()
