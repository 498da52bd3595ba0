"""A metric for PyTorch evaluation loops: batches in, the evaluator's own numbers out.

    metric = MomentMetric(metrics=["R@1,IoU=0.5", "mIoU"])
    for batch in loader:
        spans, scores = model(batch)                      # [batch, answers, 2] in seconds, [batch, answers]
        metric.update(spans, batch["span"], scores=scores)
    print(metric.compute())

The spans are collected on the CPU and scored once, in ``compute``, by :func:`cuemark.evaluate`: the figures are those of
a prediction file with the same content, not a mean of batch means. In a distributed run every process gets the figures
of all of them. PyTorch is imported when the first batch comes, not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import NDArray

from ._errors import CuemarkError, CuemarkTypeError
from ._native import Evaluation, evaluate

__all__ = ["MomentMetric"]

Array = NDArray[np.float64]


class MomentMetric:
    """Collects predicted and true spans batch by batch and scores them all at once.

    ``metrics``, ``preset`` and the other keyword arguments are those of :func:`cuemark.evaluate`. With ``scores`` each
    list is ranked by them, highest first and of equals the earlier first; without, the model's order is the ranking.
    """

    def __init__(
        self,
        metrics: Optional[Union[str, Sequence[str]]] = None,
        *,
        preset: Optional[str] = None,
        **options: Any,
    ) -> None:
        self._how: dict[str, Any] = {"metrics": metrics, "preset": preset, **options}
        self._predicted: list[Array] = []
        self._true: list[Array] = []
        self._durations: list[float] = []

    def update(self, predicted: Any, true: Any, *, scores: Any = None, durations: Any = None) -> None:
        """Adds one batch.

        ``predicted`` is ``[batch, answers, 2]`` (or ``[batch, 2]`` for one answer each), in seconds; ``true`` is ``[batch, 2]``
        or a list of ``[spans, 2]``, one for each query. ``scores`` is ``[batch, answers]``; ``durations`` is ``[batch]``, for
        metrics on fractions of a video. Tensors of any device and precision are taken, arrays and lists too.
        """
        spans = _array(predicted, "predicted")
        if spans.ndim == 2:
            spans = spans[:, None, :]
        if spans.ndim != 3 or spans.shape[2] != 2:
            raise CuemarkError(f"predicted: the shape is {spans.shape} where batch, answers and 2 are wanted")
        truths = _list_of_spans(true)
        if len(truths) != len(spans):
            raise CuemarkError(f"true: {len(truths)} queries where predicted has {len(spans)}")
        if scores is not None:
            ranks = _array(scores, "scores")
            if ranks.shape != spans.shape[:2]:
                raise CuemarkError(f"scores: the shape is {ranks.shape} where {spans.shape[:2]} is wanted")
            order = np.argsort(-ranks, axis=1, kind="stable")
            spans = np.take_along_axis(spans, order[:, :, None], axis=1)
            ranks = np.take_along_axis(ranks, order, axis=1)
            spans = np.concatenate([spans, ranks[:, :, None]], axis=2)
        if durations is not None:
            lengths = _array(durations, "durations").reshape(-1)
            if len(lengths) != len(spans):
                raise CuemarkError(f"durations: {len(lengths)} where there are {len(spans)} queries")
            self._durations.extend(lengths.tolist())
        self._predicted.extend(spans)
        self._true.extend(truths)

    def evaluation(self) -> Evaluation:
        """Everything that was collected, scored: metrics, intervals, scores of every query."""
        predicted, true, durations = self._everybodys()
        if not true:
            raise CuemarkError("there is nothing to score yet", "call update with a batch first")
        if durations and len(durations) != len(true):
            raise CuemarkError(f"durations: given for {len(durations)} of {len(true)} queries")
        lengths = np.asarray(durations) if durations else None
        return evaluate(true, predicted, durations=lengths, progress=False, **self._how)

    def compute(self) -> dict[str, float]:
        """Each metric's mean over everything that was collected, a fraction."""
        return self.evaluation().metrics

    def reset(self) -> None:
        """Forgets everything."""
        self._predicted, self._true, self._durations = [], [], []

    def __len__(self) -> int:
        return len(self._true)

    def _everybodys(self) -> tuple[list[Array], list[Array], list[float]]:
        """What every process of a distributed run has collected, in the order of their ranks."""
        mine = (self._predicted, self._true, self._durations)
        try:
            distributed: Any = import_module("torch.distributed")
        except ImportError:
            return mine
        if not (distributed.is_available() and distributed.is_initialized()):
            return mine
        parts: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(parts, mine)
        predicted, true, durations = zip(*parts)
        return sum(predicted, []), sum(true, []), sum(durations, [])


def _array(values: Any, argument: str) -> Array:
    """A tensor, an array or nested lists, in double precision on the CPU."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = (values.double() if hasattr(values, "double") else values).numpy()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CuemarkTypeError(f"{argument}: {error}") from None


def _list_of_spans(true: Any) -> list[Array]:
    """One array of spans for each query."""
    if isinstance(true, (list, tuple)) and any(np.ndim(_array(item, f"true[{at}]")) != 1 for at, item in enumerate(true)):
        return [_array(item, f"true[{at}]").reshape(-1, 2) for at, item in enumerate(true)]
    spans = _array(true, "true")
    if spans.ndim != 2 or spans.shape[1] != 2:
        raise CuemarkError(f"true: the shape is {spans.shape} where batch and 2 are wanted")
    return list(spans[:, None, :])
