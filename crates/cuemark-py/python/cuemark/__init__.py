"""Score moment retrieval as the field does, read its datasets, and expose biased benchmarks.

Everything is computed by the same library as the ``cuemark`` program. Times are seconds, results are fractions in 0..1.

    >>> import cuemark
    >>> found = cuemark.evaluate("test.jsonl", "predictions.jsonl", preset="2d-tan")  # doctest: +SKIP
    >>> found.metrics["R@1,IoU=0.5"], found.interval()["R@1,IoU=0.5"]  # doctest: +SKIP
"""

from __future__ import annotations

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
    dataset_names,
    evaluate,
    iou,
    kde,
    load,
    metric_names,
    nms,
    preset_names,
    read_predictions,
    read_truth,
    report,
)

__version__ = _version("cuemark")

#: Names of the metrics, with ``n``, ``k`` and ``m`` for numbers.
METRICS: tuple[str, ...] = tuple(metric_names())
#: Names of the presets.
PRESETS: tuple[str, ...] = tuple(preset_names())
#: Names of the datasets that ``load`` knows.
DATASETS: tuple[str, ...] = tuple(dataset_names())

__all__ = [
    "DATASETS",
    "METRICS",
    "PRESETS",
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
    "report",
    "split",
]
