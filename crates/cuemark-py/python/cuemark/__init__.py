"""Score moment retrieval as the field does, read its datasets, and expose biased benchmarks.

Everything is computed by the same library as the ``cuemark`` program. Times are seconds, results are fractions in 0..1.

    >>> import cuemark
    >>> found = cuemark.evaluate("test.jsonl", "predictions.jsonl", preset="2d-tan")  # doctest: +SKIP
    >>> found.metrics["R@1,IoU=0.5"], found.interval()["R@1,IoU=0.5"]  # doctest: +SKIP
"""

from importlib.metadata import version as _version

from . import rank, split
from ._errors import CuemarkError, CuemarkFileError, CuemarkTypeError
from ._native import (
    Answer,
    Answers,
    Comparison,
    Consensus,
    Dataset,
    Evaluation,
    Index,
    Kde,
    MadeSplits,
    Moment,
    Predictions,
    Record,
    Split,
    baseline,
    compare,
    evaluate,
    iou,
    kde,
    load,
    nms,
    read_predictions,
    read_truth,
)

__version__ = _version("cuemark")

__all__ = [
    "Answer",
    "Answers",
    "Comparison",
    "Consensus",
    "CuemarkError",
    "CuemarkFileError",
    "CuemarkTypeError",
    "Dataset",
    "Evaluation",
    "Index",
    "Kde",
    "MadeSplits",
    "Moment",
    "Predictions",
    "Record",
    "Split",
    "__version__",
    "baseline",
    "compare",
    "evaluate",
    "iou",
    "kde",
    "load",
    "nms",
    "rank",
    "read_predictions",
    "read_truth",
    "split",
]
