"""Overlap, suppression and densities on NumPy arrays, which are read where they lie."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import cuemark


def test_overlap_of_all_with_all() -> None:
    a = np.array([[0.0, 10.0], [5.0, 5.0]])
    b = np.array([[5.0, 15.0], [0.0, 10.0], [20.0, 30.0]])
    assert cuemark.iou(a, b).tolist() == [[5 / 15, 1.0, 0.0], [0.0, 0.0, 0.0]]
    assert cuemark.iou(a[:1], b[2:], form="signed").tolist() == [[-10 / 30]]
    assert cuemark.iou(a[:0], b).shape == (0, 3)
    assert cuemark.iou(a, b[:0]).shape == (2, 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_views_and_copies_overlap_alike(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    wide = np.sort(rng.random((60, 9)) * 100, axis=1).astype(dtype)
    view, whole = wide[::3, 1:8:5], np.ascontiguousarray(wide[::3, 1:8:5])
    assert not view.flags.c_contiguous
    assert np.array_equal(cuemark.iou(view, wide[:, ::8]), cuemark.iou(whole, np.ascontiguousarray(wide[:, ::8])))
    start, end = whole.astype(float).T
    inter = np.maximum(0, np.minimum(end[:, None], end) - np.maximum(start[:, None], start))
    union = (end - start)[:, None] + (end - start) - inter
    assert np.allclose(cuemark.iou(view, view), inter / union, atol=1e-12)


def test_suppression_keeps_the_best() -> None:
    spans = np.array([[0.0, 10.0], [1.0, 11.0], [20.0, 30.0]])
    assert cuemark.nms(spans).tolist() == [0, 2]
    assert cuemark.nms(spans, np.array([0.1, 0.9, 0.5])).tolist() == [1, 2]
    assert cuemark.nms(spans, np.array([0.5, 0.5, 0.5], dtype=np.float32), threshold=1.0).tolist() == [0, 1, 2]
    assert cuemark.nms(spans, limit=1).tolist() == [0]
    assert cuemark.nms(spans[:0]).tolist() == []


def test_suppression_is_what_a_plain_loop_keeps() -> None:
    rng = np.random.default_rng(1)
    spans = np.sort(rng.random((200, 2)) * 60, axis=1)
    scores = rng.integers(0, 50, 200) / 50
    overlaps = cuemark.iou(spans, spans)
    kept: list[int] = []
    for place in np.argsort(-scores, kind="stable"):
        if all(overlaps[place, earlier] <= 0.4 for earlier in kept):
            kept.append(int(place))
    assert cuemark.nms(spans, scores, threshold=0.4).tolist() == kept


def test_what_is_no_span_is_named() -> None:
    good = np.array([[0.0, 1.0], [1.0, 2.0]])
    for bad, text in [([1.0, np.nan], "NaN is not"), ([3.0, 2.0], "2 s is before start 3 s"), ([-1.0, 2.0], "before the first")]:
        broken = good.copy()
        broken[1] = bad
        with pytest.raises(cuemark.CuemarkError, match=r"b\[1\]: .*" + text):
            cuemark.iou(good, broken)
        with pytest.raises(cuemark.CuemarkError, match=r"spans\[1\]: "):
            cuemark.nms(broken)
    with pytest.raises(cuemark.CuemarkTypeError, match="a: an array of int64"):
        cuemark.iou(np.zeros((1, 2), dtype=np.int64), good)
    with pytest.raises(cuemark.CuemarkTypeError, match="spans: a `list`"):
        cuemark.nms([[0.0, 1.0]])  # type: ignore[arg-type]
    with pytest.raises(cuemark.CuemarkError, match="scores: 1 scores for 2 spans"):
        cuemark.nms(good, np.array([1.0]))
    with pytest.raises(cuemark.CuemarkError, match=r"scores\[0\]: NaN has no rank"):
        cuemark.nms(good, np.array([np.nan, 1.0]))
    with pytest.raises(cuemark.CuemarkError, match="a: rows of"):
        cuemark.iou(np.zeros(4), good)
    with pytest.raises(cuemark.CuemarkError, match="form: `giou` is not one of true"):
        cuemark.iou(good, good, form="giou")  # type: ignore[arg-type]


# What the process holds at its peak before and after, in KiB; the array takes 128 MiB, a copy of its view would take 64.
MEMORY = """
import resource
import numpy as np
import cuemark
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = 1 << 22
wide = np.zeros((rows, 4))
wide[:, 1] = 1.0
wide[:, 3] = 2.0
one = np.array([[0.0, 4.0]])
cuemark.iou(one, one); cuemark.nms(one)
before = peak()
cuemark.nms(wide[:, 1::2], limit=1)
after_nms = peak()
cuemark.evaluate(wide[:1, 1::2], wide[None, :4, 1::2], metrics="mIoU")
cuemark.iou(one, wide[:, 1::2])
print(after_nms - before, peak() - after_nms)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory in KiB is Linux's")
def test_views_are_not_copied() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    suppressed, overlapped = map(int, done.stdout.split())
    assert suppressed < 16 << 10, f"suppression took {suppressed} KiB beside the array"
    result = (1 << 22) * 8 >> 10  # the overlaps themselves, 32 MiB; a copy of the view would be 64 MiB more
    assert overlapped < result + (24 << 10), f"overlap took {overlapped} KiB, its result {result}"


def test_densities_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(3)
    points = np.sort(rng.random((300, 2)), axis=1)
    kde = cuemark.kde(points)
    covariance = np.cov(points.T) * 300 ** (-1 / 3)
    apart = points[:20, None, :] - points[None, :, :]
    exponents = -0.5 * np.einsum("ijk,kl,ijl->ij", apart, np.linalg.inv(covariance), apart)
    expected = np.exp(exponents).sum(axis=1) / (300 * 2 * np.pi * np.sqrt(np.linalg.det(covariance)))
    assert np.allclose(kde.density(points[:20]), expected, rtol=1e-9)
    assert len(kde) == 300
    start, end = kde.mode
    assert 0 <= start < end <= 1
    drawn = kde.sample(50, seed=4)
    assert drawn.shape == (50, 2) and np.array_equal(drawn, kde.sample(50, seed=4))
    assert (drawn >= 0).all() and (drawn <= 1).all() and (drawn[:, 0] <= drawn[:, 1]).all()


def test_a_density_does_not_depend_on_how_many_are_asked_for() -> None:
    rng = np.random.default_rng(5)
    points = np.sort(rng.random((9_000, 2)), axis=1)
    kde = cuemark.kde(points[:500])
    told: list[tuple[str, int, int]] = []
    whole = kde.density(points, progress=lambda *step: told.append(step))
    parts = np.concatenate([kde.density(points[:1_000]), kde.density(points[1_000:])])
    assert np.allclose(whole, parts, rtol=1e-12)
    assert told[-1] == ("density", 9_000, 9_000)
    with pytest.raises(cuemark.CuemarkError, match=r"points\[1\]: 0.1 is before 0.2"):
        cuemark.kde(np.array([[0.0, 1.0], [0.2, 0.1]]))
