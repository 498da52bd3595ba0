"""`cuemark.torch_metric` on tensors, in one process and in two: with_torch.py. For `cargo xtask verify torch`, not for CI."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as distributed
import torch.multiprocessing as processes

import cuemark
from cuemark.torch_metric import MomentMetric

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
METRICS = ["R@1,IoU=0.5", "R@1,IoU=0.7", "mIoU"]


def made() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    true = (torch.rand(40, 2, generator=generator) * 30).sort(dim=1).values
    spans = (torch.rand(40, 5, 2, generator=generator) * 30).sort(dim=2).values
    return true, spans, torch.rand(40, 5, generator=generator)


def expected() -> dict[str, float]:
    true, spans, scores = (tensor.double().numpy() for tensor in made())
    answers = np.concatenate([spans, scores[:, :, None]], axis=2)
    return cuemark.evaluate(true, answers, metrics=METRICS, order="score").metrics


def in_a_loop() -> None:
    from torch_loop import validate

    true, spans, scores = made()
    class Model(torch.nn.Module):
        def forward(self, video: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return spans[video].requires_grad_(), scores[video]

    batches = [{"video": torch.arange(begin, begin + 8), "span": true[begin : begin + 8]} for begin in range(0, 40, 8)]
    assert validate(Model(), batches) == expected()


def in_every_precision() -> None:
    true, spans, scores = made()
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        metric = MomentMetric(metrics=METRICS)
        metric.update(spans.to(dtype), true, scores=scores)
        assert abs(metric.compute()["mIoU"] - expected()["mIoU"]) < 0.02
    if torch.cuda.is_available():
        metric = MomentMetric(metrics=METRICS)
        metric.update(spans.cuda(), true.cuda(), scores=scores.cuda())
        assert metric.compute() == expected()


def one_of_two(rank: int, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.init_process_group("gloo", rank=rank, world_size=2)
    true, spans, scores = made()
    mine = slice(rank * 20, rank * 20 + 20)
    metric = MomentMetric(metrics=METRICS)
    metric.update(spans[mine], true[mine], scores=scores[mine])
    assert metric.compute() == expected(), "every process has everybody's figures"
    distributed.destroy_process_group()


if __name__ == "__main__":
    in_a_loop()
    in_every_precision()
    spawn: Any = processes.spawn
    spawn(one_of_two, args=(29_511,), nprocs=2)
    print("cuemark.torch_metric holds on tensors, in a loop and in two processes")
