"""The metric inside a PyTorch evaluation loop. `cargo xtask verify torch` runs it; it needs PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuemark.torch_metric import MomentMetric

if TYPE_CHECKING:
    from collections.abc import Iterable


def validate(model: Any, batches: Iterable[dict[str, Any]]) -> dict[str, float]:
    metric = MomentMetric(metrics=["R@1,IoU=0.5", "R@1,IoU=0.7", "mIoU"])
    for batch in batches:
        spans, scores = model(batch["video"])  # [batch, answers, 2] in seconds, [batch, answers]
        metric.update(spans, batch["span"], scores=scores)
    return metric.compute()
