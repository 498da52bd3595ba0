"""The metric for PyTorch loops, with arrays in place of tensors; `cargo xtask verify torch` runs it on tensors."""

from __future__ import annotations

import numpy as np
import pytest

import cuemark
from cuemark.torch_metric import MomentMetric


def test_batches_give_what_a_whole_file_gives() -> None:
    rng = np.random.default_rng(0)
    true = np.sort(rng.random((25, 2)) * 30, axis=1)
    spans = np.sort(rng.random((25, 4, 2)) * 30, axis=2)
    scores = rng.random((25, 4))
    metric = MomentMetric(metrics=["R@1,IoU=0.3", "R@5,IoU=0.5", "dR@1,IoU=0.3", "mIoU"])
    for begin in range(0, 25, 7):
        part = slice(begin, begin + 7)
        metric.update(spans[part], true[part], scores=scores[part], durations=np.full(len(true[part]), 30.0))
    whole = np.concatenate([spans, scores[:, :, None]], axis=2)
    expected = cuemark.evaluate(
        true, whole, metrics=["R@1,IoU=0.3", "R@5,IoU=0.5", "dR@1,IoU=0.3", "mIoU"], order="score", durations=np.full(25, 30.0)
    )
    assert metric.compute() == pytest.approx(expected.metrics, abs=1e-12)
    assert len(metric) == 25
    metric.reset()
    with pytest.raises(cuemark.CuemarkError, match="nothing to score yet"):
        metric.compute()


def test_one_answer_and_several_truths() -> None:
    metric = MomentMetric(metrics="mIoU")
    metric.update(np.array([[0.0, 10.0], [5.0, 6.0]]), [np.array([[0.0, 5.0], [0.0, 10.0]]), np.array([[5.0, 6.0]])])
    assert metric.compute() == {"mIoU": 1.0}


def test_shapes_that_do_not_fit_are_named() -> None:
    metric = MomentMetric()
    with pytest.raises(cuemark.CuemarkError, match="predicted: the shape is"):
        metric.update(np.zeros((2, 3)), np.zeros((2, 2)))
    with pytest.raises(cuemark.CuemarkError, match="true: 3 queries where predicted has 2"):
        metric.update(np.zeros((2, 1, 2)), np.zeros((3, 2)))
    with pytest.raises(cuemark.CuemarkError, match="scores: the shape is"):
        metric.update(np.zeros((2, 1, 2)), np.zeros((2, 2)), scores=np.zeros(2))
